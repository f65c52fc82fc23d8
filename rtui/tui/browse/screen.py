"""The main screen: the tree, the details of the key or namespace under its cursor, and the status of the scan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.widget import Widget
from textual.worker import Worker

from rtui.analysis.facts import KeyFacts
from rtui.analysis.humanize import counted
from rtui.keyspace.rows.rows import Row
from rtui.server.browsing.session import BrowsingSession
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.user.copying import key_as_text
from rtui.server.wire.connection import Online
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.columns import TreeColumn
from rtui.tui.browse.commands import BROWSE_COMMANDS, SHARED
from rtui.tui.browse.detail_pane import DetailPane, browse_conditions
from rtui.tui.browse.document import ChosenDecoders
from rtui.tui.browse.fact_lines import together_lines
from rtui.tui.browse.key_tree import KeyTree, TreeRows
from rtui.tui.browse.panes import REFUSED, Panes, PaneWatch, StatusBar
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.browse.tree_search import TreeFilter, TreePlaces, TreeSearch
from rtui.tui.browse.value_pane import ValuePane
from rtui.tui.browse.value_view import ItemKind, prompt_hint
from rtui.tui.kit.bars import Banner, FilterInput, TitleBar
from rtui.tui.kit.choice import SwitchScreen, TextCard
from rtui.tui.kit.clipboard import Copy, choose_copy, copies, copy_text
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Owner, bindings
from rtui.tui.kit.command_screen import AT_ONCE_S, FLUSH_S, REST_S, CommandScreen, KeysWanted, ServerLeft, TreePlace
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.status_lines import browse_banner, title_line
from rtui.tui.kit.styled_text import Line, Role, Span, literal

if TYPE_CHECKING:
    from rtui.registry.registry import Registry

COVERED: Final = frozenset({*(f"{Owner.BROWSE}.{one}" for one in SHARED.values()), f"{Owner.BROWSE}.columns"})
"""Commands that are not in the footer while the value has the focus: its own commands have their keys."""

OF_VALUE: Final = (Owner.VALUE, Owner.DETAIL, Owner.BROWSE)
"""The owners of commands that come first in the footer while the value has the focus."""

IN_SCHEMA: Final = {f"{Owner.TREE}.enter": "Keys", f"{Owner.BROWSE}.schema": "Names"}
"""The labels of commands in the footer while the schema is shown."""

TICK_S: Final = 0.95
"""Interval in seconds at which times and ages are shown anew: a little less than a second, so that none is skipped."""

NOTHING_SHOWN: Final = (-1, False, False)
"""`BrowseScreen._shown` before anything was shown, or when all has to be shown again."""

ROW_FACTS: Final = "row facts"
"""The group of the workers that fetch the facts of rows."""


class BrowseScreen(CommandScreen[None]):
    """Binds a session to the tree, the details and the bars."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BROWSE_COMMANDS, Owner.BROWSE, Owner.DETAIL, Owner.SCAN, Owner.APP)
    SCREEN_COMMANDS = (*BROWSE_COMMANDS, *APP_COMMANDS)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 - as Textual declares it
    AUTO_FOCUS = "#tree"

    def __init__(
        self,
        session: BrowsingSession,
        *,
        is_filling: Callable[[], bool] | None = None,
        settings: SettingsFile | None = None,
        registry: Registry | None = None,
        leads_back: bool = False,
    ) -> None:
        """`is_filling` returns whether keys are still being added.

        `leads_back` is whether Escape leaves the server.
        """
        super().__init__()
        self._leads_back = leads_back
        self.session = session
        self.settings = SettingsFile() if settings is None else settings
        self.tree_pane = TreePane(session, self.settings.settings.tree.sort)
        if (columns := self.settings.settings.tree.columns) is not None:
            self.tree_pane.key_tree.columns = frozenset(map(TreeColumn, columns))
        pane = self.tree_pane
        decoders = ChosenDecoders(self.settings, session.store.separators)
        self.detail_pane = DetailPane(session, self._run, pane.totals, pane.row_facts, decoders, registry=registry)
        remember_width = partial(self.settings.choose, "tree.width")
        self.panes = Panes(pane, self.detail_pane, self.settings.settings.tree.width, remember_width)
        self.title_bar = TitleBar()
        self.status_bar = StatusBar(session, is_filling)
        self.banner = Banner("browse.rescan")
        self._shown = NOTHING_SHOWN
        self._ticked_at_s = 0.0
        self._generation = session.status.generation
        self._listed_facts: KeyFacts | None = None
        self._jump: Line = ()
        self._told_log_failure = False
        self.pane_watch = PaneWatch(session, self.tree_pane, self.detail_pane, self.status_bar)
        self.search = TreeSearch(session, self.tree_pane, self.detail_pane, self._run, self._show_all_again)
        self.filter_input = TreeFilter(session, self.search, self.settings, self._run, self.action_leave_filter)
        self.places = TreePlaces(self, self.tree_pane, self.detail_pane, self.search, self.filter_input)

    def compose(self) -> ComposeResult:
        yield self.title_bar
        yield self.banner
        yield self.panes
        yield self.detail_pane.summary
        yield self.filter_input.hint
        yield self.filter_input
        yield self.status_bar
        yield self.footer_bar

    def on_mount(self) -> None:
        self.tree_pane.show_rows()
        self.session.on_change(lambda: self.call_later(self.flush))
        self.show_changes()

    # polling

    def show_changes(self) -> None:
        if self.tree_pane.follow_store():
            self._show_all_again()
        status, names = self.session.status, self.tree_pane.names
        if self.status_bar.has_just_been_filled():
            self.action_rescan()
        before = self._shown
        self._shown = (self.session.revision + names.revision, status.sampled > 0, status.complete)
        if before[1:] != self._shown[1:] and not status.progress.state.is_over:
            self.tree_pane.work.sort_untouched()
        self.tree_pane.work.sort_at_end()
        has_figures_changed = self.tree_pane.show_figures()
        self.tree_pane.show_nodes()
        if before != self._shown or has_figures_changed:
            self.tree_pane.update_rows()
            self.detail_pane.update_namespace(complete=status.complete)
        if before != self._shown or not isinstance(status.link, Online):
            self._show_status()
        if self.session.log.failure is not None and not self._told_log_failure:
            self._told_log_failure = True
            self.notify(self.session.log.failure, title="Command log", severity="warning", markup=False, timeout=10)
        self._tick(status)
        if isinstance(status.link, Online) and status.generation != self._generation:
            self._generation = status.generation  # after a reconnection: it may be another server
            self.tree_pane.invalidate_facts()
            self.detail_pane.fetcher.refresh(at_once=True)
        self.offer_commands()
        is_working = names.is_searching or self.tree_pane.ranking.is_under_way or self.tree_pane.schema.is_reading
        is_at_rest = before == self._shown and self.status_bar.is_at_rest and not is_working
        self.flush_after(REST_S if is_at_rest else FLUSH_S)

    def _show_all_again(self) -> None:
        self._shown = NOTHING_SHOWN

    def _show_status(self) -> None:
        status = self.session.status
        self.banner.show_warning(browse_banner(status))
        self.title_bar.set_line(lambda width: title_line(status, width))
        self.status_bar.show_status()

    def _tick(self, status: BrowsingStatus) -> None:
        """Once a second, while this screen is on top, show facts as they are now and fetch expired ones."""
        now_s = asyncio.get_running_loop().time()
        if not self.is_current or now_s - self._ticked_at_s < TICK_S:
            return
        self._ticked_at_s = now_s
        self.tree_pane.key_tree.repaint_changes()
        self.detail_pane.tick()
        self._show_status()
        is_fetching = any(worker.group == ROW_FACTS and worker.is_running for worker in self.workers)
        if isinstance(status.link, Online) and not is_fetching:
            self.tree_pane.refresh_expired()
            self.detail_pane.refresh_expired()
        self.pane_watch.tick(is_ready=isinstance(status.link, Online) and not is_fetching)

    @on(events.ScreenResume)
    def _resumed(self) -> None:
        self._ticked_at_s = 0.0
        self.call_later(self.flush)

    # messages of the tree

    @on(TreeRows.Highlighted)
    def _follow_cursor(self, event: TreeRows.Highlighted) -> None:
        if self.tree_pane.is_schema:
            self.detail_pane.fetcher.show_level(self.places.level)
            self.offer_commands()
        elif event.row is None or isinstance(event.row, Row):
            self.detail_pane.fetcher.show(event.row)

    @on(TreeRows.Chosen)
    def _enter_row(self) -> None:
        if self.tree_pane.is_schema:
            self.leave_place()
            self.action_keys()
        else:
            self._enter_detail()

    @on(DetailPane.Wanted)
    def _enter_detail(self) -> None:
        self.leave_place()
        self.places.enter_detail()

    @on(KeyTree.Jumping)
    def _show_jump(self, event: KeyTree.Jumping) -> None:
        prompt = Span(literal(" jump to "), Role.MUTED)
        self._jump = () if event.typed is None else (prompt, Span(display_text(event.typed + "_"), Role.ACCENT))
        self.offer_commands()

    @on(TreePane.FactsWanted)
    def _want_facts(self, event: TreePane.FactsWanted) -> None:
        async def fetch() -> None:
            found = await self.session.keys.row_facts(event.keys, with_more=event.with_more)
            self.tree_pane.put_facts(found)
            self.pane_watch.learn_rows(found)
            shown = self.detail_pane.detail.facts
            if shown is not None and not shown.is_gone and any(one.is_gone and one.key == shown.key for one in found):
                self.detail_pane.fetcher.refresh()

        if isinstance(self.session.status.link, Online):
            self._run(fetch, ROW_FACTS)

    @on(DetailPane.Changed)
    def _detail_changed(self, event: DetailPane.Changed) -> None:
        facts = event.detail.facts
        if facts is not None and facts is not self._listed_facts:
            self._listed_facts = facts
            self.pane_watch.learn(facts)
            self.tree_pane.put_facts([facts.row])
        self.offer_commands()

    # marked keys

    @on(KeyTree.MarksChanged)
    def _show_marks(self) -> None:
        self.status_bar.marked = len(self.tree_pane.key_tree.marked)
        self.status_bar.show_status()
        self.offer_commands()

    def action_together(self) -> None:
        if marked := list(self.tree_pane.key_tree.marked):
            lines = partial(together_lines, marked, self.session.status, self.session.store.separators)
            self.app.push_screen(TextCard(f"{counted(len(marked), 'marked key')}", "together", lines))

    # the schema

    def action_schema(self) -> None:
        if self.tree_pane.is_schema:
            self.tree_pane.leave_schema()
        else:
            self.tree_pane.show_schema()
        if not self.detail_pane.value.has_keyboard:
            self.set_focus(self.tree_pane.view)
        self.offer_commands()
        self.flush_after(AT_ONCE_S)

    # watching

    def action_watch(self) -> None:
        """Watch the key under the cursor or in the details, or the keys in view of an open namespace; or end that."""
        if self.tree_pane.is_schema or not self.pane_watch.toggle():
            self.notify(REFUSED, title="Not watched", markup=False, timeout=8)
        self._ticked_at_s = 0.0
        self.flush_after(AT_ONCE_S)

    def action_rescan(self) -> None:
        """Forget the counts and scan again; open namespaces are reopened, and the cursor stays where it is."""
        self.tree_pane.reset_for_scan()
        self.detail_pane.fetcher.unlist()
        self._run(self.session.rescan, "scan")

    # filters

    def action_filter(self) -> None:
        self.filter_input.open()
        self.offer_commands()

    def action_leave_filter(self) -> None:
        self.filter_input.close()
        self.set_focus(self.tree_pane.view)
        self.offer_commands()

    def action_clear_filter(self) -> None:
        self.search.clear()

    # going elsewhere and back

    @property
    def focus_home(self) -> Widget:
        """The tree, or the details if a narrow terminal shows only them."""
        return self.detail_pane.body if self.has_class("-reading") else self.tree_pane.view

    @property
    def place(self) -> TreePlace:
        return self.places.here

    @property
    def cursor_place(self) -> tuple[bool, bytes] | None:
        return self.tree_pane.key_tree.cursor_place

    def show_place(self, place: TreePlace) -> None:
        self.places.show(place)
        self.offer_commands()

    def action_focus_next_pane(self) -> None:
        if self.detail_pane.value.has_keyboard:
            self.places.leave_detail()
        else:
            self.detail_pane.value.close_prompt()
            self.places.enter_detail()

    @on(ValuePane.Left)
    def _leave_detail(self) -> None:
        self.places.leave_detail()

    async def action_back(self) -> None:
        detail, search, tree_pane = self.detail_pane, self.search, self.tree_pane
        if self.filter_input.is_open:
            self.action_leave_filter()
            search.show_names(b"")
        elif tree_pane.ranking.stop():
            self.notify("Keys stay sorted by name.", title="Not sorted", markup=False, timeout=4)
        elif detail.value.go_back():
            self.offer_commands()
        elif detail.is_among_references and (origin := detail.value.trail.back(detail.detail.key)):
            self.show_place(origin)
        elif self.places.is_reading:
            self.places.leave_detail()
        elif tree_pane.is_schema:
            self.action_schema()
        elif search.returns_to:
            before, search.returns_to = search.returns_to, ""
            if isinstance(before, TreePlace):
                self.show_place(before)
            else:
                await self.run_action(before)
        elif search.needle is not None:
            search.show_names(b"")
        elif search.can_clear:
            search.clear()
        else:
            self._unmark_or_leave()

    def _unmark_or_leave(self) -> None:
        if self.tree_pane.key_tree.marked:
            self.tree_pane.key_tree.unmark_all()
        elif self._leads_back:
            self.post_message(ServerLeft())

    @on(ValuePane.Followed)
    def _follow_row(self, event: ValuePane.Followed) -> None:
        item = event.item
        if item.kind is ItemKind.BY_SIZE:
            self.action_keys(sort="size")
        elif item.behind is not None:
            self.post_message(KeysWanted(item.behind.query, item.behind.note))
        elif item.data is not None:
            self.leave_place()
            self.places.follow(item)
            self.offer_commands()

    def action_keys(self, sort: str | None = None) -> None:
        if (wanted := self.places.keys_wanted(sort)) is not None:
            self.post_message(wanted)

    # columns, copying and commands

    def action_columns(self) -> None:
        tree = self.tree_pane.key_tree

        def choose(columns: frozenset[TreeColumn]) -> None:
            tree.choose_columns(columns)
            self.tree_pane.schema.choose_columns(columns)
            self.settings.choose("tree.columns", tuple(one for one in TreeColumn if one in columns))

        titles = {column: literal(column.value) for column in TreeColumn}
        self.app.push_screen(SwitchScreen(literal("Columns"), titles, tree.columns, choose))

    def action_divide(self, step: int) -> None:
        self.panes.widen(step)

    def action_sort(self) -> None:
        self.tree_pane.work.choose_sort()

    @on(TreePane.Sorted)
    def _remember_sort(self, event: TreePane.Sorted) -> None:
        self.settings.choose("tree.sort", f"{'-' if event.is_reversed else ''}{event.sort.value}")

    def _copies(self) -> list[Copy]:
        if self.tree_pane.is_schema:
            if (level := self.places.level) is None:
                return []
            query = Copy(literal("query for its keys"), str(level.behind.query))
            return [Copy(literal("pattern"), key_as_text(level.pattern)), query]
        row, detail = self.tree_pane.key_tree.cursor, self.detail_pane.detail
        name, facts = detail.key if row is None else row.key(), detail.facts
        facts = facts if facts is not None and facts.key == name else None
        return [] if name is None else copies(self.session.target, name, facts)

    def action_copy_name(self) -> None:
        if entries := self._copies():
            copy_text(self, entries[0].text)

    def action_copy_menu(self) -> None:
        if entries := self._copies():
            choose_copy(self, entries)

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        detail = self.detail_pane
        return {
            Owner.BROWSE: self,
            Owner.TREE: self.tree_pane.view,
            Owner.DETAIL: detail,
            Owner.VALUE: detail.value,
            Owner.ROWS: detail.body,
            Owner.SCAN: self.status_bar,
        }

    @property
    def conditions(self) -> Conditions:
        found = browse_conditions(
            self.session.status, self.detail_pane.fetcher.readable, self.tree_pane.key_tree.cursor
        )
        found |= self.detail_pane.value.conditions
        if self.tree_pane.is_schema:
            has_level = self.tree_pane.schema.cursor is not None
            found |= {Condition.ON_ROW: has_level, Condition.ON_NAMESPACE: has_level}
        found |= {
            Condition.DETAIL_OPEN: self.detail_pane.value.has_keyboard,
            Condition.HAS_REGISTRY: self.detail_pane.has_registry,
            Condition.FILTERED: self.search.is_filtered,
            Condition.MARKED: bool(self.tree_pane.key_tree.marked),
            Condition.CAN_GO_BACK: self._leads_back
            or bool(self.search.returns_to)
            or bool(self.tree_pane.key_tree.marked)
            or self.tree_pane.is_schema
            or self.search.can_clear
            or self.tree_pane.ranking.is_under_way,
        }
        return frozenset(condition for condition, holds in found.items() if holds)

    @on(FilterInput.Changed)
    @on(events.DescendantFocus)
    def offer_commands(self) -> None:
        if self.filter_input.is_open:
            self.footer_bar.show_commands((), self.filter_input.keys_hint)
            return
        prompt = self.detail_pane.value.prompt
        if prompt.is_open:
            self.footer_bar.show_commands((), prompt_hint(prompt.purpose))
            return
        commands = self.offered()
        if self.tree_pane.is_schema:
            commands = [replace(one, title=IN_SCHEMA.get(one.name, one.title)) for one in commands]
        if is_reading := self.detail_pane.value.has_keyboard:
            commands = [one for one in commands if one.owner is not Owner.TREE and one.name not in COVERED]
        elif self.has_class("-narrow"):
            commands = [one for one in commands if one.owner is not Owner.DETAIL]
        self.footer_bar.show_commands(commands, self._jump, OF_VALUE if is_reading else ())

    def _run(self, work: Callable[[], Coroutine[Any, Any, object]], what: str) -> Worker[Any]:
        return self.run_worker(work, group=what, exclusive=True, exit_on_error=False, description=what)

    @on(Worker.StateChanged)
    def _worker_ended(self, event: Worker.StateChanged) -> None:
        if event.worker.is_finished:
            self.call_later(self.flush)

    def should_notify(self, error: BaseException) -> bool:
        """Return whether a failure needs a notification: a lost connection is in the status bar."""
        return not isinstance(error, RtuiError) or isinstance(self.session.status.link, Online)
