"""The terminal: a driver that writes only what differs from the screen, and keys that arrive in one packet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Final

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.driver import Driver
from textual.message import Message

from rtui.tui.kit.output_diff import OutputDiff


def terminal_driver(driver_class: type[Driver], on_message: Callable[[Message], None]) -> type[Driver]:
    """Return a subclass of the platform's driver that writes differences and reports input as early as possible.

    `on_message` is called with each message before the application gets it, from the thread that reads the terminal.
    """

    class TerminalDriver(driver_class):  # type: ignore[misc, valid-type]
        """Rewrites each frame to what differs from the screen."""

        @cached_property
        def output_diff(self) -> OutputDiff:
            """What the terminal shows."""
            return OutputDiff()

        def write(self, data: str) -> None:
            """Write a frame, reduced to what differs."""
            super().write(self.output_diff.rewrite(data))

        def send_message(self, message: Message) -> None:
            """Report a message, then send it to the application; a resized terminal is painted from nothing."""
            on_message(message)
            if isinstance(message, events.Resize):
                self.output_diff.resize(message.size.width, message.size.height)
            super().send_message(message)

    return TerminalDriver


def forget_screen(driver: Driver | None) -> None:
    """Have the driver write everything that is painted next, whatever the terminal shows."""
    output_diff = getattr(driver, "output_diff", None)
    if isinstance(output_diff, OutputDiff):
        output_diff.forget()


LONGEST_S: Final = 0.25
"""A key waits at most so long for the one before it: the widget that the latter was for may be gone."""


class KeySerialiser:
    """Lets keys that arrive in one packet through one after the other, such as a filter after the key that opens it.

    A key bubbles from the focused widget up to the application, one message queue a step, and only the application
    looks up its binding. So the next key, if it were sent at once, would go to the widget that was focused before. Each
    key is followed by a callback on the same way through the queues; the next key is let through when that arrives.
    """

    def __init__(self, app: App[int], now_s: Callable[[], float]) -> None:
        """`now_s` returns seconds of a monotonic clock."""
        self._app = app
        self._now_s = now_s
        self._waiting: deque[events.Key] = deque()
        self._current: events.Key | None = None
        self._since_s = 0.0

    def accept(self, key: events.Key) -> bool:
        """Return whether to handle a key now; one that has to wait is posted to the application again."""
        if self._current not in (None, key) and self._now_s() - self._since_s < LONGEST_S:
            self._waiting.append(key)
            return False
        self._current, self._since_s = key, self._now_s()
        return True

    def follow(self, key: events.Key, node: DOMNode) -> None:
        """Follow a key from `node` up to the application."""
        if key is not self._current:
            return
        parent = node.parent
        if node is self._app or parent is None or not node.call_later(self.follow, key, parent):
            self._current = None
            if self._waiting:
                self._current, self._since_s = self._waiting.popleft(), self._now_s()
                self._app.post_message(self._current)
