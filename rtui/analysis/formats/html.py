"""Pages of HTML, each a single file that loads nothing.

Its policy forbids it to: it lets in the one style sheet and the one script that are written into the page, by their
hashes. Without the script everything is there, but nothing zooms, sorts or filters.

Drawings are SVG. The icicle of namespaces has a row for each level; width is by bytes, colour by the share that never
expires. The expiry forecast has bars over time for the next hour, day, week and later, with cliffs marked and listed.
The small chart of a figure goes from its lowest value to the highest, or from 0 where the lowest is less than half of
the highest.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.formats import blocks
from rtui.analysis.formats.text import summary
from rtui.analysis.health.panel import Line, chart_bounds, plotted, value_text
from rtui.analysis.humanize import OTHER
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.members import DAY_S, HOUR_S
from rtui.analysis.report.tables.cells import KEYS, Cells, parts_of, plain, weight_of
from rtui.analysis.report.tables.table import (
    COVERAGE_MARKS,
    Cell,
    Column,
    Table,
    Unit,
    cell_interval,
    cell_reason,
    cell_text,
    sort_key,
)
from rtui.keyspace.text.display import SafeText, display, display_text

_VOID: Final = frozenset({"meta", "rect", "path", "line", "input"})
"""Elements without an end."""


class Markup(str):
    """Text of a page with its tags, which is not escaped again."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element. In the names of attributes `_` stands for `-`, but for one at the end; None leaves one out.

    Numbers have a few figures.
    """
    written = ""
    for key, value in attributes.items():
        if value is not None:
            text = safe(value) if isinstance(value, str) else f"{value:.6g}"
            written += f' {key.rstrip("_").replace("_", "-")}="{text}"'
    if name in _VOID:
        return Markup(f"<{name}{written}/>")
    content = "".join(child if isinstance(child, Markup) else safe(child) for child in children)
    return Markup(f"<{name}{written}>{content}</{name}>")


def safe(text: str) -> Markup:
    """Return text escaped, without control or invisible characters."""
    return Markup(escape(display_text(text, limit=4096)))


MOST_CELLS: Final = 1500
"""Namespaces that are drawn, the largest; a page stays well below a megabyte."""

MOST_LEVELS: Final = 16
ROW_HEIGHT_PX: Final = 26

THIN: Final = 0.003
"""Below this share of the width, a few pixels, a row is not worth its height; zooming in shows it."""

_TINY: Final = 0.02
"""Below this share of the width nothing is written into a cell."""

_ALL: Final = SafeText("all keys")
_NO_TTL_STEPS: Final = 4
_LABEL_LIMIT: Final = 60

_BYTES = Column("memory", "memory", Unit.BYTES)


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
    root = report.summary.root
    boxes = sorted(_boxes(report), key=lambda box: (-box.width, box.depth))[:MOST_CELLS]
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
        height=str(rows * ROW_HEIGHT_PX),
        data_rows=str(rows),
        role="group",
        aria_label="Namespaces by memory",
    )
    measure = "keys" if root.stats.memory_bytes is None else "bytes"
    how = f"Each row is one level of namespaces; the width of a box is its share of the {measure}. "
    steps = (element("i", class_=f"t{step}") for step in range(_NO_TTL_STEPS + 1))
    rest = f"{humanize.counted(left_out, 'smaller or deeper namespace')} not drawn."
    return element(
        "section",
        element("h2", f"Namespaces by {measure}"),
        element("p", how, element("span", class_="hint"), class_="note", id="where"),
        drawn,
        element("p", "all with TTL ", *steps, " none", class_="note legend"),
        *([element("p", rest, class_="note")] if left_out else []),
        id="icicle",
    )


def _boxes(report: Report) -> Iterator[_Box]:
    """Yield the place of every namespace, each before those below it, down to MOST_LEVELS."""
    waiting, weight = [_Box(report.summary.root, 0, 0.0, 1.0, b"")], weight_of(report)
    while waiting:
        box = waiting.pop()
        yield box
        for child, start, end in parts_of(box.node, weight) if box.depth + 1 < MOST_LEVELS else ():
            label = (box.label + child.name + child.separator)[: 4 * _LABEL_LIMIT]
            left, width = box.left + box.width * start, box.width * (end - start)
            waiting.append(_Box(child, box.depth + 1, left, width, label))


def _drawn(box: _Box, cells: Cells) -> Markup:
    stats, is_tiny = box.node.stats, box.width < _TINY
    keys = cell_text(cells.amount(stats.keys), KEYS)
    size = None if stats.memory_bytes is None else cell_text(cells.memory(stats), _BYTES)
    facts = [f"{keys} {humanize.noun(plain(stats.keys), 'key')}"]
    if size is not None:
        facts.append(size)
    if stats.share_memory is not None:
        facts.append(humanize.written(stats.share_memory, humanize.share))
    colour = "tx"
    if stats.no_ttl_share is not None:
        facts.append(f"{humanize.written(stats.no_ttl_share, humanize.share)} without TTL")
        colour = f"t{max(0, min(_NO_TTL_STEPS, round(plain(stats.no_ttl_share) * _NO_TTL_STEPS)))}"
    if box.node.kind is NodeKind.OTHER:
        name = OTHER
    else:
        name = display(box.node.name + box.node.separator, limit=_LABEL_LIMIT) if box.depth else _ALL
    path = display(box.label, limit=2 * _LABEL_LIMIT) if box.depth else _ALL
    return element(
        "svg",
        element("title", f"{path}: {', '.join(facts)}"),
        element("rect", width="100%", height=str(ROW_HEIGHT_PX - 1)),
        element("text", name, element("tspan", keys if size is None else size, dx="8", class_="size"), x="7", y="17"),
        class_=f"c {colour} tiny" if is_tiny else f"c {colour}",
        x=f"{box.left * 100:.4f}%",
        y=str(box.depth * ROW_HEIGHT_PX),
        width=f"{box.width * 100:.4f}%",
        height=str(ROW_HEIGHT_PX - 1),
        data_d=str(box.depth),
        role="img",
    )


BARS: Final = 60
_HEIGHT: Final = 100
_STEP: Final = 10


def timeline(report: Report) -> Markup:
    """Return a chart for each range of time up to the last expiry, and the cliffs; nothing where nothing expires."""
    lines, found = report.summary.expiry.timelines, report.summary.expiry.cliffs
    if not lines or not lines[0].bins:
        return Markup("")
    now = report.head.made_at_s
    mark = COVERAGE_MARKS[report.head.coverage.kind]
    ranges = [
        ("next hour", 0, HOUR_S),
        ("then the next day", HOUR_S, DAY_S),
        ("then the next week", DAY_S, 7 * DAY_S),
        ("later", 7 * DAY_S, max(one.start_s + one.width_s for one in lines[0].bins) - now),
    ]
    charts = [_chart(report, title, now + start, end - start) for title, start, end in ranges if end > start]
    if not any(charts):
        return Markup("")
    cliffs = (
        element(
            "li",
            element("b", f"{humanize.moment(one.start_s)[:16]} – {humanize.moment(one.end_s)[11:16]}"),
            f" · {humanize.written_keys(one.keys, mark)} {humanize.noun(one.keys, 'key')} of ",
            element("code", one.label),
            f", {humanize.written(one.share, humanize.share)} of it"
            + ("" if one.memory_bytes is None else f", {humanize.written(one.memory_bytes, humanize.size, mark)}"),
        )
        for one in found[:20]
    )
    return element(
        "section",
        element("h2", "Coming expiries"),
        element("p", "Keys by expiry time, in UTC; each chart has its own scale.", class_="note"),
        element("div", *charts, class_="charts"),
        element("ul", *cliffs, class_="cliffs") if found else Markup(""),
        id="timeline",
    )


def _chart(report: Report, title: str, start: float, width: float) -> Markup:
    line, end = report.summary.expiry.timelines[0], start + width
    (whole,), bars = line.columns(start, end, 1), line.columns(start, end, BARS)
    heights = [plain(one.keys) for one in bars]
    highest = max((one.keys for one in bars), key=plain)
    if plain(whole.keys) < 1:
        return Markup("")
    cliffs, each = report.summary.expiry.cliffs, width / BARS
    steep = [at for at in range(BARS) if any(one.meets(start + at * each, start + (at + 1) * each) for one in cliffs)]
    calm = [at for at in range(BARS) if at not in steep]
    noun = humanize.noun(whole.keys, "key")
    keys = f"{humanize.written_keys(whole.keys, COVERAGE_MARKS[report.head.coverage.kind])} {noun}"
    drawing = element(
        "svg",
        element("title", f"{title}: {keys} {'expires' if noun == 'key' else 'expire'}"),
        element("path", d=_path(heights, calm, plain(highest)), class_="bars"),
        element("path", d=_path(heights, steep, plain(highest)), class_="bars steep"),
        viewBox=f"0 0 {BARS * _STEP} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
    )
    top = f"{keys} · the highest bar is {humanize.written(highest, humanize.short_count)}"
    times = [humanize.moment(at) for at in (start, start + width / 2, end)]
    axis = (element("span", time[11:16] if width <= DAY_S else time[:10]) for time in times)
    return element(
        "figure",
        element("figcaption", element("b", title), element("span", top)),
        drawing,
        element("div", *axis, class_="axis"),
    )


def _path(heights: Sequence[float], columns: Sequence[int], top: float) -> str:
    bars = []
    for at in columns:
        height = _HEIGHT * heights[at] / top
        if height > 0:
            height = max(height, 1.0)
            bars.append(f"M{at * _STEP} {_HEIGHT}v-{height:.1f}h{_STEP - 2}v{height:.1f}z")
    return "".join(bars)


_SPARK_WIDTH: Final = 144.0
_SPARK_HEIGHT: Final = 30.0
_EDGE: Final = 2.0
"""The units of the drawing, and how far the line stays from its edges."""


def spark(line: Line) -> Markup:
    """Return the history of a figure, the newest at the right, with gaps for unknown values; empty for one value."""
    known = plotted(line.history)
    if not known:
        return Markup("")
    low, top = chart_bounds(known)
    span, steps = top - low or 1.0, max(1, len(line.history) - 1)
    path, is_on = "", False
    for at, value in enumerate(line.history):
        if value is not None:
            x = _EDGE + (_SPARK_WIDTH - 2 * _EDGE) * at / steps
            y = _SPARK_HEIGHT - _EDGE - (_SPARK_HEIGHT - 2 * _EDGE) * (value - low) / span
            # A value between two unknown ones is a point: a line of no length, with round ends.
            path += f"{'L' if is_on else 'M'}{x:.1f} {y:.1f}" + ("" if is_on else "h0")
        is_on = value is not None
    ends = f"{value_text(line, known[0])} → {value_text(line, known[-1])}"
    bounds = f"lowest {value_text(line, min(known))}, highest {value_text(line, max(known))}"
    return element(
        "svg",
        element("title", f"{line.title}: {ends}; {bounds}"),
        element("path", d=path),
        class_="spark",
        viewBox=f"0 0 {_SPARK_WIDTH:g} {_SPARK_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
    )


_MOST_ROWS: Final = 200

SHARE_STEPS: Final = 20
"""The steps of the bar that is drawn under a share."""


def document(title: str, header: Markup, main: Markup) -> str:
    shares = (f".s{step}{{--share:{step / SHARE_STEPS:g}}}" for step in range(1, SHARE_STEPS + 1))
    style, script = Markup(_inline("page.css") + "".join(shares)), _inline("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", style),
    )
    body = element("body", header, main, element("script", script))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _inline(name: str) -> Markup:
    return Markup((files(__package__) / name).read_text("utf-8"))


def page_html(page: blocks.BlockPage) -> str:
    """Return a page with a head; it ends with a line feed. Lists come first, facts about it last."""
    head = page.head or blocks.PageHead("rtui", page.title, ("", ""))
    lists = [one for one in page.blocks if isinstance(one, blocks.Items)]
    facts = [one for one in page.blocks if isinstance(one, blocks.Facts)]
    others = [one for one in page.blocks if not isinstance(one, blocks.Items | blocks.Facts)]
    if not any(one.rows if isinstance(one, Table) else not isinstance(one, blocks.ReportCharts) for one in others):
        others.append(blocks.Paragraph([page.title]))
    parts = (part for one in (*reversed(lists), *others, *facts) for part in _block(one, "", "h2"))
    return document(f"{head.kicker} · {head.title}", _head(head), element("main", *parts))


def _head(head: blocks.PageHead) -> Markup:
    word, kind = head.badge
    tiles = (element("div", element("b", value), element("span", title)) for value, title in head.tiles or ())
    return element(
        "header",
        element("p", head.kicker, class_="kicker"),
        element("h1", head.title, element("span", word, class_=f"badge {kind}".strip())),
        *([element("p", head.about, class_="sub")] if head.about else []),
        *(element("p", line, class_="note") for line in head.notes),
        *([] if head.tiles is None else [element("div", *tiles, class_="tiles")]),
        *(element("p", line, class_="warning") for line in head.warnings),
    )


def _block(block: blocks.Block, prefix: str, heading: str) -> Iterator[Markup]:
    """Yield a block, nothing for an empty one; ids begin with `prefix`, `heading` is the element over a table."""
    match block:
        case blocks.Section():
            inside = (part for inner in block.blocks for part in _block(inner, block.prefix, "h3"))
            yield element("section", element("h2", block.title), *inside, id=block.id or None)
        case blocks.Paragraph():
            yield from (element("p", line) for line in block.lines)
        case blocks.Items() if not block.title:
            yield from (element("p", line, class_="note") for line in block.lines)
        case blocks.Items() if block.lines:
            items = element("ul", *(element("li", line) for line in block.lines))
            yield element("section", element("h2", block.title), items)
        case blocks.Facts():
            rows = (part for what, text in block.rows for part in (element("dt", what), element("dd", text)))
            yield element("section", element("h2", block.title), element("dl", *rows), id="about")
        case blocks.Note():
            yield element("p", f"{block.text}.", class_="note")
        case blocks.Findings():
            yield _findings(block.found, prefix)
        case blocks.GroupedRows() if block.groups or block.notes:
            yield _listing(block, prefix)
        case blocks.FigureTable():
            yield _figures(block)
        case blocks.ReportCharts():
            yield from (icicle(block.report), timeline(block.report))
        case Table() if block.rows:
            yield _table(block, prefix, heading)
        case blocks.Items() | blocks.GroupedRows() | Table():
            pass


def _table(table: Table, prefix: str, heading: str) -> Markup:
    head = (
        element(
            "th",
            one.title,
            scope="col",
            class_="n" if one.numeric else None,
            title=one.about or None,
            aria_label=None if one.title else one.id,
        )
        for one in table.columns
    )
    body = (
        element("tr", *(_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)))
        for row in table.rows[:_MOST_ROWS]
    )
    whole = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    more = len(table.rows) - _MOST_ROWS
    notes = [
        *([table.note] if table.note else []),
        *([f"{more:,} more rows are in the JSON form."] if more > 0 else []),
    ]
    return element(
        "section",
        element(heading, table.title),
        element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=table.title),
        *(element("p", note, class_="note") for note in notes),
        id=f"{prefix}{table.id}",
    )


def _cell(cell: Cell, column: Column) -> Markup:
    text = cell_text(cell, column)
    title: str | None = cell_reason(cell) or None
    interval = cell_interval(cell, column)
    if interval is not None:
        title = f"95 % interval: {interval}"
    if column.unit is Unit.NAME and isinstance(cell, bytes):
        return element("td", element("code", text), title=title)
    if not column.numeric:
        return element("td", text, title=title)
    key = sort_key(cell)
    classes = "n"
    if column.unit is Unit.SHARE and key is not None:
        classes += f" share s{max(0, min(SHARE_STEPS, round(key[0] * SHARE_STEPS)))}"
    figure, *more = text.split(" (", 1)
    parts = [element("span", figure), f" ({more[0]}"] if more else [text]
    return element("td", *parts, class_=classes, data_v=None if key is None else key[0], title=title)


def _listing(block: blocks.GroupedRows, prefix: str) -> Markup:
    lists: list[Markup] = []
    for group in block.groups:
        rows = (element("li", f"{' '.join(row[:-1])}: {row[-1]}") for row in group.rows)
        lists += [element("h3", group.title), element("ul", *rows)]
    notes = (element("p", note, class_="note") for note in block.notes)
    return element("section", element("h2", block.title), *lists, *notes, id=f"{prefix}compared")


def _findings(found: Found, prefix: str) -> Markup:
    rest = [f"Not checked: {', '.join(rules)} ({why})." for why, rules in found.doubts.items()]
    rest.append(f"{summary(found)} by {humanize.counted(len(found.judged), 'rule')}.")
    return element(
        "section",
        element("h2", "Findings"),
        *map(_finding, found.findings),
        *(element("p", line, class_="note") for line in rest),
        id=f"{prefix}findings",
    )


def _finding(one: Finding) -> Markup:
    rule = one.declared
    facts = [("why", rule.reason), ("do", rule.remedy), ("note", rule.basis)]
    rows = [part for what, text in facts if text for part in (element("dt", what), element("dd", text))]
    for what, typed in (("query", one.query), ("command", str(one.command))):
        rows += [element("dt", what), element("dd", element("code", typed))] if typed else []
    return element(
        "div",
        element("h3", one.title),
        element("span", f"{one.severity.value} · {one.rule}", class_="note"),
        *([element("ul", *(element("li", line) for line in one.evidence))] if one.evidence else []),
        element("dl", *rows),
        class_=f"finding {one.severity.value}",
    )


def _figures(block: blocks.FigureTable) -> Markup:
    values = [column.title for column in block.table.columns[2:-3]]
    has_charts = any(one.now is not None and plotted(one.now.history) for one in block.lines)
    titles = ["metric", *values, "status", *(["session"] if has_charts else []), "expected", "meaning"]
    head = (element("th", title, scope="col", class_="n" if title in values else None) for title in titles)
    rows = []
    for row, one in zip(block.table.rows, block.lines, strict=True):
        title, field, *cells, state, normal, said = map(cell_text, row, block.table.columns)
        source = [element("span", f"source: {one.line.source}", class_="src")] if one.line.source else []
        chart = [element("td", Markup("") if one.now is None else spark(one.now))] if has_charts else []
        rows.append(
            element(
                "tr",
                element("td", title, *([element("span", field, class_="src")] if field else [])),
                *(element("td", text, class_="n") for text in cells),
                element("td", state, class_=f"state {state}".strip()),
                *chart,
                element("td", normal, class_="say"),
                element("td", said, *source, class_="say"),
            )
        )
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="scroll whole", tabindex="0", role="region", aria_label=block.table.title)
