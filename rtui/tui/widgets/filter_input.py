"""The line where a filter is typed."""

from __future__ import annotations

from textual.widgets import Input


class FilterInput(Input):
    """A line over the status bar; hidden until it is wanted."""

    def __init__(self) -> None:
        super().__init__(
            placeholder="name, part of a name, or a glob such as user:*:cart",
            id="filter",
            compact=True,
            select_on_focus=False,
            max_length=512,
        )
        self.cursor_blink = False

    def open(self) -> None:
        """Show the line and take the keyboard."""
        self.add_class("-open")
        self.focus()

    def close(self) -> None:
        """Hide the line."""
        self.remove_class("-open")
