"""The Memory panel: which namespaces hold the bytes, or the keys where memory is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from rtui.analysis.report.document import CoverageKind, Node, Report
from rtui.analysis.report.tables.cell_text import noun_of, written
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.namespaces import namespaces
from rtui.analysis.report.tables.table import Path, find, label, path_of
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.icicle import Paint, Tile, row_heights, tile_at, tiles
from rtui.tui.analyse.panel import Area, Choices, Listing
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import Mark, display
from rtui.tui.kit.styled_text import Line, Role, Span, own
from rtui.tui.kit.table_rows import Order

LOW: Final = 6
"""Lines of the icicle on a screen of 24."""

HIGH: Final = 10
"""Lines of the icicle where there is room."""

HIGH_FROM: Final = 26
"""Lines that chart and table share from which on the icicle is high."""


def listings(report: Report, choices: Choices) -> tuple[Listing, ...]:
    """Return the table of the namespaces directly below the one that is zoomed into."""
    nodes = zoomed(report, choices)
    path = path_here(report, choices)
    name = own("all keys") if not path else display(label(nodes), limit=60)
    order = Order("memory" if has_memory(report) else "keys")
    return (Listing(f"namespaces {path!r}", name, partial(namespaces, report, path), note=_note(report), order=order),)


def zoomed(report: Report, choices: Choices) -> tuple[Node, ...]:
    """Return the nodes down to the one that is zoomed into; the root alone when that is not there."""
    return find(report.summary.root, choices.path) or (report.summary.root,)


def path_here(report: Report, choices: Choices) -> Path:
    """Return the path that is zoomed into, as far as this report has it."""
    return choices.path if find(report.summary.root, choices.path) else ()


def chart_height(_report: Report, _choices: Choices, room: Area) -> int:
    """Return how many lines the icicle takes."""
    return HIGH if room.height >= HIGH_FROM else LOW


def chart(report: Report, choices: Choices, area: Area) -> list[Line]:
    """Return the icicle from the zoomed namespace down."""
    rows, heights = _rows(report, choices, area)
    whole = weigh_of(report)(report.summary.root) or 1.0
    weigh = weigh_of(report)
    chosen = choices.subject if isinstance(choices.subject, tuple) else None
    paint = Paint(lambda node: weigh(node) / whole, size_of(report), chosen)
    return paint.lines(rows, heights, area.width)


def hit(report: Report, choices: Choices, area: Area, x: int, y: int) -> Choices | None:
    """Zoom into the namespace at a cell of the icicle, or out of it when it is the one that is zoomed into."""
    found = tile_at(*_rows(report, choices, area), x, y)
    if found is None:
        return None
    return step_out(report, choices) if found.stands_for(choices.path) else zoom(report, choices, found.path)


def step_in(report: Report, choices: Choices) -> Choices | None:
    """Zoom into the namespace under the cursor."""
    return zoom(report, choices, choices.subject) if isinstance(choices.subject, tuple) else None


def step_out(report: Report, choices: Choices) -> Choices | None:
    """Zoom out of the namespace that is zoomed into, past those that have nothing beside them."""
    path = path_here(report, choices)
    if not path:
        return None
    nodes = zoomed(report, choices)
    end = len(path) - 1
    while end > 0 and len(nodes[end].children) == 1:
        end -= 1
    return replace(choices, path=path[:end], subject=path[: end + 1])


def zoom(report: Report, choices: Choices, path: Path) -> Choices | None:
    """Zoom into a namespace, through those that hold nothing but one other; None when there is nothing below."""
    nodes = find(report.summary.root, path)
    if nodes is None:
        return None
    while len(nodes[-1].children) == 1 and nodes[-1].children[0].children:
        nodes = (*nodes, nodes[-1].children[0])
    if not nodes[-1].children or path_of(nodes) == path_here(report, choices):
        return None
    return replace(choices, path=path_of(nodes), subject=None)


def _rows(report: Report, choices: Choices, area: Area) -> tuple[list[list[Tile]], list[int]]:
    """Return the tiles and how high each row of them is."""
    rows = tiles(zoomed(report, choices), area.width, area.height, weigh_of(report))
    return rows, row_heights(len(rows), area.height)


def has_memory(report: Report) -> bool:
    """Whether bytes are known at all."""
    return report.summary.root.stats.memory_bytes is not None


def weigh_of(report: Report) -> Callable[[Node], float]:
    """Return what makes a namespace wide: its bytes, or its keys where bytes are not known."""
    if has_memory(report):
        return lambda node: plain(node.stats.memory_bytes or 0)
    return lambda node: plain(node.stats.keys)


def size_of(report: Report) -> Callable[[Node], SafeText]:
    """Return what is written beside the name of a namespace."""
    kinds = {CoverageKind.ESTIMATE: Mark.ABOUT, CoverageKind.PARTIAL: Mark.AT_LEAST}
    mark = kinds.get(report.head.coverage.kind, Mark.EXACT)
    if has_memory(report):
        return lambda node: written(node.stats.memory_bytes or 0, fmt.size, mark)
    return lambda node: SafeText(f"{written(node.stats.keys, fmt.short_count, mark)} {noun_of(node.stats.keys, 'key')}")


def _note(report: Report) -> Line:
    """Say what the widths stand for where it is not the bytes."""
    if has_memory(report) or not report.summary.root.children:
        return ()
    return (Span(own("widths show keys, since memory is not known"), Role.WARN),)
