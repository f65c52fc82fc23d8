"""The main screen: the tree, the details of what is under its cursor, and how the scan is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, tzinfo
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.getters import query_one
from textual.screen import Screen
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from rtui.keyspace.display import SafeText, display, display_text
from rtui.keyspace.glob import containing_pattern, literal_name
from rtui.keyspace.ordering import Sort
from rtui.keyspace.rows import Kind, VisibleRows
from rtui.server.connection import Online
from rtui.server.copy import key_as_text
from rtui.server.errors import RtuiError
from rtui.server.progress import ScanState
from rtui.tui.columns import ALL_COLUMNS, FACT_COLUMNS, Column
from rtui.tui.commands import COMMANDS, Command, Scope, When, bindings, footer_commands
from rtui.tui.copying import copies
from rtui.tui.cursor_detail import CursorDetail, Detail
from rtui.tui.ink import Line, Role, Span, cut_middle, own
from rtui.tui.lines.detail import KEY_TABS, DetailLines, Tab
from rtui.tui.lines.status import status_line
from rtui.tui.lines.summary import summary_line
from rtui.tui.lines.title import title_line
from rtui.tui.lines.tree_header import header_line
from rtui.tui.lines.tree_row import Whole
from rtui.tui.row_facts import RowFactsCache
from rtui.tui.screens.choice import ChoiceScreen, ColumnsScreen
from rtui.tui.session import Session
from rtui.tui.tree_work import TreeWork
from rtui.tui.widgets.bars import Bar, FooterBar
from rtui.tui.widgets.detail_pane import DetailPane
from rtui.tui.widgets.filter_input import FilterInput
from rtui.tui.widgets.key_tree import KeyTree
from rtui.tui.widgets.line_panel import LinePanel

FLUSH_S: Final = 0.1
"""How often the screen looks whether anything has changed, while anything may."""

FACTS_REST_S: Final = 0.1
"""Rows must be in view for so long before their facts are asked for."""


class BrowseScreen(Screen[None]):
    """Binds a session to widgets; each handler is a few lines."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.BROWSE)]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012
    AUTO_FOCUS = "#tree"
    ESCAPE_TO_MINIMIZE = False

    tree = query_one("#tree", KeyTree)
    pane = query_one("#detail", DetailPane)
    header_panel = query_one("#tree-header", LinePanel)
    title_bar = query_one("#title", Bar)
    status_bar = query_one("#status", Bar)
    summary_bar = query_one("#summary", Bar)
    footer_bar = query_one("#footer", FooterBar)
    filter_input = query_one("#filter", FilterInput)

    def __init__(self, session: Session, *, zone: tzinfo = UTC) -> None:
        super().__init__()
        self.session = session
        self._zone = zone
        self._rows = VisibleRows(session.store)
        self._facts = RowFactsCache()
        self._detail = CursorDetail(session, self._show_detail)
        self._tab = Tab.VALUE
        self._columns = ALL_COLUMNS
        self._seen_revision = -1
        self._shows_cost = False
        self._jump: Line = ()
        self._shown: Detail | None = None
        self._facts_timer: Timer | None = None
        self._flush_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield Bar(id="title")
        with Horizontal(id="body"):
            with Vertical(id="tree-pane"):
                yield LinePanel(id="tree-header")
                yield KeyTree(id="tree")
                yield Bar(id="summary")
            yield DetailPane(id="detail")
        yield FilterInput()
        yield Bar(id="status")
        yield FooterBar(id="footer")

    def on_mount(self) -> None:
        """Show what there is and start looking for changes."""
        self.work = TreeWork(self.session, self._rows, self.tree)
        self.tree.show(self._rows, self._facts.facts)
        self._flush_timer = self.set_interval(FLUSH_S, self.flush)
        self.flush()

    def on_unmount(self) -> None:
        """Ask for nothing more."""
        self._detail.stop()
        self.work.stop()

    # what changes by itself

    def flush(self) -> None:
        """Take up what has changed since the last look; rest when nothing can change any more."""
        status = self.session.status
        revision = self.session.revision
        if revision != self._seen_revision:
            self._seen_revision = revision
            self.tree.measure_against(self._whole())
            with self.tree.keeping_place():
                pass
            self._say_status()
            self._detail_again()
        elif not isinstance(status.link, Online):
            self._say_status()
        self._offer_commands()

    def _whole(self) -> Whole:
        """Return what shares are parts of."""
        status, store = self.session.status, self.session.store
        total = status.total
        expected = float(total) if isinstance(total, int) else None if total is None else total.value
        return Whole(store.keys, complete=status.complete, expected_keys=expected)

    def _say_status(self) -> None:
        """Say who the server is and how the scan is doing."""
        status, now = self.session.status, asyncio.get_running_loop().time()
        self.title_bar.say(lambda width: title_line(status, width))
        self.status_bar.say(lambda width: status_line(status, now, width, shows_cost=self._shows_cost))

    # what the user does in the tree

    @on(KeyTree.Highlighted)
    def _follow_cursor(self, event: KeyTree.Highlighted) -> None:
        self._detail.show(event.row)

    @on(KeyTree.Chosen)
    def _enter_detail(self) -> None:
        self.add_class("-reading")
        self.pane.body.focus()

    @on(KeyTree.OpenRequested)
    def _open(self, event: KeyTree.OpenRequested) -> None:
        self.work.open(event.node, below=event.below)

    @on(KeyTree.SortRequested)
    def _sort(self, event: KeyTree.SortRequested) -> None:
        order = self._rows.sort_order
        if not event.again:
            order = Sort.NAME if order is Sort.COUNT else Sort.COUNT
        self.work.sort(order)
        self._say_header()

    @on(KeyTree.Jumping)
    def _jump_to(self, event: KeyTree.Jumping) -> None:
        if event.typed is None:
            self._jump = ()
        else:
            self._jump = (Span(own(" jump to "), Role.MUTED), Span(display_text(event.typed + "_"), Role.ACCENT))
            self.work.jump(event.typed)
        self._offer_commands()

    @on(KeyTree.ViewChanged)
    def _view_changed(self) -> None:
        self._say_header()
        if self._facts_timer is not None:
            self._facts_timer.stop()
        self._facts_timer = self.set_timer(FACTS_REST_S, self._want_facts)

    def _say_header(self) -> None:
        """Say what the columns are."""
        title = display_text(b" ".join(self.session.store.separators.values).decode("utf-8", "backslashreplace"))
        name = SafeText(f"Namespaces  {title}")
        self.header_panel.show([header_line(self.tree.plan, self._rows.sort_order, name)])

    # facts of the rows in view

    def _want_facts(self) -> None:
        """Ask for the facts of the keys in view that are not known yet."""
        shown = any(place.key in FACT_COLUMNS for place in self.tree.plan.places)
        missing = self._facts.missing(self.tree.rows_in_view) if shown else []
        if missing and isinstance(self.session.status.link, Online):
            self.run_worker(
                self._fetch_facts(missing), group="facts", exclusive=True, exit_on_error=False, description="row facts"
            )

    async def _fetch_facts(self, keys: list[bytes]) -> None:
        try:
            found = await self.session.row_facts(keys)
        except RtuiError:
            return
        self._facts.put(found)
        self.tree.repaint_changes()

    # the details

    def _show_detail(self, detail: Detail) -> None:
        """Show what has come of the thing under the cursor."""
        if not self.is_attached:
            return
        whole = self._whole()
        lines = DetailLines(detail, whole, self._tab, self._zone)
        self.pane.show_head(lines.head)
        self.pane.show_tabs(lines.tabs, lines.chosen, lines.note)
        self.pane.show_body(lines.body, from_top=detail is not self._shown)
        self._shown = detail
        self.summary_bar.say(lambda width: summary_line(detail, whole, width))
        self._offer_commands()

    def _detail_again(self) -> None:
        """Show the figures of a namespace as they are now."""
        if self._detail.detail.row is not None and self._detail.detail.key is None:
            self._show_detail(self._detail.detail)

    @on(DetailPane.TabClicked)
    def _tab_clicked(self, event: DetailPane.TabClicked) -> None:
        self._choose_tab(event.index)

    def _choose_tab(self, index: int) -> None:
        """Show another tab of the details."""
        self._tab = Tab(index % len(KEY_TABS))
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
            self._facts.forget(key)
            self._detail.reload()
            self._want_facts()

    # the scan

    def action_pause(self) -> None:
        """Hold the scan, or go on with it."""
        if self.session.status.progress.state is ScanState.PAUSED:
            self.session.resume()
        else:
            self.session.pause()
        self.flush()

    def action_faster(self) -> None:
        """Take the next faster pace."""
        self.session.faster()
        self.flush()

    def action_slower(self) -> None:
        """Take the next slower pace."""
        self.session.slower()
        self.flush()

    def action_cost(self) -> None:
        """Show or hide what the server was asked for in all."""
        self._shows_cost = not self._shows_cost
        self._say_status()

    def action_rescan(self) -> None:
        """Begin again."""
        self._facts.forget()
        self._run(self.session.rescan(), "scan again")

    # panes

    def action_focus_next_pane(self) -> None:
        """Give the keyboard to the other pane."""
        if self.pane.body.has_focus:
            self.action_back()
        else:
            self._enter_detail()

    def action_back(self) -> None:
        """Go back one step."""
        if self.filter_input.has_focus or self.filter_input.has_class("-open"):
            self.filter_input.close()
            self.tree.focus()
        elif self.pane.body.has_focus or self.has_class("-reading"):
            self.remove_class("-reading")
            self.tree.focus()
        elif self.session.status.match is not None:
            self.action_clear_filter()

    def _run(self, work: Coroutine[Any, Any, object], what: str) -> None:
        """Do something that takes round trips; a failure becomes a message."""
        self.run_worker(work, group=what, exclusive=True, exit_on_error=False, description=what)

    @on(Worker.StateChanged)
    def _worker_ended(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            text = error.happened if isinstance(error, RtuiError) else display_text(type(error).__name__)
            self.notify(text, title=event.worker.description, severity="error", markup=False)

    # filters

    def action_filter(self) -> None:
        """Type a filter."""
        self.filter_input.open()

    @on(FilterInput.Submitted)
    def _filter_typed(self, event: FilterInput.Submitted) -> None:
        self.filter_input.close()
        self.tree.focus()
        self._run(self._filter(event.value.encode("utf-8", "surrogateescape")), "filter")

    async def _filter(self, text: bytes) -> None:
        """Go to a key of exactly this name, or have the server filter."""
        if not text:
            await self.session.filter(None)
            return
        name = literal_name(text)
        if name is not None and await self.session.lookup(name):
            self._detail.show_key(name)
            self.work.reveal(name)
            return
        pattern = containing_pattern(name) if name is not None else text
        await self.session.filter(pattern)

    def action_clear_filter(self) -> None:
        """Show everything again."""
        self._run(self.session.filter(None), "filter")

    # copies

    def action_copy_name(self) -> None:
        """Copy the name of what is under the cursor as text."""
        row, key = self.tree.cursor, self._detail.detail.key
        name = row.key() if row is not None else key
        if name is not None:
            self.app.copy_to_clipboard(key_as_text(name))
            self.notify(display(name, limit=60), title="Copied", markup=False, timeout=2)

    def action_copy_menu(self) -> None:
        """Choose what to copy."""
        key, facts = self._detail.detail.key, self._detail.detail.facts
        row = self.tree.cursor
        name = key if key is not None else row.key() if row is not None else None
        if name is None:
            return
        entries = copies(self.session.target, name, facts)

        def chosen(index: int | None) -> None:
            if index is not None:
                self.app.copy_to_clipboard(entries[index].text)
                self.notify(cut_middle(entries[index].text, 80), title="Copied", markup=False, timeout=3)

        self.app.push_screen(ChoiceScreen(own("Copy"), [entry.title for entry in entries]), chosen)

    def action_columns(self) -> None:
        """Choose columns."""

        def change(columns: frozenset[Column]) -> None:
            self._columns = columns
            self.tree.choose_columns(columns)

        self.app.push_screen(ColumnsScreen(self._columns, change))

    # commands

    def _holds(self) -> frozenset[When]:
        """Say what holds just now, for the commands that depend on it."""
        state = self.session.status.progress.state
        detail = self._detail.detail
        row = self.tree.cursor
        preview = detail.preview
        conditions = {
            When.SCANNING: state in (ScanState.RUNNING, ScanState.READY, ScanState.SAMPLING, ScanState.WAITING),
            When.PAUSED: state is ScanState.PAUSED,
            When.SCAN_ENDED: state.is_over,
            When.ON_KEY: detail.key is not None,
            When.ON_NAMESPACE: row is not None and row.kind is Kind.NAMESPACE,
            When.PAGES: preview is not None and bool(preview.next_page or preview.previous_page),
            When.DETAIL_OPEN: self.pane.body.has_focus,
            When.FILTERED: self.session.status.match is not None,
        }
        return frozenset(condition for condition, holds in conditions.items() if holds)

    def offered(self) -> list[Command]:
        """Return the commands that make sense just now."""
        holds = self._holds()
        return [c for c in COMMANDS if c.scope in (Scope.TREE, Scope.BROWSE, Scope.APP) and c.offered(holds)]

    def _offer_commands(self) -> None:
        """Show the commands of the moment."""
        scopes = [Scope.BROWSE, Scope.APP]
        if not self.pane.body.has_focus:
            scopes.insert(0, Scope.TREE)
        self.footer_bar.offer(footer_commands(scopes, self._holds()), self._jump)

    @on(FooterBar.Clicked)
    async def _footer_clicked(self, event: FooterBar.Clicked) -> None:
        await self.carry_out(event.command)

    async def carry_out(self, command: Command) -> None:
        """Carry out a command wherever it belongs."""
        if command.scope is Scope.TREE:
            await self.tree.run_action(command.id)
        elif command.scope is Scope.APP:
            await self.app.run_action(command.id)
        else:
            await self.run_action(command.id)
