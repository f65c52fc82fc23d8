"""The Memory panel: which namespaces hold the bytes, or the keys where memory is not known.

The icicle over the table shows the namespace that is zoomed into and the levels below it: a row for each level, each
namespace as wide as its weight and below its parent. The table lists the namespaces directly below. Colours stand for
keys without TTL, keys that nobody uses, or the type of most keys; where there is room each block also says it in words,
and facts that were not asked have no colour, with the reason in the legend.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Final, LiteralString, NamedTuple

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import OTHER, Mark
from rtui.analysis.report.document import ColumnState, Node, NodeKind, Report, Stats
from rtui.analysis.report.tables.cells import Cells, parts_of, plain, weight_of
from rtui.analysis.report.tables.table import COVERAGE_MARKS, Path, find, label, path_of
from rtui.analysis.report.tables.totals import namespaces
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import HIGH_ROOM, AnalysePanel, PanelState, PanelTable, panel_command
from rtui.tui.kit.layout import display, display_text
from rtui.tui.kit.panel_screen import following
from rtui.tui.kit.styled_text import (
    HEAT,
    Line,
    Role,
    Span,
    clip,
    cut,
    gap,
    left,
    line_width,
    literal,
    type_role,
    width_of,
)
from rtui.tui.kit.table_rows import ColumnOrder

BORDERS: Final = (0.01, 0.10, 0.50, 0.90)
"""Shares from which on a block has the second, third, fourth and fifth of the heat colours."""

LEVELS: Final[tuple[LiteralString, ...]] = (" <1% ", " 1% ", " 10% ", " 50% ", " 90% ")
"""The text of the legend on each of these colours."""

LEGENDS: Final = {
    "no_ttl_share": literal("keys without TTL"),
    "idle_30d_share": literal("keys idle for more than 30 days"),
    "cold_share": literal("cold keys (freq 0)"),
}
"""Of which keys the colours show the share, by the column of the tables."""

NAME_CELLS: Final = 16
"""Names of types are cut beyond this."""


class Colouring(Enum):
    """The meaning of the colours; the value is the column of the report that they need."""

    NO_TTL = "ttl"
    IDLE = "idle"
    TYPE = "type"


class Look(NamedTuple):
    """The colour of a block and its meaning: `58% no TTL`."""

    role: Role
    meaning: SafeText


NO_COLOUR: Final = Look(Role.FILL, SafeText(""))
"""A block of which the fact is not known."""


def look_of(report: Report, colouring: Colouring) -> Callable[[Stats], Look]:
    if colouring is Colouring.TYPE:
        return _by_type
    column, words = _column(report, colouring)
    cells = Cells(report)

    def look(stats: Stats) -> Look:
        share = cells.figures(stats)[column]
        if not isinstance(share, int | float | Estimate):
            return NO_COLOUR
        level = HEAT[bisect_right(BORDERS, plain(share))]
        part = fmt.share(plain(share), Mark.ABOUT if isinstance(share, Estimate) else Mark.EXACT)
        return Look(level, SafeText(f"{part} {words}"))

    return look


def _column(report: Report, colouring: Colouring) -> tuple[str, LiteralString]:
    """Return the column of the share that the colours show, and a word for its keys."""
    if colouring is Colouring.NO_TTL:
        return "no_ttl_share", "no TTL"
    top = report.summary.root.stats
    is_cold = top.idle is None and top.frequency is not None
    return ("cold_share", "freq 0") if is_cold else ("idle_30d_share", "idle > 30d")


def _by_type(stats: Stats) -> Look:
    if not stats.types:
        return NO_COLOUR
    name, keys = stats.types[0]
    shown = display(name, limit=NAME_CELLS)
    if len(stats.types) > 1 and (total := plain(stats.keys)):
        is_estimate = isinstance(keys, Estimate)
        part = fmt.share(min(1.0, plain(keys) / total), Mark.ABOUT if is_estimate else Mark.EXACT)
        shown = SafeText(f"{shown} {part}")
    return Look(Role(f"fill-{type_role(name)}"), shown)


def legend(report: Report, colouring: Colouring, width: int) -> Line:
    if colouring is Colouring.TYPE:
        return _type_legend(report, width)
    top = report.summary.root.stats
    if look_of(report, colouring)(top) is NO_COLOUR:
        return clip(_not_known(report, colouring), width)
    column, _ = _column(report, colouring)
    spans = [gap(1), Span(LEGENDS[column], Role.MUTED), gap(1)]
    for text, role in zip(LEVELS, HEAT, strict=True):
        spans += (Span(literal(text), role), gap(1))
    return clip(tuple(spans), width)


def _type_legend(report: Report, width: int) -> Line:
    spans: list[Span] = [gap(1), Span(literal("type of most keys "), Role.MUTED)]
    types = report.summary.root.stats.types
    if not types:
        return clip(_not_known(report, Colouring.TYPE), width)
    for name, _keys in types:
        shown = display(name, limit=NAME_CELLS)
        if line_width(tuple(spans)) + width_of(shown) + 3 > width:
            break
        spans += (Span(literal("▌"), type_role(name)), Span(shown, type_role(name)), gap(2))
    return clip(tuple(spans), width)


def _not_known(report: Report, colouring: Colouring) -> Line:
    name = fmt.fact_name(colouring.value)
    column = report.head.columns.get(colouring.value)
    if column is None or column.state in (ColumnState.COMPLETE, ColumnState.SOME):
        return gap(1), Span(SafeText(f"no colour: {name} is not known"), Role.MUTED)
    reason = f" ({column.reason})" if column.reason else ""
    state = {ColumnState.UNSUPPORTED: "not available"}.get(column.state, column.state.value)
    role = Role.WARN if column.state is ColumnState.DENIED else Role.MUTED
    return gap(1), Span(display_text(f"no colour: {name} {state}{reason}", limit=300), role)


LOW_LINES: Final = 7
HIGH_LINES: Final = 11
"""Lines of the chart on a screen of 24, and on larger ones, the last one with the meaning of its colours."""

MIN_LINES: Final = 4
"""The least lines of a chart that gets a legend of its colours."""

MIN_LABEL_CELLS: Final = 3
"""Narrower blocks have no name."""

MIN_ROW_CELLS: Final = 6
"""The last row has at least one block of this width."""

MAX_ROW_LINES: Final = 3
"""Lines of a row at most: the name, the size, and a blank one."""

LABEL_LIMIT: Final = 120


@dataclass(frozen=True, slots=True)
class MemoryState(PanelState):
    """The user's choices in the panel."""

    path: Path = ()
    colouring: Colouring = Colouring.NO_TTL


class MemoryPanel(AnalysePanel[MemoryState]):
    """The icicle, and a table of the namespaces below the zoomed one."""

    id = "memory"
    title = literal("Memory")
    key = "2"
    help = "Show which namespaces hold the memory, as a treemap and a table."
    words = "memory usage size"
    initial = MemoryState()
    keeps_height = lists_differences = True
    commands = (
        panel_command(
            lambda _report, state, _size: replace(state, colouring=following(tuple(Colouring), state.colouring)),
            "colouring", "v", "Colour by",
            "Colour the chart by keys without TTL, idle keys, or types.", footer=10,
        ),
    )  # fmt: skip

    def tables(self, report: Report, state: MemoryState) -> tuple[PanelTable, ...]:
        nodes = zoomed_nodes(report, state)
        path = path_of(nodes)
        name = display(label(nodes), limit=60) if path else literal("all keys")
        note: Line = ()
        if not has_memory(report) and report.summary.root.children:
            note = (Span(literal("widths show keys (memory is not known)"), Role.WARN),)
        order = ColumnOrder("memory" if has_memory(report) else "keys")
        return (PanelTable(f"namespaces {path!r}", name, partial(namespaces, report, path), note=note, order=order),)

    def chart_lines(self, space: Size) -> int:
        return HIGH_LINES if space.height >= HIGH_ROOM else LOW_LINES

    def chart(self, report: Report, state: MemoryState, size: Size) -> list[Line]:
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
        """Zoom into the namespace at a cell of the icicle; out of the zoomed one."""
        area = icicle_area(size)
        rows = icicle_rows(zoomed_nodes(report, state), area.width, area.height, weight_of(report))
        block = block_at(rows, area.height, x, y)
        if block is None:
            return None
        return self.zoomed_out(report, state) if block.contains(state.path) else _zoomed_to(report, state, block.path)

    def zoomed_in(self, report: Report, state: MemoryState) -> MemoryState | None:
        return _zoomed_to(report, state, state.subject) if isinstance(state.subject, tuple) else None

    def zoomed_out(self, report: Report, state: MemoryState) -> MemoryState | None:
        """Zoom out of a namespace, past only children."""
        nodes = zoomed_nodes(report, state)
        path = path_of(nodes)
        if not path:
            return None
        end = len(path) - 1
        while end > 0 and len(nodes[end].children) == 1:
            end -= 1
        return replace(state, path=path[:end], subject=path[: end + 1])


def icicle_area(size: Size) -> Size:
    return Size(size.width, size.height - 1) if size.height >= MIN_LINES else size


def zoomed_nodes(report: Report, state: MemoryState) -> tuple[Node, ...]:
    """Return the nodes down to the zoomed namespace; the root alone if the report lacks it."""
    return find(report.summary.root, state.path) or (report.summary.root,)


def _zoomed_to(report: Report, state: MemoryState, path: Path) -> MemoryState | None:
    """Zoom into a namespace, through namespaces with a single child; None if it has no child."""
    nodes = find(report.summary.root, path)
    if nodes is None:
        return None
    while len(nodes[-1].children) == 1 and nodes[-1].children[0].children:
        nodes = (*nodes, nodes[-1].children[0])
    if not nodes[-1].children or path_of(nodes) == path_of(zoomed_nodes(report, state)):
        return None
    return replace(state, path=path_of(nodes), subject=None)


def has_memory(report: Report) -> bool:
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
    """The number of nodes, counted from the last, that share the block."""

    @property
    def path(self) -> Path:
        return path_of(self.nodes)

    def contains(self, path: Path) -> bool:
        innermost = self.path
        return len(innermost) - self.levels < len(path) <= len(innermost) and innermost[: len(path)] == path


def icicle_rows(
    nodes: tuple[Node, ...], width: int, levels: int, weight: Callable[[Node], float]
) -> list[list[Block]]:  # fmt: skip
    """Return the block of the last of `nodes` and up to `levels - 1` rows below it.

    The cells of a block are divided among its children by their weights; the cells of keys outside all children stay
    blank. Children of less than a cell are left out, and so are last rows without a block with room for a name.
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
    """Return the texts of a block's lines, each exactly `cells` wide; nothing in a narrow block."""
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
