"""Counts keys by the naming rules they break, and by namespace, in bounded memory.

`found_in` gives each key a number: bits for the rules that it breaks, and bits for the styles in which its words are
not written. Keys of one place with the same number are counted together: 40,000 keys below `user:profile:` that break
no rule and are not in snake case, 12 that have a space as well. A place is the entry of the registry, or for keys
without one the first one or two segments, as far as they are words. So rules and styles are told apart in the report.

Namespaces are bounded twice. In one with more than 32 different second segments none is told apart: they are data, and
all are counted under the first, whenever they came. And if there are thousands of places, those with fewest keys (among
equals the later ones) are counted together as others, by rule only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple, TypeAlias

from rtui.analysis.report.figures import Figures
from rtui.analysis.report.members import NamePlace, NameRuleReport, NamingReport
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.display import display_text
from rtui.registry.matching import NO_PATTERN
from rtui.registry.naming import ALL_STYLES, NAME_RULES, STYLE_BITS, NamingRules, Style, styles_found
from rtui.registry.registry import Registry, RegistryEntry
from rtui.registry.rules import Severity
from rtui.table.key_count import KeyCount, copied, joined

MIXED_CASE: Final = "name-mixed-case"
"""The rule about all keys of a namespace together."""

MOST_SECOND: Final = 32
"""Most different second segments below a first one that are counted separately."""

MOST_COUNTS: Final = 8_192
"""Counts by place and findings; with more, the smallest are counted as others."""

KEPT_COUNTS: Final = MOST_COUNTS - 512
"""So many are kept then: a few at a time are merged, so that it takes some milliseconds."""

MOST_PLACES: Final = 50

LONGEST_WORD: Final = 32
"""A longer segment is no namespace."""

_is_word = re.compile(rb"[^0-9]{1,%d}" % LONGEST_WORD).fullmatch

_CHOICES: Final = (Style.CAMEL, Style.PASCAL, Style.SNAKE, Style.KEBAB, Style.UPPER)
"""Styles that a namespace can have, if the registry names none."""


class NamedPlace(NamedTuple):
    """Where keys are."""

    entry: int
    namespace: bytes
    """For keys without an entry; empty for keys that have no namespace."""


CountedName: TypeAlias = tuple[int, bytes, int, KeyCount]
"""Keys of an entry, or of a namespace, the longest that any of them has, of whose names the same is found."""

OTHERS: Final = NamedPlace(-2, b"")
"""The place of all keys counted as others."""


class NamingCounts:
    """Keys by place and by naming findings."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._rules: NamingRules = registry.naming
        has_styles = registry.rules.severity(MIXED_CASE) is not Severity.OFF
        self.enabled = self._rules.enabled
        """The bits of findings that are counted for keys with an entry."""
        self.kept = self.enabled | (STYLE_BITS if has_styles else 0)
        """And of keys without one."""
        self._namespace = namespaces(self._rules.config.separators)
        self._counts: defaultdict[tuple[NamedPlace, int], KeyCount] = defaultdict(KeyCount)
        self._found: dict[tuple[int, bytes, int], KeyCount] = {}
        """The same counts by entry, namespace and findings, as far as they were requested."""
        self._second: defaultdict[bytes, set[bytes]] = defaultdict(set)
        """By first segment, the namespaces below it."""
        self._whole: set[bytes] = set()
        """First segments whose second segments are no longer counted separately."""

    @property
    def is_wanted(self) -> bool:
        return self.kept != 0

    def copy(self, slicer: Slicer) -> Slices[NamingCounts]:
        """Return counts of the same keys; nothing may be added meanwhile."""
        made = copy(self)
        made._counts = yield from copied(self._counts, slicer)
        made._found = {}
        made._second = defaultdict(set)
        for first, names in self._second.items():
            made._second[first] = names.copy()
            yield from slicer.pause()
        made._whole = self._whole.copy()
        return made

    def judged(self, keys: Sequence[bytes], entries: Sequence[int]) -> Iterator[tuple[int, bytes, int]]:
        """Yield for each key its entry, or NO_PATTERN and its namespace, and the findings counted for its name."""
        for key, entry, found in zip(keys, entries, self._rules.found_in(keys, entries), strict=True):
            if entry < 0:
                yield entry, self._namespace(key)[1], found & self.kept
            else:
                yield entry, b"", found & self.enabled

    def add(self, counted: Iterable[CountedName]) -> None:
        for entry, namespace, found, keys in counted:
            found &= self.kept if entry < 0 else self.enabled  # noqa: PLW2901
            if found:
                self._count(entry, namespace, found).merge(keys)
        self._bound()

    def merge(self, other: NamingCounts) -> None:
        for first in other._whole - self._whole:
            self._join(first)
        self.add((*place, found, count) for (place, found), count in other._counts.items())

    def __getstate__(self) -> dict[str, object]:
        """Leave out members that another process makes anew."""
        return {name: value for name, value in vars(self).items() if name != "_namespace"} | {"_found": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._namespace = namespaces(self._rules.config.separators)

    def _count(self, entry: int, longest: bytes, found: int) -> KeyCount:
        """Return the count for keys of an entry, or of a namespace, the longest that they have."""
        known = self._found.get((entry, longest, found))
        if known is not None:
            return known
        first, namespace = (self._namespace(longest)[0], longest) if entry < 0 else _NONE
        if first in self._whole:
            namespace = first
        elif namespace != first and namespace not in self._second[first]:
            self._second[first].add(namespace)
            if len(self._second[first]) > MOST_SECOND:
                self._join(first)
                namespace = first
        count = self._counts[NamedPlace(entry, namespace), found]
        if namespace == longest:
            self._found[entry, namespace, found] = count
        return count

    def _join(self, first: bytes) -> None:
        """Count all namespaces below a first segment together from now on."""
        self._whole.add(first)
        self._found.clear()
        below = self._second.pop(first, set())
        for place, found in [one for one in self._counts if one[0].namespace in below]:
            self._counts[NamedPlace(place.entry, first), found].merge(self._counts.pop((place, found)))

    def _bound(self) -> None:
        """Count small places as others, by rule, if there are too many."""
        if len(self._counts) <= MOST_COUNTS:
            return
        ranked = sorted(self._counts.items(), key=lambda one: -one[1].keys)
        for (place, found), count in ranked[KEPT_COUNTS:]:
            if place == OTHERS:
                continue
            del self._counts[place, found]
            self._found.pop((*place, found), None)
            for at in range(len(NAME_RULES)):
                if found >> at & 1:
                    self._counts[OTHERS, 1 << at].merge(count)
        kept = {place.namespace for place, _ in self._counts}
        self._second = defaultdict(
            set, {first: rest for first, names in self._second.items() if (rest := names & kept)}
        )

    def report(self, figures: Figures, entry_keys: Callable[[int], int], slicer: Slicer) -> Slices[NamingReport]:
        """Return all rules that are not off; `entry_keys` is how many keys an entry has."""
        rules = []
        if self.kept & STYLE_BITS:
            mixed = yield from self._mixed(entry_keys, slicer)
            rules.append(self._rule_report(MIXED_CASE, mixed, figures))
        for at in range(len(NAME_RULES)):
            if self._rules.enabled >> at & 1:
                counts: defaultdict[NamedPlace, KeyCount] = defaultdict(KeyCount)
                for (place, found), count in self._counts.items():
                    if found >> at & 1:
                        counts[place].merge(count)
                        yield from slicer.pause()
                rules.append(self._rule_report(NAME_RULES[at], counts, figures))
                yield from slicer.pause()
        return NamingReport(tuple(rules))

    def _rule_report(self, rule: str, counts: dict[NamedPlace, KeyCount], figures: Figures) -> NameRuleReport:
        whole, others = joined(counts.values()), counts.pop(OTHERS, KeyCount()).keys
        ranked = sorted(counts.items(), key=lambda one: (-one[1].keys, one[0]))
        listed = [self._place_report(place, count, figures) for place, count in ranked[:MOST_PLACES]]
        return NameRuleReport(
            rule=rule,
            keys=figures.keys(whole.keys),
            share_keys=figures.share_keys(whole.keys),
            memory_bytes=whole.memory(figures),
            places=tuple(listed),
            other_keys=figures.keys(others + sum(count.keys for _, count in ranked[MOST_PLACES:])),
            examples=whole.example_keys,
        )

    def _place_report(self, place: NamedPlace, count: KeyCount, figures: Figures) -> NamePlace:
        entries = self._registry.entries
        pattern = entries[place.entry].pattern.text if place.entry >= 0 else ""
        return NamePlace(
            place.namespace,
            display_text(pattern, limit=1_000),
            figures.keys(count.keys),
            count.memory(figures),
            count.example_keys,
            count.shortened,
        )

    def _mixed(self, entry_keys: Callable[[int], int], slicer: Slicer) -> Slices[dict[NamedPlace, KeyCount]]:
        """Return by first segment with several styles the keys that are not in the most common one."""
        styles, mixed = self._rules.config.styles, dict[NamedPlace, KeyCount]()
        choices = [one for one in Style if (one in _CHOICES if styles is None else one in styles)]
        share = self._registry.rules.parameter(MIXED_CASE, "share")
        assert isinstance(share, float)  # noqa: S101 - it is declared so
        by_place: defaultdict[NamedPlace, defaultdict[Style, KeyCount]] = defaultdict(lambda: defaultdict(KeyCount))
        for place, written, count in self._styled(entry_keys):
            by_place[place][written].merge(count)
            yield from slicer.pause()
        for place, counted in by_place.items():
            fitting = {one: sum(count.keys for written, count in counted.items() if one in written) for one in choices}
            most, whole = max(fitting, key=fitting.__getitem__), sum(count.keys for count in counted.values())
            others = joined(count for written, count in counted.items() if most not in written)
            if len(choices) > 1 and others.keys and others.keys >= share * whole:
                mixed[place] = others
            yield from slicer.pause()
        return mixed

    def _styled(self, entry_keys: Callable[[int], int]) -> Iterator[tuple[NamedPlace, Style, KeyCount]]:
        """Yield keys by first segment and style; all keys of an entry count under its pattern's segment and style."""
        for (place, found), count in self._counts.items():
            if place.entry == NO_PATTERN and found & STYLE_BITS:
                yield NamedPlace(NO_PATTERN, self._namespace(place.namespace)[0]), styles_found(found), count
        for index, entry in enumerate(self._registry.entries):
            keys = entry_keys(index)
            written = self._rules.styles(entry.pattern.sample(), index)
            if keys and entry.is_named_here and written != ALL_STYLES:
                yield NamedPlace(NO_PATTERN, self._namespace(_beginning(entry))[0]), written, KeyCount(keys)


_NONE: Final = (b"", b"")


def _beginning(entry: RegistryEntry) -> bytes:
    """Return how the keys of an entry begin, as far as they are all alike."""
    found = b""
    for segment in entry.pattern.segments:
        if segment.literal is None:
            break
        found += segment.literal + segment.separator
    return found


def namespaces(separators: Sequence[bytes]) -> Callable[[bytes], tuple[bytes, bytes]]:
    """Return a function from a key to its namespaces: the first segment, and the first two, each with its separator.

    Only words count as segments here: short, without a digit. The last segment never counts.
    """
    if len(separators) == 1:
        single = separators[0]

        def of_one(key: bytes) -> tuple[bytes, bytes]:
            first, separator, rest = key.partition(single)
            if not separator or not _is_word(first):
                return _NONE
            second, separator, _ = rest.partition(single)
            first += single
            return (first, first + second + single) if separator and _is_word(second) else (first, first)

        return of_one
    if not separators:
        return lambda key: _NONE
    find = re.compile(b"|".join(map(re.escape, separators))).search

    def of_several(key: bytes) -> tuple[bytes, bytes]:
        one = find(key)
        if one is None or not _is_word(key[: one.start()]):
            return _NONE
        first = key[: one.end()]
        two = find(key, one.end())
        return (
            (first, key[: two.end()]) if two is not None and _is_word(key[one.end() : two.start()]) else (first, first)
        )

    return of_several
