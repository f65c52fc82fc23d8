"""The first screen: the tree where the server answers at once, else what is being connected to."""

from __future__ import annotations

import asyncio

import pytest

from rtui.keyspace.text.display import SafeText
from rtui.server.options import BrowseOptions
from rtui.server.wire.errors import ConnectFailure, FailureKind, KeyPassphraseError, RtuiError
from rtui.server.wire.secret import Secret
from rtui.server.wire.target import Sentinels, Target, Tls
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.connect import ConnectScreen, connecting_line
from tests.tui.browsing import until
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import SIZE


def shown(app: RtuiApp) -> str:
    """What stands on the screen."""
    with app._context():
        return "".join(segment.text for strip in app.screen._compositor.render_strips() for segment in strip)


class SlowSession(FixedSession):
    """Connects when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_connect = asyncio.Event()
        self.starts = 0

    async def start(self) -> None:
        self.starts += 1
        await self.may_connect.wait()
        await super().start()


async def test_a_server_that_answers_at_once_shows_its_tree_first() -> None:
    app = RtuiApp(BrowseOptions(), FixedSession())
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        assert [type(screen) for screen in app.screen_stack] == [BrowseScreen]


async def test_a_slow_server_is_named_until_it_answers() -> None:
    session = SlowSession()
    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=SIZE) as pilot:
        assert isinstance(app.screen, ConnectScreen)
        session.may_connect.set()
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
    assert session.starts == 1


@pytest.mark.parametrize(("waited_s", "said"), [(0.0, ""), (1.9, ""), (2.0, " · 2s"), (64.5, " · 1m 4s")])
def test_who_waits_for_a_server_is_told_since_when(waited_s: float, said: str) -> None:
    line = connecting_line(SafeText("db:6379"), waited_s)
    assert "".join(span.text for span in line) == f" Connecting to db:6379{said}"


async def test_how_long_connecting_takes_is_shown_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.tui.connect.TICK_S", 0.01)
    monkeypatch.setattr("rtui.tui.connect.SLOW_S", 0.0)
    session = SlowSession()
    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ConnectScreen))
        await until(pilot, lambda: "Connecting" in shown(app) and " · " in shown(app))
        session.may_connect.set()
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))


async def test_what_fails_at_once_is_told_and_tried_again() -> None:
    session = FixedSession()
    session.failure = ConnectFailure(FailureKind.REFUSED, "Nothing listens there.", "Check the port.")
    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=SIZE) as pilot:
        screen = app.screen
        assert isinstance(screen, ConnectScreen)
        await until(pilot, lambda: screen.card.has_class("-failed"))
        session.failure = None
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))


class RefusedSession(FixedSession):
    """Fails with each of some errors in turn, then connects."""

    def __init__(self, *errors: RtuiError) -> None:
        super().__init__()
        self.errors = list(errors)

    async def start(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        await super().start()


async def test_the_passphrase_of_the_key_and_the_password_are_asked_for_in_place() -> None:
    wrong = (KeyPassphraseError("The client key is encrypted", happened, "Give it.") for happened in ("none", "wrong"))
    session = RefusedSession(*wrong, ConnectFailure(FailureKind.NOAUTH, "no password", "Give it."))
    tls = Tls(cert="/c.pem", key="/k.pem")
    app = RtuiApp(BrowseOptions(target=Target(tls=tls, sentinels=Sentinels("m", (("s", 1),), tls=tls))), session)
    async with app.run_test(size=SIZE) as pilot:
        for left, typed, asked in ((2, "not", "passphrase"), (1, "fits", "passphrase"), (0, "theirs", "password")):
            await until(pilot, lambda left=left: len(session.errors) == left)  # type: ignore[misc]
            await until(pilot, lambda: isinstance(app.screen, ConnectScreen) and app.screen.password_input.has_focus)
            assert asked in shown(app)
            await pilot.press(*typed)
            assert typed not in shown(app)
            await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
    target = app.options.target
    assert target.password == Secret("theirs")
    assert target.sentinels is not None
    assert [one and one.key_password for one in (target.tls, target.sentinels.tls)] == [Secret("fits")] * 2
