"""The platform's driver with thrift: it sends what differs from what the terminal shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.driver import Driver
from textual.message import Message

from rtui.tui.kit.output_diff import OutputDiff


def thrifty(driver_class: type[Driver]) -> type[Driver]:
    """Return a driver class that is `driver_class` but for what it writes."""

    class ThriftyDriver(driver_class):  # type: ignore[misc, valid-type]
        """Rewrites each frame before it is written."""

        thrift: OutputDiff | None = None

        def write(self, data: str) -> None:
            """Write a frame, or what is new in it."""
            if self.thrift is None:
                self.thrift = OutputDiff()
            super().write(self.thrift.rewrite(data))

        def send_message(self, message: Message) -> None:
            """Forget what the terminal shows when it changes its size."""
            if isinstance(message, events.Resize):
                if self.thrift is None:
                    self.thrift = OutputDiff()
                self.thrift.resize(message.size.width, message.size.height)
            super().send_message(message)

        def forget(self) -> None:
            """Send everything that is painted next."""
            if self.thrift is not None:
                self.thrift.forget()

    return ThriftyDriver


def forget_screen(driver: Driver | None) -> None:
    """Have the driver send everything that is painted next, if it keeps from that."""
    forget = getattr(driver, "forget", None)
    if callable(forget):
        forget()


def attentive(driver_class: type[Driver], hear: Callable[[Message], None]) -> type[Driver]:
    """Return a driver class that is `driver_class`, but calls `hear` first; from the thread that reads the terminal."""

    class AttentiveDriver(driver_class):  # type: ignore[misc, valid-type]
        """Lets somebody hear of each message before the application does."""

        def send_message(self, message: Message) -> None:
            """Tell of a message, then send it."""
            hear(message)
            super().send_message(message)

    return AttentiveDriver


LONGEST_S: Final = 0.25
"""After so long the next key passes in any case: what the first was for may have gone."""


class KeySerialiser:
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
