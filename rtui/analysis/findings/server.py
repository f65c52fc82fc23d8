"""All rules about a server, their findings in its samples, the states of its lines, and how it has changed.

Nodes are paired by their names; where either side has a single node, that is compared with the other's, however it is
called there. A counter is compared as its rate at either time. What looks over time takes several samples, and what
goes by the keys a report of them: where only one side has that, findings are compared without it.

Thresholds on the health of servers as they are written as `used_memory>4GiB`, `used_memory>+20%`, `new-findings>0`.

    [NODE] FIGURE COMPARISON NUMBER[UNIT]

FIGURE is the id of a figure, as JSON has it, or one of the numbers of findings that `rtui diff` knows. A number with a
sign is a change since the earlier samples, one without a value of now. Without NODE it is reached where any node
reaches it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from msgspec.structs import replace as with_fields

from rtui.analysis.facts import Unknown
from rtui.analysis.findings import server_counts, server_data, server_load, server_versions
from rtui.analysis.findings.contents import FindingsComparison, Side, compare_found
from rtui.analysis.findings.finding import Found, judge
from rtui.analysis.findings.server_counts import COUNTER_RULES, FAILED, FAST, MONITOR, OPEN
from rtui.analysis.findings.server_data import CLIFF_LOAD, EVICTS, HOT_EXPIRING
from rtui.analysis.health.durability_panels import persistence_panel, replication_panel
from rtui.analysis.health.fields import FIELDS
from rtui.analysis.health.load_panels import BANNED, clients_panel, load_panel
from rtui.analysis.health.memory_panel import memory_panel
from rtui.analysis.health.panel import About, Line, Lines, Panel, State, value_text
from rtui.analysis.health.sample import Source
from rtui.analysis.health.settings import configuration_panel
from rtui.analysis.health.slow_panel import BIG_SLOW, slow_panel
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.readings import Bound, FigureChange, Interval, Reading, reading
from rtui.analysis.report.tables.table import Unit, cell_reason
from rtui.analysis.report.thresholds import (
    FINDINGS,
    Expression,
    FailOnError,
    Judgement,
    Outcome,
    ThresholdMeasure,
    bounds_text,
    outcome_of,
    parse_expression,
)
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.matching import nearest_word
from rtui.registry.rules import Severity

PANELS: Final = (
    memory_panel, load_panel, slow_panel, persistence_panel, replication_panel, clients_panel, configuration_panel,
)  # fmt: skip


def panels(view: HealthView) -> tuple[Panel, ...]:
    """Return all panels of a server, without the states that rules give their lines."""
    return tuple(_with_impossible(make(view), view) for make in PANELS)


_LISTED_ON: Final = {
    "memory": (Source.INFO_KEYSPACE, Source.KEY_SIZES),
    "load": (Source.COMMAND_STATS, Source.LATENCY_STATS, Source.ERROR_STATS),
    "slow": (Source.SLOW_LOG, Source.LARGE_REQUESTS, Source.LARGE_REPLIES, Source.LATENCY_EVENTS),
    "replication": (Source.INFO_REPLICATION, Source.CLUSTER_NODES, Source.SENTINELS),
    "clients": (Source.CLIENTS,),
}

MOST_NAMED: Final = 3
"""Figures of one source that can't be and are named; the rest is counted."""


def _with_impossible(panel: Panel, view: HealthView) -> Panel:
    notes = []
    for source in _LISTED_ON.get(panel.id, ()):
        said = {name: one for name, one in view.latest.impossible.get(source, {}).items() if name not in FIELDS}
        named = [f"{name} is unknown (the server says {one})" for name, one in [*said.items()][:MOST_NAMED]]
        more = [f"{len(said) - MOST_NAMED:,} more are"] if len(said) > MOST_NAMED else []
        if said:
            notes.append(SafeText(f"{source}: {', '.join([*named, *more])}"))
    return replace(panel, notes=(*panel.notes, *notes)) if notes else panel


FINDERS: Final = {
    finder.rule: finder
    for finder in (
        *server_data.FINDERS, *server_counts.FINDERS, *server_versions.FINDERS, *server_load.FINDERS,
        *server_data.KEY_FINDERS,
    )
}  # fmt: skip
"""By rule; of broken rules of one severity a title names the first."""

_STATES: Final = {Severity.ERROR: State.BAD, Severity.WARN: State.WARN, Severity.OFF: State.PLAIN}


_COUNTED: Final = {
    "memory": (
        (EVICTS, "lasting_keys_evictable", "namespaces at risk of eviction"),
        (FAST, "keys_evicted_soon", "keys evicted soon"),
    ),
    "load": (
        (BANNED, "banned_commands", "banned commands in use"),
        (FAILED, "failing_commands", "commands that often fail"),
        (CLIFF_LOAD, "cliffs_with_load", "expiry cliffs with load"),
        (HOT_EXPIRING, "hot_keys_expiring", "hot keys expiring soon"),
    ),
    "slow": ((BIG_SLOW, "slow_big_keys", "slow big keys"),),
    "clients": ((MONITOR, "monitors", "clients in MONITOR"), (OPEN, "default_user_open", "open without a password")),
}
"""By panel the rules that no figure of the server is about, each with the line that says how much they have found."""

MOST_SAID: Final = 3


def server_findings(view: HealthView) -> Found:
    """Return the findings of a server's samples by the rules that are on, the worst first.

    A rule without a subject, such as a replica, is skipped; a rule whose figures the server does not report is named as
    not judged.
    """
    found = judge(FINDERS.values(), view, view.levels, in_doubt=False)
    ranks = list(FINDERS)
    order = sorted(found.findings, key=lambda one: (one.severity is not Severity.ERROR, ranks.index(one.rule)))
    return with_fields(found, findings=tuple(order))


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """How one server is."""

    panels: tuple[Panel, ...]
    """With the states of their lines."""
    found: Found

    @property
    def headline(self) -> SafeText:
        return headline(self.found)


def server_health(view: HealthView) -> ServerHealth:
    found = server_findings(view)
    return ServerHealth(tuple(judged(_with_counts(panel, view, found), found) for panel in panels(view)), found)


def _with_counts(panel: Panel, view: HealthView, found: Found) -> Panel:
    """Return a panel with a line for each rule that counts, where it was looked at."""
    lines = []
    for rule, line_id, title in _COUNTED.get(panel.id, ()):
        if rule in found.checked:
            broken = [one for one in found.findings if one.rule == rule]
            is_judged = rule not in {one.rule for one in found.unjudged}
            value = len(broken) if is_judged else view.unknown(FINDERS[rule].source or Source.INFO_SERVER)
            about = About(_joined(one.title for one in broken[1:MOST_SAID]), "none", rule)
            lines.append(Lines(view, Source.INFO_SERVER).given(line_id, title, Unit.COUNT, value, about))
    for one in COUNTER_RULES:
        if one.panel == panel.id and one.rule in found.checked:
            total = one.total(view)
            about = About(view.since.words, "none, or few", one.rule)
            cell = view.unknown(one.source) if total is None else total
            name = one.rule.replace("-", "_")
            lines.append(Lines(view, one.source).given(name, one.what[1], Unit.COUNT, cell, about))
    return replace(panel, lines=(*panel.lines, *lines))


def headline(found: Found) -> SafeText:
    return SafeText(FINDERS[found.findings[0].rule].word) if found.findings else SafeText("")


def judged(panel: Panel, found: Found) -> Panel:
    return replace(panel, lines=tuple(_judged(line, found) for line in panel.lines))


def _judged(line: Line, found: Found) -> Line:
    if isinstance(line.value, Unknown):
        return replace(line, state=State.UNKNOWN)
    if not line.rule or line.rule not in found.checked:
        return line
    if line.rule in {one.rule for one in found.unjudged}:
        return replace(line, state=State.UNKNOWN)
    broken = [one for one in found.findings if one.rule == line.rule]
    if not broken or (line.normal and line.value == line.normal):  # such as a last RDB that is ok, where the AOF failed
        return replace(line, state=State.NORMAL)
    title = broken[0].title
    said = _joined([title] if line.said in title else [title, line.said])
    return replace(line, state=_STATES[broken[0].severity], said=said)


def _joined(texts: Iterable[str]) -> SafeText:
    return SafeText("; ".join(text for text in texts if text))


_NEEDS_MORE: Final = frozenset(one.rule for one in FINDERS.values() if one.needs_more)
_ONE_SAMPLE: Final = "one side has a single sample, so rules over time are not compared"
_NO_REPORT: Final = "rules that need a report of the keys are not compared: there is no earlier report"


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One figure then and now; one of the lines is None where only the other time has it."""

    then: Line | None
    now: Line | None

    @property
    def line(self) -> Line:
        known = self.then if self.now is None else self.now
        assert known is not None  # noqa: S101 - one of them there is
        return known

    @property
    def change(self) -> FigureChange:
        return FigureChange(*(_reading(one) for one in (self.then, self.now)))

    @property
    def is_other(self) -> bool:
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
    figures: tuple[tuple[Panel, tuple[ComparedLine, ...]], ...]
    """By panel, as it is now."""
    findings: FindingsComparison
    notes: tuple[SafeText, ...]

    @property
    def node(self) -> SafeText:
        return SafeText(self.now.latest.node)


@dataclass(frozen=True, slots=True)
class HealthComparison:
    """All nodes then and now."""

    nodes: tuple[NodeComparison, ...]
    notes: tuple[SafeText, ...] = ()
    """Nodes that only one of the times has; without full stops."""

    def of(self, view: HealthView) -> NodeComparison | None:
        return next((one for one in self.nodes if one.now is view), None)


def compare_health(then: Sequence[HealthView], now: Sequence[HealthView]) -> HealthComparison:
    if len(then) == len(now) == 1:
        # Findings are told apart by the name of the node, which may be another one now.
        samples = tuple(with_fields(one, node=now[0].latest.node) for one in then[0].samples)
        return HealthComparison((_compared(replace(then[0], samples=samples), now[0]),))
    earlier = {view.latest.node: view for view in then}
    later = {view.latest.node for view in now}
    pairs = tuple(_compared(earlier[name], view) for view in now if (name := view.latest.node) in earlier)
    notes = [f"{name}: no earlier samples" for view in now if (name := view.latest.node) not in earlier]
    notes += [f"{name}: no current samples" for name in earlier if name not in later]
    return HealthComparison(pairs, tuple(map(SafeText, notes)))


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
    """Pair the lines of panels by their ids, in the order of now; lines of then alone come last."""
    earlier = {panel.id: {line.id: line for line in panel.lines} for panel in then}
    found = []
    for panel in now:
        before = earlier.get(panel.id, {})
        here = {line.id for line in panel.lines}
        lines = [ComparedLine(before.get(line.id), line) for line in panel.lines]
        lines += [ComparedLine(line, None) for name, line in before.items() if name not in here]
        found.append((panel, tuple(lines)))
    return tuple(found)


_EXAMPLES: Final = "'used_memory>4GiB', 'used_memory>+20%' or 'new-findings>0'"
_THOUSANDS: Final = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZES: Final = {"B": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_TIMES: Final = {
    "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
    "d": Fraction(86_400),
}  # fmt: skip
_PERCENT: Final = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class HealthThreshold:
    """One threshold."""

    found: Expression
    written: str

    @property
    def is_of_findings(self) -> bool:
        return self.found.measure in FINDINGS

    @property
    def needs_earlier(self) -> bool:
        return bool(self.found.sign) or self.is_of_findings


def parse_threshold(text: str) -> HealthThreshold:
    """Parse a threshold; raises FailOnError with the fault.

    Units are `%` (of the earlier value; without a sign of a share), `pt` (percentage points), `k M G T`, for bytes also
    `B KiB MiB GiB TiB`, and for durations `us ms s m h d`. Whether a figure has the unit is checked when it is judged.
    """
    found = parse_expression(text, _EXAMPLES)
    if found.measure in FINDINGS:
        if found.sign or found.unit or found.place is not None:
            raise FailOnError(f"{found.measure} is a count over all nodes, without sign or unit: '{found.measure}>0'")
    elif "-" in found.measure:
        raise FailOnError(
            f"{display_text(found.measure, limit=40)} is neither a metric nor one of {', '.join(sorted(FINDINGS))}"
        )
    return HealthThreshold(found, text.strip())


def judge_health(
    thresholds: Sequence[HealthThreshold], views: Sequence[HealthView], comparison: HealthComparison | None = None
) -> list[Judgement]:
    lines = {view.latest.node: _lines_of(view) for view in views} if thresholds else {}
    return [
        _of_findings(one, comparison) if one.is_of_findings else _of_figure(one, lines, comparison)
        for one in thresholds
    ]


def _lines_of(view: HealthView) -> dict[str, Line]:
    return {line.id: line for panel in server_health(view).panels for line in panel.lines}


def _of_findings(threshold: HealthThreshold, comparison: HealthComparison | None) -> Judgement:
    expression, measure = display_text(threshold.written), ThresholdMeasure(threshold.found.measure)
    if comparison is None:
        return Judgement(expression, Outcome.UNKNOWN, "it needs earlier samples (--since)")
    counted = [one.findings.counted()[measure] for one in comparison.nodes]
    low, high = sum(one.low for one in counted), sum(one.high for one in counted)
    found = Interval(low, high)
    outcome = outcome_of(threshold.found.relation, threshold.found.number, found)
    said = f"it is {bounds_text(found)} {measure.partition('-')[0]}"
    return Judgement(
        expression, outcome, f"{said}; there may be more, see the notes" if outcome is Outcome.UNKNOWN else said
    )


def _of_figure(
    threshold: HealthThreshold, lines: Mapping[str, Mapping[str, Line]], comparison: HealthComparison | None
) -> Judgement:
    place, measure = threshold.found.place, threshold.found.measure
    expression = display_text(threshold.written)
    nodes = [name for name in lines if place in (None, name)]
    if not nodes:
        return Judgement(expression, Outcome.UNKNOWN, f"no node is called {display_text(place or '', limit=80)}")
    known = {name for node in nodes for name in lines[node]}
    if measure not in known:
        name = display_text(measure, limit=40)
        near = nearest_word(measure, known)
        meant = "" if near is None else f", but there is {near}"
        return Judgement(expression, Outcome.UNKNOWN, f"no metric has the id {name}{meant}")
    judged = list(_at_nodes(threshold, {node: lines[node] for node in nodes}, comparison))
    counts = Counter(one.outcome for one in judged)
    worst = next(one for one in (Outcome.REACHED, Outcome.UNKNOWN, Outcome.NOT_REACHED) if counts[one])
    return next(one for one in judged if one.outcome is worst)


def _at_nodes(
    threshold: HealthThreshold, lines: Mapping[str, Mapping[str, Line]], comparison: HealthComparison | None
) -> Iterator[Judgement]:
    found, expression = threshold.found, display_text(threshold.written)
    then: dict[str, dict[str, Line]] = {}
    if comparison is not None:
        then = {one.node: _lines_of(one.then) for one in comparison.nodes}
    for node, known in lines.items():
        at = f"{node}: " if len(lines) > 1 else ""
        line = known.get(found.measure)
        if line is None:
            continue
        try:
            number = _scaled(found, line.unit)
        except FailOnError as error:
            yield Judgement(expression, Outcome.UNKNOWN, f"{at}{error}")
            continue
        number = -number if found.sign == "-" else number
        value, doubt = _measured(found, line, then.get(node, {}).get(found.measure))
        if value is None:
            yield Judgement(expression, Outcome.UNKNOWN, f"{at}{doubt}")
        else:
            yield Judgement(
                expression, outcome_of(found.relation, number, value), f"{at}it is {_words(found, line, value)}"
            )


def _scaled(found: Expression, unit: Unit) -> Fraction:
    """Return the number of a threshold in the unit of a figure; raises FailOnError for a unit that it does not have."""
    is_share = unit is Unit.SHARE
    if found.unit == "pt":
        if not is_share or not found.sign:
            raise FailOnError("pt is for the change of a share")
        return found.number * _PERCENT
    if found.unit == "%":
        if not is_share and not found.sign:
            raise FailOnError(f"a change in percent needs a sign, as in '{found.measure}>+20%'")
        return found.number * _PERCENT
    scale: Fraction | int | None
    if unit is Unit.DURATION:
        scale = _TIMES.get(found.unit or "s")
    elif unit is Unit.BYTES:
        scale = _SIZES.get(found.unit[:1] or "B") if not found.unit.endswith("s") else None
    else:
        scale = _THOUSANDS.get(found.unit) if found.unit else 1
    if scale is None:
        raise FailOnError(f"{found.measure} has no unit {found.unit}")
    return found.number * scale


def _measured(found: Expression, line: Line, then: Line | None) -> tuple[Interval | None, str]:
    if isinstance(line.value, Unknown):
        return None, f"it is {cell_reason(line.value)}"
    if not isinstance(line.value, int | float):
        return None, f"not a number: {value_text(line)}"
    if not found.sign:
        return Interval(Fraction(line.value), Fraction(line.value)), ""
    if then is None or not isinstance(then.value, int | float):
        return None, "the earlier samples do not have it"
    if then.value < 0:
        return None, "it was negative"
    change = FigureChange(reading(then.value), reading(line.value))
    return (change.growth() if found.unit == "%" else change.difference()), ""


def _words(found: Expression, line: Line, value: Interval) -> str:
    """Return a number in words: `25%`, `1.20 GiB`, `412/s`."""
    if found.unit in ("%", "pt"):
        return bounds_text(value.in_percent(), "%" if found.unit == "%" else " pt")
    low: Bound = value.low
    sign = "-" if found.sign and low < 0 else "+" if found.sign else ""
    return f"{sign}{value_text(line, abs(float(low)))}"
