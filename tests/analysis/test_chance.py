"""Tails of the binomial distribution."""

from __future__ import annotations

import pytest

from rtui.analysis.estimates import binomial_tail


@pytest.mark.parametrize(
    ("at_least", "n", "p", "known"),
    [(0, 10, 0.5, 1.0), (10, 10, 0.5, 2**-10), (8, 10, 0.5, 56 / 1024), (2, 10, 0.5, 1013 / 1024), (11, 10, 0.5, 0.0)],
)
def test_binomial_tail(at_least: int, n: int, p: float, known: float) -> None:
    assert binomial_tail(at_least, n, p) == pytest.approx(known, rel=1e-9)


def test_a_tail_far_out_is_small_but_never_below_nothing() -> None:
    assert 0.0 <= binomial_tail(900_000, 1_000_000, 0.1) < 1e-300
    assert binomial_tail(1, 10, 1.0) == 1.0
    assert binomial_tail(1, 10, 0.0) == 0.0
