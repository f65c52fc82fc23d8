"""What can be copied of the thing under the cursor."""

from __future__ import annotations

from typing import NamedTuple

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.display import SafeText
from rtui.keyspace.glob import prefix_pattern
from rtui.server.copy import copied_commands, key_as_bytes, key_as_text
from rtui.server.target import Target
from rtui.tui.ink import own


class Copy(NamedTuple):
    """An entry of the menu and what it copies."""

    title: SafeText
    text: str
    """Printable, but it may hold what looks like something else; only for the clipboard."""


def copies(target: Target, name: bytes, facts: KeyFacts | None) -> list[Copy]:
    """Return the entries for a key, or for the prefix of a namespace when there are no facts."""
    entries = [
        Copy(own("name as text"), key_as_text(name)),
        Copy(own("name as escaped bytes"), key_as_bytes(name)),
    ]
    if facts is None:
        return [*entries, Copy(own("pattern of everything below"), key_as_text(prefix_pattern(name)))]
    for command in copied_commands(target, facts):
        warning = " (changes data)" if command.writes else ""
        entries.append(Copy(SafeText(f"redis-cli: {command.title}{warning}"), command.line))
    return entries
