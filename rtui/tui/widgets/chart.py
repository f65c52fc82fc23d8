"""A chart of painted lines that tells where it was clicked."""

from __future__ import annotations

from textual import events
from textual.message import Message

from rtui.tui.widgets.line_panel import LinePanel


class Chart(LinePanel):
    """Lines over a table."""

    class Clicked(Message):
        """A cell of the chart was clicked."""

        def __init__(self, x: int, y: int) -> None:
            super().__init__()
            self.x = x
            self.y = y

    def on_click(self, event: events.Click) -> None:
        """Tell where."""
        self.post_message(self.Clicked(event.x, event.y))
