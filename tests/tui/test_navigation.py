"""Back and forward through where the user has been, and Escape, which leads to the tree step by step."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size
from textual.screen import Screen

from rtui.keyspace.text.display import display_text
from rtui.server.options import BrowseOptions
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find import FindScreen
from rtui.tui.goto import (
    COMMAND_KINDS,
    NARROWING,
    Destination,
    GotoKind,
    GotoScreen,
    Wanted,
    entry_line,
    matching,
    wanted,
)
from rtui.tui.help import HelpScreen
from rtui.tui.kit.command_screen import KEPT, History, PanelPlace, Place, TreePlace
from rtui.tui.kit.styled_text import line_width
from rtui.tui.log import LogScreen
from rtui.tui.run import ReportApp
from tests.made_report import made_report
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.analysis_tour import ask
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import Visitor, check_text, visiting


def place(number: int) -> TreePlace:
    return TreePlace(b"%d" % number)


def test_back_and_forward() -> None:
    history = History()
    history.leave(place(1))
    history.leave(place(2))
    assert history.back(place(3)) == place(2)
    assert history.back(place(2)) == place(1)
    assert history.back(place(1)) is None
    assert history.forward(place(1)) == place(2)
    assert history.forward(place(2)) == place(3)
    assert history.forward(place(3)) is None
    assert history.back(place(3)) == place(2)
    history.leave(place(2))
    assert history.forward(place(4)) is None
    assert history.back(place(4)) == place(2)


@given(st.lists(st.integers(0, 300), max_size=300))
def test_it_is_bounded_and_goes_through_all_that_is_kept(left: list[int]) -> None:
    history = History()
    here: Place = place(-1)
    for number in left:
        history.leave(place(number))
    been = []
    while (before := history.back(here)) is not None:
        been.append(before)
        here = before
    once = [number for at, number in enumerate(left) if not at or left[at - 1] != number]
    assert been == [place(number) for number in reversed(once[-KEPT:])]
    again = []
    while (after := history.forward(here)) is not None:
        again.append(after)
        here = after
    assert again == ([*reversed(been[:-1]), place(-1)] if been else [])


async def test_through_tree_details_panel_and_log() -> None:
    async with browsing() as user:
        app, pilot = user.pilot.app, user.pilot
        await call_up(user)
        await enter(user, "key shop:user:7:profile", lambda: user.name == b"shop:user:7:profile")
        await user.press("enter")
        assert user.has_keyboard(user.screen.detail_pane.body)
        await call_up(user)
        await enter(user, "panel expiry", lambda: isinstance(app.screen, AnalyseScreen))
        await pilot.press("3")
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        await pilot.press("alt+left")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen))
        assert isinstance(app.screen, AnalyseScreen)
        assert app.screen.place == PanelPlace("big", app.screen.view.state)
        await pilot.press("ctrl+o")
        assert app.screen.view.panel.id == "expiry"
        await pilot.press("alt+left")
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        await user.settled()
        assert user.name == b"shop:user:7:profile"
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("alt+left")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)
        assert user.name == b"shop:user:7:profile"
        await user.press("alt+left")
        assert user.name == b"shop:"
        for _ in range(3):
            await pilot.press("alt+right")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen))
        for _ in range(2):
            await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        assert user.session.asked == []


async def test_a_filter_comes_back_with_its_place() -> None:
    async with browsing() as user:
        await user.press("slash", *"failed", "enter")
        await user.until(lambda: user.screen.tree_pane.names.needle == b"failed")
        await user.press("end")
        await user.until(lambda: user.name == b"jobs:failed")
        await call_up(user)
        await enter(user, "ns shop:cache", lambda: user.name == b"shop:cache:")
        assert user.screen.tree_pane.names.needle is None
        await user.press("alt+left")
        await user.until(lambda: user.screen.tree_pane.names.needle == b"failed" and user.name == b"jobs:failed")
        assert user.session.asked == []


async def test_a_key_of_a_filter_is_gone_back_to_also_where_the_search_for_it_takes_longer() -> None:
    session = FixedSession()
    session.store.clock = itertools.count().__next__
    async with browsing(session) as user:
        await user.press("slash", *"failed", "enter", "end")
        await user.until(lambda: user.name == b"jobs:failed")
        await call_up(user)
        await enter(user, "ns shop:cache", lambda: user.name == b"shop:cache:")
        await user.pilot.press("alt+left", "enter")
        await user.until(lambda: user.has_keyboard(user.screen.detail_pane.body))
        assert user.screen.tree_pane.names.needle == b"failed"
        assert user.name == b"jobs:failed"


async def test_nothing_before_is_said_once() -> None:
    async with browsing(notifications=True) as user:
        await user.press("alt+left")
        assert [one.message for one in user.pilot.app._notifications] == ["Nothing to go back to."]


MOST_STEPS = 8
"""Nobody is deeper in than that."""

PLACES = {
    "a row": ("down",),
    "details": ("f", *"list", "escape", "enter"),
    "another tab": ("f", *"list", "escape", "enter", "2"),
    "finding in a value": ("f", *"list", "escape", "enter", "slash", "x"),
    "going in a value": ("f", *"list", "escape", "enter", "o", "1"),
    "columns": ("c",),
    "sorting": ("s",),
    "jumping": ("f", "l"),
    "a filter being typed": ("slash", *"user"),
    "a filter": ("slash", *"user", "enter", "down"),
    "copying": ("Y",),
    "help": ("question_mark",),
    "commands": ("ctrl+p", *"sort"),
    "going to anything": ("colon", *"user"),
    "a key by name": ("colon", *"list", "enter"),
    "themes": ("t",),
    "servers": ("O",),
    "databases": ("B",),
    "the log": ("L",),
    "a filter of the log": ("L", "slash", *"scan", "enter"),
    "an entry of the log": ("L", "enter"),
    "the log over the analysis": ("a", "L", "enter"),
    "the analysis": ("a",),
    "memory, zoomed": ("a", "2", "enter"),
    "big keys": ("a", "3", "right_square_bracket", "down"),
    "a key from the analysis": ("a", "3", "enter"),
    "hot keys": ("a", "4"),
    "expiry": ("a", "5"),
    "slots": ("a", "6"),
    "types, filtered": ("a", "7", "slash", *"list", "enter"),
    "a file to write": ("a", "7", "w", *"x.csv"),
    "what is asked": ("a", "c"),
    "help over the analysis": ("a", "question_mark"),
    "back and forward": ("a", "3", "alt+left", "alt+left", "alt+right"),
}
"""How to get somewhere from the tree without a scan."""

PARTS = 4
"""They are gone to in so many sessions."""


def scans(server: Server) -> int:
    return int(server.admin.info("commandstats").get("cmdstat_scan", {"calls": 0})["calls"])


def fill(server: Server) -> None:
    server.admin.mset({f"user:{number}:name": "x" for number in range(300)})
    server.admin.rpush("list", *range(500))


async def at_the_tree(visitor: Visitor, name: str) -> None:
    """Press Escape until nothing is left to go back to."""
    for _ in range(MOST_STEPS):
        await visitor.press("escape")
        for _ in range(3):
            await visitor.pilot.pause()
        screen = visitor.app.screen
        if isinstance(screen, BrowseScreen) and screen.focused is screen.tree_pane.key_tree:
            await visitor.settled()
            if not screen.search.can_clear and not screen.search.returns_to:
                return
    pytest.fail(f"{name} leads nowhere:\n{visitor.text()}")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
async def test_from_anywhere(valkey: Server, tmp_path: Path, part: int) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.press("a")
        await ask(visitor)
        await at_the_tree(visitor, "the analysis")
        before = scans(valkey)
        for name, keys in [*PLACES.items()][part::PARTS]:
            for key in keys:
                await visitor.press(key)
                for _ in range(3):
                    await visitor.pilot.pause()
            await at_the_tree(visitor, name)
            assert scans(valkey) == before, name
        assert visitor.session.status.match is None


@pytest.mark.slow
async def test_a_filter_from_the_command_line_stays(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36), match=b"user:1*") as visitor:
        await visitor.whole()
        before = scans(valkey)
        await visitor.press("escape")
        await visitor.filter("name")
        await visitor.until(lambda: visitor.browse.tree_pane.names.needle == b"name", "the names")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.browse.tree_pane.names.needle is None, "the tree")
        await visitor.press("escape")
        await visitor.settled()
        assert visitor.session.status.match == b"user:1*"
        assert scans(valkey) == before
        await visitor.filter("user:3*")
        await visitor.until(lambda: visitor.session.store.keys == 11, "another filter")
        await visitor.whole()
        before = scans(valkey)
        await visitor.press("escape")
        await visitor.settled()
        assert scans(valkey) == before


@pytest.mark.slow
async def test_a_glob_over_all_keys_costs_its_own_scan_only(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.filter("user:3*")
        await visitor.until(lambda: visitor.session.store.keys == 11, "what is filtered")
        await visitor.whole()
        before = scans(valkey)
        await visitor.press("escape")
        await visitor.until(lambda: visitor.session.store.keys == 301, "all keys")
        await visitor.whole()
        assert visitor.session.status.match is None
        assert scans(valkey) == before


@pytest.mark.slow
async def test_found_keys_are_left_without_another_scan(valkey: Server, tmp_path: Path) -> None:
    fill(valkey)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.filter("type:list len>100")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the found keys")
        await visitor.until(
            lambda: len(found(visitor).rows) == 1 and found(visitor).search.progress.state.is_over, "the list"
        )
        before = scans(valkey)
        await visitor.press("enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.detail.key == b"list", "the key")
        await visitor.settled()
        await visitor.press("escape")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the found keys again")
        await at_the_tree(visitor, "found keys")
        assert scans(valkey) == before


def found(visitor: Visitor) -> FindScreen:
    screen = visitor.app.screen
    assert isinstance(screen, FindScreen)
    return screen


@asynccontextmanager
async def going(size: tuple[int, int] = (120, 36)) -> AsyncIterator[BrowseUser]:
    """Open the tree with the list over it."""
    async with browsing(FixedSession(), size, notifications=True) as user:
        await call_up(user)
        yield user


async def call_up(user: BrowseUser) -> GotoScreen:
    await user.pilot.press("colon")
    await until(user.pilot, lambda: isinstance(user.pilot.app.screen, GotoScreen))
    return goto(user)


def goto(user: BrowseUser) -> GotoScreen:
    screen = user.pilot.app.screen
    assert isinstance(screen, GotoScreen)
    return screen


async def type_in(user: BrowseUser, text: str) -> GotoScreen:
    """Type a text and wait for what it finds."""
    screen = goto(user)
    screen.line.value = text
    await user.pilot.pause()
    await until(user.pilot, lambda: screen._search is None)
    return screen


async def enter(user: BrowseUser, text: str, arrives: Callable[[], bool]) -> None:
    await type_in(user, text)
    await user.pilot.press("enter")
    await until(user.pilot, arrives)


def listed(screen: GotoScreen) -> list[tuple[GotoKind, str]]:
    return [(entry.kind, entry.text) for entry in screen.list.entries]


@pytest.mark.parametrize("keys", [("colon",), ("ctrl+p",)], ids=["anything", "commands"])
async def test_it_begins_with_tasks_and_ends_with_movement(keys: tuple[str, ...]) -> None:
    async with browsing(FixedSession()) as user:
        for screen_key in ("", "exclamation_mark", "L", "a"):
            await user.pilot.press(*[screen_key] * bool(screen_key), *keys)
            await until(user.pilot, lambda: isinstance(user.pilot.app.screen, GotoScreen))
            kinds = [kind for kind, _ in listed(goto(user))]
            assert kinds == sorted(kinds, key=list(GotoKind).index)
            assert (kinds[0], kinds[-1]) == (GotoKind.TASK, GotoKind.MOVE)
            assert (GotoKind.THEME in kinds) is (GotoKind.LIST in kinds and keys == ("colon",))
            await user.pilot.press("escape")
        await user.pilot.press("colon")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, GotoScreen))
        assert [text for kind, text in listed(goto(user)) if kind is GotoKind.LIST] == [
            f"{word} …" for word in NARROWING
        ]


async def test_every_word_of_redis_finds_what_has_it() -> None:
    async with going() as user:
        entries = goto(user)._entries
        for entry in entries:
            for word in entry.words.split():
                assert entry in [one for _, _, one in matching(entries, wanted(word))], (word, entry.text)


async def test_the_words_that_redis_people_type() -> None:
    expected = {
        "Slow of the server": ("slowlog", "slowlog get", "latency", "latency doctor"),
        "Clients of the server": ("clients", "client list"), "Server": ("info", "health"),
        "Memory": ("memory", "memory usage"), "Memory of the server": ("memory doctor", "maxmemory"),
        "Configuration of the server": ("config", "config get"), "Watch": ("monitor",),
        "Hot keys": ("hotkeys", "object freq"), "Big keys": ("bigkeys",), "Slots": ("cluster", "cluster keyslot"),
        "Compare": ("compare", "diff"), "Keys": ("export", "save"), "Rescan": ("rescan", "refresh"),
        "Persistence & replication of the server": ("bgsave",), "Databases": ("select",),
    }  # fmt: skip
    async with going() as user:
        entries = goto(user)._entries
        for first, texts in expected.items():
            assert [matching(entries, wanted(text))[0][2].text for text in texts] == [first] * len(texts)
        assert (await type_in(user, "slowlog")).list.entry == matching(entries, wanted("slowlog"))[0][2]


async def test_compare_leads_from_the_tree_into_the_analysis() -> None:
    async with going() as user:
        app = user.pilot.app
        await enter(user, "diff", lambda: isinstance(app.screen, AnalyseScreen) or len(app.screen_stack) > 2)
        await until(user.pilot, lambda: bool(app._notifications))
        assert any(isinstance(screen, AnalyseScreen) for screen in app.screen_stack)


async def test_a_namespace_that_nobody_opened() -> None:
    async with going() as user:
        screen = await type_in(user, "session")
        assert listed(screen)[0] == (GotoKind.NAMESPACE, "shop:session:")
        assert (GotoKind.KEY, "shop:session:0000") in listed(screen)
        await user.pilot.press("enter")
        await until(user.pilot, lambda: user.name == b"shop:session:")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)


async def test_a_key_by_letters_of_its_name() -> None:
    async with going() as user:
        await enter(user, "key us1199pr", lambda: user.name == b"shop:user:1199:profile")


async def test_a_key_that_is_not_loaded_is_asked_for() -> None:
    async with going() as user:
        screen = await type_in(user, "key nowhere:to:be:found")
        assert [entry.note for entry in screen.list.entries] == ["looks up exactly this key on the server"]
        await user.pilot.press("enter")
        await until(user.pilot, lambda: len(user.pilot.app._notifications) == 1)
        assert "no such key" in next(iter(user.pilot.app._notifications)).message


async def test_enter_waits_for_the_search() -> None:
    async with going() as user:
        goto(user).line.value = "user:77:profile"
        await user.pilot.press("enter")
        await until(user.pilot, lambda: user.name == b"shop:user:77:profile")


@pytest.mark.parametrize("text", ["panel expiry", "expiry"])
async def test_a_panel_from_the_tree_and_from_the_log(text: str) -> None:
    async with going() as user:
        app = user.pilot.app
        await enter(user, "command log", lambda: isinstance(app.screen, LogScreen))
        await call_up(user)
        await enter(user, text, lambda: isinstance(app.screen, AnalyseScreen))
        assert isinstance(app.screen, AnalyseScreen)
        assert app.screen.view.panel.id == "expiry"
        assert not any(isinstance(screen, LogScreen) for screen in app.screen_stack)
        await call_up(user)
        await enter(user, "jobs:failed", lambda: isinstance(app.screen, BrowseScreen) and user.name == b"jobs:failed")


async def test_a_theme_and_a_command() -> None:
    async with going() as user:
        app = user.pilot.app
        other = next(name for name in sorted(app.available_themes) if name != app.theme)
        await enter(user, f"theme {other}", lambda: app.theme == other)
        await call_up(user)
        await enter(user, "cmd help", lambda: isinstance(app.screen, HelpScreen))


async def test_another_database() -> None:
    async with going() as user:
        screen = await type_in(user, "db ")
        assert [(entry.text, entry.note) for entry in screen.list.entries] == [
            ("db0", "5,260 keys"),
            ("db1", "120 keys"),
        ]
        await enter(user, "db 1", lambda: "close" in user.session.asked)
        assert user.pilot.app.options.target.db == 1  # type: ignore[attr-defined]


async def test_tab_fills_the_line_and_escape_closes_it() -> None:
    async with going() as user:
        screen = await type_in(user, "sho")
        await user.pilot.press("tab")
        assert screen.line.value == "shop:"
        await user.pilot.press("escape")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, BrowseScreen))
        assert user.session.asked == []


async def test_the_list_is_clicked_scrolled_and_moved_in() -> None:
    async with going() as user:
        screen = await type_in(user, "db ")
        await user.pilot.press("down")
        assert screen.list.entry is not None
        assert screen.list.entry.text == "db1"
        await user.pilot.press("down")
        assert screen.list.cursor_line == 0
        await user.pilot.click("#goto-list", offset=(4, 1))
        await until(user.pilot, lambda: "close" in user.session.asked)


async def test_hostile_names_are_listed_safely() -> None:
    async with going() as user:
        screen = await type_in(user, "ns hostile")
        assert [kind for kind, _ in listed(screen)] == [GotoKind.NAMESPACE]
        screen = await type_in(user, "key hostile:")
        assert len(screen.list.entries) == 6
        for line in screen.list.lines_in_view:
            check_text("".join(span.text for span in line))


async def test_a_report_from_a_file_has_panels_and_no_servers() -> None:
    app = ReportApp(made_report(), BrowseOptions())
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen))
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, GotoScreen))
        screen = app.screen
        assert isinstance(screen, GotoScreen)
        await app.workers.wait_for_complete()
        kinds = {kind for kind, _ in listed(screen)}
        assert (
            {GotoKind.PANEL, GotoKind.TASK, GotoKind.COMMAND}
            <= kinds
            <= {*COMMAND_KINDS, GotoKind.LIST, GotoKind.PANEL, GotoKind.THEME}
        )
        assert {text for kind, text in listed(screen) if kind is GotoKind.LIST} == {"panel …", "theme …", "cmd …"}
        screen.line.value = "expiry"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen))
        assert isinstance(app.screen, AnalyseScreen)
        assert app.screen.view.panel.id == "expiry"


def test_words_that_narrow() -> None:
    assert wanted("db 3") == Wanted("3", frozenset({GotoKind.DATABASE}))
    assert wanted(":ns shop") == Wanted("shop", frozenset({GotoKind.NAMESPACE}))
    assert wanted("db") == Wanted("db", frozenset(GotoKind))
    assert wanted("dbx 3") == Wanted("dbx 3", frozenset(GotoKind))


TEXTS = st.text("abcAB: ", max_size=8)


@given(st.lists(st.tuples(st.sampled_from(GotoKind), TEXTS), max_size=20), TEXTS)
def test_better_matches_come_first_and_none_is_lost(made: list[tuple[GotoKind, str]], typed: str) -> None:
    entries = [Destination(kind, display_text(text), text.encode()) for kind, text in made]
    query = wanted(typed)
    found = matching(entries, query)
    kinds = [match.kind for match, _, _ in found]
    assert kinds == sorted(kinds)
    for kind, text in made:
        name = text if query.text != query.text.lower() else text.lower()
        if kind in query.kinds and query.text in name:
            is_listed = bool(query.text) or kind is not GotoKind.METRIC
            assert is_listed == any(entry.kind is kind and entry.name == text.encode() for _, _, entry in found)


@given(st.sampled_from(GotoKind), st.text(max_size=60), st.text(max_size=60), st.integers(0, 140))
def test_a_line_fits_its_width(kind: GotoKind, text: str, note: str, width: int) -> None:
    line = entry_line(Destination(kind, display_text(text), b"", display_text(note)), width)
    assert line_width(line) <= max(width, 14)


async def test_typing_does_not_lay_out_the_screen() -> None:
    async with going() as user:
        screen = await type_in(user, "us")
        await user.settled()
        laid_out: list[Size] = []
        screen.screen_layout_refresh_signal.subscribe(screen, lambda one: laid_out.append(one.size), immediate=True)
        await type_in(user, "use")
        await user.pilot.pause()
        assert screen.line.value == "use"
        assert not laid_out


async def test_the_screen_below_is_tinted_as_textual_would(monkeypatch: pytest.MonkeyPatch) -> None:
    async with going() as user:
        screen = goto(user)
        await type_in(user, "us")
        user.screen.tree_pane.key_tree.refresh()
        await user.pilot.pause()
        ours = user.pilot.app.export_screenshot(title="rtui", simplify=True)
        monkeypatch.setattr(GotoScreen, "render", Screen.render)
        screen.refresh()
        await user.pilot.pause()
        assert user.pilot.app.export_screenshot(title="rtui", simplify=True) == ours
