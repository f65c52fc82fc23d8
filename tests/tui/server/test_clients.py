"""The screen of clients: its lists, a filter, one row, what is denied, and a connection that is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.pilot import Pilot

from rtui.analysis.facts import Reason, Unknown
from rtui.server.health.callers import Callers, Calls, too_many
from rtui.server.health.clients import Client
from rtui.server.health.slow_log import SlowCommand
from rtui.server.wire.errors import RtuiError
from rtui.tui.server.clients_tables import summary_lines, tables
from rtui.tui.server.screen import ClientsScreen, RowScreen
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import ASKED_AT_S, FixedSession

HOSTILE = b"\x1b]52;c;eA==\x07[/]\xe2\x80\xae"

WHO = Callers(
    ASKED_AT_S,
    Calls(1_204, 101_136_000),
    (
        Client(7, b"10.0.0.9:50123", b"nightly", b"redis-py 8.1.0", b"report", 0, 7_200, 42, "KEYS", 0, 0),
        Client(8, b"10.0.0.7:41002", b"shop-api", b"go-redis(,go1.23) 9.7.0", b"app", 0, 90_000, 0, "GET", 20_512, 26),
        Client(9, b"10.0.0.7:41003", b"shop-api", b"", b"app", 1, 90_000, 3, "HGETALL", 0, 0),
        Client(10, b"10.0.0.4:40999", HOSTILE, b"", b"default", 0, 12, 0, "CONFIG|GET", 1 << 30, 0),
        Client(11, b"10.0.0.5:52111", b"rtui", b"rtui 0.1.0", b"rtui", 0, 60, 0, "CLIENT|LIST", 0, 0),
    ),
    5,
    (
        SlowCommand(3, int(ASKED_AT_S) - 42, 84_200, (b"KEYS", b"shop:session:*"), b"10.0.0.9:50123", b"nightly"),
        SlowCommand(2, int(ASKED_AT_S) - 400, 12_100, (b"SMEMBERS", HOSTILE), b"10.0.0.7:41003", b"shop-api"),
        SlowCommand(1, int(ASKED_AT_S) - 90_000, 91_700, (b"KEYS", b"*"), b"10.0.0.8:33017", b""),
    ),
)  # fmt: skip

DENIED = Unknown(Reason.DENIED, "this user has no permissions to run the 'slowlog|get' command")


def session(who: Callers = WHO) -> FixedSession:
    made = FixedSession()
    made.who = who
    return made


async def opened(user: BrowseUser) -> ClientsScreen:
    """Go to the clients by name, and wait for them."""
    await user.pilot.press("colon", *"clients", "enter")
    return await shown(user.pilot)


async def shown(pilot: Pilot[int]) -> ClientsScreen:
    await until(pilot, lambda: isinstance(pilot.app.screen, ClientsScreen))
    screen = pilot.app.screen
    assert isinstance(screen, ClientsScreen)
    await until(pilot, lambda: screen.callers is not None and not screen._dirty_widgets)
    return screen


async def test_lists_a_filter_and_a_row() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        assert len(screen.table.rows) == 2
        await user.pilot.press("enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, RowScreen))
        await user.pilot.press("escape", "tab")
        assert len(screen.table.rows) == 3
        await user.pilot.press("tab", "slash", *"shop", "enter")
        assert len(screen.table.rows) == 2
        await user.pilot.press("escape")
        assert len(screen.table.rows) == 5
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is not screen)


async def test_back_and_forward_lead_there() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        await user.pilot.press("ctrl+o")
        await until(user.pilot, lambda: user.pilot.app.screen is not screen)
        await user.pilot.press("ctrl+n")
        await shown(user.pilot)


async def test_a_lost_connection_keeps_what_was_shown() -> None:
    made = session()
    async with browsing(made) as user:
        screen = await opened(user)

        async def lost() -> Callers:
            raise RtuiError("Lost", "The connection was lost.")

        screen._ask = lost
        await user.pilot.press("r")
        await until(user.pilot, lambda: screen._failure is not None)
        assert len(screen.table.rows) == 2


@pytest.mark.parametrize(
    ("who", "said"),
    [
        (WHO, "KEYS was called 1,204 times, 84ms each"),
        (replace(WHO, calls=Calls(0, 0)), "KEYS was not called"),
        (replace(WHO, slow=DENIED), "rtui acl --with health"),
        (replace(WHO, clients=too_many(5_000)), "5,000 clients are connected"),
    ],
    ids=["called", "not called", "denied", "too many"],
)
def test_sentences(who: Callers, said: str) -> None:
    for width in (40, 80, 200):
        lines = ["".join(span.text for span in line).strip() for line in summary_lines(who, width)]
        assert said in " ".join(lines)
        assert max(map(len, lines)) <= width


def test_rows_are_in_their_orders() -> None:
    keys, slow, clients = tables(WHO)
    assert [row[keys.column("pattern")] for row in keys.rows] == [b"shop:session:*", b"*"]
    assert [row[slow.column("took_ms")] for row in slow.rows] == [84.2, 12.1, 91.7]
    assert [row[clients.column("output_bytes")] for row in clients.rows][:2] == [1 << 30, 20_512]
