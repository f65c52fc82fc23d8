"""The columns of the tree: how many fit, the sort orders, and the line over the tree with the titles of the columns.

Keys and namespaces share the places of columns, so that no row has blanks. On wide terminals keys show more columns,
below longer bars of namespaces. After an analysis namespaces have more columns than fit into most terminals: the least
telling columns go first, never the sort column. The header also shows the path to the row under the cursor; columns and
namespaces of the path can be clicked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from textual import events

from rtui.keyspace.rows.listing import BY_NAME, Sort
from rtui.keyspace.rows.rows import Row, VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import MARGIN, display
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.styled_text import ELLIPSIS, Line, Role, Span, joined, left, literal, right, width_of


class TreeColumn(StrEnum):
    """The columns beside a row's name: first those of namespaces, then, from the type on, those of keys.

    Keys also have an idle time and a share of the bytes.
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
    LENGTH = "length"
    ENCODING = "encoding"
    SLOT = "slot"
    NODE = "node"
    """Of a cluster, that which serves the slot."""


ALL_COLUMNS: Final = frozenset(TreeColumn)
"""The columns that are shown unless the user switches some off."""

FACT_COLUMNS: Final = frozenset({TreeColumn.TYPE, TreeColumn.TTL, TreeColumn.SIZE})
"""The columns of keys whose figures are asked of the server."""

MORE_FACT_COLUMNS: Final = frozenset({TreeColumn.LENGTH, TreeColumn.ENCODING, TreeColumn.IDLE})
"""The columns of keys with facts that are asked for only if there is room for the columns."""

ANALYSED_COLUMNS: Final = frozenset(
    {TreeColumn.MEMORY, TreeColumn.MEMORY_SHARE, TreeColumn.MEAN, TreeColumn.NO_TTL, TreeColumn.IDLE}
)
"""The columns that need an analysis."""

GAP_CELLS: Final = 2
MIN_NAME_CELLS: Final = 22
"""The name keeps at least this width; places go before it gets narrower."""

WIDE_NAME_CELLS: Final = 34
"""Keys and namespaces get places of their own when the name has at least this width then."""

FEW_FIELDS: Final = 3
"""After an analysis, more places than these are for names of `WIDE_NAME_CELLS` only."""

LONG_NAME_CELLS: Final = 44
"""Long names get up to this width, as on a terminal of 80 columns; columns are dropped to make room."""

WIDE_LONG_NAME_CELLS: Final = 60
"""Names that need it get up to this width before keys show more than their type, TTL and size."""

_WIDTHS: Final = {
    TreeColumn.KEYS: 11,
    TreeColumn.SHARE: 5,
    TreeColumn.BAR: 8,
    TreeColumn.MEMORY: 10,
    TreeColumn.MEMORY_SHARE: 9,
    TreeColumn.MEAN: 10,
    TreeColumn.NO_TTL: 6,
    TreeColumn.IDLE: 10,
    TreeColumn.TYPE: 8,
    TreeColumn.TTL: 5,
    TreeColumn.SIZE: 10,
    TreeColumn.LENGTH: 8,
    TreeColumn.ENCODING: 10,
    TreeColumn.SLOT: 5,
    TreeColumn.NODE: 16,
}


_TITLES: Final = {
    TreeColumn.BAR: "",
    TreeColumn.IDLE: "idle > 30d",
    TreeColumn.MEMORY: "memory",
    TreeColumn.MEMORY_SHARE: "of memory",
    TreeColumn.SIZE: "memory",
}
"""Titles of columns that differ from their names."""

_SHORT_TITLES: Final = {TreeColumn.LENGTH: "len", TreeColumn.ENCODING: "enc"}
"""Titles of columns beside another title."""


@dataclass(frozen=True, slots=True)
class RowField:
    """A stretch of each row: its column for namespaces, its column for keys, and its width."""

    namespace: TreeColumn | None
    key: TreeColumn | None
    cells: int

    @property
    def title(self) -> str:
        if (self.namespace, self.key) == (TreeColumn.MEMORY, TreeColumn.SIZE):
            return _TITLES[TreeColumn.MEMORY]
        if self.key is TreeColumn.IDLE:
            return str(TreeColumn.IDLE) if self.namespace is not TreeColumn.IDLE else _TITLES[TreeColumn.IDLE]
        if self.namespace is None or self.namespace is TreeColumn.BAR:
            return "" if self.key is None else _TITLES.get(self.key, str(self.key))
        first = _TITLES.get(self.namespace, str(self.namespace))
        if self.key is None or self.key is self.namespace:
            return first
        return f"{first} / {_SHORT_TITLES.get(self.key, str(self.key))}"


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The division of a row of a given width among its columns."""

    name_cells: int
    fields: tuple[RowField, ...]


_SHARED: Final = (
    (TreeColumn.KEYS, TreeColumn.TYPE),
    (TreeColumn.SHARE, TreeColumn.TTL),
    (TreeColumn.BAR, TreeColumn.SIZE),
)

_WIDE: Final = (
    (TreeColumn.BAR, TreeColumn.LENGTH),
    (TreeColumn.BAR, TreeColumn.IDLE),
    (TreeColumn.BAR, TreeColumn.ENCODING),
    (TreeColumn.BAR, TreeColumn.NODE),
)
"""The places that come with more room, each before the next; the bar of a namespace goes through all of its places."""

_ANALYSED: Final = (
    (TreeColumn.KEYS, TreeColumn.TYPE),
    (TreeColumn.SHARE, TreeColumn.SLOT),
    (TreeColumn.MEMORY, TreeColumn.SIZE),
    (TreeColumn.MEMORY_SHARE, TreeColumn.MEMORY_SHARE),
    (TreeColumn.BAR, TreeColumn.LENGTH),
    (TreeColumn.BAR, TreeColumn.NODE),
    (TreeColumn.MEAN, TreeColumn.ENCODING),
    (TreeColumn.NO_TTL, TreeColumn.TTL),
    (TreeColumn.IDLE, TreeColumn.IDLE),
)

_RANKS: Final = (0, 7, 1, 3, 4, 8, 5, 2, 6)
"""The ranks of these places: if not all fit, the lowest ranks are kept."""

SORT_COLUMNS: Final = {
    Sort.COUNT: (TreeColumn.KEYS,),
    Sort.MEMORY: (TreeColumn.MEMORY, TreeColumn.SIZE),
    Sort.MEAN: (TreeColumn.MEAN,),
    Sort.TTL: (TreeColumn.NO_TTL, TreeColumn.TTL),
    Sort.IDLE: (TreeColumn.IDLE,),
    Sort.TYPE: (TreeColumn.TYPE,),
}
"""The columns that show each order."""


def lay_out_row(
    width: int,
    enabled: frozenset[TreeColumn] = ALL_COLUMNS,
    longest: int = 0,
    *,
    is_analysed: bool = False,
    is_cluster: bool = False,
    sort: Sort = Sort.NAME,
) -> RowLayout:
    """Divide `width` cells among the name and the enabled columns, as many as fit.

    `longest` is the width of the longest name with its indent: to show it whole, or in `LONG_NAME_CELLS`, all places
    but the first give way. With `is_analysed` there are figures of an analysis, and the sort column has the first
    place. With `is_cluster` keys have nodes.
    """
    if not is_cluster:
        enabled -= {TreeColumn.NODE}
    wanted = min(longest, LONG_NAME_CELLS)
    if is_analysed:
        return _lay_out_analysed(width, enabled, wanted, sort)
    enabled -= ANALYSED_COLUMNS - {TreeColumn.IDLE}
    is_by_idle = sort is Sort.IDLE and TreeColumn.IDLE in enabled
    fields = [field for pair in _SHARED if (field := _field(pair, enabled)) is not None]
    more = [field for pair in _WIDE if (field := _field(pair, enabled)) is not None and field.key is not None]
    if is_by_idle:
        more.sort(key=lambda field: field.key is not TreeColumn.IDLE)
        if _rest(width, [*fields, more[0]]) < max(WIDE_NAME_CELLS, wanted):
            fields, more = [*(field for field in fields if field.key is not TreeColumn.SIZE), more[0]], []
    for field in more:
        longest_shown = min(longest, WIDE_LONG_NAME_CELLS) if fields else 0
        if _rest(width, [*fields, field]) < max(WIDE_NAME_CELLS, longest_shown):
            break
        fields.append(field)
    while len(fields) > 1 and _rest(width, fields) < wanted:
        fields.pop()
    while fields and _rest(width, fields) < MIN_NAME_CELLS:
        fields.pop()
    return RowLayout(_rest(width, fields), tuple(fields))


def _lay_out_analysed(width: int, enabled: frozenset[TreeColumn], wanted: int, sort: Sort) -> RowLayout:
    """Divide a row with the figures of an analysis: the most telling columns, in their order from left to right."""
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
    namespace, key = (column if column in enabled else None for column in pair)
    if (namespace is None and key is None) or (TreeColumn.NODE in pair and key is None):
        return None
    field = RowField(namespace, key, max(_WIDTHS[column] for column in (namespace, key) if column is not None))
    return replace(field, cells=max(field.cells, len(field.title)))


def _rest(width: int, fields: Sequence[RowField]) -> int:
    return width - sum(field.cells + GAP_CELLS for field in fields)


_OF_SHARES: Final = {TreeColumn.SHARE: Sort.COUNT, TreeColumn.MEMORY_SHARE: Sort.MEMORY}
"""The orders that clicks on columns of shares choose."""


def sort_at(layout: RowLayout, x: int) -> Sort | None:
    """Return the order that a click on a cell of the header chooses; None beside all columns."""
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


SORTS: Final = {
    Sort.COUNT: ("keys", "most first; keys by name"),
    Sort.NAME: ("name", "1, 2, 10"),
    Sort.MEMORY: ("memory", "largest first"),
    Sort.NAME_BYTES: ("name as bytes", "1, 10, 2"),
    Sort.MEAN: ("mean", "largest mean first"),
    Sort.TTL: ("TTL", "soonest to expire first; namespaces: most without TTL"),
    Sort.IDLE: ("idle", "least recently used first"),
    Sort.TYPE: ("type", "keys by type"),
}
"""The sort orders: a word for the header, and which rows come first."""


def sort_names(*, is_analysed: bool) -> list[SafeText]:
    """Return the sort orders as entries of a list; `is_analysed`: namespaces have figures of an analysis."""
    needs = frozenset() if is_analysed else {Sort.MEMORY, Sort.MEAN, Sort.TTL, Sort.IDLE}
    missing = "keys; namespaces after an analysis"
    return [SafeText(f"{word:15}{missing if sort in needs else order}") for sort, (word, order) in SORTS.items()]


NOTHING_MORE: Final = literal("")


def header_line(
    layout: RowLayout,
    sorted_by: tuple[Sort, bool],
    title: SafeText,
    *,
    is_filter: bool = False,
    note: SafeText = NOTHING_MORE,
) -> Line:
    """Return the header in exactly the width of the layout; the sort column is marked, or named if it is not shown.

    `sorted_by` is the sort order of the rows, and whether it is reversed. `note` stands after the title, as far as it
    fits.
    """
    order, is_reversed = sorted_by
    columns, sign = SORT_COLUMNS.get(order, ()), "↑" if (order in UPWARD) is not is_reversed else "↓"
    marked = next((field for field in layout.fields if {field.namespace, field.key} & {*columns}), None)
    by_name = marked is None
    order_note = "" if order is Sort.NAME else f" · by {SORTS[order][0]}"
    ending = SafeText(f"{order_note} {sign}" if by_name else "")
    name = SafeText(f" {title}{ending}{' · ' if note else ''}{note}")
    if note and width_of(name) > layout.name_cells and not is_filter:
        name = SafeText(f" {note}{ending}")
    spans = [Span(left(name, layout.name_cells), Role.ACCENT if by_name or is_filter else Role.MUTED)]
    for field in layout.fields:
        text = _marked(field, columns, sign) if field is marked else SafeText(field.title)
        spans.append(Span(right(text, field.cells + GAP_CELLS), Role.ACCENT if field is marked else Role.MUTED))
    return tuple(spans)


def _marked(field: RowField, columns: tuple[TreeColumn, ...], sign: str) -> SafeText:
    title = field.title
    if field.namespace in columns and field.key not in columns:
        column = str(field.namespace)
        if column not in title and field.namespace is not None:
            column = _TITLES[field.namespace]
        return SafeText(title.replace(column, f"{column} {sign}", 1))
    return SafeText(f"{title} {sign}")


UPWARD: Final = frozenset({*BY_NAME, Sort.TYPE})
"""The orders that ascend unless they are reversed."""


BETWEEN: Final = " › "

NAME_LIMIT: Final = 24


class Crumb(NamedTuple):
    """A namespace of the path, with the cells of the header in which it stands."""

    node: Namespace
    start: int
    end: int


class TreeHeader(LinePanel):
    """Shows the path of the cursor or the title of the rows, above the titles of columns."""

    def __init__(self, go_to: Callable[[Namespace], object], sort_by: Callable[[Sort], object]) -> None:
        """They are called for a clicked namespace of the path, and for a clicked column."""
        super().__init__(id="tree-header")
        self._go_to, self._sort_by = go_to, sort_by
        self._crumbs: list[Crumb] = []
        """The path, if it is shown."""
        self._layout = lay_out_row(0)

    def show_rows(
        self, rows: VisibleRows, cursor: Row | None, layout: RowLayout, *, needle: bytes | None, note: SafeText
    ) -> None:
        """Show the header of rows with the cursor on one of them; `needle` is the text that names are filtered by.

        `note` stands after the path, or in its place if both do not fit.
        """
        self._crumbs, self._layout = [], layout
        if needle is not None:
            title = SafeText(f"Keys matching {display(needle, limit=40)}")
        elif cursor is not None and (around := rows.above(cursor)) is not None and around.parent is not None:
            path = [one for one in around.upwards() if one.parent is not None][::-1]
            title, self._crumbs = title_of(path, layout.name_cells - 2 * MARGIN)
        else:
            title = SafeText(f"Namespaces split at {display(b' '.join(rows.store.separators.values))}")
        order = rows.sort_order, rows.is_reversed
        line = header_line(layout, order, title, is_filter=needle is not None, note=note)
        if not line[0].text.startswith(f" {title}"):
            self._crumbs = []
        self.show([line])

    def show_title(self, title: SafeText, layout: RowLayout, order: tuple[Sort, bool], *, is_filter: bool) -> None:
        self._crumbs, self._layout = [], layout
        self.show([header_line(layout, order, title, is_filter=is_filter)])

    def on_click(self, event: events.Click) -> None:
        event.stop()
        crumb = next((one for one in self._crumbs if one.start <= event.x < one.end), None)
        sort = sort_at(self._layout, event.x)
        if crumb is not None:
            self._go_to(crumb.node)
        elif sort is not None:
            self._sort_by(sort)


def title_of(path: list[Namespace], cells: int) -> tuple[SafeText, list[Crumb]]:
    """Return the path as the title of a header, with its clickable parts; a long path is cut at the left, after `…`."""
    texts = [display(node.name, limit=NAME_LIMIT) or literal("(empty)") for node in path]
    first = 0
    while first < len(path) - 1 and _width(texts[first:], is_cut=first > 0) > cells:
        first += 1
    start = MARGIN + (len(ELLIPSIS) + len(BETWEEN) if first else 0)
    crumbs = []
    for node, text in zip(path[first:], texts[first:], strict=True):
        crumbs.append(Crumb(node, start, start + width_of(text)))
        start += width_of(text) + len(BETWEEN)
    return joined([*([SafeText(ELLIPSIS)] if first else []), *texts[first:]], BETWEEN), crumbs


def _width(texts: list[SafeText], *, is_cut: bool) -> int:
    return sum(width_of(text) + len(BETWEEN) for text in texts) + (len(ELLIPSIS) if is_cut else -len(BETWEEN))
