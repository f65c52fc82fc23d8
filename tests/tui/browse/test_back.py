"""Escape goes one step back: to the rows as they were before a filter, to the analysis that a key was opened from."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.tui.analyse.screen import AnalyseScreen
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.test_live import fill
from tests.tui.analyse.visiting_analysis import ask, at_analysis
from tests.tui.visiting import visiting


@pytest.mark.slow
async def test_escape_after_a_glob_finds_the_tree_as_it_was(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({f"shop:{part}:{number}": "x" for part in ("user", "cart") for number in range(300)})
    valkey.admin.mset({f"lock:{number}": "x" for number in range(1000)})
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        assert await visitor.down()
        await visitor.open()
        assert await visitor.down()
        await visitor.open()
        for _ in range(3):
            assert await visitor.down()
        await visitor.settled()
        browse, row, rows, commands = visitor.browse, visitor.row, visitor.tree.rows, visitor.session.status.cost
        shown = [one.key() for one in visitor.tree.rows_in_view]
        await visitor.filter("*cart:1*")
        await visitor.until(lambda: visitor.session.store.keys == 111, "the matches")
        await visitor.until(lambda: visitor.tree.rows is not rows, "their rows")
        await visitor.until_shown("111")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.tree.rows is rows and visitor.row == row, "the tree")
        assert [one.key() for one in visitor.tree.rows_in_view] == shown
        assert visitor.session.status.complete
        assert visitor.session.status.match is None
        assert commands.keys <= visitor.session.status.cost.keys
        assert browse.focused is browse.tree_pane.key_tree


async def test_facts_of_rows_come_after_sorting_what_a_filter_found(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({f"{number:03}:name": "x" for number in range(200)})
    valkey.admin.mset({f"name{number:03}": "x" for number in range(200)})
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.filter("name")
        await visitor.until(lambda: visitor.tree.virtual_size.height > 36, "rows")
        await visitor.until(lambda: not visitor.facts_missing(), "facts")
        await visitor.press("end")
        await visitor.until(lambda: not visitor.facts_missing(), "facts of the last rows")
        await visitor.press("greater_than_sign")
        await visitor.until(lambda: not visitor.facts_missing(), "facts after sorting")
        visitor.session.store.add([b"name000a", b"name000b"])
        await visitor.press("S", "home", "S")
        await visitor.until(lambda: not visitor.facts_missing(), "facts after sorting again")


@pytest.mark.slow
async def test_escape_goes_back_to_the_analysis_that_a_key_was_opened_from(valkey: Server, tmp_path: Path) -> None:
    fill(valkey, 2_000)
    async with at_analysis(target_of(valkey), tmp_path) as visitor:
        await ask(visitor)
        await visitor.press("3")
        await visitor.until_shown("▸shop:huge")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.detail.key == b"shop:huge", "the key")
        await visitor.until_shown("esc Back")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.focused is visitor.browse.detail_pane.body, "the details")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.app.focused is visitor.tree, "the tree")
        await visitor.press("escape")
        await visitor.until(lambda: isinstance(visitor.app.screen, AnalyseScreen), "the analysis")
        await visitor.until_shown("▸shop:huge")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.press("escape")
        await visitor.settled()
        assert visitor.is_browsing
