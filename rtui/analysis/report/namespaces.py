"""The figures of one namespace of a keyspace in a report, and how far they are its own.

A report has a node for each key pattern, a keyspace a namespace for each name. Take the keys `user:1:cart`,
`user:2:cart` and so on, and a report with the nodes `user`, `<id>` below it and `cart` below that:

* `user:` has a node of its own: its bytes are the node's, exact where the report is.
* `user:2:` is one of many that share the node `<id>`. Its bytes are estimated: its keys by the mean of the pattern.
* Where light names were merged into `<*>`, or fell beyond the budget of nodes, a name that kept its node may have keys
  that were counted there before: its figures are lower bounds, unless its keys are as many as the node has.
* A namespace that came after the report, or is in the node for the rest, has no figures.

A short number that keys begin with is shown as it is: the version in the `:1:product:7` of Django is no identifier.
Segments that are numbers fold, so the tree of namespaces has `:<id>:product:<id>`. Where the first one stands for a
single number in many keys, that is shown in its place: `:1:product:<id>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias, TypeVar

from msgspec import structs

from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.humanize import NOTHING_KNOWN, Known, Mark, NamespaceFigures
from rtui.analysis.report.document import CoverageKind, KeyRecord, Node, NodeKind, Report, Step
from rtui.analysis.report.members import Cliff, ExpiryReport, Figure, Timeline
from rtui.analysis.report.tables.cells import LONG_IDLE_BIN, plain, share_above
from rtui.analysis.report.tables.table import label
from rtui.keyspace.text.display import display
from rtui.keyspace.text.identifiers import ANY, ANY_NAMES, Identifiers
from rtui.keyspace.text.segments import Segment, Separators, swapped

_Key: TypeAlias = tuple[bytes, bytes, NodeKind]


class Fit(IntEnum):
    """The relation between the keys of a node and those of a namespace."""

    OWN = 0
    """They are the same."""
    PART = 1
    """They are some of them: others may have been counted elsewhere."""
    PATTERN = 2
    """The node's keys are those of all namespaces of one pattern."""
    MANY = 3
    """The node's keys are those of light namespaces that have nothing else in common."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportPlace:
    """Where a report counts the keys of a namespace."""

    node: Node
    fit: Fit
    path: tuple[Step, ...] = ()


class ReportedNamespaces:
    """Finds the namespaces of a keyspace in a report of it."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.separators = Separators(report.head.scope.separators)
        coverage = report.head.coverage
        self.root = ReportPlace(report.summary.root, Fit.OWN)
        self.mark = {CoverageKind.EXACT: Mark.EXACT, CoverageKind.PARTIAL: Mark.AT_LEAST}.get(coverage.kind, Mark.ABOUT)
        self._total = report.summary.root.stats.memory_bytes
        self._identifiers = Identifiers(report.head.scope.separators)
        self._below: dict[ReportPlace, dict[_Key, ReportPlace]] = {}
        self._known: dict[tuple[ReportPlace, bool], NamespaceFigures] = {}

    def below(self, place: ReportPlace, name: bytes, separator: bytes) -> ReportPlace | None:
        places = self._below.get(place)
        if places is None:
            places = self._below[place] = _places_below(place)
        found = places.get((name, separator, NodeKind.LITERAL))
        if found is not None:
            return found
        form = self._identifiers.form(name)
        pattern = form.pattern or form.numbered
        if pattern is not None:
            found = places.get((pattern, separator, NodeKind.PATTERN))
        if found is None and name:
            found = places.get((self._identifiers.any_name(name), separator, NodeKind.PATTERN))
        return found

    def children(self, place: ReportPlace) -> list[ReportPlace]:
        if place not in self._below:
            self._below[place] = _places_below(place)
        found = self._below[place]
        return [found[child.name, child.separator, child.kind] for child in place.node.children]

    def known(self, figure: Figure | None) -> Known | None:
        return _known(figure, self.mark)

    def find(self, path: Sequence[Segment]) -> ReportPlace | None:
        place: ReportPlace | None = self.root
        for name, separator in path:
            place = None if place is None else self.below(place, name, separator)
        return place

    def figures(self, place: ReportPlace | None, keys: Known) -> NamespaceFigures:
        """Return the figures of a namespace that has `keys` keys now, by the place where its keys are counted."""
        if place is None:
            return NOTHING_KNOWN
        then = plain(place.node.stats.keys)
        is_counted = self.mark is Mark.EXACT and keys.mark is Mark.EXACT
        is_own = place.fit is Fit.OWN or (place.fit is not Fit.MANY and is_counted and then == keys.value)
        found = self.all_figures(place) if is_own else self._known.get((place, False))
        if found is None:
            found = self._known[place, False] = self._figures_of(place, is_own=False)
        if found.pattern is not None and found.mean_bytes is not None:
            memory = Known(found.mean_bytes.value * keys.value, Mark.ABOUT)
            return replace(found, memory_bytes=memory, share=self._share(memory))
        is_more = then > keys.value if place.fit is Fit.PART else then != keys.value
        has_changed = is_counted and place.fit <= Fit.PART and is_more
        return replace(found, has_changed=True) if has_changed else found

    def all_figures(self, place: ReportPlace) -> NamespaceFigures:
        """Return the figures of all keys that are counted at a place, whatever namespaces they are in."""
        found = self._known.get((place, True))
        if found is None:
            found = self._known[place, True] = self._figures_of(place, is_own=True)
        return found

    def _figures_of(self, place: ReportPlace, *, is_own: bool) -> NamespaceFigures:
        """Return the figures of a namespace at a place; for one of many in a pattern, without bytes."""
        stats = place.node.stats
        mark = self.mark if is_own else Mark.AT_LEAST if place.fit is Fit.PART else Mark.ABOUT
        of_seen = Mark.EXACT if mark is Mark.EXACT else Mark.ABOUT
        memory = pattern = None
        if not is_own and place.fit > Fit.PART:
            pattern = label(place.path)
        elif stats.memory_bytes is not None:
            lacks = not isinstance(stats.keys, Estimate) and stats.memory_known_keys < stats.keys
            memory = _known(stats.memory_bytes, Mark.AT_LEAST if lacks and mark is Mark.EXACT else mark)
        return NamespaceFigures(
            memory_bytes=memory,
            share=self._share(memory),
            mean_bytes=None if stats.memory is None else _known(stats.memory.mean, of_seen),
            no_ttl=_known(stats.no_ttl_share, of_seen),
            idle=_known(share_above(stats.idle, LONG_IDLE_BIN), of_seen),
            pattern=pattern,
        )

    def share_of(self, memory_bytes: float) -> float | None:
        total = 0.0 if self._total is None else plain(self._total)
        return min(1.0, memory_bytes / total) if total else None

    def _share(self, memory: Known | None) -> Known | None:
        share = None if memory is None else self.share_of(memory.value)
        if memory is None or share is None:
            return None
        return Known(share, Mark.EXACT if memory.mark is Mark.EXACT else Mark.ABOUT)

    def patterns(self, place: ReportPlace, most: int) -> tuple[list[tuple[Node, ...]], int]:
        """Return the paths where keys end or are not followed further, most bytes first, and how many more."""
        found: list[tuple[Node, ...]] = []
        for nodes in place.node.walk():
            last = nodes[-1]
            below = sum(plain(child.stats.keys) for child in last.children)
            if len(nodes) > 1 and (not last.children or plain(last.stats.keys) > below):
                found.append(nodes[1:])
        found.sort(key=lambda nodes: (-plain(nodes[-1].stats.memory_bytes or 0), -plain(nodes[-1].stats.keys)))
        return found[:most], max(0, len(found) - most)

    def biggest(self, prefix: bytes, most: int) -> tuple[list[KeyRecord], int | None]:
        """Return the biggest keys that begin with `prefix`, and the size above which no other key is missing.

        None where the report has no list of biggest keys, or not of all keys.
        """
        big, is_exact = self.report.summary.big, self.mark is Mark.EXACT
        records = {one.key: one for one in big.by_memory}
        for of_type in big.by_type_memory.values():
            records.update((one.key, one) for one in of_type)
        java, known = self.separators.java_separator, [one for one in records.values() if one.memory_bytes is not None]
        below = [one for one in known if swapped(one.key, java).startswith(prefix)]
        below.sort(key=lambda one: -(one.memory_bytes or 0))
        has_all = len(big.by_memory) >= self.report.head.coverage.counted_keys
        least = big.by_memory[-1].memory_bytes if big.by_memory and is_exact else None
        return below[:most], 0 if has_all and is_exact else least


def _places_below(place: ReportPlace) -> dict[_Key, ReportPlace]:
    merged = {child.separator for child in place.node.children if child.is_of_names}
    has_rest = any(child.kind is NodeKind.OTHER for child in place.node.children)
    found = {}
    for child in place.node.children:
        if child.kind is NodeKind.LITERAL:
            fit = Fit.PART if has_rest or child.separator in merged else Fit.OWN
        else:
            fit = Fit.MANY if child.name in ANY_NAMES else Fit.PATTERN
        below = ReportPlace(child, max(place.fit, fit), (*place.path, child.step))
        found[child.name, child.separator, child.kind] = below
        if child.holds_names:
            found[ANY, child.separator, child.kind] = below
    return found


def _known(figure: Figure | None, mark: Mark) -> Known | None:
    """Return a figure with its mark; an estimate is one whatever the mark."""
    if figure is None:
        return None
    if isinstance(figure, Estimate):
        return Known(figure.value, Mark.EXACT if figure.low == figure.high == figure.value else Mark.ABOUT)
    return Known(figure, mark)


FEWEST_KEYS: Final = 20
"""Fewer keys may have a number in common by chance."""

MOST_DIGITS: Final = 3
"""A longer number is an identifier, though there be one only."""


_Expiring = TypeVar("_Expiring", Cliff, Timeline)


class Renamed(NamedTuple):
    """A namespace that has got another name."""

    text: bytes
    """How its keys were said to begin."""
    path: tuple[bytes, ...]
    """Its names from the first level on, the last of which is another now."""
    number: bytes
    separator: bytes


def only_number(node: Node, before: bytes) -> bytes | None:
    """Return the number that all keys of a pattern begin with, after separators at most; None if there is none."""
    if node.name != b"<id>" or not node.separator or before.strip(node.separator) or node.distinct != 1:
        return None
    if as_estimate(node.stats.keys).value < FEWEST_KEYS:
        return None
    examples = (example for path in node.walk() for example in path[-1].examples)
    number = next(examples, b"")[len(before) :].partition(node.separator)[0]
    return number if number.isdigit() and len(number) <= MOST_DIGITS else None


def with_leading_numbers(root: Node) -> tuple[Node, list[Renamed]]:
    renamed: list[Renamed] = []
    return _with_numbers(root, b"", (), renamed), renamed


def _with_numbers(parent: Node, before: bytes, path: tuple[bytes, ...], renamed: list[Renamed]) -> Node:
    children, had = list(parent.children), len(renamed)
    for at, child in enumerate(children):
        own = (*path, child.name)
        if not child.name and child.separator:
            children[at] = _with_numbers(child, before + child.separator, own, renamed)
        elif (number := only_number(child, before)) is not None:
            renamed.append(Renamed(before + child.name + child.separator, own, number, child.separator))
            children[at] = structs.replace(child, name=number, kind=NodeKind.LITERAL, distinct=None, holds_names=False)
    return structs.replace(parent, children=tuple(children)) if len(renamed) > had else parent


def expiry_with(report: ExpiryReport, renamed: list[Renamed]) -> ExpiryReport:
    if not renamed:
        return report
    timelines, cliffs = list(report.timelines), list(report.cliffs)
    for one in renamed:
        timelines = [_renamed(timeline, one) for timeline in timelines]
        cliffs = [_renamed(cliff, one) for cliff in cliffs]
    return structs.replace(report, timelines=tuple(timelines), cliffs=tuple(cliffs))


def _renamed(found: _Expiring, one: Renamed) -> _Expiring:
    was = display(one.text)
    if found.path[: len(one.path)] != one.path or not found.label.startswith(was):
        return found
    before = one.text[: -len(one.path[-1] + one.separator)]
    label = display(before + one.number + one.separator) + found.label[len(was) :]
    return structs.replace(found, path=(*one.path[:-1], one.number, *found.path[len(one.path) :]), label=label)
