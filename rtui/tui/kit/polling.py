"""Polling and slices: screens pull what has changed, and long work yields to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from textual.screen import Screen
from textual.timer import Timer

from rtui.keyspace.slices import Slices

FLUSH_S: Final = 0.1
"""How often a screen polls while anything may change."""

REST_S: Final = 1.0
"""How often a screen polls when nothing is under way."""

AT_ONCE_S: Final = 0.01
"""How soon a screen polls after a command."""


class RefreshTimer:
    """Calls a screen's refresh once after a while; at most one call is due."""

    def __init__(self, screen: Screen[Any], refresh: Callable[[], None]) -> None:
        self._screen = screen
        self._refresh = refresh
        self._timer: Timer | None = None

    def after(self, seconds: float) -> None:
        """Refresh after so many seconds, instead of when it was due so far."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_timer(seconds, self._refresh)


T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, None]]
"""Work for a worker: makes its coroutine only when it starts, so that none is left unawaited by a cancellation."""

PAUSE_S: Final = 0.001
"""Pause between slices; without one a keypress would wait for ten slices."""


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
