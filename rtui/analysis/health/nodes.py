"""The nodes of a cluster side by side, and which of them differ from the others."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.health.rates import number
from rtui.analysis.health.sample import Sample
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit
from rtui.keyspace.text.display import SafeText

OUTLIER: Final = 1.5
"""A node stands out whose figure is so many times the median of all nodes with its role."""

LEAST_NODES: Final = 3
"""Of fewer nodes with a role none stands out."""

_NODE: Final = Column("node", "node", Unit.TEXT)
_STATE: Final = Column("state", "state", Unit.TEXT, 14, "What is wrong with the node, the worst first")
_DIFFERS: Final = Column("differs", "differs in", Unit.TEXT, 16, "Figures far over the median of the nodes of its role")
_ROLE: Final = Column("role", "role", Unit.TEXT, 7)
_COMPARED: Final = {
    "used_memory": Column("used_memory", "memory", Unit.BYTES, 8),
    "instantaneous_ops_per_sec": Column("ops_per_s", "ops/s", Unit.COUNT, 7),
    "connected_clients": Column("clients", "clients", Unit.COUNT, 7),
    "mem_fragmentation_ratio": Column("fragmentation", "RSS/used", Unit.RATIO, 8, "Resident over used memory"),
}
"""The figures that are compared, by their names in INFO."""

_LIMIT: Final = Column("maxmemory", "limit", Unit.BYTES, 8)
_UPTIME: Final = Column("uptime", "up for", Unit.DURATION, 8)


def nodes_table(latest: Mapping[SafeText, Sample], wrong: Mapping[SafeText, SafeText]) -> Table:
    """Return the nodes by the last sample of each, and what is `wrong` with some in a word; rows are about labels.

    Those that stand out come first, each part in the order of the nodes.
    """
    rows = {node: _row(node, sample, wrong.get(node, SafeText("")), latest) for node, sample in latest.items()}
    order = sorted(rows, key=lambda node: (not rows[node][1], not rows[node][2]))
    columns = (_NODE, _STATE, _DIFFERS, _ROLE, *_COMPARED.values(), _LIMIT, _UPTIME)
    subjects = tuple(order)
    return Table("nodes", "Nodes", columns, [rows[node] for node in order], subjects, tells_by_subject=True)


def _row(node: SafeText, sample: Sample, word: SafeText, latest: Mapping[SafeText, Sample]) -> Row:
    role = str(sample.info.get("role", ""))
    alike = [one for one in latest.values() if one.info.get("role") == role]
    limit = number(sample, "maxmemory")
    figures: tuple[Cell, ...] = tuple(_cell(sample, name) for name in _COMPARED)
    what = "primary" if role == "master" else "replica" if role else ""
    return (
        node,
        word,
        _outlying(sample, alike),
        what,
        *figures,
        "none" if limit == 0 else _cell(sample, "maxmemory"),
        _cell(sample, "uptime_in_seconds"),
    )


def _cell(sample: Sample, name: str) -> Cell:
    """Return a figure, or that what the server says can't be."""
    value = number(sample, name)
    return sample.why_impossible(name) if value is None else value


def _outlying(sample: Sample, alike: list[Sample]) -> SafeText:
    """Return in which figures a node stands out, the most first: `memory 4.1×`."""
    found = []
    for name, column in _COMPARED.items():
        values = [value for one in alike if (value := number(one, name)) is not None]
        value, middle = number(sample, name), median(values) if len(values) >= LEAST_NODES else 0
        if value is not None and middle > 0 and value > OUTLIER * middle:
            found.append((value / middle, column.title))
    return SafeText(", ".join(f"{title} {humanize.ratio(times)}" for times, title in sorted(found, reverse=True)))
