"""Sends texts to the terminal for its clipboard; whether it takes them up, it does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from textual.screen import Screen

from rtui.tui.copying import Copy
from rtui.tui.ink import cut_middle, own
from rtui.tui.screens.choice import ChoiceScreen
from rtui.tui.shown import display_text

SHOWN_CELLS: Final = 60
"""So much of what was copied is shown."""


class Copier:
    """Copies at once, or what the user chooses."""

    def __init__(self, screen: Screen[Any]) -> None:
        self._screen = screen

    def copy(self, text: str) -> None:
        """Send a text to the terminal by OSC 52."""
        self._screen.app.copy_to_clipboard(text)
        shown = cut_middle(display_text(text), SHOWN_CELLS)
        self._screen.notify(shown, title="Sent to the terminal", markup=False, timeout=2)

    def choose(self, entries: Sequence[Copy]) -> None:
        """Have the user choose what to copy."""

        def chosen(index: int | None) -> None:
            if index is not None:
                self.copy(entries[index].text)

        self._screen.app.push_screen(ChoiceScreen(own("Copy"), [entry.title for entry in entries]), chosen)
