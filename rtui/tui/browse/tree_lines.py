"""The lines of the tree: a row for each namespace and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import NOT_ASKED, NoTtl, Reason, RowFacts, Unknown
from rtui.analysis.humanize import NOTHING_KNOWN, Known, Mark, NamespaceFigures
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText, mixed_letters
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.browse.columns import ANALYSED_COLUMNS, GAP_CELLS, NOTHING_MORE, RowField, RowLayout, TreeColumn
from rtui.tui.kit.layout import MARGIN, bar, display, prose
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    cut,
    cut_middle,
    gap,
    joined,
    left,
    literal,
    right,
    type_role,
    width_of,
)

if TYPE_CHECKING:  # it is imported with all that adds up
    from rtui.tui.browse.tree_figures import TreeFigures

INDENT_CELLS: Final = 2
"""How much further in each level begins."""

OPEN, CLOSED, NO_SIGN, MARKED = literal("▾ "), literal("▸ "), literal("  "), literal("● ")
EMPTY = literal("(empty)")
MIXED = literal(" ≠")
"""Stands behind a name that mixes scripts."""


class ReasonTexts(NamedTuple):
    """The texts shown in place of a fact, for a reason why it is missing."""

    short: SafeText
    """In a column of the tree."""
    full: SafeText
    """In the facts of a key."""
    refusal: SafeText
    """Above the missing part of a value."""


REASONS: Final = {
    Reason.DENIED: ReasonTexts(literal("denied"), literal("denied"), literal("Not permitted")),
    Reason.UNKNOWN_COMMAND: ReasonTexts(
        literal("n/a"), literal("no such command"), literal("The server has no such command")
    ),
    Reason.GONE: ReasonTexts(literal("gone"), literal("–"), literal("The key no longer exists")),
    Reason.UNSUPPORTED: ReasonTexts(literal("n/a"), literal("not available"), literal("Not available")),
    Reason.NOT_ASKED: ReasonTexts(literal("–"), literal("not read"), literal("Not read")),
    Reason.TOO_LARGE: ReasonTexts(literal("large"), literal("too large to read"), literal("Too large to read")),
    Reason.FAILED: ReasonTexts(literal("error"), literal("failed"), literal("The server refused")),
    Reason.IMPOSSIBLE: ReasonTexts(literal("?"), literal("unknown"), literal("The server sent an impossible reply")),
}


@dataclass(frozen=True, slots=True)
class TreeTotals:
    """The totals on which the shares of rows are based."""

    complete: bool
    expected_keys: float | None = None
    """Keys in the whole keyspace, estimated from the sample."""
    is_part: bool = False
    """Only keys that pass a filter are counted, and shares are of these."""
    is_outdated: bool = False
    figures: TreeFigures | None = None
    """The figures of an analysis for namespaces; None without an analysis."""
    analysis_note: SafeText = NOTHING_MORE
    """The age of the analysis; empty while it is fresh."""
    is_cluster: bool = False


def count_text(known: Known) -> SafeText:
    """Return a count with all its digits; an approximate one is abbreviated."""
    is_rough = known.mark is Mark.ABOUT
    return fmt.short_count(known.value, known.mark) if is_rough else fmt.count(round(known.value), known.mark)


def known_count(node: Namespace, complete: bool) -> Known:
    """Return the best figure for the keys of a namespace: counted, at least, or sampled while that says more."""
    if node.is_exact(complete=complete):
        return Known(node.count, Mark.EXACT)
    if not complete and node.estimate is not None and node.estimate.value > node.count:
        return Known(node.estimate.value, Mark.ABOUT)
    return Known(node.count, Mark.AT_LEAST)


def share_of(node: Namespace, totals: TreeTotals) -> float | None:
    """Return the part of the keyspace below a namespace, None while there is nothing to compare with."""
    known = known_count(node, totals.complete)
    if known.mark is Mark.ABOUT and totals.expected_keys:
        return min(1.0, known.value / totals.expected_keys)
    whole = node.root.count  # of the same moment as the count: more may have come since `totals` were made
    return node.count / whole if whole else None


def row_line(
    row: Row,
    layout: RowLayout,
    totals: TreeTotals,
    *,
    is_open: bool = False,
    facts: RowFacts | None = None,
    figures: TreeFigures | None = None,
    idle_s: float | None = None,
    is_marked: bool = False,
    node: SafeText = NOTHING_MORE,
) -> Line:
    """Return a row in exactly the width of the layout.

    `facts` are the facts of a key, None while they are not known; `figures` are from an analysis; `idle_s` is the idle
    time of a key in seconds, if rows are sorted by it; `is_marked` is whether the user has marked the key; `node` is
    the cluster node that has the key.
    """
    role, sign = Role.TEXT, MARKED if is_marked else NO_SIGN
    if row.kind is RowKind.NAMESPACE:
        role, sign = Role.MUTED if totals.is_outdated else Role.TEXT, OPEN if is_open else CLOSED
        fields = _namespace_fields(row.namespace, layout.fields, totals, figures)
    else:
        if facts is not None and (facts.is_gone or facts.ttl_ms == 0):
            role = Role.MUTED
        fields = _key_fields(row, facts, layout.fields, idle_s, figures, node=node)
    indent = indent_cells(row.depth, layout.name_cells)
    room = layout.name_cells - indent - width_of(sign) - 1
    text = display(row.name, limit=max(room, 16)) if row.name else EMPTY
    mark = MIXED if mixed_letters(row.name) and room > width_of(MIXED) else NOTHING_MORE
    cells = room - width_of(mark)
    role = Role.WARN if mark else role if row.name else Role.FAINT
    name = Span(left(SafeText(f"{cut_middle(text, cells)}{mark}"), room + 1), role)
    return Span(SafeText(" " * indent + sign), Role.ACCENT if is_marked else Role.FAINT), name, *fields


def name_cells(row: Row) -> int:
    """Return the width in cells of an uncut name with its indent and sign.

    A byte counts as a cell: names with letters outside ASCII get more room than they need.
    """
    return MARGIN + row.depth * INDENT_CELLS + width_of(NO_SIGN) + len(row.name) + 1


def indent_cells(depth: int, name_cells: int) -> int:
    """Return the column where the sign of a row stands; deep rows stop moving to the right at half the width."""
    return MARGIN + min(depth * INDENT_CELLS, name_cells // 2)


@dataclass(frozen=True, slots=True)
class RowFigures:
    """The figures in a row of a namespace or a level."""

    keys: Known
    share: float | None
    """Of all keys; None while there is nothing to compare with."""
    share_mark: Mark
    analysed: NamespaceFigures | None
    """The figures of an analysis; None without one."""
    is_outdated: bool = False
    """Whether the count does not hold any more."""
    is_old: bool = False
    """Whether the figures of the analysis do not."""


def _namespace_fields(
    node: Namespace, fields: tuple[RowField, ...], totals: TreeTotals, figures: TreeFigures | None
) -> list[Span]:
    known = known_count(node, totals.complete)
    found = None if figures is None else figures.figures(node, known)
    is_old = found is not None and (found.has_changed or (figures is not None and not figures.is_current))
    mark = Mark.EXACT if totals.complete and known.mark is Mark.EXACT else Mark.ABOUT
    is_outdated = totals.is_outdated
    row = RowFigures(known, share_of(node, totals), mark, found, is_outdated, is_outdated or is_old)
    return figure_fields(row, fields)


def figure_fields(row: RowFigures, fields: tuple[RowField, ...]) -> list[Span]:
    known, share, found = row.keys, row.share, row.analysed or NOTHING_KNOWN
    spans: list[Span] = []
    of_bar = [field.cells for field in fields if field.namespace is TreeColumn.BAR]
    bar_cells = sum(of_bar) + GAP_CELLS * max(0, len(of_bar) - 1)  # it goes through all places that it has
    for at, field in enumerate(fields):
        is_bar = field.namespace is TreeColumn.BAR
        if is_bar and at and fields[at - 1].namespace is TreeColumn.BAR:
            continue
        spans.append(gap(GAP_CELLS))
        match field.namespace:
            case TreeColumn.KEYS:
                text = count_text(known)
                if width_of(text) > field.cells:
                    text = fmt.short_count(known.value, known.mark)
                is_muted = known.mark is Mark.ABOUT or row.is_outdated
                spans.append(Span(right(text, field.cells), Role.MUTED if is_muted else Role.TEXT))
            case TreeColumn.SHARE if share is not None:
                spans.append(Span(right(fmt.share(share, row.share_mark), field.cells), Role.MUTED))
            case TreeColumn.BAR if row.analysed is None and share is not None:
                filled, blank = bar(share, bar_cells)
                spans += (Span(filled, Role.BAR), Span(blank))
            case TreeColumn.BAR if found.share is not None:
                filled, blank = bar(found.share.value, bar_cells)
                spans += (Span(filled, Role.BAR), Span(blank))
            case column if column in ANALYSED_COLUMNS:
                spans.append(_analysed(column, found, field.cells, is_old=row.is_old))
            case _:
                spans.append(gap(bar_cells if is_bar else field.cells))
    return spans


def _analysed(column: TreeColumn, found: NamespaceFigures, cells: int, *, is_old: bool) -> Span:
    """Return a figure of an analysis; old figures, and columns of less weight than the bytes, are muted."""
    figure, form = {
        TreeColumn.MEMORY: (found.memory_bytes, fmt.size),
        TreeColumn.MEMORY_SHARE: (found.share, fmt.share),
        TreeColumn.MEAN: (found.mean_bytes, fmt.size),
        TreeColumn.NO_TTL: (found.no_ttl, fmt.share),
        TreeColumn.IDLE: (found.idle, fmt.share),
    }[column]
    if figure is None:
        return Span(right(fmt.NOTHING, cells), Role.FAINT)
    is_plain = column is TreeColumn.MEMORY and figure.mark is not Mark.ABOUT and not is_old
    return Span(right(form(figure.value, figure.mark), cells), Role.TEXT if is_plain else Role.MUTED)


def _key_fields(
    row: Row,
    facts: RowFacts | None,
    fields: tuple[RowField, ...],
    idle_s: float | None,
    figures: TreeFigures | None,
    *,
    node: SafeText,
) -> list[Span]:
    """Return the facts of a key, blanks while they are not known; for a missing key only that, in its first place."""
    spans: list[Span] = []
    end = literal("gone") if facts is not None and facts.is_gone else literal("expired")
    for field in fields:
        text, role = literal(""), Role.TEXT
        if facts is not None and field.key is not None:
            if facts.is_gone or facts.ttl_ms == 0:
                text, role, end = cut(end, field.cells), Role.WARN, literal("")
            elif field.key is TreeColumn.IDLE and idle_s is not None:
                text = fmt.short_duration(round(idle_s * fmt.SECOND_MS))
            elif field.key is TreeColumn.SLOT:
                text, role = SafeText(str(key_slot(row.key()))), Role.MUTED
            elif field.key is TreeColumn.NODE:
                text, role = cut_middle(node, field.cells), Role.MUTED
            elif field.key is TreeColumn.MEMORY_SHARE:
                text, role = _share_of_bytes(facts, figures), Role.MUTED
            else:
                text, role = _fact(facts, field.key, field.cells)
        spans += (gap(GAP_CELLS), Span(right(text, field.cells), role))
    return spans


def _share_of_bytes(facts: RowFacts, figures: TreeFigures | None) -> SafeText:
    memory = facts.memory_bytes
    share = None if figures is None or isinstance(memory, Unknown) else figures.reported.share_of(memory)
    return fmt.NOTHING if share is None else fmt.share(share, Mark.ABOUT)


def _fact(facts: RowFacts, column: TreeColumn, cells: int) -> tuple[SafeText, Role]:
    value = {
        TreeColumn.TYPE: facts.type,
        TreeColumn.TTL: facts.ttl_ms,
        TreeColumn.SIZE: facts.memory_bytes,
        TreeColumn.LENGTH: facts.length,
        TreeColumn.ENCODING: facts.encoding,
        TreeColumn.IDLE: facts.idle_s,
    }[column]
    if value is NOT_ASKED:
        return literal(""), Role.FAINT
    if isinstance(value, Unknown):
        return REASONS[value.reason].short, Role.WARN if value.reason is Reason.DENIED else Role.MUTED
    if isinstance(value, bytes):
        is_type = column is TreeColumn.TYPE
        return cut(display(value, limit=16), cells), type_role(value) if is_type else Role.MUTED
    if isinstance(value, NoTtl):
        return literal("none"), Role.FAINT
    return _number(value, column, cells), Role.TEXT if column is TreeColumn.TTL else Role.MUTED


def _number(value: int, column: TreeColumn, cells: int) -> SafeText:
    if column is TreeColumn.TTL:
        return fmt.short_duration(value)
    if column is TreeColumn.IDLE:
        return fmt.short_duration(value * fmt.SECOND_MS)
    if column is TreeColumn.LENGTH:
        text = fmt.count(value)
        return text if width_of(text) <= cells else fmt.short_count(value)
    return fmt.size(value, Mark.ABOUT)


def _meant(typed: bytes, *, is_over: bool) -> SafeText:
    """Return a hint for a text or a glob without matches: the query probably meant; empty if there is no guess."""
    from rtui.analysis.query.hints import read_with_hints  # noqa: PLC0415 - when nothing is found

    query = read_with_hints(typed.decode("utf-8", "surrogateescape")).query
    said = (*query.hints, *query.doubts) if is_over else query.hints
    return next((one.sentence for one in said), literal(""))


MOST_DATABASES = 8
"""Other databases that are named at most."""


def notice_lines(status: BrowsingStatus, needle: bytes | None, width: int, *, not_searched: int = 0) -> list[Line]:
    """Return why there are no rows and what the user can do about it.

    `needle` is the text searched for in names, `not_searched` the number of keys whose names were not kept.
    """
    state = status.progress.state
    role, text, more = Role.STRONG, literal("Press Escape to show everything again."), literal("")
    if state is ScanState.FAILED:
        title, role = literal("The scan failed"), Role.BAD
        text, more = status.progress.reason or literal("The server gave no reason."), literal("Press R to try again.")
    elif needle is not None:
        title = SafeText(f"No key name contains {display(needle, limit=60)}")
        if not status.complete:
            text = literal("The scan continues; matches will appear here.")
        if not_searched:
            title = SafeText(f"No kept key name contains {display(needle, limit=60)}")
            more = SafeText(
                f"{fmt.keys(not_searched)} could not be searched: their names exceed the memory budget. "
                "Press Enter in the filter line to scan the server for a pattern such as *text*."
            )
        else:
            more = _meant(needle, is_over=status.complete)
    elif not status.complete:
        title = literal("Paused") if state is ScanState.PAUSED else literal("Looking for the first keys…")
        role, text = Role.MUTED, literal("")
    elif status.match is not None or status.key_type is not None:
        match = [] if status.match is None else [SafeText(f"matches {display(status.match, limit=60)}")]
        of_type = [] if status.key_type is None else [SafeText(f"is of type {display(status.key_type, limit=16)}")]
        title = joined([literal("No key"), *match, *of_type], " ")
        more = _meant(status.match or b"", is_over=True)
    else:
        title, text = SafeText(f"db{status.db} is empty"), literal("This database has no keys.")
        if status.outdated is not None:
            title = SafeText(f"db{status.db} was empty")
            text = literal("This database had no keys when it was scanned. Press R to rescan.")
        others = [(db, keys) for db, keys in (status.server.databases or {}).items() if db != status.db and keys]
        found = [SafeText(f"db{db} has {fmt.count(keys)}") for db, keys in sorted(others)[:MOST_DATABASES]]
        more = SafeText(f"{joined(found, ', ')}: press B to browse another database.") if found else more
    lines: list[Line] = [(), (gap(1), Span(title, role))]
    for paragraph in filter(None, (text, more)):
        lines += [(), *prose(paragraph, width, Role.MUTED)]
    return lines
