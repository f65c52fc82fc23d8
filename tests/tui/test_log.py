"""The screen of the command log: it follows, stays where the user is, filters, copies, and shows nothing hostile."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from rtui.keyspace.text.display import display_text
from rtui.server import guard
from rtui.server.guard.command import Secret, build_batch
from rtui.server.wire.command_log import CommandLog, LaneLog, Purpose
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.styled_text import line_width
from rtui.tui.log import LogScreen
from rtui.tui.log_lines import TOGETHER_S, LogRows, header_line, layout_log, row_line, summary_line, whole_lines
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import check_text

HOSTILE = b"\x1b]52;c;eA==\x07[/]\xe2\x80\xae:'\"$(reboot) \xff"


def answered(lane: LaneLog, key: bytes, purpose: Purpose = Purpose.FACTS) -> None:
    lane.sent([guard.pttl(key)], purpose)
    lane.received(b":1\r\n", 4)
    lane.answered([1], 0)


def filled(count: int, log: CommandLog | None = None) -> CommandLog:
    log = CommandLog() if log is None else log
    lane = log.open_lane("interactive")
    for number in range(count):
        answered(lane, b"key:%d" % number)
    return log


@asynccontextmanager
async def looking(
    log: CommandLog, size: tuple[int, int] = (120, 36), *, notifications: bool = False
) -> AsyncIterator[tuple[BrowseUser, LogScreen]]:
    """Open the log from the tree."""
    session = FixedSession()
    session.log = log
    async with browsing(session, size, notifications=notifications) as user:
        await user.pilot.press("L")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, LogScreen))
        screen = user.pilot.app.screen
        assert isinstance(screen, LogScreen)
        yield user, screen


def shown(screen: LogScreen) -> list[str]:
    return ["".join(span.text for span in line) for line in screen.log_view.lines_in_view]


async def test_it_follows_until_the_user_moves_and_again_at_the_end() -> None:
    log = filled(100)
    lane = log.open_lane("interactive")
    async with looking(log) as (user, screen):
        assert "key:99" in shown(screen)[-1]
        answered(lane, b"new:1")
        screen.flush()
        await until(user.pilot, lambda: "new:1" in shown(screen)[-1])
        await user.pilot.press("up")
        before = shown(screen)
        answered(lane, b"new:2")
        screen.flush()
        await user.pilot.pause()
        assert shown(screen) == before
        assert len(screen.log_view.rows) == 102
        await user.pilot.press("end")
        await until(user.pilot, lambda: "new:2" in shown(screen)[-1])
        answered(lane, b"new:3")
        screen.flush()
        await until(user.pilot, lambda: "new:3" in shown(screen)[-1])


async def test_entries_that_are_dropped_move_nothing() -> None:
    log = filled(100, CommandLog(most_entries=100))
    lane = log.open_lane("interactive")
    async with looking(log) as (user, screen):
        await user.pilot.press(*["pageup"] * 2)
        before, entry = shown(screen), screen.log_view.row[0]
        for number in range(5):
            answered(lane, b"new:%d" % number)
        screen.flush()
        await user.pilot.pause()
        assert shown(screen) == before
        assert screen.log_view.row[0] is entry
        assert "5 older dropped" in "".join(span.text for span in screen.summary.lines[0])


async def test_a_filter_and_back() -> None:
    log = filled(50)
    answered(log.open_lane("interactive"), b"other", Purpose.PREVIEW)
    async with looking(log) as (user, screen):
        await user.pilot.press("/", *"PREVIEW")
        await until(user.pilot, lambda: len(screen.log_view.rows) == 1)
        await user.pilot.press("enter")
        assert "other" in shown(screen)[0]
        await user.pilot.press("/", "home", "!")
        await until(user.pilot, lambda: len(screen.log_view.rows) == 50)
        await user.pilot.press("home", "delete")
        await until(user.pilot, lambda: len(screen.log_view.rows) == 1)
        await user.pilot.press("enter")
        await user.pilot.press("/", *["backspace"] * 7, *"no such thing")
        await until(user.pilot, lambda: screen.nothing.display and not len(screen.log_view.rows))
        assert "None of 51 entries" in "".join(span.text for line in screen.nothing.lines for span in line)
        await user.pilot.press("escape")
        await until(user.pilot, lambda: len(screen.log_view.rows) == 51)
        assert isinstance(user.pilot.app.screen, LogScreen)
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        for is_open in (True, False):  # the same key opens and leaves it
            await user.pilot.press("L")
            await until(user.pilot, lambda is_open=is_open: isinstance(user.pilot.app.screen, LogScreen) is is_open)  # type: ignore[misc]


async def test_a_command_is_copied_as_redis_cli_takes_it() -> None:
    log = CommandLog()
    lane = log.open_lane("interactive")
    lane.sent([build_batch((guard.key_type, guard.pttl), [HOSTILE, b"k"])], Purpose.ROWS)
    lane.sent([guard.auth("u", Secret("p"))], Purpose.HANDSHAKE)
    async with looking(log, notifications=True) as (user, screen):
        app = user.pilot.app
        await user.pilot.press("y")
        assert app.clipboard == ""
        await user.pilot.press("home", "y")
        await until(user.pilot, lambda: bool(app.clipboard))
        lines = [shlex.split(line) for line in app.clipboard.split("\n")]
        assert [line[-2] for line in lines] == ["TYPE", "PTTL", "TYPE", "PTTL"]
        assert lines[0][0] == "redis-cli"
        assert lines[0][-1] == lines[1][-1]
        assert lines[0][-1].isascii()
        assert lines[2][-1] == "k"
        assert screen.log_view.row[0] is log.entries[0]


async def test_what_is_asked_at_once_about_the_server_is_one_row_that_opens() -> None:
    log = CommandLog()
    lane = log.open_lane("interactive")
    lane.sent([guard.info("memory"), guard.info("stats"), guard.dbsize()], Purpose.SERVER)
    lane.answered([b"", b"", 0], 0)
    lane.sent([guard.pttl(b"k")], Purpose.FACTS)
    for entry in log.entries:
        entry.at_s = 0.0
    async with looking(log) as (user, screen):
        server, facts = shown(screen)[:2]
        assert "INFO ×2, DBSIZE ×1" in server
        assert "PTTL k" in facts
        await user.pilot.press("home", "y")
        await until(user.pilot, lambda: bool(user.pilot.app.clipboard))
        assert [shlex.split(line)[-1] for line in user.pilot.app.clipboard.split("\n")] == ["memory", "stats", "DBSIZE"]
        await user.pilot.press("enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, TextCard))
        whole = user.pilot.app.screen
        assert isinstance(whole, TextCard)
        text = ["".join(span.text for span in line) for line in whole.body.lines]
        assert any("3 of 3" in line for line in text)
        assert [line.split()[:2] for line in text[-3:]] == [
            ["INFO", "memory"],
            ["INFO", "stats"],
            ["DBSIZE", text[-1].split()[1]],
        ]


async def test_an_entry_is_shown_as_a_whole() -> None:
    log = CommandLog()
    log.open_lane("interactive").sent([build_batch((guard.key_type, guard.pttl), [HOSTILE, b"k"])], Purpose.ROWS)
    async with looking(log) as (user, _):
        await user.pilot.press("enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, TextCard))
        screen = user.pilot.app.screen
        assert isinstance(screen, TextCard)
        text = "\n".join("".join(span.text for span in line) for line in screen.body.lines)
        assert "TYPE k" in text
        assert "0 of 4" in text
        check_text(text.replace("\n", ""))
        await user.pilot.press("escape")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, LogScreen))


def every_kind(key: bytes) -> CommandLog:
    """One entry of each kind."""
    log = CommandLog()
    lane, bulk = log.open_lane("interactive"), log.open_lane("bulk", is_bulk=True)
    answered(lane, key)
    lane.sent([guard.pttl(b"n" * 9000)], Purpose.PREVIEW)
    lane.sent([guard.auth("user", Secret("word"))], Purpose.HANDSHAKE)
    lane.sent([build_batch((guard.key_type, guard.pttl), [key, b"k"])], Purpose.ROWS)
    lane.ended()
    bulk.sent([guard.dbsize()], Purpose.SCAN)
    return log


@given(st.binary(min_size=1, max_size=60), st.integers(1, 220))
def test_lines_fit_and_are_safe(key: bytes, width: int) -> None:
    log = every_kind(key)
    layout = layout_log(width)
    lines = [header_line(layout), summary_line(log, 0, key.decode("latin-1"), width)]
    lines += [row_line([entry], layout) for entry in log.entries]
    lines.append(row_line(log.entries, layout))
    for line in lines:
        assert line_width(line) <= max(width, 3)
        check_text("".join(span.text for span in line))
    for row in (*([entry] for entry in log.entries), log.entries):
        for line in whole_lines(row, max(width, 20)):
            check_text("".join(span.text for span in line))


TWO_OF_A_ROW_LEFT: Final = "sent asked asked sent sent sent answered answered follow sent follow"
"""The first of two entries in one row is dropped after it was answered, the second while it waits."""


@given(
    st.lists(
        st.tuples(st.sampled_from(["sent", "asked", "later", "answered", "follow"]), st.sampled_from([b"abc", b"xyz"])),
        max_size=60,
    ),
    st.sampled_from(["", "abc", "!abc", "PTTL", "facts", "!", "waiting"]),
    st.integers(1, 12),
)
@example([(what, b"abc") for what in TWO_OF_A_ROW_LEFT.split()], "", 5)
def test_rows_that_followed_are_those_of_a_new_filter(steps: list[tuple[str, bytes]], needle: str, most: int) -> None:
    log, now_s = CommandLog(most_entries=most), 0.0
    lane, owed = log.open_lane("interactive"), 0
    rows = LogRows(log, needle)
    for what, key in steps:
        if what in ("sent", "asked"):
            lane.sent([guard.pttl(key)], Purpose.FACTS if what == "sent" else Purpose.SERVER)
            log.entries[-1].at_s = now_s
            owed += 1
        elif what == "later":
            now_s += 2 * TOGETHER_S
        elif what == "answered" and owed:
            lane.answered([1], 0)
            owed -= 1
        else:
            before = [row[-1].number for row in rows]
            assert rows.follow() == sum(number <= log.dropped for number in before)
    rows.follow()
    fresh = LogRows(log, needle)
    for _ in fresh.load():
        pass
    assert [*rows] == [*fresh] == [rows[line] for line in range(len(rows))]
    if not needle:
        assert [entry for row in rows for entry in row] == [*log.entries]
    for row in rows:
        assert len(row) == 1 or {(entry.purpose, entry.at_s) for entry in row} == {(Purpose.SERVER, row[0].at_s)}
    for one, other in pairwise(rows) if not needle else ():
        assert one[0].purpose is not Purpose.SERVER or (one[0].purpose, one[0].at_s) != (
            other[0].purpose,
            other[0].at_s,
        )


async def test_a_file_that_fails_is_said_once() -> None:
    session = FixedSession()
    session.log.failure = display_text("The command log is not written to /x: No space left on device.")
    async with browsing(session, notifications=True) as user:
        for _ in range(3):
            user.screen.flush()
            await user.pilot.pause()
        assert [notice.message for notice in user.pilot.app._notifications] == [session.log.failure]


async def test_it_opens_from_the_analysis_and_goes_back_to_it() -> None:
    async with browsing() as user:
        app = user.pilot.app
        await user.pilot.press("a")
        await until(user.pilot, lambda: isinstance(app.screen, AnalyseScreen))
        analysis = app.screen
        await user.pilot.press("L")
        await until(user.pilot, lambda: isinstance(app.screen, LogScreen))
        await user.pilot.press("escape")
        await until(user.pilot, lambda: app.screen is analysis)
