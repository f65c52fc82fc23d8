"""Exponential backoff with full jitter: how long to wait between attempts.

The longest possible pause doubles with each failure, from 0.25 s to 15 s, and the pause is drawn evenly between 0 and
that, so that many clients of one server do not come back at the same moment.
"""

from __future__ import annotations

from random import Random
from typing import Final

FIRST_PAUSE_S: Final = 0.25
"""The longest that the first pause can be."""

LONGEST_PAUSE_S: Final = 15.0
"""No pause is longer, so that a server that is back is noticed soon."""

LONGEST_LOADING_PAUSE_S: Final = 2.0
"""While a server loads its data it reports how far it is, so frequent attempts cost nothing and show progress."""

LONGEST_REFUSED_PAUSE_S: Final = 120.0
"""A server that refuses the user logs each attempt, and somebody has to change that first."""

HEALTHY_S: Final = 5.0
"""A connection that still brings replies this long after its handshake is healthy: the count of failures restarts."""


def backoff_s(attempt: int, rng: Random, longest_s: float = LONGEST_PAUSE_S) -> float:
    """Draw the pause after failed attempt number `attempt`, from 1 on."""
    return rng.uniform(0.0, min(longest_s, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16)))


class Backoff:
    """Counts the failed attempts at one connection, and draws the pause before the next attempt.

    A handshake that works proves little: the connection may break at the first large reply. Only one that brings
    replies for `healthy_s` seconds resets the count.
    """

    def __init__(self, rng: Random, healthy_s: float = HEALTHY_S) -> None:
        self.failed = 0
        """Attempts in a row without a healthy connection."""
        self._rng = rng
        self._healthy_s = healthy_s

    def attempt_failed(self) -> None:
        """Count an attempt that made no connection."""
        self.failed += 1

    def connection_ended(self, worked_s: float | None) -> None:
        """Count a connection that was ready and ended `worked_s` seconds after its handshake, None for no reply."""
        self.failed = 0 if worked_s is not None and worked_s >= self._healthy_s else self.failed + 1

    def pause_s(self, longest_s: float = LONGEST_PAUSE_S) -> float:
        """Draw the pause before the next attempt, another one at each call."""
        return backoff_s(max(1, self.failed), self._rng, longest_s)
