"""All rules about a server, their findings in its samples, and the states of the lines of its panels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from msgspec.structs import replace as with_fields

from rtui.analysis.facts import Unknown
from rtui.analysis.findings import server_data, server_load
from rtui.analysis.findings.finding import Found, judge
from rtui.analysis.findings.server_data import CLIFF_LOAD, EVICTS, HOT_EXPIRING
from rtui.analysis.health.durability_panels import persistence_panel, replication_panel
from rtui.analysis.health.fields import FIELDS
from rtui.analysis.health.load_panels import BANNED, clients_panel, load_panel
from rtui.analysis.health.memory_panel import memory_panel
from rtui.analysis.health.panel import About, Line, Lines, Panel, State
from rtui.analysis.health.sample import Source
from rtui.analysis.health.settings import configuration_panel
from rtui.analysis.health.slow_panel import BIG_SLOW, slow_panel
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Unit
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import Severity

PANELS: Final = (
    memory_panel,
    load_panel,
    slow_panel,
    persistence_panel,
    replication_panel,
    clients_panel,
    configuration_panel,
)
"""The functions that make the panels."""


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
"""By panel the sources whose lists it has as tables."""

MOST_NAMED: Final = 3
"""Figures of one source that can't be and are named; the rest is counted."""


def _with_impossible(panel: Panel, view: HealthView) -> Panel:
    """Return a panel with notes on impossible figures that are left out of its tables."""
    notes = []
    for source in _LISTED_ON.get(panel.id, ()):
        said = {name: one for name, one in view.latest.impossible.get(source, {}).items() if name not in FIELDS}
        named = [f"{name} is unknown (the server says {one})" for name, one in [*said.items()][:MOST_NAMED]]
        more = [f"{len(said) - MOST_NAMED:,} more are"] if len(said) > MOST_NAMED else []
        if said:
            notes.append(SafeText(f"{source}: {', '.join([*named, *more])}"))
    return replace(panel, notes=(*panel.notes, *notes)) if notes else panel


FINDERS: Final = {
    finder.rule: finder for finder in (*server_data.FINDERS, *server_load.FINDERS, *server_data.KEY_FINDERS)
}
"""By rule; of broken rules of one severity a title names the first."""

_STATES: Final = {Severity.ERROR: State.BAD, Severity.WARN: State.WATCH, Severity.OFF: State.PLAIN}


_COUNTED: Final = {
    "memory": ((EVICTS, "lasting_keys_evictable", "namespaces that must stay and can be evicted"),),
    "load": (
        (BANNED, "banned_commands", "commands in use that should not be"),
        (CLIFF_LOAD, "cliffs_with_load", "expiry cliffs with more load"),
        (HOT_EXPIRING, "hot_keys_expiring", "hot keys that expire soon"),
    ),
    "slow": ((BIG_SLOW, "slow_big_keys", "big keys with slow commands"),),
}
"""By panel the rules that no figure of the server is about, each with the line that says how much they have found."""

MOST_SAID: Final = 3
"""Findings that such a line names."""


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
        """The worst finding in a word or two; empty without findings."""
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
    return replace(panel, lines=(*panel.lines, *lines))


def headline(found: Found) -> SafeText:
    """Return the worst finding of a server in a word or two; empty without findings."""
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
    return replace(line, state=_STATES[broken[0].severity], said=_joined([broken[0].title, line.said]))


def _joined(texts: Iterable[str]) -> SafeText:
    return SafeText("; ".join(text for text in texts if text))
