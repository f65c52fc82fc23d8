"""An icicle: a level of namespaces a row, each as wide as what it holds, everything below it under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.tables.table import Path, label, path_of
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.format import display
from rtui.tui.kit.styled_text import HEAT, Line, Role, Span, cut, gap, left, own

HEAT_FROM: Final = (0.0, 0.03, 0.10, 0.25, 0.50)
"""From which share of the whole on an area has each of the five inks."""

MIN_LABEL_CELLS: Final = 3
"""A name is written into a cell of this width or more."""

MIN_TILE_CELLS: Final = 6
"""The last row has a tile at least this wide."""

MAX_HEIGHT: Final = 3
"""Lines of a row at most: the name, the size, and what remains."""

LABEL_LIMIT: Final = 120
"""Characters of a name that are looked at."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A namespace on one row, from a column to the one behind its last.

    One that holds nothing but a single other namespace is one tile with it, and so on: `cache:product:detail:`.
    """

    nodes: tuple[Node, ...]
    """From the root to the innermost namespace of the tile."""
    start: int
    end: int
    length: int = 1
    """How many of the nodes, the last ones, are in the tile."""

    @property
    def path(self) -> Path:
        """Where the innermost one stands in the tree."""
        return path_of(self.nodes)

    def stands_for(self, path: Path) -> bool:
        """Whether a namespace is one of this tile's."""
        own_path = self.path
        return len(own_path) - self.length < len(path) <= len(own_path) and own_path[: len(path)] == path


def tile(nodes: tuple[Node, ...], start: int, end: int) -> Tile:
    """Return the tile of the last of some nodes, with all that it alone holds."""
    length = 1
    while len(nodes[-1].children) == 1 and len(nodes) > 1:
        nodes = (*nodes, nodes[-1].children[0])
        length += 1
    return Tile(nodes, start, end, length)


Weigh = Callable[[Node], float]
"""What makes a namespace wide."""


def tiles(nodes: tuple[Node, ...], width: int, levels: int, weigh: Weigh) -> list[list[Tile]]:
    """Return the tiles of the last of `nodes` and of so many levels below, less where there are not as many.

    What would not be a cell wide is left out, and so are rows that would have no tile with room for a name; the row
    below a tile may not be full.
    """
    rows = [[tile(nodes, 0, width)]]
    while len(rows) < levels:
        below = [one for above in rows[-1] for one in _below(above, weigh)]
        if not below:
            break
        rows.append(below)
    while len(rows) > 1 and all(one.end - one.start < MIN_TILE_CELLS for one in rows[-1]):
        rows.pop()
    return rows


def _below(above: Tile, weigh: Weigh) -> list[Tile]:
    """Divide the cells of a tile among the namespaces directly below it."""
    node = above.nodes[-1]
    weights = [weigh(child) for child in node.children]
    whole = max(weigh(node), sum(weights))
    if not whole:
        return []
    found: list[Tile] = []
    passed, cells = 0.0, above.end - above.start
    for child, weight in zip(node.children, weights, strict=True):
        start = above.start + round(passed / whole * cells)
        passed += weight
        end = above.start + round(passed / whole * cells)
        if end > start:
            found.append(tile((*above.nodes, child), start, end))
    return found


def tile_at(rows: Sequence[Sequence[Tile]], heights: Sequence[int], x: int, y: int) -> Tile | None:
    """Return the tile at a cell of the chart."""
    top = 0
    for row, height in zip(rows, heights, strict=True):
        if top <= y < top + height:
            return next((one for one in row if one.start <= x < one.end), None)
        top += height
    return None


def row_heights(levels: int, height: int) -> list[int]:
    """Return how high each row is: as many lines as there are, up to three for each; the upper ones first."""
    each, rest = divmod(height, levels)
    return [min(MAX_HEIGHT, each + (level < rest)) for level in range(levels)]


@dataclass(frozen=True, slots=True)
class Paint:
    """How tiles look."""

    share: Callable[[Node], float]
    """Of the whole; it decides the ink."""
    size: Callable[[Node], SafeText]
    """What is written below the name, or behind it."""
    chosen: Path | None = None
    """The tile under the cursor."""

    def lines(self, rows: Sequence[Sequence[Tile]], heights: Sequence[int], width: int) -> list[Line]:
        """Paint the rows."""
        return [
            self._line(row, width, height, part)
            for row, height in zip(rows, heights, strict=True)
            for part in range(height)
        ]

    def _line(self, row: Sequence[Tile], width: int, height: int, part: int) -> Line:
        """Paint one line of a row: `part` 0 has the names."""
        spans: list[Span] = []
        at = 0
        for one in row:
            spans.append(gap(one.start - at))
            cells = one.end - one.start
            is_chosen = self.chosen is not None and one.stands_for(self.chosen)
            role = Role.HEAT_ON if is_chosen else _heat(self.share(one.nodes[-1]))
            if cells == 1:
                spans.append(Span(SafeText(" "), role))
            else:
                spans += (Span(self._text(one, cells - 1, height, part), role), gap(1))
            at = one.end
        spans.append(gap(width - at))
        return tuple(span for span in spans if span.text)

    def _text(self, one: Tile, cells: int, height: int, part: int) -> SafeText:
        """Return what a line of a tile says: its name, its size, nothing."""
        size = self.size(one.nodes[-1])
        if part == 0:
            return _label(one, size, cells, height)
        return _size(size, cells) if part == 1 else SafeText(" " * cells)


def _label(of: Tile, size: SafeText, cells: int, height: int) -> SafeText:
    """Return a name in exactly so many cells, with the size at the right end where there is room and no line below."""
    name = tile_name(of)
    if cells < MIN_LABEL_CELLS:
        return SafeText(" " * cells)
    if height == 1 and len(name) + len(size) + 3 <= cells:
        return SafeText(f" {left(name, cells - len(size) - 2)}{size} ")
    return left(SafeText(f" {cut(name, cells - 1)}"), cells)


def _size(size: SafeText, cells: int) -> SafeText:
    """Return a size in exactly so many cells, without its interval or blanks where it does not fit."""
    fitting = (text for text in (size, SafeText(size.partition(" (")[0])) if len(text) < cells)
    return left(SafeText(f" {next(fitting, '')}"), cells)


def tile_name(of: Tile) -> SafeText:
    """Return the last segments of a namespace; the root is the whole keyspace."""
    if len(of.nodes) == 1:
        return own("all keys")
    if of.nodes[-1].kind is NodeKind.OTHER:
        return SafeText(OTHER)
    return display(label(of.nodes[-of.length :]), limit=LABEL_LIMIT) or own("(empty)")


def _heat(share: float) -> Role:
    """Return the ink of an area that holds such a share of the whole."""
    return HEAT[max((step for step, least in enumerate(HEAT_FROM) if share >= least), default=0)]
