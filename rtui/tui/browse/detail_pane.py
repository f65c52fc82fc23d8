"""The details of the row under the cursor of the tree: facts, and below them tabs with the value and the slot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from rtui.analysis.facts import RowFacts
from rtui.server.browsing.session import BrowsingSession
from rtui.tui.browse.decoder_choice import ChosenDecoders
from rtui.tui.browse.detail_fetcher import Detail, DetailFetcher
from rtui.tui.browse.detail_lines import head_lines, note_action, summary_line, tab_lines
from rtui.tui.browse.row_facts import AFTER_EXPIRY_S
from rtui.tui.browse.shown_value import Tab
from rtui.tui.browse.tree_lines import Totals
from rtui.tui.browse.value_pane import ValuePane
from rtui.tui.browse.value_writer import Run
from rtui.tui.browse.watching import UNCHANGED, FactChanges
from rtui.tui.kit.bars import LinkedBar, TabBar
from rtui.tui.kit.line_view import LinePanel

if TYPE_CHECKING:
    from rtui.registry.registry import Registry
    from rtui.tui.browse.registry_lines import RegistryLines


class DetailPane(Vertical):
    """Shows the facts of one thing, with tabs; in one line, `summary`, where the terminal has no room for the pane."""

    DEFAULT_CSS = """
    DetailPane {
        & > #detail-head { height: 6; }
        &.-registry > #detail-head { height: 9; }
        & > #detail-tabs { height: 2; }
    }
    """

    class Changed(Message):
        """The details are of something else, or more of them has arrived."""

        def __init__(self, detail: Detail) -> None:
            super().__init__()
            self.detail = detail

    def __init__(
        self,
        session: BrowsingSession,
        run: Run,
        totals: Callable[[], Totals],
        row_facts: Callable[[bytes], RowFacts | None],
        decoders: ChosenDecoders,
        *,
        registry: Registry | None = None,
        id: str | None = None,
    ) -> None:
        """`run` starts workers; `totals` returns what shares are measured against, `row_facts` what a row shows."""
        super().__init__(id=id)
        self._registry: RegistryLines | None = None
        if registry is not None:
            from rtui.tui.browse.registry_lines import RegistryLines  # noqa: PLC0415 - most keyspaces have no registry

            self._registry = RegistryLines(registry)
        self.fetcher = DetailFetcher(session, lambda work: run(work, "details"), self._show, row_facts, decoders)
        self.value = ValuePane(session, run, self.fetcher, totals, decoders, registry=self._registry)
        self.body = self.value.body
        self.summary = LinkedBar(lambda span: "browse.focus_next_pane", id="summary")
        self.tab = Tab.VALUE
        self.shown: Detail | None = None
        """The detail on the screen."""
        self.changes: FactChanges = UNCHANGED
        """The changes of the key, while it is watched."""
        self._head = LinePanel(id="detail-head")
        self._tabs = TabBar(note_action, id="detail-tabs")
        self._clock = session.clock
        self._totals = totals

    def compose(self) -> ComposeResult:
        """Put the head, the tabs and the body under each other; the screen places the summary."""
        yield self._head
        yield self._tabs
        yield self.value

    @property
    def detail(self) -> Detail:
        """The latest detail, whether it is shown yet or not."""
        return self.fetcher.detail

    @property
    def has_registry(self) -> bool:
        """Whether there is a registry, and so a tab of references."""
        return self._registry is not None

    @property
    def is_among_references(self) -> bool:
        """Whether the references of a key are shown and have the keyboard."""
        return self.tab is Tab.REFERENCES and self.detail.key is not None and self.value.has_keyboard

    def _show(self, detail: Detail) -> None:
        """Show a detail, from the top of its body unless it is the one that was shown before."""
        if not self.is_attached:
            return
        if detail.refused_place is not None and detail is not self.shown:
            self.app.notify(detail.refused_place, title="Go to", severity="warning", markup=False)
        self.value.show(detail, self.tab)
        self.shown = detail
        if self.tab is Tab.REFERENCES and self._registry is not None and detail.failure is None:
            self.fetcher.ask_references(self._registry.registry)
        self._show_facts(detail)
        self.post_message(self.Changed(detail))

    @on(ValuePane.Changed)
    def _value_changed(self, event: ValuePane.Changed) -> None:
        """Show beside the tabs what is shown of the value now, and offer what can be done with it."""
        event.stop()
        if self.shown is not None:
            self._show_facts(self.shown)
            self.post_message(self.Changed(self.shown))

    def _show_facts(self, detail: Detail) -> None:
        """Show all but the body: what changes as time goes by."""
        totals, now_s = self._totals(), self._clock()
        self.set_class(self._registry is not None and detail.key is not None, "-registry")
        value = self.value.value
        has_age = value.read_apart_at_s is not None
        head = partial(head_lines, changes=self.changes, registry=self._registry, has_age=has_age)
        self._head.set_content(partial(head, detail, totals, now_s))
        self._tabs.set_content(partial(tab_lines, value, now_s, has_registry=self.has_registry))
        self.summary.set_line(partial(summary_line, detail, totals, now_s))

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

    @on(TabBar.Chosen)
    def _tab_clicked(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.action_show_tab(event.index)

    def action_show_tab(self, index: int) -> None:
        """Show a tab by its number."""
        self.tab = Tab(index % (len(Tab) if self._registry is not None else Tab.REFERENCES))
        self.shown = None
        self._show(self.detail)

    def action_next_tab(self) -> None:
        """Show the next tab."""
        self.action_show_tab(self.tab + 1)

    def action_previous_tab(self) -> None:
        """Show the tab before."""
        self.action_show_tab(self.tab - 1)

    def action_next_page(self) -> None:
        """Fetch the next page of the value, or go to the next place of what was found in what is shown."""
        if self.value.find_next():
            return
        preview = self.fetcher.readable.preview
        if preview is None or preview.next_page is None:
            return
        if self.value.value.is_paged:
            self.fetcher.turn(preview.next_page)
        else:
            text = "What is decoded has no pages: d shows its bytes in pages, P all of it."
            self.app.notify(text, markup=False)

    def action_previous_page(self) -> None:
        """Fetch the page before."""
        preview = self.fetcher.readable.preview
        if preview is not None and preview.page.before is not None:
            self.fetcher.turn(preview.page.before)

    def action_reload(self) -> None:
        """Fetch the facts and the value of the key again."""
        if self.detail.key is not None:
            self.fetcher.reload()
