"""A key that vanishes or changes while one works with its value, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import visiting


@pytest.mark.slow
async def test_a_key_that_vanishes_or_changes_while_one_works_with_it(valkey: Server, tmp_path: Path) -> None:
    client = valkey.client()
    client.hset("key", mapping={f"field{n}": n for n in range(1_000)})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("key")
        await visitor.press("enter")
        view = visitor.pane.body
        await visitor.until(lambda: visitor.app.focused is view and view.item is not None, "the value")
        client.delete("key")
        await visitor.press("n")
        await visitor.until_shown("gone")
        client.rpush("key", "a", "b")
        await visitor.press("r")
        await visitor.until_shown("1–2 of 2")
        assert view.item is not None
        visitor.check_harmless()


async def test_a_key_that_was_replaced_by_another_type_shows_that_one(valkey: Server, tmp_path: Path) -> None:
    client = valkey.client()
    client.rpush("jobs", *range(300))
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.go("jobs")
        await visitor.press("right")
        await visitor.until(lambda: visitor.app.focused is visitor.pane.body, "the value")
        client.delete("jobs")
        client.hset("jobs", mapping={"status": "moved"})
        await visitor.press("n")
        await visitor.until(lambda: visitor.detail.facts is not None and visitor.detail.facts.type == b"hash", "a hash")
        await visitor.until_shown("status", "moved")
