"""The Server screen: its panels, where its rows lead, what is typed, one node of a cluster, and what is not known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widgets import Input

from rtui.analysis.formats.samples import SamplesFile, SamplesHeader
from rtui.analysis.health.panel import Line as Figure
from rtui.analysis.health.sample import LoggedCommand, Source
from rtui.analysis.report.tables.table import Unit
from rtui.keyspace.text.display import SafeText
from rtui.server.health.session import SavedHealth, Trouble
from rtui.server.options import BrowseOptions
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.help import HelpScreen
from rtui.tui.kit.bars import TitleBar
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.styled_text import line_width
from rtui.tui.run import SamplesApp
from rtui.tui.server import ServerScreen
from rtui.tui.server_panels import PANELS, plot_lines, sparkline
from tests.made_sample import made_sample
from tests.server.targets import target_of
from tests.server.test_denied import POOR, let_in
from tests.servers import Server
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_health import DENIED_SLOW, NODES, SLOW, FixedHealth
from tests.tui.fixed_session import ASKED_AT_S, FixedSession
from tests.tui.test_keyboard import click_on
from tests.tui.visiting import visiting


def session(**given: object) -> FixedSession:
    made = FixedSession()
    made.health = FixedHealth(at_s=ASKED_AT_S, **given)  # type: ignore[arg-type]
    return made


def cluster() -> FixedSession:
    return session(nodes=tuple(SafeText(str(one)) for one in NODES.subjects), nodes_table=NODES)


async def opened(user: BrowseUser) -> ServerScreen:
    await user.pilot.press("exclamation_mark")
    return await shown(user.pilot)


async def shown(pilot: Pilot[int]) -> ServerScreen:
    await until(pilot, lambda: isinstance(pilot.app.screen, ServerScreen) and not pilot.app.screen._dirty_widgets)
    screen = pilot.app.screen
    assert isinstance(screen, ServerScreen)
    return screen


def health(user: BrowseUser) -> FixedHealth:
    found = user.session.health
    assert isinstance(found, FixedHealth)
    return found


def text(screen: ServerScreen) -> str:
    return "\n".join("".join(segment.text for segment in strip) for strip in screen._compositor.render_strips())


async def test_its_key_opens_it_and_leaves_it() -> None:
    async with browsing(session()) as user:
        await opened(user)
        await user.pilot.press("exclamation_mark")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, BrowseScreen))
        assert health(user).asked == ["begin", "end"]


def has_title(pilot: Pilot[int], text: str) -> bool:
    """Whether the title of the screen on top has a text."""
    return any(text in span.text for bar in pilot.app.screen.query(TitleBar) for line in bar.lines for span in line)


async def test_what_is_wrong_stands_in_every_title_and_leads_there() -> None:
    made = session()
    made.status = replace(made.status, trouble=Trouble("cannot evict", is_error=False, more=1))
    async with browsing(made) as user:
        for key in ("a", "L"):
            await user.pilot.press(key)
            await until(user.pilot, partial(has_title, user.pilot, "! cannot evict +1"))
            await user.pilot.press("escape")
        await click_on(user, user.screen.title_bar, "cannot evict")
        assert (await shown(user.pilot)).view.panel.id == "overview"


@pytest.mark.parametrize(("name", "panel"), [("server", "overview"), ("health", "overview"), ("clients", "clients")])
async def test_it_and_its_panels_are_gone_to_by_name(name: str, panel: str) -> None:
    async with browsing(session()) as user:
        await user.pilot.press("colon", *name, "enter")
        assert (await shown(user.pilot)).view.panel.id == panel


async def test_each_panel_has_a_key() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        for panel in PANELS[1:]:
            await user.pilot.press(panel.key)
            assert screen.view.panel is panel
            assert screen.view.has_rows


async def test_what_is_wrong_comes_first_and_leads_to_its_panel() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        assert screen.view.subject == "memory/maxmemory_policy"
        await user.pilot.press("down", "enter")
        assert (screen.view.panel.id, screen.view.subject) == ("memory", "memory/used_memory")
        await user.pilot.press("escape")
        assert (screen.view.panel.id, screen.view.subject) == ("overview", "memory/used_memory")
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is not screen)


async def test_a_figure_says_what_to_do_and_where_that_comes_from() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        await user.pilot.press("2")
        await until(user.pilot, lambda: "Raise maxmemory" in text(screen))
        assert "memory-near-limit" in text(screen)
        assert "5m ago" in text(screen)
        await user.pilot.press("question_mark")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, HelpScreen))


async def test_enter_goes_to_the_key_of_a_slow_command_and_escape_comes_back() -> None:
    async with browsing(session()) as user:
        await opened(user)
        await user.pilot.press("4", "right_square_bracket", "end", "enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, BrowseScreen))
        await user.until(lambda: user.name == b"shop:user:7:profile")
        await user.settled()
        await user.pilot.press("escape")
        screen = await shown(user.pilot)
        assert screen.view.subject == b"shop:user:7:profile"


async def test_a_row_as_a_whole_a_filter_and_a_copy() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        await user.pilot.press("4", "right_square_bracket", "enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, TextCard))
        await user.pilot.press("escape", "slash", *"profile", "enter")
        assert len(screen.view.table.rows) == 1
        assert next(copy.text for copy in screen.copies) == "shop:user:7:profile"
        await user.pilot.press("escape")
        assert len(screen.view.table.rows) == 3
        assert user.pilot.app.screen is screen


async def write(pilot: Pilot[int], file: Path) -> None:
    """Write what is shown, by the name that is proposed changed to this one."""
    await pilot.press("w")
    line = pilot.app.focused
    assert isinstance(line, Input)
    line.value = str(file)
    await pilot.press("enter")
    await until(pilot, file.exists)


async def test_samples_and_lists_are_written_and_the_server_asked_again(tmp_path: Path) -> None:
    async with browsing(session()) as user:
        await opened(user)
        await write(user.pilot, tmp_path / "s.jsonl")
        assert (tmp_path / "s.jsonl").read_text() == "header\nsample\n"
        await user.pilot.press("4", "right_square_bracket")
        await write(user.pilot, tmp_path / "slow.csv")
        assert len((tmp_path / "slow.csv").read_text().splitlines()) == 1 + len(SLOW.tables[0].rows)
        await user.pilot.press("r")
        await until(user.pilot, lambda: "ask" in health(user).asked)


async def test_new_samples_keep_the_cursor_on_its_row() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        await user.pilot.press("2", "down", "down")
        assert screen.view.subject == "memory/maxmemory_policy"
        memory = health(user).shown[0]
        health(user).shown = (replace(memory, lines=memory.lines[1:]), *health(user).shown[1:])
        health(user).revision += 1
        await user.pilot.press("r")
        await until(user.pilot, lambda: len(screen.view.table.rows) == 4)
        assert screen.view.subject == "memory/maxmemory_policy"


async def test_a_cluster_begins_with_its_nodes_and_shows_one_at_a_time() -> None:
    async with browsing(cluster()) as user:
        screen = await opened(user)
        assert screen.view.panel.id == "nodes"
        await user.pilot.press("down", "enter")
        assert (screen.view.panel.id, screen.node) == ("overview", "10.0.0.5:7001")
        await user.pilot.press("3")
        assert (screen.view.panel.id, screen.node) == ("load", "10.0.0.5:7001")
        await user.pilot.press("escape")
        assert (screen.view.panel.id, screen.view.subject) == ("nodes", "10.0.0.5:7001")


async def test_back_and_forward_lead_there() -> None:
    async with browsing(session()) as user:
        screen = await opened(user)
        await user.pilot.press("3", "ctrl+o")
        assert screen.view.panel.id == "overview"
        await user.pilot.press("ctrl+o")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, BrowseScreen))
        await user.pilot.press("ctrl+n", "ctrl+n")
        assert (await shown(user.pilot)).view.panel.id == "load"


@pytest.mark.parametrize(
    ("given", "keys", "said"),
    [
        ({"nodes": ()}, (), "Waiting for the server"),
        ({"nodes": (), "lost": SafeText("The connection was lost.")}, (), "The connection was lost."),
        ({"shown": (DENIED_SLOW,), "denies": frozenset({Source.SLOW_LOG})}, ("4",), "rtui acl --with health"),
        ({"shown": (SLOW,)}, ("2",), "No data"),
        ({"restarted": SafeText("The server was restarted 40s ago.")}, (), "restarted 40s ago"),
        ({"lost": SafeText("The connection was lost.")}, (), "no answer"),
    ],
    ids=["before the first sample", "never answered", "denied", "nothing known", "restarted", "lost"],
)
async def test_what_stands_in_place_of_figures(given: dict[str, object], keys: tuple[str, ...], said: str) -> None:
    async with browsing(session(**given)) as user:
        screen = await opened(user)
        await user.pilot.press(*keys)
        await until(user.pilot, lambda: said in text(screen))


async def test_samples_of_a_file_ask_nothing_and_lead_nowhere() -> None:
    header = SamplesHeader(began_ms=made_sample().at_ms, server="10.0.0.5:6379")
    slow = (LoggedCommand(1, 1, 90_000, (b"HGETALL", b"shop:user:7:profile")),)
    taken = (made_sample(), made_sample(5, slow=slow))
    app = SamplesApp(SavedHealth(SamplesFile(header, {"10.0.0.5:6379": taken}), "s.jsonl"), BrowseOptions())
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await shown(pilot)
        for panel in PANELS[1:]:
            await pilot.press(panel.key)
            assert screen.view.panel.id == panel.id
        assert "a file" in text(screen)
        assert "2026-09-21 14:13:20 to 14:13:25 UTC" in text(screen)
        await pilot.press("r", "exclamation_mark", "escape", "escape")
        assert pilot.app.screen is screen
        await pilot.press("4", "right_square_bracket")
        await until(pilot, lambda: screen.view.subject == b"shop:user:7:profile")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TextCard))


HISTORIES = st.lists(st.none() | st.floats(-1e12, 1e12) | st.integers(0, 2**40), max_size=60)


def figure(*history: float | None) -> Figure:
    return Figure("used_memory", "used", history[-1] if history else None, Unit.BYTES, history=history)


@pytest.mark.parametrize(
    ("history", "bars"),
    [
        ((700, 703, 701, 704), "▁▁▁▁"), ((5, 5, 5), "▁▁▁"), ((0, 0), "▁▁"), ((0, 50, 100), "▁▄█"),
        ((100, None, 200), "▁ █"), ((3,), ""),
    ],
)  # fmt: skip
def test_what_hardly_changes_looks_level(history: tuple[float | None, ...], bars: str) -> None:
    assert sparkline(history, 16) == bars


def test_the_scale_of_a_plot_says_how_high_it_is() -> None:
    (top, *_, bottom, _) = plot_lines(figure(1000 << 20, 1001 << 20), Size(60, 6), 10)
    assert "1.03 GiB" in top[0].text
    assert "0.98 GiB" in bottom[0].text


@given(HISTORIES, st.integers(1, 20), st.integers(0, 120), st.integers(0, 20))
def test_any_history_fits(history: list[float | None], cells: int, width: int, height: int) -> None:
    assert len(sparkline(history, cells)) <= cells
    lines = plot_lines(figure(*history), Size(width, height), 60)
    assert len(lines) <= height
    assert all(line_width(line) <= width for line in lines)


@pytest.mark.slow
async def test_what_no_figure_is_about_stands_in_the_overview(valkey: Server, tmp_path: Path) -> None:
    with valkey.client(client_name="nightly") as client:
        for _ in range(12):
            client.keys("*")
        async with visiting(target_of(valkey), tmp_path) as visitor:
            await visitor.connected()
            await visitor.press("exclamation_mark")
            await visitor.until_shown("1 warning", "banned commands in use", "KEYS was called 12 times")
            await visitor.press("6")
            await visitor.until_shown("largest query buffer", "Clients sending KEYS 1")
            await visitor.press("left_square_bracket")
            await visitor.until_shown("nightly")
            await visitor.press("4")
            await visitor.until_shown("slow log threshold")


@pytest.mark.slow
async def test_a_user_who_may_nothing_is_told_which_rights_are_lacking(valkey: Server, tmp_path: Path) -> None:
    let_in(valkey, "+scan", "+ping", "+hello")
    async with visiting(target_of(valkey, **POOR), tmp_path) as visitor:
        await visitor.connected()
        await visitor.press("exclamation_mark")
        await visitor.until_shown("rtui acl --with health", "--with settings", "checks unknown")
        assert "no problems" not in visitor.text()
        for key, source in (("2", "INFO memory"), ("4", "SLOWLOG GET"), ("6", "INFO clients"), ("7", "CONFIG GET")):
            await visitor.press(key)
            await visitor.until_shown(f"{source}: denied" if key == "7" else source, "rtui acl --with ")
