"""How servers are, as a page for people: what is wrong first, then every panel; and what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.findings.comparison import FindingFate
from rtui.analysis.findings.server import ServerHealth, server_health
from rtui.analysis.findings.server_comparison import ComparedLine, HealthComparison, NodeComparison
from rtui.analysis.formats.blocks import Block, BlockPage, FigureTable, Findings, Items, Note, PageHead, Section
from rtui.analysis.formats.comparison import finding_listing, growth_text, head_text, judgement_lines, points_text
from rtui.analysis.health.panel import Line, Panel, State, nodes_table, value_text
from rtui.analysis.health.replication_panel import ROLES
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.readings import Direction
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit, cell_reason
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

_TILES: Final = ("used_memory", "instantaneous_ops_per_sec", "hit_ratio", "connected_clients")
"""The figures in the head of a page of one node."""

MOST_FINDINGS: Final = 100
"""Findings of one fate that are listed."""

FATES: Final = (
    FindingFate.NEW, FindingFate.MAYBE_NEW, FindingFate.GREW, FindingFate.SHRANK, FindingFate.SAME,
    FindingFate.UNCLEAR, FindingFate.MAYBE_GONE, FindingFate.GONE,
)  # fmt: skip
"""All of them: servers have few findings, so those that are still there are listed, too."""


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
    def badge(self) -> tuple[str, str]:
        """The same with its severity."""
        found = self.health.found.findings
        return self.word, found[0].severity.value if found else ""

    @property
    def bases(self) -> list[SafeText]:
        """What else it rests on, a line each: the earlier samples and the report of the keys."""
        lines = []
        if self.compared is not None:
            lines.append(f"since  {when_text(self.compared.then)}")
        if self.view.report is not None:
            lines.append(f"keys   {display_text(head_text(self.view.report.head), limit=300)}")
        return list(map(SafeText, lines))

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


def cell_of(line: Line | None) -> Cell:
    """Return the value of a figure as a cell of a table of texts."""
    if line is None or isinstance(line.value, Unknown):
        return None if line is None else line.value
    return value_text(line)


def change_of(one: ComparedLine) -> SafeText:
    """Return by how much a figure has changed: `+25%`, `=`, `+1h`; a dash where that is not known."""
    then, now = one.then, one.now
    if then is None or now is None or isinstance(then.value, Unknown) or isinstance(now.value, Unknown):
        return SafeText(humanize.NOTHING)
    if not isinstance(then.value, int | float) or not isinstance(now.value, int | float):
        return SafeText("changed" if one.is_other else "=")
    change = one.change
    if change.direction is Direction.SAME:
        return SafeText("=")
    difference = now.value - then.value
    if one.line.unit is Unit.TIME:
        return SafeText(f"{'+' if difference > 0 else '-'}{humanize.duration(round(abs(difference) * 1000))}")
    if then.value < 0:
        return SafeText(f"{'+' if difference > 0 else '-'}{value_text(now, abs(difference))}")
    return SafeText(points_text(change) if one.line.unit is Unit.SHARE else growth_text(change))


def when_text(view: HealthView) -> SafeText:
    """Return of when samples are, and how many: `2026-09-21 14:13:20 UTC (62 samples in 5m)`."""
    last, first = view.latest.at_ms, view.samples[0].at_ms
    count = humanize.counted(len(view.samples), "sample")
    over = f" in {humanize.duration(last - first)}" if last > first else ""
    return SafeText(f"{humanize.moment(last / 1000)} UTC ({count}{over})")


def health_page(
    views: Sequence[HealthView],
    comparison: HealthComparison | None = None,
    judgements: Sequence[Judgement] = (),
    failures: Mapping[str, str] = NO_FAILURES,
    *,
    in_browser: bool = False,
) -> BlockPage:
    """Return all about each node: what is wrong first, then every panel.

    In a browser a single node has no section of its own, and several are listed in a table. `failures` say why nodes
    have not answered last.
    """
    nodes = node_pages(views, comparison)
    notes = [*([] if comparison is None else comparison.notes)]
    notes += [display_text(f"{node} has not answered last: {why}") for node, why in failures.items()]
    lists = [Items(notes, "Notes"), Items(judgement_lines(judgements), "Thresholds")]
    if in_browser and len(nodes) == 1:
        return BlockPage("rtui health", [*_node_blocks(nodes[0], ""), *lists], head=_head(nodes))
    blocks: list[Block] = []
    if in_browser:
        names = [SafeText(one.view.latest.node) for one in nodes]
        wrong = {name: one.health.headline for name, one in zip(names, nodes, strict=True) if one.health.headline}
        latest = {name: one.view.latest for name, one in zip(names, nodes, strict=True)}
        blocks.append(nodes_table(latest, wrong))
    for number, one in enumerate(nodes, 1):
        prefix = f"n{number}-"
        blocks.append(Section(one.title, [Items(one.bases), *_node_blocks(one, prefix)], prefix=prefix))
    return BlockPage("rtui health", [*blocks, *lists], head=_head(nodes))


def _head(pages: Sequence[NodePage]) -> PageHead:
    """Return what is wrong in a word; of a single node its main figures, too."""
    if len(pages) > 1:
        worst = next((one for one in pages if one.health.found.findings), None)
        badge = ("nothing wrong", "") if worst is None else worst.badge
        return PageHead("rtui health", humanize.counted(len(pages), "node"), badge)
    (page,) = pages
    lines = {line.id: line for panel in page.health.panels for line in panel.lines}
    known = [line for name in _TILES if (line := lines.get(name)) is not None and not isinstance(line.value, Unknown)]
    tiles = [(value_text(line), line.title) for line in known]
    return PageHead("rtui health", page.view.latest.node, page.badge, " · ".join(page.facts), page.bases, tiles)


def _node_blocks(page: NodePage, prefix: str) -> Iterator[Block]:
    yield Findings(page.health.found)
    compared = page.compared
    if compared is not None:
        found = finding_listing(compared.findings, MOST_FINDINGS, FATES)
        yield found._replace(notes=(*(f"{note[:1].upper()}{note[1:]}." for note in compared.notes), *found.notes))
    for panel in page.health.panels:
        lines = page.figures(panel)
        figures = [FigureTable(figures_table(page, panel), lines)] if panel.lines else []
        blocks: list[Block] = [*figures, *panel.tables, *map(Note, panel.notes)]
        yield Section(panel.title, blocks, f"{prefix}{panel.id}", f"{prefix}{panel.id}-")
