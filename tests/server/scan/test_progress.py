"""What a scan says about itself."""

from __future__ import annotations

import pytest

from rtui.server.scan.progress import SPEED_WINDOW_S, Cost, Speedometer


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
