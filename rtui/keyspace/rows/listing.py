"""The rows of one expanded namespace: its namespaces, each with its own rows if expanded too, and then its keys."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import TypeAlias

from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace

Order: TypeAlias = "array[int]"
"""Ordinals in the order in which they are listed; those past its end are listed as they arrived."""

KEEP_ORDER = 50_000
"""So many namespaces keep their order when some of them disappear: to follow them takes some ten milliseconds."""


class Listing:
    """How the children of one expanded namespace are listed; positions count its own rows, offsets all below too.

    A child that is expanded is a listing of its own. `offset` of a position is where its row is among all rows of this
    listing, those of expanded children included.
    """

    __slots__ = (
        "_below",
        "_key_order",
        "_key_places",
        "_keys",
        "_labels",
        "_name_order",
        "_name_places",
        "_open",
        "_positions",
        "_starts",
        "arranged",
        "attached",
        "depth",
        "key_count",
        "name_count",
        "node",
        "parent",
    )

    node: Namespace
    """Whose children are listed."""

    parent: Listing | None
    """The listing that has the row of this namespace; None for the root."""

    attached: bool
    """Whether it is among the rows of its parent: expanded, not collapsed."""

    arranged: bool
    """Whether its children were sorted once they were all there."""

    depth: int
    """How many namespaces its rows lie in; 0 for the rows of the root."""

    name_count: int
    """How many namespaces are listed."""

    key_count: int
    """How many keys are listed."""

    def __init__(self, node: Namespace, parent: Listing | None) -> None:
        self.node = node
        self.parent = parent
        self.attached = self.arranged = False
        self.depth = 0 if parent is None else parent.depth + 1
        self._count()
        self._below = 0
        self._open: list[Listing] = []
        self._positions: list[int] = []
        self._starts: list[int] | None = None
        self._name_order: Order | None = None
        self._name_places: Order | None = None
        self._key_order: Order | None = None
        self._key_places: Order | None = None

    @property
    def size(self) -> int:
        """All rows, those of expanded children at any depth included."""
        return self.name_count + self.key_count + self._below

    @property
    def expanded(self) -> list[Listing]:
        """The listings of the children that are expanded, from top to bottom."""
        return self._open

    @property
    def keys_are_sorted(self) -> bool:
        """Whether keys are listed in another order than that of arrival."""
        return self._key_order is not None

    # positions and ordinals

    def ordinal_of(self, child: Namespace) -> int:
        """The ordinal of a child, -1 if it is not listed; still the old one while it waits for `renumber`."""
        if self.node.labels is self._labels:
            return child.ordinal
        return self._labels.index(child.label) if child.label in self._labels else -1

    def key_at(self, ordinal: int) -> bytes | None:
        """The name of the key that has this ordinal here, None if there is none."""
        return self._keys[ordinal] if self._keys is not None and ordinal < self.key_count else None

    def name_ordinal(self, position: int) -> int:
        """Which namespace is at this position."""
        order = self._name_order
        return order[position] if order is not None and position < len(order) else position

    def key_ordinal(self, position: int) -> int:
        """Which key is at this position; positions of keys follow those of the namespaces."""
        place = position - self.name_count
        order = self._key_order
        return order[place] if order is not None and place < len(order) else place

    def position_of_name(self, ordinal: int) -> int:
        """Where this namespace is listed."""
        places = self._name_places
        return places[ordinal] if places is not None and ordinal < len(places) else ordinal

    def position_of_key(self, ordinal: int) -> int:
        """Where this key is listed."""
        places = self._key_places
        return self.name_count + (places[ordinal] if places is not None and ordinal < len(places) else ordinal)

    # offsets

    def offset(self, position: int) -> int:
        """How many rows of this listing are above the row at this position."""
        before = bisect_left(self._positions, position)
        if not before:
            return position
        child = self._open[before - 1]
        return position + self.starts()[before - 1] - self._positions[before - 1] + child.size

    def locate(self, offset: int) -> tuple[int, Listing | None, int]:
        """What is at an offset: (position, None, 0), or the expanded child it lies in and the offset there."""
        starts = self.starts()
        number = bisect_right(starts, offset) - 1
        if number < 0:
            return offset, None, 0
        child = self._open[number]
        within = offset - starts[number] - 1
        if within < 0:
            return self._positions[number], None, 0
        if within < child.size:
            return self._positions[number], child, within
        return self._positions[number] + 1 + within - child.size, None, 0

    def starts(self) -> list[int]:
        """The offsets of the rows of expanded children."""
        if self._starts is None:
            sizes = accumulate((child.size for child in self._open), initial=0)
            self._starts = [position + above for position, above in zip(self._positions, sizes, strict=False)]
        return self._starts

    # changes

    def grow(self, rows: int) -> None:
        """Take note that so many rows were added below; all listings above that show this one are told too."""
        listing = self
        while rows and listing.attached and listing.parent is not None:
            listing = listing.parent
            listing._below += rows
            listing._starts = None

    def take_new(self) -> None:
        """List the children that arrived since, each behind its kind; changed ordinals were to be put right before."""
        before = self.name_count + self.key_count
        self._count()
        self.grow(self.name_count + self.key_count - before)

    def attach(self) -> None:
        """Show its rows below the row of its namespace."""
        parent = self.parent
        if parent is None or self.attached:
            return
        position = parent.position_of_name(parent.ordinal_of(self.node))
        number = bisect_left(parent._positions, position)
        parent._positions.insert(number, position)
        parent._open.insert(number, self)
        parent._starts = None
        self.attached = True
        self.grow(self.size)

    def detach(self) -> None:
        """Hide its rows; what is expanded below stays so for the next time."""
        parent = self.parent
        if parent is None or not self.attached:
            return
        self.grow(-self.size)
        number = parent._open.index(self)
        del parent._open[number], parent._positions[number]
        parent._starts = None
        self.attached = False

    def dissolve(self) -> None:
        """Let go of everything around it, so that it is freed at once."""
        self.parent = None
        self._open = []

    def set_orders(self, names: Orders, keys: Orders) -> None:
        """List all children, in another order; those that have no place in it follow as they arrived."""
        self.take_new()
        self._name_order, self._name_places = names
        self._key_order, self._key_places = keys
        self._replace()

    def renumber(self) -> list[Listing]:
        """Follow ordinals that changed: what is left keeps its order; returns listings whose namespace is gone.

        Keys that were sorted, and more than `KEEP_ORDER` namespaces, are listed as they arrived.
        """
        before = self.size
        if self.node.labels is not self._labels:
            self._renumber_names()
        if self.node.keys is not self._keys:
            self._key_order = self._key_places = None
        gone = [child for child in self._open if child.node.ordinal < 0]
        for child in gone:
            child.attached = False
        self._open = [child for child in self._open if child.attached]
        self._below = sum(child.size for child in self._open)
        self._count()
        self._replace()
        self.grow(self.size - before)
        return gone

    def _renumber_names(self) -> None:
        """Give the namespaces that are left the order they had."""
        order, labels = self._name_order, self._labels
        self._name_order = self._name_places = None
        if order is None or self.name_count > KEEP_ORDER:
            return
        ordinals = {label: ordinal for ordinal, label in enumerate(self.node.labels)}
        listed = [labels[ordinal] for ordinal in (*order, *range(len(order), self.name_count))]
        kept = array("I", (ordinals[label] for label in listed if label in ordinals))
        places = array("I", bytes(kept.itemsize * len(kept)))
        for place, ordinal in enumerate(kept):
            places[ordinal] = place
        self._name_order, self._name_places = kept, places

    def _count(self) -> None:
        """List all children that there are."""
        self._labels, self._keys = self.node.labels, self.node.keys
        self.name_count = self.node.namespace_total
        self.key_count = self.node.key_total

    def _replace(self) -> None:
        """Find the positions of the expanded children anew."""
        placed = sorted((self.position_of_name(child.node.ordinal), number) for number, child in enumerate(self._open))
        self._positions = [position for position, _ in placed]
        self._open = [self._open[number] for _, number in placed]
        self._starts = None


Orders: TypeAlias = "tuple[Order | None, Order | None]"
"""An order, and the place of each ordinal in it; both None for the order of arrival."""


SEARCH_BATCH = 4_096
"""So many labels are compared between two looks at the clock."""


def first_starting(
    listing: Listing, prefix: bytes, start: int, ignore_case: bool, slicer: Slicer
) -> Slices[int | None]:
    """The first position from `start` on, then from the top, whose name starts with `prefix`; None if none does."""
    best: int | None = None
    for found in _starting(listing, prefix.lower() if ignore_case else prefix, start, ignore_case):
        if found is not None:
            # Positions from `start` on come before those above it.
            best = found if best is None else min(best, found, key=lambda place: (place < start, place))
            if found < listing.name_count or not listing.keys_are_sorted:
                break
        if slicer.over():
            yield
            slicer.restart()
    return best


def _starting(listing: Listing, prefix: bytes, start: int, ignore_case: bool) -> Iterator[int | None]:
    """Positions of children whose names start with `prefix`: from `start` on, then the others; None for a pause."""
    names, total = listing.name_count, listing.name_count + listing.key_count
    spans = [(start, names), (max(start, names), total), (0, min(start, names)), (names, min(start, total))]
    for first, end in spans:
        if first >= end:
            continue
        if end <= names:
            yield from _names_starting(listing, prefix, range(first, end), ignore_case)
        else:
            yield from _keys_starting(listing, prefix, range(first - names, end - names), ignore_case)


def _names_starting(listing: Listing, prefix: bytes, positions: range, ignore_case: bool) -> Iterator[int | None]:
    labels = listing.node.labels
    for count, position in enumerate(positions, 1):
        label = labels[listing.name_ordinal(position)]
        if (label.lower() if ignore_case else label).startswith(prefix):
            yield position
        if count % SEARCH_BATCH == 0:
            yield None


def _keys_starting(listing: Listing, prefix: bytes, places: range, ignore_case: bool) -> Iterator[int | None]:
    keys = listing.node.keys
    if keys is None:
        return
    arrived = range(listing.key_count) if listing.keys_are_sorted else places
    for first, chunk in keys.chunks(arrived.start):
        if first >= arrived.stop:
            return
        for place in (chunk.lowered() if ignore_case else chunk).starting(prefix):
            ordinal = first + place
            if ordinal in arrived:
                yield listing.position_of_key(ordinal)
        yield None
