"""Work between frames and while no key is pressed: garbage is collected, and what the first keys need is imported.

Painting makes thousands of containers that stay for a while: strips, segments, caches. Left to itself the interpreter
looks at them in the middle of it, several times in a large frame, for a third of the time that this takes. So it is
looked at them right after a frame, in a callback of its own, between which and the next one keys are handled.

Screens that were left are among what has stayed: in cycles, a megabyte each. They are found while no key is pressed.

Where no frame is painted for long, as in a thread of an analysis, the interpreter collects by itself, later.

The imports of the first screen are few, so that it is there at once. Keys such as `:` and `a` need more, for which they
would wait up to a quarter of a second. That is imported in a thread, one module with what it needs after the other: a
key that is pressed meanwhile shares the interpreter with it for a tenth of a second at most, and ends the work until no
key was pressed for a while.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

YOUNG: Final = 2_000
"""New containers that are worth a look, which takes 1 to 2 ms; at 100,000 it would take 50 to 70 ms."""

OLDER: Final = 1
"""Looks at new containers before what they have left is looked at again.

With five, such a look took up to 35 ms of a busy processor; what is left by two looks is mostly there to stay.
"""

ENOUGH: Final = 100
"""Looks at older containers before everything is looked at, which may take a tenth of a second."""

IDLE_S: Final = 5.0
"""Seconds without a key after which nobody waits for an answer."""

THRESHOLDS: Final = (15_000, OLDER, 5_000)
"""When the interpreter collects by itself, and how rarely it looks at everything.

A frame in which every cell is new makes up to 4,000 containers, a screen that is opened up to 10,000 until it is
painted. By default it would be after 700, and everything would be looked at after a hundred times: a scan would spend
a third of its time on it.
"""


def begin() -> None:
    """Collect as above from now on.

    What is there already is never looked at, nor are the members of a report, of which each has tens of thousands
    (`gc=False`): they refer to nothing that refers to them.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def collect_young() -> None:
    """Look at new containers, if they are many; every now and then at older ones, too."""
    young, looks, _ = gc.get_count()
    if young >= YOUNG:
        gc.collect(1 if looks >= OLDER else 0)


def collect_all() -> None:
    """Look at everything, if much may have stayed for nothing. To be called when nobody waits."""
    if gc.get_count()[2] >= ENOUGH:
        gc.collect()


AHEAD: Final = (
    "rtui.tui.kit.query_hints",
    "rtui.analysis.query.near_misses",
    "rtui.server.analysis.run",
    "rtui.server.analysis.session",
    "rtui.server.analysis.kept_reports",
    "rtui.tui.analyse.screen",
    "rtui.server.search.run",
    "rtui.tui.find.screen",
    "rtui.tui.browse.tree_figures",
    "rtui.tui.browse.level_lines",
    "rtui.tui.log",
    "rtui.tui.help",
    "rtui.tui.help_pages",
    "rtui.tui.server.screen",
    "rtui.tui.navigation",
    "rtui.server.health.info",
    "rtui.analysis.findings.server",
)
"""Modules that no first screen imports, those first that are needed most."""

REST_S: Final = 1.0
"""Nothing is imported within this time of a key, in seconds."""


async def import_ahead(last_key_s: Callable[[], float], names: Sequence[str] = AHEAD) -> None:
    """Import these modules; `last_key_s` returns when a key was pressed last, on the clock of the event loop."""
    loop = asyncio.get_running_loop()
    for name in names:
        while (waits_s := last_key_s() + REST_S - loop.time()) > 0:  # noqa: ASYNC110 - keys are many, looks few
            await asyncio.sleep(waits_s)
        if name not in sys.modules:
            await asyncio.to_thread(import_module, name)
