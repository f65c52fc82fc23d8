"""The command log as pictures: full, narrow, empty, filtered, with hostile names, and one entry of each kind."""

from __future__ import annotations

import pytest

from rtui.server import guard
from rtui.server.guard.command import Command, Secret, build_batch
from rtui.server.wire.command_log import CommandLog, LogEntry, Purpose
from rtui.server.wire.errors import Reply, ServerError
from tests.snapshots.test_screens import Compare, app, doing
from tests.tui.fixed_session import FixedSession

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
HOSTILE = b"\x1b]52;c;eA==\x07[/]\xe2\x80\xae:'\"$(reboot) \xff"
BEGAN_AT_S = 1_790_000_000.25


def sent(log: CommandLog, command: Command, reply: Reply, purpose: Purpose, figures: tuple[int, float]) -> LogEntry:
    """Add a command that was answered with so many bytes, in so many ms."""
    size, ms = figures
    lane = log.open_lane("interactive")
    lane._name = "interactive 1"
    lane.sent([command], purpose)
    lane.answered([reply] * command.replies, 0)
    entry = log.entries[-1]
    entry.ms, entry.bytes_in = ms, size
    log.bytes_in += size
    return entry


def made(*, is_long: bool = True) -> CommandLog:
    """A session with a scan, an inspection, facts, a preview, an error, a password and a loss."""
    log = CommandLog(most_entries=60)
    sent(log, guard.auth("app", Secret("word")), b"OK", Purpose.HANDSHAKE, (5, 0.4))
    for section in ("server", "memory", "stats", "clients", "keyspace") * (12 if is_long else 1):
        sent(log, guard.info(section), b"", Purpose.SERVER, (1200 + 31 * len(section), 0.3))
    rows = build_batch((guard.key_type, guard.pttl), [b"shop:user:%d:profile" % number for number in range(24)])
    sent(log, rows, 1, Purpose.ROWS, (312, 1.4))
    sent(log, guard.key_type(b"shop:user:1001:profile"), b"hash", Purpose.FACTS, (7, 0.2))
    sent(log, guard.hlen(b"shop:user:1001:profile"), 3, Purpose.FACTS, (4, 0.2))
    sent(log, guard.getrange(HOSTILE, 0, 65_535), b"", Purpose.PREVIEW, (65_547, 12.3))
    sent(log, guard.pttl(HOSTILE), -1, Purpose.FACTS, (5, 0.2))
    sent(log, guard.strlen(b"n" * 9000), 1, Purpose.FACTS, (4, 0.3))
    denied = ServerError("NOPERM this user has no permissions to run the 'dbsize' command")
    sent(log, guard.dbsize(), denied, Purpose.SERVER, (76, 0.2))
    add_up(log)
    lost = log.open_lane("interactive")
    lost._name = "interactive 1"
    lost.sent([guard.ping()], Purpose.HEARTBEAT)
    lost.ended()
    waiting = log.open_lane("interactive")
    waiting._name = "interactive 2"
    waiting.sent([guard.ping()], Purpose.HEARTBEAT)
    for at, entry in enumerate(log.entries):
        entry.at_s = BEGAN_AT_S + 0.137 * at
    return log


def add_up(log: CommandLog) -> None:
    """Add what a bulk lane has sent; sums need a timer only while they grow."""
    bulk = log.open_lane("bulk", is_bulk=True)
    for purpose, counts, size in (
        (Purpose.SCAN, {"SCAN": 412, "DBSIZE": 2}, 1_310_720),
        (Purpose.INSPECTION, {"SCAN": 31, "TYPE": 25_000, "PTTL": 25_000, "MEMORY USAGE": 24_990}, 524_288),
    ):
        entry = bulk._begin(purpose, counts, b"")
        entry.is_sum = True
        bulk._count(entry, sum(counts.values()), 48 * sum(counts.values()))
        entry.owed, entry.bytes_in, entry.ms, entry.is_over = 0, size, 250.4, True
        log.bytes_in += size


def probed() -> CommandLog:
    """What the server is asked about itself now and then, all at once, and a command between."""
    log = CommandLog()
    for at_s in (0.0, 3.0, 6.0):
        for section in ("server", "memory", "stats", "clients", "replication", "persistence", "cluster", "keyspace"):
            sent(log, guard.info(section), b"", Purpose.SERVER, (1200 + 31 * len(section), 0.3))
            log.entries[-1].at_s = BEGAN_AT_S + at_s
        sent(log, guard.dbsize(), 1, Purpose.SERVER, (9, 0.4))
        log.entries[-1].at_s = BEGAN_AT_S + at_s + 0.001
        sent(log, guard.pttl(b"shop:user:1001:profile"), -1, Purpose.FACTS, (5, 0.2))
        log.entries[-1].at_s = BEGAN_AT_S + at_s + 0.002
    for entry in log.entries:
        entry.sent_s = entry.at_s
    return log


def session(log: CommandLog) -> FixedSession:
    found = FixedSession()
    found.log = log
    return found


@SIZES
def test_a_log(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(app(session(made())), terminal_size=size, run_before=doing("L"))


def test_an_empty_log(snap_compare: Compare) -> None:
    assert snap_compare(app(session(CommandLog())), terminal_size=(80, 24), run_before=doing("L"))


@pytest.mark.parametrize(("name", "text"), [("hostile", "getrange"), ("batch", "rows")], ids=lambda value: value)
def test_an_entry(snap_compare: Compare, name: str, text: str) -> None:
    log = made(is_long=False)
    keys = ("L", "slash", *text, "enter", "enter")
    assert snap_compare(app(session(log)), terminal_size=(80, 24), run_before=doing(*keys))


def test_what_is_asked_about_the_server(snap_compare: Compare) -> None:
    assert snap_compare(app(session(probed())), terminal_size=(80, 24), run_before=doing("L", "up", "enter"))
