"""The Memory panel: which namespaces hold the bytes, or the keys where memory is not known.

The icicle over the table shows the namespace that is zoomed into and the levels below it: a row for each level, each
namespace as wide as its weight and below its parent, in the colours of `icicle_colours`. The table lists the namespaces
directly below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.tables.cells import parts_of, weight_of
from rtui.analysis.report.tables.table import COVERAGE_MARKS, Path, find, label, path_of
from rtui.analysis.report.tables.totals import namespaces
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.icicle_colours import Colouring, Look, legend, look_of
from rtui.tui.analyse.panel import HIGH_ROOM, Panel, PanelState, PanelTable, panel_command
from rtui.tui.kit.layout import display
from rtui.tui.kit.panel_view import following
from rtui.tui.kit.styled_text import Line, Role, Span, cut, gap, left, literal, width_of
from rtui.tui.kit.table_rows import Order

LOW_LINES: Final = 7
HIGH_LINES: Final = 11
"""Lines of the chart on a screen of 24, and on larger ones, the last one with the meaning of its colours."""

MIN_LINES: Final = 4
"""A chart of fewer lines says nothing of its colours."""

MIN_LABEL_CELLS: Final = 3
"""Narrower blocks have no name."""

MIN_ROW_CELLS: Final = 6
"""The last row has at least one block of this width."""

MAX_ROW_LINES: Final = 3
"""Lines of a row at most: the name, the size, and a blank one."""

LABEL_LIMIT: Final = 120
"""Characters of a name that are made safe to show."""


@dataclass(frozen=True, slots=True)
class MemoryState(PanelState):
    """What the user has chosen in the panel."""

    path: Path = ()
    """The namespace that is zoomed into."""
    colouring: Colouring = Colouring.NO_TTL
    """What the colours stand for."""


def _next_colouring(_report: Report, state: MemoryState, _size: Size) -> MemoryState:
    return replace(state, colouring=following(tuple(Colouring), state.colouring))


class MemoryPanel(Panel[MemoryState]):
    """The icicle, and a table of the namespaces below the one that is zoomed into."""

    id = "memory"
    title = literal("Memory")
    key = "2"
    help = "Show which namespaces hold the memory, as an icicle and as a table."
    initial = MemoryState()
    keeps_height = lists_differences = True
    commands = (
        panel_command(
            _next_colouring, "colouring", "v", "Colour by",
            "Have the colours of the chart show keys without TTL, idle keys, or types.", footer=4,
        ),
    )  # fmt: skip

    def tables(self, report: Report, state: MemoryState) -> tuple[PanelTable, ...]:
        """Return the table of the namespaces directly below the one that is zoomed into."""
        nodes = zoomed_nodes(report, state)
        path = path_of(nodes)
        name = display(label(nodes), limit=60) if path else literal("all keys")
        note: Line = ()
        if not has_memory(report) and report.summary.root.children:
            note = (Span(literal("widths show keys, since memory is not known"), Role.WARN),)
        order = Order("memory" if has_memory(report) else "keys")
        return (PanelTable(f"namespaces {path!r}", name, partial(namespaces, report, path), note=note, order=order),)

    def chart_lines(self, space: Size) -> int:
        """Return how many lines the icicle takes."""
        return HIGH_LINES if space.height >= HIGH_ROOM else LOW_LINES

    def chart(self, report: Report, state: MemoryState, size: Size) -> list[Line]:
        """Return the icicle from the zoomed namespace down."""
        mark, look = COVERAGE_MARKS[report.head.coverage.kind], look_of(report, state.colouring)
        selected = state.subject if isinstance(state.subject, tuple) else None

        def size_text(node: Node) -> SafeText:
            if has_memory(report):
                return fmt.written(node.stats.memory_bytes or 0, fmt.size, mark)
            return SafeText(f"{fmt.written(node.stats.keys, fmt.short_count, mark)} {fmt.noun(node.stats.keys, 'key')}")

        area = icicle_area(size)
        rows = icicle_rows(zoomed_nodes(report, state), area.width, area.height, weight_of(report))
        lines = icicle_lines(rows, area, lambda node: look(node.stats), size_text, selected=selected)
        return lines if area == size else [*lines, legend(report, state.colouring, size.width)]

    def charted(self, _report: Report, state: MemoryState) -> MemoryState:
        """Return the state: the block of the row under the cursor is highlighted."""
        return state

    def clicked(self, report: Report, state: MemoryState, size: Size, x: int, y: int) -> MemoryState | None:
        """Zoom into the namespace at a cell of the icicle; out of it when it is the one that is zoomed into."""
        area = icicle_area(size)
        rows = icicle_rows(zoomed_nodes(report, state), area.width, area.height, weight_of(report))
        block = block_at(rows, area.height, x, y)
        if block is None:
            return None
        return self.zoomed_out(report, state) if block.contains(state.path) else _zoomed_to(report, state, block.path)

    def zoomed_in(self, report: Report, state: MemoryState) -> MemoryState | None:
        """Zoom into the namespace under the cursor."""
        return _zoomed_to(report, state, state.subject) if isinstance(state.subject, tuple) else None

    def zoomed_out(self, report: Report, state: MemoryState) -> MemoryState | None:
        """Zoom out of the namespace that is zoomed into, past those that are the only child of their parent."""
        nodes = zoomed_nodes(report, state)
        path = path_of(nodes)
        if not path:
            return None
        end = len(path) - 1
        while end > 0 and len(nodes[end].children) == 1:
            end -= 1
        return replace(state, path=path[:end], subject=path[: end + 1])


def icicle_area(size: Size) -> Size:
    """Return what a chart of this size leaves to the blocks."""
    return Size(size.width, size.height - 1) if size.height >= MIN_LINES else size


def zoomed_nodes(report: Report, state: MemoryState) -> tuple[Node, ...]:
    """Return the nodes down to the one that is zoomed into; the root alone when the report does not have that one."""
    return find(report.summary.root, state.path) or (report.summary.root,)


def _zoomed_to(report: Report, state: MemoryState, path: Path) -> MemoryState | None:
    """Zoom into a namespace, through those that have a single child only; None when there is nothing below."""
    nodes = find(report.summary.root, path)
    if nodes is None:
        return None
    while len(nodes[-1].children) == 1 and nodes[-1].children[0].children:
        nodes = (*nodes, nodes[-1].children[0])
    if not nodes[-1].children or path_of(nodes) == path_of(zoomed_nodes(report, state)):
        return None
    return replace(state, path=path_of(nodes), subject=None)


def has_memory(report: Report) -> bool:
    """Whether the bytes of any key are known."""
    return report.summary.root.stats.memory_bytes is not None


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


def icicle_rows(
    nodes: tuple[Node, ...], width: int, levels: int, weight: Callable[[Node], float]
) -> list[list[Block]]:  # fmt: skip
    """Return the block of the last of `nodes` and up to `levels - 1` rows below it.

    The cells of a block are divided among its children by their weights, and those of keys that are in none of them
    stay blank. Children of less than a cell are left out, and so are last rows without a block with room for a name.
    """
    rows: list[list[Block]] = []
    below = [(nodes, 0, width)]
    while below and len(rows) < max(1, levels):
        row: list[Block] = []
        for path, start, end in below:
            chain = path
            while len(chain[-1].children) == 1 and len(chain) > 1:
                chain = (*chain, chain[-1].children[0])
            row.append(Block(chain, start, end, 1 + len(chain) - len(path)))
        rows.append(row)
        below = []
        for parent in row:
            cells, end = parent.end - parent.start, parent.start
            for child, _, share in parts_of(parent.nodes[-1], weight):
                start, end = end, parent.start + round(share * cells)
                if end > start:
                    below.append(((*parent.nodes, child), start, end))
    while len(rows) > 1 and all(block.end - block.start < MIN_ROW_CELLS for block in rows[-1]):
        rows.pop()
    return rows


def block_at(rows: Sequence[Sequence[Block]], height: int, x: int, y: int) -> Block | None:
    """Return the block at a cell of the chart."""
    top = 0
    for row, row_height in zip(rows, row_heights(len(rows), height), strict=True):
        if top <= y < top + row_height:
            return next((block for block in row if block.start <= x < block.end), None)
        top += row_height
    return None


def row_heights(levels: int, height: int) -> list[int]:
    """Share `height` lines among the rows, at most three each; upper rows get the rest of the division."""
    each, rest = divmod(height, levels)
    return [min(MAX_ROW_LINES, each + (level < rest)) for level in range(levels)]


def icicle_lines(
    rows: Sequence[Sequence[Block]],
    size: Size,
    look: Callable[[Node], Look],
    size_text: Callable[[Node], SafeText],
    *,
    selected: Path | None = None,
) -> list[Line]:
    """Return the lines of all rows, each exactly `size.width` cells wide.

    `look` decides the colour of a block, and the block of the namespace `selected` is highlighted. Its name is in the
    first line, `size_text` and the meaning of its colour in the second, as far as they fit; in a row of one line the
    size stands behind the name where both fit.
    """
    lines: list[Line] = []
    for row, height in zip(rows, row_heights(len(rows), size.height), strict=True):
        row_lines: list[list[Span]] = [[] for _ in range(height)]
        at = 0
        for block in row:
            node, width = block.nodes[-1], block.end - block.start
            cells = max(1, width - 1)
            role, meaning = look(node)
            texts = block_texts(block, cells, height, size_text(node), meaning)
            if selected is not None and block.contains(selected):
                role = Role.HEAT_ON
            for spans, text in zip(row_lines, texts, strict=True):
                spans.extend((gap(block.start - at), Span(text, role), gap(width - cells)))
            at = block.end
        lines += (tuple(span for span in (*spans, gap(size.width - at)) if span.text) for spans in row_lines)
    return lines


def block_texts(block: Block, cells: int, height: int, figure: SafeText, meaning: SafeText) -> list[SafeText]:
    """Return what stands in the lines of a block, each exactly `cells` wide; nothing where it is too narrow."""
    texts = [SafeText(" " * cells)] * height
    if cells < MIN_LABEL_CELLS:
        return texts
    name = display(label(block.nodes[-block.levels :]), limit=LABEL_LIMIT) or literal("(empty)")
    if len(block.nodes) == 1:
        name = literal("all keys")
    elif block.nodes[-1].kind is NodeKind.OTHER:
        name = SafeText(OTHER)
    figures = (f"{figure} · {meaning}" if meaning else figure, figure, figure.partition(" (")[0], "")
    if height == 1:
        longest = next((text for text in figures if width_of(name) + width_of(text) + 3 <= cells), "")
        if longest:
            return [SafeText(f" {left(name, cells - width_of(longest) - 2)}{longest} ")]
    fitting = next(text for text in figures if width_of(text) < cells)
    texts[:2] = [left(text, cells) for text in (SafeText(f" {cut(name, cells - 1)}"), SafeText(f" {fitting}"))[:height]]
    return texts
