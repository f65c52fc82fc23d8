"""The health of servers and its changes, as a page for people and as one JSON document.

The page says what is wrong first, then has every panel. The structs of the document are its schema. A figure has a
value, or `unknown` says why there is none; units are `bytes`, `s`, `epoch_s`, `share` (0 … 1), `ratio`, `count`, `keys`
and `text`, a second where `per_second` is true. With earlier samples a figure has `then` and `change`, and a node
`compared`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from rtui import __version__
from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.findings.contents import FindingFate
from rtui.analysis.findings.server import ComparedLine, HealthComparison, NodeComparison, ServerHealth, server_health
from rtui.analysis.formats.blocks import (
    Block,
    BlockPage,
    Facts,
    FigureTable,
    Findings,
    Items,
    Note,
    PageHead,
    Paragraph,
    Section,
)
from rtui.analysis.formats.comparison import (
    change_record,
    finding_listing,
    finding_records,
    growth_text,
    head_record,
    head_text,
    judgement_lines,
    points_text,
)
from rtui.analysis.formats.csv_and_json import cell_value, table_records
from rtui.analysis.formats.findings import finding_record, unjudged_records
from rtui.analysis.health.durability_panels import ROLES
from rtui.analysis.health.panel import Line, Panel, State, nodes_table, value_text
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.readings import Direction
from rtui.analysis.report.tables.table import Cell, Column, Row, Table, Unit, cell_reason
from rtui.analysis.report.thresholds import Judgement
from rtui.keyspace.text.display import SafeText, display_text, quoted
from rtui.registry.rules import Severity

_METRIC: Final = Column("metric", "metric", Unit.TEXT, 28)
_FIELD: Final = Column("field", "field", Unit.TEXT, 26, "Redis' name")
_VALUE: Final = Column("value", "value", Unit.COUNT, 12)
_THEN: Final = Column("then", "then", Unit.COUNT, 12)
_NOW: Final = Column("now", "now", Unit.COUNT, 12)
_CHANGE: Final = Column("change", "change", Unit.COUNT, 9, "From then to now")
_STATUS: Final = Column("status", "status", Unit.TEXT, 7, "Whether the value is as expected")
_EXPECTED: Final = Column("expected", "expected", Unit.TEXT, 20)
_SAID: Final = Column("said", "meaning", Unit.TEXT)

NO_FAILURES: Final[Mapping[str, str]] = MappingProxyType({})
"""All nodes have answered when they were asked last; of others a sentence says why not."""

_MAIN: Final = (
    "used_memory", "maxmemory", "maxmemory_policy", "mem_fragmentation_ratio", "evicted_keys",
    "instantaneous_ops_per_sec", "hit_ratio_total", "cpu_main_thread", "connected_clients", "blocked_clients",
    "slow_entries", "rdb_last_bgsave_status", "aof_enabled", "role",
)  # fmt: skip

_STATES: Final = ("node", "state", "role", "used_memory", "ops_per_s", "clients")
FINDINGS: Final = "findings"
ALL: Final = "all"
"""Sections beside the panels."""

MOST_WORST: Final = 12
MOST_NODES: Final = 12
FINDING_LIMIT: Final = 130
_MORE: Final = "More: --section findings, memory, load, slow, persistence, replication, clients, configuration, or all."
_TILES: Final = ("used_memory", "instantaneous_ops_per_sec", "hit_ratio", "connected_clients")
MOST_FINDINGS: Final = 100

FATES: Final = (
    FindingFate.NEW, FindingFate.MAYBE_NEW, FindingFate.GREW, FindingFate.SHRANK, FindingFate.SAME,
    FindingFate.UNCLEAR, FindingFate.MAYBE_GONE, FindingFate.GONE,
)  # fmt: skip
"""All fates: servers have few findings, so unchanged ones are listed, too."""


@dataclass(frozen=True)
class NodePage:
    """All that is written of a node."""

    view: HealthView
    health: ServerHealth
    compared: NodeComparison | None

    @property
    def title(self) -> SafeText:
        """Return the node in a line: `10.0.0.5:6379 · redis 7.4.1 · primary · 2026-09-21 14:13:20 UTC · fragmented`."""
        return SafeText(" · ".join([self.view.latest.node, *self.facts, self.word]))

    @property
    def facts(self) -> list[SafeText]:
        view = self.view
        product = "valkey" if view.text("valkey_version") else "redis"
        version = view.text("valkey_version") or view.text("redis_version")
        role = ROLES.get(view.text("role"), "")
        parts = (f"{product} {version}" if version else "", role, f"{humanize.moment(view.latest.at_ms / 1000)} UTC")
        return [display_text(part, limit=200) for part in parts if part]

    @property
    def word(self) -> SafeText:
        return self.health.headline or SafeText("no problems")

    @property
    def badge(self) -> tuple[str, str]:
        found = self.health.found.findings
        return self.word, found[0].severity.value if found else ""

    @property
    def bases(self) -> list[SafeText]:
        lines = []
        if self.compared is not None:
            lines.append(f"since  {when_text(self.compared.then)}")
        if self.view.report is not None:
            lines.append(f"keys   {display_text(head_text(self.view.report.head), limit=300)}")
        return list(map(SafeText, lines))

    def figures(self, panel: Panel) -> Sequence[ComparedLine]:
        if self.compared is None:
            return [ComparedLine(None, line) for line in panel.lines]
        return next(lines for one, lines in self.compared.figures if one.id == panel.id)


def node_pages(views: Sequence[HealthView], comparison: HealthComparison | None = None) -> list[NodePage]:
    pages = []
    for view in views:
        compared = None if comparison is None else comparison.of(view)
        pages.append(NodePage(view, server_health(view) if compared is None else compared.health, compared))
    return pages


def figures_table(page: NodePage, panel: Panel) -> Table:
    values = (_VALUE,) if page.compared is None else (_THEN, _NOW, _CHANGE)
    rows = tuple(_figure_row(one, is_compared=page.compared is not None) for one in page.figures(panel))
    return Table(panel.id, panel.title, (_METRIC, _FIELD, *values, _STATUS, _EXPECTED, _SAID), rows)


def _figure_row(one: ComparedLine, *, is_compared: bool) -> Row:
    line, now = one.line, one.now
    values: tuple[Cell, ...] = (cell_of(now),)
    if is_compared:
        values = (cell_of(one.then), cell_of(now), change_of(one))
    state = "" if now is None or now.state is State.PLAIN else now.state.value
    return (
        line.title,
        line.field,
        *values,
        state,
        line.normal,
        "" if now is None else line.said or cell_reason(line.value),
    )


def cell_of(line: Line | None) -> Cell:
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
    sections: Collection[str] = (ALL,),
) -> BlockPage:
    """Return all about each node: findings first, then every panel; or some `sections`, without any a summary.

    In a browser a single node has no section of its own, and several are listed in a table. `failures` say why nodes
    have not answered last.
    """
    nodes = node_pages(views, comparison)
    notes = [*([] if comparison is None else comparison.notes)]
    notes += [display_text(f"{node} did not answer the last poll: {why}") for node, why in failures.items()]
    lists = [Items(notes, "Notes"), Items(judgement_lines(judgements), "Thresholds")]
    if not sections:
        return BlockPage("rtui health", [*_summary(nodes), *lists, Paragraph((_MORE,))], head=_head(nodes))
    if in_browser and len(nodes) == 1:
        return BlockPage("rtui health", [*_node_blocks(nodes[0], "", sections), *lists], head=_head(nodes))
    blocks: list[Block] = []
    if in_browser:
        blocks.append(_nodes_table(nodes))
    for number, one in enumerate(nodes, 1):
        prefix = f"n{number}-"
        blocks.append(Section(one.title, [Items(one.bases), *_node_blocks(one, prefix, sections)], prefix=prefix))
    return BlockPage("rtui health", [*blocks, *lists], head=_head(nodes))


def _head(pages: Sequence[NodePage]) -> PageHead:
    if len(pages) > 1:
        worst = next((one for one in pages if one.health.found.findings), None)
        badge = ("no problems", "") if worst is None else worst.badge
        return PageHead("rtui health", humanize.counted(len(pages), "node"), badge)
    (page,) = pages
    lines = {line.id: line for panel in page.health.panels for line in panel.lines}
    known = [line for name in _TILES if (line := lines.get(name)) is not None and not isinstance(line.value, Unknown)]
    tiles = [(value_text(line), line.title) for line in known]
    return PageHead("rtui health", page.view.latest.node, page.badge, " · ".join(page.facts), page.bases, tiles)


def _summary(pages: Sequence[NodePage]) -> Iterator[Block]:
    """Yield the state, the worst findings and the main metrics of a node, or of several a table, within a screen."""
    if len(pages) == 1:
        (page,) = pages
        *about, moment = page.facts
        yield Paragraph((" · ".join([page.view.latest.node, *about, page.word]), moment, *page.bases))
    else:
        table = _nodes_table(pages)
        kept = [at for at, column in enumerate(table.columns) if column.id in _STATES]
        rows = tuple(tuple(row[at] for at in kept) for row in table.rows[:MOST_NODES])
        note = f"The first {MOST_NODES} of {len(pages):,}." if len(pages) > MOST_NODES else ""
        yield Table(table.id, table.title, tuple(table.columns[at] for at in kept), rows, note=note)
    if any(page.compared is not None for page in pages):
        yield from (block for page in pages for block in _fates(page))
    else:
        yield from _worst_findings(pages)
    if len(pages) == 1:
        yield _main_metrics(pages[0])


def _nodes_table(pages: Sequence[NodePage]) -> Table:
    named = [(SafeText(one.view.latest.node), one) for one in pages]
    wrong = {name: one.health.headline for name, one in named if one.health.headline}
    return nodes_table({name: one.view.latest for name, one in named}, wrong)


def _worst_findings(pages: Sequence[NodePage]) -> Iterator[Block]:
    """Yield findings of all nodes, errors first, each in about two lines, and how many there are by how many rules."""
    listed = [(page.view.latest.node, one) for page in pages for one in page.health.found.findings]
    listed.sort(key=lambda found: found[1].severity is not Severity.ERROR)
    where = "{}: ".format if len(pages) > 1 else lambda _: ""
    rows = [(one.severity.value, f"{where(node)}{one.title} ({one.rule})") for node, one in listed]
    yield Facts("", [(what, display_text(text, limit=FINDING_LIMIT)) for what, text in rows[:MOST_WORST]])
    rules = {rule for page in pages for rule in page.health.found.judged}
    unknown = {one.rule for page in pages for one in page.health.found.unjudged}
    counts = Counter(one.severity for _, one in listed)
    parts = [humanize.counted(counts[Severity.ERROR], "error"), humanize.counted(counts[Severity.WARN], "warning")]
    text = f"{' and '.join(parts)} by {humanize.counted(len(rules), 'rule')}"
    text += f", {len(rows) - MOST_WORST:,} of them not shown" if len(rows) > MOST_WORST else ""
    text += f"; not checked: {humanize.counted(len(unknown), 'rule')}" if unknown else ""
    yield Paragraph((f"{text}.",))


def _main_metrics(page: NodePage) -> Table:
    lines = {one.line.id: one for panel in page.health.panels for one in page.figures(panel)}
    shown = [lines[name] for name in _MAIN if name in lines]
    is_compared = page.compared is not None
    rows = tuple(_figure_row(one, is_compared=is_compared)[:-2] for one in shown)
    values = (_THEN, _NOW, _CHANGE) if is_compared else (_VALUE,)
    return Table("metrics", "Metrics", (_METRIC, _FIELD, *values, _STATUS), rows)


def _fates(page: NodePage) -> Iterator[Block]:
    if page.compared is not None:
        found = finding_listing(page.compared.findings, MOST_FINDINGS, FATES)
        notes = (f"{note[:1].upper()}{note[1:]}." for note in page.compared.notes)
        yield found._replace(notes=(*notes, *found.notes))


def _node_blocks(page: NodePage, prefix: str, sections: Collection[str]) -> Iterator[Block]:
    if not {FINDINGS, ALL}.isdisjoint(sections):
        yield Findings(page.health.found)
        yield from _fates(page)
    for panel in page.health.panels:
        if {panel.id, ALL}.isdisjoint(sections):
            continue
        lines = page.figures(panel)
        figures = [FigureTable(figures_table(page, panel), lines)] if panel.lines else []
        blocks: list[Block] = [*figures, *panel.tables, *map(Note, panel.notes)]
        yield Section(panel.title, blocks, f"{prefix}{panel.id}", f"{prefix}{panel.id}-")


SCHEMA: Final = 1
"""Version of the document; it grows with every change that an older reader would misread."""


class UnknownEntry(Struct, frozen=True):
    """Why a figure has no value."""

    reason: str
    """`denied`, `unsupported`, `not asked` …"""
    detail: str


class FigureEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure."""

    id: str
    title: str
    field: str = ""
    """Redis' name: a field of INFO, a setting or a command; empty for a figure that only rtui has."""
    value: Any
    """A number, a text, an estimate as a record, or null."""
    unit: str
    per_second: bool
    state: str
    """`plain` where there is nothing to judge, `normal`, `warn`, `bad`, `unknown`."""
    unknown: UnknownEntry | None = None
    said: str = ""
    normal: str = ""
    remedy: str = ""
    source: str = ""
    rule: str = ""
    history: tuple[float | None, ...] = ()
    then: Any = None
    change: dict[str, Any] | None = None
    """The verdict and how far both are apart, as in rtui diff; `is_other` is whether it is another one."""


class TableEntry(Struct, frozen=True, kw_only=True):
    """A list; the names in its rows have their units."""

    id: str
    title: str
    note: str
    rows: list[dict[str, Any]]


class PanelEntry(Struct, frozen=True, kw_only=True):
    """Figures, tables and notes that belong together."""

    id: str
    title: str
    figures: list[FigureEntry]
    tables: list[TableEntry]
    notes: list[str]


class NodeEntry(Struct, frozen=True, kw_only=True):
    """One node."""

    node: str
    about: list[str]
    """Product and version, role, and when, in words."""
    headline: str
    """The worst finding in a word or two; empty without findings."""
    at_epoch_s: float
    """Of when the last sample is."""
    began_epoch_s: float
    samples: int
    report: dict[str, Any] | None
    """The report of the keys that rules go by; null for none."""
    panels: list[PanelEntry]
    findings: list[dict[str, Any]]
    """As in rtui check --format json."""
    not_judged: list[dict[str, Any]]
    checked: list[str]
    compared: dict[str, Any] | None
    """The fates of findings since the earlier samples; null without these."""


class FailureEntry(Struct, frozen=True, kw_only=True):
    """A node that has not answered."""

    node: str
    happened: str


class HealthDocument(Struct, frozen=True, kw_only=True):
    """The whole document."""

    format: Literal["rtui health"] = "rtui health"
    schema: Literal[1] = SCHEMA
    rtui: str = __version__
    nodes: list[NodeEntry]
    failures: list[FailureEntry]
    """Nodes that have not answered the last question; their figures are older."""
    notes: list[str]
    """Nodes that could not be compared."""
    fail_on: list[dict[str, Any]]


def health_json(
    views: Sequence[HealthView],
    comparison: HealthComparison | None = None,
    judgements: Sequence[Judgement] = (),
    failures: Mapping[str, str] = NO_FAILURES,
) -> str:
    """Return the document, in ASCII; ends with a newline. `failures` say why nodes have not answered last."""
    document = health_document(views, comparison, judgements, failures)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def health_document(
    views: Sequence[HealthView],
    comparison: HealthComparison | None = None,
    judgements: Sequence[Judgement] = (),
    failures: Mapping[str, str] = NO_FAILURES,
) -> dict[str, Any]:
    """Return what the JSON file holds."""
    document = HealthDocument(
        nodes=list(map(_node_entry, node_pages(views, comparison))),
        failures=[FailureEntry(node=node, happened=why) for node, why in failures.items()],
        notes=[] if comparison is None else list(comparison.notes),
        fail_on=[asdict(one) for one in judgements],
    )
    found: dict[str, Any] = msgspec.to_builtins(document)
    return found


def _node_entry(page: NodePage) -> NodeEntry:
    view, found = page.view, page.health.found
    return NodeEntry(
        node=view.latest.node,
        about=list(page.facts),
        headline=page.health.headline,
        at_epoch_s=view.latest.at_ms / 1000,
        began_epoch_s=view.samples[0].at_ms / 1000,
        samples=len(view.samples),
        report=None if view.report is None else head_record(view.report.head),
        panels=[_panel_entry(page, panel) for panel in page.health.panels],
        findings=[finding_record(one) for one in found.findings],
        not_judged=unjudged_records(found),
        checked=list(found.judged),
        compared=None if page.compared is None else _compared(page.compared),
    )


def _compared(compared: NodeComparison) -> dict[str, Any]:
    then = compared.then
    return {
        "then_epoch_s": then.latest.at_ms / 1000,
        "then_began_epoch_s": then.samples[0].at_ms / 1000,
        "then_samples": len(then.samples),
        "notes": list(compared.notes),
        **finding_records(compared.findings, None),
    }


def _panel_entry(page: NodePage, panel: Panel) -> PanelEntry:
    figures = [_figure_entry(one, is_compared=page.compared is not None) for one in page.figures(panel)]
    tables = [TableEntry(id=one.id, title=one.title, note=one.note, rows=table_records(one)) for one in panel.tables]
    return PanelEntry(id=panel.id, title=panel.title, figures=figures, tables=tables, notes=list(panel.notes))


def _figure_entry(one: ComparedLine, *, is_compared: bool) -> FigureEntry:
    line, now = one.line, one.now
    unknown = None
    if now is not None and isinstance(now.value, Unknown):
        unknown = UnknownEntry(now.value.reason.value, cell_reason(now.value))
    return FigureEntry(
        id=line.id,
        title=line.title,
        field=line.field,
        value=None if now is None else _value(now.value),
        unit=line.unit.value,
        per_second=line.is_rate,
        state="unknown" if now is None else now.state.value,
        unknown=unknown,
        said=line.said,
        normal=line.normal,
        remedy=line.remedy,
        source=line.source,
        rule=line.rule,
        history=() if now is None else tuple(map(_finite, now.history)),
        then=None if one.then is None else _value(one.then.value),
        change={**change_record(one.change), "is_other": one.is_other} if is_compared else None,
    )


def _value(cell: Cell) -> Any:
    if isinstance(cell, bytes):
        return quoted(cell)
    return _finite(cell) if isinstance(cell, float) else cell_value(cell)


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
