"""The line where a filter is typed, or another text."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.widgets import Input

GLOB_CHARACTERS: Final = "*?[]\\"
"""With one of these a text is a glob."""


class FilterInput(Input):
    """A line over the status bar; hidden until it is wanted."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("down,tab", "screen.leave_filter", show=False)]

    def __init__(
        self, placeholder: str = "name, part of a name, or a glob such as user:*:cart", *, id: str = "filter"
    ) -> None:
        super().__init__(
            placeholder=placeholder,
            id=id,
            compact=True,
            select_on_focus=False,
            max_length=512,
        )
        self.cursor_blink = False

    @property
    def is_open(self) -> bool:
        """Whether a filter is being typed."""
        return self.has_class("-open")

    @property
    def is_glob(self) -> bool:
        """Whether the text has characters that only a server's glob understands."""
        return any(character in GLOB_CHARACTERS for character in self.value)

    def open(self, value: str = "") -> None:
        """Show the line with a text to change, and take the keyboard at once: the next key is meant for the line."""
        self.value = value
        self.cursor_position = len(value)
        self.add_class("-open")
        self.screen.set_focus(self)

    def close(self) -> None:
        """Hide the line."""
        self.remove_class("-open")
