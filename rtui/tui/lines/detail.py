"""The detail panel as a whole: which head, tabs and body belong to what is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rtui.keyspace.display import SafeText
from rtui.tui.cursor_detail import Detail
from rtui.tui.ink import Line, Role, Span, own
from rtui.tui.lines.facts_grid import prose
from rtui.tui.lines.fitting import BETWEEN
from rtui.tui.lines.key_facts import age_line, explanations, fact_lines, loading_lines
from rtui.tui.lines.namespace import inside_lines, namespace_lines
from rtui.tui.lines.preview import page_note, preview_lines
from rtui.tui.lines.slot import slot_lines
from rtui.tui.lines.tree_row import Whole


class Tab(IntEnum):
    """The tabs of a key; a namespace has one of its own."""

    VALUE = 0
    SLOT = 1


KEY_TABS: Final = (own("Value"), own("Slot"))
NAMESPACE_TABS: Final = (own("Inside"),)


@dataclass(frozen=True, slots=True)
class DetailLines:
    """What the detail panel says, each part for any width."""

    detail: Detail
    whole: Whole
    tab: Tab = Tab.VALUE
    now_s: float | None = None
    """Seconds since the epoch; None: everything was asked just now."""

    def head(self, width: int) -> Sequence[Line]:
        """Return the facts."""
        detail = self.detail
        if detail.facts is not None:
            return fact_lines(detail.facts, width, now_s=self.now_s)
        if detail.key is not None:
            return loading_lines(detail.key, width)
        if detail.row is not None:
            return namespace_lines(detail.row.namespace, self.whole, width)
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
        """What may stand beside the tabs, the fullest first: where in the value one is, and how old all this is."""
        detail = self.detail
        if detail.is_turning:
            return ((Span(own("fetching…"), Role.FAINT),),)
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
            return inside_lines(detail.row.namespace, detail.inside, self.whole, width)
        if self.tab is Tab.SLOT:
            return slot_lines(detail.key, width)
        lines: list[Line] = []
        if detail.failure is not None:
            lines += [(), *prose(detail.failure, width, Role.WARN)]
        if detail.preview is not None:
            lines += preview_lines(detail.preview, width)
        elif detail.failure is None:
            lines += [(), *prose(own("fetching…"), width, Role.FAINT)]
        if detail.facts is not None:
            for sentence in explanations(detail.facts):
                lines += [(), *prose(sentence, width, Role.MUTED)]
        return lines
