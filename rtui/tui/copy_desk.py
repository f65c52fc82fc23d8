"""Copies what is under the cursor, in the forms that the user chooses from."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from rtui.analysis.facts import KeyFacts
from rtui.server.copy import key_as_text
from rtui.server.target import Target
from rtui.tui.copying import copies
from rtui.tui.ink import cut_middle, own
from rtui.tui.screens.choice import ChoiceScreen
from rtui.tui.shown import display_text

SHOWN_CELLS = 60
"""So much of what was copied is shown."""

Subject = tuple[bytes | None, KeyFacts | None]
"""The name under the cursor and what is known of it."""


class CopyDesk:
    """Carries out the commands that copy."""

    def __init__(self, screen: Screen[None], target: Target, subject: Callable[[], Subject]) -> None:
        """`subject` tells what is under the cursor."""
        self._screen = screen
        self._target = target
        self._subject = subject

    def copy_name(self) -> None:
        """Copy the name as text."""
        name, _ = self._subject()
        if name is not None:
            self._copy(key_as_text(name))

    def copy_menu(self) -> None:
        """Choose what to copy."""
        name, facts = self._subject()
        if name is None:
            return
        entries = copies(self._target, name, facts if facts is not None and facts.key == name else None)

        def chosen(index: int | None) -> None:
            if index is not None:
                self._copy(entries[index].text)

        self._screen.app.push_screen(ChoiceScreen(own("Copy"), [entry.title for entry in entries]), chosen)

    def _copy(self, text: str) -> None:
        self._screen.app.copy_to_clipboard(text)
        shown = cut_middle(display_text(text), SHOWN_CELLS)
        self._screen.notify(shown, title="Copied", markup=False, timeout=2)
