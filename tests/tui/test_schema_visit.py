"""The schema of a real server: scanned, drilled into, analysed, and left for the names again."""

from __future__ import annotations

from pathlib import Path

from rtui.server.search.search import Stage
from rtui.server.wire.target import parse_target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.find.screen import FindScreen
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting


def plant(server: Server) -> None:
    pipeline = server.client().pipeline(transaction=False)
    for number in range(200):
        pipeline.hset(f"user:{number}:profile", "name", "x")
        if number % 20:
            pipeline.sadd(f"user:{number}:orders", 1, 2)
        pipeline.set(f"rank_daily_{number}", "x", ex=3600)
    pipeline.set(b"odd:\x1b[31m\xff[/]", "x")
    pipeline.execute()


def pattern(visitor: Visitor) -> bytes:
    level = visitor.browse.level
    return b"" if level is None else level.pattern


async def test_a_walk_through_the_schema(valkey: Server, tmp_path: Path) -> None:
    plant(valkey)
    async with visiting(parse_target(valkey.url), tmp_path) as visitor:
        await visitor.whole()
        await visitor.press("F")
        await visitor.until_shown("Schema", "{id} ×200", "rank_daily_{n} ×200", "orders", "390")
        visitor.check_painted()
        for key, wanted in (("down", b"user:{id}:"), ("down", b"user:{id}:profile"), ("down", b"user:{id}:orders")):
            await visitor.press(key)
            await visitor.until(lambda wanted=wanted: pattern(visitor) == wanted, "the next level")  # type: ignore[misc]
        await visitor.press("enter")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the list of keys")
        find = visitor.app.screen
        assert isinstance(find, FindScreen)
        await visitor.until(lambda: find.search.stage is Stage.OVER, "all keys")
        assert find.search.count == 190
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "the key in the tree of names")
        await visitor.until(lambda: (visitor.detail.key or b"").endswith(b":orders"), "its details")
        assert not visitor.browse.tree_pane.is_schema
        await visitor.press("escape")
        await visitor.until(lambda: isinstance(visitor.app.screen, FindScreen), "the list again")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "the tree")
        await visitor.press("a")
        await visitor.until(lambda: isinstance(visitor.app.screen, AnalyseScreen), "the analysis")
        await visitor.press("r")
        await visitor.until(lambda: visitor.session.analysis.status.age_s is not None, "its end")
        await visitor.press("escape")
        await visitor.until(lambda: visitor.app.screen is visitor.browse, "the tree")
        await visitor.press("F", "end")
        await visitor.until_shown("no TTL", "{id} ×200")
        await visitor.press("home")
        await visitor.until(lambda: pattern(visitor) == b"user:", "the first level")
        await visitor.until_shown("hash", "200", "set", "190", "None of the keys expires.")
        visitor.check_harmless()
        await visitor.press("escape")
        await visitor.until(lambda: visitor.tree.display and visitor.row.key() == b"user:", "the names")
