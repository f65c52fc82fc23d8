"""How servers are as one JSON document: nodes, their figures by panel with all that explains them, tables and findings.

The structs are its schema. A figure has a value, or `unknown` says why there is none; units are `bytes`, `s`,
`epoch_s`, `share` (0 … 1), `ratio`, `count`, `keys` and `text`, a second where `per_second` is true. With earlier
samples a figure has `then` and `change`, a node `compared`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from rtui import __version__
from rtui.analysis.facts import Unknown
from rtui.analysis.findings.server_comparison import ComparedLine, HealthComparison, NodeComparison
from rtui.analysis.formats.comparison import change_record, finding_records, head_record
from rtui.analysis.formats.csv_and_json import cell_value, table_records
from rtui.analysis.formats.findings import finding_record, unjudged_records
from rtui.analysis.formats.health import NO_FAILURES, NodePage, node_pages
from rtui.analysis.health.panel import Panel
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, cell_reason
from rtui.analysis.report.thresholds import Judgement
from rtui.keyspace.text.display import quoted

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
    value: Any
    """A number, a text, an estimate as a record, or null."""
    unit: str
    per_second: bool
    state: str
    """`plain` where there is nothing to judge, `normal`, `watch`, `bad`, `unknown`."""
    unknown: UnknownEntry | None = None
    said: str = ""
    """What the value means for this server and these keys."""
    normal: str = ""
    remedy: str = ""
    source: str = ""
    """Where the threshold comes from."""
    rule: str = ""
    history: tuple[float | None, ...] = ()
    """The same figure in the samples, oldest first."""
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
    """What belongs together."""

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
    """What is wrong in a word or two, the worst; empty where nothing is."""
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
    """What became of findings since the earlier samples; null where there are none."""


class FailureEntry(Struct, frozen=True, kw_only=True):
    """A node that has not answered."""

    node: str
    happened: str


class HealthDocument(Struct, frozen=True, kw_only=True):
    """What is written."""

    format: Literal["rtui health"] = "rtui health"
    schema: Literal[1] = SCHEMA
    rtui: str = __version__
    nodes: list[NodeEntry]
    failures: list[FailureEntry]
    """Nodes that have not answered when they were asked last; what is known of them is of before."""
    notes: list[str]
    """Nodes that could not be compared."""
    fail_on: list[dict[str, Any]]
    """Each threshold and whether it is reached."""


def health_json(
    views: Sequence[HealthView],
    comparison: HealthComparison | None = None,
    judgements: Sequence[Judgement] = (),
    failures: Mapping[str, str] = NO_FAILURES,
) -> str:
    """Return the document, in ASCII; ends with a newline. `failures` say why nodes have not answered last."""
    document = HealthDocument(
        nodes=list(map(_node, node_pages(views, comparison))),
        failures=[FailureEntry(node=node, happened=why) for node, why in failures.items()],
        notes=[] if comparison is None else list(comparison.notes),
        fail_on=[asdict(one) for one in judgements],
    )
    return json.dumps(msgspec.to_builtins(document), indent=1, allow_nan=False) + "\n"


def _node(page: NodePage) -> NodeEntry:
    view, found = page.view, page.health.found
    return NodeEntry(
        node=view.latest.node,
        about=list(page.facts),
        headline=page.health.headline,
        at_epoch_s=view.latest.at_ms / 1000,
        began_epoch_s=view.samples[0].at_ms / 1000,
        samples=len(view.samples),
        report=None if view.report is None else head_record(view.report.head),
        panels=[_panel(page, panel) for panel in page.health.panels],
        findings=[finding_record(one) for one in found.findings],
        not_judged=unjudged_records(found),
        checked=list(found.judged),
        compared=None if page.compared is None else _compared(page.compared),
    )


def _compared(compared: NodeComparison) -> dict[str, Any]:
    """Return what a node is compared with, and what became of findings."""
    then = compared.then
    return {
        "then_epoch_s": then.latest.at_ms / 1000,
        "then_began_epoch_s": then.samples[0].at_ms / 1000,
        "then_samples": len(then.samples),
        "notes": list(compared.notes),
        **finding_records(compared.findings, None),
    }


def _panel(page: NodePage, panel: Panel) -> PanelEntry:
    figures = [_figure(one, is_compared=page.compared is not None) for one in page.figures(panel)]
    tables = [TableEntry(id=one.id, title=one.title, note=one.note, rows=table_records(one)) for one in panel.tables]
    return PanelEntry(id=panel.id, title=panel.title, figures=figures, tables=tables, notes=list(panel.notes))


def _figure(one: ComparedLine, *, is_compared: bool) -> FigureEntry:
    line, now = one.line, one.now
    unknown = None
    if now is not None and isinstance(now.value, Unknown):
        unknown = UnknownEntry(now.value.reason.value, cell_reason(now.value))
    return FigureEntry(
        id=line.id,
        title=line.title,
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
    """Return a value as JSON has it; bytes as redis-cli quotes them."""
    if isinstance(cell, bytes):
        return quoted(cell)
    return _finite(cell) if isinstance(cell, float) else cell_value(cell)


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
