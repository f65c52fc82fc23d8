"""Keys by the entries of a registry, those that break an entry's expectations, and the registry's part of a report.

The number of keys of an entry, and of those with a known fact, follow from one counter for each layout: a type and the
facts that are known. The memory does not grow with the keys.

Keys that no entry describes are not counted by namespace. A namespace or pattern of the report has up to three of its
keys as examples, chosen by their checksums, which is as good as at random; one that is a single key has its name. If
the registry has no pattern for any of them, the keys of the namespace are unregistered; if it has for some, a part of
them is, which is estimated from the examples. The total number is counted: keys in no such namespace are the rest, and
estimates are bounded by the number left for them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from operator import add
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from rtui.analysis.estimates import Estimate, as_estimate, count_among
from rtui.analysis.report.document import Node, NodeKind
from rtui.analysis.report.figures import Figures
from rtui.analysis.report.members import (
    TEXT_LIMIT,
    EntryReport,
    ExpectationReport,
    Figure,
    NamingReport,
    RegistryReport,
    UnregisteredReport,
    weight_of,
)
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.display import display, display_text
from rtui.registry.expectations import Breach, Expectations
from rtui.registry.matching import NO_PATTERN, Matcher
from rtui.registry.registry import Registry, RegistryEntry
from rtui.table.key_count import KeyCount, copied, joined
from rtui.table.naming_counts import NamingCounts


class Layout(NamedTuple):
    """Which facts are known of keys of a type."""

    key_type: bytes | None
    has_ttl: bool
    has_memory: bool
    has_length: bool
    is_sampled: bool


class CountedEntries(NamedTuple):
    """Some keys by entry, or NO_PATTERN."""

    layouts: Sequence[tuple[Layout, Mapping[int, int]]]
    memory_bytes: Sequence[tuple[int, int]]
    lives: Sequence[tuple[int, int, int]]
    """For entries that expect a least TTL: the number of expiring keys, and their longest remaining TTL in ms."""
    shown: Sequence[tuple[int, KeyCount]]
    """Examples, and the sizes of the keys where they are a sample; no keys are counted in it."""


CountedBreach: TypeAlias = tuple[int, Breach, bool, KeyCount]
"""Keys of an entry that break the same expectation; unsampled keys, which do not stand for others, apart."""


class EntryCounts:
    """Keys by entry of a registry; those without one are counted under NO_PATTERN."""

    def __init__(self, entries: Sequence[RegistryEntry]) -> None:
        self.layouts: defaultdict[Layout, Counter[int]] = defaultdict(Counter)
        count = len(entries) + 1
        self.memory = [0] * count
        """By entry; NO_PATTERN is the last."""
        self.expiring = [0] * count
        """Expiring keys of entries whose expected TTL has a minimum."""
        self.longest_ms = [0] * count
        """The longest remaining TTL of these keys, in ms."""
        self.broken: defaultdict[tuple[int, Breach, bool], KeyCount] = defaultdict(KeyCount)
        """By entry and breach; unsampled keys, which do not stand for others, apart."""
        self.shown: defaultdict[int, KeyCount] = defaultdict(KeyCount)
        """See `CountedEntries`."""

    def copy(self, slicer: Slicer) -> Slices[EntryCounts]:
        """Return counts of the same keys; nothing may be added meanwhile."""
        made = copy(self)
        made.layouts = defaultdict(Counter)
        for layout, keys in self.layouts.items():
            made.layouts[layout] = keys.copy()
            yield from slicer.pause()
        made.memory = self.memory.copy()
        made.expiring, made.longest_ms = self.expiring.copy(), self.longest_ms.copy()
        made.broken = yield from copied(self.broken, slicer)
        made.shown = yield from copied(self.shown, slicer)
        return made

    def add(self, counted: CountedEntries) -> None:
        for layout, keys in counted.layouts:
            self.layouts[layout].update(keys)
        for index, size in counted.memory_bytes:
            self.memory[index] += size
        for index, expiring, longest_ms in counted.lives:
            self.expiring[index] += expiring
            self.longest_ms[index] = max(self.longest_ms[index], longest_ms)
        for index, shown in counted.shown:
            self.shown[index].merge(shown)

    def add_broken(self, counted: Iterable[CountedBreach]) -> None:
        for index, breach, is_sampled, keys in counted:
            self.broken[index, breach, is_sampled].merge(keys)

    def merge(self, other: EntryCounts) -> None:
        """Add the counts of other keys by the same entries."""
        for layout, keys in other.layouts.items():
            self.layouts[layout].update(keys)
        for own, theirs in ((self.memory, other.memory), (self.expiring, other.expiring)):
            own[:] = map(add, own, theirs)
        self.longest_ms[:] = map(max, self.longest_ms, other.longest_ms)
        for broken, count in other.broken.items():
            self.broken[broken].merge(count)
        for index, shown in other.shown.items():
            self.shown[index].merge(shown)


TOO_SHORT: Final = "ttl-too-short"
"""The rule about all keys of an entry together."""

MOST_UNREGISTERED: Final = 1_000
"""Namespaces without entry that a report lists."""

Known = Callable[[Layout], bool]


def registry_report(
    registry: Registry, counts: EntryCounts, root: Node, figures: Figures, slicer: Slicer, *, samples_lengths: bool
) -> Slices[RegistryReport]:
    """Return the registry's section on all keys; `root` is their tree.

    `samples_lengths`: lengths were asked of randomly chosen keys only.
    """
    entries, counted = _Entries(registry.entries, counts, figures, samples_lengths=samples_lengths), []
    reports = []
    for index in range(len(registry.entries)):
        reports.append(entries.report(index))
        counted.append(entries.count(index))
        yield from slicer.pause()
    registered, others = joined(counted), entries.count(NO_PATTERN)
    unregistered: tuple[UnregisteredReport, ...] = ()
    if others.keys:
        unregistered = yield from _unregistered(registry.matcher, root, slicer)
        unregistered = _with_rest(unregistered, others, figures)
    return RegistryReport(
        title=display_text(registry.title, limit=TEXT_LIMIT),
        file="" if registry.path is None else display_text(registry.path.name, limit=TEXT_LIMIT),
        registered_keys=figures.keys(registered.keys),
        registered_share=figures.share_keys(registered.keys),
        registered_memory_bytes=registered.memory(figures),
        registered_memory_share=registered.memory_share(figures),
        unregistered_keys=figures.keys(others.keys),
        unregistered_memory_bytes=others.memory(figures),
        entries=tuple(reports),
        unregistered=unregistered,
    )


class _Entries:
    """Makes the reports of entries."""

    def __init__(
        self, entries: Sequence[RegistryEntry], counts: EntryCounts, figures: Figures, *, samples_lengths: bool
    ) -> None:
        self._samples_lengths = samples_lengths
        self._entries = entries
        self._counts = counts
        self._figures = figures
        self._layouts: defaultdict[int, list[tuple[Layout, int]]] = defaultdict(list)
        for layout, keys in counts.layouts.items():
            for index, count in keys.items():
                self._layouts[index].append((layout, count))

    def _keys(self, index: int, is_known: Known = lambda _: True) -> int:
        return sum(keys for layout, keys in self._layouts.get(index, ()) if is_known(layout))

    def count(self, index: int) -> KeyCount:
        """Return the keys of an entry, or with NO_PATTERN the keys without one."""
        memory_keys = self._keys(index, lambda layout: layout.has_memory)
        found = KeyCount(self._keys(index), memory_keys, self._counts.memory[index])
        found.merge(self._counts.shown.get(index) or KeyCount())
        return found

    def _broken(self, index: int, breach: Breach) -> list[KeyCount]:
        """Return the keys of an entry with a breach: those that stand for others, and the rest."""
        return [self._counts.broken.get((index, breach, is_sampled)) or KeyCount() for is_sampled in (True, False)]

    def report(self, index: int) -> EntryReport:
        entry, figures, count = self._entries[index], self._figures, self.count(index)
        types: Counter[bytes] = Counter()
        for layout, keys in self._layouts.get(index, ()):
            if layout.key_type is not None:
                types[layout.key_type] += keys
        ordered = sorted(types.items(), key=lambda pair: (-pair[1], pair[0]))
        return EntryReport(
            pattern=_text(entry.pattern.text),
            keys=figures.keys(count.keys),
            share_keys=figures.share_keys(count.keys),
            inspected_keys=count.keys,
            memory_bytes=count.memory(figures),
            share_memory=count.memory_share(figures),
            memory_known_keys=count.memory_keys,
            types=tuple((key_type, figures.keys(keys)) for key_type, keys in ordered),
            expectations=tuple(self._expectations(index, entry.expectations, count)),
            examples=count.example_keys,
            purpose=_text(entry.purpose),
            owner=_text(entry.owner),
            scene=_text(entry.scene),
            deprecated=_text(entry.deprecated),
            origin=_text(entry.origin),
        )

    def _expectations(self, index: int, expected: Expectations, count: KeyCount) -> Iterator[ExpectationReport]:
        """Yield every expectation of an entry with the keys that break it."""
        figures, keys = self._figures, count.keys
        for breach, text in _expected(expected):
            known = self._keys(index, _KNOWN[breach])
            broken = joined(self._broken(index, breach))
            figure = self._lengths(index, keys) if breach is Breach.LENGTH else figures.keys(broken.keys)
            is_known = known or not keys
            yield ExpectationReport(
                rule=breach.value,
                expected=_text(text),
                keys=figure if is_known else None,
                memory_bytes=broken.memory(figures) if is_known else None,
                known_keys=known,
                examples=broken.example_keys,
                long_names=broken.shortened,
            )
        ttl = expected.ttl
        if ttl is not None and ttl.low_ms is not None:
            known, expiring = self._keys(index, _has_ttl), self._counts.expiring[index]
            is_short = ttl.is_too_short(self._counts.longest_ms[index], expiring)
            yield ExpectationReport(
                rule=TOO_SHORT,
                expected=_text(ttl.text),
                keys=figures.keys(expiring if is_short else 0) if known or not keys else None,
                memory_bytes=None,
                known_keys=known,
                examples=count.example_keys if is_short else (),
            )

    def _lengths(self, index: int, keys: int) -> Figure:
        """Return how many keys break the expected length.

        If lengths are sampled, unsampled keys were asked only because they may be among the longest: they count, but
        are not extrapolated.
        """
        asked = self._keys(index, lambda layout: layout.has_length and layout.is_sampled)
        sampled, others = (count.keys for count in self._broken(index, Breach.LENGTH))
        if (
            not (asked and self._samples_lengths)
            or asked + self._keys(index, lambda one: one.has_length and not one.is_sampled) >= keys
        ):
            return self._figures.keys(sampled + others)
        found, least = as_estimate(self._figures.among(sampled, asked, keys)), float(sampled + others)
        return Estimate(max(found.low, least), max(found.value, least), max(found.high, least))


def _expected(one: Expectations) -> Iterator[tuple[Breach, str]]:
    """Yield the breaches that one key can make of an expectation, with its text."""
    if one.types:
        yield Breach.TYPE, " or ".join(display(name, limit=64) for name in one.types)
    if one.ttl is not None:
        if not one.ttl.may_be_missing:
            yield Breach.TTL_MISSING, one.ttl.text
        if not one.ttl.may_expire:
            yield Breach.TTL_UNEXPECTED, one.ttl.text
        elif one.ttl.high_ms is not None:
            yield Breach.TTL_LONG, one.ttl.text
    if one.size is not None:
        yield Breach.SIZE, one.size_text
    if one.length is not None:
        yield Breach.LENGTH, one.length_text


def _has_ttl(layout: Layout) -> bool:
    return layout.has_ttl


_KNOWN: Final[dict[Breach, Known]] = {
    Breach.TYPE: lambda layout: layout.key_type is not None,
    Breach.TTL_MISSING: _has_ttl,
    Breach.TTL_LONG: _has_ttl,
    Breach.TTL_UNEXPECTED: _has_ttl,
    Breach.SIZE: lambda layout: layout.has_memory,
    Breach.LENGTH: lambda layout: layout.has_length,
}
"""The layouts that decide whether an expectation is broken."""


def _text(text: str) -> str:
    return display_text(text, limit=TEXT_LIMIT)


def _unregistered(matcher: Matcher, root: Node, slicer: Slicer) -> Slices[tuple[UnregisteredReport, ...]]:
    """Return the namespaces whose keys have no registered pattern, largest first."""
    found: list[UnregisteredReport] = []
    waiting = [(root, b"")]
    place = 0
    while waiting:
        node, before = waiting.pop()
        name = before + node.name + node.separator
        one = _without_pattern(matcher, node, name, place)
        if one is not None:
            found.append(one)
        waiting += [(child, name) for child in reversed(node.children)]
        place += 1
        yield from slicer.pause()
    found.sort(key=weight_of, reverse=True)
    return tuple(found[:MOST_UNREGISTERED])


def _with_rest(
    listed: Sequence[UnregisteredReport], whole: KeyCount, figures: Figures
) -> tuple[UnregisteredReport, ...]:
    """Return the namespaces and the rest, together as many keys as have no pattern."""
    keys = figures.keys(whole.keys)
    fitted = _fitted(listed, as_estimate(keys).value)
    rest = _less(keys, [one.keys for one in fitted])
    if as_estimate(rest).value < 0.5:  # no key: sums of estimates are not exact
        return fitted
    memory = whole.memory(figures)
    if memory is not None:
        memory = _less(memory, [one.memory_bytes for one in fitted if one.memory_bytes is not None])
    return (*fitted, UnregisteredReport(b"", 0, rest, memory, long_names=whole.shortened))


def _fitted(listed: Sequence[UnregisteredReport], most: float) -> tuple[UnregisteredReport, ...]:
    """Return namespaces with at most `most` keys together: estimates are lowered, if need be all figures."""
    exact = sum(as_estimate(one.keys).value for one in listed if not isinstance(one.keys, Estimate))
    known = exact if exact <= most else 0.0
    others = sum(as_estimate(one.keys).value for one in listed) - known
    if others <= most - known:
        return tuple(listed)
    share, fitted = (most - known) / others, []
    for one in listed:
        if isinstance(one.keys, Estimate) or not known:
            keys = as_estimate(one.keys)
            value = share * keys.value
            fitted.append(replace(one, keys=Estimate(min(keys.low, value), value, min(keys.high, most))))
        else:
            fitted.append(one)
    return tuple(fitted)


def _without_pattern(matcher: Matcher, node: Node, name: bytes, place: int) -> UnregisteredReport | None:
    """Return the keys that end at a namespace, if the registry has no pattern for some of them."""
    is_key = not node.separator and node.kind is NodeKind.LITERAL
    examples = node.examples or ((name,) if is_key and name else ())
    if node.kind is NodeKind.OTHER or not examples:
        return None
    unknown = [key for key, index in zip(examples, matcher.match_page(examples), strict=True) if index == NO_PATTERN]
    if not unknown:
        return None
    keys, memory = _less(node.stats.keys, [child.stats.keys for child in node.children]), node.stats.memory_bytes
    parts = [child.stats.memory_bytes for child in node.children]
    memory = None if memory is None else _less(memory, [one for one in parts if one is not None])
    if len(unknown) < len(examples):
        most = as_estimate(keys).value
        keys = count_among(len(unknown), len(examples), max(len(examples), round(most)))
        share = keys.value / most if most else 0.0
        memory = None if memory is None else as_estimate(memory).scaled(share)
    return UnregisteredReport(name, place, keys, memory, tuple(unknown))


def _less(whole: Figure, parts: Iterable[Figure]) -> Figure:
    parts = list(parts)
    if not parts:
        return whole
    if not isinstance(whole, Estimate) and not any(isinstance(one, Estimate) for one in parts):
        return max(0, whole - sum(one for one in parts if not isinstance(one, Estimate)))
    value = max(0.0, as_estimate(whole).value - sum(as_estimate(one).value for one in parts))
    return Estimate(0.0, value, as_estimate(whole).high)


class RegistryCounts:
    """The counts for one registry, without the parts that it does not define."""

    def __init__(self, registry: Registry, *, is_sample: bool = False) -> None:
        self.registry = registry
        self.is_sample = is_sample
        """Whether the keys are a random sample, whose bytes are to be estimated."""
        self.entries = EntryCounts(registry.entries)
        self.naming = NamingCounts(registry)

    def copy(self, slicer: Slicer) -> Slices[RegistryCounts]:
        """Return counts of the same keys; nothing may be added meanwhile."""
        made = copy(self)
        made.entries = yield from self.entries.copy(slicer)
        made.naming = yield from self.naming.copy(slicer)
        return made

    def merge(self, other: RegistryCounts) -> None:
        self.entries.merge(other.entries)
        self.naming.merge(other.naming)

    def reports(
        self, root: Node, figures: Figures, slicer: Slicer, *, samples_lengths: bool
    ) -> Slices[tuple[RegistryReport | None, NamingReport | None]]:
        """Return the registry's and the naming section of a report with namespaces `root`; None for a part it does not
        define.

        `samples_lengths`: lengths were asked of randomly chosen keys only.
        """
        registered = naming = None
        if self.registry.entries:
            registered = yield from registry_report(
                self.registry, self.entries, root, figures, slicer, samples_lengths=samples_lengths
            )
        if self.naming.is_wanted:
            keys = sum(self.entries.layouts.values(), Counter[int]())
            naming = yield from self.naming.report(figures, keys.__getitem__, slicer)
        return registered, naming
