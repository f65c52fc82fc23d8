from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widget import Widget
from textual.widgets import OptionList

from rtui.keyspace.rows.rows import RowKind
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.matching import natural
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.identity import Outdated
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.shown_value import Tab
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.kit.choice import ChoiceScreen, SwitchScreen
from tests.conftest import known
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.analysis_tour import ask, at_analysis
from tests.tui.analyse.test_live import fill
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import COMPLETE, FixedSession
from tests.tui.visiting import visiting

RUNNING = replace(COMPLETE, complete=False, progress=Progress(state=ScanState.RUNNING, fraction=0.5, keys_per_s=1e5))


def is_displayed(widget: Widget) -> bool:
    return bool(widget.display)


async def test_the_largest_namespace_comes_first_and_arrows_and_letters_open_close_and_move() -> None:
    async with browsing() as user:
        assert user.name == b"shop:"
        assert "user:" in user.body
        assert not user.cursor.namespace.listed
        await user.press("right")
        await user.press("l")
        assert user.cursor.depth == 1
        await user.press("j", "k", "down", "up")
        assert user.cursor.depth == 1
        await user.press("h")
        assert user.name == b"shop:"
        await user.press("left")
        assert user.listed[1] == b"lock:"


async def test_the_cursor_stays_on_its_row_whatever_arrives_above() -> None:
    async with browsing(FixedSession(RUNNING)) as user:
        await user.press("right", "end")
        name, line = user.name, user.screen.tree_pane.key_tree.cursor_line
        top = user.screen.tree_pane.key_tree.scroll_offset.y
        user.session.store.add([b"shop:new%04d:x" % number for number in range(500)])
        user.session.revision += 1
        await user.until(lambda: user.screen.tree_pane.key_tree.cursor_line == line + 500)
        assert user.name == name
        assert user.screen.tree_pane.key_tree.scroll_offset.y == top + 500


async def test_rows_stay_where_they_are_until_they_are_sorted() -> None:
    async with browsing(FixedSession(RUNNING)) as user:
        await user.press("down", "up")
        user.session.store.add([b"lock:%06d" % number for number in range(9_000)])
        user.session.revision += 1
        await user.until(lambda: user.screen._shown[0] == user.session.revision)
        assert user.listed[:2] == [b"shop:", b"lock:"]
        await user.pilot.press("s", "enter")
        await user.settled()
        assert user.listed[:2] == [b"lock:", b"shop:"]


def remembered(user: BrowseUser) -> str:
    return user.screen.settings.settings.tree.sort


async def test_sorting_by_name_and_back() -> None:
    async with browsing() as user:
        await user.pilot.press("s")
        await user.pilot.press("down", "enter")
        await user.settled()
        names = [row.name for row in user.screen.tree_pane.key_tree.rows_in_view if row.kind is RowKind.NAMESPACE]
        assert names == sorted(names, key=natural)
        await user.press("less_than_sign", "home")
        assert user.name == b"shop:"
        assert remembered(user) == "keys"
        await user.press("greater_than_sign", "S")
        listed = [row.name for row in user.screen.tree_pane.key_tree.rows_in_view if row.kind is RowKind.NAMESPACE]
        assert listed == sorted(listed, key=natural, reverse=True)
        assert remembered(user) == "-name"
        await user.pilot.click("#tree-header", offset=(2, 0))
        await user.settled()
        assert remembered(user) == "name"


async def test_typing_jumps_among_siblings_without_commands_and_escape_ends_it() -> None:
    async with browsing() as user:
        await user.press("f", "l", "o", "c")
        assert user.name == b"lock:"
        assert "jump to loc" in user.footer
        await user.press("escape")
        assert "jump to" not in user.footer
        await user.press("f", "s", "h", "q", "p")
        assert user.session.asked == []
        assert user.screen.is_attached


async def test_plain_text_filters_what_is_loaded_and_escape_brings_everything_back() -> None:
    async with browsing() as user:
        await user.press("down")
        await user.press("slash", *"cart")
        assert all(b"cart" in name for name in user.listed if not name.endswith(b":"))
        assert len(user.listed) > 1
        await user.press("escape")
        assert user.name == b"lock:"
        assert user.listed[0] == b"shop:"
        await user.press("slash", *"cart", "down")
        head = "".join(span.text for line in user.screen.detail_pane._head.lines for span in line)
        assert "exact, within the filter" in head


@pytest.mark.slow
async def test_an_exact_name_is_looked_up_without_a_scan_and_a_glob_is_asked_of_the_server() -> None:
    async with browsing() as user:
        await user.press("slash", *"shop:user:7:orders", "enter")
        await user.until(lambda: user.name == b"shop:user:7:orders")
        assert user.session.asked == []
        await user.press("slash", *"user:*:x", "enter")
        assert user.session.asked == ["filter b'user:*:x'"]
        await user.press("escape")
        assert user.session.asked[-1] == "filter None"


async def test_enter_goes_into_the_details_at_any_size_and_escape_comes_back() -> None:
    async with browsing(size=(80, 24)) as user:
        await user.go(b"plain")
        assert not is_displayed(user.screen.detail_pane)
        await user.press("enter")
        assert is_displayed(user.screen.detail_pane)
        assert not is_displayed(user.screen.tree_pane)
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("escape")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)
        assert not is_displayed(user.screen.detail_pane)
        await user.go(b"plain")
        await user.press("enter")
        for width, height in ((200, 50), (30, 8), (120, 36)):
            await user.pilot.resize_terminal(width, height)
            await user.settled()
        assert '"id": 106' in user.body
        assert user.screen.tree_pane.key_tree.cursor_line in range(user.screen.tree_pane.key_tree.virtual_size.height)


async def test_tabs_the_slot_and_pages() -> None:
    async with browsing() as user:
        await user.go(b"{user:7}:cart")
        await user.press("2")
        assert user.screen.detail_pane.tab is Tab.SLOT
        assert "{user:7}:cart" in user.body
        await user.press("1")
        assert '"id": 106' in user.body
        await user.pilot.click("#detail-tabs", offset=(11, 1))
        assert user.screen.detail_pane.tab is Tab.SLOT
        await user.press("1")
        await user.go(b"jobs")
        await user.press("n")
        assert '{"job": 100}' in user.body
        await user.press("b")
        assert '{"job": 0}' in user.body
        assert "Next page" in user.footer


async def test_pause_pace_and_cost() -> None:
    async with browsing(FixedSession(RUNNING)) as user:
        await user.press("p")
        assert user.session.asked == ["paused"]
        await user.press("p", "plus", "plus", "minus", "i")
        assert user.session.asked == ["paused", "running"]
        assert user.session.status.pace.value == "normal"
        said = "".join(span.text for span in user.screen.status_bar.lines[0])
        assert "commands" in said
        assert "pace normal" in said


async def test_columns_can_be_switched_off() -> None:
    async with browsing() as user:
        await user.pilot.press("c")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, SwitchScreen))
        await user.pilot.press("enter")
        await user.pilot.press("escape")
        await user.settled()
        assert "keys" not in "".join(span.text for span in user.screen.tree_pane.header.lines[0])


async def test_copies_go_to_the_clipboard_as_they_are() -> None:
    async with browsing() as user:
        await user.go(b"hostile:\x1b[31mred")
        await user.press("y")
        assert user.pilot.app.clipboard == '"hostile:\\x1b[31mred"'
        await user.pilot.press("Y")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, ChoiceScreen))
        options = user.pilot.app.screen.query_one(OptionList)
        options.highlighted = next(at for at in range(options.option_count) if "GET" in str(options.options[at].prompt))
        await user.pilot.press("enter")
        await user.settled()
        assert user.pilot.app.clipboard.startswith("redis-cli -h 10.0.0.5")


async def test_a_lost_connection_is_said_once_and_costs_the_details_only() -> None:
    async with browsing(notifications=True) as user:
        user.session.failure = ConnectionLost("the server closed the connection")
        user.session.status = replace(user.session.status, link=Lost(None, 1, 0.0))
        user.session.revision += 1
        user.screen.tree_pane.reveal(b"plain")
        await user.until(lambda: "the server closed the connection" in user.body)
        assert len(user.pilot.app._notifications) == 0
        assert "connection lost" in "".join(span.text for span in user.screen.status_bar.lines[0])


async def test_an_unforeseen_failure_is_one_message_without_values(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> None:
        raise LookupError("s3cret")

    session = FixedSession()
    monkeypatch.setattr(session, "rescan", fails)
    async with browsing(session, notifications=True) as user:
        await user.press("R")
        messages = [notice.message for notice in user.pilot.app._notifications]
        assert len(messages) == 1
        assert "a fault of rtui itself (LookupError at " in messages[0]
        assert "s3cret" not in messages[0]


async def test_mouse_click_opens_and_double_click_reads() -> None:
    async with browsing() as user:
        await user.pilot.click("#tree", offset=(1, 0))
        await user.settled()
        assert user.cursor.namespace.listed
        await user.pilot.click("#tree", offset=(10, 1))
        await user.settled()
        assert user.cursor.depth == 1


REFUSED = Progress(state=ScanState.FAILED, fraction=None, reason=SafeText("NOPERM SCAN is not allowed"))


@pytest.mark.parametrize(
    ("status", "texts"),
    [
        (COMPLETE, ("db0 is empty", "db1 has 120")),
        (
            replace(COMPLETE, outdated=Outdated.GREW),
            ("db0 was empty", "had no keys when it was scanned. Press R to rescan."),
        ),
        (replace(COMPLETE, complete=False, progress=REFUSED), ("NOPERM",)),
    ],
    ids=["empty", "no longer", "refused"],
)
async def test_a_tree_without_rows_says_why(status: BrowsingStatus, texts: tuple[str, ...]) -> None:
    async with browsing(FixedSession(status, [])) as user:
        said = "\n".join("".join(span.text for span in line) for line in user.screen.tree_pane._notice.lines)
        assert all(text in said for text in texts)


@pytest.mark.slow
async def test_no_terminal_is_too_small_or_too_large() -> None:
    async with browsing(size=(20, 6)) as user:
        for size in ((20, 6), (40, 10), (99, 24), (101, 30), (300, 90)):
            await user.pilot.resize_terminal(*size)
            await user.press("home", "right", "down", "right", "down", "enter")
            await user.press("escape", "slash", "c", "escape")
            assert user.screen.is_attached


async def test_a_filter_that_no_name_passes_shows_why_without_styling_the_pane_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    styled: list[str] = []

    def style(pane: TreePane, *, animate: bool = True) -> None:
        styled.append("the pane")
        Widget.update_node_styles(pane, animate=animate)

    async with browsing() as user:
        pane = user.screen.tree_pane
        monkeypatch.setattr(TreePane, "update_node_styles", style, raising=False)
        user.screen.search.show_names(b"no such name")
        await user.until(lambda: pane.query_one("#notice").size.height > 1)
        assert not pane.key_tree.size.height
        user.screen.search.show_names(b"")
        await user.until(lambda: pane.key_tree.size.height > 1)
        assert not pane.query_one("#notice").size.height
        assert not styled


async def test_another_scan_puts_the_largest_first_again() -> None:
    async with browsing(FixedSession(RUNNING)) as user:
        await user.press("down", "R")
        user.session.store.reset()
        user.session.store.add([b"a:1", b"b:1", b"b:2"])
        user.session.store.complete = True
        user.session.status = replace(COMPLETE, generation=user.session.status.generation)
        user.session.revision += 1
        await user.until(lambda: user.listed == [b"b:", b"a:"] and user.name in user.listed)


async def test_the_end_of_a_scan_does_not_take_the_cursor_back_that_has_just_moved() -> None:
    """Nothing is handled between the keypress and the end: the move itself counts, not the message about it."""
    async with browsing(FixedSession(RUNNING)) as user:
        user.screen.tree_pane.key_tree.action_last()
        name = user.name
        user.session.store.add([b"lock:%d" % number for number in range(1_000)])
        user.session.status = replace(user.session.status, complete=True)
        user.screen.show_changes()
        assert user.name == name
        await user.settled()
        assert user.name == name


async def test_rows_are_not_sorted_when_the_cursor_moves_before_that_is_done() -> None:
    async with browsing(FixedSession(RUNNING)) as user:
        tree, session = user.screen.tree_pane.key_tree, user.session
        rows = tree.rows
        before = rows.window(0, len(rows))
        session.store.clock = itertools.count().__next__
        session.store.add([b"lock:%d" % number for number in range(1_000)])
        session.status = replace(session.status, complete=True)
        user.screen.show_changes()
        assert [worker.description for worker in tree.workers] == ["tree"]
        tree.action_cursor_down()
        name = user.name
        await user.settled()
        assert user.name == name
        assert rows.window(0, len(rows)) == before


LONG_LEAF = b"shop:cart:3f2b8c1e-77aa-4d10-9c55-0123456789ab"


async def test_a_name_that_is_whole_at_80_columns_is_whole_at_120() -> None:
    async with browsing(FixedSession(names=[LONG_LEAF, b"short"]), size=(80, 24)) as user:
        tree = user.screen.tree_pane.key_tree
        name = LONG_LEAF.rsplit(b":")[-1].decode()

        def is_shown() -> bool:
            return any(name in "".join(span.text for span in line) for line in tree.lines_in_view)

        await user.go(LONG_LEAF)
        assert is_shown()
        await user.pilot.resize_terminal(120, 36)
        await user.until(lambda: not user.screen.has_class("-narrow"))
        await user.settled()
        assert is_shown()
        assert tree.row_layout.fields


async def test_what_a_filter_finds_is_a_lower_bound_where_names_were_not_kept() -> None:
    session = FixedSession()
    session.store = NamespaceStore(budget_bytes=20_000)
    for start in range(0, 9_000, 500):
        session.store.add([b"big:%06d" % number for number in range(start, start + 500)])
    session.store.add([b"small:%d" % number for number in range(3)])
    session.store.complete = True
    async with browsing(session) as user:
        pane = user.screen.tree_pane
        await user.press("slash", *"small")
        await user.until(lambda: pane.names.not_searched == 9_000 and not pane.names.is_searching)
        assert not pane.totals().complete


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
        facts = known(visitor.detail.facts)
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
