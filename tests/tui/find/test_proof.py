"""A search in the interface on real servers: what it asks, what is refused, and that the loop is free meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.server.guard.command import Secret
from rtui.server.search.search import Stage
from rtui.tui.find import FindScreen
from tests.monitor import Recorder
from tests.server.guard.harmless import is_harmless
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.find.test_find_screen import said
from tests.tui.tour import minimal_user, plant
from tests.tui.visiting import Visitor, visiting

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
