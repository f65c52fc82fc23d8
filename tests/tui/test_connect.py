"""The first screen, choosing servers and databases, and what is kept of a password."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from rtui.analysis.findings.server import server_findings
from rtui.analysis.formats.fleet import FleetServer
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.server.files import is_first_start
from rtui.server.guard.command import Secret
from rtui.server.health.fleet import Fleet
from rtui.server.options import BrowseOptions
from rtui.server.user.known_servers import Profiles, RecentServers
from rtui.server.wire.connection import Closed
from rtui.server.wire.errors import ConnectFailure, FailureKind, KeyPassphraseError, RtuiError
from rtui.server.wire.target import Sentinels, Target, Tls
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.connect import (
    ConnectScreen,
    KnownServer,
    PasswordInput,
    ServersScreen,
    connecting_line,
    databases_text,
    known_places,
    of_report_first,
)
from rtui.tui.fleet import FleetScreen
from rtui.tui.kit.choice import ListScreen
from rtui.tui.run import FleetApp
from rtui.tui.server import ServerScreen
from tests.conftest import known
from tests.made_sample import GIB, made_sample
from tests.server.targets import target_of
from tests.servers import Server, free_port
from tests.tui.browsing import until
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import SIZE, Visitor, visiting
from tests.wire import Listener

PASSWORD = "s3cret-pass"  # noqa: S105 - of a server of these tests


@pytest.fixture
def recent(tmp_path: Path) -> RecentServers:
    return RecentServers(tmp_path / "recent.json")


def browsing_first(server: Server, recent: RecentServers, **options: bool) -> RtuiApp:
    return RtuiApp(BrowseOptions(target=Target(port=server.port), **options), recent=recent)  # type: ignore[arg-type]


async def listed(visitor: Visitor) -> ListScreen[object]:
    await visitor.until(lambda: isinstance(visitor.app.screen, ListScreen), "a list")
    assert isinstance(visitor.app.screen, ListScreen)
    return visitor.app.screen


async def test_a_server_is_remembered_and_can_be_chosen_first(
    valkey: Server, redis70: Server, recent: RecentServers, tmp_path: Path
) -> None:
    redis70.admin.set("from:old", 1)
    valkey.admin.set("from:new", 1)
    app = browsing_first(valkey, recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await visitor.whole()
        await visitor.until(recent.servers, "a remembered server")
    recent.add(Target(port=redis70.port))
    app = RtuiApp(BrowseOptions(chooses_server=True), recent=recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await listed(visitor)
        await visitor.until_shown(f"127.0.0.1:{redis70.port}", f"127.0.0.1:{valkey.port}", "127.0.0.1:6379", "recent")
        await visitor.press("enter")
        await visitor.whole()
        assert visitor.session.target.port == redis70.port
        await visitor.press("O")
        await listed(visitor)
        await visitor.until_shown(f"127.0.0.1:{valkey.port}")
        await visitor.press("down")
        await visitor.until(lambda: visitor.app.screen.query_one("#choices").highlighted == 1, "the second")  # type: ignore[attr-defined]
        await visitor.press("enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session.target.port == valkey.port, "the other")
        await visitor.whole()
        await visitor.until_shown("from")
    valkey.admin.ping()


async def test_what_earlier_versions_saved_of_analyses_is_removed(
    valkey: Server, recent: RecentServers, tmp_path: Path
) -> None:
    saved = tmp_path / "xdg_state_home" / "rtui" / "analyses" / "0123.analysis"
    saved.parent.mkdir(parents=True)
    saved.write_bytes(b"names of keys")
    app = browsing_first(valkey, recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await visitor.until(lambda: not saved.parent.exists(), "no file")
        assert not visitor.app._notifications


async def test_a_profile_marks_its_server(valkey: Server, recent: RecentServers, tmp_path: Path) -> None:
    folder = tmp_path / "xdg_config_home" / "rtui"
    folder.mkdir(parents=True)
    (folder / "profiles.toml").write_text(
        f'[shop]\nport = {valkey.port}\nword = "PROD"\ncolour = "red"\n[bad]\nport = 0\n'
    )
    app = RtuiApp(BrowseOptions(chooses_server=True), recent=recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await listed(visitor)
        await visitor.until_shown("shop", "[PROD]", "bad", "can't be read")
        await visitor.press("enter")
        await visitor.connected()
        await visitor.until_shown("[PROD]")


async def test_a_password_is_asked_for_and_kept_in_memory_only(
    valkey: Server, recent: RecentServers, tmp_path: Path
) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "default", "resetpass", f">{PASSWORD}")
    app = browsing_first(valkey, recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:

        def line() -> PasswordInput:
            return visitor.app.screen.query_one(PasswordInput)

        await visitor.until(lambda: isinstance(app.screen, ConnectScreen) and app.focused is line(), "a line for it")
        await visitor.paste("wrong")
        await visitor.press("enter")
        await visitor.until_shown("Wrong user or password")
        await visitor.until(lambda: app.focused is line() and not line().value, "an empty line")
        await visitor.paste(PASSWORD)
        assert PASSWORD not in visitor.text()
        await visitor.press("enter")
        await visitor.whole()
        await visitor.until(recent.servers, "a remembered server")
        assert PASSWORD not in repr(app.options)
    await asyncio.to_thread(check_nothing_written, tmp_path)


def check_nothing_written(folder: Path) -> None:
    assert all(PASSWORD.encode() not in path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_escape_gives_the_keys_back(valkey: Server, recent: RecentServers, tmp_path: Path) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "default", "resetpass", f">{PASSWORD}")
    app = browsing_first(valkey, recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await visitor.until_shown("The server requires a password", "kept in memory only")
        await visitor.press("escape")
        await visitor.until(lambda: not app.screen.query_one(PasswordInput).display, "no line")
        await visitor.press("O")
        await listed(visitor)


async def test_databases_say_how_many_keys_they_hold(valkey: Server, recent: RecentServers, tmp_path: Path) -> None:
    valkey.admin.set("only:here", 1)
    valkey.admin.select(3)
    for number in range(12):
        valkey.admin.set(f"three:{number}", 1)
    valkey.admin.select(0)
    app = browsing_first(valkey, recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await visitor.whole()
        await visitor.press("B")
        await listed(visitor)
        await visitor.until_shown(
            "db0    1 key · here", "db3    12 keys", "db0 holds 1 key; db3 holds 12", "16 databases"
        )
        await visitor.press("down", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session.target.db == 3, "the other database")
        await visitor.whole()
        await visitor.until_shown("three")
        await visitor.press("B")
        await listed(visitor)
        await visitor.press("up", "enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.session.target.db == 0, "the first database")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({3: 12_000}, "db0 is empty; db3 holds 12,000"),
        (
            {0: 2, 1: 1, 3: 12_000, 4: 5, 5: 7},
            "db0 holds 2 keys; db3 holds 12,000, db5 holds 7, db4 holds 5, 1 more hold",
        ),
        ({0: 1}, "db0 holds 1 key; no other database has keys"),
        ({}, "db0 is empty, as are all others"),
        (None, "INFO is denied"),
    ],
)
def test_a_sentence_says_where_the_keys_are(sizes: dict[int, int] | None, said: str) -> None:
    assert databases_text(0, sizes).startswith(said)


async def test_an_empty_database_is_listed_and_says_where_the_keys_are(
    valkey: Server, recent: RecentServers, tmp_path: Path
) -> None:
    valkey.client(db=3).mset({f"three:{number}": "x" for number in range(12)})
    app = browsing_first(valkey, recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await visitor.until_shown("db0 is empty", "db3 has 12")
        await visitor.press("B")
        await listed(visitor)
        await visitor.until_shown("db0 is empty; db3 holds 12", "db0    empty · here")


def test_the_server_of_a_report_is_offered_first(recent: RecentServers, tmp_path: Path) -> None:
    recent.add(Target("10.0.0.5", user="app", db=2))
    recent.add(Target("10.0.0.6"))
    places = known_places(Profiles(tmp_path / "profiles.toml"), recent)
    first = of_report_first(places, "10.0.0.5:6379", 3)
    assert len(first) == len(places)
    assert first[0].target() == Target("10.0.0.5", user="app", db=3)
    assert first[0].about == "of this report · recent"
    other = of_report_first(places, "cache:7000", 1)
    assert other[0].target() == Target("cache", 7000, db=1)
    assert other[1:] == places
    assert of_report_first(places, "\ufffd no address", 0) == places


async def test_databases_that_may_not_be_asked_are_said(valkey: Server, recent: RecentServers, tmp_path: Path) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-info")
    app = browsing_first(valkey, recent)
    async with visiting(app.options.target, tmp_path, app=app) as visitor:
        await visitor.connected()
        await visitor.press("B")
        await listed(visitor)
        await visitor.until_shown("INFO is denied", "db0")


@pytest.mark.parametrize(("size", "is_cut"), [((40, 24), True), ((80, 24), True), ((200, 24), False)])
async def test_a_server_takes_one_line_however_long_its_name_is(size: tuple[int, int], is_cut: bool) -> None:
    place = KnownServer(
        SafeText("cache"), SafeText(f"profile · {'a-host-in-a-region.' * 5}example.com:6379 · TLS"), Target
    )
    async with RtuiApp(BrowseOptions(target=Target(port=1))).run_test(size=size) as pilot:
        screen = ServersScreen([place] * 3)
        await pilot.app.push_screen(screen)
        await pilot.pause()
        assert screen.options.virtual_size.height == 3
        shown = screen.options.render_line(1).text
        assert ("…" in shown) is is_cut
        assert ("TLS" in shown) is not is_cut
        assert screen.options.region.right <= size[0]


def shown(app: RtuiApp) -> str:
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


@pytest.mark.parametrize("is_first", [True, False])
async def test_the_first_start_says_which_keys_help(is_first: bool) -> None:
    app = RtuiApp(BrowseOptions(is_first_start=is_first), FixedSession())
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        assert [one.message.split(" ", 1)[0] for one in app._notifications] == ["?"] * is_first


def test_the_first_start_is_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert [is_first_start() for _ in range(3)] == [True, False, False]
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert not is_first_start()


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
    assert [one and one.key_password for one in (target.tls, known(target.sentinels).tls)] == [Secret("fits")] * 2


def labelled(target: Target, **labels: str) -> Target:
    return replace(target, labels=tuple((SafeText(name), SafeText(value)) for name, value in labels.items()))


def made_server(name: str, zone: str, *, failure: str = "", **changed: Any) -> FleetServer:
    view = HealthView((made_sample(node=name, **changed), made_sample(5, node=name, **changed)))
    label = ((SafeText("zone"), SafeText(zone)),)
    found = FleetServer(SafeText(name), SafeText(name), label, view, server_findings(view))
    return replace(found, failure=SafeText(failure)) if failure else found


class MadeFleet(Fleet):
    """Servers made by hand, of which none is asked."""

    def __init__(self, made: Sequence[FleetServer]) -> None:
        super().__init__([Target(port=at + 1, name=one.name) for at, one in enumerate(made)])
        self.made = list(made)
        self.asked = 0

    @property
    def servers(self) -> list[FleetServer]:
        return self.made

    def target_of(self, address: SafeText) -> Target | None:
        return next((Target(name=one.name) for one in self.made if one.address == address), None)

    def ask_now(self) -> None:
        self.asked += 1

    async def run(self) -> None:
        await asyncio.Event().wait()


def made_fleet() -> MadeFleet:
    unlimited: dict[str, Any] = {"maxmemory": 0, "used_memory_rss": 15 * GIB}
    return MadeFleet(
        [
            made_server("carts-1", "a"),
            made_server("carts-2", "b", rdb_last_bgsave_status="err"),
            *(made_server(f"sessions-{at}", "ab"[at % 2], **unlimited) for at in range(1, 4)),
            made_server("search", "a", failure="Nothing listens on 10.0.0.9:6379."),
            made_server("mail", "b", role="slave", master_last_io_seconds_ago=3, master_link_status="up"),
        ]
    )


@asynccontextmanager
async def shown_fleet(fleet: Fleet, size: tuple[int, int] = (120, 36)) -> AsyncIterator[tuple[Pilot[int], FleetScreen]]:
    app = FleetApp(fleet, BrowseOptions())
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.view.has_rows)
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        yield pilot, screen


def names(screen: FleetScreen) -> list[str]:
    """The first cell of each shown row."""
    return [str(row[0]) for row in screen.view.table.rows.shown().rows]


async def test_a_server_is_opened_and_left(valkey: Server, redis70: Server) -> None:
    gone = Target(port=free_port())
    targets = [target_of(valkey), labelled(target_of(redis70), zone="a"), gone]
    fleet = Fleet(targets, every_s=0.05, limit_s=2)
    async with shown_fleet(fleet) as (pilot, screen):
        app = pilot.app
        assert isinstance(app, FleetApp)
        await until(pilot, lambda: not any(one.state == "waiting" for one in fleet.servers))
        await until(pilot, lambda: names(screen)[0] == gone.label)
        await pilot.press("j")
        chosen = screen.view.subject
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        session = known(app._session)
        assert session.target.label == chosen
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.view.has_rows)
        assert isinstance(session.deployment.home.state, Closed)
        assert [one.view.subject for one in app.screen_stack if isinstance(one, FleetScreen)] == [chosen]
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, ServerScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.view.has_rows)
        await pilot.press("g", "enter")
        await until(pilot, lambda: isinstance(app.screen, ConnectScreen) and app.screen.has_failed)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))


async def test_findings_and_labels_lead_to_their_servers() -> None:
    async with shown_fleet(made_fleet()) as (pilot, screen):
        assert names(screen)[:2] == ["search", "carts-2"]
        await pilot.press("2")
        await until(pilot, lambda: screen.view.panel_id == "findings")
        titles = [str(row[3]) for row in screen.view.table.rows.shown().rows]
        assert titles[0].startswith("search: Nothing listens")
        await pilot.press("g", *["j"] * titles.index("3 of 7: no maxmemory"), "enter")
        await until(pilot, lambda: names(screen) == ["sessions-1", "sessions-2", "sessions-3"])
        await pilot.press("escape")
        await until(pilot, lambda: len(names(screen)) == 7)
        await pilot.press("3", "g", "enter")
        await until(pilot, lambda: names(screen) == ["search", "sessions-2", "carts-1"])
        await pilot.press("r")
        assert isinstance(screen.fleet, MadeFleet)
        assert screen.fleet.asked == 1


async def test_rows_are_filtered_and_keep_their_places_while_servers_change() -> None:
    fleet = made_fleet()
    async with shown_fleet(fleet, (80, 24)) as (pilot, screen):
        await pilot.press("slash", *"carts", "enter")
        await until(pilot, lambda: names(screen) == ["carts-2", "carts-1"])
        await pilot.press("escape", "g", "j")
        chosen, before = screen.view.subject, names(screen)
        fleet.made[0] = made_server("carts-1", "a", failure="It hangs.")
        fleet.revision += 1
        screen.flush()
        await until(pilot, lambda: "It hangs." in str(screen.view.table.rows.shown().rows))
        assert (screen.view.subject, names(screen)) == (chosen, before)


async def test_no_server_is_asked_but_those_of_the_fleet() -> None:
    async with Listener() as listener:
        app = FleetApp(made_fleet(), BrowseOptions(target=listener.target))
        async with app.run_test() as pilot:
            await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.view.has_rows)
        assert listener.accepted == 0
