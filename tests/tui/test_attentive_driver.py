from __future__ import annotations

import pytest
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.message import Message

from rtui.server.browse_options import BrowseOptions
from rtui.tui.app import RtuiApp
from tests.tui.fixed_session import FixedSession

MOVED = events.MouseMove(None, 1, 1, 1, 0, 0, shift=False, meta=False, ctrl=False)


@pytest.mark.parametrize(
    ("message", "ways"),
    [(events.Key("down", None), 1), (events.Resize(Size(80, 24), Size(80, 24)), 0), (MOVED, 0)],
)
async def test_the_scan_gives_way_to_a_key_before_the_loop_has_it(message: Message, ways: int) -> None:
    session = FixedSession()
    sent: list[tuple[Message, int]] = []

    class Terminal(HeadlessDriver):
        def send_message(self, message: Message) -> None:
            sent.append((message, session.input_yields))

    app = RtuiApp(BrowseOptions(), session)
    app.fit(Terminal)(app).send_message(message)
    assert sent == [(message, ways)]


def test_the_application_has_such_a_driver() -> None:
    assert RtuiApp(BrowseOptions(), FixedSession()).driver_class.__name__ == "AttentiveDriver"
