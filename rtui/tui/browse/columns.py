"""The columns of the tree: which of them fit, and a screen to choose them.

Keys and namespaces share the places of columns, or have their own where it is wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import OptionList

from rtui.tui.kit.choice import LIST_BINDINGS, ChoiceList
from rtui.tui.kit.command_screen import FocusScreen


class TreeColumn(StrEnum):
    """What a row can show beside its name; the first three belong to namespaces, the others to keys."""

    KEYS = "keys"
    SHARE = "share"
    BAR = "bar"
    TYPE = "type"
    TTL = "TTL"
    SIZE = "size"


ALL_COLUMNS: Final = frozenset(TreeColumn)
"""What is shown unless the user switches something off."""

FACT_COLUMNS: Final = frozenset({TreeColumn.TYPE, TreeColumn.TTL, TreeColumn.SIZE})
"""The columns whose figures are asked of the server."""

GAP_CELLS: Final = 2
"""Blank cells before each place."""

MIN_NAME_CELLS: Final = 22
"""The name keeps at least this width; places go before it gets narrower."""

WIDE_NAME_CELLS: Final = 34
"""Keys and namespaces get places of their own when the name has at least this width then."""

LONG_NAME_CELLS: Final = 44
"""Names that need it get up to this width, which is what a terminal of 80 columns gives; places go before."""

_WIDTHS: Final = {
    TreeColumn.KEYS: 11,
    TreeColumn.SHARE: 5,
    TreeColumn.BAR: 8,
    TreeColumn.TYPE: 8,
    TreeColumn.TTL: 5,
    TreeColumn.SIZE: 10,
}


@dataclass(frozen=True, slots=True)
class RowField:
    """A stretch of each row: what namespaces show there, what keys show there, and how wide it is."""

    namespace: TreeColumn | None
    key: TreeColumn | None
    cells: int

    @property
    def title(self) -> str:
        """What stands over it."""
        named = [column for column in (self.namespace, self.key) if column not in (None, TreeColumn.BAR)]
        return " / ".join(str(column) for column in named)


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How a row of a given width is divided."""

    name_cells: int
    fields: tuple[RowField, ...]


_SHARED: Final = (
    (TreeColumn.KEYS, TreeColumn.TYPE),
    (TreeColumn.SHARE, TreeColumn.TTL),
    (TreeColumn.BAR, TreeColumn.SIZE),
)


def lay_out_row(width: int, enabled: frozenset[TreeColumn] = ALL_COLUMNS, longest: int = 0) -> RowLayout:
    """Divide `width` cells among the name and the enabled columns, as many as fit.

    `longest` is what the longest name takes with its indent: so that it is shown whole, or in `LONG_NAME_CELLS`, all
    places but the first give way.
    """
    wanted = min(longest, LONG_NAME_CELLS)
    apart = tuple(
        RowField(
            None if column in FACT_COLUMNS else column, column if column in FACT_COLUMNS else None, _WIDTHS[column]
        )
        for column in TreeColumn
        if column in enabled
    )
    if _rest(width, apart) >= max(WIDE_NAME_CELLS, wanted):
        return RowLayout(_rest(width, apart), apart)
    fields = tuple(field for pair in _SHARED if (field := _shared(*pair, enabled)))
    while len(fields) > 1 and _rest(width, fields) < wanted:
        fields = fields[:-1]
    while fields and _rest(width, fields) < MIN_NAME_CELLS:
        fields = fields[:-1]
    return RowLayout(_rest(width, fields), fields)


def _shared(namespace: TreeColumn, key: TreeColumn, enabled: frozenset[TreeColumn]) -> RowField | None:
    """Return the place that two columns share, or None when neither is wanted."""
    columns = [column for column in (namespace, key) if column in enabled]
    if not columns:
        return None
    field = RowField(
        namespace if namespace in enabled else None,
        key if key in enabled else None,
        max(_WIDTHS[column] for column in columns),
    )
    return RowField(field.namespace, field.key, max(field.cells, len(field.title)))


def _rest(width: int, fields: tuple[RowField, ...]) -> int:
    """Return what the places leave for the name."""
    return width - sum(field.cells + GAP_CELLS for field in fields)


class ColumnsScreen(ModalScreen[None], FocusScreen[None]):
    """Switches columns on and off; each change shows at once."""

    BINDINGS: ClassVar[list[BindingType]] = LIST_BINDINGS

    def __init__(self, chosen: frozenset[TreeColumn], on_change: Callable[[frozenset[TreeColumn]], None]) -> None:
        super().__init__()
        self._chosen = chosen
        self._on_change = on_change
        self.options = ChoiceList(*map(self._prompt, TreeColumn), markup=False, id="choices")

    @property
    def focus_home(self) -> Widget:
        """The columns."""
        return self.options

    def compose(self) -> ComposeResult:
        """Show the columns."""
        self.options.border_title = "Columns"
        self.options.border_subtitle = "enter switches · esc closes"
        yield self.options

    @on(OptionList.OptionSelected)
    def _switched(self, event: OptionList.OptionSelected) -> None:
        column = list(TreeColumn)[event.option_index]
        self._chosen ^= {column}
        event.option_list.replace_option_prompt_at_index(event.option_index, self._prompt(column))
        self._on_change(self._chosen)

    def _prompt(self, column: TreeColumn) -> Content:
        sign: Literal["x", " "] = "x" if column in self._chosen else " "
        return Content(f"[{sign}] {column.value}")
