"""The clients of a server as pictures: who sends KEYS, the slow log, clients with hostile names, and what is denied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.pilot import Pilot

from rtui.server.health.callers import Callers, Calls
from rtui.tui.browse.screen import BrowseScreen
from tests.snapshots.test_screens import Compare, app, settle
from tests.tui.browsing import until
from tests.tui.server.test_clients import DENIED, WHO, session, shown

NOBODY = Callers(WHO.at_s, calls=Calls(0, 0))


@pytest.mark.parametrize(
    ("size", "who", "keys"),
    [
        ((80, 24), WHO, ()),
        ((120, 36), WHO, ("tab",)),
        ((200, 50), WHO, ("tab", "tab")),
        ((80, 24), replace(WHO, slow=DENIED, clients=DENIED, calls=DENIED), ()),
        ((40, 14), NOBODY, ()),
        ((80, 24), WHO, ("enter",)),
    ],
    ids=["keys", "slow", "clients", "denied", "nobody", "row"],
)
def test_clients(snap_compare: Compare, size: tuple[int, int], who: Callers, keys: tuple[str, ...]) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, BrowseScreen))
        await settle(pilot)
        await pilot.app.run_action("app.clients")
        await shown(pilot)
        await pilot.press(*keys)
        await settle(pilot)

    assert snap_compare(app(session(who)), terminal_size=size, run_before=look)
