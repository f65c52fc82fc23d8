"""The panes of the main screen: their widths, and `W`, which asks again and again and marks what has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import KeyFacts, RowFacts, gone_key
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.preview.page import FIRST, Meaning, Page, Preview, PreviewColumn, PreviewKind
from rtui.server.options import BrowseOptions
from rtui.server.wire.connection import Lost, Online
from rtui.tui.app import RtuiApp
from rtui.tui.browse.panes import LEAST_S, MOST_S, TIME_SHARE, Watcher
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.settings import NARROWEST_TREE, WIDEST_TREE, SettingsFile
from tests.conftest import known
from tests.monitor import Recorder
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.browse.test_ageing import detail_text, pass_time, row_text
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import COMPLETE, FixedSession, key_facts, row_facts

KEY = b"jobs"
BOTH_SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)


class Growing(FixedSession):
    """A session with a list that a test makes longer, and that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__(COMPLETE, [KEY, b"q:1", b"q:2"])
        self.length, self.memory = 100, 4_096
        self.is_gone = False
        self.keys_asked: list[bytes] = []
        self.rows_asked: list[bytes] = []

    async def key_facts(self, key: bytes, row: RowFacts | None = None) -> KeyFacts:
        self.keys_asked.append(key)
        if self.failure is not None:
            raise self.failure
        if self.is_gone:
            return gone_key(key, self.now_s)
        return replace(key_facts(key), length=self.length, asked_at_s=self.now_s)

    async def row_facts(self, wanted: Sequence[bytes], *, with_more: bool = False) -> list[RowFacts]:
        self.rows_asked += wanted
        return [replace(row_facts(key), memory_bytes=self.memory, asked_at_s=self.now_s) for key in wanted]


def status(user: BrowseUser) -> str:
    return "".join(span.text for line in user.screen.status_bar.lines for span in line)


async def refreshed(user: BrowseUser) -> None:
    """Let it become time for a refresh, and have its answer shown."""
    session = user.session
    assert isinstance(session, Growing)
    before = len(session.keys_asked) + len(session.rows_asked)
    await pass_time(user, MOST_S)
    await user.until(lambda: len(session.keys_asked) + len(session.rows_asked) > before)
    await user.settled()


@BOTH_SIZES
async def test_a_key_is_asked_again_and_its_rate_is_said(size: tuple[int, int]) -> None:
    session = Growing()
    async with browsing(session, size) as user:
        await user.go(KEY)
        await user.press("W")
        await user.until(lambda: "watching jobs every" in status(user))
        session.length += 600
        await refreshed(user)
        await user.until(lambda: "length +60/s" in status(user) or "length +60/s" in detail_text(user))
        assert size[0] < 120 or "▲700 items" in detail_text(user)
        asked = len(session.keys_asked)
        await pass_time(user, 1)
        assert "▲" not in detail_text(user)
        assert len(session.keys_asked) == asked
        await user.press("W")
        await user.until(lambda: "watching" not in status(user))
        await pass_time(user, 2 * MOST_S)
        assert len(session.keys_asked) == asked


async def test_a_key_that_goes_is_said_to_be_gone_and_watched_on() -> None:
    session = Growing()
    async with browsing(session) as user:
        await user.go(KEY)
        await user.press("W")
        session.is_gone = True
        await refreshed(user)
        await user.until(lambda: "no longer exists" in detail_text(user))
        session.is_gone = False
        await refreshed(user)
        await user.until(lambda: "100 items" in detail_text(user))
        assert "watching" in status(user)


async def test_moving_to_another_key_ends_it() -> None:
    async with browsing(Growing()) as user:
        await user.go(KEY)
        await user.press("W")
        await user.until(lambda: "watching" in status(user))
        await user.go(b"q:1")
        await pass_time(user, 1)
        await user.until(lambda: "watching" not in status(user))


async def test_it_waits_while_the_connection_is_lost() -> None:
    session = Growing()
    async with browsing(session) as user:
        await user.go(KEY)
        await user.press("W")
        await refreshed(user)
        session.status = replace(session.status, link=Lost(None, 1, 0.0))
        asked = len(session.keys_asked)
        for _ in range(3):
            await pass_time(user, MOST_S)
        await user.until(lambda: "when the connection is back" in user.screen.status_bar.watching)
        assert len(session.keys_asked) == asked
        session.status = replace(session.status, link=Online())
        await refreshed(user)
        assert "every" in user.screen.status_bar.watching


async def test_keys_in_view_of_an_open_namespace_are_watched() -> None:
    session = Growing()
    async with browsing(session) as user:
        await user.go(b"q:1")
        await user.press("u", "W")
        await user.until(lambda: "visible keys of q:" in user.screen.status_bar.watching)
        await refreshed(user)
        session.rows_asked.clear()
        session.memory += 1_000
        await refreshed(user)
        assert sorted(session.rows_asked) == [b"q:1", b"q:2"]
        await user.until(lambda: row_text(user, b"q:2").startswith("•"))
        assert not row_text(user, KEY).startswith("•")
        await pass_time(user, 1)
        await user.until(lambda: not row_text(user, b"q:2").startswith("•"))
        await user.press("left")
        await pass_time(user, 1)
        await user.until(lambda: not user.screen.status_bar.watching)


async def test_a_closed_namespace_is_refused_with_the_reason() -> None:
    async with browsing(Growing()) as user:
        tree = user.screen.tree_pane.key_tree
        await user.press("home")
        while user.cursor.kind.name != "NAMESPACE":
            await user.press("down")
        assert not tree.rows.is_expanded(user.cursor.namespace)
        await user.press("W")
        assert not user.screen.pane_watch.watcher.is_on
        assert any("SCAN MATCH" in notice.message for notice in user.screen.app._notifications)


@given(st.floats(0, 100))
def test_a_refresh_takes_less_than_a_thousandth_of_the_time(took_s: float) -> None:
    watcher = Watcher()
    watcher.watch_key(KEY, None, 0.0)
    watcher.begin(0.0)
    watcher.end(took_s, took_s)
    assert LEAST_S <= watcher.pace_s <= MOST_S
    assert watcher.pace_s >= min(MOST_S, took_s / TIME_SHARE)
    assert not watcher.is_due(took_s + LEAST_S * 0.99)
    assert watcher.is_due(took_s + watcher.pace_s)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 10**9)), min_size=2, max_size=12))
def test_rates_and_marks_say_which_way_it_goes(samples: list[tuple[int, int]]) -> None:
    watcher, now_s = Watcher(), 0.0
    watcher.watch_key(KEY, None, 0.0)
    seen: list[int] = []
    for passed_s, length in samples:
        now_s += passed_s
        assert watcher.learn(replace(key_facts(KEY), length=length, asked_at_s=now_s))
        seen.append(length)
    change = watcher.changes.get("length")
    mark = "" if change is None else change.mark
    assert mark == ("" if seen[-1] == seen[-2] else "▲" if seen[-1] > seen[-2] else "▼")
    recent = seen[-5:]
    rate = "" if change is None else change.rate
    assert rate[:1] == ("" if recent[-1] == recent[0] else "+" if recent[-1] > recent[0] else "-")


async def test_a_minute_of_watching_is_a_few_commands(valkey: Server, tmp_path: Path) -> None:
    valkey.admin.rpush("jobs", *range(50))
    now_s = 1_800_000_000.0
    session = BrowsingSession(BrowseOptions(target=target_of(valkey)), state_folder=tmp_path, clock=lambda: now_s)
    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        screen = app.screen
        assert isinstance(screen, BrowseScreen)
        await until(pilot, lambda: screen.detail_pane.detail.preview is not None)
        await pilot.press("W")
        await until(pilot, lambda: screen.pane_watch.watcher.key == b"jobs")
        with Recorder(valkey) as recorder:
            for second in range(60):
                now_s += 1
                if second % 10 == 0:
                    valkey.admin.rpush("jobs", second)
                screen._ticked_at_s = 0.0
                screen.flush()
                await until(pilot, lambda: not any(worker.is_running for worker in screen.workers))
        asked = Counter(one.name for one in recorder.commands if b"jobs" in one.argv)
        del asked["RPUSH"]
        assert 5 <= asked["LRANGE"] <= 60 / LEAST_S
        assert sum(asked.values()) <= 60 / LEAST_S * 12
        assert known(screen.detail_pane.detail.facts).length == 56


class Changing(Growing):
    """A session with a hash of which a test changes one field."""

    def __init__(self) -> None:
        super().__init__()
        self.value = b"1"

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        columns = (PreviewColumn("field", Meaning.NAME), PreviewColumn("value", Meaning.VALUE))
        rows = ((b"hits", self.value), (b"name", b"jobs"))
        return Preview(facts.key, b"hash", PreviewKind.HASH, page or FIRST, columns=columns, rows=rows, total=2)


async def test_rows_of_the_value_that_changed_are_marked_for_a_moment() -> None:
    session = Changing()
    async with browsing(session) as user:
        await user.go(KEY)
        await user.press("W")
        await refreshed(user)
        assert "•" not in user.body
        session.value = b"2"
        await refreshed(user)
        body = user.screen.detail_pane.body
        shown = ["".join(span.text for span in body.line_at(at) or ()) for at in range(len(body.rows))]
        assert [line.startswith("•") for line in shown if "hits" in line or "jobs" in line] == [True, False]
        await pass_time(user, 1)
        await user.until(lambda: not body._changed)
        await user.press("W")
        session.value = b"3"
        user.screen.detail_pane.fetcher.refresh()
        await user.until(lambda: "3" in user.body)
        assert not body._changed


def widths(user: BrowseUser) -> tuple[int, int]:
    return user.screen.tree_pane.outer_size.width, user.screen.detail_pane.outer_size.width


async def test_keys_move_the_border_neither_pane_is_lost_and_it_is_remembered() -> None:
    settings = SettingsFile()
    async with browsing(settings=settings) as user:
        before = widths(user)
        await user.press("right_parenthesis", "right_parenthesis")
        wider = widths(user)
        assert wider[0] > before[0]
        assert sum(wider) == sum(before) == 120
        await user.press("left_parenthesis")
        assert before[0] < widths(user)[0] < wider[0]
    assert settings.settings.tree.width is not None
    async with browsing(settings=settings) as user:
        assert before[0] < widths(user)[0] < wider[0]
        for key, percent in (("right_parenthesis", WIDEST_TREE), ("left_parenthesis", NARROWEST_TREE)):
            await user.press(*[key] * 30)
            assert widths(user)[0] == 120 * percent // 100


async def test_the_border_is_dragged() -> None:
    settings = SettingsFile()
    async with browsing(settings=settings) as user:
        await user.pilot.mouse_down(offset=(user.screen.detail_pane.region.x, 10))
        await user.pilot.hover(offset=(80, 12))
        await user.pilot.mouse_up(offset=(80, 12))
        await user.settled()
        assert abs(widths(user)[0] - 80) <= 1
        assert settings.settings.tree.width == round(100 * 80 / 120)
        cursor = user.cursor
        await user.pilot.hover(offset=(40, 12))
        await user.settled()
        assert abs(widths(user)[0] - 80) <= 1
        assert user.cursor == cursor


async def test_a_narrow_terminal_keeps_one_pane_over_the_whole_width() -> None:
    settings = SettingsFile()
    settings.choose("tree.width", 30)
    async with browsing(size=(80, 24), settings=settings) as user:
        assert widths(user)[0] == 80
        await user.press("right_parenthesis")
        assert widths(user)[0] == 80
        assert settings.settings.tree.width == 30
        await user.pilot.resize_terminal(120, 36)
        await user.until(lambda: widths(user)[0] == 36)
        await user.pilot.resize_terminal(80, 24)
        await user.until(lambda: widths(user)[0] == 80)


@pytest.mark.parametrize(("key", "shown"), [("1", "[Value]"), ("2", "CRC16"), ("enter", "[Value]")])
async def test_a_narrow_terminal_opens_the_details_for_a_tab(key: str, shown: str) -> None:
    async with browsing(size=(80, 24)) as user:
        await user.pilot.press("end", key)
        await user.until(lambda: user.screen.has_class("-reading"))
        tabs = user.screen.detail_pane._tabs
        await user.until(lambda: shown in user.body + "".join(span.text for line in tabs.lines for span in line))
        await user.pilot.press("escape")
        await user.until(lambda: not user.screen.has_class("-reading"))
        assert user.screen.focused is user.screen.tree_pane.view
