"""A search of fixed names in a fixed state, which asks nobody."""

from __future__ import annotations

from collections.abc import Sequence

from rtui.analysis.humanize import Mark
from rtui.analysis.query.matches import Order
from rtui.analysis.query.names import NameFilter
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.key_search import LISTED, Stage
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
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


class FixedSearch:
    """What `Search` promises, from attributes that tests set."""

    def __init__(
        self, query: Query, columns: Sequence[Fact], order: Order | None, names: Sequence[bytes], at_s: float
    ) -> None:
        self.query, self.columns, self.order = query, tuple(columns), order
        self.control = RunControl()
        passing = NameFilter(query, Separators((b":",))).keep(list(names))
        self.kept: Sequence[KeyRecord] = [record_of(number, key, at_s) for number, key in enumerate(passing)]
        self.limit = LISTED
        self.count = len(self.kept)
        self.mark = Mark.EXACT
        self.stage = Stage.OVER
        self.plan: SafeText | None = None
        self.progress = Progress(ScanState.DONE, 1.0, len(names))
        self.cost = Cost(commands=312, keys=5_260, bytes_in=180_224, bytes_out=11_264, server_us=8_400)
        self.link: State = Online()
        self.failure: RtuiError | None = None
        self.notes: tuple[SafeText, ...] = ()
        self.as_of_s: float | None = None
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

    def sorts_at_once(self, order: Order | None) -> bool:
        """As a search of a server."""
        return False

    async def close(self) -> None:
        self.closed = True
