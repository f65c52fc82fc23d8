"""The line in which one types what to find in a value, where to go in it, or which file to write it to."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from textual.widgets import Input

from rtui.tui.kit.styled_text import Line, Role, Span, literal


class Purpose(StrEnum):
    """What is typed."""

    FIND = "find"
    GO_TO = "go to"
    WRITE = "write to"


_VERBS: Final = {
    Purpose.FIND: literal(" finds it, n goes on"),
    Purpose.GO_TO: literal(" goes there"),
    Purpose.WRITE: literal(" writes the file"),
}


def prompt_hint(purpose: Purpose) -> Line:
    """Return what the keys do while something is typed, for the footer."""
    return (
        Span(literal(" enter"), Role.ACCENT),
        Span(_VERBS[purpose], Role.MUTED),
        Span(literal("  esc"), Role.ACCENT),
        Span(literal(" goes back"), Role.MUTED),
    )


class ValuePrompt(Input):
    """A line below the value; hidden until it is wanted."""

    DEFAULT_CSS = """
    ValuePrompt { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    ValuePrompt:focus { border: none; }
    ValuePrompt.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="value-prompt", compact=True, select_on_focus=False, max_length=4096)
        self.cursor_blink = False
        self.purpose = Purpose.FIND

    @property
    def is_open(self) -> bool:
        """Whether something is being typed."""
        return self.has_class("-open")

    def open(self, purpose: Purpose, hint: str, value: str = "") -> None:
        """Show the line with a text to change, and take the keyboard at once: the next key is meant for the line."""
        self.purpose, self.placeholder = purpose, hint
        self.value = value
        self.cursor_position = len(value)
        self.add_class("-open")
        self.screen.set_focus(self)

    def close(self) -> None:
        """Hide the line."""
        self.remove_class("-open")
