"""How long to wait between attempts: growing, and different for everyone who lost the same server."""

from __future__ import annotations

from random import Random
from typing import Final

from rtui.server.wire.lane import Lane

FIRST_PAUSE_S: Final = 0.25
"""The longest that the first pause can be."""

LONGEST_PAUSE_S: Final = 15.0
"""No pause is longer, so that a server that is back is seen soon."""

_MOST_DOUBLINGS: Final = 16

LONGEST_LOADING_PAUSE_S: Final = 2.0
"""While a server loads it answers how far it is, so asking often costs nothing and shows something."""

LONGEST_REFUSED_PAUSE_S: Final = 120.0
"""A server that refuses the user writes each try into its log, and somebody has to change that first."""


def pause_s(attempt: int, rng: Random, longest_s: float = LONGEST_PAUSE_S) -> float:
    """The pause after failed try number `attempt` (from 1 on): between 0 and a bound that doubles each time."""
    doublings = min(attempt - 1, _MOST_DOUBLINGS)
    return rng.uniform(0.0, min(longest_s, FIRST_PAUSE_S * 2.0**doublings))


HEALTHY_S: Final = 5.0
"""A lane that still answers work so long after its handshake is a good one: the next loss is the first of its kind."""


class Retries:
    """Counts the attempts at one lane that came to nothing, and says how long to wait before the next one.

    A handshake that works proves little: a lane may be cut by the first reply that is large. Only a lane that answers
    work for `healthy_s` seconds makes the pauses short again.
    """

    def __init__(self, rng: Random, healthy_s: float = HEALTHY_S) -> None:
        self.failed = 0
        """Attempts in a row without such a lane."""
        self._rng = rng
        self._healthy_s = healthy_s

    def attempt_failed(self) -> None:
        """No lane could be made."""
        self.failed += 1

    def lane_ended(self, lane: Lane) -> None:
        """A lane that was ready is gone."""
        self.failed = 0 if lane.worked_s is not None and lane.worked_s >= self._healthy_s else self.failed + 1

    def pause_s(self, longest_s: float = LONGEST_PAUSE_S) -> float:
        """How long to wait before the next attempt, drawn anew at each call."""
        return pause_s(max(1, self.failed), self._rng, longest_s)
