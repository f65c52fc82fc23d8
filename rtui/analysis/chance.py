"""How probable it is that chance alone does this."""

from __future__ import annotations

import math


def binomial_tail(at_least: int, n: int, p: float) -> float:
    """The probability of `at_least` successes or more in n trials of probability p."""
    if at_least <= 0:
        return 1.0
    if at_least > n or p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    if at_least <= n * p:
        return 1.0 - _tail_sum(n - at_least + 1, n, 1 - p)
    return _tail_sum(at_least, n, p)


def _tail_sum(at_least: int, n: int, p: float) -> float:
    """Add the terms from `at_least` above the mean upwards, until they no longer count."""
    if at_least > n:
        return 0.0
    term = math.exp(
        math.lgamma(n + 1)
        - math.lgamma(at_least + 1)
        - math.lgamma(n - at_least + 1)
        + at_least * math.log(p)
        + (n - at_least) * math.log1p(-p)
    )
    total = 0.0
    odds = p / (1 - p)
    for k in range(at_least, n + 1):
        total += term
        term *= odds * (n - k) / (k + 1)
        if term <= total * 1e-12:
            break
    return min(1.0, total)
