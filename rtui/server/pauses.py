"""How long to wait between attempts: growing, and different for everyone who lost the same server."""

from __future__ import annotations

from random import Random
from typing import Final

FIRST_PAUSE_S: Final = 0.25
"""The longest that the first pause can be."""

LONGEST_PAUSE_S: Final = 15.0
"""No pause is longer, so that a server that is back is seen soon."""


def pause_s(attempt: int, rng: Random) -> float:
    """The pause after failed try number `attempt` (from 1 on): between 0 and a bound that doubles each time."""
    bound_s = LONGEST_PAUSE_S if attempt > 16 else min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (attempt - 1))
    return rng.uniform(0.0, bound_s)
