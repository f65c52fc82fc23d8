"""Tables of sums over keys: by namespace, type, encoding, length, time to live, idle time and access counter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import KeySizes, Node, NodeKind, Report, Step
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, TTL_EDGES_S, Figure
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells, plain, share_of_total
from rtui.analysis.report.tables.table import (
    Cell,
    Column,
    OnDemand,
    Path,
    Paths,
    Row,
    Table,
    Unit,
    find,
    label,
    path_of,
)
from rtui.keyspace.text.display import display

NAMESPACE = Column("namespace", "namespace", Unit.NAME, 0, "The beginning of the keys; <id> and the like are patterns")
_MEMORY = Column("memory", "memory", Unit.BYTES, 8, "Sum of MEMORY USAGE")
_SHARE = Column("share_of_memory", "share", Unit.SHARE, 5, "Of the memory of all keys")
_MEAN = Column("memory_mean", "mean", Unit.BYTES, 7, "Mean memory of a key")
_P99 = Column("memory_p99", "p99", Unit.BYTES, 7, "99th percentile of memory per key")
_NO_TTL = Column("no_ttl_share", "no TTL", Unit.SHARE, 6, "Share of keys without TTL")
_IDLE = Column("idle_30d_share", "idle > 30d", Unit.SHARE, 10, "Share of keys idle for 30 days or more")
_COLD = Column("cold_share", "freq 0", Unit.SHARE, 9, "Share of cold keys: LFU counter (OBJECT FREQ) 0")
_TYPES = Column("types", "types", Unit.MIX, 22)


def namespaces(report: Report, path: Sequence[Step | bytes] = ()) -> Table:
    """Return the namespaces directly below one, most memory first; of one without any, itself."""
    nodes = find(report.summary.root, path) or ()
    below = [(*nodes, child) for child in nodes[-1].children] if nodes else []
    return _table(report, below or ([nodes] if len(nodes) > 1 else []))


def outline(report: Report, least_share: float = 0.01) -> Table:
    """Return the namespaces that hold at least a share of the memory (or keys), each followed by those below it.

    Of a chain of levels with the same keys, the last stands for all.
    """
    paths: list[tuple[Node, ...]] = []
    for nodes in below_root(report):
        stats = nodes[-1].stats
        if plain(stats.share_keys if stats.share_memory is None else stats.share_memory) >= least_share:
            paths.append(nodes)
    return _table(report, paths, f"Those that hold {humanize.share(least_share)} or more." if paths else "")


def below_root(report: Report) -> Iterator[tuple[Node, ...]]:
    """Yield the path of every namespace, except those that hold the same keys as their only child."""
    for nodes in report.summary.root.walk():
        children = nodes[-1].children
        is_link = len(children) == 1 and children[0].stats.keys == nodes[-1].stats.keys
        if len(nodes) > 1 and not is_link:
            yield nodes


def namespace_cell(nodes: Sequence[Node | Step]) -> bytes | str:
    if nodes[-1].kind is NodeKind.OTHER:
        return f"{display(label(nodes[:-1]))}{OTHER}"
    return label(nodes)


def _table(report: Report, paths: Sequence[tuple[Node, ...]], note: str = "") -> Table:
    cells = Cells(report)
    top = report.summary.root.stats
    share = _SHARE if top.memory_bytes is not None else SHARE_OF_KEYS
    use = _COLD if top.idle is None and top.frequency is not None else _IDLE
    columns = (NAMESPACE, KEYS, _MEMORY, share, _MEAN, _NO_TTL, _P99, use, _TYPES)

    def row(at: int) -> Row:
        figures = cells.figures(paths[at][-1].stats)
        return (namespace_cell(paths[at]), *(figures[column.id] for column in columns[1:]))

    return of_namespaces(Table("namespaces", "Namespaces", columns, (), note=note), paths, row)


def of_namespaces(table: Table, paths: Sequence[tuple[Node, ...]], row: Callable[[int], Row]) -> Table:
    return replace(table, rows=OnDemand(len(paths), row), subjects=Paths(paths), tells_by_subject=True)


_COLUMNS = (
    Column("depth", "depth", Unit.NUMBER),
    NAMESPACE,
    Column("kind", "kind", Unit.TEXT),
    Column("keys", "keys", Unit.KEYS),
    Column("share_of_keys", "share of keys", Unit.SHARE),
    Column("memory", "memory", Unit.BYTES),
    Column("share_of_memory", "share of memory", Unit.SHARE),
    *(Column(f"memory_{name}", name, Unit.BYTES) for name in ("mean", "p50", "p90", "p99", "max")),
    Column("no_ttl_keys", "no TTL", Unit.KEYS),
    Column("no_ttl_share", "no TTL share", Unit.SHARE),
    Column("no_ttl_memory", "no TTL memory", Unit.BYTES),
    Column("soonest_expiry", "soonest", Unit.TIME),
    Column("types", "types", Unit.MIX),
)


def namespace_figures(report: Report) -> Table:
    """Return a row for each namespace at every level, each followed by those below it; the first is all keys."""
    cells = Cells(report)
    rows: list[tuple[Cell, ...]] = []
    subjects: list[Path] = []
    for nodes in report.summary.root.walk():
        figures = cells.figures(nodes[-1].stats)
        named = namespace_cell(nodes) if len(nodes) > 1 else b""
        found = (figures[column.id] for column in _COLUMNS[3:])
        rows.append((len(nodes) - 1, named, str(nodes[-1].kind), *found))
        subjects.append(path_of(nodes))
    return Table("namespaces", "Namespaces at every level", _COLUMNS, tuple(rows), tuple(subjects))


_VAGUE = 0.5
"""Shares with a wider interval get a note that the keys are too few."""

_TYPE = Column("type", "type", Unit.NAME, 12)
_TYPE_MEMORY = Column("memory", "memory", Unit.BYTES, 8)
_SHARE_OF_MEMORY = Column("share_of_memory", "of memory", Unit.SHARE, 9, "Of the memory of all keys")
_TYPE_MEAN = Column("memory_mean", "mean", Unit.BYTES, 7)
_TYPE_P50 = Column("memory_p50", "p50", Unit.BYTES, 7)
_TYPE_P99 = Column("memory_p99", "p99", Unit.BYTES, 7)
_TYPE_MAX = Column("memory_max", "max", Unit.BYTES, 7)
_TYPE_NO_TTL = Column("no_ttl_share", "no TTL", Unit.SHARE, 6)
_UNIT = Column("length_unit", "length of", Unit.TEXT, 9)
_LENGTH_P50 = Column("length_p50", "length p50", Unit.COUNT, 10)
_LENGTH_P99 = Column("length_p99", "length p99", Unit.COUNT, 10)
_LENGTH_MAX = Column("length_max", "length max", Unit.COUNT, 10)
_ENCODING = Column("encoding", "encoding", Unit.NAME, 14)
_OF_TYPE = Column("share_of_type", "share", Unit.SHARE, 5, "Of the keys of the type")
_HISTOGRAM = Column("histogram", "histogram", Unit.TEXT, 26)
_FROM = Column("from_length", "from", Unit.COUNT, 12, "The least length in the bin")
_SPAN = Column("ttl", "TTL", Unit.TEXT, 12, "Remaining TTL")
_IDLE_TIME = Column("idle", "idle", Unit.TEXT, 12, "Time since the last access")
_COUNTER = Column("counter", "counter", Unit.TEXT, 12, "LFU access counter")


def types(report: Report) -> Table:
    cells = Cells(report)
    memory = (_TYPE_MEMORY, _SHARE_OF_MEMORY, _TYPE_MEAN, _TYPE_P50, _TYPE_P99, _TYPE_MAX)
    totals = (KEYS, SHARE_OF_KEYS, *memory, _TYPE_NO_TTL)
    rows: list[tuple[Cell, ...]] = []
    for one in report.summary.types:
        figures = cells.figures(one.stats)
        may_lack = one.name in report.summary.big.length_not_asked
        _, p50, _, p99, longest = cells.quantiles(one.length, "length", may_lack=may_lack)
        rows.append((one.name, *(figures[column.id] for column in totals), one.unit, p50, p99, longest))
    columns = (_TYPE, *totals, _UNIT, _LENGTH_P50, _LENGTH_P99, _LENGTH_MAX)
    return Table("types", "Types", columns, tuple(rows))


def encodings(report: Report) -> Table:
    cells = Cells(report)
    found = report.summary.encodings
    rows = tuple((one.key_type, one.encoding, cells.amount(one.keys), one.share) for one in found)
    column = report.head.columns.get("encoding")
    note = f"{column.reason[:1].upper()}{column.reason[1:]}." if column is not None and column.reason else ""
    if any(isinstance(one.share, Estimate) and one.share.high - one.share.low > _VAGUE for one in found):
        note += " For types with few keys the sample is too small."
    return Table("encodings", "Encodings", (_TYPE, _ENCODING, KEYS, _OF_TYPE), rows, note=note)


def keysizes(report: Report) -> Table:
    return key_sizes_table(report.keysizes, "of the whole database")


def key_sizes_table(sizes: Sequence[KeySizes], scope: str) -> Table:
    rows = tuple((one.name, low, count) for one in sizes for low, count in one.bins)
    note = f"From INFO keysizes, {scope}." if rows else ""
    return Table("keysizes", "Lengths by the server's INFO keysizes", (_HISTOGRAM, _FROM, KEYS), rows, note=note)


def ttl_histogram(report: Report) -> Table:
    stats = report.summary.root.stats
    rows = _bins(report, spans(TTL_EDGES_S), stats.ttl, stats.keys)
    if stats.no_ttl_keys is not None:
        rows.append(("no TTL", Cells(report).amount(stats.no_ttl_keys), share_of_total(stats.no_ttl_keys, stats.keys)))
    return Table("ttl_histogram", "TTL", (_SPAN, KEYS, SHARE_OF_KEYS), tuple(rows))


def idle_histogram(report: Report) -> Table:
    rows = _bins(report, spans(IDLE_EDGES_S), report.summary.root.stats.idle)
    return Table("idle", "Idle time", (_IDLE_TIME, KEYS, SHARE_OF_KEYS), tuple(rows))


def frequency_histogram(report: Report) -> Table:
    starts = [0, *FREQUENCY_EDGES]
    ends = [f"{low}" if low == edge - 1 else f"{low} – {edge - 1}" for low, edge in pairwise(starts)]
    rows = _bins(report, [*ends, f"{starts[-1]}, the top"], report.summary.root.stats.frequency)
    return Table("frequency", "LFU counters", (_COUNTER, KEYS, SHARE_OF_KEYS), tuple(rows))


def spans(edges_s: Sequence[int]) -> list[str]:
    """Return the ranges between borders in seconds, in words: `under 1m`, `1m – 10m`, …, `1y and more`."""
    texts = [humanize.seconds(edge) for edge in edges_s]
    between = [f"{low} – {high}" for low, high in pairwise(texts)]
    return [f"under {texts[0]}", *between, f"{texts[-1]} and more"]


def _bins(
    report: Report, titles: list[str], figures: tuple[Figure, ...] | None, total: Figure | None = None
) -> list[tuple[Cell, ...]]:
    cells = Cells(report)
    whole = sum(map(plain, figures or ())) if total is None else total
    found = zip(titles, figures or (), strict=False)
    return [(title, cells.amount(figure), share_of_total(figure, whole)) for title, figure in found]
