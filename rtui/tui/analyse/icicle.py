"""The icicle: a row for each level of namespaces, each namespace as wide as its weight and below its parent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.tables.table import Path, label, path_of
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.format import display
from rtui.tui.kit.styled_text import HEAT, Line, Role, Span, cut, gap, left, literal

HEAT_FROM: Final = (0.0, 0.03, 0.10, 0.25, 0.50)
"""Shares of the whole from which on a block has each of the five heat colours."""

MIN_LABEL_CELLS: Final = 3
"""Narrower blocks have no name."""

MIN_ROW_CELLS: Final = 6
"""The last row has at least one block of this width."""

MAX_ROW_LINES: Final = 3
"""Lines of a row at most: the name, the size, and a blank one."""

LABEL_LIMIT: Final = 120
"""Characters of a name that are made safe to show."""

NodeWeight = Callable[[Node], float]
"""What the width of a namespace stands for."""


@dataclass(frozen=True, slots=True)
class Block:
    """A namespace in a row, from column `start` up to `end`.

    Chains of single children share a block: `cache:`, `product:` and `detail:` are one, `cache:product:detail:`.
    """

    nodes: tuple[Node, ...]
    """From the root to the innermost namespace of the block."""
    start: int
    end: int
    levels: int
    """How many of the nodes, counted from the last, share the block."""

    @property
    def path(self) -> Path:
        """The path of the innermost namespace."""
        return path_of(self.nodes)

    def contains(self, path: Path) -> bool:
        """Whether a namespace is one of those that share the block."""
        innermost = self.path
        return len(innermost) - self.levels < len(path) <= len(innermost) and innermost[: len(path)] == path


def _block(nodes: tuple[Node, ...], start: int, end: int) -> Block:
    levels = 1
    while len(nodes[-1].children) == 1 and len(nodes) > 1:
        nodes = (*nodes, nodes[-1].children[0])
        levels += 1
    return Block(nodes, start, end, levels)


def icicle_rows(nodes: tuple[Node, ...], width: int, levels: int, weight: NodeWeight) -> list[list[Block]]:
    """Return the block of the last of `nodes` and up to `levels - 1` rows below it.

    Namespaces of less than a cell are left out, and so are last rows without a block that has room for a name. A row
    may leave cells below a block blank: those of keys that are in none of its children.
    """
    rows = [[_block(nodes, 0, width)]]
    while len(rows) < levels:
        below = [block for parent in rows[-1] for block in _children(parent, weight)]
        if not below:
            break
        rows.append(below)
    while len(rows) > 1 and all(block.end - block.start < MIN_ROW_CELLS for block in rows[-1]):
        rows.pop()
    return rows


def _children(parent: Block, weight: NodeWeight) -> list[Block]:
    """Divide the cells of a block among the children of its namespace."""
    node = parent.nodes[-1]
    weights = [weight(child) for child in node.children]
    total = max(weight(node), sum(weights))
    if not total:
        return []
    blocks: list[Block] = []
    before, cells = 0.0, parent.end - parent.start
    for child, own_weight in zip(node.children, weights, strict=True):
        start = parent.start + round(before / total * cells)
        before += own_weight
        end = parent.start + round(before / total * cells)
        if end > start:
            blocks.append(_block((*parent.nodes, child), start, end))
    return blocks


def block_at(rows: Sequence[Sequence[Block]], heights: Sequence[int], x: int, y: int) -> Block | None:
    """Return the block at a cell of the chart."""
    top = 0
    for row, height in zip(rows, heights, strict=True):
        if top <= y < top + height:
            return next((block for block in row if block.start <= x < block.end), None)
        top += height
    return None


def row_heights(levels: int, height: int) -> list[int]:
    """Share `height` lines among the rows, at most three each; upper rows get the rest of the division."""
    each, rest = divmod(height, levels)
    return [min(MAX_ROW_LINES, each + (level < rest)) for level in range(levels)]


def icicle_lines(
    rows: Sequence[Sequence[Block]],
    heights: Sequence[int],
    width: int,
    share: Callable[[Node], float],
    size_text: Callable[[Node], SafeText],
    *,
    selected: Path | None = None,
) -> list[Line]:
    """Return the lines of all rows, each exactly `width` cells wide.

    `share` (0 … 1, of the whole) decides the colour of a block, `size_text` is written below or behind its name, and
    the block of the namespace `selected` is highlighted.
    """
    lines: list[Line] = []
    for row, height in zip(rows, heights, strict=True):
        for line_of_row in range(height):
            spans: list[Span] = []
            at = 0
            for block in row:
                spans.append(gap(block.start - at))
                at = block.end
                heat = bisect_right(HEAT_FROM, share(block.nodes[-1])) - 1
                is_selected = selected is not None and block.contains(selected)
                role = Role.HEAT_ON if is_selected else HEAT[max(0, heat)]
                cells = block.end - block.start
                if cells == 1:
                    spans.append(Span(SafeText(" "), role))
                else:
                    text = _block_text(block, size_text(block.nodes[-1]), cells - 1, height, line_of_row)
                    spans += (Span(text, role), gap(1))
            lines.append(tuple(span for span in (*spans, gap(width - at)) if span.text))
    return lines


def _block_text(block: Block, size: SafeText, cells: int, height: int, line_of_row: int) -> SafeText:
    """Return a line of a block in exactly `cells` cells: first the name, then the size, then nothing.

    In a row of one line the size stands behind the name where both fit. A size that does not fit loses its interval.
    """
    if line_of_row == 1:
        texts = (size, SafeText(size.partition(" (")[0]))
        return left(SafeText(f" {next((text for text in texts if len(text) < cells), '')}"), cells)
    if line_of_row > 1 or cells < MIN_LABEL_CELLS:
        return SafeText(" " * cells)
    name = _block_name(block)
    if height == 1 and len(name) + len(size) + 3 <= cells:
        return SafeText(f" {left(name, cells - len(size) - 2)}{size} ")
    return left(SafeText(f" {cut(name, cells - 1)}"), cells)


def _block_name(block: Block) -> SafeText:
    """Return the last segments of a namespace; the root is the whole keyspace."""
    if len(block.nodes) == 1:
        return literal("all keys")
    if block.nodes[-1].kind is NodeKind.OTHER:
        return SafeText(OTHER)
    return display(label(block.nodes[-block.levels :]), limit=LABEL_LIMIT) or literal("(empty)")
