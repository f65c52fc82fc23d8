"""The icicle of namespaces as SVG: a row for each level, width by bytes, colour by the share that never expires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.formats.html_markup import Markup, element
from rtui.analysis.humanize import OTHER, Mark
from rtui.analysis.report.document import Cliff, CoverageKind, ExpiryBin, Node, NodeKind, Report, Stats, Timeline
from rtui.analysis.report.members import DAY_S, HOUR_S
from rtui.analysis.report.tables.cells import Cells, plain
from rtui.analysis.report.tables.expiry import timeline_columns
from rtui.analysis.report.tables.table import Cell, Column, Unit, cell_text, noun_of, written, written_keys
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


COLUMNS: Final = 60
"""Bars of each chart."""

_MARKS: Final = {CoverageKind.PARTIAL: Mark.AT_LEAST, CoverageKind.ESTIMATE: Mark.ABOUT}
"""What stands before numbers that come without an interval."""

_HEIGHT: Final = 100
_STEP: Final = 10
"""Width of a bar in the units of the drawing."""


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of time with a chart of its own."""

    title: str
    start_s: float
    """Since the report was made."""
    end_s: float


def timeline(report: Report) -> Markup:
    """Return the charts and the list of cliffs; nothing where nothing expires."""
    lines = report.summary.expiry.timelines
    if not lines or not lines[0].bins:
        return Markup("")
    now = report.head.made_at_s
    bins = lines[0].bins
    found = report.summary.expiry.cliffs
    mark = _MARKS.get(report.head.coverage.kind, Mark.EXACT)
    charts = [chart for span in _ranges(now, bins) for chart in _chart(span, now, lines[0], found, mark)]
    if not charts:
        return Markup("")
    return element(
        "section",
        element("h2", "Coming expiries"),
        element("p", "Keys by the moment at which they expire, in UTC; each chart has its own scale.", class_="note"),
        element("div", *charts, class_="charts"),
        _cliffs(found, mark),
        id="timeline",
    )


def _ranges(now: float, bins: Sequence[ExpiryBin]) -> Iterator[_Range]:
    """Yield the ranges of time that get a chart each, up to the last expiry."""
    yield _Range("next hour", 0, HOUR_S)
    yield _Range("then the next day", HOUR_S, DAY_S)
    yield _Range("then the next week", DAY_S, 7 * DAY_S)
    last = max(one.start_s + one.width_s for one in bins) - now
    if last > 7 * DAY_S:
        yield _Range("later", 7 * DAY_S, last)


def _chart(span: _Range, now: float, line: Timeline, found: Sequence[Cliff], mark: Mark) -> Iterator[Markup]:
    """Yield the chart of a range, unless nothing expires in it."""
    start, width = now + span.start_s, span.end_s - span.start_s
    (whole,), bars = (
        timeline_columns(line, start, start + width, 1),
        timeline_columns(line, start, start + width, COLUMNS),
    )
    heights = [plain(one.keys) for one in bars]
    highest = max((one.keys for one in bars), key=plain)
    top = plain(highest)
    if plain(whole.keys) < 1:
        return
    steep = [
        at
        for at in range(COLUMNS)
        if any(
            one.start_s < start + (at + 1) * width / COLUMNS and one.end_s > start + at * width / COLUMNS
            for one in found
        )
    ]
    calm = [at for at in range(COLUMNS) if at not in steep]
    keys = written_keys(whole.keys, mark)
    noun = noun_of(whole.keys, "key")
    title = f"{span.title}: {keys} {noun} {'expires' if noun == 'key' else 'expire'}"
    drawing = element(
        "svg",
        element("title", title),
        element("path", d=_path(heights, calm, top), class_="bars"),
        element("path", d=_path(heights, steep, top), class_="bars steep"),
        viewBox=f"0 0 {COLUMNS * _STEP} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
    )
    middle = start + width / 2
    yield element(
        "figure",
        element(
            "figcaption",
            element("b", span.title),
            element("span", f"{keys} {noun} · the highest bar is {written(highest, humanize.short_count)}"),
        ),
        drawing,
        element("div", *(element("span", _clock(at, width)) for at in (start, middle, start + width)), class_="axis"),
    )


def _path(heights: Sequence[float], columns: Sequence[int], top: float) -> str:
    bars = []
    for at in columns:
        height = _HEIGHT * heights[at] / top
        if height > 0:
            height = max(height, 1.0)
            bars.append(f"M{at * _STEP} {_HEIGHT}v-{height:.1f}h{_STEP - 2}v{height:.1f}z")
    return "".join(bars)


def _cliffs(found: Sequence[Cliff], mark: Mark) -> Markup:
    items = (
        element(
            "li",
            element("b", f"{humanize.moment(one.start_s)[:16]} – {humanize.moment(one.end_s)[11:16]}"),
            f" · {written_keys(one.keys, mark)} {noun_of(one.keys, 'key')} of ",
            element("code", one.label),
            f", {written(one.share, humanize.share)} of it"
            + ("" if one.memory_bytes is None else f", {written(one.memory_bytes, humanize.size, mark)}"),
        )
        for one in found[:20]
    )
    return element("ul", *items, class_="cliffs") if found else Markup("")


def _clock(at_s: float, width_s: float) -> str:
    """Return a moment as an axis shows it: the time of day, or the date where the range is longer than a day."""
    text = humanize.moment(at_s)
    return text[11:16] if width_s <= DAY_S else text[:10]
