"""A server in Python that answers as a test says, and one inspection of it by the engine and by Python.

No socket is needed: what the engine writes is parsed, each request is checked against the closed list, and the replies
go back to it in pieces of any length. An answer depends on the key, the command and a seed alone, so that both are told
the same, in whatever order they ask.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, cast

import hiredis
import polars as pl
import pytest

from rtui.analysis.columns import EVERYTHING, Columns
from rtui.analysis.report.document import Scope
from rtui.keyspace.text.display import display_text
from rtui.keyspace.text.segments import Separators
from rtui.registry.load import read_registry
from rtui.registry.registry import Registry
from rtui.server import guard
from rtui.server.engine._scan import ScanEngine
from rtui.server.engine._slot_filter import SlotFilter
from rtui.server.guard.command import find_spec, scan_template
from rtui.server.inspection.engine_inspection import InspectingEngine
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.compiled_scan import Event
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.page import scan_page
from rtui.server.scan.ranges import Ranges
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.errors import Reply, ServerBusyError, ServerError, as_resp2
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.own_reads import OwnReads
from rtui.table.aggregates import Aggregates
from tests.wire import Requests

STARTED_S: Final = 1_790_000_000.0

BUSY: Final = (
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-BUSY Redis is busy running a script.\r\n",
    b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
)
KEY_REFUSAL: Final = b"-NOPERM No permissions to access a key\r\n"
ELSEWHERE: Final = (
    b"-MOVED 3999 127.0.0.1:6381\r\n",
    b"-ASK 3999 127.0.0.1:6381\r\n",
    b"-MOVED\r\n",
    b"-CLUSTERDOWN Hash slot not served\r\n",
    b"-CLUSTERDOWN hash SLOT not served\r\n",
)
WRONG_TYPE: Final = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

TYPES: Final = (b"string", b"hash", b"list", b"set", b"zset", b"stream", b"ReJSON-RL", b"MBbloom--", b"own-module")

ENCODINGS: Final = (b"listpack", b"embstr", b"hashtable", b"of-a-later-version")

FACTS: Final = ("TYPE", "PTTL", "OBJECT IDLETIME", "OBJECT FREQ", "MEMORY USAGE", "OBJECT ENCODING")

MOST: Final = 2**63 - 1

ODD_NUMBERS: Final = (-5, -3, -(2**63), 256, MOST)
ODD_REPLIES: Final = (
    *(b":%d\r\n" % number for number in ODD_NUMBERS),
    *(b"+OK\r\n", b"$0\r\n\r\n", b"+\r\n", b"$3\r\nabc\r\n", b"$65\r\n%b\r\n" % (b"x" * 65)),
    *(b"*0\r\n", b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", b"-ERR something is odd\r\n", b"-\r\n", b"-ERR no such key\r\n"),
    *(KEY_REFUSAL, WRONG_TYPE),
)
OF_RESP3: Final = (b"%1\r\n:1\r\n~1\r\n+a\r\n", b"~2\r\n:1\r\n:2\r\n")
PUSHES: Final = (b">2\r\n+invalidate\r\n*1\r\n$3\r\nkey\r\n", b">1\r\n+pong\r\n")


@dataclass(frozen=True)
class Answers:
    """What a server says of each key: facts by chance, and in what way it is at fault."""

    seed: int
    faults: frozenset[str] = frozenset()
    """`gone`, `elsewhere`, `odd`, `denied keys`, `large` (numbers), or the name of a command that is denied."""
    protocol: int = 2

    def reply(self, argv: Sequence[bytes], command: str) -> bytes:
        """The reply to a question about a key."""
        key = argv[-1]
        if command in self.faults:
            name = command.lower().replace(" ", "|").encode()
            return b"-NOPERM User reader has no permissions to run the '%b' command\r\n" % name
        of_key = Random(f"{self.seed} {key!r}")
        key_type = of_key.choice(TYPES)
        gone_from, is_refused = of_key.randrange(12), of_key.random() < 0.1
        rng = Random(f"{self.seed} {key!r} {command}")
        stage = FACTS.index(command) if command in FACTS else 4
        if "elsewhere" in self.faults and of_key.randrange(20) <= stage:
            return rng.choice(ELSEWHERE)
        if "gone" in self.faults and gone_from <= stage:
            return self._gone(command, rng)
        if "denied keys" in self.faults and is_refused:
            return KEY_REFUSAL
        if "odd" in self.faults and rng.random() < 0.1:
            return rng.choice(ODD_REPLIES + (OF_RESP3 if self.protocol == 3 else ()))
        return b"+%b\r\n" % key_type if command == "TYPE" else self._fact(command, rng)

    def _fact(self, command: str, rng: Random) -> bytes:
        most = MOST if "large" in self.faults else 10 ** rng.randrange(1, 8)
        if command == "OBJECT ENCODING":
            return bulk(rng.choice(ENCODINGS))
        if command == "PTTL":
            return b":%d\r\n" % rng.choice((-1, rng.randrange(most)))
        return b":%d\r\n" % (rng.randrange(256) if command == "OBJECT FREQ" else rng.randrange(most))

    def _gone(self, command: str, rng: Random) -> bytes:
        if command == "TYPE":
            return b"+none\r\n"
        if command == "PTTL":
            return b":-2\r\n"
        if command in FACTS:
            return b"_\r\n" if self.protocol == 3 else rng.choice((b"$-1\r\n", b"*-1\r\n"))
        return rng.choice((b":0\r\n", WRONG_TYPE))


@dataclass
class ModelServer:
    """Answers SCAN with pages, and questions about keys; it has no more of a connection than what it was sent."""

    pages: Sequence[Sequence[bytes]]
    answers: Answers
    busy: frozenset[int] = frozenset()
    """Requests, by their number, that are answered that the server is busy."""
    scan: Callable[[int, int], tuple[int, Sequence[bytes]]] | None = None
    """Answers a cursor and a count in place of the pages."""
    requests: int = 0
    asked: Counter[str] = field(default_factory=Counter)

    def answer(self, argv: Sequence[bytes]) -> bytes:
        """The reply to one request, which the closed list must admit."""
        spec = find_spec(argv)
        assert spec is not None, argv
        self.requests += 1
        self.asked[spec.name] += 1
        if self.requests in self.busy:
            return BUSY[self.requests % len(BUSY)]
        if spec.name == "SCAN":
            return self._push() + self._page(int(argv[1]), int(argv[argv.index(b"COUNT") + 1]))
        if spec.name == "INFO":
            return bulk(b"# Commandstats\r\n")
        return self._push() + self.answers.reply(argv, spec.name)

    def _push(self) -> bytes:
        return PUSHES[self.requests % 2] if self.answers.protocol == 3 and self.requests % 7 == 0 else b""

    def _page(self, cursor: int, count: int) -> bytes:
        if self.scan is not None:
            following, keys = self.scan(cursor, count)
        else:
            keys, following = self.pages[cursor], (cursor + 1) % len(self.pages)
        return page(b"%d" % following, keys)


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def page(cursor: bytes, keys: Sequence[bytes]) -> bytes:
    """A reply to SCAN."""
    return b"*2\r\n%b*%d\r\n%b" % (bulk(cursor), len(keys), b"".join(map(bulk, keys)))


NEWEST: Final = ServerIdentity(product="valkey", version=(9, 1, 0))


@dataclass(frozen=True)
class Setting:
    """What an inspection is of, and how it asks."""

    columns: Columns = EVERYTHING
    identity: ServerIdentity = NEWEST
    no_touch: NoTouch = NoTouch.ON
    first_sampled: int = 0
    top: int = 5
    count: int = 10
    depth: int = 3
    own_reads: frozenset[bytes] = frozenset()
    denied: tuple[str, ...] = ()
    """Commands of which it is known before that they may not be run."""
    registry: Registry | None = None


REGISTRY = read_registry("""
placeholders = { id = "int" }
[naming]
case = ["lower", "camel"]
[glossary]
usr = "user"
[[pattern]]
pattern = "user:<id>:cart"
type = ["string", "hash", "list"]
ttl = "1s..1h|none"
size = "<=1000"
length = "1..100"
[[pattern]]
pattern = "{{tag<n>}}:<id>"
placeholders = { n = "int" }
ttl = "required"
[[pattern]]
pattern = "<anything>"
size = ">=64"
[[pattern]]
pattern = "none"
""")
"""What the names of the tests keep and break."""


def identity(product: str, version: tuple[int, ...], policy: str = "noeviction") -> ServerIdentity:
    return ServerIdentity(product=product, version=version, maxmemory_policy=display_text(policy))  # type: ignore[arg-type]


class Recorded(Aggregates):
    """Counts tables, and keeps them."""

    def __init__(self, setting: Setting) -> None:
        scope = Scope(top=setting.top)
        super().__init__(Separators(), scope=scope, started_at_s=STARTED_S, registry=setting.registry)
        self.tables: list[pl.DataFrame] = []

    def add_rows(self, table: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        made = table()
        self.tables.append(made)
        super().add_rows(lambda: made, rows, asked_at_s)

    def rows(self) -> list[tuple[object, ...]]:
        return sorted((row for table in self.tables for row in table.rows()), key=repr)


def pipeline_of(setting: Setting) -> InspectionPipeline:
    findings = Recorded(setting)
    capabilities = Capabilities()
    for command in setting.denied:
        capabilities.record(command, ServerError(f"NOPERM no permissions to run the '{command}' command"))
    plan = InspectionPlan(capabilities, setting.identity, setting.no_touch, setting.columns)
    own_reads = OwnReads()
    for key in sorted(setting.own_reads):
        own_reads.add(key, STARTED_S - 50, used_s=STARTED_S - 1_000, counter=None)
    return InspectionPipeline(
        plan, findings, first_sampled=setting.first_sampled, clock=lambda: STARTED_S, own_reads=own_reads
    )


def findings_of(pipeline: InspectionPipeline) -> Recorded:
    """What counts the tables of an inspection."""
    return cast("Recorded", pipeline.tables.findings)


def parsed(replies: bytes, names: Sequence[str]) -> list[Reply]:
    """What a lane makes of the replies to these commands."""
    reader = hiredis.Reader(replyError=ServerError, notEnoughData=reader_end)
    reader.feed(replies)
    found: list[Reply] = []
    while len(found) < len(names):
        reply = reader.gets()
        if not isinstance(reply, hiredis.PushNotification):
            assert reply is not reader_end
            found.append(as_resp2(names[len(found)], reply))
    return found


reader_end: Final = object()


def ask(server: ModelServer, packed: bytes) -> tuple[bytes, list[str]]:
    """Return the replies to a write, and the names of its commands."""
    requests = Requests()
    requests.feed(packed)
    assert not requests.incomplete
    specs = [find_spec(argv) for argv in requests.commands]
    return b"".join(map(server.answer, requests.commands)), ["" if spec is None else spec.name for spec in specs]


def ask_pipeline(pipeline: InspectionPipeline, server: ModelServer, most: int) -> bool:
    """Ask what a pipeline wants to know next; return whether there was anything."""
    queries = pipeline.next_write(most)
    if queries is None:
        pipeline.settle()
        return False
    replies, names = ask(server, b"".join(command.packed for command in queries.commands))
    with contextlib.suppress(ServerBusyError):
        queries.answered(parsed(replies, names), None)
    return True


def inspect_in_python(
    setting: Setting, server: ModelServer, key_filter: SlotFilter | None = None, elsewhere: list[bytes] | None = None
) -> InspectionPipeline:
    """Inspect all keys of a server in Python, or those that a filter delivers; others may be `elsewhere`."""
    pipeline = pipeline_of(setting)
    if elsewhere is not None:
        pipeline.on_absent = elsewhere.extend
    cursor, is_done = 0, False
    while True:
        has_asked = ask_pipeline(pipeline, server, 2 * setting.count)
        if not is_done:
            replies, names = ask(server, guard.scan(cursor, count=setting.count).packed)
            try:
                cursor, keys = scan_page(*parsed(replies, names))
            except ServerBusyError:
                continue
            is_done = not cursor
            if key_filter is not None:
                keys = key_filter.accept(keys)
            if keys:
                pipeline.add_page(keys)
        elif not (has_asked or pipeline.waiting):
            return pipeline


class CompiledRun:
    """An inspection by the engine, whose replies arrive in pieces and whose connection may be lost."""

    def __init__(
        self,
        setting: Setting,
        server: ModelServer,
        rng: Random,
        ranges: Ranges | None = None,
        *,
        key_filter: SlotFilter | None = None,
        elsewhere: list[bytes] | None = None,
    ) -> None:
        self.setting, self.server = setting, server
        self.pipeline = pipeline_of(setting)
        if elsewhere is not None:
            self.pipeline.on_absent = elsewhere.extend
        self.ranges = ranges or Ranges(Dialect.OPAQUE)
        self.engine = ScanEngine(self.ranges, scan_template())
        if key_filter is not None:
            self.engine.filter_slots(key_filter)
        self.queries = InspectingEngine(self.pipeline, self.engine)
        self.incoming = b""
        self.losses = self.received = 0
        self._rng = rng

    def run(self, *, longest_piece: int = 10**9, losses: int = 0, lose_after: int | None = None) -> InspectionPipeline:
        """Inspect to the end; the connection is lost so often at most, or after so many bytes."""
        engine = self.engine
        while True:
            self.queries.prepare()
            engine.set_pace(
                count=self.setting.count,
                portion=self.setting.count,
                most_under_way=self.setting.count * self.setting.depth,
                width=8,
                key_gap_us=0,
                idle_us=0,
            )
            while write := engine.next_write():
                self.incoming += ask(self.server, write)[0]
            if not self.incoming:
                self.take()
                if not (engine.is_awaiting or engine.has_work or self._ask_pipeline()):
                    return self.pipeline
                continue
            self._feed(longest_piece)
            if self.received == lose_after or (self.losses < losses and self._rng.random() < 0.1):
                self.losses += 1
                self.incoming = b""
                engine.drop()

    def take(self) -> None:
        self.queries.take()
        for _ in self.queries.hand_on():
            pass

    def _ask_pipeline(self) -> bool:
        return ask_pipeline(self.pipeline, self.server, 50) or self.pipeline.waiting > 0

    def _next_event(self) -> int:
        return self.engine.feed(b"", at_ms=int(STARTED_S * 1000))

    def _feed(self, longest: int) -> None:
        size = self._rng.randint(1, min(longest, len(self.incoming)))
        self.received += size
        piece, self.incoming = self.incoming[:size], self.incoming[size:]
        try:
            event = self.engine.feed(piece, at_ms=int(STARTED_S * 1000))
        except ServerBusyError:
            self.engine.resume()
            event = self._next_event()
        while event == Event.NO_PAGE:
            with pytest.raises(ServerBusyError):
                scan_page(*parsed(self.engine.odd_reply(), ["SCAN"]))
            self.engine.resume()
            event = self._next_event()
        assert event == 0
        if self._rng.random() < 0.3:
            self.take()
