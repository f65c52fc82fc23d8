"""Random choices of a session: which cursors a sample begins at, which key of eight is the first to be asked.

They are drawn anew each time, except in a session that is recorded or replayed. There they follow from a seed, so that
the replay asks what the recorded session has asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from typing import Final

_SEEDED: Final[ContextVar[tuple[int, Counter[str]] | None]] = ContextVar("seeded", default=None)


def new_random(purpose: str) -> Random:
    """Return a generator of random numbers, another one at each call; `purpose` says what they are for."""
    seeded_by = _SEEDED.get()
    if seeded_by is None:
        return Random()
    seed, drawn = seeded_by
    drawn[purpose] += 1
    return Random(f"{seed} {purpose} {drawn[purpose]}")


def is_recorded() -> bool:
    """Tell whether the session is recorded or replayed."""
    return _SEEDED.get() is not None


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have all that is drawn within the block, and in tasks that are started in it, follow from a seed."""
    token = _SEEDED.set((seed, Counter()))
    try:
        yield
    finally:
        _SEEDED.reset(token)
