"""Pages of HTML, each a single file that loads nothing.

Its policy forbids it to: it lets in the one style sheet and the one script that are written into the page, by their
hashes. Without the script everything is there, but nothing zooms or sorts.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.formats import blocks
from rtui.analysis.formats.charts import Markup, element, icicle, spark, timeline
from rtui.analysis.formats.text import summary
from rtui.analysis.health.panel import plotted
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit, cell_interval, cell_reason, cell_text, sort_key

_MOST_ROWS: Final = 200

SHARE_STEPS: Final = 20
"""The steps of the bar that is drawn under a share."""


def document(title: str, header: Markup, main: Markup) -> str:
    """Return a whole page; it ends with a line feed."""
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
    """Return a file that lies beside this module."""
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
    """Return title, notes, main figures and warnings."""
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
    """Return a table under its heading, with its note and how much is left out."""
    head = (
        element("th", one.title, scope="col", class_="n" if one.numeric else None, title=one.about or None)
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
    """Return one cell, with its sort key and a tooltip for its interval or reason."""
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
    return element("td", text, class_=classes, data_v=None if key is None else key[0], title=title)


def _listing(block: blocks.GroupedRows, prefix: str) -> Markup:
    """Return groups of rows as lists."""
    lists: list[Markup] = []
    for group in block.groups:
        rows = (element("li", f"{' '.join(row[:-1])}: {row[-1]}") for row in group.rows)
        lists += [element("h3", group.title), element("ul", *rows)]
    notes = (element("p", note, class_="note") for note in block.notes)
    return element("section", element("h2", block.title), *lists, *notes, id=f"{prefix}compared")


def _findings(found: Found, prefix: str) -> Markup:
    """Return the findings with reason, remedy and query; then the rules that could not be judged."""
    rest = [f"Not judged: {', '.join(rules)} ({why})." for why, rules in found.doubts.items()]
    rest.append(f"{summary(found)} by {humanize.counted(len(found.judged), 'rule')}.")
    return element(
        "section",
        element("h2", "What is wrong"),
        *map(_finding, found.findings),
        *(element("p", line, class_="note") for line in rest),
        id=f"{prefix}findings",
    )


def _finding(one: Finding) -> Markup:
    rule = one.declared
    facts = [("why", rule.reason), ("do", rule.remedy), ("how", rule.basis)]
    rows = [part for what, text in facts if text for part in (element("dt", what), element("dd", text))]
    for what, typed in (("query", one.query), ("look", str(one.command))):
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
    """Return figures as a table, with charts where there is one at least."""
    values = [column.title for column in block.table.columns[1:-3]]
    has_charts = any(one.now is not None and plotted(one.now.history) for one in block.lines)
    titles = ["figure", *values, "state", *(["session"] if has_charts else []), "normal", "what it means here"]
    head = (element("th", title, scope="col", class_="n" if title in values else None) for title in titles)
    rows = []
    for row, one in zip(block.table.rows, block.lines, strict=True):
        title, *cells, state, normal, said = map(cell_text, row, block.table.columns)
        source = [element("span", f"source: {one.line.source}", class_="src")] if one.line.source else []
        chart = [element("td", Markup("") if one.now is None else spark(one.now))] if has_charts else []
        rows.append(
            element(
                "tr",
                element("td", title),
                *(element("td", text, class_="n") for text in cells),
                element("td", state, class_=f"state {state}".strip()),
                *chart,
                element("td", normal, class_="say"),
                element("td", said, *source, class_="say"),
            )
        )
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="scroll whole", tabindex="0", role="region", aria_label=block.table.title)
