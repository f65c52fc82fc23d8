"""The Server screen as pictures: panels with figures and lists, a cluster, and what stands where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.pilot import Pilot

from rtui.analysis.formats.samples import SamplesFile, SamplesHeader
from rtui.analysis.health.sample import Source
from rtui.keyspace.text.display import SafeText
from rtui.server.health.session import SavedHealth, Trouble
from rtui.server.options import BrowseOptions
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.fleet import FleetScreen
from rtui.tui.run import FleetApp, SamplesApp
from tests.made_sample import GIB, MIB, made_sample
from tests.snapshots.test_screens import MEDIUM, SMALL, Compare, app, settle
from tests.tui.browsing import until
from tests.tui.fixed_health import DENIED_SLOW
from tests.tui.fixed_session import FixedSession
from tests.tui.server.test_server import cluster, session, shown
from tests.tui.test_connect import made_fleet

FULL = Trouble("memory full", is_error=True, more=2)


def lost() -> FixedSession:
    return session(nodes=(), lost=SafeText("The connection was lost: the server closed it."))


@pytest.mark.parametrize(
    ("size", "made", "keys"),
    [
        (SMALL, session, ()),
        (MEDIUM, session, ()),
        (SMALL, session, ("2",)),
        (MEDIUM, session, ("2",)),
        (MEDIUM, session, ("4", "right_square_bracket")),
        (SMALL, session, ("6", "right_square_bracket")),
        (MEDIUM, session, ("7",)),
        (SMALL, cluster, ()),
        (SMALL, lost, ()),
        (SMALL, lambda: session(shown=(DENIED_SLOW,), denies=frozenset({Source.SLOW_LOG})), ("4",)),
    ],
    ids=[
        "overview-80x24", "overview-120x36", "memory-80x24", "memory-120x36", "slow", "clients",
        "configuration", "nodes", "lost", "denied",
    ],
)  # fmt: skip
def test_server(snap_compare: Compare, size: tuple[int, int], made: object, keys: tuple[str, ...]) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, BrowseScreen))
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await shown(pilot)
        await pilot.press(*keys)
        await settle(pilot)

    assert callable(made)
    assert snap_compare(app(made()), terminal_size=size, run_before=look)


def test_what_is_wrong_stands_in_the_title(snap_compare: Compare) -> None:
    made = FixedSession()
    made.status = replace(made.status, trouble=FULL)

    async def look(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, BrowseScreen))
        await settle(pilot)

    assert snap_compare(app(made), terminal_size=SMALL, run_before=look)


def of_files(*, is_compared: bool) -> SamplesApp:
    """The application on a file of samples, or on two."""
    header = SamplesHeader(began_ms=made_sample().at_ms, server="10.0.0.5:6379")
    now = tuple(made_sample(at, used_memory=(3 * GIB) + at * MIB, used_memory_rss=6 * GIB) for at in range(0, 400, 5))
    then = SamplesFile(header, {"10.0.0.5:6379": (made_sample(-86_400),)}) if is_compared else None
    health = SavedHealth(SamplesFile(header, {"10.0.0.5:6379": now}), "samples.jsonl", before=then)
    return SamplesApp(health, BrowseOptions())


@pytest.mark.parametrize(("is_compared", "size"), [(False, SMALL), (True, MEDIUM)], ids=["alone", "compared"])
def test_samples_of_a_file(snap_compare: Compare, size: tuple[int, int], *, is_compared: bool) -> None:
    async def look(pilot: Pilot[int]) -> None:
        screen = await shown(pilot)
        await pilot.press("2")
        await until(pilot, lambda: screen.view.figure is not None and screen.view.panel.id == "memory")
        await pilot.pause()

    assert snap_compare(of_files(is_compared=is_compared), terminal_size=size, run_before=look)


@pytest.mark.parametrize(
    ("size", "keys"), [(SMALL, ()), (MEDIUM, ()), (MEDIUM, ("2",))], ids=["80x24", "120x36", "findings"]
)
def test_fleet(snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, FleetScreen) and pilot.app.screen.view.has_rows)
        await pilot.press(*keys)
        await until(pilot, lambda: not pilot.app.screen._dirty_widgets)
        await pilot.pause()

    assert snap_compare(FleetApp(made_fleet(), BrowseOptions()), terminal_size=size, run_before=look)
