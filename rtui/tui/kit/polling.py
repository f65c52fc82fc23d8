"""When a screen looks again whether what it shows has changed: nothing tells it, so it pulls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from textual.screen import Screen
from textual.timer import Timer

from rtui.keyspace.slices import Slices

FLUSH_S: Final = 0.1
"""How often a screen looks while anything may change."""

REST_S: Final = 1.0
"""How often it looks when nothing is under way."""

AT_ONCE_S: Final = 0.01
"""How soon it looks when it has asked for something itself."""


class RefreshTimer:
    """At most one look is due."""

    def __init__(self, screen: Screen[Any], look: Callable[[], None]) -> None:
        self._screen = screen
        self._look = look
        self._timer: Timer | None = None

    def after(self, seconds: float) -> None:
        """Look once more after a while; a look that was due later is taken back."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_timer(seconds, self._look)


T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, None]]
"""Something to do; a coroutine comes of it when it begins, so none is left over from what is cancelled before."""

PAUSE_S: Final = 0.001
"""A real pause between slices: yielding without one would make a keypress wait for ten slices."""


async def drive(work: Slices[T], between: Callable[[], None] | None = None) -> T:
    """Do all slices and return the result; `between` is called after each pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        await asyncio.sleep(PAUSE_S)
        if between is not None:
            between()
