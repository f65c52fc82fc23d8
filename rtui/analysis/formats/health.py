"""How servers are, as text for a terminal or a log and as Markdown: what is wrong first, then every panel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.server import ServerHealth, server_health
from rtui.analysis.findings.server_comparison import ComparedLine, HealthComparison, NodeComparison
from rtui.analysis.formats.compared_findings import FindingLines, finding_markdown, finding_text
from rtui.analysis.formats.compared_health import cell_of, change_of, compared_findings, when_text
from rtui.analysis.formats.comparison import head_text, judgement_lines
from rtui.analysis.formats.findings import markdown_lines, text_lines
from rtui.analysis.formats.markdown import ROWS, escaped, table_markdown
from rtui.analysis.formats.text import DEFAULT_WIDTH, cells_of, table_text
from rtui.analysis.health.panel import Panel, State
from rtui.analysis.health.replication_panel import ROLES
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit, cell_reason, cell_text
from rtui.analysis.report.thresholds import Judgement
from rtui.keyspace.text.display import SafeText, display_text

_FIGURE: Final = Column("figure", "figure", Unit.TEXT, 28)
_VALUE: Final = Column("value", "value", Unit.COUNT, 12)
_THEN: Final = Column("then", "then", Unit.COUNT, 12)
_NOW: Final = Column("now", "now", Unit.COUNT, 12)
_CHANGE: Final = Column("change", "change", Unit.COUNT, 9, "From then to now")
_STATE: Final = Column("state", "state", Unit.TEXT, 7, "Whether the value is normal, by the threshold beside it")
_NORMAL: Final = Column("normal", "normal", Unit.TEXT, 20)
_SAID: Final = Column("said", "what it means here", Unit.TEXT)

NO_FAILURES: Final[Mapping[str, str]] = MappingProxyType({})
"""All nodes have answered when they were asked last; of others a sentence says why not."""

_LEAST_ROOM: Final = 32
"""Characters that an explanation has at least."""


@dataclass(frozen=True)
class NodePage:
    """All that is written of a node."""

    view: HealthView
    health: ServerHealth
    compared: NodeComparison | None
    """With earlier samples; None where there are none."""

    @property
    def title(self) -> SafeText:
        """Return the node in a line: `10.0.0.5:6379 · redis 7.4.1 · primary · 2026-09-21 14:13:20 UTC · fragmented`."""
        return SafeText(" · ".join([self.view.latest.node, *self.facts, self.word]))

    @property
    def facts(self) -> list[SafeText]:
        """What it is, its role, and of when its last sample is."""
        view = self.view
        product = "valkey" if view.text("valkey_version") else "redis"
        version = view.text("valkey_version") or view.text("redis_version")
        role = ROLES.get(view.text("role"), "")
        parts = (f"{product} {version}" if version else "", role, f"{humanize.moment(view.latest.at_ms / 1000)} UTC")
        return [display_text(part, limit=200) for part in parts if part]

    @property
    def word(self) -> SafeText:
        """What is wrong, the worst, in a word or two."""
        return self.health.headline or SafeText("nothing wrong")

    @property
    def bases(self) -> list[SafeText]:
        """What else it rests on, a line each: the earlier samples and the report of the keys."""
        lines = []
        if self.compared is not None:
            lines.append(f"since  {when_text(self.compared.then)}")
        if self.view.report is not None:
            lines.append(f"keys   {display_text(head_text(self.view.report.head), limit=300)}")
        return list(map(SafeText, lines))

    @property
    def findings(self) -> FindingLines:
        """What became of findings since the earlier samples; nothing where there are none."""
        return FindingLines() if self.compared is None else compared_findings(self.compared)

    def figures(self, panel: Panel) -> Sequence[ComparedLine]:
        """Return the figures of a panel, with those of then where there are earlier samples."""
        if self.compared is None:
            return [ComparedLine(None, line) for line in panel.lines]
        return next(lines for one, lines in self.compared.figures if one.id == panel.id)


def node_pages(views: Sequence[HealthView], comparison: HealthComparison | None = None) -> list[NodePage]:
    """Return what is to be written of each node."""
    pages = []
    for view in views:
        compared = None if comparison is None else comparison.of(view)
        pages.append(NodePage(view, server_health(view) if compared is None else compared.health, compared))
    return pages


def page_notes(comparison: HealthComparison | None, failures: Mapping[str, str]) -> list[SafeText]:
    """Return what is to be known of the nodes: which could not be compared, and which have not answered last."""
    notes = [] if comparison is None else list(comparison.notes)
    return [*notes, *(display_text(f"{node} has not answered last: {why}") for node, why in failures.items())]


def figures_table(page: NodePage, panel: Panel) -> Table:
    """Return the lines of a panel as a table."""
    values = (_VALUE,) if page.compared is None else (_THEN, _NOW, _CHANGE)
    rows = tuple(_figure_row(one, is_compared=page.compared is not None) for one in page.figures(panel))
    return Table(panel.id, panel.title, (_FIGURE, *values, _STATE, _NORMAL, _SAID), rows)


def _figure_row(one: ComparedLine, *, is_compared: bool) -> Row:
    line, now = one.line, one.now
    values: tuple[Cell, ...] = (cell_of(now),)
    if is_compared:
        values = (cell_of(one.then), cell_of(now), change_of(one))
    state = "" if now is None or now.state is State.PLAIN else now.state.value
    return (line.title, *values, state, line.normal, "" if now is None else line.said or cell_reason(line.value))


def health_text(
    views: Sequence[HealthView],
    comparison: HealthComparison | None = None,
    judgements: Sequence[Judgement] = (),
    failures: Mapping[str, str] = NO_FAILURES,
) -> str:
    """Return all about each node, in lines; ends with a newline."""
    lines = [line for page in node_pages(views, comparison) for line in _node_text(page)]
    notes = page_notes(comparison, failures)
    for group in (notes, judgement_lines(judgements)):
        lines += [*group, ""] if group else []
    return "\n".join(lines) + "\n"


def _node_text(page: NodePage) -> Iterator[str]:
    yield from (page.title, *page.bases, "")
    yield from text_lines(page.health.found)
    compared = page.findings
    yield from finding_text(compared)
    yield from ("", *compared.notes) if compared.notes else ()
    for panel in page.health.panels:
        yield from ("", panel.title, *_figure_lines(figures_table(page, panel)))
        for table in map(_shortened, panel.tables):
            yield ""
            yield table_text(table).rstrip("\n")
        for note in panel.notes:
            yield from wrap(display_text(note, limit=4096), DEFAULT_WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""


def _figure_lines(table: Table) -> Iterator[str]:
    """Yield the lines of a panel; what is normal and what a value means is wrapped beside them."""
    rows = [[cell_text(cell, column) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows]
    count = len(table.columns) - 2
    widths = [max((cells_of(row[at]) for row in rows), default=0) for at in range(count)]
    if count > 3 and rows:
        widths = [max(width, len(one.title)) for width, one in zip(widths, table.columns[:count], strict=True)]
        yield _aligned([one.title for one in table.columns[:count]], widths).rstrip()
    for row in rows:
        normal, said = row[count:]
        before = _aligned(row[:count], widths)
        explained = "; ".join([*([f"normal: {normal}"] if normal else []), *([said] if said else [])])
        room = max(DEFAULT_WIDTH, len(before) + _LEAST_ROOM)
        after = " " * len(before)
        yield from wrap(explained, room, initial_indent=before, subsequent_indent=after) or [before.rstrip()]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return the name from the left, numbers from the right, and the state."""
    first, *numbers, state = zip(cells, widths, strict=True)
    parts = [f"{first[0]:<{first[1]}}", *(f"{text:>{width}}" for text, width in numbers), f"{state[0]:<{state[1]}}"]
    return f"  {'  '.join(parts)}  "


def health_markdown(
    views: Sequence[HealthView],
    comparison: HealthComparison | None = None,
    judgements: Sequence[Judgement] = (),
    failures: Mapping[str, str] = NO_FAILURES,
) -> str:
    """Return a section for each node; nothing that came from a server can become markup. Ends with a newline."""
    lines = ["# rtui health", "", *(line for page in node_pages(views, comparison) for line in _node_markdown(page))]
    notes = page_notes(comparison, failures)
    for heading, group in (("Notes", notes), ("Thresholds", judgement_lines(judgements))):
        lines += [f"## {heading}", "", *(f"- {escaped(line)}" for line in group), ""] if group else []
    return "\n".join(lines) + "\n"


def _node_markdown(page: NodePage) -> Iterator[str]:
    yield from (f"## {escaped(page.title)}", "")
    yield from (*(f"- {escaped(line)}" for line in page.bases), "") if page.bases else ()
    yield from markdown_lines(page.health.found, "###")
    compared = page.findings
    yield from finding_markdown(compared, "###")
    yield from ("", *(f"- {escaped(note)}" for note in compared.notes)) if compared.notes else ()
    for panel in page.health.panels:
        if not panel.lines:
            yield from ("", f"### {escaped(panel.title)}")
        figures = [figures_table(page, panel)] if panel.lines else []
        for table in [*figures, *map(_shortened, panel.tables)]:
            yield from ("", f"### {escaped(table.title)}", "", table_markdown(table).rstrip("\n"))
            yield from ("", escaped(table.note)) if table.note else ()
        for note in panel.notes:
            yield from ("", escaped(note))
    yield ""


def _shortened(table: Table) -> Table:
    """Return a table with its first rows; settings are all there."""
    return table if table.id == "settings" or len(table.rows) <= ROWS else table.picked(range(ROWS))
