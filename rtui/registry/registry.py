"""A registry that has been read: entries with their patterns, and what finds and checks them.

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
    """One pattern and everything that is written about its keys. All texts are as written: not safe to show."""

    pattern: Pattern
    expectations: Expectations = field(default_factory=Expectations)
    purpose: str = ""
    owner: str = ""
    scene: str = ""
    deprecated: str = ""
    """What to use instead; empty where it is not to be retired."""
    holds: str = ""
    """What strings of it hold."""
    examples: tuple[bytes, ...] = ()
    references: tuple[Reference, ...] = ()
    lock: Pattern | None = None
    """The name of the lock that guards making the value again."""
    expires_in: tuple[Source, str] | None = None
    """Where the value itself says when it is out of date."""
    longest: int | None = None
    """Bytes of a name at most, where it is more than elsewhere."""
    is_named_here: bool = True
    """Whether naming rules are for it; False for names that a library gives."""
    origin: str = ""
    """The included registry that it is from; empty for one of the file itself."""
    line: int = 0
    """Where it is in its file, from 1."""
    file: Path | None = None
    """That file, where it is an included one; None for one of the file itself."""


@dataclass(frozen=True)
class Registry:
    """All that a registry says."""

    path: Path | None
    """Its file; None for one that was made otherwise."""
    title: str
    separators: tuple[bytes, ...]
    """Longest first."""
    entries: tuple[Entry, ...]
    matcher: Matcher
    """Of the entries' patterns, by the same indices."""
    naming: NamingRules
    rules: RuleLevels
    source: str = field(default="", repr=False)
    """Its text, if that is all of it: empty where it includes others."""
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    """What is likely a mistake and does not keep it from being used."""

    def entry_of(self, key: bytes) -> Entry | None:
        """Return the entry of the most specific pattern that a key has."""
        index = self.matcher.match(key)
        return None if index is None else self.entries[index]

    @cached_property
    def _references(self) -> Sequence[tuple[int, Reference]]:
        return [(at, reference) for at, entry in enumerate(self.entries) for reference in entry.references]

    def incoming(self, key: bytes) -> list[Incoming]:
        """Return the keys that should point to a key, as far as its name says them."""
        return list(incoming([entry.pattern for entry in self.entries], self._references, key))
