"""The columns of the tree: which of them fit, and screens to choose them and what rows are sorted by.

Keys and namespaces share the places of columns, or have their own where it is wide. After an analysis there are more
columns of namespaces than fit into most terminals: the least telling ones go first, never the one that rows are sorted
by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from textual import on
from textual.content import Content
from textual.widgets import OptionList

from rtui.keyspace.rows.ordering import Sort
from rtui.tui.kit.choice import ListScreen
from rtui.tui.kit.styled_text import literal


class TreeColumn(StrEnum):
    """What a row can show beside its name; the last three belong to keys, the others to namespaces.

    Idle times of keys are shown, too, where keys are sorted by them.
    """

    KEYS = "keys"
    SHARE = "share"
    BAR = "bar"
    MEMORY = "bytes"
    MEMORY_SHARE = "of bytes"
    MEAN = "mean"
    NO_TTL = "no TTL"
    IDLE = "idle"
    TYPE = "type"
    TTL = "TTL"
    SIZE = "size"


ALL_COLUMNS: Final = frozenset(TreeColumn)
"""What is shown unless the user switches something off."""

FACT_COLUMNS: Final = frozenset({TreeColumn.TYPE, TreeColumn.TTL, TreeColumn.SIZE})
"""The columns whose figures are asked of the server."""

ANALYSED_COLUMNS: Final = frozenset(
    {TreeColumn.MEMORY, TreeColumn.MEMORY_SHARE, TreeColumn.MEAN, TreeColumn.NO_TTL, TreeColumn.IDLE}
)
"""The columns that need an analysis."""

GAP_CELLS: Final = 2
"""Blank cells before each place."""

MIN_NAME_CELLS: Final = 22
"""The name keeps at least this width; places go before it gets narrower."""

WIDE_NAME_CELLS: Final = 34
"""Keys and namespaces get places of their own when the name has at least this width then."""

FEW_FIELDS: Final = 3
"""After an analysis, more places than these are for names of `WIDE_NAME_CELLS` only."""

LONG_NAME_CELLS: Final = 44
"""Names that need it get up to this width, which is what a terminal of 80 columns gives; places go before."""

_WIDTHS: Final = {
    TreeColumn.KEYS: 11,
    TreeColumn.SHARE: 5,
    TreeColumn.BAR: 8,
    TreeColumn.MEMORY: 10,
    TreeColumn.MEMORY_SHARE: 8,
    TreeColumn.MEAN: 10,
    TreeColumn.NO_TTL: 6,
    TreeColumn.IDLE: 10,
    TreeColumn.TYPE: 8,
    TreeColumn.TTL: 5,
    TreeColumn.SIZE: 10,
}


_TITLES: Final = {TreeColumn.BAR: "", TreeColumn.IDLE: "idle > 30d"}
"""What stands over columns where it is not their name."""


@dataclass(frozen=True, slots=True)
class RowField:
    """A stretch of each row: what namespaces show there, what keys show there, and how wide it is."""

    namespace: TreeColumn | None
    key: TreeColumn | None
    cells: int

    @property
    def title(self) -> str:
        """What stands over it."""
        if (self.namespace, self.key) == (TreeColumn.MEMORY, TreeColumn.SIZE):
            return str(TreeColumn.MEMORY)
        if self.key is TreeColumn.IDLE:
            return str(TreeColumn.IDLE) if self.namespace is not TreeColumn.IDLE else _TITLES[TreeColumn.IDLE]
        named = [column for column in (self.namespace, self.key) if column is not None]
        return " / ".join(filter(None, (_TITLES.get(column, str(column)) for column in named)))


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


_ANALYSED: Final = (
    (TreeColumn.KEYS, TreeColumn.TYPE),
    (TreeColumn.SHARE, None),
    (TreeColumn.MEMORY, TreeColumn.SIZE),
    (TreeColumn.MEMORY_SHARE, None),
    (TreeColumn.BAR, None),
    (TreeColumn.MEAN, None),
    (TreeColumn.NO_TTL, TreeColumn.TTL),
    (TreeColumn.IDLE, TreeColumn.IDLE),
)
"""The places of columns after an analysis, from left to right."""

_RANKS: Final = (0, 7, 1, 3, 4, 5, 2, 6)
"""Which of them are shown first where not all fit."""

SORT_COLUMNS: Final = {
    Sort.COUNT: (TreeColumn.KEYS,),
    Sort.MEMORY: (TreeColumn.MEMORY, TreeColumn.SIZE),
    Sort.MEAN: (TreeColumn.MEAN,),
    Sort.TTL: (TreeColumn.NO_TTL, TreeColumn.TTL),
    Sort.IDLE: (TreeColumn.IDLE,),
    Sort.TYPE: (TreeColumn.TYPE,),
}
"""The columns that show what rows are sorted by."""


def lay_out_row(
    width: int,
    enabled: frozenset[TreeColumn] = ALL_COLUMNS,
    longest: int = 0,
    *,
    is_analysed: bool = False,
    sort: Sort = Sort.NAME,
) -> RowLayout:
    """Divide `width` cells among the name and the enabled columns, as many as fit.

    `longest` is what the longest name takes with its indent: so that it is shown whole, or in `LONG_NAME_CELLS`, all
    places but the first give way. With `is_analysed` there are figures of an analysis; what rows are sorted by then has
    the first place.
    """
    wanted = min(longest, LONG_NAME_CELLS)
    if is_analysed:
        return _lay_out_analysed(width, enabled, wanted, sort)
    has_idle = sort is Sort.IDLE and TreeColumn.IDLE in enabled
    enabled -= ANALYSED_COLUMNS
    apart = [
        RowField(None, column, cells) if column in FACT_COLUMNS else RowField(column, None, cells)
        for column, cells in _WIDTHS.items()
        if column in enabled
    ]
    if has_idle:
        apart.append(RowField(None, TreeColumn.IDLE, _WIDTHS[TreeColumn.IDLE]))
    if _rest(width, apart) >= max(WIDE_NAME_CELLS, wanted):
        return RowLayout(_rest(width, apart), tuple(apart))
    pairs = (*_SHARED[:-1], (TreeColumn.BAR, TreeColumn.IDLE)) if has_idle else _SHARED
    enabled |= {TreeColumn.IDLE} if has_idle else set()
    fields = [field for pair in pairs if (field := _field(pair, enabled)) is not None]
    while len(fields) > 1 and _rest(width, fields) < wanted:
        fields.pop()
    while fields and _rest(width, fields) < MIN_NAME_CELLS:
        fields.pop()
    return RowLayout(_rest(width, fields), tuple(fields))


def _lay_out_analysed(width: int, enabled: frozenset[TreeColumn], wanted: int, sort: Sort) -> RowLayout:
    """Divide a row with the figures of an analysis: the places that tell most, in their order from left to right."""
    sorted_by = SORT_COLUMNS.get(sort, ())
    pairs = enumerate(zip(_RANKS, _ANALYSED, strict=True))
    ranked = sorted((-1 if pair[0] in sorted_by else rank, at, pair) for at, (rank, pair) in pairs)
    kept: dict[int, RowField] = {}
    for _, at, pair in ranked:
        field = _field(pair, enabled)
        if field is None:
            continue
        room = MIN_NAME_CELLS if len(kept) < FEW_FIELDS else WIDE_NAME_CELLS
        if _rest(width, [*kept.values(), field]) < (max(room, wanted) if kept else room):
            break
        kept[at] = field
    fields = tuple(kept[at] for at in sorted(kept))
    return RowLayout(_rest(width, fields), fields)


def _field(pair: tuple[TreeColumn | None, TreeColumn | None], enabled: frozenset[TreeColumn]) -> RowField | None:
    """Return the place that two columns share, as far as they are enabled."""
    namespace, key = (column if column in enabled else None for column in pair)
    if namespace is None and key is None:
        return None
    field = RowField(namespace, key, max(_WIDTHS[column] for column in (namespace, key) if column is not None))
    return replace(field, cells=max(field.cells, len(field.title)))


def _rest(width: int, fields: Sequence[RowField]) -> int:
    """Return what the places leave for the name."""
    return width - sum(field.cells + GAP_CELLS for field in fields)


_OF_SHARES: Final = {TreeColumn.SHARE: Sort.COUNT, TreeColumn.MEMORY_SHARE: Sort.MEMORY}
"""What orders rows as these columns would."""


def sort_at(layout: RowLayout, x: int) -> Sort | None:
    """Return what rows are sorted by with a click on a cell of the header; None where nothing can be."""
    if x < layout.name_cells:
        return Sort.NAME
    end = layout.name_cells
    for field in layout.fields:
        end += GAP_CELLS + field.cells
        if x < end:
            if field.namespace is not None and field.namespace in _OF_SHARES:
                return _OF_SHARES[field.namespace]
            shown = (field.namespace, field.key)
            found = (sort for column in shown for sort, columns in SORT_COLUMNS.items() if column in columns)
            return next(found, None)
    return None


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


SORTS: Final = {
    Sort.COUNT: ("keys", "most first; keys by name"),
    Sort.NAME: ("name", "1, 2, 10"),
    Sort.MEMORY: ("bytes", "largest first"),
    Sort.MEAN: ("mean", "largest on average first"),
    Sort.TTL: ("TTL", "what expires soonest; most without TTL"),
    Sort.IDLE: ("idle", "longest unused first"),
    Sort.TYPE: ("type", "keys by type"),
}
"""What rows can be sorted by: a word for the header, and what comes first."""


class SortScreen(ListScreen[Sort | None]):
    """Returns what rows are to be sorted by, None when nothing was chosen."""

    def __init__(self, now: Sort, *, is_analysed: bool) -> None:
        """`now` is what they are sorted by; `is_analysed` is whether namespaces have figures of an analysis."""
        needs = {Sort.MEMORY, Sort.MEAN, Sort.TTL, Sort.IDLE}
        entries = []
        for sort, (word, order) in SORTS.items():
            mark = "•" if sort is now else " "
            is_missing = sort in needs and not is_analysed
            entries.append(Content(f"{mark} {word:6}{'keys; namespaces after an analysis' if is_missing else order}"))
        super().__init__(literal("Sort by"), "enter sorts · esc closes", *entries)
        self.options.highlighted = list(SORTS).index(now)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(list(SORTS)[event.option_index])
