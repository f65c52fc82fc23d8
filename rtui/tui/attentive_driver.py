"""A driver that tells at once what came from the terminal, before the event loop has a turn for it."""

from __future__ import annotations

from collections.abc import Callable

from textual.driver import Driver
from textual.message import Message


def attentive(driver_class: type[Driver], hear: Callable[[Message], None]) -> type[Driver]:
    """Return a driver class that is `driver_class`, but calls `hear` first; from the thread that reads the terminal."""

    class AttentiveDriver(driver_class):  # type: ignore[misc, valid-type]
        """Lets somebody hear of each message before the application does."""

        def send_message(self, message: Message) -> None:
            """Tell of a message, then send it."""
            hear(message)
            super().send_message(message)

    return AttentiveDriver
