"""Rows that are on screen a moment longer than what they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.keyspace.slices import finish
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.visiting import visiting


@pytest.mark.parametrize(
    "key", ["right", "enter", "space", "asterisk", "left", "greater_than_sign", "backspace", "right_curly_bracket"]
)
async def test_a_row_of_an_earlier_scan_does_nothing(valkey: Server, tmp_path: Path, key: str) -> None:
    valkey.admin.mset({f"space:{number}:inner": "x" for number in range(3)})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.open()
        visitor.session.store.reset()
        await visitor.press(key)
        await visitor.until(lambda: not len(visitor.tree.rows), "an empty tree")
        await visitor.press("R")
        store, tree = visitor.session.store, visitor.tree
        await visitor.until(
            lambda: tree.cursor is not None and tree.cursor.namespace.root is store.root, "the rows of now"
        )
        await visitor.open()


async def test_rows_that_are_numbered_anew_keep_their_names(valkey: Server, tmp_path: Path) -> None:
    names = [f"key{number}" for number in range(8)]
    valkey.admin.mset(dict.fromkeys(names, "x"))
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        store = visitor.session.store
        store.reset()
        await visitor.until(lambda: not len(visitor.tree.rows), "an empty tree")
        store.add([b"gone1", b"gone1", b"gone2", b"gone2", b"gone3", b"gone4"])
        await visitor.until(lambda: "gone4" in visitor.text(visitor.tree), "the rows")
        store.repeats_possible = True
        finish(store.settle())

        def shown() -> list[str]:
            return [line.split()[0] for line in visitor.text(visitor.tree).splitlines() if line.strip()]

        await visitor.until(lambda: visitor.tree.rows is not None and len(visitor.tree.rows) == 4, "no repeats")
        await visitor.until(lambda: shown() == ["gone1", "gone2", "gone3", "gone4"], "each key once, by its own name")


@pytest.mark.slow
async def test_a_key_that_expires_while_it_is_looked_at(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({"brief": "x", "lasting": "x"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("brief")
        valkey.admin.pexpire("brief", 1_500)
        await visitor.press("r")
        await visitor.until(lambda: "expired" in visitor.text(visitor.tree), "the end in the tree")
        await visitor.until(lambda: "gone" in visitor.text(visitor.tree), "the answer in the tree")
        await visitor.until(lambda: "no longer there" in visitor.text(visitor.pane), "the answer in the details")
