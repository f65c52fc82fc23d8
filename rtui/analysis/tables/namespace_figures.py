"""Every figure of every namespace, for those who go on with the numbers elsewhere."""

from __future__ import annotations

from rtui.analysis.report import Quantiles, Report, Stats
from rtui.analysis.tables.cells import Cells
from rtui.analysis.tables.namespaces import NAMESPACE, namespace_cell
from rtui.analysis.tables.place import Path, path_of
from rtui.analysis.tables.table import Cell, Column, Table, Unit

_SPREAD = ("mean", "p50", "p90", "p99")

_COLUMNS = (
    Column("depth", "depth", Unit.NUMBER),
    NAMESPACE,
    Column("kind", "kind", Unit.TEXT),
    Column("keys", "keys", Unit.KEYS),
    Column("share_of_keys", "share of keys", Unit.SHARE),
    Column("memory", "bytes", Unit.BYTES),
    Column("share_of_memory", "share of bytes", Unit.SHARE),
    *(Column(f"memory_{name}", name, Unit.BYTES) for name in (*_SPREAD, "max")),
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
        node = nodes[-1]
        named = namespace_cell(nodes) if len(nodes) > 1 else b""
        rows.append((len(nodes) - 1, named, str(node.kind), *_figures(cells, node.stats)))
        subjects.append(path_of(nodes))
    return Table("namespaces", "Namespaces at every level", _COLUMNS, tuple(rows), tuple(subjects))


def _figures(cells: Cells, stats: Stats) -> tuple[Cell, ...]:
    """Return what a namespace adds up to."""
    return (
        cells.amount(stats.keys),
        stats.share_keys,
        cells.memory(stats),
        cells.quality(stats.share_memory, "memory"),
        *_spread(cells, stats.memory),
        cells.amount(stats.no_ttl_keys, "ttl"),
        cells.quality(stats.no_ttl_share, "ttl"),
        cells.amount(stats.no_ttl_memory_bytes, "memory"),
        stats.soonest_expiry_s,
        stats.types or cells.unknown("type"),
    )


def _spread(cells: Cells, spread: Quantiles | None) -> tuple[Cell, ...]:
    """Return the mean, the quantiles and the largest."""
    if spread is None:
        return (cells.unknown("memory"),) * (len(_SPREAD) + 1)
    quantiles = (spread.mean, spread.p50, spread.p90, spread.p99)
    return (*(cells.quality(one, "memory") for one in quantiles), cells.highest(spread.max, "memory"))
