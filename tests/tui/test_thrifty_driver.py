from __future__ import annotations

from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.message import Message

from rtui.server.browse_options import BrowseOptions
from rtui.tui.app import RtuiApp
from rtui.tui.thrifty_driver import thrifty
from tests.tui.fixed_session import FixedSession

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
    driver = thrifty(Terminal)(RtuiApp(BrowseOptions(), FixedSession()))
    assert isinstance(driver, Terminal)
    driver.write(FRAME)
    driver.write(FRAME)
    driver.send_message(events.Resize(Size(80, 24), Size(80, 24)))
    driver.write(FRAME)
    assert ["abc" in data for data in driver.written] == [True, False, True]
    assert len(driver.sent) == 1


def test_the_application_writes_through_it() -> None:
    assert "ThriftyDriver" in [one.__name__ for one in RtuiApp(BrowseOptions(), FixedSession()).driver_class.__mro__]
