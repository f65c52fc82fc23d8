"""The main screen: the tree, the details of what is under its cursor, and how the scan is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, tzinfo
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.getters import query_one
from textual.screen import Screen
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from rtui.keyspace.display import SafeText
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.connection import Online
from rtui.server.copy import key_as_text
from rtui.server.errors import RtuiError
from rtui.server.progress import ScanState
from rtui.tui.columns import Column
from rtui.tui.commands import COMMANDS, Command, Scope, When, bindings, footer_commands
from rtui.tui.copying import copies
from rtui.tui.cursor_detail import CursorDetail, Detail, Work
from rtui.tui.ink import Line, Role, Span, cut_middle, own
from rtui.tui.lines.detail import KEY_TABS, DetailLines, Tab
from rtui.tui.lines.notice import notice_lines
from rtui.tui.lines.status import status_line
from rtui.tui.lines.summary import summary_line
from rtui.tui.lines.title import title_line
from rtui.tui.lines.tree_row import Whole
from rtui.tui.name_filter import NameFilter
from rtui.tui.offers import conditions
from rtui.tui.screens.choice import ChoiceScreen, ColumnsScreen
from rtui.tui.session import Session
from rtui.tui.shown import display, display_text
from rtui.tui.widgets.bars import Bar, FooterBar
from rtui.tui.widgets.detail_pane import DetailPane
from rtui.tui.widgets.filter_input import FilterInput
from rtui.tui.widgets.key_tree import KeyTree
from rtui.tui.widgets.tree_pane import TreePane

FLUSH_S: Final = 0.1
"""How often the screen looks whether anything has changed, while anything may."""

REST_S: Final = 1.0
"""How often it looks when nothing is under way."""


FILTER_HINT: Final[Line] = (
    Span(own(" enter"), Role.ACCENT),
    Span(own(" goes to that very key, or asks the server for a glob"), Role.MUTED),
    Span(own("  down"), Role.ACCENT),
    Span(own(" into the list"), Role.MUTED),
    Span(own("  esc"), Role.ACCENT),
    Span(own(" shows all"), Role.MUTED),
)
"""Stands in the footer while a filter is typed."""


class BrowseScreen(Screen[None]):
    """Binds a session to widgets; each handler is a few lines."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.BROWSE)]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - as Textual declares it
    AUTO_FOCUS = "#tree"
    ESCAPE_TO_MINIMIZE = False

    trees = query_one("#tree-pane", TreePane)
    pane = query_one("#detail", DetailPane)
    title_bar = query_one("#title", Bar)
    status_bar = query_one("#status", Bar)
    summary_bar = query_one("#summary", Bar)
    footer_bar = query_one("#footer", FooterBar)
    filter_input = query_one("#filter", FilterInput)

    def __init__(
        self,
        session: Session,
        *,
        label: SafeText | None = None,
        zone: tzinfo = UTC,
        is_filling: Callable[[], bool] | None = None,
    ) -> None:
        """`label` stands for the server's own in the title; `is_filling` says whether somebody still adds keys."""
        super().__init__()
        self.session = session
        self._label = label
        self._zone = zone
        self._is_filling = is_filling
        self._names = NameFilter(session.store)
        self._detail = CursorDetail(session, self._spawn_detail, self._show_detail)
        self._shown: Detail | None = None
        self._tab = Tab.VALUE
        self._seen: tuple[int, bool, bool] = (-1, False, False)
        self._shows_cost = False
        self._jump: Line = ()
        self._flush_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield Bar(id="title")
        with Horizontal(id="body"):
            yield TreePane(self.session.open_namespace, id="tree-pane")
            yield DetailPane(id="detail")
        yield Bar(id="summary")
        yield FilterInput()
        yield Bar(id="status")
        yield FooterBar(id="footer")

    def on_mount(self) -> None:
        """Show what there is and start looking for changes."""
        self._show_rows()
        self.session.on_change(lambda: self.call_later(self.flush))
        self.flush()

    # what changes by itself

    def flush(self) -> None:
        """Take up what has changed since the last look."""
        status = self.session.status
        revision = self.session.revision + self._names.revision
        if self._is_filling is not None and not self._is_filling():
            self._is_filling = None
            self._run(self.session.rescan(), "scan")
        before, self._seen = self._seen, (revision, status.sampled > 0, status.complete)
        if before[1:] != self._seen[1:]:
            self.trees.settle_order()
        if before != self._seen:
            self.trees.take_up(self._whole())
            needle = self._names.needle
            self.trees.explain(lambda width: notice_lines(status, needle, width))
            self._say_status()
            self._detail_again()
        elif not isinstance(status.link, Online):
            self._say_status()
        self._offer_commands()
        self._look_again(REST_S if self._is_at_rest(status) and before == self._seen else FLUSH_S)

    def _is_at_rest(self, status: BrowsingStatus) -> bool:
        """Say whether hardly anything can change by itself: only the server's own figures, now and then."""
        is_over = status.progress.state.is_over or status.progress.state is ScanState.PAUSED
        is_known = isinstance(status.link, Online) and self._is_filling is None
        return is_over and is_known and not self._names.is_searching

    def _look_again(self, after_s: float) -> None:
        """Look at the session once more after a while; a look that was due later is taken back."""
        if self._flush_timer is not None:
            self._flush_timer.stop()
        self._flush_timer = self.set_timer(after_s, self.flush)

    def _whole(self) -> Whole:
        """Return what shares are parts of."""
        status, store = self.session.status, self._names.rows.store
        total = None if self._names.needle is not None else status.total
        expected = float(total) if isinstance(total, int) else None if total is None else total.value
        return Whole(store.keys, complete=status.complete and not self._names.is_searching, expected_keys=expected)

    def _say_status(self) -> None:
        """Say who the server is and how the scan is doing."""
        status, now = self.session.status, asyncio.get_running_loop().time()
        filling = own("the demo is being loaded") if self._is_filling is not None else None
        self.title_bar.tell(lambda width: title_line(status, width, self._label))
        self.status_bar.tell(lambda width: status_line(status, now, width, shows_cost=self._shows_cost, note=filling))

    def _show_rows(self) -> None:
        """Show the rows of the keyspace, or of what its names are filtered by."""
        separators = b" ".join(self.session.store.separators.values)
        if self._names.needle is None:
            self.trees.show(self._names.rows, SafeText(f"Namespaces  {display(separators)}"), cursor=self._names.cursor)
        else:
            title = SafeText(f"Names with {display(self._names.needle, limit=40)}")
            self.trees.show(self._names.rows, title, is_filter=True)
        self._seen = (-1, *self._seen[1:])

    # what the user does in the tree

    @on(KeyTree.Highlighted)
    def _follow_cursor(self, event: KeyTree.Highlighted) -> None:
        self._detail.show(event.row)

    @on(KeyTree.Chosen)
    def _enter_detail(self) -> None:
        self.add_class("-reading")
        self.pane.body.focus()

    @on(KeyTree.Jumping)
    def _say_jump(self, event: KeyTree.Jumping) -> None:
        self._jump = ()
        if event.typed is not None:
            self._jump = (Span(own(" jump to "), Role.MUTED), Span(display_text(event.typed + "_"), Role.ACCENT))
        self._offer_commands()

    @on(TreePane.FactsWanted)
    def _want_facts(self, event: TreePane.FactsWanted) -> None:
        if isinstance(self.session.status.link, Online):
            self._run(self._fetch_facts(event.keys), "row facts")

    async def _fetch_facts(self, keys: list[bytes]) -> None:
        self.trees.put_facts(await self.session.row_facts(keys))

    # the details

    def _spawn_detail(self, work: Work) -> Worker[None]:
        return self.run_worker(work, group="detail", exit_on_error=False, description="details")

    def _show_detail(self, detail: Detail) -> None:
        """Show what has come of the thing under the cursor."""
        whole = self._whole()
        lines = DetailLines(detail, whole, self._tab, self._zone)
        self.pane.show_head(lines.head)
        self.pane.show_tabs(lines.tabs, lines.chosen, lines.note)
        self.pane.show_body(lines.body, from_top=detail is not self._shown)
        self._shown = detail
        self.summary_bar.tell(lambda width: summary_line(detail, whole, width))
        self._offer_commands()

    def _detail_again(self) -> None:
        """Show the figures of a namespace as they are now."""
        detail = self._detail.detail
        if detail.row is not None and detail.key is None:
            self._show_detail(detail)
            self._detail.look_again(complete=self.session.status.complete)

    @on(DetailPane.TabClicked)
    def _tab_clicked(self, event: DetailPane.TabClicked) -> None:
        self._choose_tab(event.index)

    def _choose_tab(self, index: int) -> None:
        self._tab = Tab(index % len(KEY_TABS))
        self._shown = None
        self._show_detail(self._detail.detail)

    def action_value_tab(self) -> None:
        """Show the value."""
        self._choose_tab(Tab.VALUE)

    def action_slot_tab(self) -> None:
        """Show the slot."""
        self._choose_tab(Tab.SLOT)

    def action_next_tab(self) -> None:
        """Show the next tab."""
        self._choose_tab(self._tab + 1)

    def action_previous_tab(self) -> None:
        """Show the tab before."""
        self._choose_tab(self._tab - 1)

    def action_next_page(self) -> None:
        """Fetch the next page of the value."""
        preview = self._detail.detail.preview
        if preview is not None and preview.next_page is not None:
            self._detail.turn(preview.next_page)

    def action_previous_page(self) -> None:
        """Fetch the page before."""
        preview = self._detail.detail.preview
        if preview is not None and preview.previous_page is not None:
            self._detail.turn(preview.previous_page)

    def action_reload(self) -> None:
        """Ask for facts and value again."""
        key = self._detail.detail.key
        if key is not None:
            self.trees.forget_facts(key)
            self._detail.reload()

    # the scan

    def action_pause(self) -> None:
        """Hold the scan, or go on with it."""
        if self.session.status.progress.state is ScanState.PAUSED:
            self.session.resume()
        else:
            self.session.pause()
        self._say_status()

    def action_faster(self) -> None:
        """Take the next faster pace."""
        self.session.faster()
        self._say_status()

    def action_slower(self) -> None:
        """Take the next slower pace."""
        self.session.slower()
        self._say_status()

    def action_cost(self) -> None:
        """Show or hide what the server was asked for in all."""
        self._shows_cost = not self._shows_cost
        self._say_status()

    def action_rescan(self) -> None:
        """Begin again."""
        self.trees.forget_facts()
        self._run(self.session.rescan(), "scan")

    # filters

    def action_filter(self) -> None:
        """Type a filter."""
        self.filter_input.open()
        self._offer_commands()

    def action_leave_filter(self) -> None:
        """Go into what was found so far."""
        self._close_filter()

    @on(FilterInput.Changed)
    def _filter_changes(self, event: FilterInput.Changed) -> None:
        """Search the names that are loaded while a filter is typed; a glob has to wait for Enter."""
        if self.filter_input.is_open and not self.filter_input.is_glob:
            self._search(event.value)

    @on(FilterInput.Submitted)
    def _filter_typed(self, event: FilterInput.Submitted) -> None:
        text = event.value.encode("utf-8", "surrogateescape")
        is_glob = self.filter_input.is_glob
        self._close_filter()
        if is_glob:
            self._search("")
            self._run(self.session.filter(text), "filter")
        elif text:
            self._run(self._look_up(text), "look up")

    def _search(self, text: str) -> None:
        """Show the names with this text, or all."""
        self._names.choose(text.encode("utf-8", "surrogateescape"), self.trees.key_tree.cursor)
        self._show_rows()
        if self._names.needle is not None:
            self._run(self._names.work(), "search")

    async def _look_up(self, name: bytes) -> None:
        """Go to the key of exactly this name, if there is one."""
        if await self.session.lookup(name):
            with self.trees.key_tree.prevent(KeyTree.Highlighted):  # the row that the tree falls back to is not wanted
                self._search("")
            self._detail.show_key(name)
            self.trees.reveal(name)

    def action_clear_filter(self) -> None:
        """Show everything again."""
        if self._names.needle is not None:
            self._search("")
        if self.session.status.match is not None:
            self._run(self.session.filter(None), "filter")

    def _close_filter(self) -> None:
        self.filter_input.close()
        self.trees.key_tree.focus()
        self._offer_commands()

    # panes

    def action_focus_next_pane(self) -> None:
        """Give the keyboard to the other pane."""
        if self.pane.body.has_focus:
            self.action_back()
        else:
            self._enter_detail()

    def action_back(self) -> None:
        """Go back one step."""
        if self.filter_input.is_open:
            self._close_filter()
            self._search("")
        elif self.pane.body.has_focus or self.has_class("-reading"):
            self.remove_class("-reading")
            self.trees.key_tree.focus()
        else:
            self.action_clear_filter()

    # copies and columns

    def _name_at_cursor(self) -> bytes | None:
        row, key = self.trees.key_tree.cursor, self._detail.detail.key
        return row.key() if row is not None else key

    def action_copy_name(self) -> None:
        """Copy the name of what is under the cursor as text."""
        name = self._name_at_cursor()
        if name is not None:
            self._copy(key_as_text(name))

    def action_copy_menu(self) -> None:
        """Choose what to copy."""
        name, facts = self._name_at_cursor(), self._detail.detail.facts
        if name is None:
            return
        entries = copies(self.session.target, name, facts if facts is not None and facts.key == name else None)

        def chosen(index: int | None) -> None:
            if index is not None:
                self._copy(entries[index].text)

        self.app.push_screen(ChoiceScreen(own("Copy"), [entry.title for entry in entries]), chosen)

    def _copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)
        self.notify(cut_middle(display_text(text), 60), title="Copied", markup=False, timeout=2)

    def action_columns(self) -> None:
        """Choose columns."""

        def change(columns: frozenset[Column]) -> None:
            self.trees.choose_columns(columns)

        self.app.push_screen(ColumnsScreen(self.trees.columns, change))

    # commands

    def _holds(self) -> frozenset[When]:
        status = self.session.status
        is_filtered = self._names.needle is not None or status.match is not None
        return conditions(status, self._detail.detail, self.trees.key_tree.cursor, is_filtered=is_filtered,
                          is_reading=self.pane.body.has_focus)  # fmt: skip

    def offered(self) -> list[Command]:
        """Return the commands that make sense just now."""
        holds = self._holds()
        return [command for command in COMMANDS if command.scope is not Scope.CONNECT and command.offered(holds)]

    def _offer_commands(self) -> None:
        if self.filter_input.is_open:
            self.footer_bar.offer((), FILTER_HINT)
            return
        scopes = [Scope.BROWSE, Scope.APP, *([] if self.pane.body.has_focus else [Scope.TREE])]
        self.footer_bar.offer(footer_commands(scopes, self._holds()), self._jump)

    @on(FooterBar.Clicked)
    async def _footer_clicked(self, event: FooterBar.Clicked) -> None:
        await self.carry_out(event.command)

    async def carry_out(self, command: Command) -> None:
        """Carry out a command wherever it belongs."""
        if command.scope is Scope.TREE:
            await self.trees.key_tree.run_action(command.id)
        elif command.scope is Scope.APP:
            await self.app.run_action(command.id)
        else:
            await self.run_action(command.id)

    # work

    def _run(self, work: Coroutine[Any, Any, object], what: str) -> None:
        """Do something that takes round trips; newer work of the same kind replaces it."""
        self.run_worker(work, group=what, exclusive=True, exit_on_error=False, description=what)

    @on(Worker.StateChanged)
    def _worker_ended(self, event: Worker.StateChanged) -> None:
        """Look at what has come of it; turn a failure into a message, but a lost connection is in the status bar."""
        if event.worker.is_finished:
            self.call_later(self.flush)
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            text = error.happened if isinstance(error, RtuiError) else display_text(type(error).__name__)
            if isinstance(self.session.status.link, Online):
                self.notify(text, title=event.worker.description, severity="error", markup=False)
