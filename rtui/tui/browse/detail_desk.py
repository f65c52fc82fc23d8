"""Shows the details of what is under the cursor, and carries out the commands that are about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rtui.tui.browse.cursor_detail import CursorDetail, Detail
from rtui.tui.browse.detail_lines import KEY_TABS, DetailLines, Tab, summary_line
from rtui.tui.browse.row_facts import AFTER_EXPIRY_S
from rtui.tui.browse.tree_lines import Whole
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.detail_pane import DetailPane


@dataclass(frozen=True, slots=True)
class Panels:
    """Where details are shown: beside the tree, and in one line where there is no room."""

    pane: DetailPane
    summary: Bar


class DetailDesk:
    """Binds what is known of the thing under the cursor to the panels."""

    def __init__(self, source: CursorDetail, whole: Callable[[], Whole], clock: Callable[[], float]) -> None:
        """`source` fetches details, `whole` tells what shares are parts of, `clock` gives seconds since the epoch."""
        self.source = source
        self.tab = Tab.VALUE
        self.shown: Detail | None = None
        self._whole = whole
        self._clock = clock
        self._panels: Panels | None = None

    def use(self, panels: Panels) -> None:
        """Show details in these panels."""
        self._panels = panels

    def show(self, detail: Detail) -> None:
        """Show what has come of the thing under the cursor."""
        if self._panels is None:
            return
        whole = self._whole()
        lines = DetailLines(detail, whole, self.tab, self._clock())
        self._show_ageing(self._panels, lines)
        self._panels.pane.show_body(lines.body, from_top=detail is not self.shown)
        self.shown = detail

    def _show_ageing(self, panels: Panels, lines: DetailLines) -> None:
        """Show what changes as time goes by."""
        panels.pane.show_head(lines.head)
        panels.pane.show_tabs(lines.tabs, lines.chosen, lines.notes)
        panels.summary.tell(lambda width: summary_line(lines.detail, lines.whole, width, lines.now_s))

    def tick(self) -> None:
        """Show how far the time to live has run down and how old the facts are."""
        detail = self.shown
        if self._panels is not None and detail is not None and detail.facts is not None:
            self._show_ageing(self._panels, DetailLines(detail, self._whole(), self.tab, self._clock()))

    def ask_again(self) -> None:
        """Ask once more for a key whose time to live has run out: it is gone, or its life was prolonged."""
        facts = self.source.detail.facts
        expires_at_s = None if facts is None else facts.expires_at_s
        if expires_at_s is not None and self._clock() >= expires_at_s + AFTER_EXPIRY_S:
            self.source.refresh()

    def take_up(self, *, complete: bool) -> None:
        """Show the figures of a namespace as they are now; `complete` says that they are totals."""
        detail = self.source.detail
        if detail.row is not None and detail.key is None:
            self.show(detail)
            self.source.look_again(complete=complete)

    def choose(self, index: int) -> None:
        """Show another tab."""
        self.tab = Tab(index % len(KEY_TABS))
        self.shown = None
        self.show(self.source.detail)

    def value_tab(self) -> None:
        """Show the value."""
        self.choose(Tab.VALUE)

    def slot_tab(self) -> None:
        """Show the slot."""
        self.choose(Tab.SLOT)

    def next_tab(self) -> None:
        """Show the next tab."""
        self.choose(self.tab + 1)

    def previous_tab(self) -> None:
        """Show the tab before."""
        self.choose(self.tab - 1)

    def next_page(self) -> None:
        """Fetch the next page of the value."""
        preview = self.source.detail.preview
        if preview is not None and preview.next_page is not None:
            self.source.turn(preview.next_page)

    def previous_page(self) -> None:
        """Fetch the page before."""
        preview = self.source.detail.preview
        if preview is not None and preview.previous_page is not None:
            self.source.turn(preview.previous_page)
