"""The speed of a scan, the time that is left, and its cost by the server's own account."""

from __future__ import annotations

import pytest

from rtui.server import guard
from rtui.server.scan.progress import SPEED_WINDOW_S, Cost, Speedometer
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


def test_speed_and_time_left() -> None:
    meter = Speedometer()
    meter.mark(10.0, 0, 0.0)
    speed, left_s = meter.speed(12.0, 4000, 0.2)
    assert speed == pytest.approx(2000)
    assert left_s == pytest.approx(8.0)


def test_speed_is_that_of_the_last_seconds() -> None:
    meter = Speedometer()
    for second in range(20):
        meter.mark(float(second), second * 10 if second < 10 else 90 + (second - 9) * 1000, second / 100)
    speed, _ = meter.speed(19.0, 90 + 10 * 1000, 0.19)
    assert speed == pytest.approx(1000)
    assert not meter.is_due(19.0)
    assert meter.is_due(19.0 + SPEED_WINDOW_S)


def test_nothing_is_known_at_the_start() -> None:
    meter = Speedometer()
    assert meter.speed(1.0, 5, 0.1) == (0.0, None)
    meter.mark(1.0, 5, 0.1)
    assert meter.speed(2.0, 5, 0.1) == (0.0, None)


def test_a_pause_is_not_slowness() -> None:
    meter = Speedometer()
    meter.mark(0.0, 0, 0.0)
    meter.restart()
    meter.mark(100.0, 50, 0.5)
    assert meter.speed(101.0, 150, 0.6)[0] == pytest.approx(100)


def test_costs_add_up() -> None:
    both = Cost(1, 2, 3, 4, 500_000.0, True, 1.0) + Cost(1, 2, 3, 4, 250_000.0, False, 1.0)
    assert both == Cost(2, 4, 6, 8, 750_000.0, False, 2.0)
    assert both.server_share == pytest.approx(0.375)
    assert Cost().server_share == 0.0
    measured = Cost(server_us=5.0, is_measured=True)
    assert (Cost() + measured).is_measured
