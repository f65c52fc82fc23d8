"""Going to a key by its whole name, listed or not."""

from __future__ import annotations

from pathlib import Path

from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import visiting


async def test_a_key_that_is_not_listed_is_shown(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({"user:1": "one", "user:2": "two", "other:1": "three"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.filter("other:*")
        await visitor.until(lambda: visitor.session.status.match == b"other:*", "the filter")
        await visitor.whole()
        await visitor.filter("user:2")
        await visitor.until(lambda: visitor.detail.key == b"user:2" and visitor.detail.preview is not None, "the key")
        await visitor.until_shown("user:2", "two", "3 bytes")


async def test_a_key_that_is_listed_gets_the_cursor(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({"user:1": "one", "user:2": "two", "other:1": "three"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        for name in ("user:2", "other:1"):
            await visitor.go(name)
            await visitor.until_shown(name)


async def test_a_name_that_does_not_exist_stays_a_search(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({"user:1": "one", "user:2": "two"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.filter("user:")
        await visitor.until_shown("Names with user:", "user")
        await visitor.press("escape")
        await visitor.until_shown("Namespaces")


async def test_a_name_that_reads_like_a_pattern_is_found_before_it_is_taken_for_one(
    valkey: Server, tmp_path: Path
) -> None:
    valkey.admin.mset({"user:[/]": "one", "user:/": "two"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("user:[/]")
        assert visitor.session.status.match is None
        await visitor.filter("user:[:/]")
        await visitor.until(lambda: visitor.session.status.match == b"user:[:/]", "the filter")


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
