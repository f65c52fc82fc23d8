"""COUNT and waiting times that follow from the server's speed, and its own account of the cost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server import guard
from rtui.server.scan.pace import MAX_COUNT, MAX_WIDTH, MIN_COUNT, START_COUNT, TINY_COUNT, Pace, Pacer, low_quartile
from rtui.server.scan.progress import SPEED_WINDOW_S, Cost, Speedometer
from rtui.server.scan.server_time import ServerClock
from rtui.server.wire.opening import open_lane
from rtui.server.wire.target import Target
from tests.servers import Server

IDLE_S = 0.0002


def scan(pacer: Pacer, key_us: float, replies: int, *, idle_s: float = IDLE_S, noise_s: float = 0.0) -> None:
    """Answer so many SCANs as a server with this cost would."""
    for turn in range(replies):
        noise = noise_s * (turn % 3)
        pacer.observe(pacer.count, idle_s + pacer.count * key_us / 1e6 + noise)


@pytest.mark.parametrize("pace", list(Pace))
@pytest.mark.parametrize("key_us", [0.2, 0.7, 5.0])
def test_one_call_stays_under_the_target(pace: Pace, key_us: float) -> None:
    pacer = Pacer(pace)
    scan(pacer, key_us, 60)
    assert pacer.count * key_us <= pace.limits.call_us * 1.1 or pacer.count == MIN_COUNT
    assert pacer.count >= min(MAX_COUNT, pace.limits.call_us / key_us / 2) or pacer.count == MIN_COUNT


def test_no_pace_holds_the_server_longer_than_a_fast_command_and_a_faster_one_may_hold_it_longer() -> None:
    at_once = [pace.limits.call_us for pace in Pace]
    assert at_once == sorted(at_once)
    assert at_once[-1] <= 150


def test_the_cheapest_keys_are_asked_for_in_the_largest_pages() -> None:
    pacer = Pacer(Pace.FULL)
    scan(pacer, 0.1, 30)
    assert pacer.count == MAX_COUNT


def test_it_starts_small() -> None:
    assert Pacer(Pace.FULL).count == START_COUNT


@given(st.lists(st.tuples(st.floats(0, 1, allow_nan=False), st.booleans()), max_size=60))
def test_count_never_leaves_its_bounds(replies: list[tuple[float, bool]]) -> None:
    pacer = Pacer(Pace.NORMAL)
    for round_trip_s, seen in replies:
        pacer.observe(pacer.count, round_trip_s if seen else None)
        assert MIN_COUNT <= pacer.count <= MAX_COUNT
        assert 1 <= pacer.depth <= MAX_WIDTH


def test_a_server_that_becomes_slow_gets_smaller_calls_and_larger_ones_later() -> None:
    pacer = Pacer(Pace.NORMAL)
    scan(pacer, 0.5, 40)
    before = pacer.count
    scan(pacer, 8.0, 10)
    slow = pacer.count
    scan(pacer, 0.5, 60)
    assert slow < before / 4
    assert pacer.count == before


def test_a_bad_start_does_not_last() -> None:
    """A few slow replies push COUNT down to where the server's time can't be seen; it finds its way up again."""
    pacer = Pacer(Pace.GENTLE)
    scan(pacer, 0.7, 6)
    scan(pacer, 50.0, 12)
    assert pacer.count <= TINY_COUNT
    scan(pacer, 0.7, 80)
    assert pacer.count > TINY_COUNT


@pytest.mark.parametrize("queries", [1.0, 1.2, 1.5, 1.8, 2.0])
@pytest.mark.parametrize("pace", list(Pace))
def test_a_bad_start_does_not_last_where_writes_ask_more_than_they_list(pace: Pace, queries: float) -> None:
    """A write asks about up to twice as many keys as its COUNT: more than a tiny one, but too few to be measured."""
    pacer = Pacer(pace)

    def answered(key_us: float, replies: int) -> list[int]:
        counts = []
        for _ in range(replies):
            keys = int(pacer.count * queries)
            pacer.observe(keys, IDLE_S + keys * key_us / 1e6)
            counts.append(pacer.count)
        return counts

    before = answered(0.7, 40)[-1]
    assert min(answered(9.0, 40)) < before / 4
    answered(0.7, 200)
    assert pacer.count > before / 2


def test_the_servers_own_word_counts_more_than_a_restless_link() -> None:
    pacer = Pacer(Pace.NORMAL)
    scan(pacer, 0.5, 40, idle_s=0.02, noise_s=0.003)
    pacer.observe_key_us(0.5)
    scan(pacer, 0.5, 40, idle_s=0.02, noise_s=0.003)
    assert pacer.count == Pace.NORMAL.limits.call_us / 0.5


def test_a_gentle_scan_leaves_the_server_its_time() -> None:
    pacer = Pacer(Pace.GENTLE)
    scan(pacer, 0.7, 40)
    now = busy_us = 0.0
    for _ in range(200):
        now += pacer.wait_s(now)
        busy_us += pacer.cost_us(pacer.count)
        pacer.add_sent(pacer.count, now)
        assert pacer.wait_s(now) > 0
    assert busy_us / 1e6 / now == pytest.approx(Pace.GENTLE.limits.duty, rel=0.02)


def test_pauses_that_end_late_cost_no_share_of_the_server() -> None:
    """Timers end at whole milliseconds; what is made up for is at most one of them."""
    pacer = Pacer(Pace.GENTLE)
    scan(pacer, 0.7, 40)
    now = busy_s = 0.0
    for _ in range(200):
        now = math.ceil((now + pacer.wait_s(now)) * 1000) / 1000
        while pacer.wait_s(now) == 0:
            busy_s += pacer.cost_us(pacer.count) / 1e6
            assert busy_s <= Pace.GENTLE.limits.duty * (now + 0.001) + Pace.GENTLE.limits.call_us / 1e6
            pacer.add_sent(pacer.count, now)
        now += 1e-6
    assert busy_s / now == pytest.approx(Pace.GENTLE.limits.duty, rel=0.02)


def test_full_pace_never_waits() -> None:
    pacer = Pacer(Pace.FULL)
    pacer.add_sent(1000, 5.0)
    assert pacer.wait_s(5.0) == 0


def test_over_a_link_calls_are_spread_over_the_round_trip() -> None:
    pacer = Pacer(Pace.NORMAL)
    scan(pacer, 0.2, 40, idle_s=0.02)
    pacer.add_sent(pacer.count, 0.0)
    assert pacer.wait_s(0.0) == pytest.approx(0.02 * 0.8 / MAX_WIDTH, rel=0.01)
    assert pacer.depth == MAX_WIDTH


def test_over_a_link_full_pace_sends_one_call_after_the_other_too() -> None:
    pacer = Pacer(Pace.FULL)
    scan(pacer, 0.7, 40, idle_s=0.02)
    assert pacer.depth == MAX_WIDTH
    pacer.add_sent(pacer.count, 0.0)
    assert pacer.wait_s(0.0) >= pacer.cost_us(pacer.count) / 1e6


def test_on_a_short_link_few_calls_are_under_way() -> None:
    for pace in Pace:
        pacer = Pacer(pace)
        scan(pacer, 0.7, 40, idle_s=0.00005)
        assert pacer.depth == pace.limits.ahead == 1


def test_calls_that_are_spread_in_time_do_not_meet_on_a_short_link() -> None:
    """A round trip of 0.5 ms is shorter than the pause after each gentle call, and as long as three at full pace."""
    depths = {}
    for pace in Pace:
        pacer = Pacer(pace)
        scan(pacer, 0.7, 40, idle_s=0.0005)
        depths[pace] = pacer.depth
    assert depths == {Pace.GENTLE: 1, Pace.NORMAL: 3, Pace.FULL: 4}


def test_paces_are_in_order() -> None:
    assert [Pace.GENTLE.faster(), Pace.NORMAL.faster(), Pace.FULL.faster()] == [Pace.NORMAL, Pace.FULL, Pace.FULL]
    assert [Pace.FULL.slower(), Pace.NORMAL.slower(), Pace.GENTLE.slower()] == [Pace.NORMAL, Pace.GENTLE, Pace.GENTLE]


def test_low_quartile() -> None:
    assert low_quartile([4.0]) == 4.0
    assert low_quartile([9.0, 1.0, 2.0, 8.0, 3.0]) == 2.0


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
