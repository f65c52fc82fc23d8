"""The rows of one expanded namespace: its namespaces, each with its own rows if it is expanded too, and then its keys.

No list of rows exists. A child has an *ordinal*, its number in order of arrival, by which the namespace finds it, and a
*position*, where it is among the children as they are sorted. An *offset* also counts the rows of expanded children. If
`a` is expanded and has two rows, the offsets are

    0  a        position 0
    1    x
    2    y
    3  b        position 1

A `NamespaceListing` knows only the positions of its expanded children and how many rows each has, so that it finds the
row at an offset, or the offset of a row, with one bisection: a million collapsed children cost nothing. Sorting makes a
`ChildOrder`; children that arrive later have no place in it and follow in order of arrival.

The children of a namespace are sorted in slices, however many there are. `list.sort` of a million names would stop
everything else for a second. So many children are divided into consecutive buckets, and each bucket is sorted at once.
With 1,000,000 names:

1. A sample of some 4,000 names, evenly spaced, is sorted, and every fourth becomes a border between two buckets.
2. Every name goes to the bucket found by bisection among the borders: about 1,000 names to each of 1,000 buckets.
3. The buckets are sorted and put together.

Between small steps of each, the work pauses at the end of a slice. Sorting by count, or by other weights, does the same
with weights. Since many namespaces often have the same count, such as 1, each count that is a border has a bucket of
its own besides, which only needs sorting by name. Neither keeps a list of all names: ordinals are sorted, 4 bytes each,
and names are unpacked bucket by bucket.

Weights other than counts, such as the bytes of namespaces or the TTLs of keys, come from a `Weigher`. Children without
a weight are sorted by name.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from math import inf
from typing import NamedTuple, Protocol, TypeVar

from rtui.keyspace.slices import Slicer, Slices, finish
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import PackedNames
from rtui.keyspace.text.matching import natural


class Sort(Enum):
    """The sort order of the children of a namespace."""

    COUNT = "keys"
    """Namespaces by their number of keys, most first, then by name; keys by name."""
    NAME = "name"
    """Namespaces and keys by their names, see `keyspace/text/matching.py`."""
    NAME_BYTES = "name-bytes"
    """Namespaces and keys by the bytes of their names."""
    MEMORY = "bytes"
    """Namespaces and keys by their bytes, most first. This and the following orders use the weights of a `Weigher`.

    Without weights names decide, for `BY_COUNT` the number of keys.
    """
    MEAN = "mean"
    """Namespaces by the mean bytes of their keys, keys by their bytes, most first."""
    TTL = "TTL"
    """Namespaces by the share of keys without expiry, largest first; keys by their TTL, shortest first."""
    IDLE = "idle"
    """Namespaces by the share of long unused keys, largest first; keys by idle time, longest first."""
    TYPE = "type"
    """Keys by type; namespaces by name."""


BY_NAME = frozenset({Sort.NAME, Sort.NAME_BYTES})
"""Orders that need names only."""

BY_COUNT = frozenset({Sort.COUNT, Sort.MEMORY, Sort.MEAN})
"""Orders that fall back to the number of keys for namespaces without a weight."""

BATCH = 256
"""The number of children handled between two checks of the clock: half a millisecond for names with numbers in them."""

PER_BUCKET = 1024
PER_BORDER = 4
"""The approximate number of names in a bucket, and of sampled names for each border between buckets."""

K = TypeVar("K", bytes, float)

NamesAt = Callable[[Sequence[int]], list[bytes]]
"""Returns the names at given ordinals, as sort keys."""

WeightsAt = Callable[[Sequence[int]], list[float]]
"""Returns the weights at given ordinals; the least is listed first, a missing weight is infinite."""


class Weigher(Protocol):
    """Gives the weights of namespaces and keys for orders other than names and counts."""

    def namespaces(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return a function for the weights of the namespaces directly below `node`, or None if there are none."""

    def keys(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return a function for the weights of the keys directly below `node`, or None if there are none."""


def orders_of(
    node: Namespace, sort: Sort, slicer: Slicer, weigher: Weigher | None = None, *, is_reversed: bool = False
) -> Slices[tuple[ChildOrder, ChildOrder]]:
    """Return the orders of the namespaces and of the keys that a namespace lists now, in slices.

    `is_reversed` lists the last first, but children without a weight stay at the end. Children that arrive meanwhile
    have no place in them; if ordinals change meanwhile, it starts again.
    """
    while True:
        labels, keys = node.labels, node.keys
        total = len(labels)
        name_order = key_order = ARRIVAL
        if total > 1:
            weights_at, names_at = _weights_of(node, sort, weigher), _namespace_names(node, sort)
            name_order = yield from _order(total, names_at, weights_at, slicer, is_reversed=is_reversed)
        if keys is not None and len(keys) > 1:
            weights_at = None if weigher is None else weigher.keys(node, sort)
            names_at = _key_names(keys, sort)
            key_order = yield from _order(len(keys), names_at, weights_at, slicer, is_reversed=is_reversed)
        if node.labels is labels and (key_order is ARRIVAL or node.keys is keys):
            return name_order, key_order


def _weights_of(node: Namespace, sort: Sort, weigher: Weigher | None) -> WeightsAt | None:
    """Return a function for the weights of namespaces; None to sort them by name."""
    weights_at = None if weigher is None or sort is Sort.COUNT else weigher.namespaces(node, sort)
    if weights_at is None and sort in BY_COUNT:
        return lambda ordinals: [-weight for weight in node.weights(ordinals)]
    return weights_at


def _order(
    total: int, names_at: NamesAt, weights_at: WeightsAt | None, slicer: Slicer, *, is_reversed: bool
) -> Slices[ChildOrder]:
    """Return the order of `total` children, by their weights if they have any, then by their names."""
    ordinals, known = array("I"), total
    if weights_at is None:
        yield from _sort_by_name(range(total), names_at, ordinals, slicer)
    else:
        known = yield from _sort_by_weight(total, weights_at, names_at, ordinals, slicer)
    if is_reversed:
        ordinals = ordinals[:known][::-1] + ordinals[known:]
    return (yield from order_of(ordinals, slicer))


def _key_names(keys: PackedNames, sort: Sort) -> NamesAt:
    if sort is Sort.NAME_BYTES:
        return keys.names_at
    return lambda ordinals: [natural(name) for name in keys.names_at(ordinals)]


def _namespace_names(node: Namespace, sort: Sort) -> NamesAt:
    """Return a function for the names of namespaces by ordinal, without the separators at the end of their labels."""
    labels, cut = node.labels, len(node.root.separator)
    sortable = bytes if sort is Sort.NAME_BYTES else natural
    if cut:
        return lambda ordinals: [sortable(labels[ordinal][:-cut]) for ordinal in ordinals]
    return lambda ordinals: [sortable(labels[ordinal][: -len(node.separator_at(ordinal))]) for ordinal in ordinals]


def _borders(ordinals: Sequence[int], keys_at: Callable[[Sequence[int]], list[K]], slicer: Slicer) -> Slices[list[K]]:
    """Return the borders between buckets of about `PER_BUCKET` ordinals in sort order; none for few ordinals."""
    total = len(ordinals)
    if total <= 2 * PER_BUCKET:
        return []
    sample: list[K] = []
    sampled = ordinals[:: max(1, total // (total // PER_BUCKET * PER_BORDER))]
    yield from _collect(sampled, keys_at, sample, slicer)
    sample.sort()
    return sample[PER_BORDER::PER_BORDER]


def _collect(
    ordinals: Sequence[int], keys_at: Callable[[Sequence[int]], list[K]], out: list[K], slicer: Slicer
) -> Slices[None]:
    """Append the sort keys at these ordinals to `out`."""
    for start in range(0, len(ordinals), BATCH):
        out += keys_at(ordinals[start : start + BATCH])
        yield from slicer.pause()


def _sort_by_name(ordinals: Sequence[int], names_at: NamesAt, out: array[int], slicer: Slicer) -> Slices[None]:
    total = len(ordinals)
    buckets: list[Sequence[int]] = [ordinals]
    borders = yield from _borders(ordinals, names_at, slicer)
    if borders:
        arrays = [array("I") for _ in range(len(borders) + 1)]
        for start in range(0, total, BATCH):
            some = ordinals[start : start + BATCH]
            for ordinal, name in zip(some, names_at(some), strict=True):
                arrays[bisect_left(borders, name)].append(ordinal)
            yield from slicer.pause()
        buckets = list(arrays)
    for bucket in buckets:
        names: list[bytes] = []
        yield from _collect(bucket, names_at, names, slicer)
        out.extend([bucket[index] for index in sorted(range(len(names)), key=names.__getitem__)])
        yield from slicer.pause()


def _sort_by_weight(
    total: int, weights_at: WeightsAt, names_at: NamesAt, out: array[int], slicer: Slicer
) -> Slices[int]:
    """Append the ordinals of `total` children to `out`, sorted by weight, then by name.

    Return the number of children with a weight; the others are at the end.
    """
    known = total
    sampled = yield from _borders(range(total), weights_at, slicer)
    borders = sorted(set(sampled))
    between: list[list[tuple[float, int]]] = [[] for _ in range(len(borders) + 1)]
    equal: list[array[int]] = [array("I") for _ in borders]
    for start in range(0, total, BATCH):
        weights = weights_at(range(start, min(start + BATCH, total)))
        known -= weights.count(inf)
        for ordinal, weight in enumerate(weights, start):
            number = bisect_left(borders, weight)
            if number < len(borders) and borders[number] == weight:
                equal[number].append(ordinal)
            else:
                between[number].append((weight, ordinal))
        yield from slicer.pause()
    for number, bucket in enumerate(between):
        names: list[bytes] = []
        yield from _collect([ordinal for _, ordinal in bucket], names_at, names, slicer)
        triples = sorted((weight, name, ordinal) for (weight, ordinal), name in zip(bucket, names, strict=True))
        out.extend([ordinal for _, _, ordinal in triples])
        if number < len(equal):
            yield from _sort_by_name(equal[number], names_at, out, slicer)
        yield from slicer.pause()
    return known


KEEP_ORDER = 50_000
"""Up to this many namespaces keep their order when some are removed, which takes some ten milliseconds."""

ORDER_BATCH = 8_192
SEARCH_BATCH = 4_096
"""The number of positions stored, and of labels compared, between two checks of the clock."""


class ChildOrder(NamedTuple):
    """An order of the namespaces, or of the keys, of a listing; children without a place in it follow in order of
    arrival."""

    ordinals: array[int]
    positions: array[int]

    def ordinal_at(self, position: int) -> int:
        return self.ordinals[position] if position < len(self.ordinals) else position

    def position_of(self, ordinal: int) -> int:
        return self.positions[ordinal] if ordinal < len(self.positions) else ordinal


ARRIVAL = ChildOrder(array("I"), array("I"))
"""The order of arrival."""


@dataclass(slots=True, eq=False)
class NamespaceListing:
    """The children of one namespace as rows; it is part of the listing of the namespace above while it is attached."""

    node: Namespace
    """The namespace whose children are listed; for a chain in one row, its last namespace."""
    parent: NamespaceListing | None
    """The listing that contains the row of this namespace; None for the root."""
    attached: bool = False
    """Whether its rows are among the rows of its parent: expanded, not collapsed."""
    arranged: bool = False
    """Whether its children were sorted after all had arrived."""
    head: Namespace = field(init=False)
    """The namespace whose row its rows are below: the head of a chain, else its own."""
    depth: int = field(init=False)
    """The number of namespace rows that its rows are nested in; 0 for the rows of the root."""
    name_count: int = field(init=False)
    key_count: int = field(init=False)
    expanded: list[NamespaceListing] = field(default_factory=list)
    _expanded_positions: list[int] = field(default_factory=list)
    _starts: list[int] | None = None
    """The offsets of the rows of `expanded`, computed on demand."""
    _below: int = 0
    name_order: ChildOrder = ARRIVAL
    key_order: ChildOrder = ARRIVAL
    """The order of the keys, whose positions follow those of the namespaces: the first is at `name_count`."""
    _labels: list[bytes] = field(init=False)
    _keys: PackedNames | None = field(init=False)

    def __post_init__(self) -> None:
        self.head = self.node
        self.depth = 0 if self.parent is None else self.parent.depth + 1
        self._count_children()

    @property
    def child_count(self) -> int:
        return self.name_count + self.key_count

    @property
    def size(self) -> int:
        return self.name_count + self.key_count + self._below

    @property
    def is_in_order(self) -> bool:
        placed = len(self.name_order.ordinals), len(self.key_order.ordinals)
        return (self.name_count < 2 or placed[0] >= self.name_count) and (
            self.key_count < 2 or placed[1] >= self.key_count
        )

    def key_at(self, ordinal: int) -> bytes | None:
        return self._keys[ordinal] if self._keys is not None and ordinal < self.key_count else None

    def position_of(self, child: Namespace) -> int:
        return self.name_order.position_of(child.ordinal)

    def offset(self, position: int) -> int:
        """Return the offset of the row at this position."""
        before = bisect_left(self._expanded_positions, position)
        if not before:
            return position
        child = self.expanded[before - 1]
        return position + self._offsets()[before - 1] - self._expanded_positions[before - 1] + child.size

    def locate(self, offset: int) -> tuple[int, NamespaceListing | None, int]:
        """Return (position, None, 0) for an offset, or (position, child, offset in it) within an expanded child."""
        starts = self._offsets()
        number = bisect_right(starts, offset) - 1
        if number < 0:
            return offset, None, 0
        child = self.expanded[number]
        within = offset - starts[number] - 1
        if within < 0:
            return self._expanded_positions[number], None, 0
        if within < child.size:
            return self._expanded_positions[number], child, within
        return self._expanded_positions[number] + 1 + within - child.size, None, 0

    def _offsets(self) -> list[int]:
        if self._starts is None:
            sizes = accumulate((child.size for child in self.expanded), initial=0)
            self._starts = [position + above for position, above in zip(self._expanded_positions, sizes, strict=False)]
        return self._starts

    def list_new(self) -> None:
        """List the children that arrived, namespaces behind namespaces and keys behind keys; call `renumber` before."""
        before = self.child_count
        self._count_children()
        self._add_rows(self.child_count - before)

    def attach(self) -> None:
        """Show its rows below the row of its namespace."""
        parent = self.parent
        if parent is None or self.attached:
            return
        position = parent.position_of(self.head)
        number = bisect_left(parent._expanded_positions, position)
        parent._expanded_positions.insert(number, position)
        parent.expanded.insert(number, self)
        parent._starts = None
        self.attached = True
        self._add_rows(self.size)

    def detach(self) -> None:
        """Hide its rows; expanded listings below stay so for the next time."""
        parent = self.parent
        if parent is None or not self.attached:
            return
        self._add_rows(-self.size)
        number = parent.expanded.index(self)
        del parent.expanded[number], parent._expanded_positions[number]
        parent._starts = None
        self.attached = False

    def list_other(self, node: Namespace) -> None:
        """List the children of another namespace below the same row; none of the listed ones may be expanded."""
        before = self.size
        self.node, self.name_order, self.key_order = node, ARRIVAL, ARRIVAL
        self._count_children()
        self._add_rows(self.size - before)

    def set_orders(self, names: ChildOrder, keys: ChildOrder) -> None:
        self.list_new()
        self.name_order, self.key_order = names, keys
        self._place_expanded()

    def renumber(self) -> list[NamespaceListing]:
        """Follow ordinals that changed; return the listings whose namespace was removed.

        The remaining children keep their order, except that sorted keys, and more than `KEEP_ORDER` namespaces, are
        listed in order of arrival.
        """
        before = self.size
        order, labels = self.name_order, self._labels
        if self.node.labels is not labels:
            self.name_order = ARRIVAL
            if order is not ARRIVAL and self.name_count <= KEEP_ORDER:
                new = {label: ordinal for ordinal, label in enumerate(self.node.labels)}
                listed = (*order.ordinals, *range(len(order.ordinals), self.name_count))
                left = array("I", (new[labels[ordinal]] for ordinal in listed if labels[ordinal] in new))
                self.name_order = finish(order_of(left, Slicer()))
        if self.node.keys is not self._keys:
            self.key_order = ARRIVAL
        removed = [child for child in self.expanded if child.head.ordinal < 0]
        for child in removed:
            child.attached = False
        self.expanded = [child for child in self.expanded if child.attached]
        self._below = sum(child.size for child in self.expanded)
        self._count_children()
        self._place_expanded()
        self._add_rows(self.size - before)
        return removed

    def _add_rows(self, rows: int) -> None:
        """Add rows to the counts of all listings above that show this one."""
        listing = self
        while rows and listing.attached and listing.parent is not None:
            listing = listing.parent
            listing._below += rows
            listing._starts = None

    def _count_children(self) -> None:
        self._labels, self._keys = self.node.labels, self.node.keys
        self.name_count = len(self.node.labels)
        self.key_count = self.node.key_total

    def _place_expanded(self) -> None:
        self.expanded.sort(key=lambda child: self.name_order.position_of(child.head.ordinal))
        self._expanded_positions = [self.name_order.position_of(child.head.ordinal) for child in self.expanded]
        self._starts = None

    def find(self, prefix: bytes, start: int, slicer: Slicer) -> Slices[int | None]:
        """Return the first position from `start` on, then from the top, whose name starts with `prefix`, if any.

        Names are compared in lower case.
        """
        names, total = self.name_count, self.child_count
        found: int | None = None
        spans = ((start, names), (max(start, names), total), (0, min(start, names)), (names, min(start, total)))
        for first, end in spans:
            if first >= end or found is not None:
                continue
            if end > names:
                found = yield from self._find_key(prefix, range(first, end), slicer)
                continue
            for position in range(first, end):
                label = self.node.labels[self.name_order.ordinal_at(position)]
                if label.lower().startswith(prefix):
                    return position
                if position % SEARCH_BATCH == 0:
                    yield from slicer.pause()
        return found

    def _find_key(self, prefix: bytes, positions: range, slicer: Slicer) -> Slices[int | None]:
        """Search chunk by chunk, in order of arrival; all keys if they are sorted."""
        keys, is_sorted, names = self.node.keys, self.key_order is not ARRIVAL, self.name_count
        if keys is None:
            return None
        ordinals = range(self.key_count) if is_sorted else range(positions.start - names, positions.stop - names)
        best: int | None = None
        for first, chunk in keys.chunks(ordinals.start):
            if first >= ordinals.stop or (best is not None and not is_sorted):
                break
            for index in chunk.lowered().starting(prefix):
                position = names + self.key_order.position_of(first + index) if first + index in ordinals else -1
                if position in positions and (best is None or position < best):
                    best = position
            yield from slicer.pause()
        return best


def order_of(ordinals: array[int], slicer: Slicer) -> Slices[ChildOrder]:
    """Return the order that lists these ordinals, a permutation of 0 to their number; in slices."""
    positions = array("I", bytes(ordinals.itemsize * len(ordinals)))
    for start in range(0, len(ordinals), ORDER_BATCH):
        for position, ordinal in enumerate(ordinals[start : start + ORDER_BATCH], start):
            positions[ordinal] = position
        yield from slicer.pause()
    return ChildOrder(ordinals, positions)
