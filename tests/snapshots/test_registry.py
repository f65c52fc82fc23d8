"""What a registry says of a key, as pictures: of one that is not as expected, deprecated, or not registered."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from tests.snapshots.test_screens import Compare, doing, settle
from tests.tui.browse.test_registry_lines import KEY, REGISTRY
from tests.tui.browsing import until
from tests.tui.fixed_session import FixedSession


@pytest.mark.parametrize(
    ("name", "key", "size"),
    [("broken", KEY, (120, 36)), ("broken", KEY, (80, 24)), ("unregistered", b"jobs", (120, 36))],
)
def test_what_a_registry_says(snap_compare: Compare, name: str, key: bytes, size: tuple[int, int]) -> None:
    app = RtuiApp(BrowseOptions(target=Target(host="10.0.0.5"), registry=REGISTRY), FixedSession())

    async def look(pilot: Pilot[int]) -> None:
        await doing()(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, BrowseScreen)
        screen.tree_pane.reveal(key)
        await until(pilot, lambda: screen.detail_pane.detail.preview is not None)
        await settle(pilot)
        if size[0] < 100:
            await pilot.press("enter")
            await settle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=look)
