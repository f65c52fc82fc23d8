"""The lines of the tree: its header, and a row for each namespace and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import NoTtl, Reason, RowFacts, Unknown
from rtui.analysis.humanize import Mark
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.columns import GAP_CELLS, RowField, RowLayout, TreeColumn
from rtui.tui.kit.format import bar, display
from rtui.tui.kit.layout import MARGIN
from rtui.tui.kit.styled_text import Line, Role, Span, cut, cut_middle, left, literal, right, type_role, width_of


def header_line(layout: RowLayout, order: Sort, title: SafeText, *, is_filter: bool = False) -> Line:
    """Return the header in exactly the width of the plan; the column that orders the rows is marked."""
    by_name = order is Sort.NAME
    name = SafeText(f" {title}{' ↓' if by_name else ''}")
    spans = [Span(left(name, layout.name_cells), Role.ACCENT if by_name or is_filter else Role.MUTED)]
    for field in layout.fields:
        by_count = order is Sort.COUNT and field.namespace is TreeColumn.KEYS
        text = SafeText(field.title.replace(TreeColumn.KEYS, f"{TreeColumn.KEYS} ↓", 1) if by_count else field.title)
        spans.append(Span(right(text, field.cells + GAP_CELLS), Role.ACCENT if by_count else Role.MUTED))
    return tuple(spans)


INDENT_CELLS: Final = 2
"""How much further in each level begins."""

_OPEN, _CLOSED, _NONE = literal("▾ "), literal("▸ "), literal("  ")
_EMPTY = literal("(empty)")

_SHORT_REASONS: Final = {
    Reason.DENIED: literal("denied"),
    Reason.UNKNOWN_COMMAND: literal("n/a"),
    Reason.GONE: literal("gone"),
    Reason.UNSUPPORTED: literal("n/a"),
    Reason.NOT_ASKED: literal("–"),
    Reason.TOO_LARGE: literal("large"),
    Reason.FAILED: literal("error"),
}


_EXPIRED = literal("expired")
"""For a key whose time to live has run out since it was fetched."""


class KnownFacts(Protocol):
    """The facts of listed keys; a dictionary is one."""

    def get(self, key: bytes, /) -> RowFacts | None:
        """Return the facts of a key as they stand now, None while nothing is known."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What the figures of a row are measured against."""

    keys: int
    """Keys seen in the whole keyspace."""
    complete: bool
    """The scan has seen every key."""
    expected_keys: float | None = None
    """Keys in the whole keyspace, estimated from the sample."""
    is_part: bool = False
    """Only what a filter lets through is counted, and shares are of that."""
    is_outdated: bool = False
    """What was counted does not hold any more."""


@dataclass(frozen=True, slots=True)
class KnownCount:
    """A count and how far to trust it."""

    keys: float
    mark: Mark


def known_count(node: Namespace, complete: bool) -> KnownCount:
    """Return the best figure for the keys of a namespace: counted, at least, or sampled while that says more."""
    if node.is_exact(complete=complete):
        return KnownCount(node.count, Mark.EXACT)
    if not complete and node.estimate is not None and node.estimate.value > node.count:
        return KnownCount(node.estimate.value, Mark.ABOUT)
    return KnownCount(node.count, Mark.AT_LEAST)


def share_of(node: Namespace, totals: Totals) -> float | None:
    """Return the part of the keyspace below a namespace, None while there is nothing to compare with."""
    known = known_count(node, totals.complete)
    if known.mark is Mark.ABOUT and totals.expected_keys:
        return min(1.0, known.keys / totals.expected_keys)
    return node.count / totals.keys if totals.keys else None


def row_line(row: Row, layout: RowLayout, totals: Totals, *, is_open: bool, facts: KnownFacts) -> Line:
    """Return a row in exactly the width of the plan."""
    if row.kind is RowKind.NAMESPACE:
        role = Role.MUTED if totals.is_outdated else Role.TEXT
        head = _name(row, layout.name_cells, _OPEN if is_open else _CLOSED, role)
        return (*head, *_namespace_fields(row.namespace, layout.fields, totals))
    found = facts.get(row.key())
    gone = found is not None and _has_ended(found)
    head = _name(row, layout.name_cells, _NONE, Role.MUTED if gone else Role.TEXT)
    return (*head, *_key_fields(found, layout.fields))


def name_cells(row: Row) -> int:
    """Return the cells that a name takes when nothing of it is cut, with its indent and sign.

    A byte is taken for a cell: names of other letters than those of ASCII get more room than they need.
    """
    return MARGIN + row.depth * INDENT_CELLS + width_of(_NONE) + len(row.name) + 1


def sign_cells(row: Row, name_cells: int) -> int:
    """Return the column where the sign of a row stands; deep rows stop moving to the right at half the width."""
    return MARGIN + min(row.depth * INDENT_CELLS, name_cells // 2)


def _name(row: Row, cells: int, sign: SafeText, role: Role) -> Line:
    """Return the sign and the name in `cells` cells."""
    indent = sign_cells(row, cells)
    room = cells - indent - width_of(sign) - 1
    text = display(row.name, limit=max(room, 16)) if row.name else _EMPTY
    shown_role = role if row.name else Role.FAINT
    fitted = left(cut_middle(text, room), room + 1)
    return Span(SafeText(" " * indent + sign), Role.FAINT), Span(fitted, shown_role)


def _namespace_fields(node: Namespace, fields: tuple[RowField, ...], totals: Totals) -> Line:
    """Return the figures of a namespace."""
    known = known_count(node, totals.complete)
    share = share_of(node, totals)
    spans: list[Span] = []
    for field in fields:
        match field.namespace:
            case TreeColumn.KEYS:
                text = fmt.count(round(known.keys), known.mark)
                if known.mark is Mark.ABOUT or width_of(text) > field.cells:
                    text = fmt.short_count(known.keys, known.mark)
                is_muted = known.mark is Mark.ABOUT or totals.is_outdated
                spans += _in_field(text, field, Role.MUTED if is_muted else Role.TEXT)
            case TreeColumn.SHARE if share is not None:
                mark = Mark.EXACT if totals.complete and known.mark is Mark.EXACT else Mark.ABOUT
                spans += _in_field(fmt.share(share, mark), field, Role.MUTED)
            case TreeColumn.BAR if share is not None:
                filled, blank = bar(share, field.cells)
                spans += (_gap(), Span(filled, Role.BAR), Span(blank))
            case _:
                spans.append(_blank(field))
    return tuple(spans)


def _key_fields(facts: RowFacts | None, fields: tuple[RowField, ...]) -> Line:
    """Return the facts of a key, blanks while they are not known."""
    spans: list[Span] = []
    first = next((field for field in fields if field.key is not None), None)
    for field in fields:
        if facts is None or field.key is None:
            spans.append(_blank(field))
            continue
        if _has_ended(facts):
            text, role = _end(facts, field, is_first=field is first), Role.WARN
        else:
            text, role = _fact(facts, field.key)
        spans += _in_field(text, field, role)
    return tuple(spans)


def _has_ended(facts: RowFacts) -> bool:
    """Return whether the key is gone or has expired, as far as is known."""
    return facts.is_gone or facts.is_expired


def _end(facts: RowFacts, field: RowField, *, is_first: bool) -> SafeText:
    """Return what became of a key, in the first place that keys have; nothing in the others."""
    if not is_first:
        return literal("")
    return cut(_SHORT_REASONS[Reason.GONE] if facts.is_gone else _EXPIRED, field.cells)


def _fact(facts: RowFacts, column: TreeColumn) -> tuple[SafeText, Role]:
    """Return one fact of a key as text, or why there is none."""
    value = {TreeColumn.TYPE: facts.type, TreeColumn.TTL: facts.ttl_ms, TreeColumn.SIZE: facts.memory_bytes}[column]
    if isinstance(value, Unknown):
        return _SHORT_REASONS[value.reason], Role.WARN if value.reason is Reason.DENIED else Role.MUTED
    if isinstance(value, bytes):
        return display(value, limit=16), type_role(value)
    if isinstance(value, NoTtl):
        return literal("–"), Role.FAINT
    if column is TreeColumn.TTL:
        return fmt.short_duration(value), Role.TEXT
    return fmt.size(value, Mark.ABOUT), Role.MUTED


def _in_field(text: SafeText, field: RowField, role: Role) -> tuple[Span, Span]:
    """Return the text at the right end of its place."""
    fitted = right(text, field.cells)
    return _gap(), Span(fitted, role)


def _gap() -> Span:
    """Return the blanks before a place."""
    return Span(SafeText(" " * GAP_CELLS))


def _blank(field: RowField) -> Span:
    """Return an empty place."""
    return Span(SafeText(" " * (field.cells + GAP_CELLS)))
