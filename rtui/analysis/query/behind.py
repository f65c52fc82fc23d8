"""The queries that stand for the numbers of a report: the keys behind a count, a bar or a row of its tables.

Each function returns `Behind`: the query, and whether the keys that it finds are exactly those that were counted, as
long as the keyspace stays as it was. They are not in these cases, and `note` says so:

* The rest of a namespace beyond the budget of patterns, and `<*>` beside such a rest, are not told apart there.
* Where a namespace had so many names that patterns were merged while keys were still being counted, a name may have
  been counted under `<*>` in part, a 500th of the namespace at most. A report keeps no trace of that; with fewer than
  2,048 names it never happens.
* The rest of a time to live is another number a minute later, so TTLs are searched for by the moment of expiry. A pass
  takes some time, and a moment is as exact as two clocks and one round trip are.
* Histograms of idle times and lengths beyond a threshold move with each use of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rtui.analysis.humanize import OTHER
from rtui.analysis.query.patterns import FORMS, PatternStep, pattern_text
from rtui.analysis.query.query import Query, Term, one_of, query_of
from rtui.analysis.query.terms import NumberKeyword
from rtui.analysis.report.comparison import Fate
from rtui.analysis.report.document import CoverageKind, Node, NodeKind, Report, Scope, SlotTag
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, TTL_EDGES_S, Cliff, Timeline
from rtui.analysis.report.tables.changes import fate_of
from rtui.analysis.report.tables.slots import node_loads
from rtui.analysis.report.tables.table import Cell, Table, find
from rtui.analysis.report.tables.table import Path as TablePath
from rtui.keyspace.text.display import SafeText, display, display_text
from rtui.keyspace.text.glob import escape_glob
from rtui.keyspace.text.identifiers import ANY, ANY_NAMES, NUMBER, Identifiers
from rtui.keyspace.text.quantities import LAST_MOMENT, Bounds

Path = Sequence[Node]
_FORM: Final = Identifiers().form

MOST_SIBLINGS: Final = 256
"""So many names at most are excluded one by one."""

REST_NOTE: Final = SafeText("the report does not say which keys are in the rest, so all keys of the namespace match")
ANY_NOTE: Final = SafeText("beside the rest of a namespace, <*> may stand for fewer names than match")
DRIFT_NOTE: Final = SafeText("idle times and counters change with each access, so other keys may match by now")
LEFT_NOTE: Final = SafeText("these keys no longer existed when the later report was made; matches are newer keys")
CHANGED_NOTE: Final = SafeText("reports keep no key names, so all keys of the namespace match, not only changed ones")
ANY_CLIFF_NOTE: Final = SafeText("the report has no figures of the namespace, so keys of others match, too")
SAMPLED_NOTE: Final = SafeText("the figure is an estimate; the matches are exact")


@dataclass(frozen=True, slots=True)
class Behind:
    """The query behind a number."""

    query: Query
    note: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change
    """Why it may find other keys than those counted, without a full stop; empty if it is exact."""

    @property
    def is_exact(self) -> bool:
        return not self.note

    def with_terms(self, *terms: Term | None, note: SafeText | None = None) -> Behind:
        return Behind(self.query & query_of(*terms), self.note or (note or SafeText("")))


def keys_of(path: Path) -> Behind:
    """Return the query for a namespace or pattern: the row of a table, a box of the icicle, a row of a comparison."""
    excluded: list[bytes] = []
    note = SafeText("")
    paths: list[tuple[PatternStep, ...]] = [()]
    for parent, node in pairwise(path):
        siblings = parent.children
        if node.kind is NodeKind.OTHER:
            others = [one for one in siblings if one.kind is not NodeKind.OTHER]
            is_told = len(others) <= MOST_SIBLINGS and not any(one.is_of_names for one in others)
            excluded += _texts(paths, others) if is_told else []
            note = note if is_told else REST_NOTE
            break
        others = [one for one in siblings if one is not node and _is_taken_from(one, node)]
        excluded += _texts(paths, others[:MOST_SIBLINGS])
        has_rest = node.is_of_names and any(one.kind is NodeKind.OTHER for one in siblings)
        note = ANY_NOTE if has_rest or len(others) > MOST_SIBLINGS else note
        paths = [(*steps, step) for steps in paths for step in _steps_of(node)]
    return Behind(query_of(_inside(paths), one_of("pattern", excluded, is_negated=True)), note)


def _texts(paths: Sequence[tuple[PatternStep, ...]], nodes: Sequence[Node]) -> list[bytes]:
    return [pattern_text((*steps, step)) for node in nodes for steps in paths for step in _steps_of(node)]


def _steps_of(node: Node) -> Sequence[PatternStep]:
    if not node.holds_names:
        return (step_of(node),)
    return step_of(node), PatternStep(ANY, node.separator, is_folded=True)


def _is_taken_from(one: Node, pattern: Node) -> bool:
    """Whether keys of `one` would match `pattern` beside it if they had no node of their own."""
    if pattern.kind is not NodeKind.PATTERN or one.separator != pattern.separator:
        return False
    if pattern.is_of_names:
        is_generic = not one.name or (one.kind is NodeKind.PATTERN and one.name in (*FORMS, *ANY_NAMES))
        return not is_generic and one.kind is not NodeKind.OTHER
    return one.kind is NodeKind.LITERAL and NUMBER in pattern.name and _FORM(one.name).numbered == pattern.name


def step_of(node: Node) -> PatternStep:
    return PatternStep(node.name, node.separator, node.kind is NodeKind.PATTERN)


def _inside(paths: Sequence[tuple[PatternStep, ...]]) -> Term | None:
    steps = paths[0]
    if not steps:
        return None
    if not any(step.is_folded for step in steps) and steps[-1].separator:
        return one_of("in", [b"".join(part for name, separator, _ in steps for part in (name, separator))])
    return one_of("pattern", [pattern_text(one) for one in paths])


def timeline_keys(one: Timeline | Cliff, root: Node) -> Behind | None:
    """Return the query for the namespace of a timeline or cliff; None where the report has no such namespace.

    They name it by its segments, and by the text that is shown, in which the separators are.
    """
    paths: list[list[Node]] = [[root]]
    for name in one.path:
        paths = [[*path, child] for path in paths for child in path[-1].children if child.name == name]
    path = next((path for path in paths if label(path) == one.label), paths[0] if paths else None)
    return None if path is None else keys_of(path)


def label(path: Path) -> SafeText:
    """Return a namespace as it is shown: `shop:session:<uuid>`, `shop:(other)`, `all keys`."""
    is_other = path[-1].kind is NodeKind.OTHER
    shown = display(b"".join(node.shown + node.separator for node in (path[:-1] if is_other else path)))
    return SafeText(f"{shown}{OTHER}") if is_other else shown or SafeText("all keys")


def without_ttl(of: Behind = Behind(Query())) -> Behind:  # noqa: B008 - a frozen value
    return of.with_terms(one_of("ttl", [NumberKeyword.NONE]))


def ttl_bin(index: int, made_at_s: float) -> Behind:
    """Return the query for one bin of the histogram of TTLs, by the moments that it stood for when it was made."""
    low_s = TTL_EDGES_S[index - 1] if index else 0
    high_s = TTL_EDGES_S[index] if index < len(TTL_EDGES_S) else None
    start = made_at_s + low_s
    return expiring(start, None if high_s is None else made_at_s + high_s)


def expiring(start_s: float, end_s: float | None, of: Behind = Behind(Query())) -> Behind:  # noqa: B008
    low = max(0, min(LAST_MOMENT, round(start_s * 1000)))
    high = None if end_s is None else max(low, min(LAST_MOMENT, round(end_s * 1000) - 1))
    return of.with_terms(one_of("expires", [Bounds(low, high)]))


def cliff_keys(cliff: Cliff, root: Node) -> Behind:
    """Return the query for the keys of a cliff; where its namespace is not in the report, for all that expire then."""
    of = timeline_keys(cliff, root)
    return expiring(cliff.start_s, cliff.end_s, Behind(Query(), ANY_CLIFF_NOTE) if of is None else of)


def above(key_type: bytes, length: int | None, memory_bytes: int | None) -> Behind | None:
    """All terms of a query must apply, so with both limits the query is for the length."""
    if length is None and memory_bytes is None:
        return None
    of = type_keys(key_type)
    if length is None:
        return of.with_terms(one_of("size", [Bounds(0 if memory_bytes is None else memory_bytes + 1)]))
    size = None if memory_bytes is None else query_of(one_of("size", [Bounds(memory_bytes + 1)]))
    note = "" if size is None else f"keys above only the other limit are counted, too: {size}"
    return of.with_terms(one_of("len", [Bounds(length + 1)]), note=SafeText(note))


def idle_bin(index: int) -> Behind:
    return Behind(query_of(one_of("idle", [_bin(index, IDLE_EDGES_S, 1000)])), DRIFT_NOTE)


def frequency_bin(index: int) -> Behind:
    return Behind(query_of(one_of("freq", [_bin(index, FREQUENCY_EDGES, 1)])), DRIFT_NOTE)


def _bin(index: int, edges: Sequence[int], scale: int) -> Bounds:
    low = edges[index - 1] * scale if index else None
    return Bounds(low, edges[index] * scale - 1 if index < len(edges) else None)


def slot_keys(first: int, last: int | None = None) -> Behind:
    return served_keys([(first, first if last is None else last)])


def served_keys(ranges: Sequence[tuple[int, int]]) -> Behind:
    return Behind(query_of(one_of("slot", [Bounds(first, last) for first, last in ranges])))


def tag_keys(tag: SlotTag | bytes) -> Behind:
    return Behind(query_of(one_of("tag", [tag if isinstance(tag, bytes) else tag.tag])))


def type_keys(key_type: bytes) -> Behind:
    return Behind(query_of(one_of("type", [key_type])))


def encoding_keys(key_type: bytes, encoding: bytes) -> Behind:
    return Behind(query_of(one_of("type", [key_type]), one_of("enc", [encoding])))


def scope_of(scope: Scope) -> Query:
    match = None if scope.match is None else one_of("glob", [scope.match])
    return query_of(match, None if scope.key_type is None else one_of("type", [scope.key_type]))


# rows of tables


_KEYSIZES: Final = {b"strings": b"string", b"lists": b"list", b"sets": b"set", b"zsets": b"zset", b"hashes": b"hash"}
NO_NAMESPACE: Final = SafeText("The report has no figures of this namespace.")
NO_SLOTS: Final = SafeText("The node serves no slots, so it has no keys.")
NO_KEYS: Final = SafeText("This row has no keys to search for.")


def behind_row(report: Report, table: Table, row: int, before: Report | None = None) -> Behind | SafeText:
    """`before` is the report that this one is compared with: a namespace may be in that one only."""
    found = _behind(report, table, row, before)
    return within_report(report, found) if isinstance(found, Behind) else found


def within_report(report: Report, found: Behind) -> Behind:
    is_sampled = report.head.coverage.kind is CoverageKind.ESTIMATE
    note = found.note or (SAMPLED_NOTE if is_sampled else found.note)
    return Behind(scope_of(report.head.scope) & found.query, note)


def behind_key(key: bytes) -> Behind:
    return Behind(query_of(one_of("glob", [escape_glob(key)])))


def _behind(report: Report, table: Table, row: int, before: Report | None) -> Behind | SafeText:
    of_figures = _BY_TABLE.get(table.id)
    subject = table.subject(row)
    if of_figures is not None:
        return of_figures(report, row)
    if isinstance(subject, int | bytes):
        return slot_keys(subject) if isinstance(subject, int) else behind_key(subject)
    if isinstance(subject, tuple):
        of = _of_namespace(subject, report, before)
        if table.id == "differences" and isinstance(of, Behind):
            return _difference(of, fate_of(table.rows[row]))
        return without_ttl(of) if isinstance(of, Behind) and table.id == "no_ttl" else of
    if table.id == "cluster":
        load = node_loads(report.summary.slots.keys, len(table.rows))[row]
        return slot_keys(load.first, load.last)
    return _by_cells(table.id, table.rows[row])


def _of_namespace(path: TablePath, report: Report, before: Report | None) -> Behind | SafeText:
    for one in (report, *([] if before is None else [before])):
        if (nodes := find(one.summary.root, path)) is not None:
            return keys_of(nodes)
    return NO_NAMESPACE


def _difference(of: Behind, fate: Fate) -> Behind:
    if fate is Fate.CAME:
        return of
    return of.with_terms(note=LEFT_NOTE if fate is Fate.WENT else CHANGED_NOTE)


def _ttl_bin(report: Report, row: int) -> Behind:
    is_bin = row < len(report.summary.root.stats.ttl or ())
    return ttl_bin(row, report.head.made_at_s) if is_bin else without_ttl()


def _node(report: Report, row: int) -> Behind | SafeText:
    ranges = () if report.cluster is None else report.cluster.nodes[row].slots
    return served_keys(ranges) if ranges else NO_SLOTS


_BY_TABLE: Final[dict[str, Callable[[Report, int], Behind | SafeText]]] = {
    "cliffs": lambda report, row: cliff_keys(report.summary.expiry.cliffs[row], report.summary.root),
    "ttl_histogram": _ttl_bin,
    "idle": lambda _report, row: idle_bin(row),
    "frequency": lambda _report, row: frequency_bin(row),
    "nodes": _node,
    "slot_tags": lambda report, row: tag_keys(report.summary.slots.tags[row]),
}


def _by_cells(table_id: str, cells: tuple[Cell, ...]) -> Behind | SafeText:
    first, second = cells[0], cells[1]
    if table_id == "types" and isinstance(first, bytes):
        return type_keys(first)
    if table_id == "encodings" and isinstance(first, bytes) and isinstance(second, bytes):
        return encoding_keys(first, second)
    if table_id == "above_thresholds" and isinstance(first, bytes):
        limits = [limit if isinstance(limit, int) else None for limit in cells[1:3]]
        return above(first, limits[0], limits[1]) or NO_KEYS
    if table_id == "keysizes" and isinstance(first, str) and isinstance(second, int):
        key_type = _KEYSIZES.get(first.removeprefix("distrib_").partition("_")[0].encode())
        if key_type is None:
            shown = display_text(first, limit=40)
            return SafeText(f"The server does not say which type its histogram {shown} is about.")
        lengths = Bounds(second, 2 * second - 1 if second > 0 else 0)
        return Behind(query_of(one_of("type", [key_type]), one_of("len", [lengths])))
    return NO_KEYS
