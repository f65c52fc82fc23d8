"""The line that goes to anything by name: what it lists, what it narrows to, and where its entries lead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size
from textual.screen import Screen

from rtui.keyspace.text.display import display_text
from rtui.server.options import BrowseOptions
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
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
from rtui.tui.kit.styled_text import line_width
from rtui.tui.log import LogScreen
from rtui.tui.run import ReportApp
from tests.made_report import made_report
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import check_text


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
                found = [one for _, _, one in matching(entries, wanted(word))]
                assert entry in found, (word, entry.text)


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
        screen = goto(user)
        screen.line.value = "user:77:profile"
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
        assert {text for kind, text in listed(screen) if kind is GotoKind.LIST} == {
            "panel …",
            "theme …",
            "cmd …",
        }
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
