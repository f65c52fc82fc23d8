"""When a screen looks again whether what it shows has changed: nothing tells it, so it pulls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from textual.screen import Screen
from textual.timer import Timer

FLUSH_S: Final = 0.1
"""How often a screen looks while anything may change."""

REST_S: Final = 1.0
"""How often it looks when nothing is under way."""

AT_ONCE_S: Final = 0.01
"""How soon it looks when it has asked for something itself."""


class NextLook:
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
