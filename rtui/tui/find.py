"""The screen of found keys: the query, a list that fills during the search, and the cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from rtui.analysis.humanize import counted
from rtui.analysis.query.hints import Vocabulary
from rtui.analysis.query.query import MatchOrder, Query
from rtui.analysis.query.terms import Fact
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.search.search import Search, Stage
from rtui.tui import found_rows
from rtui.tui.found_view import FIND_COMMANDS, FoundBody, FoundView
from rtui.tui.kit.bars import FilterInput, LinkedBar, TitleBar
from rtui.tui.kit.choice import SortScreen, SwitchScreen
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.clipboard import copies as key_copies
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Owner, bindings
from rtui.tui.kit.command_screen import AT_ONCE_S, FLUSH_S, REST_S, FoundPlace, KeysWanted
from rtui.tui.kit.layout import ago
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.panel_screen import RowsScreen, RunScreen, suffix_of, write_text
from rtui.tui.kit.query_line import QueryLine
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.status_lines import link_words, over_title, run_action_of
from rtui.tui.kit.styled_text import Role, literal

MOST_NOTES: Final = 4


def order_of(sort: str | None, *, is_reversed: bool) -> MatchOrder | None:
    """Return the order of matches by a column; None for the order found, and for slots."""
    fact = None if sort is None else found_rows.SORTS[sort].fact
    if sort is None or fact is None:
        return None
    return MatchOrder(
        fact, found_rows.SORTS[sort].is_descending is not is_reversed, is_by_bytes=sort == found_rows.BY_BYTES
    )


def new_rows(
    session: BrowsingSession,
    query: Query,
    columns: Sequence[str],
    sort: str | None,
    note: str,
    *,
    is_reversed: bool = False,
    asks_server: bool = False,
) -> found_rows.FoundRows:
    """Return the rows of a new search, which has not begun; with `sort`, of the first keys of all by that column."""
    shown = found_rows.columns_for(query, (*columns, found_rows.SORTS[sort].column.id) if sort else columns)
    order = order_of(sort, is_reversed=is_reversed)
    search = session.search(query, found_rows.facts_of(shown), order, asks_server=asks_server)
    if order is None:
        return found_rows.FoundRows(search, shown, note=note)
    return found_rows.FoundRows(search, shown, sort, is_reversed, note=note)


class FindScreen(RunScreen[bytes | None]):
    """Shows found keys; dismissed with the key that the user wants to go to, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(FIND_COMMANDS, Owner.FIND)
    SCREEN_COMMANDS = (*FIND_COMMANDS, *APP_COMMANDS)
    AUTO_FOCUS = "#found-body"
    suffixes = (".txt", *RowsScreen.suffixes)

    def __init__(
        self,
        session: BrowsingSession,
        rows: found_rows.FoundRows,
        vocabulary: Callable[[], Vocabulary],
        *,
        settings: SettingsFile,
        keep: Callable[[found_rows.FoundRows], object],
    ) -> None:
        """`rows` are as they were left; `keep` is called with the rows of another search that replaces this one."""
        super().__init__()
        self._keep = keep
        self.session = session
        self.view = FoundView(rows, session.clock)
        self._label = session.target.label
        self.title_bar = TitleBar()
        self.query_bar = LinkedBar(lambda span: "find.edit" if span.role is Role.ACCENT else None, id="found-query")
        self.status_bar = LinkedBar(lambda span: run_action_of(span, Owner.FIND), id="status")
        self.notes = LinePanel(id="found-notes")
        self.nothing = LinePanel(id="found-nothing")
        hint = "text, a glob, or terms such as ttl:none size>1M"
        self.query_input = QueryLine(hint, vocabulary, settings, session.target, id="query")
        self.file_input = self.file_line()
        self.typed = (self.query_input, self.file_input)
        self._seen: object = None
        self._is_over = False
        """Whether the search was over at the last look."""
        self._noted: int | None = None
        """Lines that the notes take; None before they were shown."""

    @property
    def rows(self) -> found_rows.FoundRows:
        return self.view.rows

    @property
    def search(self) -> Search:
        return self.rows.search

    @property
    def control(self) -> RunControl:
        return self.search.control

    @property
    def place(self) -> FoundPlace:
        return FoundPlace()

    @property
    def focus_home(self) -> Widget:
        return self.view.body

    def compose(self) -> ComposeResult:
        yield from (self.title_bar, self.query_bar, self.view, self.nothing, self.notes)
        yield from (self.query_input.hint, self.query_input, self.file_input, self.status_bar, self.footer_bar)

    def on_mount(self) -> None:
        self.search.prepare()
        self.show_changes()
        self.call_after_refresh(lambda: self.view.show(self.rows))  # which may be others by then

    def show_rows(self, rows: found_rows.FoundRows) -> None:
        """Show another search in place of this one, which ends."""
        before = self.search
        self.run_worker(before.close(), group="close", exit_on_error=False, description="search")
        self._seen = None
        self._keep(rows)
        self.view.show(rows)
        rows.search.prepare()
        self.set_focus(self.view.body)
        self.flush_after(AT_ONCE_S)

    def show_changes(self) -> None:
        db, status = self.session.target.db, self.title_bar.server_status
        self.title_bar.set_line(lambda width: over_title(self._label, db, literal("keys found"), width, status))
        waits = link_words(self.search.link, asyncio.get_running_loop().time())
        as_of_s, now_s = self.search.as_of_s, self.session.clock()
        age = None if as_of_s is None else ago(now_s - as_of_s)
        before, self._seen = self._seen, (self.search.revision, self.search.stage, waits, age)
        if before != self._seen:
            self.view.follow()
            was_over, self._is_over = self._is_over, self.search.stage is Stage.OVER
            if self._is_over and not was_over:
                self.view.sort_at_end()
            self._show_bars()
        elif self.is_current and "ttl" in self.rows.columns:
            self.view.body.repaint_changes()
        is_busy = self.search.stage in (Stage.PREPARING, Stage.RUNNING) or before != self._seen
        self.flush_after(FLUSH_S if is_busy else REST_S)

    def _show_bars(self) -> None:
        rows, search, shows_cost = self.rows, self.search, self.shows_cost
        is_empty = not len(rows)
        if self.nothing.display is not is_empty:  # a class of the screen would style every widget anew
            self.nothing.display = is_empty
            self.view.styles.height = 0 if is_empty else "1fr"
        clock_s = self.session.clock()
        self.query_bar.set_line(lambda width: found_rows.query_line(rows, clock_s, width))
        self.nothing.set_content(lambda width: [] if len(rows) else found_rows.in_place_lines(search, width))
        notes = found_rows.note_lines(rows, self.size.width, MOST_NOTES)
        if len(notes) != self._noted:
            self._noted = len(notes)
            self.notes.styles.height = len(notes)
        self.notes.set_content(lambda width: found_rows.note_lines(rows, width, MOST_NOTES))
        now_s = asyncio.get_running_loop().time()
        self.status_bar.set_line(lambda width: found_rows.status_line(search, now_s, width, shows_cost=shows_cost))
        self.show_commands()

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width:
            self._show_bars()

    @on(FoundBody.Moved)
    def _row_changed(self) -> None:
        self.show_commands()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        return {Owner.FIND: self, Owner.FOUND: self.view.body}

    @property
    def conditions(self) -> Conditions:
        search = self.search
        is_running, is_paused = search.stage is Stage.RUNNING, search.progress.state is ScanState.PAUSED
        holding = {
            Condition.LIVE: True,
            Condition.READY: search.stage is Stage.ASKING,
            Condition.SCANNING: is_running and not is_paused,
            Condition.PAUSED: is_running and is_paused,
            Condition.HAS_ROWS: len(self.rows) > 0,
        }
        return frozenset(condition for condition, holds in holding.items() if holds)

    # the search

    def action_begin(self) -> None:
        if self.search.stage is Stage.ASKING:
            self.search.begin()
            self.flush_after(AT_ONCE_S)

    def show_soon(self) -> None:
        self._seen = None
        self.flush_after(AT_ONCE_S)

    def action_again(self) -> None:
        """Search the present keys again; sorted by a fact, for the first keys by that."""
        rows, query = self.rows, self.search.query
        is_part = self.search.count > len(rows) or self.search.order is not None
        sort = rows.sort if is_part else None
        shown = new_rows(
            *(self.session, query, rows.columns, sort, rows.note), is_reversed=rows.is_reversed, asks_server=True
        )
        self.show_rows(shown)

    # the rows

    @on(FoundBody.Opened)
    def action_open(self) -> None:
        """Go to the key under the cursor; before a costly search, begin that."""
        record = self.view.body.record
        if self.search.stage is Stage.ASKING:
            self.action_begin()
        elif record is not None:
            self.rows.top_line = self.view.body.scroll_offset.y
            self.leave_place()
            self.dismiss(record.key)

    def action_sort(self) -> None:
        rows, names = self.rows, found_rows.sort_names(self.rows.columns)

        def chosen(choice: int | None) -> None:
            if choice is not None and rows is self.rows:
                self._sort_by(names[choice], is_reversed=names[choice] == rows.sort and rows.is_reversed)

        titles = [literal("order found"), *(SafeText(found_rows.SORTS[one].column.title) for one in names if one)]
        if len(rows):
            self.app.push_screen(SortScreen(titles, names.index(rows.sort)), chosen)

    def action_sort_step(self, step: int) -> None:
        names = found_rows.sort_names(self.rows.columns)
        self._sort_by(names[(names.index(self.rows.sort) + step) % len(names)])

    def action_sort_reverse(self) -> None:
        self._sort_by(self.rows.sort, is_reversed=not self.rows.is_reversed)

    def _sort_by(self, name: str | None, *, is_reversed: bool = False) -> None:
        if not len(self.rows):
            return
        order, rows, search = order_of(name, is_reversed=is_reversed), self.rows, self.search
        is_part = search.count > len(rows) and order != search.order and (order is not None or name is None)
        if is_part and search.sorts_at_once(order):
            self.show_rows(new_rows(self.session, search.query, rows.columns, name, rows.note, is_reversed=is_reversed))
            return
        self.view.sort_by(name, is_reversed=is_reversed)
        self.show_soon()

    def action_columns(self) -> None:
        def choose(columns: frozenset[str]) -> None:
            self.rows.columns = ("key", *(name for name in titles if name in columns))
            if self.rows.sort is not None and found_rows.SORTS[self.rows.sort].column.id not in self.rows.columns:
                self.rows.sort = None
            self.view.body.use(self.rows)
            self.view.fit()

        def closed(_: None) -> None:
            asked = {*self.search.columns, *self.search.query.facts, Fact.NAME}
            missing = [one for one in found_rows.facts_of(self.rows.columns) if one not in asked]
            if missing:
                names = ", ".join(one.command for one in missing)
                text = SafeText(f"{names}: read when R searches again.")
                self.notify(text, title="Not read yet", markup=False, timeout=6)

        titles = {name: SafeText(one.column.title) for name, one in found_rows.COLUMNS.items() if name != "key"}
        self.app.push_screen(SwitchScreen(literal("Columns"), titles, self.rows.columns, choose), closed)

    @property
    def copies(self) -> Sequence[Copy]:
        record = self.view.body.record
        if record is None:
            return []
        query = Copy(literal("the query, as typed"), str(self.search.query))
        return [*key_copies(self.session.target, record.key, None)[:2], query]

    # what is typed

    def action_edit(self) -> None:
        self.open_line(self.query_input, str(self.search.query))

    def action_export(self) -> None:
        if len(self.rows):
            self.open_line(self.file_input)

    @on(FilterInput.Changed, "#query")
    def _query_changes(self) -> None:
        if self.query_input.is_open:
            self.query_input.show_hint()
            self.show_commands()

    @on(FilterInput.Submitted, "#query")
    def _query_typed(self) -> None:
        reading = self.query_input.reading
        if reading.problems:
            self.query_input.refuse()
            return
        self.action_leave_filter()
        if reading.query.terms:
            self.post_message(KeysWanted(reading.query))

    def writing(self, name: str) -> Callable[[], SafeText]:
        form = "text" if suffix_of(name) == ".txt" else suffix_of(name).removeprefix(".")
        text = found_rows.file_text(self.rows, form, self.session.clock())
        return partial(write_text, name, text, counted(len(self.rows), "key"))

    def action_back(self) -> None:
        """Go back one step: from a typed line, from a running search, from the list."""
        if self.is_typing:
            self.action_leave_filter()
        elif self.search.stage is Stage.RUNNING:
            self.action_stop()
        else:
            self.dismiss(None)
