"""The panels of the Analyse screen, declared once: tabs, keys, help and palette all follow from here."""

from __future__ import annotations

from typing import Final

from rtui.tui.ink import own
from rtui.tui.lines.analyse import big, memory
from rtui.tui.panel import BY_LENGTH, PRESET, Panel

PANELS: Final = (
    Panel(
        id="memory",
        title=own("Memory"),
        key="1",
        help="Show which namespaces hold the memory, as an icicle and as a table.",
        listings=memory.listings,
        chart=memory.chart,
        chart_height=memory.chart_height,
        step_in=memory.step_in,
        step_out=memory.step_out,
        hit=memory.hit,
    ),
    Panel(
        id="big",
        title=own("Big keys"),
        key="2",
        help="Show the largest keys, over all and of each type.",
        listings=big.listings,
        switches=frozenset({BY_LENGTH, PRESET}),
    ),
)
"""All panels, in the order of their tabs."""

BY_ID: Final = {panel.id: panel for panel in PANELS}
"""Each panel by its id."""
