"""The widget that shows a panel: the titles of its lists over the chosen table, with the lines around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from textual import on
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from rtui.analysis.report.tables.table import Subject, label
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.user.copying import key_as_text
from rtui.tui.kit.bars import TabBar
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.layout import MARGIN, display_text, prose, tab_line
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, line_width, literal, width_of
from rtui.tui.kit.table import ReportTable
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

    def __init__(self, *around: Widget, id: str | None = None) -> None:
        """`around` are the widgets around the table, hidden while no table is shown."""
        super().__init__(id=id)
        self._around = around
        self.table = ReportTable(id="table")
        self.titles_bar = TabBar(id="lists")
        self.in_place = LinePanel(id="offer")
        self.lists: Sequence[str] = ()
        """The ids of the panel's lists; empty while other lines stand in their place."""
        self.list_id = ""
        """The id of the list that is shown."""

    def choose_list(self, list_id: str) -> None:
        """Show another list of the panel."""
        raise NotImplementedError

    def show_around(self) -> None:
        """Show titles, notes and the reason for an empty table, as the rows are now; called while there is a table."""
        raise NotImplementedError

    @property
    def has_rows(self) -> bool:
        """Whether there is a row under the cursor."""
        return bool(self.lists) and len(self.table.rows) > 0

    @property
    def subject(self) -> Subject:
        """The subject of the row under the cursor, None if there is no row."""
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
        """Show only the rows with a text in them."""
        if self.lists:
            self.table.filter(text)
            self.rows_arranged()

    def action_next_list(self, step: int = 1) -> None:
        """Show the list `step` places after this one."""
        if self.lists:
            self.choose_list(following(self.lists, self.list_id, step))

    @on(ReportTable.Sorted)
    @on(ReportTable.Arranged)
    def rows_arranged(self) -> None:
        """Update the lines around the rows."""
        if self.lists:
            self.show_around()
            self.post_message(self.Changed())

    @on(TabBar.Chosen, "#lists")
    def _title_clicked(self, event: TabBar.Chosen) -> None:
        event.stop()
        if event.index < len(self.lists):
            self.choose_list(self.lists[event.index])


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
    """Return the lines in place of a table whose filter matches no row."""
    text = SafeText(f"No row{among} has {display_text(rows.state.filter_text, limit=60)}")
    return notice_lines(text, Role.STRONG, width, literal("Escape shows all rows again."))


def row_copies(subject: Subject, texts: Sequence[SafeText]) -> list[Copy]:
    """Return the copies of a row, first its name, if it has one; empty if there is no row."""
    if not texts:
        return []
    row = Copy(literal("the row, its cells apart by tabs"), "\t".join(texts))
    if not isinstance(subject, bytes | tuple):
        return [row]
    name = label(subject) if isinstance(subject, tuple) else subject
    copies = [
        Copy(literal("name as text"), key_as_text(name)),
        Copy(literal("name as escaped bytes"), quoted(name)), row,
    ]  # fmt: skip
    if isinstance(subject, tuple):
        copies.append(Copy(literal("pattern of everything below"), key_as_text(prefix_pattern(name))))
    return copies
