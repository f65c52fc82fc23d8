"""Tables of namespaces: those directly below one, an outline, and every figure of every namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rtui.analysis import humanize
from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells, plain
from rtui.analysis.report.tables.table import Cell, Column, Path, Step, Table, Unit, find, label, path_of
from rtui.keyspace.text.display import display

NAMESPACE = Column("namespace", "namespace", Unit.NAME, 0, "The beginning of the keys; {id} and the like are patterns")
_MEMORY = Column("memory", "bytes", Unit.BYTES, 8, "Sum of MEMORY USAGE")
_SHARE = Column("share_of_memory", "share", Unit.SHARE, 5, "Of the memory of all keys")
_MEAN = Column("memory_mean", "mean", Unit.BYTES, 7, "Mean memory of a key")
_P99 = Column("memory_p99", "p99", Unit.BYTES, 7, "Memory that 99 % of the keys do not exceed")
_NO_TTL = Column("no_ttl_share", "no TTL", Unit.SHARE, 6, "Share of the keys that never expire")
_IDLE = Column("idle_30d_share", "idle > 30d", Unit.SHARE, 10, "Share of the keys that nobody used for 30 days")
_COLD = Column("cold_share", "counter 0", Unit.SHARE, 9, "Share of the keys whose access counter has gone down to 0")
_TYPES = Column("types", "types", Unit.MIX, 22)


def namespaces(report: Report, path: Sequence[Step | bytes] = ()) -> Table:
    """Return the namespaces directly below one, most memory first; of one without any, itself.

    A path that is not there gives a table without rows.
    """
    nodes = find(report.summary.root, path) or ()
    below = [(*nodes, child) for child in nodes[-1].children] if nodes else []
    return _table(report, below or ([nodes] if len(nodes) > 1 else []))


def outline(report: Report, least_share: float = 0.01) -> Table:
    """Return the namespaces that hold at least a share of the memory (or keys), each followed by those below it.

    Of a chain of levels with the same keys, the last stands for all.
    """
    paths = []
    for nodes in below_root(report):
        stats = nodes[-1].stats
        if plain(stats.share_keys if stats.share_memory is None else stats.share_memory) >= least_share:
            paths.append(nodes)
    return _table(report, paths, f"Those that hold {humanize.share(least_share)} or more." if paths else "")


def below_root(report: Report) -> Iterator[tuple[Node, ...]]:
    """Yield the path of every namespace but of those that hold the same keys as the one level below them."""
    for nodes in report.summary.root.walk():
        children = nodes[-1].children
        is_link = len(children) == 1 and children[0].stats.keys == nodes[-1].stats.keys
        if len(nodes) > 1 and not is_link:
            yield nodes


def namespace_cell(nodes: Sequence[Node | Step]) -> bytes | str:
    """Return the name of a namespace: how its keys begin, or that it stands for all the others."""
    if nodes[-1].kind is NodeKind.OTHER:
        return f"{display(label(nodes[:-1]))}{OTHER}"
    return label(nodes)


def _table(report: Report, paths: Iterable[tuple[Node, ...]], note: str = "") -> Table:
    cells = Cells(report)
    top = report.summary.root.stats
    share = _SHARE if top.memory_bytes is not None else SHARE_OF_KEYS
    use = _COLD if top.idle is None and top.frequency is not None else _IDLE
    columns = (NAMESPACE, KEYS, _MEMORY, share, _MEAN, _NO_TTL, _P99, use, _TYPES)
    rows: list[tuple[Cell, ...]] = []
    subjects: list[Path] = []
    for nodes in paths:
        figures = cells.figures(nodes[-1].stats)
        rows.append((namespace_cell(nodes), *(figures[column.id] for column in columns[1:])))
        subjects.append(path_of(nodes))
    return Table("namespaces", "Namespaces", columns, tuple(rows), tuple(subjects), note)


_COLUMNS = (
    Column("depth", "depth", Unit.NUMBER),
    NAMESPACE,
    Column("kind", "kind", Unit.TEXT),
    Column("keys", "keys", Unit.KEYS),
    Column("share_of_keys", "share of keys", Unit.SHARE),
    Column("memory", "bytes", Unit.BYTES),
    Column("share_of_memory", "share of bytes", Unit.SHARE),
    *(Column(f"memory_{name}", name, Unit.BYTES) for name in ("mean", "p50", "p90", "p99", "max")),
    Column("no_ttl_keys", "no TTL", Unit.KEYS),
    Column("no_ttl_share", "no TTL share", Unit.SHARE),
    Column("no_ttl_memory", "no TTL bytes", Unit.BYTES),
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
