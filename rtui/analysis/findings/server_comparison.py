"""How servers have changed between two times: each figure then and now, and which findings are new, gone, still there.

Nodes are paired by their names; where either side has a single node, that is compared with the other's, however it is
called there. A counter is compared as its rate at either time. What looks over time takes several samples, and what
goes by the keys a report of them: where only one side has that, findings are compared without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec.structs import replace as with_fields

from rtui.analysis.findings.comparison import FindingsComparison, Side, compare_found
from rtui.analysis.findings.server import FINDERS, ServerHealth, server_findings, server_health
from rtui.analysis.health.panel import Line, Panel
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.readings import FigureChange, Reading, reading
from rtui.keyspace.text.display import SafeText

_NEEDS_MORE: Final = frozenset(one.rule for one in FINDERS.values() if one.needs_more)
_ONE_SAMPLE: Final = "one side has a single sample, so rules that look over time are compared on neither"
_NO_REPORT: Final = "rules that go by a report of the keys are not compared: there is none of then"


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One figure then and now; one of the lines is None where only the other time has it."""

    then: Line | None
    now: Line | None

    @property
    def line(self) -> Line:
        """What says how it is called and in which unit it is."""
        known = self.then if self.now is None else self.now
        assert known is not None  # noqa: S101 - one of them there is
        return known

    @property
    def change(self) -> FigureChange:
        """The change of a number; unknown for a text and for what one of the times does not know."""
        return FigureChange(*(_reading(one) for one in (self.then, self.now)))

    @property
    def is_other(self) -> bool:
        """Whether both times know it, and it is not the same."""
        return self.then is not None and self.now is not None and self.then.value != self.now.value


def _reading(line: Line | None) -> Reading | None:
    value = None if line is None else line.value
    return reading(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class NodeComparison:
    """One node then and now."""

    then: HealthView
    now: HealthView
    health: ServerHealth
    """How it is now."""
    figures: tuple[tuple[Panel, tuple[ComparedLine, ...]], ...]
    """By panel, as it is now."""
    findings: FindingsComparison
    notes: tuple[SafeText, ...]
    """What is not compared and why; without full stops."""

    @property
    def node(self) -> SafeText:
        """What it is called now."""
        return SafeText(self.now.latest.node)


@dataclass(frozen=True, slots=True)
class HealthComparison:
    """All nodes then and now."""

    nodes: tuple[NodeComparison, ...]
    notes: tuple[SafeText, ...] = ()
    """Nodes that only one of the times has; without full stops."""

    def of(self, view: HealthView) -> NodeComparison | None:
        """Return what has become of a node; None for one that was not there then."""
        return next((one for one in self.nodes if one.now is view), None)


def compare_health(then: Sequence[HealthView], now: Sequence[HealthView]) -> HealthComparison:
    """Compare the samples of nodes; the views of now are those that are judged in full."""
    if len(then) == len(now) == 1:
        return HealthComparison((_compared(_renamed(then[0], now[0].latest.node), now[0]),))
    earlier = {view.latest.node: view for view in then}
    later = {view.latest.node for view in now}
    pairs = tuple(_compared(earlier[name], view) for view in now if (name := view.latest.node) in earlier)
    notes = [f"{name}: there were no samples of it then" for view in now if (name := view.latest.node) not in earlier]
    notes += [f"{name}: there are no samples of it now" for name in earlier if name not in later]
    return HealthComparison(pairs, tuple(map(SafeText, notes)))


def _renamed(view: HealthView, node: str) -> HealthView:
    """Return the samples of a node under another name, by which its findings are told apart."""
    return replace(view, samples=tuple(with_fields(one, node=node) for one in view.samples))


def _compared(then: HealthView, now: HealthView) -> NodeComparison:
    health, earlier = server_health(now), server_health(then)
    notes = []
    both = [then, now]
    if bool(then.spans) != bool(now.spans):
        both = [one.last_alone() for one in both]
        notes.append(SafeText(_ONE_SAMPLE))
    if now.report is not None and then.report is None:
        both = [replace(one, report=None) for one in both]
        notes.append(SafeText(_NO_REPORT))
    found = [server_findings(one) for one in both]
    on_both = set(found[0].checked) & set(found[1].checked)
    # Of any other rule the side that has not looked at it has nothing that it is about, such as a replica.
    shared = on_both.union(*(one.checked for one in found)) - (_NEEDS_MORE - on_both)
    was, is_now = (
        Side(when, one, "times", frozenset(each.rule for each in one.unjudged))
        for when, one in zip(("then", "now"), found, strict=True)
    )
    findings = compare_found(was, is_now, shared, now.levels)
    return NodeComparison(then, now, health, _figures(earlier.panels, health.panels), findings, tuple(notes))


def _figures(then: Sequence[Panel], now: Sequence[Panel]) -> tuple[tuple[Panel, tuple[ComparedLine, ...]], ...]:
    """Pair the lines of panels by their ids, in the order of now; what only then had stands behind the others."""
    earlier = {panel.id: {line.id: line for line in panel.lines} for panel in then}
    found = []
    for panel in now:
        before = earlier.get(panel.id, {})
        here = {line.id for line in panel.lines}
        lines = [ComparedLine(before.get(line.id), line) for line in panel.lines]
        lines += [ComparedLine(line, None) for name, line in before.items() if name not in here]
        found.append((panel, tuple(lines)))
    return tuple(found)
