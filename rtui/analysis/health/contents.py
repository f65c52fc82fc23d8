"""All panels of a server, in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rtui.analysis.health.clients_panel import clients_panel
from rtui.analysis.health.configuration_panel import configuration_panel
from rtui.analysis.health.fields import FIELDS
from rtui.analysis.health.load_panel import load_panel
from rtui.analysis.health.memory_panel import memory_panel
from rtui.analysis.health.panel import Panel
from rtui.analysis.health.persistence_panel import persistence_panel
from rtui.analysis.health.replication_panel import replication_panel
from rtui.analysis.health.sample import Source
from rtui.analysis.health.slow_panel import slow_panel
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText

PANELS: Final = (
    memory_panel,
    load_panel,
    slow_panel,
    persistence_panel,
    replication_panel,
    clients_panel,
    configuration_panel,
)
"""What makes each panel."""


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
    """Return a panel with notes on what is left out of its tables, since what the server says of it can't be."""
    notes = []
    for source in _LISTED_ON.get(panel.id, ()):
        said = {name: one for name, one in view.latest.impossible.get(source, {}).items() if name not in FIELDS}
        named = [f"{name} is unknown (the server says {one})" for name, one in [*said.items()][:MOST_NAMED]]
        more = [f"{len(said) - MOST_NAMED:,} more are"] if len(said) > MOST_NAMED else []
        if said:
            notes.append(SafeText(f"{source}: {', '.join([*named, *more])}"))
    return replace(panel, notes=(*panel.notes, *notes)) if notes else panel
