"""Sorts the children of a namespace in slices, however many there are.

`list.sort` of a million names would stop everything else for a second. So many children are divided into consecutive
buckets, and each bucket is sorted at once. With 1,000,000 names:

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
from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import Enum
from math import inf
from typing import Protocol, TypeVar

from rtui.keyspace.rows.listing import ARRIVAL, ChildOrder, order_of
from rtui.keyspace.slices import Slicer, Slices
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
    """Append the ordinals to `out`, sorted by name."""
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
