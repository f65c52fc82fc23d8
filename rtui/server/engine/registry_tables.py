"""Lets the compiled engine count keys by a registry, and takes over what it has counted.

Import it only where the compiled engine was built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from rtui.analysis.aggregate.registered import CountedEntries, Layout
from rtui.analysis.aggregate.registry_counts import RegistryCounts
from rtui.server.engine._registry import RegistryTable

if TYPE_CHECKING:
    from rtui.server.engine._registry import Names, Taken

T = TypeVar("T")

AT_ONCE: Final = 100
"""Counts of names or entries that are added before the event loop may do something else."""


def registry_table(counts: RegistryCounts) -> RegistryTable | None:
    """Return the tables of a registry; None for one whose separators are not of one byte each."""
    registry, entries, naming = counts.registry, counts.entries, counts.naming
    separators = registry.matcher.separators
    if any(len(one) != 1 for one in separators) or registry.naming.config.separators != separators:
        return None
    tables = registry.matcher.tables(), registry.naming.tables()
    return RegistryTable(*tables, entries.bounds(), entries.has_least_ttl, naming.enabled, naming.kept)


def counted_entries(taken: Taken) -> list[CountedEntries]:
    """Return what an engine has counted by entry, in parts of a few entries."""
    layouts, memory_bytes, lives, examples, _ = taken
    parts = []
    for key_type, known, keys in layouts:
        layout, items = Layout(key_type, *known), list(keys.items())
        parts += [CountedEntries([(layout, dict(some))], (), (), ()) for some in _portions(items)]
    parts += [CountedEntries((), some, (), ()) for some in _portions(memory_bytes)]
    parts += [CountedEntries((), (), some, ()) for some in _portions(lives)]
    return [*parts, *(CountedEntries((), (), (), some) for some in _portions(examples))]


def _portions(items: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]


def add_entries(counts: RegistryCounts, parts: list[CountedEntries]) -> Iterator[None]:
    """Add counts by entry, one part at a time, and take them out of the list."""
    while parts:
        counts.add_counted(parts.pop())
        yield


def add_names(counts: RegistryCounts, names: Names) -> Iterator[None]:
    """Add counts of names, a few at a time, and take them out of the list."""
    while names:
        some = names[-AT_ONCE:]
        del names[-AT_ONCE:]
        counts.add_names(some)
        yield
