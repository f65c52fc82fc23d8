"""The platform's driver with thrift: it sends what differs from what the terminal shows."""

from __future__ import annotations

from textual import events
from textual.driver import Driver
from textual.message import Message

from rtui.tui.thrift import Thrift


def thrifty(driver_class: type[Driver]) -> type[Driver]:
    """Return a driver class that is `driver_class` but for what it writes."""

    class ThriftyDriver(driver_class):  # type: ignore[misc, valid-type]
        """Rewrites each frame before it is written."""

        thrift: Thrift | None = None

        def write(self, data: str) -> None:
            """Write a frame, or what is new in it."""
            if self.thrift is None:
                self.thrift = Thrift()
            super().write(self.thrift.rewrite(data))

        def send_message(self, message: Message) -> None:
            """Forget what the terminal shows when it changes its size."""
            if isinstance(message, events.Resize):
                if self.thrift is None:
                    self.thrift = Thrift()
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
