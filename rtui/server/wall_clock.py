"""The time of day, which stands still while a dump is read: times to live are as of when it was made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

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
