"""The time of day and random choices of a session, both of which can be fixed.

The time stands still while a dump is read: times to live are as of when it was made.

Random choices are which cursors a sample begins at, which key of eight is the first to be asked. They are drawn anew
each time, except in a session that is recorded or replayed. There they follow from a seed, so that the replay asks what
the recorded session has asked.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from typing import Final

_stopped_ms: int | None = None


def now_s() -> float:
    return time.time() if _stopped_ms is None else _stopped_ms / 1000


def is_stopped() -> bool:
    return _stopped_ms is not None


def left_ms(moment_ms: int) -> int:
    """Return the time from now until a moment, in ms; 0 for one that is over."""
    return max(0, moment_ms - round(now_s() * 1000))


@contextmanager
def stopped_at(moment_ms: int) -> Iterator[None]:
    """Let the time of day stand still within the block, in the whole process."""
    from rtui.server.engine._scan import stop_clock  # noqa: PLC0415 - only dumps need it

    global _stopped_ms  # noqa: PLW0603 - there is one time of day
    _stopped_ms = moment_ms
    stop_clock(moment_ms)
    try:
        yield
    finally:
        _stopped_ms = None
        stop_clock(0)


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
