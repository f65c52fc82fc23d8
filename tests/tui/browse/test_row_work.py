"""Rows while a scan goes on and begins anew, sorted when it ends, and by what has to be asked of each key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from textual.widgets import OptionList

from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import RowKind, VisibleRows
from rtui.keyspace.slices import finish
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.matching import natural
from rtui.server.scan.progress import Progress, ScanState
from rtui.tui.browse import row_work
from rtui.tui.kit.choice import ChoiceScreen
from tests.clusters import TestCluster
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.browsing import BrowseUser, browsing
from tests.tui.fixed_session import COMPLETE, FixedSession, kind_of, memory_of
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
        assert tree.rows.is_expanded(session.store.root.child(b"shop:").child(b"user:").child(b"7:"))


async def test_a_row_of_an_earlier_scan_does_nothing(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset({f"space:{number}:inner": "x" for number in range(3)})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.open()
        for key in (
            *("right", "enter", "space", "asterisk", "left"),
            "greater_than_sign",
            "backspace",
            "right_curly_bracket",
        ):
            visitor.session.store.reset()
            await visitor.press(key)
            await visitor.until(lambda: not len(visitor.tree.rows), "an empty tree")
            await visitor.press("R")
            store, tree = visitor.session.store, visitor.tree
            await visitor.until(
                lambda tree=tree, store=store: tree.cursor is not None and tree.cursor.namespace.root is store.root,  # type: ignore[misc]
                "the rows of now",
            )
            await visitor.whole()
            await visitor.press("home")
            await visitor.open()


async def test_rows_that_are_numbered_anew_keep_their_names(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.mset(dict.fromkeys([f"key{number}" for number in range(8)], "x"))
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
        await visitor.until(lambda: "no longer exists" in visitor.text(visitor.pane), "the answer in the details")


RUNNING = replace(COMPLETE, complete=False, progress=Progress(state=ScanState.RUNNING, fraction=0.1))


def shuffled(names: Sequence[str]) -> list[bytes]:
    found = [name.encode() for name in names]
    Random(7).shuffle(found)
    return found


def begin(session: FixedSession, keys: Sequence[bytes]) -> None:
    """Have a scan run that has listed these keys."""
    session.status = RUNNING
    session.store.reset()
    session.store.add(keys)
    session.revision += 1


def add(session: FixedSession, keys: Sequence[bytes], state: ScanState | None = None) -> None:
    """List more keys, and end the scan with `state`."""
    session.store.add(keys)
    if state is not None:
        session.store.complete = state is ScanState.DONE
        session.status = COMPLETE if state is ScanState.DONE else replace(RUNNING, progress=Progress(state=state))
    session.revision += 1


def below(user: BrowseUser, prefix: bytes) -> list[bytes]:
    rows = user.screen.tree_pane.names.rows
    keys = [row.key() for row in rows.window(0, len(rows))]
    return [key for key in keys if key.startswith(prefix) and key != prefix]


def header(user: BrowseUser) -> str:
    return "".join(span.text for span in user.screen.tree_pane.header.lines[0])


@pytest.mark.sampled("state")
@pytest.mark.parametrize("state", [ScanState.DONE, ScanState.STOPPED, ScanState.FAILED])
@pytest.mark.parametrize("sort", [Sort.COUNT, Sort.NAME, Sort.NAME_BYTES])
async def test_what_was_opened_meanwhile_is_sorted_at_the_end(state: ScanState, sort: Sort) -> None:
    keys = shuffled([f"run:{number}" for number in range(300)])
    more = shuffled([f"ids:{number:x}:{part}" for number in range(50) for part in range(number % 3 + 1)])
    async with browsing(FixedSession()) as user:
        begin(user.session, keys[:40] + more[:20])
        await user.until(lambda: set(user.listed) == {b"run:", b"ids:"})
        user.screen.tree_pane.work.sort_by(sort, is_reversed=sort is Sort.NAME)
        await user.press("home", "enter", "end", "enter", "up", "up")
        await user.until(lambda: len(user.screen.tree_pane.names.rows) > 50)
        tree = user.screen.tree_pane.key_tree
        add(user.session, keys[40:200])
        await user.until(lambda: len(below(user, b"run:")) == 200 and "unsorted while scanning" in header(user))
        here, line = user.cursor.key(), tree.cursor_line - tree.scroll_offset.y
        unsorted = below(user, b"run:")
        add(user.session, keys[200:] + more[20:], state)
        order = bytes if sort is Sort.NAME_BYTES else natural
        expected = sorted(keys, key=order, reverse=sort is Sort.NAME)
        assert unsorted != expected
        await user.until(lambda: below(user, b"run:") == expected)
        await user.settled()
        assert user.cursor.key() == here
        assert tree.cursor_line - tree.scroll_offset.y == line
        assert "unsorted" not in header(user)


async def test_keys_that_are_numbered_anew_after_the_end_are_sorted_again() -> None:
    keys = shuffled([f"job:{number}" for number in range(3_000)])
    async with browsing(FixedSession()) as user:
        begin(user.session, keys[:40])
        await user.until(lambda: user.listed == [b"job:"])
        await user.press("home", "enter", "down")
        add(user.session, keys[40:] + keys[1_000:1_500], ScanState.DONE)
        await user.until(lambda: len(below(user, b"job:")) == 3_500 and user.screen.tree_pane.names.rows.is_in_order)
        user.session.store.repeats_possible = True
        assert finish(user.session.store.settle()) == 500
        user.session.revision += 1
        await user.until(lambda: below(user, b"job:") == sorted(keys, key=natural))
        await user.until(lambda: "unsorted" not in header(user))


@pytest.mark.slow
def test_a_great_many_keys_of_one_namespace_are_sorted() -> None:
    store = NamespaceStore()
    store.add(shuffled([f"page:{number}" for number in range(260_000)]))
    rows = VisibleRows(store)
    finish(rows.expand(store.root.child(b"page:")))
    assert rows.is_in_order
    assert [row.name for row in rows.window(1, len(rows))] == [b"%d" % number for number in range(260_000)]


async def test_the_rows_of_a_filter_are_sorted_at_the_end_and_all_rows_when_they_are_back() -> None:
    keys = shuffled([f"run:{number}" for number in range(300)])
    async with browsing(FixedSession()) as user:
        begin(user.session, keys[:40])
        await user.until(lambda: user.listed == [b"run:"])
        await user.press("home", "enter", "down", "slash", *"run:2", "down")
        await user.until(lambda: user.screen.tree_pane.names.needle == b"run:2")
        add(user.session, keys[40:], ScanState.DONE)
        expected = sorted((key for key in keys if b"run:2" in key), key=natural)
        await user.until(lambda: below(user, b"run:") == expected)
        await user.press("escape", "escape")
        await user.until(lambda: user.screen.tree_pane.names.needle is None)
        await user.until(lambda: below(user, b"run:") == sorted(keys, key=natural))


async def test_rows_that_the_user_sorts_meanwhile_stay_as_he_wants_them() -> None:
    keys = shuffled([f"run:{number}" for number in range(300)])
    async with browsing(FixedSession()) as user:
        begin(user.session, keys[:40])
        await user.until(lambda: user.listed == [b"run:"])
        await user.press("home", "enter", "down")
        add(user.session, keys[40:], ScanState.DONE)
        user.screen.tree_pane.work.sort_by(Sort.NAME, is_reversed=True)
        await user.until(lambda: below(user, b"run:") == sorted(keys, key=natural, reverse=True))
        await user.settled()
        assert below(user, b"run:") == sorted(keys, key=natural, reverse=True)


async def test_the_schema_is_sorted_at_the_end() -> None:
    names = shuffled([f"{letter}:{part}:x" for letter in "abcdefgh" for part in range(2)])
    async with browsing(FixedSession()) as user:
        begin(user.session, names[:5])
        await user.until(lambda: bool(user.listed))
        user.screen.tree_pane.work.sort_by(Sort.NAME)
        await user.press("F")
        await user.until(lambda: len(user.screen.tree_pane.schema.rows) > 0)
        await user.press("down", "down")
        add(user.session, names[5:], ScanState.DONE)
        view = user.screen.tree_pane.schema

        def first_level() -> list[bytes]:
            return [level.node.name for level in view.rows.rows if level.depth == 0]

        await user.until(lambda: len(first_level()) == 8)
        assert first_level() == sorted(first_level())


@pytest.mark.slow
async def test_a_namespace_opened_at_once_after_the_start_is_sorted(valkey: Server, tmp_path: Path) -> None:
    with valkey.admin.pipeline(transaction=False) as pipeline:
        for start in range(0, 60_000, 1_000):
            pipeline.mset({f"deploy:{number}": "x" for number in range(start, start + 1_000)})
        pipeline.execute()
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.until(lambda: visitor.is_browsing and len(visitor.tree.rows), "a row")
        await visitor.press("enter", "down", "down")
        await visitor.whole()
        rows = visitor.tree.rows
        await visitor.until(lambda: len(rows) == 60_001 and rows.is_in_order, "sorted rows")
        assert [row.name for row in rows.window(1, 60_000)] == [b"%d" % number for number in range(60_000)]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_keys_of_several_nodes_are_sorted_at_the_end(cluster: TestCluster, tmp_path: Path) -> None:
    cluster.fill(b"deploy:%d" % number for number in range(20_000))
    async with visiting(target_of(cluster.members[1].server), tmp_path) as visitor:
        await visitor.until(lambda: visitor.is_browsing and len(visitor.tree.rows), "a row")
        await visitor.press("enter", "down", "down")
        await visitor.whole()
        rows = visitor.tree.rows
        await visitor.until(lambda: len(rows) == 20_001 and rows.is_in_order, "sorted rows")
        assert [row.name for row in rows.window(1, 20_000)] == [b"%d" % number for number in range(20_000)]


NAMES = [b"box:%s" % (b"x" * n) for n in range(1, 30)] + [b"box:%d" % n for n in range(12)]
NAMES += [b"box:profile%d" % n for n in range(3)] + [b"other:1"]
BY_NAME = sorted(NAMES[29:41], key=len)


def keys_listed(user: BrowseUser) -> list[bytes]:
    rows = user.screen.tree_pane.names.rows
    return [row.key() for row in rows.window(0, len(rows)) if row.kind is RowKind.KEY]


def ranked_header(user: BrowseUser) -> str:
    return "".join(span.text for line in user.screen.tree_pane.header.lines for span in line)


async def sort_by(user: BrowseUser, sort: Sort) -> None:
    user.screen.tree_pane.work.sort_by(sort)
    await user.settled()


ASKED: tuple[tuple[Sort, Callable[[bytes], object]], ...] = (
    (Sort.MEMORY, lambda key: -memory_of(key)), (Sort.IDLE, lambda key: -len(key)), (Sort.TYPE, kind_of),
)  # fmt: skip


async def test_keys_are_sorted_by_what_is_asked_of_them_and_the_cursor_stays_on_its_key() -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.press("enter")
        by_name = keys_listed(user)
        await user.go(b"box:7")
        for sort, key in ASKED:
            user.session.asked.clear()
            await sort_by(user, sort)
            listed = keys_listed(user)
            assert listed != by_name
            assert listed == sorted(by_name, key=key)  # type: ignore[arg-type]
            assert user.session.asked == [f"{sort.value} of b'box:'"]
            assert user.name == b"box:7"
            await sort_by(user, Sort.NAME)
            assert keys_listed(user) == by_name


async def test_what_is_opened_later_is_sorted_alike() -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await sort_by(user, Sort.MEMORY)
        assert user.session.asked == []
        await user.press("enter")
        listed = keys_listed(user)
        assert listed == sorted(listed, key=lambda key: -memory_of(key))


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_idle_times_stand_beside_keys_that_are_sorted_by_them(width: int) -> None:
    async with browsing(FixedSession(COMPLETE, NAMES), (width, 40)) as user:
        await user.press("enter")
        assert ("idle" in ranked_header(user)) is (width == 200)  # there is room for it in any order
        await sort_by(user, Sort.IDLE)
        user.screen.flush()
        assert "idle ↓" in ranked_header(user)

        def says_idle_time() -> bool:
            user.screen.flush()
            return "33s" in "".join(span.text for span in user.screen.tree_pane.key_tree.lines_in_view[1])

        await user.until(says_idle_time)


async def test_before_many_keys_are_asked_it_is_said_what_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_work, "FEW_KEYS", 10)
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.press("enter")
        user.screen.tree_pane.work.sort_by(Sort.MEMORY)
        await user.until(lambda: isinstance(user.screen.app.screen, ChoiceScreen))
        shown = user.screen.app.screen.query_one(OptionList).get_option_at_index(0).prompt
        assert "TYPE and MEMORY USAGE of 44 keys" in str(shown)
        assert user.session.asked == []
        by_name = keys_listed(user)
        await user.pilot.press("escape")
        await user.settled()
        assert user.session.asked == []
        assert keys_listed(user) == by_name
        user.screen.flush()
        assert "keys by name, s sorts" in ranked_header(user)
        await user.pilot.press("s", "enter")
        await user.until(lambda: isinstance(user.screen.app.screen, ChoiceScreen))
        await user.pilot.press("enter")
        await user.settled()
        assert keys_listed(user) == sorted(by_name, key=lambda key: -memory_of(key))
        assert "keys by name" not in ranked_header(user)


async def test_more_keys_than_can_be_remembered_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_work, "MOST_WEIGHED", 40)
    async with browsing(FixedSession(COMPLETE, NAMES), notifications=True) as user:
        await user.press("enter")
        await sort_by(user, Sort.TTL)
        assert user.session.asked == []
        assert "44 keys exceed the limit of 40 keys" in str([one.message for one in user.screen.app._notifications])


async def test_escape_ends_it_and_keys_stay_by_name() -> None:
    session = FixedSession(COMPLETE, NAMES)
    session.holds_columns = asyncio.Event()
    async with browsing(session) as user:
        await user.press("enter")
        by_name = keys_listed(user)
        user.screen.tree_pane.work.sort_by(Sort.MEMORY)
        await user.until(lambda: user.screen.tree_pane.ranking.is_under_way)
        user.screen.flush()
        assert "read 0 of 44 keys" in ranked_header(user)
        await user.press("escape")
        assert not user.screen.tree_pane.ranking.is_under_way
        assert keys_listed(user) == by_name
