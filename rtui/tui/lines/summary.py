"""One line on what is under the cursor, where there is no room for the detail panel."""

from __future__ import annotations

from rtui.analysis.facts import NO_TTL, Unknown, ttl_at, unit_of
from rtui.analysis.words import counted, noun, singular_of
from rtui.keyspace.display import SafeText
from rtui.tui import format as fmt
from rtui.tui.cursor_detail import Detail
from rtui.tui.format import Mark
from rtui.tui.ink import Line, Role, Span, clip, cut_middle, gap, line_width, own, type_role
from rtui.tui.lines.fitting import Piece, fitted
from rtui.tui.lines.key_facts import age_line
from rtui.tui.lines.tree_row import Whole, known_count
from rtui.tui.shown import display

NAME_CELLS = 36
"""A longer name is cut in the middle."""


def summary_line(detail: Detail, whole: Whole, width: int, now_s: float | None = None) -> Line:
    """Return the line in exactly `width` cells; `now_s`, in seconds since the epoch, says how old the facts are."""
    line = fitted(_pieces(detail, whole, now_s), width - 2)
    shown = clip((gap(1), *line), width)
    return (*shown, gap(width - line_width(shown)))


def _pieces(detail: Detail, whole: Whole, now_s: float | None) -> list[Piece]:
    if detail.key is None:
        return [] if detail.row is None else _namespace(detail, whole)
    name = display(detail.key, limit=NAME_CELLS * 2) if detail.key else own("(empty name)")
    pieces = [Piece(1, (Span(cut_middle(name, NAME_CELLS), Role.STRONG),))]
    facts = detail.facts
    if facts is None:
        why = detail.failure if detail.failure is not None else own("…")
        return [*pieces, Piece(0, (Span(why, Role.FAINT),))]
    if facts.is_gone:
        return [*pieces, Piece(0, (Span(own("gone"), Role.WARN),))]
    if not isinstance(facts.type, Unknown):
        pieces.append(Piece(0, (Span(display(facts.type, limit=16), type_role(facts.type)),)))
    if not isinstance(facts.length, Unknown):
        pieces.append(
            Piece(2, (Span(counted(facts.length, singular_of(unit_of(facts.type)), plural=unit_of(facts.type))),))
        )
    if not isinstance(facts.memory_bytes, Unknown):
        pieces.append(Piece(3, (Span(fmt.size(facts.memory_bytes, Mark.ABOUT)),)))
    left = facts.ttl_ms if now_s is None else ttl_at(facts.ttl_ms, facts.asked_at_s, now_s)
    if left is NO_TTL:
        pieces.append(Piece(4, (Span(own("no TTL"), Role.MUTED),)))
    elif left == 0:
        pieces.append(Piece(0, (Span(own("expired"), Role.WARN),)))
    elif isinstance(left, int):
        pieces.append(Piece(2, (Span(own("TTL "), Role.MUTED), Span(fmt.duration(left)))))
    age = () if now_s is None else age_line(facts.asked_at_s, now_s)
    if age:
        pieces.append(Piece(3, age))
    pieces.append(Piece(5, (Span(own("Enter shows the details"), Role.FAINT),)))
    return pieces


def _namespace(detail: Detail, whole: Whole) -> list[Piece]:
    if detail.row is None:
        return []
    node = detail.row.namespace
    known = known_count(node, whole.complete)
    figure = (
        fmt.short_count(known.keys, known.mark)
        if known.mark is Mark.ABOUT
        else fmt.count(round(known.keys), known.mark)
    )
    return [
        Piece(0, (Span(cut_middle(display(node.path(), limit=NAME_CELLS * 2), NAME_CELLS), Role.STRONG),)),
        Piece(0, (Span(figure), Span(SafeText(f" {noun(known.keys, 'key')}"), Role.MUTED))),
    ]
