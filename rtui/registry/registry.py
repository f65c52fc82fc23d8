"""A registry that has been read: entries with their patterns, the matcher and the rules.

registry = read_registry(path)                  # load.py
index = registry.matcher.match(key)             # the most specific pattern, or None
entry = registry.entries[index]
entry.expectations.checks(Found(type, ttl_ms, memory_bytes, length))
registry.naming.broken(key, index)              # bits of rules: naming.rule_ids
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rtui.registry.expectations import Expectations
from rtui.registry.matching import Matcher
from rtui.registry.naming import NamingRules
from rtui.registry.patterns import Pattern
from rtui.registry.problems import Problem
from rtui.registry.references import Incoming, Reference, Source, incoming
from rtui.registry.rules import RuleLevels


@dataclass(frozen=True, slots=True)
class Entry:
    """One pattern with everything written about its keys. All texts are as written: not safe to show."""

    pattern: Pattern
    expectations: Expectations = field(default_factory=Expectations)
    purpose: str = ""
    owner: str = ""
    scene: str = ""
    deprecated: str = ""
    """The replacement; empty if the pattern is not deprecated."""
    holds: str = ""
    """The content of its strings."""
    examples: tuple[bytes, ...] = ()
    references: tuple[Reference, ...] = ()
    lock: Pattern | None = None
    """The name of the lock that guards rebuilding the value."""
    expires_in: tuple[Source, str] | None = None
    """The place in the value that tells when it is out of date."""
    longest: int | None = None
    """A larger maximum length of names, in bytes."""
    is_named_here: bool = True
    """Whether naming rules apply; False for names given by a library."""
    origin: str = ""
    """The included registry that contains it; empty for the file itself."""
    line: int = 0
    """The line in its file, from 1."""
    file: Path | None = None
    """The included file that contains it; None for the file itself."""


@dataclass(frozen=True)
class Registry:
    """A complete registry."""

    path: Path | None
    """Its file; None if it was read from a text."""
    title: str
    separators: tuple[bytes, ...]
    """The separators, longest first."""
    entries: tuple[Entry, ...]
    matcher: Matcher
    """Matches the entries' patterns, by the same indices."""
    naming: NamingRules
    rules: RuleLevels
    source: str = field(default="", repr=False)
    """The complete text; empty if it includes others."""
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    """Likely mistakes that do not prevent its use."""

    def entry_of(self, key: bytes) -> Entry | None:
        """Return the entry of the most specific pattern that matches a key, or None."""
        index = self.matcher.match(key)
        return None if index is None else self.entries[index]

    @cached_property
    def _references(self) -> Sequence[tuple[int, Reference]]:
        return [(at, reference) for at, entry in enumerate(self.entries) for reference in entry.references]

    def incoming(self, key: bytes) -> list[Incoming]:
        """Return the keys that should point to a key, as far as names determine them."""
        return list(incoming([entry.pattern for entry in self.entries], self._references, key))
