"""The time of a replay: it can stand still, run faster or slower, and jump ahead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LOOK_S = 0.02
"""How often a waiter looks whether its time has come."""


class ReplayClock:
    """Counts milliseconds from the beginning of a recorded session."""

    def __init__(self, *, speed: float = 1.0, is_paused: bool = False, now_s: Callable[[], float] = time.monotonic):
        """`speed` is how many seconds of the session pass in one; `now_s` returns seconds of a monotonic clock."""
        self._now_s = now_s
        self._speed = speed
        self._is_paused = is_paused
        self._at_ms = 0.0
        self._since_s = now_s()

    @property
    def speed(self) -> float:
        """How fast it runs, 1 for as fast as it was."""
        return self._speed

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        return self._is_paused

    def now_ms(self) -> float:
        """Return the time of the session."""
        passed_s = 0.0 if self._is_paused else self._now_s() - self._since_s
        return self._at_ms + 1000 * passed_s * self._speed

    def set_speed(self, speed: float) -> None:
        """Run faster or slower from now on."""
        self._hold()
        self._speed = speed

    def pause(self, *, is_paused: bool = True) -> None:
        """Stand still, or go on."""
        self._hold()
        self._is_paused = is_paused

    def jump(self, to_ms: float) -> None:
        """Go ahead to a time; never back."""
        self._at_ms = max(self.now_ms(), to_ms)
        self._since_s = self._now_s()

    async def wait_until(self, at_ms: float) -> None:
        """Return when the time has come, however it has."""
        while self.now_ms() < at_ms:  # noqa: ASYNC110 - the time may also jump
            await asyncio.sleep(LOOK_S)

    def _hold(self) -> None:
        self._at_ms, self._since_s = self.now_ms(), self._now_s()
