"""The rows of a table as they are shown, sorted and filtered, in the columns that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Reason, Unknown
from rtui.analysis.report.tables.table import EMPTY_NAME, AtLeast, Cell, Column, Subject, Table, Unit, cell_text
from rtui.keyspace.slices import Slicer, Slices, finish
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import bar, display, display_text
from rtui.tui.kit.styled_text import Line, Role, Span, cut, cut_middle, gap, left, literal, right, type_role, width_of

NAME_LIMIT: Final = 200
MEASURED_ROWS: Final = 200
"""The texts of this many rows decide how wide the columns are."""


class ColumnOrder(NamedTuple):
    """The column by which a table is sorted."""

    column: str
    upward: bool = False
    """Whether it is the other way than usual for the column: smallest number first, last name first."""


@dataclass(slots=True)
class TableState:
    """The sort order, filter and cursor of a table; it outlives the table, which is often made anew."""

    sort: str | None = None
    """The id of the column by which the user sorted the rows, None for the order in which the table was made."""
    is_reversed: bool = False
    """Whether the rows are in reverse: smallest number first, last name first."""
    filter_text: str = ""
    """Only rows with this text in a name or text of theirs are shown."""
    cursor_row: Hashable = None
    has_moved: bool = False
    """Whether the user has moved the cursor, so that rows have to keep their places."""


class TableRows:
    """One table in one state. A row has an index in the table, a line on the screen, and an identity.

    The identity, its subject and its names, finds a row again in a newer table of the same kind.
    """

    def __init__(self, table: Table, state: TableState, held: list[Hashable] | None = None) -> None:
        """`held` are identities of rows that keep this order; other rows come after them."""
        self.table = table
        self.state = state
        self._texts: dict[int, tuple[SafeText, ...]] = {}
        self._filtered_by = ""
        self._shown: Sequence[int] = range(len(table.rows))
        finish(self._arrange(held, Slicer()))

    @classmethod
    def in_slices(cls, table: Table, state: TableState, before: TableRows, *, holds: bool) -> Slices[TableRows]:
        """Return the rows of a large table, made in slices.

        With `holds` the rows of `before` keep their order. Cached texts and filter results of the same table are
        reused.
        """
        rows, slicer = cls(table, TableState()), Slicer()
        rows.state = state
        if before.table is table:
            rows._texts = before._texts
            if before._filtered_by and before._filtered_by.casefold() in state.filter_text.casefold():
                rows._shown = sorted(before._shown)
        held = []
        for line in range(len(before) if holds else 0):
            held.append(before.identity(line))
            yield from slicer.pause()
        yield from rows._arrange(held if holds else None, slicer)
        lines: dict[Hashable, int] = {}
        for line in range(len(rows)):
            lines[rows.identity(line)] = line
            yield from slicer.pause()
        rows._lines = lines
        for line in range(min(len(rows), MEASURED_ROWS)):
            rows.texts(line)
            yield from slicer.pause()
        return rows

    def _arrange(self, held: list[Hashable] | None, slicer: Slicer) -> Slices[None]:
        table, state, columns = self.table, self.state, self.table.columns
        rows: Sequence[int] = self._shown
        if state.filter_text:
            rows = yield from table.filtered_rows(state.filter_text, self._texts_of, rows, slicer)
        by = next((at for at, column in enumerate(columns) if column.id == state.sort), None)
        if by is not None:
            descending = columns[by].numeric is not state.is_reversed
            rows = yield from table.sorted_rows(rows, by, slicer, descending=descending)
        elif state.is_reversed:
            rows = rows[::-1]
        if held is not None:
            rows = yield from self._held(held, rows, slicer)
        self._shown, self._filtered_by = rows, state.filter_text

    def _held(self, held: list[Hashable], rows: Sequence[int], slicer: Slicer) -> Slices[list[int]]:
        """Return rows in the order of these identities, others after them."""
        indices: dict[Hashable, int] = {}
        for index in reversed(rows):
            indices[self._identities[index]] = index
            yield from slicer.pause()
        old = []
        for identity in held:
            if identity in indices:
                old.append(indices.pop(identity))
            yield from slicer.pause()
        is_old = frozenset(old)
        return [*old, *(index for index in rows if index not in is_old)]

    @cached_property
    def _identities(self) -> Sequence[Hashable]:
        return self.table.subjects if self.table.tells_by_subject else _identities(self.table)

    @cached_property
    def _lines(self) -> dict[Hashable, int]:
        return {self._identities[index]: line for line, index in enumerate(self._shown)}

    def __len__(self) -> int:
        return len(self._shown)

    @property
    def order(self) -> list[Hashable]:
        return [self._identities[index] for index in self._shown]

    def index(self, line: int) -> int:
        return self._shown[line]

    def identity(self, line: int) -> Hashable:
        return self._identities[self._shown[line]]

    def line_of(self, identity: Hashable) -> int | None:
        return None if identity is None else self._lines.get(identity)

    def subject(self, line: int) -> Subject:
        return self.table.subject(self._shown[line])

    def cells(self, line: int) -> tuple[Cell, ...]:
        return self.table.rows[self._shown[line]]

    def texts(self, line: int) -> tuple[SafeText, ...]:
        return self._texts_of(self._shown[line])

    def shown(self) -> Table:
        return self.table.picked(self._shown)

    def _texts_of(self, index: int) -> tuple[SafeText, ...]:
        texts = self._texts.get(index)
        if texts is None:
            row = zip(self.table.rows[index], self.table.columns, strict=True)
            texts = self._texts[index] = tuple(_cell_text(cell, column) for cell, column in row)
        return texts


def _identities(table: Table) -> list[Hashable]:
    """Return the identity of each row; of several equal ones all but the first get a number."""
    named = [at for at, column in enumerate(table.columns) if column.unit in (Unit.NAME, Unit.TEXT, Unit.TIME)]
    count: Counter[Hashable] = Counter()
    identities: list[Hashable] = []
    for index, row in enumerate(table.rows):
        identity = (table.subject(index), tuple(row[at] for at in named if isinstance(row[at], Hashable)))
        identities.append((identity, count[identity]) if count[identity] else identity)
        count[identity] += 1
    return identities


def _cell_text(cell: Cell, column: Column) -> SafeText:
    if isinstance(cell, bytes):
        return display(cell, limit=NAME_LIMIT) if cell else EMPTY_NAME
    if isinstance(cell, str):
        return display_text(cell, limit=NAME_LIMIT)
    return cell_text(cell, column)


GAP_CELLS: Final = 2
"""Blank cells before each column but the first."""

MARGIN: Final = 1
"""Cells at the left of a row, for its mark."""

MIN_NAME_CELLS: Final = 24
"""The flexible column keeps this width."""

GOOD_NAME_CELLS: Final = 34
"""Up to this width it gets the room for its texts before other columns get theirs."""

MIN_MIX_CELLS: Final = 12
"""A column of names with figures, largest first, may be cut down to this width."""

MAX_NAME_CELLS: Final = 64
"""It gets no wider while other columns have texts to show, so that these stay near."""

BAR_CELLS: Final = 10
MIN_BAR_CELLS: Final = 4
"""Width of the bar beside a share, where it fits and where texts need the room."""

SEVERITY: Final = "severity"

STATUS: Final = "status"
"""The column of how metrics are by their thresholds."""

WORD_ROLES: Final[Mapping[str, Mapping[object, Role]]] = {
    SEVERITY: {"down": Role.BAD, "error": Role.BAD, "warn": Role.WARN},
    STATUS: {"bad": Role.BAD, "warn": Role.WARN, "normal": Role.GOOD},
    "state": {"down": Role.BAD, "error": Role.BAD, "warn": Role.WARN, "ok": Role.GOOD},
}
"""The roles of words in columns of certain words."""

MAX_TEXT_CELLS: Final = 110
"""A flexible column of sentences may be wider than one of names."""

TYPE_COLUMNS: Final = frozenset({"type", "kind"})

MARK: Final = literal("!")


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of a table on the screen."""

    index: int
    cells: int
    is_right: bool
    bar_cells: int = 0

    @property
    def whole_cells(self) -> int:
        """Its width with the bar."""
        return self.cells + (self.bar_cells + 1 if self.bar_cells else 0)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns that fit into a width."""

    columns: tuple[ShownColumn, ...] = ()

    def column_at(self, x: int) -> int | None:
        """Return the index of the table's column at a cell of the screen."""
        start = MARGIN
        for shown in self.columns:
            end = start + shown.whole_cells
            if start <= x < end + GAP_CELLS:
                return shown.index
            start = end + GAP_CELLS
        return None


def layout_table(table: Table, width: int, sort: str | None = None, text_widths: Sequence[int] = ()) -> TableLayout:
    """Return the columns that fit into `width` cells: the flexible one, the sort column, then from the left.

    The flexible column is the first one without a width of its own; it gets the rest. `text_widths` are the widths of
    the widest text seen in each column. Numbers are never cut, so their columns are as wide as their texts; what is
    left goes to texts that would be cut, then to a bar.
    """
    columns = table.columns
    if not columns:
        return TableLayout()
    sizes = [
        max(
            # names and texts get little more than the column asks for
            min(widest, column.width + 3) if column.width and not column.numeric else widest,
            width_of(column.title) + (2 if column.numeric else 0),
        )
        for column, widest in zip(columns, text_widths or [column.width for column in columns], strict=True)
    ]
    flexible = next((at for at, column in enumerate(columns) if not column.width), 0)
    least = max(MIN_NAME_CELLS, min(sizes[flexible], GOOD_NAME_CELLS, width - 2 * MARGIN))
    space = width - 2 * MARGIN - least
    kept = {flexible}
    for at in sorted(range(len(columns)), key=lambda at: (columns[at].id != sort, columns[at].yields)):
        if at in kept:
            continue
        if sizes[at] + GAP_CELLS <= space:
            kept.add(at)
            space -= sizes[at] + GAP_CELLS
        elif columns[at].unit is Unit.MIX and space - GAP_CELLS >= MIN_MIX_CELLS:
            kept.add(at)
            sizes[at], space = space - GAP_CELLS, 0
        elif columns[at].id != sort:
            break
    widest = MAX_TEXT_CELLS if columns[flexible].unit is Unit.TEXT else MAX_NAME_CELLS
    more = max(0, min(space, min(sizes[flexible], widest) - least))
    sizes[flexible] = least + more
    space -= more
    for at in (*sorted(kept - {flexible}), flexible):
        wider = max(0, min(space, (text_widths[at] if text_widths else 0) - sizes[at]))
        sizes[at] += wider
        space -= wider
    shares = [at for at in sorted(kept) if columns[at].unit is Unit.SHARE and not columns[at].is_change]
    bar = min(BAR_CELLS, space - 1) if shares and space > MIN_BAR_CELLS else 0
    bars = dict.fromkeys(shares[:1], bar)
    return TableLayout(tuple(ShownColumn(at, sizes[at], columns[at].numeric, bars.get(at, 0)) for at in sorted(kept)))


def header_line(table: Table, layout: TableLayout, order: ColumnOrder | None) -> Line:
    """Return the titles of the columns; the sort column is marked."""
    spans: list[Span] = [gap(MARGIN)]
    for number, shown in enumerate(layout.columns):
        column = table.columns[shown.index]
        title, role = SafeText(column.title), Role.MUTED
        if order is not None and column.id == order.column:
            title = SafeText(f"{title} {'↓' if column.numeric is not order.upward else '↑'}")
            role = Role.ACCENT
        if number:
            spans.append(gap(GAP_CELLS))
        spans.append(Span((right if shown.is_right else left)(title, shown.cells), role))
        if shown.bar_cells:
            spans.append(gap(shown.bar_cells + 1))
    return tuple(spans)


def table_line(
    cells: Sequence[Cell], texts: Sequence[SafeText], table: Table, layout: TableLayout, *, is_marked: bool = False
) -> Line:
    """Return one row; `is_marked` highlights it by a sign and by its colour."""
    spans: list[Span] = [Span(MARK, Role.WARN) if is_marked else gap(MARGIN)]
    for number, shown in enumerate(layout.columns):
        cell, text, column = cells[shown.index], texts[shown.index], table.columns[shown.index]
        if number:
            spans.append(gap(GAP_CELLS))
        if shown.is_right:
            fitted = right(text, shown.cells)
        else:
            fitted = left((cut_middle if column.unit is Unit.NAME else cut)(text, shown.cells), shown.cells)
        if column.is_change:
            role = Role.FAINT if not cell or isinstance(cell, str) else Role.ACCENT
        else:
            role = _role(cell, column, is_marked=is_marked, is_first=not number)
        spans.append(Span(fitted, role))
        if shown.bar_cells:
            spans += _bar(cell, shown.bar_cells)
    return tuple(spans)


def has_changed(table: Table, cells: Sequence[Cell]) -> bool:
    """Return whether a row has a change that can be told from none."""
    changes = [cell for cell, column in zip(cells, table.columns, strict=True) if column.is_change]
    figures = (cell.value if isinstance(cell, Estimate | AtLeast) else cell for cell in changes)
    return any(isinstance(figure, int | float) and figure for figure in figures)


def _role(cell: Cell, column: Column, *, is_marked: bool, is_first: bool) -> Role:
    if cell is None or isinstance(cell, NoTtl):
        return Role.FAINT
    if isinstance(cell, Unknown):
        return Role.WARN if cell.reason in (Reason.DENIED, Reason.FAILED) else Role.FAINT
    if column.id in WORD_ROLES or (isinstance(cell, bytes) and column.id in TYPE_COLUMNS):
        return type_role(cell) if isinstance(cell, bytes) else WORD_ROLES[column.id].get(cell, Role.MUTED)
    if is_first or (column.unit is Unit.TEXT and not column.width):
        return Role.STRONG if is_marked else Role.TEXT
    if isinstance(cell, Estimate | AtLeast) or not column.numeric or column.unit is Unit.SHARE:
        return Role.MUTED
    return Role.TEXT


def _bar(cell: Cell, cells: int) -> Line:
    value = cell.value if isinstance(cell, Estimate | AtLeast) else cell
    if not isinstance(value, int | float):
        return (gap(cells + 1),)
    filled, blank = bar(value, cells)
    return gap(1), Span(filled, Role.BAR), Span(blank, Role.TRACK)
