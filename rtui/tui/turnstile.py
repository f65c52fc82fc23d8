"""Lets one key through at a time: the next is for whoever has the keyboard once the first has done its work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from textual import events
from textual.app import App
from textual.dom import DOMNode

LONGEST_S: Final = 0.25
"""After so long the next key passes in any case: what the first was for may have gone."""


class Turnstile:
    """Holds keys back that come in one packet, such as a filter after the key that opens it.

    A key bubbles from the widget that has the keyboard up to the application, a message queue a step, and only there
    it is looked up. What follows it on the same way knows that it has come by.
    """

    def __init__(self, app: App[int], now: Callable[[], float]) -> None:
        """`now` gives seconds of a clock that never runs backwards."""
        self._app = app
        self._now = now
        self._held: deque[events.Key] = deque()
        self._passing: events.Key | None = None
        self._since = 0.0

    def admits(self, key: events.Key) -> bool:
        """Whether a key may go on its way now; one that may not comes again when it may."""
        if self._passing not in (None, key) and self._now() - self._since < LONGEST_S:
            self._held.append(key)
            return False
        self._passing, self._since = key, self._now()
        return True

    def follow(self, key: events.Key, node: DOMNode) -> None:
        """Go behind a key from `node` up to the application."""
        if key is not self._passing:
            return
        parent = node.parent
        if node is self._app or parent is None or not node.call_later(self.follow, key, parent):
            self._release()

    def _release(self) -> None:
        self._passing = None
        if self._held:
            self._passing, self._since = self._held.popleft(), self._now()
            self._app.post_message(self._passing)
