"""The details of what is under the cursor of the tree: facts, and below them tabs with the value and the slot."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from rtui.keyspace.text.display import SafeText
from rtui.server.facts.preview.page import Page
from rtui.tui.browse.detail_fetcher import Detail, DetailFetcher, Spawn
from rtui.tui.browse.detail_lines import KEY_TABS, DetailLines, Tab, summary_line
from rtui.tui.browse.row_facts import AFTER_EXPIRY_S
from rtui.tui.browse.session import Session
from rtui.tui.browse.tree_lines import Totals
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.layout import tab_line
from rtui.tui.kit.line_view import LinePanel, ScrollingPanel


class DetailPane(Vertical):
    """Shows the facts of one thing, with tabs; in one line, `summary`, where the terminal has no room for the pane."""

    DEFAULT_CSS = """
    DetailPane {
        & > #detail-head { height: 6; }
        & > #detail-tabs { height: 2; }
    }
    """

    class Changed(Message):
        """The details are of something else, or more of them has arrived."""

        def __init__(self, detail: Detail) -> None:
            super().__init__()
            self.detail = detail

    def __init__(self, session: Session, spawn: Spawn, totals: Callable[[], Totals], *, id: str | None = None) -> None:
        """`spawn` runs workers that fetch details; `whole` returns what shares are measured against."""
        super().__init__(id=id)
        self.fetcher = DetailFetcher(session, spawn, self._show)
        self.body = ScrollingPanel(id="detail-body")
        self.summary = Bar(id="summary")
        self.tab = Tab.VALUE
        self.shown: Detail | None = None
        """The detail on the screen."""
        self._head = LinePanel(id="detail-head")
        self._tabs = LinePanel(id="detail-tabs")
        self._titles: tuple[SafeText, ...] = ()
        self._clock = session.clock
        self._totals = totals

    def compose(self) -> ComposeResult:
        """Put the head, the tabs and the body under each other; the screen places the summary."""
        yield self._head
        yield self._tabs
        yield self.body

    @property
    def detail(self) -> Detail:
        """What is known at the moment, whether it is shown yet or not."""
        return self.fetcher.detail

    def _show(self, detail: Detail) -> None:
        """Show a detail, from the top of its body unless it is the one that was shown before."""
        if not self.is_attached:
            return
        lines = self._show_facts(detail)
        if detail is not self.shown:
            self.body.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.body.set_content(lines.body)
        self.shown = detail
        self.post_message(self.Changed(detail))

    def _show_facts(self, detail: Detail) -> DetailLines:
        """Show all but the body: what changes as time goes by. Returns the lines of the detail."""
        lines = DetailLines(detail, self._totals(), self.tab, self._clock())
        self._head.set_content(lines.head)
        self._titles = lines.tabs
        self._tabs.set_content(lambda width: [(), tab_line(lines.tabs, lines.chosen, lines.notes, width)])
        self.summary.set_line(lambda width: summary_line(lines.detail, lines.totals, width, lines.now_s))
        return lines

    def tick(self) -> None:
        """Show how far the time to live has run down and how old the facts are."""
        if self.shown is not None and self.shown.facts is not None:
            self._show_facts(self.shown)

    def refresh_expired(self) -> None:
        """Fetch the facts of a key again whose time to live has run out: it is gone, or its life was prolonged."""
        facts = self.detail.facts
        expires_at_s = None if facts is None else facts.expires_at_s
        if expires_at_s is not None and self._clock() >= expires_at_s + AFTER_EXPIRY_S:
            self.fetcher.refresh()

    def update_namespace(self, *, complete: bool) -> None:
        """Show the figures of a namespace as they are now; `complete` says that they are totals."""
        detail = self.detail
        if detail.row is not None and detail.key is None:
            self._show(detail)
            self.fetcher.recount(complete=complete)

    def on_click(self, event: events.Click) -> None:
        """Show the tab under the mouse."""
        if event.widget is not self._tabs or event.y != self._tabs.region.y - self.region.y:
            return
        x = 1
        for index, title in enumerate(self._titles):
            if x <= event.x - (self._tabs.region.x - self.region.x) < x + len(title) + 2:
                self.action_show_tab(index)
            x += len(title) + 3

    def action_show_tab(self, index: int) -> None:
        """Show a tab by its number."""
        self.tab = Tab(index % len(KEY_TABS))
        self.shown = None
        self._show(self.detail)

    def action_next_tab(self) -> None:
        """Show the next tab."""
        self.action_show_tab(self.tab + 1)

    def action_previous_tab(self) -> None:
        """Show the tab before."""
        self.action_show_tab(self.tab - 1)

    def action_next_page(self) -> None:
        """Fetch the next page of the value."""
        self._turn(None if self.detail.preview is None else self.detail.preview.next_page)

    def action_previous_page(self) -> None:
        """Fetch the page before."""
        self._turn(None if self.detail.preview is None else self.detail.preview.page.previous)

    def _turn(self, page: Page | None) -> None:
        if page is not None:
            self.fetcher.turn(page)

    def action_reload(self) -> None:
        """Fetch the facts and the value of the key again."""
        if self.detail.key is not None:
            self.fetcher.reload()
