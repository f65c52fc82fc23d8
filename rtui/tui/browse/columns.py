"""The columns of the tree: which of them fit, and a screen to choose them.

Keys and namespaces share the places of columns, or have their own where it is wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from textual import on
from textual.content import Content
from textual.widgets import OptionList

from rtui.tui.kit.choice import ListScreen
from rtui.tui.kit.styled_text import literal


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
    apart = [
        RowField(None, column, cells) if column in FACT_COLUMNS else RowField(column, None, cells)
        for column, cells in _WIDTHS.items()
        if column in enabled
    ]
    if _rest(width, apart) >= max(WIDE_NAME_CELLS, wanted):
        return RowLayout(_rest(width, apart), tuple(apart))
    fields = []
    for pair in _SHARED:
        namespace, key = (column if column in enabled else None for column in pair)
        if namespace or key:
            field = RowField(namespace, key, max(_WIDTHS[column] for column in pair if column in enabled))
            fields.append(replace(field, cells=max(field.cells, len(field.title))))
    while len(fields) > 1 and _rest(width, fields) < wanted:
        fields.pop()
    while fields and _rest(width, fields) < MIN_NAME_CELLS:
        fields.pop()
    return RowLayout(_rest(width, fields), tuple(fields))


def _rest(width: int, fields: Sequence[RowField]) -> int:
    """Return what the places leave for the name."""
    return width - sum(field.cells + GAP_CELLS for field in fields)


class ColumnsScreen(ListScreen[None]):
    """Switches columns on and off; each change shows at once."""

    def __init__(self, chosen: frozenset[TreeColumn], on_change: Callable[[frozenset[TreeColumn]], None]) -> None:
        self._chosen = chosen
        self._on_change = on_change
        super().__init__(literal("Columns"), "enter switches · esc closes", *map(self._prompt, TreeColumn))

    @on(OptionList.OptionSelected)
    def _switched(self, event: OptionList.OptionSelected) -> None:
        column = list(TreeColumn)[event.option_index]
        self._chosen ^= {column}
        event.option_list.replace_option_prompt_at_index(event.option_index, self._prompt(column))
        self._on_change(self._chosen)

    def _prompt(self, column: TreeColumn) -> Content:
        return Content(f"[{'x' if column in self._chosen else ' '}] {column.value}")
