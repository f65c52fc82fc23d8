"""A report made by hand, with something of everything, for what shows, writes, reads and compares reports."""

from __future__ import annotations

from array import array
from functools import cache

from msgspec.structs import replace

from rtui.analysis.columns import SAMPLED_COLUMNS
from rtui.analysis.estimates import Estimate, as_estimate, count_among
from rtui.analysis.findings.finding import Amount, Finding
from rtui.analysis.report.document import (
    BigReport,
    ClusterNode,
    ClusterReport,
    ColumnReport,
    ColumnState,
    CostReport,
    Coverage,
    CoverageKind,
    EncodingReport,
    Head,
    HotKey,
    HotList,
    HotReport,
    HotSource,
    KeyRecord,
    KeySizes,
    MovingSlot,
    Node,
    NodeKind,
    NodeLoad,
    Quantiles,
    Report,
    Scope,
    ServerReport,
    SlotsReport,
    SlotTag,
    Stats,
    Summary,
    TypeReport,
    UncoveredSlots,
)
from rtui.analysis.report.members import DAY_S, HOUR_S, Cliff, ExpiryBin, ExpiryReport, Figure, StringReport, Timeline
from rtui.keyspace.slots import key_slot

MADE_AT_S = 1_790_000_000.0
"""2026-09-21 14:13:20 UTC."""

KEYS = 1_000_000
MEMORY = 1_740_000_000

_KINDS = {"LITERAL": NodeKind.LITERAL, "PATTERN": NodeKind.PATTERN, "OTHER": NodeKind.OTHER}


def quantiles(mean: int) -> Quantiles:
    """A plausible spread around a mean."""
    return Quantiles(mean=mean, p50=mean * 3 // 4, p90=mean * 2, p99=mean * 6, max=mean * 40, error=0.01)


def stats(keys: int, memory: int, no_ttl: int, *types: tuple[bytes, int]) -> Stats:
    expiring = keys - no_ttl
    idle = (keys // 10, keys // 5, keys // 5, keys // 10, keys // 10, keys // 10, keys - 8 * keys // 10)
    strings = sum(count for kind, count in types if kind == b"string") if types else keys
    ttl = (expiring // 8, expiring // 8, expiring // 4, expiring // 4, expiring // 4, 0, 0, 0)
    return Stats(
        keys=keys,
        share_keys=keys / KEYS,
        memory_bytes=memory,
        share_memory=memory / MEMORY,
        memory_known_keys=keys,
        memory=quantiles(max(1, memory // max(1, keys))),
        no_ttl_keys=no_ttl,
        no_ttl_share=no_ttl / keys if keys else 0.0,
        no_ttl_memory_bytes=memory * no_ttl // keys if keys else 0,
        ttl=ttl,
        soonest_expiry_s=MADE_AT_S + 12 if expiring else None,
        idle=idle,
        types=types or ((b"string", keys),),
        strings=StringReport(strings, 300 * strings, strings, 0, (0,) * 9) if strings else None,
    )


def node(
    name: bytes, figures: tuple[int, int, int], *children: Node, kind: str = "LITERAL", last: bool = False
) -> Node:
    """A node with (keys, bytes, keys without TTL)."""
    below: dict[bytes, int] = {}
    for child in children:
        for type_name, count in child.stats.types:
            below[type_name] = below.get(type_name, 0) + (count if isinstance(count, int) else 0)
    types = tuple(sorted(below.items(), key=lambda pair: -pair[1]))
    separator = b"" if last or not name else b":"
    return Node(
        name, separator, _KINDS[kind], stats(*figures, *types), tuple(children), 50_000 if kind == "PATTERN" else None
    )


def typed(leaf: Node, kind: bytes) -> Node:
    """The same node, all of its keys of one type."""
    return replace(leaf, stats=replace(leaf.stats, types=((kind, leaf.stats.keys),)))


def root() -> Node:
    profile = typed(node(b"profile", (150_000, 300_000_000, 150_000), last=True), b"hash")
    orders = typed(node(b"orders", (100_000, 140_000_000, 100_000), last=True), b"set")
    user = node(
        b"user",
        (250_000, 440_000_000, 250_000),
        node(b"<id>", (250_000, 440_000_000, 250_000), profile, orders, kind="PATTERN"),
    )
    data = node(b"data", (300_000, 734_000_000, 0), last=True)
    session = node(
        b"session", (300_000, 734_000_000, 0), node(b"<uuid>", (300_000, 734_000_000, 0), data, kind="PATTERN")
    )
    detail = node(
        b"detail",
        (200_000, 200_000_000, 4_000),
        node(b"<id>", (200_000, 200_000_000, 4_000), kind="PATTERN", last=True),
    )
    cache = node(b"cache", (200_000, 200_000_000, 4_000), node(b"product", (200_000, 200_000_000, 4_000), detail))
    shop = node(b"shop", (750_000, 1_374_000_000, 254_000), session, user, cache)
    email = typed(node(b"email", (40_000, 180_000_000, 40_000), last=True), b"list")
    queue = node(b"queue", (40_000, 180_000_000, 40_000), email)
    rate = node(b"rate", (150_000, 120_000_000, 0), node(b"<*>", (150_000, 120_000_000, 0), kind="PATTERN", last=True))
    lock = node(
        b"lock", (50_000, 56_000_000, 1_200), node(b"<id>", (50_000, 56_000_000, 1_200), kind="PATTERN", last=True)
    )
    odd = node(b"\x1b[31mred\xff", (10_000, 10_000_000, 10_000))
    return node(b"", (KEYS, MEMORY, 305_200), shop, queue, rate, lock, odd)


def records() -> tuple[KeyRecord, ...]:
    """A hundred big keys of all kinds; one with a hostile name."""
    kinds = (b"hash", b"string", b"list", b"zset", b"set", b"stream")
    found = []
    for rank in range(100):
        kind = kinds[rank % len(kinds)]
        key = b"shop:%s:%04d" % (kind, rank) if rank != 3 else b"evil:\x1b]0;owned\x07\xe2\x80\xae:\xff"
        size = 50_000_000 // (rank + 1)
        found.append(
            KeyRecord(
                key=key,
                key_type=kind,
                memory_bytes=size,
                length=size // 64,
                asked_at_s=MADE_AT_S - 5,
                idle_s=rank * 97,
                ttl_ms=-1 if rank % 3 else 60_000 * (rank + 1),
                encoding=b"raw" if kind == b"string" else b"hashtable",
            )
        )
    return tuple(found)


def big() -> BigReport:
    every = records()
    by_type = {
        kind: tuple(one for one in every if one.key_type == kind)
        for kind in dict.fromkeys(one.key_type for one in every)
    }
    lists = {kind: found for kind, found in by_type.items() if kind is not None}
    return BigReport(
        by_memory=every,
        by_length=tuple(one for one in every if one.key_type != b"string"),
        by_type_memory=lists,
        by_type_length=dict(lists),
        over={b"string": 1_204, b"hash": 12, b"list": 1, b"zset": 0},
    )


def expiry() -> ExpiryReport:
    """Thirty busy minutes with a cliff, and a long tail."""

    def bins(scale: int) -> tuple[ExpiryBin, ...]:
        near = [(i * 60.0, 60.0, (400 + 37 * (i % 7)) // scale) for i in range(60)]
        near[18] = (18 * 60.0, 60.0, 57_000)
        near[19] = (19 * 60.0, 60.0, 57_000)
        far = [(float(HOUR_S + i * HOUR_S), float(HOUR_S), 9_000 // scale) for i in range(23)]
        late = [(float(DAY_S * (1 + i)), float(DAY_S), 12_000 // scale) for i in range(6)]
        return tuple(ExpiryBin(MADE_AT_S + at, width, keys, keys * 2_300) for at, width, keys in near + far + late)

    cliff = Cliff(
        (b"shop", b"session"), "shop:session", MADE_AT_S + 1080, MADE_AT_S + 1200, 114_000, 0.38, 262_200_000, 950.0
    )
    return ExpiryReport(
        timelines=(
            Timeline((), "all keys", bins(1)),
            Timeline((b"shop", b"session"), "shop:session", bins(2)),
            Timeline((b"rate",), "rate", bins(5)),
        ),
        cliffs=(cliff,),
        false_alarms=0.01,
    )


@cache
def slots() -> SlotsReport:
    """An even spread with two loaded slots."""
    keys = array("Q", (61 + (slot * 7919) % 9 for slot in range(16_384)))
    keys[key_slot(b"{user:1}:cart")] += 9_000
    keys[key_slot(b"{eu}:x")] += 4_000
    memory = array("Q", (count * 1_740 for count in keys))
    tags = (
        SlotTag(key_slot(b"{user:1}"), b"user:1", 9_000, 15_660_000),
        SlotTag(key_slot(b"{eu}"), b"eu", 4_000, 6_960_000, at_least=True),
    )
    return SlotsReport(keys=keys, memory_bytes=memory, tags=tags)


def hot() -> HotReport:
    """LFU counters, three of them at the top."""
    keys = tuple(
        HotKey(
            replace(record, frequency=max(5, 255 if rank < 3 else 250 - rank)),
            2_501.0 if rank < 3 else 2_451.0 - 10 * rank,
            rank < 3,
        )
        for rank, record in enumerate(records()[:40])
    )
    return HotReport(
        source=HotSource.FREQUENCY,
        about="accesses a minute that hold the counter where it is",
        age_s=4.0,
        better=("This server has no HOTKEYS command; Redis 8.6 has.",),
        lists=(HotList("Accesses", "accesses/min", keys),),
    )


def head() -> Head:
    complete = ColumnReport(ColumnState.COMPLETE)
    columns = dict.fromkeys(("type", "ttl", "memory", "idle", "length"), complete)
    columns["frequency"] = ColumnReport(
        ColumnState.UNSUPPORTED, "the policy noeviction keeps idle times, not frequencies"
    )
    columns["encoding"] = ColumnReport(ColumnState.SOME, "every 16th key was asked")
    return Head(
        made_at_s=MADE_AT_S,
        server=ServerReport(
            "10.0.0.5:6379",
            "valkey",
            "9.1.2",
            "primary",
            0,
            "c0ffee",
            False,
            "noeviction",
            1_900_000_000,
            4_000_000_000,
            "on",
        ),
        scope=Scope(),
        coverage=Coverage(CoverageKind.EXACT, KEYS, 1.0, KEYS, vanished=12),
        cost=CostReport(4_100_000, 90_000_000, 160_000_000, 2_900_000.0, True, 27.5),
        columns=columns,
        notes=("Keys came and went while the pass ran.",),
        rtui_version="0.3.0",
    )


def made_report() -> Report:
    """An exact report of a shop's million keys."""
    top = root()
    types = (
        TypeReport(b"string", stats(710_000, 1_120_000_000, 55_200), quantiles(1_100), "bytes"),
        TypeReport(b"hash", stats(150_000, 300_000_000, 150_000, (b"hash", 150_000)), quantiles(9), "fields"),
        TypeReport(b"set", stats(100_000, 140_000_000, 100_000, (b"set", 100_000)), quantiles(12), "members"),
        TypeReport(b"list", stats(40_000, 180_000_000, 0, (b"list", 40_000)), quantiles(40), "items"),
    )
    encodings = (
        EncodingReport(b"string", b"embstr", Estimate(500_000.0, 510_000.0, 520_000.0), Estimate(0.704, 0.718, 0.732)),
        EncodingReport(b"string", b"raw", Estimate(190_000.0, 200_000.0, 210_000.0), Estimate(0.268, 0.282, 0.296)),
        EncodingReport(b"hash", b"listpack", 150_000, 1.0),
    )
    summary = Summary(
        root=top,
        types=types,
        encodings=encodings,
        big=big(),
        hottest=records()[:40],
        expiry=expiry(),
        slots=slots(),
        folded=0,
    )
    sizes = KeySizes("distrib_strings_sizes", ((0, 12), (64, 300_000), (1024, 400_000), (1_048_576, 4)))
    return Report(head=head(), summary=summary, hot=hot(), keysizes=(sizes,))


def estimated(value: Figure | None, spread: float = 0.05) -> Estimate | None:
    if value is None or isinstance(value, Estimate):
        return value
    return Estimate(value * (1 - spread), float(value), value * (1 + spread))


def estimate_stats(of: Stats) -> Stats:
    spread = of.memory
    about = (
        None
        if spread is None
        else replace(
            spread,
            mean=estimated(spread.mean) or 0,
            p50=estimated(spread.p50) or 0,
            p90=estimated(spread.p90) or 0,
            p99=estimated(spread.p99) or 0,
        )
    )
    return replace(
        of,
        keys=estimated(of.keys) or 0,
        share_keys=estimated(of.share_keys) or 0,
        memory_bytes=estimated(of.memory_bytes),
        share_memory=estimated(of.share_memory),
        memory=about,
        no_ttl_keys=estimated(of.no_ttl_keys),
        no_ttl_share=estimated(of.no_ttl_share),
        no_ttl_memory_bytes=estimated(of.no_ttl_memory_bytes),
    )


def estimate_node(of: Node) -> Node:
    return replace(of, stats=estimate_stats(of.stats), children=tuple(map(estimate_node, of.children)))


def estimate_report() -> Report:
    """The same keyspace from a sample of 20,000 keys."""
    exact = made_report()
    coverage = Coverage(CoverageKind.ESTIMATE, 20_000, None, Estimate(985_000.0, 1_000_000.0, 1_015_000.0))
    summary = replace(
        exact.summary,
        root=estimate_node(exact.summary.root),
        types=tuple(replace(one, stats=estimate_stats(one.stats)) for one in exact.summary.types),
    )
    return replace(exact, head=replace(exact.head, coverage=coverage), summary=summary)


def sampled_stats(of: Stats) -> Stats:
    """The same stats where one key in eight was asked its idle time."""
    keys = as_estimate(of.keys).value
    idle = None if of.idle is None else tuple(
        count_among(round(as_estimate(one).value / 8), round(keys / 8), round(keys)) for one in of.idle
    )  # fmt: skip
    return replace(of, idle=idle)


def sampled_node(of: Node) -> Node:
    return replace(of, stats=sampled_stats(of.stats), children=tuple(map(sampled_node, of.children)))


def sampled_report() -> Report:
    """The same keyspace, of which one key in eight was asked its idle time and length; some lists lack keys."""
    exact = made_report()

    def lengths(of: TypeReport) -> TypeReport:
        spread = estimate_stats(replace(of.stats, memory=of.length)).memory
        return replace(of, stats=sampled_stats(of.stats), length=spread)

    summary = replace(
        exact.summary,
        root=sampled_node(exact.summary.root),
        types=tuple(map(lengths, exact.summary.types)),
        big=replace(
            exact.summary.big,
            over={**exact.summary.big.over, b"list": Estimate(1.0, 8.0, 40.0)},
            length_not_asked={b"list": None, b"hash": 62_500},
        ),
    )
    some = ColumnReport(ColumnState.SOME, "read of one key in 8, so figures for all keys are estimates")
    columns = {**exact.head.columns, "idle": some, "length": some}
    scope = replace(exact.head.scope, columns=SAMPLED_COLUMNS)
    hot = replace(
        exact.hot, source=HotSource.IDLE, about="idle time in seconds (last use); constantly used keys all show 0"
    )
    return replace(exact, head=replace(exact.head, scope=scope, columns=columns), summary=summary, hot=hot)


def clustered_report() -> Report:
    """The same of three nodes, one of which was lost: it had the hash tag that loads a slot."""
    exact = made_report()
    thirds = ((0, 5_460), (5_461, 10_922), (10_923, 16_383))
    keys = (180_000, 620_000, 200_000)
    nodes = tuple(
        ClusterNode(
            id=f"{at}" * 40,
            label=f"10.0.0.{at + 1}:6379",
            role="primary",
            product="valkey",
            version="9.1.0",
            slots=(slots,),
            keys=held,
            memory_bytes=held * 1_740,
            memory_known_keys=held,
            no_ttl_share=0.25 * at,
            fraction=0.8 if at == 1 else 1.0,
            cost=exact.head.cost,
            failure="the connection was lost" if at == 1 else "",
        )
        for at, (slots, held) in enumerate(zip(thirds, keys, strict=True))
    )
    lost = UncoveredSlots((thirds[1],), nodes[1].label, nodes[1].failure)
    reason = f"slots 5461–10922 of {nodes[1].label} were not covered (the connection was lost)"
    coverage = replace(exact.head.coverage, kind=CoverageKind.PARTIAL, fraction=2 / 3, total_keys=None, reason=reason)
    server = replace(exact.head.server, role="cluster", cluster_enabled=True)
    slots = replace(exact.summary.slots, owned=((0, 16_383),))
    return replace(
        exact,
        head=replace(exact.head, server=server, coverage=coverage),
        summary=replace(exact.summary, slots=slots),
        cluster=ClusterReport(nodes, (lost,)),
    )


def unsettled_report() -> Report:
    """The same with slots that are being moved, and some that nobody serves."""
    report = clustered_report()
    assert report.cluster is not None
    first, second, third = report.cluster.nodes
    moving = tuple(MovingSlot(slot, first.label, third.label) for slot in (100, 101, 4_000))
    nodes = (first, second, replace(third, slots=((10_923, 16_200),)))
    lost = UncoveredSlots(((16_201, 16_383),), "", "no node serves them")
    cluster = ClusterReport(nodes, (*report.cluster.uncovered, lost), moving)
    owned = ((0, 16_200),)
    keys = array("Q", [*report.summary.slots.keys[:16_201], *[0] * 183])
    slots = replace(report.summary.slots, owned=owned, keys=keys)
    times = ((first.label, 95_000_000, True), (second.label, 4_200_000, False))
    hot = replace(report.hot, nodes=tuple(NodeLoad(*one) for one in times))
    return replace(report, cluster=cluster, summary=replace(report.summary, slots=slots), hot=hot)


def partial_report() -> Report:
    """The same, broken off half way."""
    exact = made_report()
    coverage = Coverage(CoverageKind.PARTIAL, KEYS // 2, 0.5, KEYS, reason="it was interrupted")
    return replace(exact, head=replace(exact.head, coverage=coverage))


def denied_report() -> Report:
    """A report of a user who may ask little: no memory, no idle time, no lengths."""
    exact = made_report()

    def bare(of: Node) -> Node:
        less = replace(
            of.stats,
            memory_bytes=None,
            share_memory=None,
            memory_known_keys=0,
            memory=None,
            no_ttl_memory_bytes=None,
            idle=None,
        )
        return replace(of, stats=less, children=tuple(map(bare, of.children)))

    denied = ColumnReport(ColumnState.DENIED, "NOPERM this user has no permissions to run the 'memory|usage' command")
    columns = {
        **exact.head.columns,
        "memory": denied,
        "idle": denied,
        "length": ColumnReport(ColumnState.NOT_ASKED, "asking would touch the keys"),
    }
    summary = replace(
        exact.summary,
        root=bare(exact.summary.root),
        big=BigReport(),
        hottest=(),
        slots=replace(slots(), memory_bytes=None, tags=tuple(replace(one, memory_bytes=None) for one in slots().tags)),
    )
    nothing = HotReport(source=HotSource.NONE, better=("OBJECT FREQ and OBJECT IDLETIME are denied.",))
    return replace(exact, head=replace(exact.head, columns=columns), summary=summary, hot=nothing)


def empty_report() -> Report:
    exact = made_report()
    nothing = Node(b"", b"", NodeKind.LITERAL, Stats(keys=0, share_keys=0.0))
    coverage = Coverage(CoverageKind.EXACT, 0, 1.0, 0)
    return replace(
        exact, head=replace(exact.head, coverage=coverage), summary=Summary(root=nothing), hot=HotReport(), keysizes=()
    )


def earlier_report() -> Report:
    """The made report a day before: `shop:` had not come yet, `gone:` was still there, all others were smaller."""

    def smaller(of: Node) -> Node:
        found = of.stats
        assert isinstance(found.keys, int)
        assert isinstance(found.memory_bytes, int)
        less = replace(found, keys=found.keys * 9 // 10, memory_bytes=found.memory_bytes * 9 // 10)
        return replace(of, stats=less, children=tuple(map(smaller, of.children)))

    report = made_report()
    root = smaller(report.summary.root)
    gone, *others = root.children
    root = replace(root, children=(replace(gone, name=b"gone"), *others))
    head = replace(report.head, made_at_s=MADE_AT_S - DAY_S)
    return replace(report, head=head, summary=replace(report.summary, root=root))


def keys_of(found: Finding) -> Amount:
    assert found.keys is not None
    return found.keys
