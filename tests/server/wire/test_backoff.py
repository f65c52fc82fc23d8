"""Pauses grow, stay below their bound and differ."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rtui.server.wire.opening import FIRST_PAUSE_S, HEALTHY_S, LONGEST_PAUSE_S, Backoff, backoff_s


@given(st.integers(1, 10_000), st.integers())
def test_a_pause_is_within_its_bound(attempt: int, seed: int) -> None:
    bound_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 60))
    assert 0.0 <= backoff_s(attempt, Random(seed)) <= bound_s


def test_two_clients_do_not_come_back_together() -> None:
    assert backoff_s(9, Random(1)) != backoff_s(9, Random(2))


def test_the_bound_is_used() -> None:
    rng = Random(3)
    assert max(backoff_s(20, rng) for _ in range(100)) > LONGEST_PAUSE_S * 0.9


def test_a_shorter_bound_can_be_asked_for() -> None:
    rng = Random(3)
    assert max(backoff_s(20, rng, 2.0) for _ in range(100)) <= 2.0


@given(st.lists(st.sampled_from(["failed", "cut", "brief", "worked"]), max_size=40), st.integers())
def test_only_work_makes_pauses_short_again(events: list[str], seed: int) -> None:
    backoff = Backoff(Random(seed))
    in_vain = 0
    for event in events:
        if event == "failed":
            backoff.ended()
        else:
            worked_s = {"cut": None, "brief": HEALTHY_S / 2, "worked": HEALTHY_S}[event]
            backoff.ended(worked_s)
        in_vain = 0 if event == "worked" else in_vain + 1
        assert 0.0 <= backoff.pause_s() <= min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** max(0, in_vain - 1))
    assert backoff.failed == in_vain
