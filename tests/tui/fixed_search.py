"""A search of fixed names in a fixed state, which asks nobody."""

from __future__ import annotations

from collections.abc import Sequence

from rtui.analysis.humanize import Mark
from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.query import MatchOrder, Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.search.search import LISTED, Search, Stage
from rtui.server.wire.connection import Online, State
from rtui.server.wire.errors import RtuiError

TYPES = (b"string", b"hash", b"set", b"zset", b"list", b"stream")
ENCODINGS = (b"embstr", b"listpack", b"hashtable", b"skiplist", b"quicklist", b"stream")


def record_of(number: int, key: bytes, asked_at_s: float) -> KeyRecord:
    """The facts of a key, by its place."""
    return KeyRecord(
        key,
        key_type=TYPES[number % len(TYPES)],
        memory_bytes=64 + number * 7919 % 100_000,
        length=number * 31 % 997,
        ttl_ms=-1 if number % 3 else 1000 * (number % 5000 + 1),
        idle_s=number * 13 % 90_000,
        encoding=ENCODINGS[number % len(ENCODINGS)],
        asked_at_s=asked_at_s,
    )


class FixedSearch(Search):
    """A search whose attributes tests set."""

    stage: Stage = Stage.OVER
    plan: SafeText | None = None
    kept: Sequence[KeyRecord] = ()
    count: int = 0
    mark: Mark = Mark.EXACT
    progress: Progress = Progress(ScanState.DONE, 1.0)
    cost: Cost = Cost(commands=312, keys=5_260, bytes_in=180_224, bytes_out=11_264, server_us=8_400)
    link: State = Online()
    failure: RtuiError | None = None
    notes: tuple[SafeText, ...] = ()

    def __init__(
        self, query: Query, columns: Sequence[Fact], order: MatchOrder | None, names: Sequence[bytes], at_s: float
    ) -> None:
        super().__init__(query, order, columns, LISTED)
        passing = NameFilter(query, Separators((b":",))).keep(list(names))
        self.kept = [record_of(number, key, at_s) for number, key in enumerate(passing)]
        self.count = len(self.kept)
        self.progress = Progress(ScanState.DONE, 1.0, len(names))
        self.changes = 0
        self.begun = self.closed = False

    @property
    def revision(self) -> int:
        return self.changes + self.control.revision

    def prepare(self) -> None:
        """Nothing is asked."""

    def begin(self) -> None:
        self.begun = True
        self.stage = Stage.RUNNING
        self.changes += 1

    async def _work(self) -> None:
        """Nothing is searched."""

    async def close(self) -> None:
        self.closed = True
