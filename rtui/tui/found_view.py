"""The widget of found keys: column titles over rows that are made when they come into view; its commands.

The part of a name that the query was about is highlighted: where a text or an expression was found, or the literal
parts of a glob from left to right. Places are found in the bytes of a name and then in the text that is shown of it,
which may be cut in the middle.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from rtui.analysis.query.patterns import RegexError, compiled
from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.terms import GLOB, REGEX, TEXT
from rtui.analysis.report.document import KeyRecord
from rtui.analysis.report.tables.table import Cell, Column, Table, cell_text
from rtui.keyspace.text.display import SafeText
from rtui.tui.found_rows import COLUMNS, EXPIRED, SORTS, FoundRows, cell
from rtui.tui.kit.choice import sort_commands
from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand, bindings, move_commands
from rtui.tui.kit.layout import TERMINAL, display
from rtui.tui.kit.line_view import LinePanel, OpenRows, set_content_height
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, gap, line_width, width_of
from rtui.tui.kit.table_rows import MARGIN, NAME_LIMIT, ColumnOrder, TableLayout, header_line, layout_table, table_line

_find = partial(ScreenCommand, group=Group.FIND, owner=Owner.FIND)

_RUNNING: Final = (Condition.SCANNING, Condition.PAUSED)

FIND_COMMANDS: Final = (
    *move_commands(Owner.FOUND, "key"),
    _find(
        "begin", (), "Search", "Start the search of a large keyspace after its cost was shown.",
        when=(Condition.READY,), footer=1, label="enter",
    ),
    _find(
        "open", ("enter", "right", "l"), "Go to it",
        "Go to the key in the tree, with its details; Escape returns to the list.",
        when=(Condition.HAS_ROWS,), footer=1,
    ),
    _find("edit", ("slash",), "Query", "Edit the query.", footer=2, words="find search"),
    _find("pause", ("p",), "Pause", "Pause or resume the search.", when=_RUNNING, footer=3),
    _find("stop", ("x",), "Stop", "Stop the search; keys found so far stay.", when=_RUNNING, footer=4),
    _find("faster", ("plus", "equals_sign"), "Faster", "Increase the pace.", when=_RUNNING, label="+"),
    _find("slower", ("minus",), "Slower", "Decrease the pace.", when=_RUNNING),
    *sort_commands(Group.FIND, Owner.FIND, footer=5, when=(Condition.HAS_ROWS,)),
    _find("columns", ("c",), "Columns", "Choose the columns; missing fields are read by a new search.",
        footer=8),
    _find("copy_name", ("y",), "Copy", "Copy the name of the key.", when=(Condition.HAS_ROWS,), footer=6,
        call="copy_row"),
    _find("copy_menu", ("Y",), "Copy as…", "Choose what to copy of the key.", when=(Condition.HAS_ROWS,)),
    _find("export", ("w",), "Export", "Export the list to a .txt, .csv, .json, .jsonl or .md file.",
        when=(Condition.HAS_ROWS,), footer=7, words="export save csv json download"),
    _find("again", ("R",), "Search again",
        "Search the server again; when sorted by a field, for the top thousand of all keys.",
        words="refresh rescan reload"),
    _find("cost", ("i",), "Cost", "Show the cost to the server so far: commands, bytes, CPU time."),
    _find("back", ("escape",), "Back", "Go back one step: stop a running search, or leave the list.",
        footer=9),
)  # fmt: skip


Places = Callable[[bytes], Iterator[tuple[int, int]]]
"""Yields places in a name, as pairs of offsets."""

_GLOB_PART: Final = re.compile(rb"[*?]+|\[[^\]]*\]|\\(.)", re.DOTALL)

_CONTINUATION: Final = 0xC0, 0x80
"""The mask of a continuation byte of UTF-8, and its masked value."""


class Marker:
    """Finds in names the texts of a query's terms."""

    def __init__(self, query: Query) -> None:
        self._places = [found for term in query.terms if not term.is_negated and (found := _places(term)) is not None]

    def places(self, name: bytes) -> list[tuple[int, int]]:
        """Return places in a name that don't overlap, in order, never within a character."""
        found: list[tuple[int, int]] = []
        for first, last in sorted(place for places in self._places for place in places(name)):
            start, end = _whole(name, first, -1), _whole(name, last, 1)
            if start < end and (not found or found[-1][1] <= start):
                found.append((start, end))
        return found


def _whole(name: bytes, at: int, step: int) -> int:
    """Return the offset of a border between characters at or beside another offset."""
    mask, continuation = _CONTINUATION
    for _ in range(3):
        if not 0 < at < len(name) or name[at] & mask != continuation:
            break
        at += step
    return at


def _places(term: Term) -> Places | None:
    if term.name == TEXT:
        return _text_places([term.names[0]], is_any_case=term.names[0] == term.names[0].lower())
    if term.name == GLOB:
        return _text_places(_literals(term.names[0]), is_any_case=False)
    if term.name == REGEX:
        try:
            search: Any = compiled(term.names[0])
        except RegexError:
            return None

        def places(name: bytes) -> Iterator[tuple[int, int]]:
            found = search(name)
            if found is not None:
                yield found.span()

        return places
    return None


def _literals(glob: bytes) -> list[bytes]:
    """Return the parts of a glob that stand for themselves."""
    parts, at, text = [], 0, b""
    for found in _GLOB_PART.finditer(glob):
        text += glob[at : found.start()]
        at = found.end()
        if found[1] is not None:
            text += found[1]
        else:
            parts.append(text)
            text = b""
    return [part for part in (*parts, text + glob[at:]) if part]


def _text_places(texts: Sequence[bytes], *, is_any_case: bool) -> Places:
    def places(name: bytes) -> Iterator[tuple[int, int]]:
        searched, at = (name.lower() if is_any_case else name), 0
        for text in texts:
            start = searched.find(text, at)
            if start < 0:
                return
            at = start + len(text)
            yield start, at

    return places


def marked_spans(name: bytes, shown: SafeText, marker: Marker, show: Callable[[bytes], SafeText]) -> Line:
    """Return the shown text of a name, cut or not, as spans with the searched parts highlighted.

    `show` returns the whole text of a part of the name.
    """
    places = marker.places(name)
    if not places:
        return (Span(shown),)
    whole = show(name)
    borders = [len(show(name[:at])) for place in places for at in place]
    kept_head = _common(whole, shown)
    kept_tail = 0 if kept_head == len(whole) else _common(whole[::-1], shown[::-1])
    kept_tail = min(kept_tail, len(shown) - kept_head)
    shift = len(shown) - len(whole)
    cuts = {0, len(shown)}
    marked: list[tuple[int, int]] = []
    for start, end in zip(borders[::2], borders[1::2], strict=True):
        if start < kept_head:
            marked.append((start, min(end, kept_head)))
        if end > len(whole) - kept_tail:
            marked.append((max(start, len(whole) - kept_tail) + shift, end + shift))
    for place in marked:
        cuts.update(place)
    return tuple(
        Span(SafeText(shown[start:end]), Role.ACCENT if _is_in(start, end, marked) else Role.TEXT)
        for start, end in pairwise(sorted(cuts))
    )


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_in(start: int, end: int, places: Sequence[tuple[int, int]]) -> bool:
    return any(first <= start and end <= last for first, last in places)


MEASURED_ROWS: Final = 100
"""The texts of this many rows decide how wide the columns are."""


def cell_texts(cells: Sequence[Cell], columns: Sequence[Column]) -> tuple[SafeText, ...]:
    """Return the cells of a row as this terminal shows them."""
    return tuple(
        display(one, limit=NAME_LIMIT)
        if isinstance(one, bytes) and column.id == "key"
        else cell_text(one, column, TERMINAL)
        for one, column in zip(cells, columns, strict=True)
    )


def whole_name(name: bytes) -> SafeText:
    """Return the text of a name, or of its beginning, as long as a row shows at most."""
    return display(name, limit=NAME_LIMIT)


class FoundBody(OpenRows, can_focus=True):
    """The rows."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(FIND_COMMANDS, Owner.FOUND)
    DEFAULT_CSS = """
    FoundBody { height: 1fr; }
    """

    class Moved(Message):
        """The cursor has moved."""

    def __init__(self, rows: FoundRows, clock: Callable[[], float]) -> None:
        super().__init__(id="found-body")
        self._clock = clock
        self.table_layout = TableLayout()
        self.use(rows)

    def use(self, rows: FoundRows) -> None:
        self.rows = rows
        self.cursor_line = rows.cursor_line
        self._marker = Marker(rows.search.query)
        self.table = Table("", "", tuple(COLUMNS[name].column for name in rows.columns), ())
        self._widths = [len(EXPIRED) if name == "ttl" else 0 for name in rows.columns]
        self._measured = 0

    @property
    def record(self) -> KeyRecord | None:
        return self.rows.record(self.cursor_line) if 0 <= self.cursor_line < len(self.rows) else None

    def line_at(self, number: int) -> Line | None:
        if not 0 <= number < len(self.rows):
            return None
        record, now_s = self.rows.record(number), self._clock()
        cells = [cell(name, record, now_s) for name in self.rows.columns]
        line = table_line(cells, cell_texts(cells, self.table.columns), self.table, self.table_layout)
        name_at = next((at for at, shown in enumerate(self.table_layout.columns) if shown.index == 0), None)
        if name_at is None:
            return line
        width = self.table_layout.columns[name_at].cells
        shown = cut_middle(whole_name(record.key), width)
        name = marked_spans(record.key, shown, self._marker, whole_name)
        return (gap(MARGIN), *name, gap(width - line_width(name)), *line[2:])

    def fit_columns(self) -> None:
        now_s, widths = self._clock(), self._widths
        while self._measured < min(len(self.rows), MEASURED_ROWS):
            record = self.rows.record(self._measured)
            cells = [cell(name, record, now_s) for name in self.rows.columns]
            texts = cell_texts(cells, self.table.columns)
            widths = [max(width, width_of(text)) for width, text in zip(widths, texts, strict=True)]
            self._measured += 1
        self._widths = widths
        if not len(self.rows):
            widths = [column.width for column in self.table.columns]
        width, sort = self.scrollable_content_region.width, self.rows.sort
        self.table_layout = layout_table(self.table, width, sort and SORTS[sort].column.id, widths)

    def measure_again(self) -> None:
        """Measure the widths of columns again: no narrower than now, and wide enough for other first rows."""
        self._measured = 0

    def follow(self) -> None:
        self.rows.follow()
        set_content_height(self, len(self.rows))
        if self.cursor_line >= len(self.rows):
            self.cursor_line = self.rows.cursor_line = max(0, len(self.rows) - 1)
        self.repaint_changes()

    def move_to(self, line: int) -> None:
        line = max(0, min(line, len(self.rows) - 1))
        self.rows.cursor_line = line
        self.put_cursor(line)
        self.post_message(self.Moved())


class FoundView(Vertical):
    """The rows under their titles; sorts them."""

    BLANK = True

    def __init__(self, rows: FoundRows, clock: Callable[[], float]) -> None:
        super().__init__(id="found")
        self._header = LinePanel(id="found-header")
        self.body = FoundBody(rows, clock)

    def compose(self) -> ComposeResult:
        yield self._header
        yield self.body

    @property
    def rows(self) -> FoundRows:
        return self.body.rows

    def show(self, rows: FoundRows) -> None:
        """Show the rows of another search, or of this one with other columns, at the position where they were left."""
        self.body.use(rows)
        self.body.follow()
        self.fit()
        self.body.scroll_top_to(rows.top_line)
        self.body.refresh()

    def fit(self) -> None:
        self.body.fit_columns()
        rows, table, order = self.rows, self.body.table, None
        if rows.sort is not None:
            column = SORTS[rows.sort].column
            order = ColumnOrder(column.id, upward=column.numeric is not rows.is_descending)
        self._header.show([header_line(table, self.body.table_layout, order)])
        self.body.refresh()

    def on_resize(self) -> None:
        self.call_after_refresh(self.fit)

    def follow(self) -> None:
        """Show the keys found since the last call; the first rows decide the widths of columns."""
        before = len(self.rows)
        self.body.follow()
        if before < MEASURED_ROWS and len(self.rows) != before:
            self.fit()

    def sort_by(self, name: str | None, *, is_reversed: bool = False) -> None:
        self.rows.sort, self.rows.is_reversed = name, is_reversed
        self.fit()
        self._begin_sorting()

    def sort_at_end(self) -> None:
        """Sort the keys found after the user had sorted, once no more come."""
        if not self.rows.is_in_order:
            self._begin_sorting()

    def _begin_sorting(self) -> None:
        self.run_worker(self._sort(self.rows), group="sort", exclusive=True, exit_on_error=False, description="sort")

    async def _sort(self, rows: FoundRows) -> None:
        key = self.body.record.key if self.body.record is not None and self.body.cursor_line else None
        lines, line = await asyncio.to_thread(rows.sorted_lines, key)
        if rows is not self.rows:
            return
        screen_line = self.body.cursor_line - self.body.scroll_offset.y
        rows.arrange(lines)
        self.body.measure_again()
        self.fit()
        if key is not None and 0 <= screen_line < self.body.size.height:
            self.body.scroll_top_to(line - screen_line)
        self.body.move_to(line)
        self.body.refresh()

    def on_click(self, event: events.Click) -> None:
        index = self.body.table_layout.column_at(event.x) if event.widget is self._header else None
        if index is not None:
            name = self.rows.columns[index]
            self.sort_by(name, is_reversed=self.rows.sort == name and not self.rows.is_reversed)
