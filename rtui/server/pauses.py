"""How long to wait between attempts: growing, and different for everyone who lost the same server."""

from __future__ import annotations

from random import Random
from typing import Final

FIRST_PAUSE_S: Final = 0.25
"""The longest that the first pause can be."""

LONGEST_PAUSE_S: Final = 15.0
"""No pause is longer, so that a server that is back is seen soon."""


_MOST_DOUBLINGS: Final = 16

LONGEST_LOADING_PAUSE_S: Final = 2.0
"""While a server loads it answers how far it is, so asking often costs nothing and shows something."""


def pause_s(attempt: int, rng: Random, longest_s: float = LONGEST_PAUSE_S) -> float:
    """The pause after failed try number `attempt` (from 1 on): between 0 and a bound that doubles each time."""
    doublings = min(attempt - 1, _MOST_DOUBLINGS)
    return rng.uniform(0.0, min(longest_s, FIRST_PAUSE_S * 2.0**doublings))
