"""The nodes of a cluster: what each holds, beside what would be its part by the number of its slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import binomial_tail
from rtui.analysis.report.document import ClusterNode, ClusterReport, Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import KEYS, SHARE_OF_KEYS, Cells, plain
from rtui.analysis.report.tables.slots import UNLIKELY
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Table, Unit
from rtui.keyspace.slots import SLOTS

MANY: Final = 1.25
"""From so many times its part on, if that is no chance, a node holds many keys."""

FEW: Final = 0.5
"""Up to so many times its part, likewise, it holds few."""

_NODE: Final = Column("node", "node", Unit.TEXT, 21, "Host and port")
_SERVER: Final = Column("server", "server", Unit.TEXT, 15, "Its product and version, and whether it is a replica")
_SLOTS: Final = Column("slots", "slots", Unit.TEXT, 14, "The slots that it serves")
_EVEN_KEYS: Final = Column("times_even_keys", "× even", Unit.RATIO, 7, "Its keys in parts that are even by slots")
_MEMORY: Final = Column("memory", "bytes", Unit.BYTES, 8)
_SHARE_OF_MEMORY: Final = Column("share_of_memory", "of bytes", Unit.SHARE, 8, "Of all bytes")
_EVEN_MEMORY: Final = Column("times_even_memory", "× even", Unit.RATIO, 7, "Its bytes in parts that are even by slots")
_NO_TTL: Final = Column("no_ttl_share", "no TTL", Unit.SHARE, 6, "Share of its keys that never expire")
_SCANNED: Final = Column("scanned", "scanned", Unit.SHARE, 7, "How much of it was scanned")
_STANDING: Final = Column("standing", "for slots", Unit.TEXT, 9, "Whether it holds many or few keys for its slots")


_MAY_LACK: Final = 3
"""So many of the last columns are left out where nothing is known: a share without TTL, progress, what stands out."""


def nodes(report: Report) -> Table:
    """Return a row for each node that was asked; none for a server alone."""
    columns = (
        *(_NODE, _SERVER, _SLOTS, KEYS, SHARE_OF_KEYS, _EVEN_KEYS),
        *(_MEMORY, _SHARE_OF_MEMORY, _EVEN_MEMORY, _NO_TTL, _SCANNED, _STANDING),
    )
    cluster = report.cluster
    if cluster is None:
        return Table("nodes", "Nodes", columns, ())
    cells = Cells(report)
    keys, memory = _total(one.keys for one in cluster.nodes), _total(one.memory_bytes for one in cluster.nodes)
    rows = tuple(_row(cells, cluster, node, keys, memory) for node in cluster.nodes)
    shown = [
        at
        for at in range(len(columns))
        if at < len(columns) - _MAY_LACK or any(row[at] not in (None, "") for row in rows)
    ]
    return Table(
        "nodes",
        "Nodes",
        tuple(columns[at] for at in shown),
        tuple(tuple(row[at] for at in shown) for row in rows),
        tuple(node.label for node in cluster.nodes),
        _note(cluster),
    )


def _row(
    cells: Cells, cluster: ClusterReport, node: ClusterNode, keys: float | None, memory: float | None
) -> tuple[Cell, ...]:
    version = f"{node.product} {node.version}".strip()
    is_whole = not node.failure and (node.fraction is None or node.fraction >= 1)
    is_known = is_whole and node.memory_known_keys >= plain(node.keys or 0)
    return (
        node.label,
        " · ".join(one for one in (version, node.role if node.role == "replica" else "") if one),
        humanize.slots(node.slots).removeprefix("slots ") if node.slots else "none",
        _amount(node.keys, is_exact=is_whole or cells.is_estimate),
        _share(node.keys, keys),
        _times_even(cluster, node, node.keys, keys),
        cells.unknown("memory") if node.memory_bytes is None else _amount(node.memory_bytes, is_exact=is_known),
        _share(node.memory_bytes, memory),
        _times_even(cluster, node, node.memory_bytes, memory),
        cells.known(node.no_ttl_share, "ttl"),
        node.fraction,
        standing(cluster, node),
    )


def standing(cluster: ClusterReport, node: ClusterNode) -> str:
    """Return whether a node holds many or few keys for its number of slots, by more than chance; empty if it does not.

    By chance each key falls into any of the served slots; the number in those of a node is binomial.
    """
    total, served = _total(one.keys for one in cluster.nodes), _served(cluster)
    if not total or node.keys is None or not 0 < node.slot_count < served:
        return ""
    keys, part = round(plain(node.keys)), node.slot_count / served
    times = keys / (total * part)
    if FEW < times < MANY:
        return ""
    is_more = times > 1
    found, chance = (keys, part) if is_more else (round(total) - keys, 1 - part)
    if len(cluster.nodes) * binomial_tail(found, round(total), chance) >= UNLIKELY:
        return ""
    return "many keys" if is_more else "few keys"


def _served(cluster: ClusterReport) -> int:
    return sum(node.slot_count for node in cluster.nodes)


def _note(cluster: ClusterReport) -> str:
    """Say what was not covered."""
    texts = []
    for one in cluster.uncovered:
        where = f" of {one.node}" if one.node else ""
        texts.append(f"Not covered: {humanize.slots(one.slots)}{where}, {one.reason}.")
    if _served(cluster) < SLOTS and not texts:
        texts.append(f"These nodes serve {_served(cluster):,} of {SLOTS:,} slots.")
    return " ".join(texts)


def _total(figures: Iterator[Figure | None]) -> float | None:
    """Return the sum; None where one is not known, or there is nothing."""
    found = [None if one is None else plain(one) for one in figures]
    return None if None in found else sum(one for one in found if one is not None) or None


def _amount(figure: Figure | None, *, is_exact: bool) -> Cell:
    return figure if is_exact or figure is None else AtLeast(plain(figure))


def _share(figure: Figure | None, total: float | None) -> float | None:
    return None if figure is None or total is None else plain(figure) / total


def _times_even(cluster: ClusterReport, node: ClusterNode, figure: Figure | None, total: float | None) -> float | None:
    """Return how many times as much a node holds as its share of the slots would be of all."""
    share = _share(figure, total)
    return share / (node.slot_count / _served(cluster)) if share is not None and node.slot_count else None
