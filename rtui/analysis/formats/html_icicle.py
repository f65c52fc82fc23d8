"""The icicle of namespaces as SVG: a row for each level, width by bytes, colour by the share that never expires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.formats.html_markup import Markup, element
from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import Node, NodeKind, Report, Stats
from rtui.analysis.report.tables.cell_text import cell_text, written
from rtui.analysis.report.tables.cells import Cells, plain
from rtui.analysis.report.tables.table import Cell, Column, Unit
from rtui.keyspace.text.display import SafeText, display

MOST_CELLS: Final = 1500
"""Namespaces that are drawn, the largest; a page stays well below a megabyte."""

DEEPEST: Final = 16
"""Rows that are drawn."""

ROW_HEIGHT: Final = 26
"""Pixels."""

THIN: Final = 0.003
"""Below this share of the width, a few pixels, a row is not worth its height; zooming in shows it."""

_TINY: Final = 0.02
"""Below this share of the width nothing is written into a cell."""

_NO_TTL_STEPS: Final = 4
_LABEL_LIMIT: Final = 60

_BYTES = Column("memory", "bytes", Unit.BYTES)
_KEYS = Column("keys", "keys", Unit.KEYS)


@dataclass(frozen=True, slots=True)
class _Box:
    """Where a namespace is drawn."""

    node: Node
    depth: int
    left: float
    """Of the whole width, 0 … 1."""
    width: float
    label: bytes


def icicle(report: Report) -> Markup:
    """Return the drawing; nothing where there are no keys."""
    root = report.summary.root
    boxes = sorted(_boxes(root), key=lambda box: (-box.width, box.depth))[:MOST_CELLS]
    if len(boxes) < 2:
        return Markup("")
    boxes.sort(key=lambda box: (box.depth, box.left))
    cells = Cells(report)
    rows = 1 + max(box.depth for box in boxes if box.width >= THIN)
    left_out = sum(1 for _ in root.walk()) - len(boxes)
    drawn = element(
        "svg",
        *(_drawn(box, cells) for box in boxes),
        class_="icicle",
        width="100%",
        height=str(rows * ROW_HEIGHT),
        data_rows=str(rows),
        role="group",
        aria_label="Namespaces by size",
    )
    measure = "keys" if root.stats.memory_bytes is None else "bytes"
    how = f"Each row is one level of namespaces; the width of a box is its share of the {measure}. "
    return element(
        "section",
        element("h2", f"Namespaces by {measure}"),
        element(
            "p",
            how,
            element("span", class_="hint"),
            class_="note",
            id="where",
        ),
        drawn,
        _legend(),
        *(
            [element("p", f"{humanize.counted(left_out, 'smaller or deeper namespace')} not drawn.", class_="note")]
            if left_out
            else []
        ),
        id="icicle",
    )


def weight(stats: Stats) -> float:
    """Return what the width of a namespace stands for: bytes, or keys where those are not known."""
    return plain(stats.keys if stats.memory_bytes is None else stats.memory_bytes)


def _boxes(root: Node) -> Iterator[_Box]:
    """Yield the place of every namespace, each before those below it, down to DEEPEST."""
    waiting = [_Box(root, 0, 0.0, 1.0, b"")]
    while waiting:
        box = waiting.pop()
        yield box
        total = max(weight(box.node.stats), sum(weight(child.stats) for child in box.node.children))
        if box.depth + 1 >= DEEPEST or total <= 0:
            continue
        left = box.left
        for child in box.node.children:
            width = box.width * weight(child.stats) / total
            label = (box.label + child.name + child.separator)[: 4 * _LABEL_LIMIT]
            waiting.append(_Box(child, box.depth + 1, left, width, label))
            left += width


def _drawn(box: _Box, cells: Cells) -> Markup:
    """Return one namespace: a box, its name and size, and all about it on hover."""
    stats = box.node.stats
    size: Cell = cells.amount(stats.keys) if stats.memory_bytes is None else cells.memory(stats)
    text = cell_text(size, _KEYS if stats.memory_bytes is None else _BYTES)
    classes = f"c {_colour(stats)}" + (" tiny" if box.width < _TINY else "")
    return element(
        "svg",
        element("title", _tooltip(box, cells)),
        element("rect", width="100%", height=str(ROW_HEIGHT - 1)),
        element("text", _name(box), element("tspan", text, dx="8", class_="size"), x="7", y="17"),
        class_=classes,
        x=f"{box.left * 100:.4f}%",
        y=str(box.depth * ROW_HEIGHT),
        width=f"{box.width * 100:.4f}%",
        height=str(ROW_HEIGHT - 1),
        data_d=str(box.depth),
        tabindex=None if box.width < _TINY else "0",
        role="button",
    )


def _name(box: _Box) -> SafeText:
    if box.node.kind is NodeKind.OTHER:
        return SafeText(OTHER)
    if not box.depth:
        return SafeText("all keys")
    return display(box.node.name + box.node.separator, limit=_LABEL_LIMIT)


def _tooltip(box: _Box, cells: Cells) -> str:
    """Return what is in a namespace, in a line."""
    stats = box.node.stats
    name = display(box.label, limit=2 * _LABEL_LIMIT) if box.depth else "all keys"
    parts = [f"{cell_text(cells.amount(stats.keys), _KEYS)} {humanize.noun(plain(stats.keys), 'key')}"]
    if stats.memory_bytes is not None:
        parts.append(cell_text(cells.memory(stats), _BYTES))
    if stats.share_memory is not None:
        parts.append(written(stats.share_memory, humanize.share))
    if stats.no_ttl_share is not None:
        parts.append(f"{written(stats.no_ttl_share, humanize.share)} never expire")
    return f"{name}: {', '.join(parts)}"


def _colour(stats: Stats) -> str:
    """Return the class that says how much never expires."""
    if stats.no_ttl_share is None:
        return "tx"
    return f"t{max(0, min(_NO_TTL_STEPS, round(plain(stats.no_ttl_share) * _NO_TTL_STEPS)))}"


def _legend() -> Markup:
    steps = (element("i", class_=f"t{step}") for step in range(_NO_TTL_STEPS + 1))
    return element("p", "all expire ", *steps, " none ever do", class_="note legend")
