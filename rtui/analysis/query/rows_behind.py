"""The query behind a row of a report's tables: which keys its figures are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.analysis.query import behind
from rtui.analysis.query.behind import SAMPLED_NOTE, Behind
from rtui.analysis.query.query import one_of, query_of
from rtui.analysis.query.values import Bounds
from rtui.analysis.report.document import CoverageKind, Report
from rtui.analysis.report.tables.slots import node_loads
from rtui.analysis.report.tables.table import Cell, Table, find
from rtui.keyspace.text.glob import escape_glob

_KEYSIZES: Final = {
    b"strings": b"string",
    b"lists": b"list",
    b"sets": b"set",
    b"zsets": b"zset",
    b"hashes": b"hash",
}
"""What INFO keysizes calls the types."""


def behind_row(report: Report, table: Table, row: int) -> Behind | None:
    """Return the query for the row at this index of a table; None for a row that is about one key, or about no keys."""
    found = _behind(report, table, row)
    if found is None:
        return None
    is_sampled = report.head.coverage.kind is CoverageKind.ESTIMATE
    note = found.note or (SAMPLED_NOTE if is_sampled else found.note)
    return Behind(behind.scope_of(report) & found.query, note)


def behind_key(key: bytes) -> Behind:
    """Return the query for one key: its name as a glob without wildcards."""
    return Behind(query_of(one_of("glob", [escape_glob(key)])))


def _behind(report: Report, table: Table, row: int) -> Behind | None:
    of_figures = _BY_TABLE.get(table.id)
    subject = table.subject(row)
    if of_figures is not None:
        return of_figures(report, row)
    if isinstance(subject, int):
        return behind.slot_keys(subject)
    if isinstance(subject, tuple):
        nodes = find(report.summary.root, subject)
        of = None if nodes is None else behind.keys_of(nodes)
        return behind.without_ttl(of) if of is not None and table.id == "no_ttl" else of
    if table.id == "cluster":
        load = node_loads(report.summary.slots.keys, len(table.rows))[row]
        return behind.slot_keys(load.first, load.last)
    return _by_cells(table.id, table.rows[row])


def _ttl_bin(report: Report, row: int) -> Behind:
    """Return the query for a row of the histogram of TTLs, whose last row is that of keys without one."""
    is_bin = row < len(report.summary.root.stats.ttl or ())
    return behind.ttl_bin(row, report.head.made_at_s) if is_bin else behind.without_ttl()


def _cliff(report: Report, row: int) -> Behind | None:
    return behind.cliff_keys(report.summary.expiry.cliffs[row], report.summary.root)


_BY_TABLE: Final[dict[str, Callable[[Report, int], Behind | None]]] = {
    "cliffs": _cliff,
    "ttl_histogram": _ttl_bin,
    "idle": lambda _report, row: behind.idle_bin(row),
    "frequency": lambda _report, row: behind.frequency_bin(row),
    "slot_tags": lambda report, row: behind.tag_keys(report.summary.slots.tags[row]),
}
"""Tables whose rows are in the order of what they are about."""


def _by_cells(table_id: str, cells: tuple[Cell, ...]) -> Behind | None:
    """Return the query for a row of a table whose rows are about types and lengths."""
    first, second = cells[0], cells[1]
    if table_id == "types" and isinstance(first, bytes):
        return behind.type_keys(first)
    if table_id == "encodings" and isinstance(first, bytes) and isinstance(second, bytes):
        return behind.encoding_keys(first, second)
    if table_id == "keysizes" and isinstance(first, str) and isinstance(second, int):
        key_type = _KEYSIZES.get(first.removeprefix("distrib_").partition("_")[0].encode())
        if key_type is not None and second >= 0:
            lengths = Bounds(second, 2 * second - 1 if second else 0)
            return Behind(query_of(one_of("type", [key_type]), one_of("len", [lengths])))
    return None
