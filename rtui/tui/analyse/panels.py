"""The panels of the Analyse screen: their tabs, keys, commands and help follow from this list."""

from __future__ import annotations

from typing import Any, Final

from rtui.tui.analyse.big_panel import BigKeysPanel
from rtui.tui.analyse.expiry_panel import ExpiryPanel
from rtui.tui.analyse.hot_panel import HotKeysPanel
from rtui.tui.analyse.memory_panel import MemoryPanel
from rtui.tui.analyse.panel import Panel
from rtui.tui.analyse.slots_panel import SlotsPanel
from rtui.tui.analyse.types_panel import TypesPanel

PANELS: Final[tuple[Panel[Any], ...]] = (
    MemoryPanel(), BigKeysPanel(), HotKeysPanel(), ExpiryPanel(), SlotsPanel(), TypesPanel(),
)  # fmt: skip
"""All panels, in the order of their tabs."""

BY_ID: Final = {panel.id: panel for panel in PANELS}
"""Each panel by its id."""
