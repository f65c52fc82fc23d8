"""The server's own account of what SCAN took."""

from __future__ import annotations

import pytest

from rtui.server import guard
from rtui.server.scan.server_time import ServerClock
from rtui.server.wire.opening import open_lane
from rtui.server.wire.target import Target
from tests.servers import Server


def info(calls: int, us: int) -> bytes:
    line = b"cmdstat_scan:calls=%d,usec=%d,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n" % (calls, us)
    return b"# Commandstats\r\ncmdstat_ping:calls=1,usec=1,usec_per_call=1.00\r\n" + line


def test_adds_up_what_was_spent_between_replies() -> None:
    clock = ServerClock()
    assert clock.observe(info(10, 500), 10) is None
    assert clock.observe(info(14, 900), 4) == 400
    assert clock.observe(info(15, 1000), 1) == 100
    assert clock.us == 500
    assert clock.is_known


def test_others_who_scan_get_their_part() -> None:
    clock = ServerClock()
    clock.observe(info(0, 0), 0)
    assert clock.observe(info(10, 1000), 4) == pytest.approx(400)


def test_a_reset_of_the_statistics_is_a_new_start() -> None:
    clock = ServerClock()
    clock.observe(info(100, 5000), 100)
    assert clock.observe(info(2, 10), 2) is None
    assert clock.observe(info(3, 30), 1) == 20


def test_nobody_has_scanned_yet() -> None:
    clock = ServerClock()
    assert clock.observe(b"# Commandstats\r\n", 0) is None
    assert clock.observe(info(2, 30), 2) == 30


async def test_every_version_tells(server: Server) -> None:
    lane = await open_lane(Target(port=server.port))
    clock = ServerClock()
    for calls in (0, 3):
        await lane.run(*[guard.scan(0, count=10)] * calls)
        (told,) = await lane.run(guard.info("commandstats"))
        assert isinstance(told, bytes)
        clock.observe(told, calls)
    lane.close()
    assert clock.is_known


def test_the_time_of_several_commands_is_added_up() -> None:
    clock = ServerClock(("scan", "type", "memory|usage"))
    lines = b"".join(
        b"cmdstat_%b:calls=%%d,usec=%%d,usec_per_call=1.00\r\n" % name
        for name in (b"scan", b"type", b"memory|usage", b"memory|stats", b"typed")
    )
    assert clock.observe(lines % (1, 10, 1, 10, 1, 10, 1, 10, 1, 10), 3) is None
    assert clock.observe(lines % (2, 11, 3, 13, 4, 17, 900, 900, 900, 900), 6) == 1 + 3 + 7


def test_older_servers_count_a_container_as_one() -> None:
    clock = ServerClock(("memory|usage",))
    assert clock.observe(b"cmdstat_memory:calls=1,usec=10,usec_per_call=1.00\r\n", 1) is None
    assert clock.observe(b"cmdstat_memory:calls=3,usec=14,usec_per_call=1.00\r\n", 2) == 4
