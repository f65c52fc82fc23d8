"""Screens of rows: lines typed over the status bar, files, copies, runs under way; and screens of panels with tabs.

`PanelView` shows a panel: the titles of its lists over the chosen table, with the lines around it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ScreenResultType
from textual.widget import Widget

from rtui.analysis.formats import TABLE_FORMATS
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import Subject, Table, label
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.files import atomic_file, reason_of
from rtui.server.scan.run_control import RunControl
from rtui.server.user.copying import key_as_text
from rtui.tui.kit.bars import Banner, Bar, FilterInput, LinkedBar, TabBar, TitleBar
from rtui.tui.kit.clipboard import Copy, choose_copy, copy_text
from rtui.tui.kit.command import Condition
from rtui.tui.kit.command_screen import CommandScreen
from rtui.tui.kit.layout import MARGIN, display_text, prose, tab_line
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, line_width, literal, width_of
from rtui.tui.kit.table import ReportTable, TableBody
from rtui.tui.kit.table_rows import TableRows, TableState

FILTER_CELLS: Final = 24
"""Longer filters are cut beside the titles of tables."""

T = TypeVar("T")


def following(options: Sequence[T], chosen: T, step: int = 1) -> T:
    """Return the option `step` places after the chosen one; the first follows the last or an unknown option."""
    at = options.index(chosen) if chosen in options else 0
    return options[(at + step) % len(options)]


@dataclass(slots=True)
class PanelStates:
    """The user's choices in the panels of a screen, which they outlive."""

    panel_id: str = ""
    """The panel that is shown; empty for the first one."""
    table_states: dict[str, TableState] = field(default_factory=dict)
    """The sort order, filter and cursor of tables, by panel and table."""

    def table_state(self, panel_id: str, list_id: str, order: str = "") -> TableState:
        """Return the state of a list, at first sorted by `order`: `-keys` is the reverse of `keys`."""
        fresh = TableState(sort=order.removeprefix("-") or None, is_reversed=order.startswith("-"))
        return self.table_states.setdefault(f"{panel_id} {list_id}", fresh)


class PanelView(Vertical):
    """Shows one list of a panel, or lines in its place; subclasses supply the lines around the table."""

    BLANK = True

    class Changed(Message):
        """The panel, its state, or the row under the cursor has changed."""

    def __init__(self, *around: Widget) -> None:
        """`around` are the widgets around the table, hidden while no table is shown."""
        super().__init__(id="panel")
        self._around = around
        self.table = ReportTable(id="table")
        self.titles_bar = TabBar(self._title_clicked, id="lists")
        self.in_place = LinePanel(id="offer")
        self.lists: Sequence[str] = ()
        """The ids of the panel's lists; empty while other lines stand in their place."""
        self.list_id = ""

    def choose_list(self, list_id: str) -> None:
        raise NotImplementedError

    def show_around(self) -> None:
        """Show titles, notes and the reason for an empty table, as the rows are now; called while there is a table."""
        raise NotImplementedError

    @property
    def has_rows(self) -> bool:
        return bool(self.lists) and len(self.table.rows) > 0

    @property
    def subject(self) -> Subject:
        return self.table.body.subject if self.lists else None

    @property
    def filter_text(self) -> str:
        """The text that rows must have to be shown; empty without a table."""
        return self.table.rows.state.filter_text if self.lists else ""

    def show_titles(self, titles: Sequence[SafeText], among: SafeText, empty: MakeLines) -> None:
        """Show the titles of the lists, and `empty` in place of a table without rows; `among` as in `titles_line`."""
        rows, at = self.table.rows, self.lists.index(self.list_id)
        self.titles_bar.set_line(lambda width: titles_line(titles, at, rows, among, width))
        self.set_class(not len(rows), "-nothing")
        self.in_place.set_content(lambda width: [] if len(rows) else empty(width))

    def show_lines(self, make: MakeLines) -> None:
        """Show these lines in place of a panel."""
        self.lists = ()
        self.add_class("-nothing")
        for one in self._around:
            one.display = False
        self.titles_bar.set_line(lambda _width: ())
        self.in_place.set_content(make)

    def filter(self, text: str) -> None:
        if self.lists:
            self.table.filter(text)
            self.rows_arranged()

    def action_next_list(self, step: int = 1) -> None:
        if self.lists:
            self.choose_list(following(self.lists, self.list_id, step))

    @on(ReportTable.Sorted)
    @on(ReportTable.Arranged)
    def rows_arranged(self) -> None:
        if self.lists:
            self.show_around()
            self.post_message(self.Changed())

    def _title_clicked(self, index: int) -> None:
        if index < len(self.lists):
            self.choose_list(self.lists[index])


@dataclass(slots=True)
class TablesStates(PanelStates):
    """The user's choices in panels of several tables."""

    lists: dict[str, str] = field(default_factory=dict)
    """The chosen table, by panel."""


class TablesView(PanelView):
    """Shows one of the tables of a panel."""

    states: TablesStates
    tables: Sequence[Table] = ()

    @property
    def panel_id(self) -> str:
        raise NotImplementedError

    @property
    def chosen(self) -> Table | None:
        wanted = self.states.lists.get(self.panel_id)
        return next((one for one in self.tables if one.id == wanted), next(iter(self.tables), None))

    def show_tables(self, tables: Sequence[Table]) -> bool:
        """Show the chosen one of these tables; return whether there is any."""
        self.tables = tables
        if (table := self.chosen) is not None:
            self.lists, self.list_id = [one.id for one in tables], table.id
            state = self.states.table_state(self.panel_id, table.id)
            self.table.show((self.panel_id, table.id), table, state, holds_order=True)
            self.show_around()
        return table is not None

    def show_lines(self, make: MakeLines) -> None:
        self.tables = ()
        super().show_lines(make)

    def choose_list(self, list_id: str) -> None:
        self.states.lists[self.panel_id] = list_id
        self.show_tables(self.tables)
        self.post_message(self.Changed())

    @on(TableBody.Highlighted)
    def _cursor_moved(self) -> None:
        self.post_message(self.Changed())

    def on_resize(self) -> None:
        if self.lists:
            self.show_around()


def key_hint(enter: SafeText, escape: SafeText) -> Line:
    """Return the hint on Enter and Escape for the footer while a line is typed."""
    return (Span(literal(" enter"), Role.ACCENT), Span(enter, Role.MUTED),
            Span(literal("  esc"), Role.ACCENT), Span(escape, Role.MUTED))  # fmt: skip


def titles_line(titles: Sequence[SafeText], chosen: int, rows: TableRows, among: SafeText, width: int) -> Line:
    """Return the titles of the tables of a panel, only those near the chosen title if not all fit, and the filter.

    `among` names the filtered rows, such as ` among the 100 largest`; empty for a complete list.
    """
    line: Line = (gap(MARGIN), Span(titles[chosen], Role.STRONG))
    note: Line = ()
    if rows.state.filter_text:
        text = cut(display_text(rows.state.filter_text), FILTER_CELLS)
        note = (Span(literal("rows with "), Role.MUTED), Span(text, Role.ACCENT), Span(among, Role.MUTED))
    if len(titles) > 1:
        line = clip(tab_line(titles, chosen, (), width), width - line_width(note) - 2)
    return (*line, gap(width - line_width(line) - line_width(note) - MARGIN), *note) if note else line


def note_line(note: Line, text: str, width: int) -> Line:
    """Return the note of the panel, and behind it the note of the table if it fits."""
    line: Line = (gap(MARGIN), *note)
    space = width - line_width(line) - MARGIN
    if text:
        more = SafeText(f" · {text}" if note else text)
        if not note or width_of(more) <= space:
            line = (*line, Span(cut(display_text(more, limit=400), space), Role.MUTED))
    return clip(line, width - MARGIN)


def notice_lines(title: SafeText, role: Role, width: int, *texts: SafeText) -> list[Line]:
    """Return a heading and paragraphs below it, to be shown in place of rows."""
    lines: list[Line] = [(), (gap(MARGIN), Span(title, role))]
    for text in texts:
        lines += [(), *prose(text, width, Role.MUTED)]
    return lines


def nothing_left_lines(rows: TableRows, among: SafeText, width: int) -> list[Line]:
    text = SafeText(f"No row{among} has {display_text(rows.state.filter_text, limit=60)}")
    return notice_lines(text, Role.STRONG, width, literal("Press Escape to show all rows again."))


def row_copies(subject: Subject, texts: Sequence[SafeText]) -> list[Copy]:
    """Return the copies of a row, first its name, if it has one; empty if there is no row."""
    if not texts:
        return []
    row = Copy(literal("row, tab-separated"), "\t".join(texts))
    if not isinstance(subject, bytes | tuple):
        return [row]
    name = label(subject) if isinstance(subject, tuple) else subject
    copies = [
        Copy(literal("name as text"), key_as_text(name)),
        Copy(literal("name as escaped bytes"), quoted(name)), row,
    ]  # fmt: skip
    if isinstance(subject, tuple):
        copies.append(Copy(literal("glob for everything below"), key_as_text(prefix_pattern(name))))
    return copies


FILTER_HINT: Final = key_hint(literal(" shows the rows that contain this text"), literal(" shows all"))
"""Shown while a filter is typed."""


class FileError(Exception):
    """A file that cannot be written; the reason is safe to show."""

    def __init__(self, reason: str) -> None:
        self.reason: SafeText = display_text(reason)
        super().__init__(self.reason)


def write_table(table: Table, name: str) -> SafeText:
    """Write a table to a file, in the format that the ending of its name says; return a text such as `9 rows to a.csv`.

    A file of this name is replaced as a whole, by one that only its owner may read. Raises FileError.
    """
    make = TABLE_FORMATS[suffix_of(name)]
    return write_text(name, lambda: make(table), counted(len(table.rows), "row"))


def suffix_of(name: str) -> str:
    """Return the ending of a file's name in small letters, such as `.csv`."""
    return Path(name).suffix.lower()


def write_text(name: str, make: Callable[[], str], what: str) -> SafeText:
    """Write a text to a file as `write_table` does; return a sentence with `what` and the file. Raises FileError."""
    path = Path(name).expanduser()
    try:
        data = make().encode()
        with atomic_file(path) as file:
            file.write(data)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {reason_of(error)}") from None
    return display_text(f"{what} to {path}")


class RowsScreen(CommandScreen[ScreenResultType]):
    """A screen of rows, some filtered by a line that is typed, copied, or written to a file whose name is typed."""

    filter_input: FilterInput
    file_input: FilterInput
    typed: Sequence[FilterInput]
    suffixes: ClassVar[Sequence[str]] = tuple(TABLE_FORMATS)

    @property
    def copies(self) -> Sequence[Copy]:
        """The copies of the row under the cursor, the usual first; empty if there is no row."""
        return ()

    def filter_rows(self, text: str) -> None:
        raise NotImplementedError

    def writing(self, name: str) -> Callable[[], SafeText]:
        """Return a function that writes the shown rows to a file, to be called in a thread.

        It returns the notice on the written file, or raises FileError.
        """
        raise NotImplementedError

    @classmethod
    def file_line(cls) -> FilterInput:
        hint = key_hint(SafeText(f" saves the file: {cls.endings()}"), literal(" cancels"))
        return FilterInput(f"file to write, ending in {cls.endings()}", keys_hint=hint, id="file")

    @classmethod
    def endings(cls) -> str:
        """Return the endings in words: `.csv, .md or .json`."""
        return f"{', '.join(cls.suffixes[:-1])} or {cls.suffixes[-1]}"

    def show_commands(self) -> None:
        """Show in the footer the commands that apply, or the keys of the open line."""
        hint = next((line.keys_hint for line in self.typed if line.is_open), None)
        self.footer_bar.show_commands(self.offered() if hint is None else (), hint or ())

    @property
    def is_typing(self) -> bool:
        return any(line.is_open for line in self.typed)

    def open_line(self, line: FilterInput, text: str = "") -> None:
        line.open(text)
        self.show_commands()

    def action_leave_filter(self) -> None:
        for line in self.typed:
            line.close()
        self.set_focus(self.focus_home)
        self.show_commands()

    @on(FilterInput.Changed, "#filter")
    def _filter_changed(self, event: FilterInput.Changed) -> None:
        if self.filter_input.is_open:
            self.filter_rows(event.value)

    @on(FilterInput.Submitted, "#filter")
    def _filter_typed(self) -> None:
        self.action_leave_filter()

    @on(FilterInput.Submitted, "#file")
    def _file_named(self, event: FilterInput.Submitted) -> None:
        self.action_leave_filter()
        if name := event.value.strip():
            work = self._write(name)
            self.run_worker(work, group="write", exit_on_error=False, description="writing a file")

    async def _write(self, name: str) -> None:
        """Write a file in a thread; after a failure the name is there to be changed."""
        try:
            if suffix_of(name) not in self.suffixes:
                raise FileError(f"The file extension must be {self.endings()}.")
            written = await asyncio.to_thread(self.writing(name))
        except FileError as error:
            self.notify(error.reason, title="Not written", severity="error", markup=False)
            if self.is_current and not self.is_typing:
                self.open_line(self.file_input, name)
        else:
            self.notify(written, title="Written", markup=False, timeout=4)

    def action_copy_row(self) -> None:
        """Copy the name that the row is about, or the whole row if it has no name."""
        if copies := self.copies:
            copy_text(self, copies[0].text)

    def action_copy_menu(self) -> None:
        if copies := self.copies:
            choose_copy(self, copies)


class RunScreen(RowsScreen[ScreenResultType]):
    """A screen of one run, an analysis or a search; its `conditions` say whether that is under way or paused."""

    shows_cost = False

    @property
    def control(self) -> RunControl:
        """The control that pauses, stops and paces the run."""
        raise NotImplementedError

    def show_soon(self) -> None:
        """Show the effect of a command, without waiting for the next poll."""
        raise NotImplementedError

    def action_pause(self) -> None:
        if Condition.PAUSED in self.conditions:
            self.control.resume()
        elif Condition.SCANNING in self.conditions:
            self.control.pause()
        self.show_soon()

    def action_stop(self) -> None:
        self.control.stop()
        self.show_soon()

    def action_faster(self) -> None:
        self.control.pace = self.control.pace.faster()
        self.show_soon()

    def action_slower(self) -> None:
        self.control.pace = self.control.pace.slower()
        self.show_soon()

    def action_cost(self) -> None:
        self.shows_cost = not self.shows_cost
        self.show_soon()


class PanelScreen(RowsScreen[ScreenResultType]):
    """A screen of panels, each a tab; the table of the chosen panel has the focus."""

    AUTO_FOCUS = "#table-body"

    def __init__(
        self, view: PanelView, bar: Bar, *, remedy: str,
        action_of: Callable[[Span], str | None] = lambda span: None,
    ) -> None:  # fmt: skip
        """`bar` stands below the tabs. `remedy` is the action that the banner recommends.

        `action_of` returns the action of a piece of the status bar.
        """
        super().__init__()
        self.view, self.bar_below_tabs = view, bar
        self.title_bar, self.banner = TitleBar(), Banner(remedy)
        self.tab_bar = TabBar(lambda index: self.action_show_panel(self._panel_ids[index]), id="panels")
        self.status_bar = LinkedBar(action_of, id="status")
        self.filter_input = FilterInput("part of a name", keys_hint=FILTER_HINT)
        self.file_input = self.file_line()
        self.typed = (self.filter_input, self.file_input)
        self._panel_ids: Sequence[str] = ()
        self._panel_id = ""
        self._seen = -1
        """The revision of the source that is shown."""

    @property
    def focus_home(self) -> Widget:
        """The rows of the table, also while other lines stand in their place."""
        return self.view.table.body

    def action_show_panel(self, panel_id: str) -> None:
        raise NotImplementedError

    def go_back(self) -> None:
        """Go back one step, while nothing is typed or filtered."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield from (self.title_bar, self.banner, self.tab_bar, self.bar_below_tabs, self.view)
        yield from (self.filter_input, self.file_input, self.status_bar, self.footer_bar)

    def on_resize(self) -> None:
        self.show_again()

    def show_again(self) -> None:
        self._seen = -1
        self.call_after_refresh(self.flush)

    @on(PanelView.Changed)
    def _panel_changed(self) -> None:
        self.show_commands()

    def action_next_list(self, step: int = 1) -> None:
        self.view.action_next_list(step)

    def show_tabs(self, panel_ids: Sequence[str], panel_id: str, make: Callable[[int], Line]) -> None:
        self._panel_ids, self._panel_id = panel_ids, panel_id
        self.tab_bar.set_line(make)

    def action_next_panel(self, step: int = 1) -> None:
        self.action_show_panel(following(self._panel_ids, self._panel_id, step))

    @property
    def copies(self) -> Sequence[Copy]:
        return row_copies(self.view.subject, self.view.table.body.texts) if self.view.has_rows else []

    def filter_rows(self, text: str) -> None:
        self.view.filter(text)

    def action_filter(self) -> None:
        if self.view.lists:
            self.open_line(self.filter_input, self.view.filter_text)

    def action_export(self) -> None:
        if self.view.has_rows:
            self.open_line(self.file_input)

    def writing(self, name: str) -> Callable[[], SafeText]:
        rows = self.view.table.rows
        return lambda: write_table(rows.shown(), name)

    def action_back(self) -> None:
        """Go back one step: close the open line or end the filter, or as the screen says."""
        if self.file_input.is_open:
            self.action_leave_filter()
        elif self.filter_input.is_open or self.view.filter_text:
            self.action_leave_filter()
            self.view.filter("")
        else:
            self.go_back()
