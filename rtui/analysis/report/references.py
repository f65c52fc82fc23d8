"""What a check of references adds up to: for each declared reference how many keys break it, and a few of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rtui.analysis import estimates
from rtui.analysis.report.members import Figure

MOST_EXAMPLES: Final = 5
"""Keys that are named of each reference."""


@dataclass
class CheckedReference:
    """One reference of a pattern, and the keys of it that were looked at."""

    pattern: str
    """As the registry has it; not safe to show."""
    glob: bytes
    """A glob for the keys of the pattern."""
    source: str
    """What points: `member`, `field:userId`."""
    target: str
    """The pattern of what it points to, or of the key that has to hold the same."""
    is_twin: bool = False
    matching: int = 0
    """Keys of the pattern."""
    looked_at: int = 0
    """Keys of it that were read: all, or chosen at random."""
    values: int = 0
    """Values that were followed."""
    broken_values: int = 0
    """Those of them that lead to no key; of a twin, those that it lacks or has beside."""
    broken_keys: int = 0
    """Keys with such a value."""
    unknown: int = 0
    """Values of which nobody knows, since asking was refused."""
    skipped: int = 0
    """Keys that could not be read, or only in part."""
    examples: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Some of the broken keys, each with the key that is missing or with what the twin lacks or has beside."""

    @property
    def is_sample(self) -> bool:
        """Whether not all keys of the pattern were looked at."""
        return self.looked_at < self.matching

    @property
    def broken(self) -> Figure:
        """How many keys of the pattern are broken: exact, or an estimate with its interval."""
        if not self.is_sample or not self.looked_at:
            return self.broken_keys
        return estimates.count_among(self.broken_keys, self.looked_at, self.matching)

    def add(self, key: bytes, values: int, broken: list[bytes], *, unknown: int = 0) -> None:
        """Add a key: how many of its values were followed, and what is wrong."""
        self.values += values
        self.unknown += unknown
        self.broken_values += len(broken)
        self.broken_keys += bool(broken)
        if broken and len(self.examples) < MOST_EXAMPLES:
            self.examples.append((key, broken[0]))


@dataclass
class ReferenceChecks:
    """All references of a registry."""

    references: list[CheckedReference] = field(default_factory=list)
    keys: int = 0
    """Keys of the keyspace that were listed."""
    is_complete: bool = False
    """Whether all keys were listed."""
    failure: str = ""
    """Why it ended early; a safe sentence without a full stop."""
    touched: int = 0
    """Keys whose reading the server counted as a use."""

    @property
    def dangling(self) -> list[CheckedReference]:
        """References of which a key points to nothing."""
        return [one for one in self.references if one.broken_keys and not one.is_twin]

    @property
    def unlike(self) -> list[CheckedReference]:
        """Twins of which a copy differs."""
        return [one for one in self.references if one.broken_keys and one.is_twin]
