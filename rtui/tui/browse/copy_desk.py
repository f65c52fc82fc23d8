"""Copies what is under the cursor, in the forms that the user chooses from."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from rtui.analysis.facts import KeyFacts
from rtui.server.redis_cli import key_as_text
from rtui.server.wire.target import Target
from rtui.tui.kit.copying import Copier, copies

Subject = tuple[bytes | None, KeyFacts | None]
"""The name under the cursor and what is known of it."""


class CopyDesk:
    """Carries out the commands that copy."""

    def __init__(self, screen: Screen[None], target: Target, subject: Callable[[], Subject]) -> None:
        """`subject` tells what is under the cursor."""
        self._copier = Copier(screen)
        self._target = target
        self._subject = subject

    def copy_name(self) -> None:
        """Copy the name as text."""
        name, _ = self._subject()
        if name is not None:
            self._copier.copy(key_as_text(name))

    def copy_menu(self) -> None:
        """Choose what to copy."""
        name, facts = self._subject()
        if name is None:
            return
        self._copier.choose(copies(self._target, name, facts if facts is not None and facts.key == name else None))
