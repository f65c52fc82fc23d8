"""The main screen: the tree, the details of what is under its cursor, and how the scan is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.widget import Widget
from textual.worker import Worker

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.wire.connection import Online
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.columns import ColumnsScreen, SortScreen, TreeColumn
from rtui.tui.browse.commands import BROWSE_COMMANDS, browse_conditions
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.panes import Panes
from rtui.tui.browse.session import Session
from rtui.tui.browse.status_bar import StatusBar
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.browse.value_commands import SHARED
from rtui.tui.browse.value_prompt import prompt_hint
from rtui.tui.browse.watching import REFUSED, UNCHANGED, Watcher
from rtui.tui.kit.bars import Banner, FilterInput, LinkedBar
from rtui.tui.kit.clipboard import Copy, choose_copy, copies, copy_text
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Owner, bindings
from rtui.tui.kit.command_screen import AT_ONCE_S, FLUSH_S, REST_S, CommandScreen, KeysWanted
from rtui.tui.kit.history import TreePlace
from rtui.tui.kit.layout import display, display_text
from rtui.tui.kit.query_line import QUERY_HINT, QueryLine
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.status_lines import browse_banner, title_action_of, title_line
from rtui.tui.kit.styled_text import Line, Role, Span, literal

if TYPE_CHECKING:
    from rtui.analysis.query.completion import Vocabulary

FILTER_HINT: Final[Line] = (
    Span(literal(" enter"), Role.ACCENT),
    Span(literal(" goes to exactly that key, or scans the server for a glob"), Role.MUTED),
    Span(literal("  down"), Role.ACCENT),
    Span(literal(" moves into the list"), Role.MUTED),
    Span(literal("  esc"), Role.ACCENT),
    Span(literal(" shows all"), Role.MUTED),
)
"""Stands in the footer while a filter is typed."""

FILTER_PLACEHOLDER: Final = "name, part of one, a glob such as user:*:cart, or terms such as ttl:none size>1M"

COVERED: Final = frozenset({*(f"{Owner.BROWSE}.{one}" for one in SHARED.values()), f"{Owner.BROWSE}.columns"})
"""Commands that are not in the footer while the value has the keyboard: its own have their keys."""

TICK_S: Final = 0.95
"""What time changes is shown so often: a little less than a second, so that each second is shown."""

NOTHING_SHOWN: Final = (-1, False, False)
"""What `BrowseScreen._shown` is before anything was shown, or when all has to be shown again."""

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
        session: Session,
        *,
        label: SafeText | None = None,
        is_filling: Callable[[], bool] | None = None,
        settings: SettingsFile | None = None,
    ) -> None:
        """`label` replaces the server's own in the title; `is_filling` returns whether keys are still being added."""
        super().__init__()
        self.session = session
        self.settings = SettingsFile() if settings is None else settings
        self.tree_pane = TreePane(session, Sort(self.settings.settings.tree.sort), id="tree-pane")
        if (columns := self.settings.settings.tree.columns) is not None:
            self.tree_pane.key_tree.columns = frozenset(map(TreeColumn, columns))
        self.detail_pane = DetailPane(session, self._run, self.tree_pane.totals, id="detail")
        self.panes = Panes(self.tree_pane, self.detail_pane, self.settings.settings.tree.width, id="body")
        self.title_bar = LinkedBar(lambda span: title_action_of(span, session.status.db), id="title")
        self.status_bar = StatusBar(session, is_filling)
        self.banner = Banner()
        self.filter_input = QueryLine(FILTER_PLACEHOLDER, self._vocabulary, self.settings, session.target)
        self._label = label
        self._shown = NOTHING_SHOWN
        self._ticked_at_s = 0.0
        self._generation = session.status.generation
        self._listed_facts: KeyFacts | None = None
        self._jump: Line = ()
        self._told_log_failure = False
        self.watcher = Watcher()
        self._watch_began_s = 0.0
        self._returns_to = ""
        """The action of Escape where the user came to a key from another screen: it leads back there."""

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield self.title_bar
        yield self.banner
        yield self.panes
        yield self.detail_pane.summary
        yield self.filter_input.hint
        yield self.filter_input
        yield self.status_bar
        yield self.footer_bar

    @property
    def focus_home(self) -> Widget:
        """The tree, or the details where they may be all that is shown."""
        return self.detail_pane.body if self.has_class("-reading") else self.tree_pane.key_tree

    def on_mount(self) -> None:
        """Show what there is and begin to poll."""
        self.tree_pane.show_rows()
        self.session.on_change(lambda: self.call_later(self.flush))
        self.show_changes()

    # polling

    def show_changes(self) -> None:
        """Show what has changed since the last call."""
        if self.tree_pane.follow_store():
            self._shown = NOTHING_SHOWN
        status, names = self.session.status, self.tree_pane.names
        if self.status_bar.has_just_been_filled():
            self.action_rescan()
        before = self._shown
        self._shown = (self.session.revision + names.revision, status.sampled > 0, status.complete)
        if before[1:] != self._shown[1:]:
            self.tree_pane.sort_untouched()
        has_figures_changed = self.tree_pane.show_figures()
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
        self._offer_commands()
        is_working = names.is_searching or self.tree_pane.ranking.is_under_way
        is_at_rest = before == self._shown and self.status_bar.is_at_rest and not is_working
        self.flush_after(REST_S if is_at_rest else FLUSH_S)

    def _show_status(self) -> None:
        """Show who the server is, how the scan is doing, and whether what is shown still holds."""
        status = self.session.status
        self.banner.show_warning(browse_banner(status))
        self.title_bar.set_line(lambda width: title_line(status, width, self._label))
        self.status_bar.show_status()

    def _tick(self, status: BrowsingStatus) -> None:
        """Once a second, while this screen is on top, show facts as they are now and fetch those that have expired."""
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
        self._watch(is_ready=isinstance(status.link, Online) and not is_fetching)

    @on(events.ScreenResume)
    def _resumed(self) -> None:
        """Show at once what has changed while another screen was on top."""
        self._ticked_at_s = 0.0
        self.call_later(self.flush)

    # messages of the tree

    @on(KeyTree.Highlighted)
    def _follow_cursor(self, event: KeyTree.Highlighted) -> None:
        self.detail_pane.fetcher.show(event.row)

    @on(KeyTree.Chosen)
    def _choose_key(self) -> None:
        self.leave_place()
        self._enter_detail()

    def _enter_detail(self) -> None:
        self.add_class("-reading")
        self.detail_pane.body.focus()

    @on(KeyTree.Jumping)
    def _show_jump(self, event: KeyTree.Jumping) -> None:
        prompt = Span(literal(" jump to "), Role.MUTED)
        self._jump = () if event.typed is None else (prompt, Span(display_text(event.typed + "_"), Role.ACCENT))
        self._offer_commands()

    @on(TreePane.FactsWanted)
    def _want_facts(self, event: TreePane.FactsWanted) -> None:
        async def fetch() -> None:
            found = await self.session.row_facts(event.keys)
            self.tree_pane.put_facts(found)
            if self.watcher.node is not None:
                self.tree_pane.flash(frozenset(self.watcher.learn_rows(found)))
                self._end_refresh()
            shown = self.detail_pane.detail.facts
            if shown is not None and not shown.is_gone and any(one.is_gone and one.key == shown.key for one in found):
                self.detail_pane.fetcher.refresh()

        if isinstance(self.session.status.link, Online):
            self._run(fetch, ROW_FACTS)

    @on(DetailPane.Changed)
    def _detail_changed(self, event: DetailPane.Changed) -> None:
        """Show in the tree, too, what the details have found out about a key."""
        facts = event.detail.facts
        if facts is not None and facts is not self._listed_facts:
            self._listed_facts = facts
            if facts.key == self.watcher.key and self.watcher.learn(facts):
                self._end_refresh()
                self.detail_pane.changes = self.watcher.changes
                self.detail_pane.tick()
            self.tree_pane.put_facts([facts.row])
        self._offer_commands()

    # watching

    def action_watch(self) -> None:
        """Watch the key under the cursor or in the details, or the keys in view of an open namespace; or end that."""
        detail, row, now_s = self.detail_pane.detail, self.tree_pane.key_tree.cursor, self.session.clock()
        if self.watcher.is_on:
            self._end_watch()
        elif detail.key is not None:
            self.watcher.watch_key(detail.key, detail.facts, now_s)
        elif row is not None and self.tree_pane.key_tree.rows.is_expanded(row.namespace):
            self.watcher.watch_rows(row.namespace, now_s)
        else:
            self.notify(REFUSED, title="Not watched", markup=False, timeout=8)
        self._ticked_at_s = 0.0
        self.flush_after(AT_ONCE_S)

    def _end_watch(self) -> None:
        self.watcher.stop()
        self.tree_pane.flash(frozenset())
        self.detail_pane.changes = UNCHANGED
        self.detail_pane.tick()

    def _watch(self, *, is_ready: bool) -> None:
        """Ask again about what is watched when it is time; a key is watched as long as its details are shown."""
        watcher, now_s = self.watcher, self.session.clock()
        if watcher.is_on:
            is_elsewhere = watcher.key is not None and self.detail_pane.detail.key != watcher.key
            has_gone = watcher.node is not None and not self.tree_pane.key_tree.rows.is_expanded(watcher.node)
            if is_elsewhere or has_gone:
                self._end_watch()
        if watcher.is_on and watcher.settle(now_s):
            self.tree_pane.flash(frozenset())
            self.detail_pane.changes = watcher.changes
            self.detail_pane.tick()
        if is_ready and watcher.is_due(now_s):
            watcher.begin(now_s)
            self._watch_began_s = asyncio.get_running_loop().time()
            if watcher.key is not None:
                self.detail_pane.fetcher.refresh()
            elif keys := watcher.keys_in(self.tree_pane.key_tree.rows_in_view):
                self.post_message(TreePane.FactsWanted(keys))
        is_online = isinstance(self.session.status.link, Online)
        text = watcher.text(is_online=is_online)
        if text != self.status_bar.watching:
            self.status_bar.watching = text
            self.status_bar.show_status()

    def _end_refresh(self) -> None:
        """Choose when to ask again, by how long this took."""
        self.watcher.end(self.session.clock(), asyncio.get_running_loop().time() - self._watch_began_s)

    def action_rescan(self) -> None:
        """Forget what was counted and scan again."""
        self.tree_pane.reset_for_scan()
        self._run(self.session.rescan, "scan")

    # filters

    def action_filter(self) -> None:
        """Type a filter."""
        self.filter_input.open()
        self._offer_commands()

    def _vocabulary(self) -> Vocabulary:
        """Return what is known of the keyspace, for the completion of queries."""
        from rtui.tui.kit.vocabulary import vocabulary_of  # noqa: PLC0415 - with all that adds up

        analysed = self.session.analysed
        return vocabulary_of(self.session.store, None if analysed is None else analysed.report)

    def action_leave_filter(self) -> None:
        """Close the line of the filter and go into what was found so far."""
        self.filter_input.close()
        self.tree_pane.key_tree.focus()
        self._offer_commands()

    @on(FilterInput.Changed)
    def _filter_changes(self, event: FilterInput.Changed) -> None:
        """Search the names that are loaded while a filter is typed; a glob or a query has to wait for Enter."""
        if not self.filter_input.is_open:
            return
        self.filter_input.show_hint()
        if self.filter_input.is_query:
            if self.tree_pane.names.needle is not None:
                self._search("")
        elif not self.filter_input.is_glob:
            self._search(event.value)
        self._offer_commands()

    @on(FilterInput.Submitted)
    def _filter_typed(self, event: FilterInput.Submitted) -> None:
        line, text = self.filter_input, event.value.encode("utf-8", "surrogateescape")
        is_query, reading = line.is_query, line.reading
        if is_query and reading.problems:
            self._run(partial(self._look_up_or_mark, text), "filter")
            return
        self.action_leave_filter()
        if is_query:
            self.post_message(KeysWanted(reading.query))
        elif text:
            self._run(partial(self._look_up, text, is_glob=line.is_glob), "filter")

    async def _look_up_or_mark(self, text: bytes) -> None:
        """Go to the key of exactly this name; where there is none, go to what is wrong with the query."""
        if await self.session.lookup(text):
            self.action_leave_filter()
            await self._look_up(text, is_glob=False)
        elif self.filter_input.reading.problems:
            problem = self.filter_input.reading.problems[0]
            self.filter_input.cursor_position = min(problem.span.end, len(self.filter_input.value))
            self.notify(problem.sentence, severity="warning", markup=False, timeout=5)

    def _search(self, text: str) -> None:
        """Show the names with this text, or all."""
        self._returns_to = "" if text else self._returns_to
        self.tree_pane.filter_names(text.encode("utf-8", "surrogateescape"))
        self._shown = NOTHING_SHOWN
        if self.tree_pane.names.needle is not None:
            self._run(self.tree_pane.names.work, "search")

    async def _look_up(self, name: bytes, *, is_glob: bool) -> bool | None:
        """Go to the key of exactly this name, if there is one; otherwise have the server filter by a glob.

        Returns whether there is such a key, None where the server refuses to say.
        """
        is_there = await self.session.lookup(name)
        if is_there:
            # the row that the tree falls back to is not wanted
            with self.tree_pane.key_tree.prevent(KeyTree.Highlighted):
                self._search("")
            self.detail_pane.fetcher.show_key(name)
            self.tree_pane.reveal(name)
        elif is_glob:
            self._search("")
            await self._filter_keys(name)
        return is_there

    async def _filter_keys(self, match: bytes | None) -> None:
        """Have the server scan for keys that match, or for all."""
        self._returns_to = ""
        before = self.session.store
        if match is not None or self.session.status.match is None:
            self.tree_pane.reset_for_scan()
        await self.session.filter(match)
        if self.tree_pane.follow_store():
            self._shown = NOTHING_SHOWN
        if match is None and self.session.store is before:
            self.tree_pane.reset_for_scan()

    def action_keys(self) -> None:
        """List the keys of the namespace under the cursor, of those that the tree shows."""
        row = self.tree_pane.key_tree.cursor
        if row is None or row.kind is not RowKind.NAMESPACE:
            return
        from rtui.analysis.query.query import one_of, query_of  # noqa: PLC0415 - when it is wanted

        status, needle = self.session.status, self.tree_pane.names.needle
        shown = (("glob", status.match), ("type", status.key_type), ("text", needle))
        terms = [one_of(name, [] if value is None else [value]) for name, value in shown]
        self.post_message(KeysWanted(query_of(one_of("in", [row.namespace.path()]), *terms)))

    def action_clear_filter(self) -> None:
        """Clear the filter: show everything again."""
        if self.tree_pane.names.needle is not None:
            self._search("")
        if self.session.status.match is not None:
            self._run(partial(self._filter_keys, None), "filter")

    async def action_focus_next_pane(self) -> None:
        """Focus the other pane."""
        if self.detail_pane.body.has_focus:
            await self.action_back()
        else:
            self._enter_detail()

    async def action_back(self) -> None:
        """Go back one step."""
        if self.filter_input.is_open:
            self.action_leave_filter()
            self._search("")
        elif self.tree_pane.ranking.stop():
            self.notify("Keys stay in the order of their names.", title="Not sorted", markup=False, timeout=4)
        elif self.detail_pane.value.go_back():
            self._offer_commands()
        elif self.detail_pane.body.has_focus or self.has_class("-reading"):
            self.remove_class("-reading")
            self.tree_pane.key_tree.focus()
        elif self._returns_to:
            action, self._returns_to = self._returns_to, ""
            await self.run_action(action)
        elif self.tree_pane.names.needle is not None:
            self._search("")
        elif self._can_clear_filter:
            self.action_clear_filter()

    @property
    def _can_clear_filter(self) -> bool:
        """Whether there is a filter without which all keys are shown at once.

        One that was there from the start is not: without it, all keys would have to be scanned.
        """
        return self.tree_pane.names.needle is not None or (
            self.session.status.match is not None and self.session.keeps_all_keys
        )

    @property
    def cursor_place(self) -> tuple[bool, bytes] | None:
        """Whether the row under the cursor is a key, and its name or the prefix of its keys; None without rows."""
        return self.tree_pane.key_tree.cursor_place

    def move_to_place(self, place: tuple[bool, bytes]) -> None:
        """Move to the row of that place, if it is listed."""
        self.tree_pane.key_tree.move_to_place(place)

    def return_from_analysis(self, key: bytes | None) -> None:
        """Go to the key that was chosen in the analysis, opening what it lies in; None: stay."""
        if key is not None:
            self.go_to_key(key, "app.analyse")

    def go_to_key(self, key: bytes, returns_to: str = "") -> None:
        """Go to a key, opening what it lies in; Escape runs the action `returns_to` then."""
        self.go_to_unloaded(key)
        self._returns_to = returns_to

    # places

    @property
    def place(self) -> TreePlace:
        """The row under the cursor, and whether its details have the keyboard."""
        row, needle = self.tree_pane.key_tree.cursor, self.tree_pane.names.needle
        is_reading = self.detail_pane.body.has_focus or self.has_class("-reading")
        if row is None:
            return TreePlace(is_reading=is_reading, needle=needle)
        return TreePlace(row.key(), row.kind is RowKind.NAMESPACE, is_reading, needle)

    def show_place(self, place: TreePlace) -> None:
        """Go to a row, opening what it lies in; nothing is asked of the server to find it."""
        self.filter_input.close()
        self._returns_to = ""
        pane = self.tree_pane
        if place.needle != pane.names.needle:
            self._search((place.needle or b"").decode("utf-8", "surrogateescape"))
        if place.name is not None:
            (pane.reveal_namespace if place.is_namespace else pane.reveal)(place.name)
        if place.is_reading:
            self._enter_detail()
        else:
            self.remove_class("-reading")
            pane.key_tree.focus()
        self._offer_commands()

    def go_to_unloaded(self, name: bytes) -> None:
        """Go to the key of exactly this name, loaded or not, if the server has it."""

        async def go() -> None:
            is_there = await self._look_up(name, is_glob=False)
            if not is_there:
                why = "is no key of this name" if is_there is False else "may be one, but TYPE is denied"
                self.notify(SafeText(f"{display(name, limit=60)}: there {why}."), markup=False, timeout=4)

        self._run(go, "look up")

    # columns, copying and commands

    def action_columns(self) -> None:
        """Choose columns."""
        tree = self.tree_pane.key_tree

        def choose(columns: frozenset[TreeColumn]) -> None:
            tree.choose_columns(columns)
            self.settings.choose("tree.columns", tuple(one for one in TreeColumn if one in columns))

        self.app.push_screen(ColumnsScreen(tree.columns, choose))

    def action_divide(self, step: int) -> None:
        """Make the tree so many percent wider."""
        self.panes.widen(step)

    @on(Panes.Divided)
    def _remember_width(self, event: Panes.Divided) -> None:
        self.settings.choose("tree.width", event.percent)

    def action_sort(self) -> None:
        """Choose what rows are sorted by."""

        def chosen(sort: Sort | None) -> None:
            if sort is not None:
                self.tree_pane.sort_by(sort)

        now, is_analysed = self.tree_pane.names.rows.sort_order, self.tree_pane.key_tree.figures is not None
        self.app.push_screen(SortScreen(now, is_analysed=is_analysed), chosen)

    @on(TreePane.Sorted)
    def _remember_sort(self, event: TreePane.Sorted) -> None:
        self.settings.choose("tree.sort", event.sort.value)

    def _copies(self) -> list[Copy]:
        """Return what can be copied of the key under the cursor or of the prefix of a namespace, its name first."""
        row, detail = self.tree_pane.key_tree.cursor, self.detail_pane.detail
        name, facts = detail.key if row is None else row.key(), detail.facts
        facts = facts if facts is not None and facts.key == name else None
        return [] if name is None else copies(self.session.target, name, facts)

    def action_copy_name(self) -> None:
        """Copy the name as text."""
        if entries := self._copies():
            copy_text(self, entries[0].text)

    def action_copy_menu(self) -> None:
        """Choose what to copy."""
        if entries := self._copies():
            choose_copy(self, entries)

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen, its tree, the details and the status bar."""
        detail = self.detail_pane
        return {
            Owner.BROWSE: self,
            Owner.TREE: self.tree_pane.key_tree,
            Owner.DETAIL: detail,
            Owner.VALUE: detail.value,
            Owner.ROWS: detail.body,
            Owner.SCAN: self.status_bar,
        }

    @property
    def conditions(self) -> Conditions:
        """What holds at the moment, of what commands may need."""
        is_filtered = self.tree_pane.names.needle is not None or self.session.status.match is not None
        found = browse_conditions(self.session.status, self.detail_pane.detail, self.tree_pane.key_tree.cursor)
        found |= self.detail_pane.value.conditions
        found |= {
            Condition.DETAIL_OPEN: self.detail_pane.body.has_focus,
            Condition.FILTERED: is_filtered,
            Condition.CAN_GO_BACK: bool(self._returns_to)
            or self._can_clear_filter
            or self.tree_pane.ranking.is_under_way,
        }
        return frozenset(condition for condition, holds in found.items() if holds)

    def _offer_commands(self) -> None:
        if self.filter_input.is_open:
            self.footer_bar.show_commands((), QUERY_HINT if self.filter_input.is_query else FILTER_HINT)
            return
        prompt = self.detail_pane.value.prompt
        if prompt.is_open:
            self.footer_bar.show_commands((), prompt_hint(prompt.purpose))
            return
        commands = self.offered()
        if self.detail_pane.body.has_focus:
            commands = [one for one in commands if one.owner is not Owner.TREE and one.name not in COVERED]
        self.footer_bar.show_commands(commands, self._jump)

    def _run(self, work: Callable[[], Coroutine[Any, Any, object]], what: str) -> Worker[Any]:
        """Start a worker; newer work with the same description replaces it."""
        return self.run_worker(work, group=what, exclusive=True, exit_on_error=False, description=what)

    @on(Worker.StateChanged)
    def _worker_ended(self, event: Worker.StateChanged) -> None:
        """Show at once what a worker has brought."""
        if event.worker.is_finished:
            self.call_later(self.flush)

    def should_notify(self, error: BaseException) -> bool:
        """Return whether a failure needs a notification: a lost connection is in the status bar."""
        return not isinstance(error, RtuiError) or isinstance(self.session.status.link, Online)
