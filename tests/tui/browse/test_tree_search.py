"""Going to a key by its name, and Escape, which goes one step back."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.tui.analyse.screen import AnalyseScreen
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.test_live import fill
from tests.tui.analyse.visiting_analysis import ask, at_analysis
from tests.tui.visiting import visiting


async def test_a_name_leads_to_its_key_or_stays_a_search(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({"user:1": "one", "user:2": "two", "other:1": "three", "user:[/]": "four", "user:/": "five"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        for name in ("user:2", "other:1", "user:[/]"):  # the last one is found before it is taken for a pattern
            await visitor.go(name)
            await visitor.until_shown(name)
        assert visitor.session.status.match is None
        await visitor.filter("user:")
        await visitor.until_shown("Keys matching user:", "user")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.browse.tree_pane.names.needle is None, "all names")
        for pattern in (b"user:[:/]", b"other:*"):
            await visitor.filter(pattern.decode())
            await visitor.until(lambda wanted=pattern: visitor.session.status.match == wanted, "the filter")  # type: ignore[misc]
            await visitor.whole()
        await visitor.filter("user:2")  # which is not listed
        await visitor.until(lambda: visitor.detail.key == b"user:2" and visitor.detail.preview is not None, "the key")
        await visitor.until_shown("user:2", "two", "3 bytes")


async def test_looking_a_key_up_tells_its_idle_time_before_rtui_reads_it(redis70: Server, tmp_path: Path) -> None:
    client = redis70.client()
    client.mset({"user:104": "one", "user:2": "two", "other:1": "three"})
    client.execute_command("RESTORE", "user:104", 0, client.dump("user:104"), "REPLACE", "IDLETIME", 230)
    async with visiting(target_of(redis70), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("user:104")
        await visitor.until(lambda: visitor.detail.key == b"user:104" and visitor.detail.preview is not None, "the key")
        facts = visitor.detail.facts
        assert facts is not None
        assert isinstance(facts.idle_s, int)
        assert facts.idle_s >= 230
        await visitor.until_shown("3m 5")


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
        await visitor.until_shown("!shop:huge")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.detail.key == b"shop:huge", "the key")
        await visitor.until_shown("esc Back")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.focused is visitor.browse.detail_pane.body, "the details")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.app.focused is visitor.tree, "the tree")
        await visitor.press("escape")
        await visitor.until(lambda: isinstance(visitor.app.screen, AnalyseScreen), "the analysis")
        await visitor.until_shown("!shop:huge")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.is_browsing, "the tree")
        await visitor.press("escape")
        await visitor.settled()
        assert visitor.is_browsing
