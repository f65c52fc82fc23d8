"""Imports what first keys such as `:` and `a` need while none is pressed: they would wait up to a quarter of a second.

The imports of the first screen are few, so that it is there at once. The others are done in a thread, one module with
what it needs after the other: a key that is pressed meanwhile shares the interpreter with it for a tenth of a second at
most, and ends the work until none was pressed for a while.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

AHEAD: Final = (
    "rtui.tui.kit.query_hints",
    "rtui.analysis.query.near_misses",
    "rtui.analysis.aggregate.aggregates",
    "rtui.server.inspection.pipeline",
    "rtui.server.analysis.run",
    "rtui.server.analysis.session",
    "rtui.server.analysis.kept_reports",
    "rtui.tui.analyse.screen",
    "rtui.server.user.known_servers",
    "rtui.tui.connect.places",
    "rtui.server.search.run",
    "rtui.tui.find.screen",
    "rtui.tui.finding",
    "rtui.tui.browse.tree_figures",
    "rtui.tui.browse.schema_source",
    "rtui.tui.browse.level_lines",
    "rtui.tui.log.screen",
    "rtui.tui.help.screen",
    "rtui.tui.help.pages",
    "rtui.tui.server.screen",
    "rtui.server.health.info",
    "rtui.analysis.findings.server",
)
"""Modules that no command for a short answer and no first screen imports, those first that are needed most."""

REST_S: Final = 1.0
"""No key must have been pressed for so long."""


async def import_ahead(last_key_s: Callable[[], float], names: Sequence[str] = AHEAD) -> None:
    """Import these modules; `last_key_s` returns when a key was pressed last, on the clock of the event loop."""
    loop = asyncio.get_running_loop()
    for name in names:
        while (waits_s := last_key_s() + REST_S - loop.time()) > 0:  # noqa: ASYNC110 - keys are many, looks few
            await asyncio.sleep(waits_s)
        if name not in sys.modules:
            await asyncio.to_thread(import_module, name)
