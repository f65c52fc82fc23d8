"""The panels of the Analyse screen, declared once: tabs, keys, help and palette all follow from here."""

from __future__ import annotations

from typing import Final

from rtui.tui.analyse import big_panel as big
from rtui.tui.analyse import expiry_panel as expiry
from rtui.tui.analyse import hot_panel as hot
from rtui.tui.analyse import memory_panel as memory
from rtui.tui.analyse import slots_panel as slots
from rtui.tui.analyse import types_panel as types
from rtui.tui.analyse.panel import BY_LENGTH, HORIZON, HOT_SESSION, NODES, PRESET, Panel
from rtui.tui.kit.styled_text import own

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
    Panel(
        id="hot",
        title=own("Hot keys"),
        key="3",
        help="Show the keys that are used most, from the best source that the server offers.",
        listings=hot.listings,
        chart=hot.chart,
        chart_height=hot.chart_height,
        grows_old=True,
        switches=frozenset({HOT_SESSION}),
    ),
    Panel(
        id="expiry",
        title=own("Expiry"),
        key="4",
        help="Show what expires when, what expires all at once, and what never does.",
        listings=expiry.listings,
        chart=expiry.chart,
        chart_height=expiry.chart_height,
        switches=frozenset({HORIZON}),
    ),
    Panel(
        id="slots",
        title=own("Slots"),
        key="5",
        help="Show how keys and bytes lie over the 16,384 hash slots.",
        listings=slots.listings,
        chart=slots.chart,
        chart_height=slots.chart_height,
        hit=slots.hit,
        move=slots.move,
        switches=frozenset({NODES}),
    ),
    Panel(
        id="types",
        title=own("Types"),
        key="6",
        help="Show how much there is of each type, how long and in which encodings.",
        listings=types.listings,
        chart=types.chart,
        chart_height=types.chart_height,
    ),
)
"""All panels, in the order of their tabs."""

BY_ID: Final = {panel.id: panel for panel in PANELS}
"""Each panel by its id."""
