"""The Memory panel: which namespaces hold the bytes, or the keys where memory is not known.

The icicle over the table shows the namespace that is zoomed into and the levels below it; the table lists the
namespaces directly below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import CoverageKind, Node, Report
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.namespaces import namespaces
from rtui.analysis.report.tables.table import Path, find, label, noun_of, path_of, written
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.icicle import Block, block_at, icicle_lines, icicle_rows, row_heights
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable
from rtui.tui.kit.format import display
from rtui.tui.kit.styled_text import Line, Role, Span, literal
from rtui.tui.kit.table_rows import Order

LOW_LINES: Final = 6
"""Lines of the icicle on a screen of 24."""

HIGH_LINES: Final = 10
"""Lines of the icicle where there is room."""

HIGH_FROM: Final = 26
"""Lines that chart and table share from which on the icicle is high."""


@dataclass(frozen=True, slots=True)
class MemoryState(PanelState):
    """What the user has chosen in the panel."""

    path: Path = ()
    """The namespace that is zoomed into."""


class MemoryPanel(Panel[MemoryState]):
    """The icicle, and a table of the namespaces below the one that is zoomed into."""

    id = "memory"
    title = literal("Memory")
    key = "1"
    help = "Show which namespaces hold the memory, as an icicle and as a table."
    initial = MemoryState()

    def tables(self, report: Report, state: MemoryState) -> tuple[PanelTable, ...]:
        """Return the table of the namespaces directly below the one that is zoomed into."""
        path = known_path(report, state)
        name = display(label(_zoomed_nodes(report, state)), limit=60) if path else literal("all keys")
        note: Line = ()
        if not has_memory(report) and report.summary.root.children:
            note = (Span(literal("widths show keys, since memory is not known"), Role.WARN),)
        order = Order("memory" if has_memory(report) else "keys")
        return (PanelTable(f"namespaces {path!r}", name, partial(namespaces, report, path), note=note, order=order),)

    def chart_height(self, _report: Report, _state: MemoryState, space: Size) -> int:
        """Return how many lines the icicle takes."""
        return HIGH_LINES if space.height >= HIGH_FROM else LOW_LINES

    def chart(self, report: Report, state: MemoryState, size: Size) -> list[Line]:
        """Return the icicle from the zoomed namespace down."""
        weight = weight_of(report)
        total = weight(report.summary.root) or 1.0
        selected = state.subject if isinstance(state.subject, tuple) else None
        rows, heights = _rows(report, state, size)
        return icicle_lines(
            rows, heights, size.width, lambda node: weight(node) / total, _size_text(report), selected=selected
        )

    def clicked(self, report: Report, state: MemoryState, size: Size, x: int, y: int) -> MemoryState | None:
        """Zoom into the namespace at a cell of the icicle; out of it when it is the one that is zoomed into."""
        block = block_at(*_rows(report, state, size), x, y)
        if block is None:
            return None
        return self.zoomed_out(report, state) if block.contains(state.path) else _zoomed_to(report, state, block.path)

    def zoomed_in(self, report: Report, state: MemoryState) -> MemoryState | None:
        """Zoom into the namespace under the cursor."""
        return _zoomed_to(report, state, state.subject) if isinstance(state.subject, tuple) else None

    def zoomed_out(self, report: Report, state: MemoryState) -> MemoryState | None:
        """Zoom out of the namespace that is zoomed into, past those that are the only child of their parent."""
        path = known_path(report, state)
        if not path:
            return None
        nodes = _zoomed_nodes(report, state)
        end = len(path) - 1
        while end > 0 and len(nodes[end].children) == 1:
            end -= 1
        return replace(state, path=path[:end], subject=path[: end + 1])


def _zoomed_nodes(report: Report, state: MemoryState) -> tuple[Node, ...]:
    """Return the nodes down to the one that is zoomed into; the root alone when the report does not have that one."""
    return find(report.summary.root, state.path) or (report.summary.root,)


def known_path(report: Report, state: MemoryState) -> Path:
    """Return the path that is zoomed into; empty when the report does not have it."""
    return state.path if find(report.summary.root, state.path) else ()


def _zoomed_to(report: Report, state: MemoryState, path: Path) -> MemoryState | None:
    """Zoom into a namespace, through those that have a single child only; None when there is nothing below."""
    nodes = find(report.summary.root, path)
    if nodes is None:
        return None
    while len(nodes[-1].children) == 1 and nodes[-1].children[0].children:
        nodes = (*nodes, nodes[-1].children[0])
    if not nodes[-1].children or path_of(nodes) == known_path(report, state):
        return None
    return replace(state, path=path_of(nodes), subject=None)


def _rows(report: Report, state: MemoryState, size: Size) -> tuple[list[list[Block]], list[int]]:
    """Return the rows of the icicle and the height of each."""
    rows = icicle_rows(_zoomed_nodes(report, state), size.width, size.height, weight_of(report))
    return rows, row_heights(len(rows), size.height)


def has_memory(report: Report) -> bool:
    """Whether the bytes of any key are known."""
    return report.summary.root.stats.memory_bytes is not None


def weight_of(report: Report) -> Callable[[Node], float]:
    """Return what the width of a namespace stands for: its bytes, or its keys where bytes are not known."""
    if has_memory(report):
        return lambda node: plain(node.stats.memory_bytes or 0)
    return lambda node: plain(node.stats.keys)


def _size_text(report: Report) -> Callable[[Node], SafeText]:
    """Return what is written beside the name of a namespace."""
    marks = {CoverageKind.ESTIMATE: Mark.ABOUT, CoverageKind.PARTIAL: Mark.AT_LEAST}
    mark = marks.get(report.head.coverage.kind, Mark.EXACT)
    if has_memory(report):
        return lambda node: written(node.stats.memory_bytes or 0, fmt.size, mark)
    return lambda node: SafeText(f"{written(node.stats.keys, fmt.short_count, mark)} {noun_of(node.stats.keys, 'key')}")
