"""Tables of expiry: keys without TTL by namespace, cliffs, and keys about to expire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.report.document import KeyRecord, Node, Report, Stats, Step
from rtui.analysis.report.members import HOUR_S
from rtui.analysis.report.tables.cells import KEYS, Cells, plain
from rtui.analysis.report.tables.keys import KEY, KIND, MEMORY, looked_at
from rtui.analysis.report.tables.table import Cell, Column, Row, Subject, Table, Unit, find, path_of
from rtui.analysis.report.tables.totals import NAMESPACE, below_root, namespace_cell, of_namespaces

SOON_S: Final = HOUR_S
"""A big or hot key whose life ends within this time is about to expire."""

_NO_TTL = Column("no_ttl_keys", "no TTL", Unit.KEYS, 11, "Keys that never expire")
_NO_TTL_SHARE = Column("no_ttl_share", "share", Unit.SHARE, 5, "Of the keys whose TTL is known")
_NO_TTL_MEMORY = Column("no_ttl_memory", "no TTL bytes", Unit.BYTES, 12, "Memory of the keys that never expire")
_SOONEST = Column("soonest_expiry", "soonest (UTC)", Unit.TIME, 19, "When the first of its keys expires")
_FROM = Column("start", "from (UTC)", Unit.TIME, 19)
_TO = Column("end", "to (UTC)", Unit.TIME, 19)
_OF_NAMESPACE = Column("share_of_namespace", "share", Unit.SHARE, 5, "Of all keys of the namespace")
_EXPECTED = Column(
    "expected_keys", "expected", Unit.KEYS, 8, "Keys that would expire then if it were like the time around it"
)
_CLIFF_NAMESPACE = Column("namespace", "namespace", Unit.TEXT, 0)
_AT = Column("expires_at", "expires (UTC)", Unit.TIME, 19)
_IN = Column("expires_in", "in", Unit.DURATION, 8, "Counted from when the report was made")
_WHY = Column("because", "because", Unit.TEXT, 8)


def expiry(report: Report, path: Sequence[Step | bytes] = ()) -> Table:
    """Return the share without TTL of the namespaces directly below one; most such keys first."""
    nodes = find(report.summary.root, path)
    below = [] if nodes is None else [(*nodes, child) for child in nodes[-1].children] or [nodes]
    return _by_namespace(report, "expiry", "Expiry by namespace", below)


def no_ttl(report: Report) -> Table:
    """Return the namespaces of every level with keys that never expire; most such keys first."""
    paths = [nodes for nodes in below_root(report) if _lasting(nodes[-1].stats)]
    return _by_namespace(report, "no_ttl", "Namespaces with keys that never expire", paths)


def cliffs(report: Report) -> Table:
    """Return the stretches of time in which far more keys expire than around them."""
    cells = Cells(report)
    found = report.summary.expiry
    rows: list[tuple[Cell, ...]] = []
    subjects: list[Subject] = []
    for one in found.cliffs:
        figures = (cells.amount(one.keys), one.share, cells.amount(one.memory_bytes, "memory"))
        rows.append((one.label, one.start_s, one.end_s, *figures, one.expected_keys))
        nodes = find(report.summary.root, one.path)
        subjects.append(None if nodes is None else path_of(nodes))
    note = ""
    if found.timelines:
        chance = humanize.share(1 - exp(-found.false_alarms))
        note = f"If keys expired evenly, the chance that any cliff appeared would be {chance}."
        if found.false_alarms >= 1:
            expected = humanize.counted(round(found.false_alarms), "cliff")
            note = f"If keys expired evenly, about {expected} would appear by chance."
    columns = (_CLIFF_NAMESPACE, _FROM, _TO, KEYS, _OF_NAMESPACE, MEMORY, _EXPECTED)
    return Table("cliffs", "Expiry cliffs", columns, tuple(rows), tuple(subjects), note)


def about_to_expire(report: Report, within_s: float = SOON_S) -> Table:
    """Return the big and the hot keys whose life ends soon after the report was made, soonest first."""
    now = report.head.made_at_s
    found: dict[bytes, tuple[float, KeyRecord, str]] = {}
    summary = report.summary
    big = (*summary.big.by_memory, *summary.big.by_length)
    hot = (*summary.hottest, *(key.record for one in report.hot.lists for key in one.keys))
    for why, records in (("big", big), ("hot", hot)):
        for record in records:
            at = record.expires_at_s
            if at is not None and now <= at <= now + within_s:
                both = record.key in found and found[record.key][2] != why
                found[record.key] = at, record, "big, hot" if both else why
    soonest = sorted(found.values(), key=lambda one: one[0])
    cells = Cells(report)
    rows = tuple(
        (one.key, cells.known(one.key_type, "type"), cells.known(one.memory_bytes, "memory"), at, at - now, why)
        for at, one, why in soonest
    )
    title = f"Big or hot keys that expire within {humanize.seconds(within_s)}"
    columns = (KEY, KIND, MEMORY, _AT, _IN, _WHY)
    sampled = looked_at(report)
    subjects = tuple(one.key for _, one, _ in soonest)
    return Table("about_to_expire", title, columns, rows, subjects, f"{sampled}." if sampled else "")


def _by_namespace(report: Report, table_id: str, title: str, paths: Iterable[tuple[Node, ...]]) -> Table:
    cells = Cells(report)
    chosen = sorted(paths, key=lambda nodes: -_lasting(nodes[-1].stats))

    def row(at: int) -> Row:
        stats = chosen[at][-1].stats
        lasting, lasting_memory = cells.lasting(stats)
        share = cells.known(stats.no_ttl_share, "ttl")
        figures = (cells.amount(stats.keys), lasting, share, lasting_memory, stats.soonest_expiry_s)
        return (namespace_cell(chosen[at]), *figures)

    columns = (NAMESPACE, KEYS, _NO_TTL, _NO_TTL_SHARE, _NO_TTL_MEMORY, _SOONEST)
    return of_namespaces(Table(table_id, title, columns, ()), chosen, row)


def _lasting(stats: Stats) -> float:
    return plain(stats.no_ttl_keys or 0)
