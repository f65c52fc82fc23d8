"""The lines of the details of the row under the cursor, and one line with most of them for small terminals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import NO_TTL, Unknown, ttl_at
from rtui.analysis.humanize import Mark, counted, noun
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.document import document_rows
from rtui.tui.browse.fact_lines import (
    age_line,
    explanations,
    fact_lines,
    loading_lines,
    slot_lines,
)
from rtui.tui.browse.namespace_lines import inside_rows, namespace_lines
from rtui.tui.browse.preview_lines import page_note, preview_rows
from rtui.tui.browse.shown_value import ShownValue, Tab
from rtui.tui.browse.tree_lines import Totals, count_text, known_count
from rtui.tui.browse.value_rows import ValueRow, plain_rows
from rtui.tui.browse.watching import UNCHANGED, FactChanges
from rtui.tui.kit.layout import BETWEEN, MARGIN, Piece, display, fitted, prose, tab_line
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, line_width, literal, type_role, wrap

if TYPE_CHECKING:
    from rtui.tui.browse.registry_lines import RegistryLines

NAME_CELLS = 36
"""A longer name is cut in the middle."""


def summary_line(detail: Detail, totals: Totals, now_s: float | None, width: int) -> Line:
    """Return the line in exactly `width` cells; `now_s`, in seconds since the epoch, says how old the facts are."""
    shown = clip((gap(1), *fitted(_pieces(detail, totals, now_s), width - 2)), width)
    return (*shown, gap(width - line_width(shown)))


def _pieces(detail: Detail, totals: Totals, now_s: float | None) -> list[Piece]:
    if detail.level is not None:
        return detail.level.summary()
    if detail.key is None:
        if detail.row is None:
            return []
        node = detail.row.namespace
        known = known_count(node, totals.complete)
        pieces = [
            Piece(0, (Span(cut_middle(display(node.path(), limit=NAME_CELLS * 2), NAME_CELLS), Role.STRONG),)),
            Piece(0, (Span(count_text(known)), Span(SafeText(f" {noun(known.value, 'key')}"), Role.MUTED))),
        ]
        found = None if totals.figures is None else totals.figures.figures(node, known).memory_bytes
        return pieces if found is None else [*pieces, Piece(1, (Span(fmt.size(found.value, found.mark)),))]
    name = display(detail.key, limit=NAME_CELLS * 2) if detail.key else literal("(empty name)")
    pieces = [Piece(1, (Span(cut_middle(name, NAME_CELLS), Role.STRONG),))]
    facts = detail.facts
    if facts is None:
        why = detail.failure if detail.failure is not None else literal("…")
        return [*pieces, Piece(0, (Span(why, Role.FAINT),))]
    if facts.is_gone:
        return [*pieces, Piece(0, (Span(literal("gone"), Role.WARN),))]
    if not isinstance(facts.type, Unknown):
        pieces.append(Piece(0, (Span(display(facts.type, limit=16), type_role(facts.type)),)))
    if not isinstance(facts.length, Unknown):
        kind = facts.redis_type
        pieces.append(Piece(2, (Span(counted(facts.length, kind.unit, plural=kind.units)),)))
    if not isinstance(facts.memory_bytes, Unknown):
        pieces.append(Piece(3, (Span(fmt.size(facts.memory_bytes, Mark.ABOUT)),)))
    left = facts.ttl_ms if now_s is None else ttl_at(facts.ttl_ms, facts.asked_at_s, now_s)
    if left is NO_TTL:
        pieces.append(Piece(4, (Span(literal("no TTL"), Role.MUTED),)))
    elif left == 0:
        pieces.append(Piece(0, (Span(literal("expired"), Role.WARN),)))
    elif isinstance(left, int):
        pieces.append(Piece(2, (Span(literal("TTL "), Role.MUTED), Span(fmt.duration(left)))))
    age = age_line(facts.asked_at_s, now_s)
    if age:
        pieces.append(Piece(3, age))
    return [*pieces, Piece(5, (Span(literal("Enter shows the details"), Role.FAINT),))]


def head_lines(
    detail: Detail,
    totals: Totals,
    now_s: float | None,
    width: int,
    *,
    changes: FactChanges = UNCHANGED,
    registry: RegistryLines | None = None,
    has_age: bool = False,
) -> Sequence[Line]:
    """Return the facts of a key or a namespace; `now_s`, in seconds since the epoch, is the time that they age by.

    `has_age` says how old they are, where what the tab shows was asked at another time. What the registry says of a key
    follows, if there is one.
    """
    if detail.level is not None:
        return detail.level.head(width)
    if detail.key is None:
        return [] if detail.row is None else namespace_lines(detail.row.namespace, totals, width)
    said = () if registry is None else registry.lines(detail.key, detail.facts, width)
    if detail.facts is None:
        return [*loading_lines(detail.key, width), *said]
    return [*fact_lines(detail.facts, width, now_s=now_s, changes=changes, has_age=has_age), *said]


TRAIL_LINES: Final = 4
"""Lines of the names of opened elements at most."""


def tab_lines(value: ShownValue, now_s: float | None, width: int, *, has_registry: bool = False) -> Sequence[Line]:
    """Return the titles of the tabs below a blank line; beside them the position in the value and how old it is."""
    detail, preview = value.detail, value.preview
    if detail.level is not None:
        return [(), tab_line([literal("Pattern")], 0, [], width)]
    if detail.key is None:
        return [(), tab_line([] if detail.row is None else [literal("Inside")], 0, [], width)]
    page: Line = ()
    short: Line = ()
    bare: Line = ()
    if preview is not None and not value.opened:
        page = page_note(preview, value.order, value.decoded)
        short = page_note(preview, value.order, value.decoded, is_short=True)
        bare = tuple(span for span in short[:1] if span.role is Role.MUTED)
    decoders = () if preview is None else _decoder_note(value)
    asked_at_s = value.read_apart_at_s or (None if detail.facts is None else detail.facts.asked_at_s)
    age = () if asked_at_s is None else age_line(asked_at_s, now_s)
    if detail.is_fetching_page:
        is_finding = detail.preview is not None and detail.preview.page.find is not None
        page = (*page, BETWEEN, _FETCHING) if page and is_finding else (_FETCHING,)
        short, bare = (_FETCHING,), ()
    parts = [part for part in (decoders, page, age) if part]
    notes = [_with_separators(parts[:count]) for count in range(len(parts), 0, -1)]
    if decoders and short:
        notes.insert(-1, _with_separators([decoders, short]))
    titles = [literal("Value"), literal("Slot"), *([literal("References")] if has_registry else [])]
    return [(), tab_line(titles, value.tab, [*notes, page, short, bare, age], width)]


def note_action(span: Span) -> str | None:
    """Return the action of a piece of the notes beside the tabs: it turns the page or decodes otherwise."""
    if span.role is not Role.ACCENT:
        return "value.decode" if span.role is Role.JSON else None
    return {"n ›": "detail.next_page", "‹ b": "detail.previous_page", "d": "value.decode"}.get(span.text.strip())


_FETCHING: Final = Span(literal("fetching…"), Role.FAINT)


def _with_separators(parts: Sequence[Line]) -> Line:
    line: list[Span] = []
    for part in parts:
        line += [*([BETWEEN] if line else []), *part]
    return tuple(line)


def _decoder_note(value: ShownValue) -> Line:
    """Return how the value was decoded, and the key that decodes it otherwise."""
    document = value.decoded
    if document is None:
        said = "decoded" if value.are_rows_decoded else "as stored"
        return (Span(SafeText(said), Role.JSON), Span(literal(" d"), Role.ACCENT)) if value.can_decode_rows else ()
    by_hand = (Span(literal(" by hand"), Role.MUTED),) if document.choice is not None else ()
    return Span(document.title, Role.JSON), *by_hand, Span(literal(" d"), Role.ACCENT)


def body_rows(
    value: ShownValue, totals: Totals, registry: RegistryLines | None, way: Sequence[bytes], width: int
) -> Sequence[ValueRow]:
    """Return the rows of the chosen tab; `way` are the keys from which references led to this one."""
    detail = value.detail
    if detail.level is not None:
        return detail.level.rows(None if registry is None else registry.registry, totals.analysis_note, width)
    if detail.row is not None and detail.key is None:
        return inside_rows(detail.row.namespace, detail.children, detail.biggest, totals, width)
    if detail.key is None:
        return []
    if value.tab is Tab.REFERENCES and registry is not None:
        return registry.reference_rows(detail, way, width)
    if value.tab is Tab.SLOT:
        return plain_rows(*slot_lines(detail.key, width))
    return _value_rows(value, width)


def _value_rows(value: ShownValue, width: int) -> list[ValueRow]:
    """Return the rows of the value, or of what was opened in it."""
    detail, document = value.detail, value.decoded
    if value.opened and document is not None:
        titles = " › ".join(one.title for one in value.opened)
        trail = wrap(SafeText(f"‹ {titles}"), max(1, width - 2 * MARGIN), TRAIL_LINES)
        title = [(gap(MARGIN), Span(part, Role.STRONG)) for part in trail]
        return [*plain_rows((), *title, ()), *document_rows(document, width)]
    rows: list[ValueRow] = []
    if detail.failure is not None:
        rows += plain_rows((), *prose(detail.failure, width, Role.WARN))
    if value.preview is not None:
        rows += preview_rows(value.preview, width, order=value.order, document=document, meanings=value.meanings)
    elif detail.failure is None:
        rows += plain_rows((), *prose(literal("fetching…"), width, Role.FAINT))
    if detail.facts is not None:
        for sentence in explanations(detail.facts):
            rows += plain_rows((), *prose(sentence, width, Role.MUTED))
    return rows
