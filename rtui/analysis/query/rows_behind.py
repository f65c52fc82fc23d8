"""The query behind a row of a report's tables: which keys its figures are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.analysis.query import behind
from rtui.analysis.query.behind import CHANGED_NOTE, LEFT_NOTE, SAMPLED_NOTE, Behind
from rtui.analysis.query.query import one_of, query_of
from rtui.analysis.report.comparison import Fate
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.tables.changes import fate_of
from rtui.analysis.report.tables.slots import node_loads
from rtui.analysis.report.tables.table import Cell, Path, Table, find
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.glob import escape_glob
from rtui.keyspace.text.quantities import Bounds

_KEYSIZES: Final = {
    b"strings": b"string",
    b"lists": b"list",
    b"sets": b"set",
    b"zsets": b"zset",
    b"hashes": b"hash",
}
"""What INFO keysizes calls the types."""

NO_NAMESPACE: Final = SafeText("The report has no figures of this namespace, so it does not say which keys those are.")
NO_SLOTS: Final = SafeText("The node served no slots, so there are no keys of it.")
NO_KEYS: Final = SafeText("This row is about no keys that could be searched for.")


def behind_row(report: Report, table: Table, row: int, before: Report | None = None) -> Behind | SafeText:
    """Return the query for the row at this index of a table, or a sentence on why there is none.

    `before` is the report that this one is compared with: a namespace may be in that one only.
    """
    found = _behind(report, table, row, before)
    return within_report(report, found) if isinstance(found, Behind) else found


def within_report(report: Report, found: Behind) -> Behind:
    """Return the query for the keys of a figure that a report is about, noting where the figure is an estimate."""
    is_sampled = report.head.coverage.kind is CoverageKind.ESTIMATE
    note = found.note or (SAMPLED_NOTE if is_sampled else found.note)
    return Behind(behind.scope_of(report.head.scope) & found.query, note)


def behind_key(key: bytes) -> Behind:
    """Return the query for one key: its name as a glob without wildcards."""
    return Behind(query_of(one_of("glob", [escape_glob(key)])))


def _behind(report: Report, table: Table, row: int, before: Report | None) -> Behind | SafeText:
    of_figures = _BY_TABLE.get(table.id)
    subject = table.subject(row)
    if of_figures is not None:
        return of_figures(report, row)
    if isinstance(subject, int | bytes):
        return behind.slot_keys(subject) if isinstance(subject, int) else behind_key(subject)
    if isinstance(subject, tuple):
        of = _of_namespace(subject, report, before)
        if table.id == "differences" and isinstance(of, Behind):
            return _difference(of, fate_of(table.rows[row]))
        return behind.without_ttl(of) if isinstance(of, Behind) and table.id == "no_ttl" else of
    if table.id == "cluster":
        load = node_loads(report.summary.slots.keys, len(table.rows))[row]
        return behind.slot_keys(load.first, load.last)
    return _by_cells(table.id, table.rows[row])


def _of_namespace(path: Path, report: Report, before: Report | None) -> Behind | SafeText:
    for one in (report, *([] if before is None else [before])):
        if (nodes := find(one.summary.root, path)) is not None:
            return behind.keys_of(nodes)
    return NO_NAMESPACE


def _difference(of: Behind, fate: Fate) -> Behind:
    """Return the query for a namespace that differs, with what is to be known of it."""
    if fate is Fate.CAME:
        return of
    return of.with_terms(note=LEFT_NOTE if fate is Fate.WENT else CHANGED_NOTE)


def _ttl_bin(report: Report, row: int) -> Behind:
    """Return the query for a row of the histogram of TTLs, whose last row is that of keys without one."""
    is_bin = row < len(report.summary.root.stats.ttl or ())
    return behind.ttl_bin(row, report.head.made_at_s) if is_bin else behind.without_ttl()


def _node(report: Report, row: int) -> Behind | SafeText:
    """Return the query for the slots of a node."""
    ranges = () if report.cluster is None else report.cluster.nodes[row].slots
    return behind.served_keys(ranges) if ranges else NO_SLOTS


_BY_TABLE: Final[dict[str, Callable[[Report, int], Behind | SafeText]]] = {
    "cliffs": lambda report, row: behind.cliff_keys(report.summary.expiry.cliffs[row], report.summary.root),
    "ttl_histogram": _ttl_bin,
    "idle": lambda _report, row: behind.idle_bin(row),
    "frequency": lambda _report, row: behind.frequency_bin(row),
    "nodes": _node,
    "slot_tags": lambda report, row: behind.tag_keys(report.summary.slots.tags[row]),
}
"""Tables whose rows are in the order of what they are about."""


def _by_cells(table_id: str, cells: tuple[Cell, ...]) -> Behind | SafeText:
    """Return the query for a row of a table whose rows are about types and lengths."""
    first, second = cells[0], cells[1]
    if table_id == "types" and isinstance(first, bytes):
        return behind.type_keys(first)
    if table_id == "encodings" and isinstance(first, bytes) and isinstance(second, bytes):
        return behind.encoding_keys(first, second)
    if table_id == "above_thresholds" and isinstance(first, bytes):
        limits = [limit if isinstance(limit, int) else None for limit in cells[1:3]]
        return behind.above(first, limits[0], limits[1]) or NO_KEYS
    if table_id == "keysizes" and isinstance(first, str) and isinstance(second, int):
        return _key_sizes(first, second)
    return NO_KEYS


def _key_sizes(histogram: str, low: int) -> Behind | SafeText:
    """Return the query for a bin of one of the server's histograms of lengths."""
    key_type = _KEYSIZES.get(histogram.removeprefix("distrib_").partition("_")[0].encode())
    if key_type is None:
        shown = display_text(histogram, limit=40)
        return SafeText(f"The server does not say of which type the keys of its histogram {shown} are.")
    lengths = Bounds(low, 2 * low - 1 if low > 0 else 0)
    return Behind(query_of(one_of("type", [key_type]), one_of("len", [lengths])))
