"""After an analysis its rows answer queries on real servers, and the server is asked nothing unless it has to be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rtui.analysis.humanize import Mark
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import RowKind
from rtui.server.files import rows_folder
from rtui.server.guard.command import Secret
from rtui.server.options import BrowseOptions
from rtui.server.search.search import Stage
from rtui.server.wire.command_log import Purpose
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.find import FindScreen
from rtui.tui.kit.settings import SettingsFile
from tests.monitor import Recorder
from tests.server.guard.harmless import is_harmless
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.find.test_find_screen import said
from tests.tui.test_ten_tasks import Operator
from tests.tui.tour import minimal_user, plant
from tests.tui.visiting import Visitor, visiting


def plant_rows(server: Server, number: int = 24_000) -> None:
    """More keys than of which everything is asked, and more than a list holds."""
    pipeline = server.client().pipeline(transaction=False)
    for at in range(number // 2):
        pipeline.set(f"cart:{at}", "x" * (at % 700), ex=9_000 + at if at % 3 else None)
        pipeline.hset(f"user:{at}", mapping={"name": "n", "at": at})
    pipeline.execute()


@asynccontextmanager
async def analysed(
    server: Server, folder: Path, *, with_files: bool = False, keep_rows: int | None = None
) -> AsyncIterator[Visitor]:
    """The tree after an analysis of all keys."""
    settings = SettingsFile()
    settings.choose("rows.files", with_files)
    options = BrowseOptions(target_of(server), pace="full", keep_rows=keep_rows)
    async with visiting(options.target, folder, app=RtuiApp(options, settings=settings)) as visitor:
        await visitor.whole()
        user = Operator(visitor, server)
        await user.asked_every_key()
        await user.leave()
        yield visitor


def asked_by_searches(visitor: Visitor) -> int:
    return sum(entry.purpose is Purpose.FIND for entry in visitor.session.log.entries)


async def over(visitor: Visitor, before: object = None) -> FindScreen:
    """Wait for the end of another search than one before, and for all that it has found."""

    def is_over() -> bool:
        screen = visitor.app.screen
        return isinstance(screen, FindScreen) and screen.search is not before and screen.search.stage is Stage.OVER

    await visitor.until(is_over, "the end of the search")
    screen = visitor.app.screen
    assert isinstance(screen, FindScreen)
    await visitor.until(lambda: len(screen.rows) == len(screen.search.kept), "what was found")
    return screen


async def back(visitor: Visitor) -> None:
    """Leave a list for the tree."""
    await visitor.press("escape")
    await visitor.until(lambda: visitor.is_browsing, "the tree")


async def all_that_were_found_are_sorted(visitor: Visitor, _server: Server) -> None:
    await search(visitor, "!type:set")
    screen = await over(visitor)
    assert (screen.search.count, len(screen.rows)) == (24_000, 10_000)
    for sort in ("size", "ttl", "key"):
        before = screen.search
        screen._sort_by(sort)
        screen = await over(visitor, before)
        assert screen.rows.sort == sort
        assert screen.search.count == 24_000
    assert [record.key for record in screen.rows.shown()[:3]] == [b"cart:0", b"cart:1", b"cart:2"]
    before = screen.search
    await visitor.press("S")
    screen = await over(visitor, before)
    assert screen.rows.shown()[0].key == b"user:11999"
    before = screen.search
    screen._sort_by(None)
    screen = await over(visitor, before)
    assert len(screen.rows) == 10_000
    await back(visitor)


async def keys_behind_a_number(visitor: Visitor, _server: Server) -> None:
    await visitor.press("a")
    await visitor.until(lambda: isinstance(visitor.app.screen, AnalyseScreen), "the analysis")
    analyse = visitor.app.screen
    assert isinstance(analyse, AnalyseScreen)
    analyse.action_show_panel("types")
    await visitor.until(lambda: analyse.view.table.rows.table.id == "types", "the types, most bytes first")
    await visitor.press("enter")
    screen = await over(visitor)
    assert str(screen.search.query) == "type:hash"
    assert (screen.search.count, screen.search.mark) == (12_000, Mark.EXACT)
    await visitor.press("escape")
    await visitor.until(lambda: visitor.app.screen is analyse, "the analysis")
    await visitor.press("a")
    await visitor.until(lambda: visitor.is_browsing, "the tree")


async def a_query_and_its_age(visitor: Visitor, server: Server) -> None:
    server.client().persist("cart:1")
    screen = await search(visitor, "cart ttl:none")
    assert (screen.search.count, screen.search.mark) == (4_000, Mark.EXACT)
    assert " as of " in said(screen)
    assert "R searches the server" in said(screen)


async def the_keys_of_a_namespace_are_sorted(visitor: Visitor, server: Server) -> None:
    """By rows, and again by the server."""
    await visitor.go("cart:5")
    sent = asked_by_searches(visitor)
    tree = visitor.browse.tree_pane
    tree.work.sort_by(Sort.MEMORY)

    def first() -> bytes | None:
        rows = tree.names.rows
        row = next((row for row in map(rows.row, range(3)) if row is not None and row.kind is RowKind.KEY), None)
        return None if row is None else row.key()

    pipeline = server.client().pipeline(transaction=False)
    for at in range(12_000):
        pipeline.memory_usage(f"cart:{at}")
    sizes = {b"cart:%d" % at: size for at, size in enumerate(pipeline.execute())}
    largest = {key for key, size in sizes.items() if size == max(sizes.values())}
    await visitor.until(lambda: first() in largest, "the order by size")
    assert not tree.ranking.missing(tree.names.rows)
    assert asked_by_searches(visitor) == sent
    tree.work.sort_by(Sort.MEMORY, asks_server=True)
    await visitor.until_shown("Sort 12,000 keys by")


@pytest.mark.slow
async def test_rows_answer_and_the_server_is_asked_only_where_it_has_to_be(valkey: Server, tmp_path: Path) -> None:
    plant_rows(valkey)
    async with analysed(valkey, tmp_path) as visitor:
        for look in (all_that_were_found_are_sorted, keys_behind_a_number, a_query_and_its_age):
            await look(visitor, valkey)
            assert asked_by_searches(visitor) == 0, look
        found = visitor.app.screen
        assert isinstance(found, FindScreen)
        await visitor.press("R")
        screen = await over(visitor, found.search)
        assert (screen.search.count, screen.search.as_of_s) == (4_001, None)
        asked = asked_by_searches(visitor)
        assert asked > 0
        visitor.check_painted()
        screen = await search(visitor, "idle<1d type:hash")
        assert (screen.search.count, screen.search.as_of_s) == (12_000, None)
        assert "The server is asked: the analysis knows OBJECT IDLETIME of some keys only." in said(screen)
        assert asked_by_searches(visitor) > asked
        await back(visitor)
        await the_keys_of_a_namespace_are_sorted(visitor, valkey)


@pytest.mark.slow
async def test_as_many_rows_are_kept_as_are_wanted(valkey: Server, tmp_path: Path) -> None:
    plant_rows(valkey)
    async with analysed(valkey, tmp_path / "none", keep_rows=0) as visitor:
        assert visitor.session.analysis.rows is None
        screen = await search(visitor, "cart type:string")
        assert screen.search.as_of_s is None
    async with analysed(valkey, tmp_path / "some", keep_rows=23_999) as visitor:
        screen = await search(visitor, "cart type:string")
        assert screen.search.as_of_s is None
        assert "since there are more than 23,999 of them; the setting rows.files keeps them in files." in said(screen)
    async with analysed(valkey, tmp_path / "files", keep_rows=9_000, with_files=True) as visitor:
        assert len([*rows_folder().glob("rows-*/*.parquet")]) >= 1
        screen = await search(visitor, "cart type:string")
        assert (screen.search.count, screen.search.mark) == (12_000, Mark.EXACT)
        assert screen.search.as_of_s is not None
        await visitor.session.close()
        assert not [*rows_folder().iterdir()]


async def test_while_an_analysis_goes_on_its_rows_say_at_least(valkey: Server, tmp_path: Path) -> None:
    plant_rows(valkey, 80_000)
    async with visiting(target_of(valkey), tmp_path) as visitor:  # at a gentle pace
        await visitor.whole()
        analysis = visitor.session.analysis
        analysis.begin()

        def pause_with_rows() -> bool:
            if analysis.rows is not None:
                analysis.control.pause()
            return analysis.rows is not None

        await visitor.until(pause_with_rows, "the first rows")
        await visitor.filter("cart type:string")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the list")
        screen = visitor.app.screen
        assert isinstance(screen, FindScreen)
        await visitor.until_shown("The analysis is running: only keys seen so far are searched.", "≥ ")
        await visitor.until(lambda: screen.search.count, "keys")
        assert (screen.search.count < 40_000, screen.search.mark) == (True, Mark.AT_LEAST)
        analysis.control.resume()
        await over(visitor)
        await visitor.until_shown("40,000 keys")
        assert (screen.search.count, screen.search.mark) == (40_000, Mark.EXACT)
        assert asked_by_searches(visitor) == 0


QUERIES = (
    "ttl:none type:string", "size>1 enc:listpack,embstr", "len>3", "in:every ttl<10m", "slot:0-8000 !cart", "idle<9d",
)  # fmt: skip


async def search(visitor: Visitor, query: str) -> FindScreen:
    if isinstance(visitor.app.screen, FindScreen):
        await visitor.press("escape")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "the tree")
    await visitor.press("slash")
    line = visitor.browse.filter_input
    await visitor.until(lambda: visitor.app.focused is line, "the line")
    await visitor.paste(query)
    await visitor.until(lambda: line.value == query, "the query")
    await visitor.press("enter")

    def is_over() -> bool:
        screen = visitor.app.screen
        return isinstance(screen, FindScreen) and screen.search.stage is Stage.OVER

    await visitor.until(is_over, f"the end of {query}")
    screen = visitor.app.screen
    assert isinstance(screen, FindScreen)
    await visitor.until(lambda: bool(screen.status_bar.lines), "what is said of it")
    return screen


@pytest.mark.slow
async def test_searches_of_the_minimal_user_ask_nothing_else(server: Server, tmp_path: Path) -> None:
    plant(server)
    server.admin.execute_command("ACL", "LOG", "RESET")
    user, password = minimal_user(server)
    target = target_of(server, user=user, password=password)
    with Recorder(server) as recorder:
        async with visiting(target, tmp_path) as visitor:
            await visitor.whole()
            for query in QUERIES:
                screen = await search(visitor, query)
                assert screen.search.failure is None, query
                visitor.check_painted()
    own = [recorded.argv for recorded in recorder.named("rtui")]
    assert own
    assert [argv for argv in own if not is_harmless(argv)] == []
    assert server.admin.execute_command("ACL", "LOG") == []


async def test_a_refused_term_is_said_with_what_helps(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    valkey.admin.execute_command(
        *["ACL", "SETUSER", "half", "on", ">word", "~*", "&*", "+@all", "-memory", "-memory|usage"]
    )
    target = target_of(valkey, user="half", password=Secret("word"))
    async with visiting(target, tmp_path) as visitor:
        await visitor.whole()
        screen = await search(visitor, "size>1M")
        await visitor.until(lambda: "size>1M needs MEMORY USAGE" in said(screen), "why")
        screen = await search(visitor, "ttl:none")
        await visitor.until(lambda: len(screen.rows) > 0, "other terms to be answered")
