"""How servers are as one self-contained page (`html_parts.py`): what is wrong first, then every panel with its figures.

A figure has its state, what it means here, what is normal and where that comes from, and where there are several
samples a small chart of them as SVG; its scale goes from the lowest value to the highest, or from 0 where the lowest is
less than half of the highest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.findings.server_comparison import ComparedLine, HealthComparison
from rtui.analysis.formats.compared_health import cell_of, change_of
from rtui.analysis.formats.comparison import judgement_lines
from rtui.analysis.formats.findings import summary
from rtui.analysis.formats.health import NO_FAILURES, NodePage, node_pages, page_notes
from rtui.analysis.formats.html_parts import Markup, element, page, section
from rtui.analysis.health.panel import Line, Panel, State, chart_bounds, nodes_table, value_text
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, Column, Unit, cell_reason, cell_text
from rtui.analysis.report.thresholds import Judgement
from rtui.keyspace.text.display import SafeText

LEAST_VALUES: Final = 2
"""Of fewer known values there is no chart."""

_WIDTH: Final = 144.0
_HEIGHT: Final = 30.0
_EDGE: Final = 2.0
"""The units of the drawing, and how far the line stays from its edges."""

_TILES: Final = ("used_memory", "instantaneous_ops_per_sec", "hit_ratio", "connected_clients")
"""The figures in the head of a page of one node."""

_TEXT: Final = Column("value", "value", Unit.TEXT)


def health_html(
    views: Sequence[HealthView],
    comparison: HealthComparison | None = None,
    judgements: Sequence[Judgement] = (),
    failures: Mapping[str, str] = NO_FAILURES,
) -> str:
    """Return the page; it ends with a line feed."""
    pages = node_pages(views, comparison)
    notes = page_notes(comparison, failures)
    title = pages[0].view.latest.node if len(pages) == 1 else humanize.counted(len(pages), "node")
    parts: list[Markup] = [_list_section("Thresholds", judgement_lines(judgements)), _list_section("Notes", notes)]
    if len(pages) == 1:
        return page(f"rtui health · {title}", _header(pages[0]), element("main", *parts, *_node_parts(pages[0], "")))
    worst = next((one for one in pages if one.health.found.findings), None)
    head = element(
        "header",
        element("p", "rtui health", class_="kicker"),
        element("h1", title, _badge("nothing wrong" if worst is None else worst.word, worst)),
    )
    latest = {SafeText(one.view.latest.node): one.view.latest for one in pages}
    wrong = {SafeText(one.view.latest.node): one.health.headline for one in pages if one.health.headline}
    parts.append(section(nodes_table(latest, wrong)))
    for number, one in enumerate(pages, 1):
        node = element("section", element("h2", one.title), *_bases(one), *_node_parts(one, f"n{number}-"))
        parts.append(node)
    return page(f"rtui health · {title}", head, element("main", *parts))


def _header(one: NodePage) -> Markup:
    """Return the node, what is wrong in a word, and its main figures."""
    lines = {line.id: line for panel in one.health.panels for line in panel.lines}
    known = [line for name in _TILES if (line := lines.get(name)) is not None and not isinstance(line.value, Unknown)]
    tiles = (element("div", element("b", value_text(line)), element("span", line.title)) for line in known)
    return element(
        "header",
        element("p", "rtui health", class_="kicker"),
        element("h1", one.view.latest.node, _badge(one.word, one if one.health.found.findings else None)),
        element("p", " · ".join(one.facts), class_="sub"),
        *_bases(one),
        element("div", *tiles, class_="tiles"),
    )


def _badge(word: str, of: NodePage | None) -> Markup:
    kind = "" if of is None else f" {of.health.found.findings[0].severity.value}"
    return element("span", word, class_=f"badge{kind}")


def _bases(one: NodePage) -> list[Markup]:
    return [element("p", line, class_="note") for line in one.bases]


def _list_section(title: str, lines: Sequence[str]) -> Markup:
    """Return a list under its heading; nothing where it is empty."""
    if not lines:
        return Markup("")
    return element("section", element("h2", title), element("ul", *(element("li", line) for line in lines)))


def _node_parts(one: NodePage, prefix: str) -> Iterator[Markup]:
    """Yield the findings, what became of those of then, and the panels."""
    yield _findings(one.health.found, prefix)
    compared = one.findings
    if compared.sections or compared.notes:
        lists = [
            part
            for each in compared.sections
            for part in (
                element("h3", each.title),
                element("ul", *(element("li", f"{row[0]} {row[1]}: {row[2]}") for row in each.rows)),
            )
        ]
        notes = (element("p", note, class_="note") for note in compared.notes)
        yield element("section", element("h2", "What became of findings"), *lists, *notes, id=f"{prefix}compared")
    for panel in one.health.panels:
        yield _panel(one, panel, prefix)


def _findings(found: Found, prefix: str) -> Markup:
    """Return what is wrong, each with why, what to do and where to look; then what could not be judged."""
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
    facts = [("why", one.why), ("do", one.remedy), ("how", one.basis)]
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


def _panel(one: NodePage, panel: Panel, prefix: str) -> Markup:
    """Return a panel: its figures, its tables and its notes."""
    here = f"{prefix}{panel.id}-"
    return element(
        "section",
        element("h2", panel.title),
        *([_figures(one, panel)] if panel.lines else []),
        *(section(table, heading="h3", prefix=here) for table in panel.tables if table.rows),
        *(element("p", f"{note}.", class_="note") for note in panel.notes),
        id=f"{prefix}{panel.id}",
    )


def _figures(one: NodePage, panel: Panel) -> Markup:
    """Return the figures of a panel as a table, with charts where there is one at least."""
    lines = one.figures(panel)
    is_compared = one.compared is not None
    has_charts = any(line.now is not None and has_chart(line.now.history) for line in lines)
    values = ("then", "now", "change") if is_compared else ("value",)
    titles = ["figure", *values, "state", *(["session"] if has_charts else []), "normal", "what it means here"]
    head = (element("th", title, scope="col", class_="n" if title in values else None) for title in titles)
    body = (_figure(line, is_compared=is_compared, has_charts=has_charts) for line in lines)
    table = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", table, class_="scroll whole", tabindex="0", role="region", aria_label=panel.title)


def _figure(one: ComparedLine, *, is_compared: bool, has_charts: bool) -> Markup:
    """Return the row of a figure."""
    line, now = one.line, one.now
    texts = [_text(cell_of(now))]
    if is_compared:
        texts = [_text(cell_of(one.then)), *texts, change_of(one)]
    state = "" if now is None or now.state is State.PLAIN else now.state.value
    said = "" if now is None else line.said or cell_reason(line.value)
    source = [element("span", f"source: {line.source}", class_="src")] if line.source else []
    chart = [element("td", Markup("") if now is None else spark(now))] if has_charts else []
    return element(
        "tr",
        element("td", line.title),
        *(element("td", text, class_="n") for text in texts),
        element("td", state, class_=f"state {state}".strip()),
        *chart,
        element("td", line.normal, class_="say"),
        element("td", said, *source, class_="say"),
    )


def _text(cell: Cell) -> str:
    return cell_text(cell, _TEXT)


def has_chart(history: Sequence[float | None]) -> bool:
    """Whether there are values enough for a chart."""
    return sum(value is not None for value in history) >= LEAST_VALUES


def spark(line: Line) -> Markup:
    """Return how a figure went, the newest at the right, with gaps where it was not known; nothing for one value."""
    if not has_chart(line.history):
        return Markup("")
    known = [value for value in line.history if value is not None]
    low, top = chart_bounds(known)
    span, steps = top - low or 1.0, max(1, len(line.history) - 1)
    path, is_on = "", False
    for at, value in enumerate(line.history):
        if value is not None:
            x = _EDGE + (_WIDTH - 2 * _EDGE) * at / steps
            y = _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * (value - low) / span
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
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
    )
