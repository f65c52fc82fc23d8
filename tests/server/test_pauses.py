"""Pauses grow, stay below their bound and differ."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rtui.server.pauses import FIRST_PAUSE_S, LONGEST_PAUSE_S, pause_s


@given(st.integers(1, 10_000), st.integers())
def test_a_pause_is_within_its_bound(attempt: int, seed: int) -> None:
    bound_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 60))
    assert 0.0 <= pause_s(attempt, Random(seed)) <= bound_s


def test_two_clients_do_not_come_back_together() -> None:
    assert pause_s(9, Random(1)) != pause_s(9, Random(2))


def test_the_bound_is_used() -> None:
    rng = Random(3)
    assert max(pause_s(20, rng) for _ in range(100)) > LONGEST_PAUSE_S * 0.9


def test_a_shorter_bound_can_be_asked_for() -> None:
    rng = Random(3)
    assert max(pause_s(20, rng, 2.0) for _ in range(100)) <= 2.0
