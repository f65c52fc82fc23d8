"""Copying to the terminal's clipboard: at once, or what is chosen from a list.

A terminal takes a text by the escape sequence OSC 52, also over SSH, and does not say whether it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from textual.dom import DOMNode

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.redis_cli_commands import copied_commands, key_as_text
from rtui.server.wire.target import Target
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import cut_middle, literal

SHOWN_CELLS: Final = 60
"""So much of what was copied is shown."""


class Copy(NamedTuple):
    """An entry of the menu and what it copies."""

    title: SafeText
    text: str
    """Printable, but not safe to show: it may resemble something else. Only for the clipboard."""


def copies(target: Target, name: bytes, facts: KeyFacts | None) -> list[Copy]:
    """Return the entries for a key, or for the prefix of a namespace when there are no facts."""
    entries = [
        Copy(literal("name as text"), key_as_text(name)),
        Copy(literal("name as escaped bytes"), quoted(name)),
    ]
    if facts is None:
        return [*entries, Copy(literal("pattern of everything below"), key_as_text(prefix_pattern(name)))]
    for command in copied_commands(target, facts):
        warning = " (changes data)" if command.writes else ""
        entries.append(Copy(SafeText(f"redis-cli: {command.title}{warning}"), command.line))
    return entries


def copy_text(node: DOMNode, text: str) -> None:
    """Send a text to the terminal's clipboard by OSC 52, and say so."""
    node.app.copy_to_clipboard(text)
    shown = cut_middle(display_text(text), SHOWN_CELLS)
    node.app.notify(shown, title="Sent to the terminal", markup=False, timeout=2)


def choose_copy(node: DOMNode, entries: Sequence[Copy]) -> None:
    """Have the user choose what to copy."""

    def chosen(index: int | None) -> None:
        if index is not None:
            copy_text(node, entries[index].text)

    node.app.push_screen(ChoiceScreen(literal("Copy"), [entry.title for entry in entries]), chosen)
