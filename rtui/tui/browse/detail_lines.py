"""The lines of the details of what is under the cursor, and one line with the most of it for small terminals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import NO_TTL, Unknown, ttl_at
from rtui.analysis.humanize import Mark, counted, noun
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.fact_lines import (
    age_line,
    child_lines,
    explanations,
    fact_lines,
    loading_lines,
    namespace_lines,
    slot_lines,
)
from rtui.tui.browse.preview_lines import page_note, preview_lines
from rtui.tui.browse.tree_lines import Totals, known_count
from rtui.tui.kit.format import display
from rtui.tui.kit.layout import BETWEEN, Piece, fitted, prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, line_width, literal, type_role

NAME_CELLS = 36
"""A longer name is cut in the middle."""


def summary_line(detail: Detail, totals: Totals, width: int, now_s: float | None = None) -> Line:
    """Return the line in exactly `width` cells; `now_s`, in seconds since the epoch, says how old the facts are."""
    line = fitted(_pieces(detail, totals, now_s), width - 2)
    shown = clip((gap(1), *line), width)
    return (*shown, gap(width - line_width(shown)))


def _pieces(detail: Detail, totals: Totals, now_s: float | None) -> list[Piece]:
    if detail.key is None:
        return [] if detail.row is None else _namespace(detail, totals)
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
    age = () if now_s is None else age_line(facts.asked_at_s, now_s)
    if age:
        pieces.append(Piece(3, age))
    pieces.append(Piece(5, (Span(literal("Enter shows the details"), Role.FAINT),)))
    return pieces


def _namespace(detail: Detail, totals: Totals) -> list[Piece]:
    if detail.row is None:
        return []
    node = detail.row.namespace
    known = known_count(node, totals.complete)
    figure = (
        fmt.short_count(known.keys, known.mark)
        if known.mark is Mark.ABOUT
        else fmt.count(round(known.keys), known.mark)
    )
    return [
        Piece(0, (Span(cut_middle(display(node.path(), limit=NAME_CELLS * 2), NAME_CELLS), Role.STRONG),)),
        Piece(0, (Span(figure), Span(SafeText(f" {noun(known.keys, 'key')}"), Role.MUTED))),
    ]


class Tab(IntEnum):
    """The tabs of a key; a namespace has one of its own."""

    VALUE = 0
    SLOT = 1


KEY_TABS: Final = (literal("Value"), literal("Slot"))
NAMESPACE_TABS: Final = (literal("Inside"),)


@dataclass(frozen=True, slots=True)
class DetailLines:
    """The parts of the detail pane, each for any width."""

    detail: Detail
    totals: Totals
    tab: Tab = Tab.VALUE
    now_s: float | None = None
    """Seconds since the epoch, for the age of facts; None: they have none."""

    def head(self, width: int) -> Sequence[Line]:
        """Return the facts."""
        detail = self.detail
        if detail.facts is not None:
            return fact_lines(detail.facts, width, now_s=self.now_s)
        if detail.key is not None:
            return loading_lines(detail.key, width)
        if detail.row is not None:
            return namespace_lines(detail.row.namespace, self.totals, width)
        return []

    @property
    def tabs(self) -> tuple[SafeText, ...]:
        """The titles of the tabs."""
        if self.detail.key is not None:
            return KEY_TABS
        return NAMESPACE_TABS if self.detail.row is not None else ()

    @property
    def chosen(self) -> int:
        """The number of the chosen tab."""
        return int(self.tab) if self.detail.key is not None else 0

    @property
    def notes(self) -> tuple[Line, ...]:
        """What may stand beside the tabs, the longest first: the position in the value, and the age of the facts."""
        detail = self.detail
        if detail.is_fetching_page:
            return ((Span(literal("fetching…"), Role.FAINT),),)
        is_paged = self.tab is Tab.VALUE and detail.preview is not None
        page = page_note(detail.preview) if is_paged and detail.preview is not None else ()
        age = () if detail.facts is None or self.now_s is None else age_line(detail.facts.asked_at_s, self.now_s)
        return ((*page, BETWEEN, *age), page, age) if page and age else (page or age,)

    def body(self, width: int) -> Sequence[Line]:
        """Return what the chosen tab shows."""
        detail = self.detail
        if detail.key is None:
            if detail.row is None:
                return []
            return child_lines(detail.row.namespace, detail.children, self.totals, width)
        if self.tab is Tab.SLOT:
            return slot_lines(detail.key, width)
        lines: list[Line] = []
        if detail.failure is not None:
            lines += [(), *prose(detail.failure, width, Role.WARN)]
        if detail.preview is not None:
            lines += preview_lines(detail.preview, width)
        elif detail.failure is None:
            lines += [(), *prose(literal("fetching…"), width, Role.FAINT)]
        if detail.facts is not None:
            for sentence in explanations(detail.facts):
                lines += [(), *prose(sentence, width, Role.MUTED)]
        return lines
