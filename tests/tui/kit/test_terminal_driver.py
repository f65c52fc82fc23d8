from __future__ import annotations

import pytest
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.message import Message

from rtui.server.options import BrowseOptions
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.terminal import terminal_driver
from tests.tui.browsing import is_settled, until
from tests.tui.fixed_session import FixedSession

MOVED = events.MouseMove(None, 1, 1, 1, 0, 0, shift=False, meta=False, ctrl=False)

FRAME = "\x1b[1;1H\x1b[31mabc\x1b[0m\x1b[1;1H"


class Terminal(HeadlessDriver):
    """Keeps what it is told to write and to send."""

    def __init__(self, app: RtuiApp) -> None:
        super().__init__(app)
        self.written: list[str] = []
        self.sent: list[Message] = []

    def write(self, data: str) -> None:
        self.written.append(data)

    def send_message(self, message: Message) -> None:
        self.sent.append(message)


async def test_what_the_terminal_shows_is_not_written_again_until_it_changes_its_size() -> None:
    driver = terminal_driver(Terminal, lambda _message: None)(RtuiApp(BrowseOptions(), FixedSession()))
    assert isinstance(driver, Terminal)
    driver.write(FRAME)
    driver.write(FRAME)
    driver.send_message(events.Resize(Size(80, 24), Size(80, 24)))
    driver.write(FRAME)
    assert ["abc" in data for data in driver.written] == [True, False, True]
    assert len(driver.sent) == 1


def test_the_application_writes_through_it() -> None:
    assert "TerminalDriver" in [one.__name__ for one in RtuiApp(BrowseOptions(), FixedSession()).driver_class.__mro__]


async def test_everything_is_painted_again_when_the_terminal_comes_back_to_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = RtuiApp(BrowseOptions(), FixedSession())
    written: list[str] = []
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen) and is_settled(app.screen))
        assert app._driver is not None
        monkeypatch.setattr(HeadlessDriver, "is_headless", False)
        monkeypatch.setattr(app._driver, "write", written.append)
        app.post_message(events.Resize(Size(80, 24), Size(80, 24)))
        await until(pilot, lambda: "READ-ONLY" in "".join(written) and "Help" in "".join(written))


@pytest.mark.parametrize(
    ("message", "ways"), [(events.Key("down", None), 1), (events.Resize(Size(80, 24), Size(80, 24)), 0), (MOVED, 0)]
)
async def test_the_scan_gives_way_to_a_key_before_the_loop_has_it(message: Message, ways: int) -> None:
    session = FixedSession()
    sent: list[tuple[Message, int]] = []

    class Terminal(HeadlessDriver):
        def send_message(self, message: Message) -> None:
            sent.append((message, session.input_yields))

    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen) and is_settled(app.screen))
        app.extend_driver(Terminal)(app).send_message(message)
    assert sent == [(message, ways)]
