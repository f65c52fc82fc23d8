"""A session whose every value is fixed: what screens show of it never changes from one run to the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import cache

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, KeyFacts, Reason, RowFacts, Ttl, Unknown, gone_key, gone_row
from rtui.analysis.query.query import MatchOrder, Query
from rtui.analysis.query.terms import Fact
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.slices import finish
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Segment
from rtui.registry.registry import Registry
from rtui.server.analysis.session import Analysed, AnalysisSource, FixedAnalysis
from rtui.server.browsing.session import BrowsingSession
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.facts.keys import KeyQuestions
from rtui.server.facts.preview.page import (
    FIRST,
    Meaning,
    Page,
    Preview,
    PreviewColumn,
    PreviewKind,
    SideTable,
    StringWindow,
)
from rtui.server.facts.references import KeyReferences, Link
from rtui.server.health.session import Health
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.search.run import KeyWeights
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Online
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.target import Target
from tests.made_report import empty_report
from tests.tui.fixed_health import FixedHealth
from tests.tui.fixed_search import FixedSearch

ASKED_AT_S = 1_798_761_600.0
"""When every fact was asked: 2027-01-01 00:00:00 UTC."""

SERVER = ServerIdentity(
    product="valkey",
    product_name=SafeText("valkey"),
    version=(9, 1, 2),
    run_id="0123456789abcdef",
    role="primary",
    maxmemory_policy=SafeText("noeviction"),
    used_memory_bytes=2_040_109_466,
    maxmemory_bytes=4 << 30,
    ops_per_s=1_234,
    databases={0: 5_260, 1: 120},
)

COMPLETE = BrowsingStatus(
    label=SafeText("10.0.0.5:6379"),
    db=0,
    server=SERVER,
    no_touch=NoTouch.ON,
    link=Online(),
    pace=Pace.GENTLE,
    progress=Progress(state=ScanState.DONE, fraction=1.0),
    cost=Cost(commands=312, keys=5_260, bytes_in=180_224, bytes_out=11_264, server_us=8_400, elapsed_s=0.2),
    complete=True,
)
"""After a scan."""


@cache
def keys() -> tuple[bytes, ...]:
    """5,260 names in a few namespaces, with some that are hard to show."""
    found = [b"shop:session:%04d" % n for n in range(1_800)]
    found += [b"shop:user:%d:%s" % (n, what) for n in range(1_200) for what in (b"profile", b"orders")]
    found += [b"shop:cache:product:%d" % n for n in range(700)]
    found += [b"lock:order:%d" % n for n in range(300)]
    found += [b"{user:%d}:cart" % n for n in range(40)]
    found += [
        b"jobs", b"jobs:failed", b"events", b"ranking", b"bits", b"unique:visitors", b"::", b"", b"plain", b"secret",
    ]  # fmt: skip
    found += [
        b"hostile:\x1b[31mred", b"hostile:[/]a[b='c", b"hostile:\xff\xfe", b"hostile:a\nb", b"hostile:\xe2\x80\xae123",
    ]  # fmt: skip
    found += ["naïve:clé".encode(), "日本:キー".encode(), b"long:" + b"x" * 600, b"gone", b"huge"]
    return tuple(found)


class FixedSession(BrowsingSession, KeyQuestions):
    """Has all keys from the start and answers from tables."""

    target: Target = Target()
    store: NamespaceStore = NamespaceStore()
    status: BrowsingStatus = COMPLETE
    revision: int = 1
    keeps_all_keys: bool = True
    analysis: AnalysisSource = FixedAnalysis(empty_report())  # type: ignore[assignment]
    control: RunControl = RunControl()

    def __init__(self, status: BrowsingStatus = COMPLETE, names: Sequence[bytes] | None = None) -> None:
        self.target = Target(host="10.0.0.5")
        self.log = CommandLog()
        self.now_s = ASKED_AT_S
        self.store = NamespaceStore()
        self.names = keys() if names is None else tuple(names)
        self.searches: list[FixedSearch] = []
        self.on_search: Callable[[FixedSearch], object] = lambda search: None
        self.store.add(list(self.names))
        self.store.complete = status.complete
        count = self.store.keys
        self.status = replace(status, total=count, progress=replace(status.progress, keys=count))
        self.keys = self
        self.failure: RtuiError | None = None
        self.asked: list[str] = []
        self.health: Health = FixedHealth(at_s=ASKED_AT_S)  # type: ignore[assignment]
        self.analysis = FixedAnalysis(empty_report())
        self.control = RunControl(status.pace)
        self.control.on_change.append(self._control_changed)
        self.input_yields = 0
        self.holds_columns: asyncio.Event | None = None
        """Until it is set nothing is answered of keys that are sorted."""

    def expect(self, name: bytes, low: float, value: float, high: float) -> None:
        """Have a sample say how many keys a namespace of the first level has."""
        self.store.expect((Segment(name, b":"),), Estimate(low, value, high))

    def clock(self) -> float:
        """The time, which stands still unless a test moves it."""
        return self.now_s

    @property
    def analysed(self) -> Analysed | None:
        """The figures of the report."""
        return self.analysis.analysed

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """What an analysis that is under way loses."""
        return self.analysis.status.lost_by_leaving

    def on_change(self, call: Callable[[], object]) -> None:
        """Nothing is ever lost."""

    async def start(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self.asked.append("close")

    def yield_to_input(self) -> None:
        self.input_yields += 1

    async def filter(self, match: bytes | None, key_type: bytes | None = None) -> None:
        self.asked.append(f"filter {match!r}")
        self.status = replace(self.status, match=match, key_type=key_type)
        self.revision += 1

    async def rescan(self) -> None:
        self.asked.append("rescan")

    def search(
        self, query: Query, columns: Sequence[Fact] = (), order: MatchOrder | None = None, *, asks_server: bool = False
    ) -> FixedSearch:
        """Of the names there are; a test may change it as it is made."""
        found = FixedSearch(query, columns, order, self.names, self.now_s)
        self.searches.append(found)
        self.on_search(found)
        return found

    async def lookup(self, name: bytes) -> bool | None:
        return name in keys()

    async def database_count(self) -> int | None:
        return 16

    async def open_namespace(self, node: Namespace) -> None:
        finish(self.store.open(node))

    async def row_facts(self, wanted: Sequence[bytes], *, with_more: bool = False) -> list[RowFacts]:
        return [key_facts(key).row if with_more else row_facts(key) for key in wanted]

    async def key_facts(self, key: bytes, row: RowFacts | None = None) -> KeyFacts:
        if self.failure is not None:
            raise self.failure
        return key_facts(key)

    def knows_column(self, sort: Sort) -> bool:
        return False

    def key_column(self, node: Namespace, sort: Sort, *, asks_server: bool = False) -> FixedWeights:
        self.asked.append(f"{sort.value} of {node.path()!r}")
        return FixedWeights(node, sort, self.holds_columns)

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        return preview(facts, FIRST if page is None else page)

    async def find_place(self, facts: KeyFacts, text: str) -> Page | Unknown:
        self.asked.append(f"place {text}")
        if not text.isdigit():
            return Unknown(Reason.UNSUPPORTED, f"{text!r} is not a whole number")
        return Page.at(int(text), 100)

    async def read_field(self, facts: KeyFacts, field: bytes, most_bytes: int) -> bytes | Unknown:
        self.asked.append(f"field {field!r}")
        return b"the whole value of " + field

    async def references(self, registry: Registry, facts: KeyFacts, preview: Preview) -> KeyReferences:
        """By the members of sets alone, and the names there are."""
        self.asked.append(f"references of {facts.key!r}")
        entry = registry.entry_of(facts.key)
        fields = None if entry is None else entry.pattern.fields(facts.key)
        members = [row[0] for row in preview.rows if isinstance(row[0], bytes)]
        rows = [
            (name, member)
            for reference in (() if entry is None else entry.references)
            for member in members
            for name in reference.names(fields or {}, [member])
        ]
        outgoing = tuple(Link(name, "member", member, name in self.names) for name, member in rows)
        incoming = tuple(
            Link(one.key, "member", one.value, one.key in self.names) for one in registry.incoming(facts.key)
        )
        return KeyReferences(outgoing, (), incoming, (), entry is not None and bool(entry.references))

    async def string_windows(self, facts: KeyFacts) -> AsyncIterator[bytes | Unknown]:
        self.asked.append("windows")
        yield b"first window, "
        yield b"second window"

    def _control_changed(self) -> None:
        progress, control = self.status.progress, self.control
        if control.is_paused is not (progress.state is ScanState.PAUSED):
            progress = replace(progress, state=ScanState.PAUSED if control.is_paused else ScanState.RUNNING)
            self.asked.append(progress.state.value)
            self.revision += 1
        self.status = replace(self.status, pace=control.pace, progress=progress)


class FixedWeights(KeyWeights):
    """Weighs the keys of a namespace by the tables below."""

    def __init__(self, node: Namespace, sort: Sort, holds: asyncio.Event | None) -> None:
        super().__init__(node, sort)
        self._sort = sort
        self._holds = holds

    async def run(self) -> None:
        if self._holds is not None:
            await self._holds.wait()
        for ordinal in range(self.of):
            name = self.node.key_at(ordinal)
            key = self.node.path() + name
            ttl = ttl_of(key)
            self.weights[name] = {
                Sort.MEMORY: -memory_of(key),
                Sort.MEAN: -memory_of(key),
                Sort.TTL: ttl if isinstance(ttl, int) else 1e300,
                Sort.IDLE: -len(key),
                Sort.TYPE: float(int.from_bytes(kind_of(key)[:6], "big")),
            }[self._sort]


def kind_of(key: bytes) -> bytes:
    """The type of a key, from its name."""
    for part, kind in (
        (b"profile", b"hash"), (b"session", b"hash"), (b"orders", b"set"), (b"ranking", b"zset"), (b"jobs", b"list"),
        (b"events", b"stream"), (b"secret", b"graphdata"),
    ):  # fmt: skip
        if part in key:
            return kind
    return b"string"


def row_facts(key: bytes) -> RowFacts:
    """What a listed key shows."""
    if key == b"gone":
        return gone_row(key, ASKED_AT_S)
    if key == b"secret":
        return RowFacts(key, kind_of(key), Unknown(Reason.DENIED), Unknown(Reason.DENIED), ASKED_AT_S)
    return RowFacts(key, kind_of(key), ttl_of(key), memory_of(key), ASKED_AT_S)


def memory_of(key: bytes) -> int:
    """The same in a row and beside it, whichever answer comes last."""
    return 320 << 20 if key == b"huge" else 96 + 8 * len(key)


def ttl_of(key: bytes) -> Ttl:
    """Sessions and locks expire."""
    if b"session" in key or key.startswith(b"lock"):
        return 1_799_000 - 61_000 * (len(key) + sum(key) % 13)
    return NO_TTL


def key_facts(key: bytes) -> KeyFacts:
    """What the key under the cursor shows."""
    if key == b"gone":
        return gone_key(key, ASKED_AT_S)
    denied = Unknown(Reason.DENIED, "the user may not run MEMORY USAGE: the server said NOPERM")
    kind = kind_of(key)
    return KeyFacts(
        key=key,
        asked_at_s=ASKED_AT_S,
        type=kind,
        encoding={b"hash": b"listpack", b"list": b"quicklist", b"set": b"intset", b"zset": b"skiplist"}.get(
            kind, b"raw"
        ),
        length=268_435_456 if key == b"huge" else 3,
        memory_bytes=denied if key == b"secret" else memory_of(key),
        ttl_ms=ttl_of(key),
        idle_s=10_920,
        frequency=Unknown(Reason.UNSUPPORTED, "the server keeps idle times: its policy is not an LFU one"),
    )


def preview(facts: KeyFacts, page: Page) -> Preview:
    """A page of the value, from the type."""
    base = Preview(facts.key, facts.type, PreviewKind.NOTHING, page, facts.length, first=page.seen)
    if isinstance(facts.type, Unknown):
        return replace(base, refusal=facts.type)
    if facts.key == b"huge":
        why = Unknown(Reason.TOO_LARGE, "on average one element takes 12.0 MiB: none was read")
        return replace(base, refusal=why)
    if facts.key == b"bits":
        return replace(base, kind=PreviewKind.BINARY, total=64, window=StringWindow(0, bytes(range(64))))
    return _TYPES.get(facts.type, _description)(base)


def _hash(base: Preview) -> Preview:
    columns = (PreviewColumn("field", Meaning.NAME), PreviewColumn("value", Meaning.VALUE))
    rows = ((b"name", b"n42"), (b"email", b"u42@example.com"), (b"note", b"\x1b]0;owned\x07 [b]bold[/b] " * 6))
    return replace(base, kind=PreviewKind.HASH, columns=columns, rows=rows)


def _list(base: Preview) -> Preview:
    columns = (PreviewColumn("index", Meaning.INDEX), PreviewColumn("value", Meaning.VALUE))
    start = base.page.position if isinstance(base.page.position, int) else 0
    rows = tuple((start + at, b'{"job": %d}' % (start + at)) for at in range(100))
    following = base.page.following(start + 100, shown=100) if start < 200 else None
    return replace(base, kind=PreviewKind.LIST, columns=columns, rows=rows, total=300, next_page=following)


def _set(base: Preview) -> Preview:
    return replace(
        base,
        kind=PreviewKind.SET,
        columns=(PreviewColumn("member", Meaning.NAME),),
        rows=((b"17",), (b"23",), (b"42",)),
    )


def _zset(base: Preview) -> Preview:
    columns = (PreviewColumn("member", Meaning.NAME), PreviewColumn("score", Meaning.SCORE))
    return replace(base, kind=PreviewKind.ZSET, columns=columns, rows=((b"ada", 1.5), (b"bob", 120.0), (b"eve", 3e30)))


def _stream(base: Preview) -> Preview:
    columns = (
        PreviewColumn("entry", Meaning.STREAM_ID),
        PreviewColumn("field", Meaning.NAME),
        PreviewColumn("value", Meaning.VALUE),
    )
    rows = ((b"1700000000000-0", b"kind", b"login"), (None, b"user", b"42"), (b"1699999999999-3", b"kind", b"logout"))
    group = SideTable(
        "groups",
        (
            PreviewColumn("group", Meaning.NAME),
            PreviewColumn("pending", Meaning.COUNT),
            PreviewColumn("lag", Meaning.COUNT),
        ),
        ((b"mailer", 12, 3), (b"audit", 0, None)),
    )
    return replace(
        base, kind=PreviewKind.STREAM, columns=columns, rows=rows, summary=(("length", 3),), sections=(group,)
    )


def _string(base: Preview) -> Preview:
    data = b'{  "id": 106,  "tags": [    "new",    "sale"  ]}'
    return replace(base, kind=PreviewKind.TEXT, window=StringWindow(0, data), total=46)


def _description(base: Preview) -> Preview:
    why = Unknown(Reason.UNSUPPORTED, "rtui does not read values of this type")
    return replace(base, kind=PreviewKind.DESCRIPTION, summary=(("nodes", 12), ("label", b"a\x1bb")), refusal=why)


_TYPES = {b"hash": _hash, b"list": _list, b"set": _set, b"zset": _zset, b"stream": _stream, b"string": _string}
