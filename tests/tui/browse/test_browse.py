from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widget import Widget
from textual.widgets import OptionList

from rtui.keyspace.rows.ordering import natural
from rtui.keyspace.rows.rows import RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectionLost
from rtui.tui.browse.columns import ColumnsScreen
from rtui.tui.browse.detail_lines import Tab
from rtui.tui.help.screen import HelpScreen
from rtui.tui.kit.choice import ChoiceScreen
from tests.tui.browsing import browsing, until
from tests.tui.fixed_session import COMPLETE, FixedSession

RUNNING = replace(COMPLETE, complete=False, progress=Progress(state=ScanState.RUNNING, fraction=0.5, keys_per_s=1e5))


def is_displayed(widget: Widget) -> bool:
    return bool(widget.display)


async def test_the_largest_namespace_comes_first_while_nobody_has_moved() -> None:
    async with browsing() as desk:
        assert desk.name == b"shop:"


async def test_arrows_and_letters_open_close_and_move() -> None:
    async with browsing() as desk:
        await desk.press("right")
        await desk.press("l")
        assert desk.cursor.depth == 1
        await desk.press("j", "k", "down", "up")
        assert desk.cursor.depth == 1
        await desk.press("h")
        assert desk.name == b"shop:"
        await desk.press("left")
        assert desk.listed[1] == b"lock:"


async def test_the_cursor_stays_on_its_row_whatever_arrives_above() -> None:
    async with browsing(FixedSession(RUNNING)) as desk:
        await desk.press("right", "end")
        name, line = desk.name, desk.screen.tree_pane.key_tree.cursor_line
        top = desk.screen.tree_pane.key_tree.scroll_offset.y
        desk.session.store.add([b"shop:new%04d:x" % number for number in range(500)])
        desk.session.revision += 1
        await desk.until(lambda: desk.screen.tree_pane.key_tree.cursor_line == line + 500)
        assert desk.name == name
        assert desk.screen.tree_pane.key_tree.scroll_offset.y == top + 500


async def test_rows_stay_where_they_are_until_they_are_sorted() -> None:
    async with browsing(FixedSession(RUNNING)) as desk:
        await desk.press("down", "up")
        desk.session.store.add([b"lock:%06d" % number for number in range(9_000)])
        desk.session.revision += 1
        await desk.until(lambda: desk.screen._shown[0] == desk.session.revision)
        assert desk.listed[:2] == [b"shop:", b"lock:"]
        await desk.press("S")
        assert desk.listed[:2] == [b"lock:", b"shop:"]


async def test_sorting_by_name_and_back() -> None:
    async with browsing() as desk:
        await desk.press("s")
        names = [row.name for row in desk.screen.tree_pane.key_tree.rows_in_view if row.kind is RowKind.NAMESPACE]
        assert names == sorted(names, key=natural)
        await desk.press("s", "home")
        assert desk.name == b"shop:"


async def test_typing_jumps_among_siblings_and_escape_ends_it() -> None:
    async with browsing() as desk:
        await desk.press("f", "l", "o", "c")
        assert desk.name == b"lock:"
        assert "jump to loc" in desk.footer
        await desk.press("escape")
        assert "jump to" not in desk.footer


async def test_letters_typed_in_a_jump_are_no_commands() -> None:
    async with browsing() as desk:
        await desk.press("f", "s", "h", "q", "p")
        assert desk.session.asked == []
        assert desk.screen.is_attached


async def test_plain_text_filters_what_is_loaded_and_escape_brings_everything_back() -> None:
    async with browsing() as desk:
        await desk.press("down")
        await desk.press("slash", *"cart")
        assert all(b"cart" in name for name in desk.listed if not name.endswith(b":"))
        assert len(desk.listed) > 1
        await desk.press("escape")
        assert desk.name == b"lock:"
        assert desk.listed[0] == b"shop:"


async def test_a_glob_is_asked_of_the_server() -> None:
    async with browsing() as desk:
        await desk.press("slash", *"user:*:x", "enter")
        assert desk.session.asked == ["filter b'user:*:x'"]
        await desk.press("escape")
        assert desk.session.asked[-1] == "filter None"


async def test_an_exact_name_is_looked_up_and_gone_to_without_a_scan() -> None:
    async with browsing() as desk:
        await desk.press("slash", *"shop:user:7:orders", "enter")
        await desk.until(lambda: desk.name == b"shop:user:7:orders")
        assert desk.session.asked == []


async def test_enter_goes_into_the_details_and_escape_comes_back() -> None:
    async with browsing(size=(80, 24)) as desk:
        await desk.go(b"plain")
        assert not is_displayed(desk.screen.detail_pane)
        await desk.press("enter")
        assert is_displayed(desk.screen.detail_pane)
        assert not is_displayed(desk.screen.tree_pane)
        assert desk.screen.detail_pane.body.has_focus
        await desk.press("escape")
        assert desk.screen.tree_pane.key_tree.has_focus
        assert not is_displayed(desk.screen.detail_pane)


async def test_tabs_and_the_slot() -> None:
    async with browsing() as desk:
        await desk.go(b"{user:7}:cart")
        await desk.press("2")
        assert desk.screen.detail_pane.tab is Tab.SLOT
        assert "{user:7}:cart" in desk.body
        await desk.press("1")
        assert '"id": 106' in desk.body


async def test_pages_turn_forth_and_back() -> None:
    async with browsing() as desk:
        await desk.go(b"jobs")
        await desk.press("n")
        assert '{"job": 100}' in desk.body
        await desk.press("b")
        assert '{"job": 0}' in desk.body
        assert "Next page" in desk.footer


async def test_pause_pace_and_cost() -> None:
    async with browsing(FixedSession(RUNNING)) as desk:
        await desk.press("p")
        assert desk.session.asked == ["paused"]
        await desk.press("p", "plus", "plus", "minus", "i")
        assert desk.session.asked == ["paused", "running"]
        assert desk.session.status.pace.value == "normal"
        said = "".join(span.text for span in desk.screen.status_bar.lines[0])
        assert "commands" in said
        assert "pace normal" in said


async def test_columns_can_be_switched_off() -> None:
    async with browsing() as desk:
        await desk.pilot.press("c")
        await until(desk.pilot, lambda: isinstance(desk.pilot.app.screen, ColumnsScreen))
        await desk.pilot.press("enter")
        await desk.pilot.press("escape")
        await desk.settled()
        header = desk.screen.tree_pane._header.lines[0]
        assert "keys" not in "".join(span.text for span in header)


async def test_copies_go_to_the_clipboard_as_they_are() -> None:
    async with browsing() as desk:
        await desk.go(b"hostile:\x1b[31mred")
        await desk.press("y")
        assert desk.pilot.app.clipboard == '"hostile:\\x1b[31mred"'
        await desk.pilot.press("Y")
        await until(desk.pilot, lambda: isinstance(desk.pilot.app.screen, ChoiceScreen))
        options = desk.pilot.app.screen.query_one(OptionList)
        options.highlighted = next(at for at in range(options.option_count) if "GET" in str(options.options[at].prompt))
        await desk.pilot.press("enter")
        await desk.settled()
        assert desk.pilot.app.clipboard.startswith("redis-cli -h 10.0.0.5")


async def test_help_opens_and_closes() -> None:
    async with browsing() as desk:
        await desk.pilot.press("question_mark")
        await until(desk.pilot, lambda: isinstance(desk.pilot.app.screen, HelpScreen))
        await desk.pilot.press("escape")
        await until(desk.pilot, lambda: desk.pilot.app.screen is desk.screen)


async def test_a_lost_connection_is_said_once_and_costs_the_details_only() -> None:
    async with browsing(notifications=True) as desk:
        desk.session.failure = ConnectionLost("the server closed the connection")
        desk.session.status = replace(desk.session.status, link=Lost(None, 1, 0.0))
        desk.session.revision += 1
        desk.screen.tree_pane.reveal(b"plain")
        await desk.until(lambda: "the server closed the connection" in desk.body)
        assert len(desk.pilot.app._notifications) == 0
        assert "connection lost" in "".join(span.text for span in desk.screen.status_bar.lines[0])


async def test_an_unforeseen_failure_is_one_message_without_values(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> None:
        raise LookupError("s3cret")

    session = FixedSession()
    monkeypatch.setattr(session, "rescan", fails)
    async with browsing(session, notifications=True) as desk:
        await desk.press("R")
        messages = [notice.message for notice in desk.pilot.app._notifications]
        assert len(messages) == 1
        assert "a fault of rtui itself (LookupError at " in messages[0]
        assert "s3cret" not in messages[0]


async def test_mouse_click_opens_and_double_click_reads() -> None:
    async with browsing() as desk:
        await desk.pilot.click("#tree", offset=(1, 0))
        await desk.settled()
        assert desk.cursor.namespace.listed
        await desk.pilot.click("#tree", offset=(10, 1))
        await desk.settled()
        assert desk.cursor.depth == 1


async def test_a_namespace_says_what_is_inside_without_being_opened() -> None:
    async with browsing() as desk:
        assert "user:" in desk.body
        assert not desk.cursor.namespace.listed


async def test_an_empty_database_says_so_and_names_others() -> None:
    async with browsing(FixedSession(COMPLETE, [])) as desk:
        said = "\n".join("".join(span.text for span in line) for line in desk.screen.tree_pane._notice.lines)
        assert "db0 is empty" in said
        assert "db1 has 120" in said


async def test_a_failed_scan_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = SafeText("NOPERM SCAN is not allowed")
    status = replace(COMPLETE, complete=False, progress=Progress(state=ScanState.FAILED, fraction=None, reason=reason))
    async with browsing(FixedSession(status, [])) as desk:
        said = "\n".join("".join(span.text for span in line) for line in desk.screen.tree_pane._notice.lines)
        assert "NOPERM" in said


@pytest.mark.parametrize("size", [(20, 6), (40, 10), (99, 24), (101, 30), (300, 90)], ids=str)
async def test_no_terminal_is_too_small_or_too_large(size: tuple[int, int]) -> None:
    async with browsing(size=size) as desk:
        await desk.press("right", "down", "right", "down", "enter")
        await desk.press("escape", "slash", "c", "escape")
        assert desk.screen.is_attached


async def test_a_terminal_may_change_its_size_at_any_time() -> None:
    async with browsing(size=(80, 24)) as desk:
        await desk.go(b"plain")
        await desk.press("enter")
        for width, height in ((200, 50), (30, 8), (120, 36)):
            await desk.pilot.resize_terminal(width, height)
            await desk.settled()
        assert '"id": 106' in desk.body
        assert desk.screen.tree_pane.key_tree.cursor_line in range(desk.screen.tree_pane.key_tree.virtual_size.height)


async def test_what_a_filter_lets_through_is_not_told_as_everything() -> None:
    async with browsing() as desk:
        await desk.press("slash", *"cart", "down")
        head = "".join(span.text for line in desk.screen.detail_pane._head.lines for span in line)
        assert "exact, of what the filter shows" in head


async def test_another_scan_puts_the_largest_first_again() -> None:
    async with browsing(FixedSession(RUNNING)) as desk:
        await desk.press("down", "R")
        desk.session.store.reset()
        desk.session.store.add([b"a:1", b"b:1", b"b:2"])
        desk.session.store.complete = True
        desk.session.status = replace(desk.session.status, complete=True)
        desk.session.revision += 1
        await desk.until(lambda: desk.listed == [b"b:", b"a:"] and desk.name == b"b:")


LONG_LEAF = b"shop:cart:3f2b8c1e-77aa-4d10-9c55-0123456789ab"


async def test_a_name_that_is_whole_at_80_columns_is_whole_at_120() -> None:
    async with browsing(FixedSession(names=[LONG_LEAF, b"short"]), size=(80, 24)) as desk:
        tree = desk.screen.tree_pane.key_tree
        name = LONG_LEAF.rsplit(b":")[-1].decode()

        def is_shown() -> bool:
            return any(name in "".join(span.text for span in line) for line in tree.lines_in_view)

        await desk.go(LONG_LEAF)
        assert is_shown()
        await desk.pilot.resize_terminal(120, 36)
        await desk.until(lambda: not desk.screen.has_class("-narrow"))
        await desk.settled()
        assert is_shown()
        assert tree.row_layout.fields
