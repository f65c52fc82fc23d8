"""The widget that shows a panel of a server: one of its lists, notes, and all about the figure under the cursor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message

from rtui.analysis.health.panel import Line as Figure
from rtui.analysis.report.tables.table import Subject, Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.bars import TabBar
from rtui.tui.kit.chart_lines import inset
from rtui.tui.kit.layout import display_text, prose
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.styled_text import Line, Role, literal
from rtui.tui.kit.table import ReportTable, TableBody
from rtui.tui.kit.table_lines import nothing_left_lines, notice_lines, titles_line
from rtui.tui.kit.table_rows import TableRows, TableState
from rtui.tui.server.figure_lines import figure_lines
from rtui.tui.server.panels import BY_ID, FIGURES, OVERVIEW, Content, ServerPanel, figures_table

LEAST_TABLE_LINES: Final = 9
"""Lines that stay to the table at least, its titles among them."""

MOST_DETAIL_LINES: Final = 13
"""Lines about the figure under the cursor at most."""

MOST_NOTE_LINES: Final = 3

EVERY_ROW: Final = literal("")
"""What is filtered: all rows of a complete list."""


@dataclass(slots=True)
class ServerStates:
    """What the user has chosen on the screen; outlives it."""

    panel_id: str = ""
    """The panel that is shown; empty for the first one, which of a cluster is that of its nodes."""
    lists: dict[str, str] = field(default_factory=dict)
    """The id of the list that is shown, by panel."""
    tables: dict[str, TableState] = field(default_factory=dict)
    """How lists are sorted and filtered, by panel and list."""
    node: SafeText | None = None
    """The node of a cluster whose panels are shown; None for the first one."""

    def table(self, panel_id: str, list_id: str) -> TableState:
        """Return the state of a list."""
        return self.tables.setdefault(f"{panel_id} {list_id}", TableState())


class ServerPanelView(Vertical):
    """Shows what a tab has, or lines in its place."""

    BLANK = True

    class Changed(Message):
        """The list, or the row under the cursor, has changed."""

    def __init__(self, states: ServerStates, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.states = states
        self.table = ReportTable(id="table")
        self._lists_bar = TabBar(id="lists")
        self._notes, self._detail = LinePanel(id="server-notes"), LinePanel(id="server-detail")
        self._in_place = LinePanel(id="offer")
        self._content = Content()
        self._tables: tuple[Table, ...] = ()
        self._span_s: float | None = None
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Put the parts under each other."""
        yield from (self._lists_bar, self.table, self._in_place, self._notes, self._detail)

    @property
    def panel(self) -> ServerPanel:
        """The tab that is shown."""
        return BY_ID.get(self.states.panel_id, BY_ID[OVERVIEW])

    @property
    def tables(self) -> tuple[Table, ...]:
        """The lists that the panel has."""
        return self._tables

    @property
    def chosen(self) -> Table | None:
        """The list that is shown; None where there is none."""
        wanted = self.states.lists.get(self.panel.id)
        return next((one for one in self._tables if one.id == wanted), next(iter(self._tables), None))

    @property
    def has_rows(self) -> bool:
        """Whether there is a row under the cursor."""
        return bool(self._tables) and len(self.table.rows) > 0

    @property
    def subject(self) -> Subject:
        """What the row under the cursor is about."""
        return self.table.body.subject if self._tables else None

    @property
    def figure(self) -> Figure | None:
        """The figure under the cursor; None where there is none."""
        table, subject = self.chosen, self.subject
        if table is None or table.id != FIGURES or not isinstance(subject, str):
            return None
        found = (figure for panel, figure in self._content.figures if f"{panel.id}/{figure.id}" == subject)
        return next(found, None)

    def show(self, content: Content, span_s: float | None, *, is_over: bool = False) -> None:
        """Show what a tab has; `span_s` and `is_over` are for plots (`plot_lines`)."""
        self._content, self._span_s, self._is_over = content, span_s, is_over
        figures = (figures_table(content, is_overview=self.panel.id == OVERVIEW),) if content.figures else ()
        self._tables = (*figures, *content.tables)
        table = self.chosen
        if table is None:
            self.show_lines(lambda width: self._empty_lines(content, width))
            return
        state = self.states.table(self.panel.id, table.id)
        self.table.show((self.panel.id, table.id), table, state, holds_order=True)
        self._show_around()

    def show_lines(self, make: MakeLines) -> None:
        """Show these lines in place of a list."""
        self._tables = ()
        self.add_class("-nothing")
        self._notes.display = self._detail.display = False
        self._lists_bar.set_line(lambda _width: ())
        self._in_place.set_content(make)

    def _empty_lines(self, content: Content, width: int) -> list[Line]:
        """Return why the panel has neither figures nor lists."""
        notes = [SafeText(f"{note}.") for note in content.notes]
        return notice_lines(literal("Nothing is known here"), Role.STRONG, width, *notes)

    def _show_around(self) -> None:
        """Show the titles of the lists, the notes, what is said of the figure, or why the list is empty."""
        table, rows = self.chosen, self.table.rows
        if table is None:
            return
        titles = [self._title(one) for one in self._tables]
        at = self._tables.index(table)
        self._lists_bar.set_line(lambda width: titles_line(titles, at, rows, EVERY_ROW, width))
        self.set_class(not len(rows), "-nothing")
        self._in_place.set_content(lambda width: [] if len(rows) else self._nothing_lines(table, rows, width))
        notes = self._note_lines(self.size.width)
        self._notes.display = bool(notes)
        if notes:
            self._notes.styles.height = len(notes)
            self._notes.set_content(self._note_lines)
        self._show_detail()

    def _title(self, table: Table) -> SafeText:
        title = display_text(table.title)
        return title if table.id == FIGURES else SafeText(f"{title} {len(table.rows):,}")

    def _nothing_lines(self, table: Table, rows: TableRows, width: int) -> list[Line]:
        if rows.state.filter_text:
            return nothing_left_lines(rows, EVERY_ROW, width)
        note = (display_text(table.note),) if table.note else ()
        return notice_lines(literal("Nothing to list"), Role.STRONG, width, *note)

    def _note_lines(self, width: int) -> list[Line]:
        """Return the notes of the panel and of the list, as many as there is room for."""
        table = self.chosen
        of_table = [] if table is None or not table.note else [display_text(table.note, limit=400)]
        notes = [*of_table, *(SafeText(f"{note}.") for note in self._content.notes)]
        return [line for note in notes for line in prose(note, width, Role.MUTED)][:MOST_NOTE_LINES]

    def _show_detail(self) -> None:
        """Show all about the figure under the cursor, where there is room for it."""
        figure, span_s = self.figure, self._span_s
        above = LEAST_TABLE_LINES + 1 + (len(self._note_lines(self.size.width)) if self._notes.display else 0)
        height = min(MOST_DETAIL_LINES, self.size.height - above) if figure is not None else 0
        self._detail.display = height > 0
        if figure is None or height <= 0:
            return
        self._detail.styles.height = height
        is_over = self._is_over
        self._detail.set_content(
            lambda width: inset(
                figure_lines(figure, Size(width - 2, height), span_s, is_over=is_over), Size(width, height)
            )
        )

    def action_next_list(self, step: int = 1) -> None:
        """Show the list so many places after this one."""
        if self._tables and (table := self.chosen) is not None:
            self.choose_list(self._tables[(self._tables.index(table) + step) % len(self._tables)].id)

    def choose_list(self, list_id: str, row: str | None = None) -> None:
        """Show a list of the panel, with the cursor on the row that is about `row`."""
        self.states.lists[self.panel.id] = list_id
        if row is not None:
            self.states.table(self.panel.id, list_id).cursor_row = row
        self.show(self._content, self._span_s, is_over=self._is_over)
        self.post_message(self.Changed())

    def filter(self, text: str) -> None:
        """Show only the rows with a text in them."""
        self.table.filter(text)
        self._show_around()
        self.post_message(self.Changed())

    @on(TableBody.Highlighted)
    def _cursor_moved(self) -> None:
        self._show_detail()
        self.post_message(self.Changed())

    @on(ReportTable.Sorted)
    @on(ReportTable.Arranged)
    def _rows_arranged(self) -> None:
        self._show_around()
        self.post_message(self.Changed())

    @on(TabBar.Chosen, "#lists")
    def _title_clicked(self, event: TabBar.Chosen) -> None:
        event.stop()
        if event.index < len(self._tables):
            self.choose_list(self._tables[event.index].id)

    def on_resize(self) -> None:
        """Divide the new height."""
        self._show_around()
