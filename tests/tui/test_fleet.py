"""The Fleet screen on real servers, and on made ones: opening a server and coming back, findings, labels, filters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from textual.pilot import Pilot

from rtui.analysis.findings.server import server_findings
from rtui.analysis.formats.fleet import FleetServer
from rtui.analysis.health.view import HealthView
from rtui.keyspace.text.display import SafeText
from rtui.server.health.fleet import Fleet
from rtui.server.options import BrowseOptions
from rtui.server.wire.connection import Closed
from rtui.server.wire.target import Target
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.connect import ConnectScreen
from rtui.tui.fleet import FleetScreen
from rtui.tui.run import FleetApp
from rtui.tui.server import ServerScreen
from tests.made_sample import GIB, made_sample
from tests.server.targets import target_of
from tests.servers import Server, free_port
from tests.tui.browsing import until
from tests.wire import Listener


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
async def shown(fleet: Fleet, size: tuple[int, int] = (120, 36)) -> AsyncIterator[tuple[Pilot[int], FleetScreen]]:
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
    async with shown(fleet) as (pilot, screen):
        app = pilot.app
        assert isinstance(app, FleetApp)
        await until(pilot, lambda: not any(one.state == "waiting" for one in fleet.servers))
        await until(pilot, lambda: names(screen)[0] == gone.label)
        await pilot.press("j")
        chosen = screen.view.subject
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        session = app._session
        assert session is not None
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
    async with shown(made_fleet()) as (pilot, screen):
        assert names(screen)[:2] == ["search", "carts-2"]
        await pilot.press("2")
        await until(pilot, lambda: screen.view.panel_id == "findings")
        titles = [str(row[3]) for row in screen.view.table.rows.shown().rows]
        assert titles[0].startswith("search: Nothing listens")
        at = titles.index("3 of 7: no maxmemory")
        await pilot.press("g", *["j"] * at, "enter")
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
    async with shown(fleet, (80, 24)) as (pilot, screen):
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
