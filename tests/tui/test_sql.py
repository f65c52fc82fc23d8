"""Statements of SQL on screen: asked after an analysis, led on to keys, ended, and what is said in each state."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.tui.sql import EXAMPLE, StatementLine
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import Visitor, visiting


async def ask(visitor: Visitor, text: str) -> None:
    """Type a statement in place of the one in the line, which an example gives way to, and run it."""
    await visitor.until(lambda: any(line.is_open for line in visitor.app.screen.query(StatementLine)), "the line")
    line = visitor.app.screen.query_one(StatementLine)
    if line.value != EXAMPLE:
        line.value = ""
    await visitor.paste(text)
    await visitor.until(lambda: line.value == text, "the statement in the line")
    await visitor.press("enter")


@pytest.mark.slow
async def test_a_statement_leads_to_keys(valkey: Server, tmp_path: Path) -> None:
    admin = valkey.admin
    for number in range(30):
        admin.hset(f"user:{number}:profile", mapping={"a": "1"})
    admin.set(b"odd\xff", "x" * 5_000)
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.press("Q")
        await visitor.until_shown("No rows to ask yet", EXAMPLE[:60])
        await visitor.press("escape", "a")
        await visitor.until_shown("not analysed yet")
        await visitor.press("enter")
        await visitor.until_shown("exact · 31 keys")
        await visitor.press("Q")
        await ask(visitor, EXAMPLE)
        await visitor.until_shown("2 rows", "user:<id>:profile", "odd\\xff")
        await visitor.press("slash")
        await ask(visitor, "SELECT kye FROM keys")
        await visitor.until_shown("There is no column kye; did you mean key?")
        await ask(visitor, "SELECT key FROM keys WHERE type = 'zset'")
        await visitor.until_shown("No rows ·")
        await ask(
            visitor, "SELECT count(*) FROM keys a, keys b, keys c, keys d, keys e, keys f WHERE a.slot + f.slot = 1"
        )
        await visitor.until_shown("running; Escape ends it")
        await visitor.press("escape")
        await visitor.until_shown("It was stopped.")
        await ask(visitor, "SELECT key, memory_bytes FROM keys ORDER BY 2 DESC LIMIT 3")
        await visitor.until_shown("3 rows", "odd\\xff")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.is_browsing and visitor.detail.key == b"odd\xff", "the key in the tree")
