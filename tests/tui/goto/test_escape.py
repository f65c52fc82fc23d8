"""Escape from wherever one may be leads to the tree, step by step, and never costs a scan."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find.screen import FindScreen
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.visiting_analysis import ask
from tests.tui.visiting import Visitor, visiting

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
    stats = server.admin.info("commandstats")
    return int(stats.get("cmdstat_scan", {"calls": 0})["calls"])


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
