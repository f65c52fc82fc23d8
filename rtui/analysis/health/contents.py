"""All panels of a server, in their order."""

from __future__ import annotations

from typing import Final

from rtui.analysis.health.clients_panel import clients_panel
from rtui.analysis.health.configuration_panel import configuration_panel
from rtui.analysis.health.load_panel import load_panel
from rtui.analysis.health.memory_panel import memory_panel
from rtui.analysis.health.panel import Panel
from rtui.analysis.health.persistence_panel import persistence_panel
from rtui.analysis.health.replication_panel import replication_panel
from rtui.analysis.health.slow_panel import slow_panel
from rtui.analysis.health.view import HealthView

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
    return tuple(make(view) for make in PANELS)
