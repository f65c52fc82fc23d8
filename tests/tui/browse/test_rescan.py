"""Scanning again: what was open is open again, and the cursor is where it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rtui.server.scan.progress import Progress, ScanState
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.browsing import browsing
from tests.tui.fixed_session import COMPLETE, FixedSession
from tests.tui.visiting import Visitor, visiting


def shown(visitor: Visitor) -> list[bytes]:
    return [row.key() for row in visitor.tree.rows_in_view]


async def rescan(visitor: Visitor) -> None:
    root = visitor.session.store.root
    await visitor.press("R")
    await visitor.until(lambda: visitor.session.store.root is not root, "another scan")
    await visitor.until(
        lambda: visitor.session.status.complete and visitor.browse.tree_pane.work._reopening is None, "rows"
    )
    await visitor.whole()


async def test_a_rescan_keeps_what_was_open_and_where_the_cursor_was(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({f"shop:{part}:{number:02}": "x" for part in ("user", "cart") for number in range(30)})
    valkey.admin.mset({f"{letter}:1": "x" for letter in "abcdefgh"})
    async with visiting(target_of(valkey), tmp_path, size=(120, 36)) as visitor:
        await visitor.whole()
        await visitor.go("shop:user:17")
        await visitor.press("tab", "tab")
        await visitor.settled()
        before, line = shown(visitor), visitor.tree.cursor_line - visitor.tree.scroll_offset.y
        valkey.admin.set("shop:user:17", "something else")
        await rescan(visitor)
        await visitor.settled()
        await visitor.until(lambda: visitor.is_at(b"shop:user:17"), "the key")
        assert visitor.row.namespace.root is visitor.session.store.root
        assert shown(visitor) == before
        assert visitor.tree.cursor_line - visitor.tree.scroll_offset.y == line
        await visitor.until_shown("something else")

        valkey.admin.delete("shop:user:17")
        await rescan(visitor)
        await visitor.until(lambda: visitor.row.key() == b"shop:user:", "the namespace that it was in")
        await visitor.settled()
        assert b"shop:user:16" in shown(visitor)

        valkey.admin.delete(*valkey.admin.keys("shop:*"))
        await visitor.go("c:1")
        await rescan(visitor)
        await visitor.settled()
        assert shown(visitor)[:1] == [b"a:"]
        assert visitor.is_at(b"c:1")

        valkey.admin.delete("c:1")
        await rescan(visitor)
        await visitor.until(lambda: visitor.row.key() in shown(visitor), "a row that there is")
        await visitor.settled()


async def test_who_moves_while_the_keys_come_back_stays_there() -> None:
    session = FixedSession()
    async with browsing(session) as user:
        key = b"shop:user:7:profile"
        await user.go(key)
        tree, pane = user.screen.tree_pane.key_tree, user.screen.tree_pane
        session.status = replace(COMPLETE, complete=False, progress=Progress(state=ScanState.RUNNING, fraction=0.1))
        session.store.reset()
        session.store.add([b"lock:order:1", b"shop:cache:product:1", b"jobs"])
        session.revision += 1
        await user.until(lambda: tree.awaits_cursor and len(tree.rows) > 0)
        assert user.screen.detail_pane.detail.key == key
        await user.press("down")
        here = user.name
        assert here != key
        session.store.add([name for name in session.names if name.startswith(b"shop:user")])
        session.status, session.store.complete = COMPLETE, True
        session.revision += 1
        await user.until(lambda: pane.work._reopening is None)
        await user.settled()
        assert user.name == here
        user_keys = session.store.root.child(b"shop:").child(b"user:")
        assert tree.rows.is_expanded(user_keys.child(b"7:"))
