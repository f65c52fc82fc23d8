"""Sorts the children of a namespace in slices, however many there are."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from rtui.keyspace.rows.listing import Order, Orders
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import PackedNames


class Sort(Enum):
    """What rows are ordered by, among the children of one namespace."""

    COUNT = "count"
    """Namespaces by their number of keys, most first, then by name; keys by name, a great many as they arrived."""

    NAME = "name"
    """Namespaces and keys by their names, see `natural`."""


BATCH = 1024
"""So many ordinals are looked at between two looks at the clock."""

PER_BUCKET = 2048
"""About so many names go to a bucket, to be sorted at once."""

PER_PIVOT = 8
"""So many sampled names stand behind each border between buckets."""

MOST_NAMED = 50_000
"""More keys of one namespace are sorted by name only when that is asked for: it takes some tenths of a second."""

NamesOf = Callable[[Sequence[int]], list[bytes]]
"""The names at given ordinals."""

ARRIVAL: Orders = (None, None)
"""The order of arrival."""


def orders_of(node: Namespace, sort: Sort, slicer: Slicer) -> Slices[tuple[Orders, Orders]]:
    """The orders of the namespaces and of the keys that a namespace lists now, in slices.

    Children that arrive meanwhile have no place in them; if ordinals change meanwhile, it starts again.
    """
    while True:
        labels, keys = node.labels, node.keys
        names = yield from _order_of_namespaces(node, sort, slicer)
        ordered: Orders = ARRIVAL
        if keys is not None and len(keys) > 1 and (sort is Sort.NAME or len(keys) <= MOST_NAMED):
            ordered = yield from _order_of_keys(keys, slicer)
        if node.labels is labels and (ordered is ARRIVAL or node.keys is keys):
            return names, ordered


def _order_of_namespaces(node: Namespace, sort: Sort, slicer: Slicer) -> Slices[Orders]:
    total = node.namespace_total
    if total < 2:
        return ARRIVAL
    names_of = _namer(node)
    if sort is Sort.NAME:
        return (yield from _placed(_by_name(range(total), names_of, slicer), total, slicer))
    return (yield from _placed(_by_weight(node, total, names_of, slicer), total, slicer))


def _order_of_keys(keys: PackedNames, slicer: Slicer) -> Slices[Orders]:
    total = len(keys)
    names_of = _naturally(keys.names_at)
    return (yield from _placed(_by_name(range(total), names_of, slicer), total, slicer))


def _namer(node: Namespace) -> NamesOf:
    """Names of namespaces by ordinal; a label's separator is no part of the name that is compared."""
    labels = node.labels
    cut = len(node.root.separator)

    def cut_alike(ordinals: Sequence[int]) -> list[bytes]:
        return [labels[ordinal][:-cut] for ordinal in ordinals]

    def cut_each(ordinals: Sequence[int]) -> list[bytes]:
        return [labels[ordinal][: -len(node.separator_at(ordinal))] for ordinal in ordinals]

    return _naturally(cut_alike if cut else cut_each)


def natural(name: bytes) -> bytes:
    """Return bytes that are in the order in which people expect names: numbers by their value, all else by its bytes.

    `user:2` comes before `user:10`: in front of the digits of a number, which sort where digits do, stands how many
    there are, and behind them how many zeros led, so that `7` comes before `07`.
    """
    return _NUMBER.sub(_with_length, name)


_NUMBER = re.compile(rb"0*([0-9]+)")

MOST_DIGITS = 255
"""Numbers of more digits than this are in the order of their first digits, whatever their value."""


def _with_length(number: re.Match[bytes]) -> bytes:
    digits = number[1]
    zeros = len(number[0]) - len(digits)
    return b"0%c%b%c" % (min(len(digits), MOST_DIGITS), digits, min(zeros, MOST_DIGITS))


def _naturally(names_of: NamesOf) -> NamesOf:
    """Give names in a form whose bytes are in natural order."""
    return lambda ordinals: [natural(name) for name in names_of(ordinals)]


Pieces = Iterator[Sequence[int] | None]
"""Ordinals in order, piece by piece; None where it is time to pause."""


def _placed(pieces: Pieces, total: int, slicer: Slicer) -> Slices[Orders]:
    """Put pieces together, and say of each ordinal where it is."""
    order: Order = array("I")
    places: Order = array("I", bytes(order.itemsize * total))
    for piece in pieces:
        if piece is None:
            yield
            slicer.restart()
            continue
        for place, ordinal in enumerate(piece, len(order)):
            places[ordinal] = place
        order.extend(piece)
    return order, places


def _by_name(ordinals: Sequence[int], names_of: NamesOf, slicer: Slicer) -> Pieces:
    """Sort by name: many are first divided into buckets, whose borders come from a sample."""
    total = len(ordinals)
    if total <= 2 * PER_BUCKET:
        yield _sorted(ordinals, names_of)
        return
    buckets_wanted = total // PER_BUCKET
    sample: list[bytes] = []
    sampled = ordinals[:: max(1, total // (buckets_wanted * PER_PIVOT))]
    for start in range(0, len(sampled), BATCH):
        sample += names_of(sampled[start : start + BATCH])
        if slicer.over():
            yield None
    sample.sort()
    pivots = sample[PER_PIVOT::PER_PIVOT]
    buckets = [array("I") for _ in range(len(pivots) + 1)]
    for start in range(0, total, BATCH):
        some = ordinals[start : start + BATCH]
        for ordinal, name in zip(some, names_of(some), strict=True):
            buckets[bisect_left(pivots, name)].append(ordinal)
        if slicer.over():
            yield None
    for bucket in buckets:
        yield _sorted(bucket, names_of)
        if slicer.over():
            yield None


def _sorted(ordinals: Sequence[int], names_of: NamesOf) -> list[int]:
    names = names_of(ordinals)
    return [ordinals[place] for place in sorted(range(len(names)), key=names.__getitem__)]


def _by_weight(node: Namespace, total: int, names_of: NamesOf, slicer: Slicer) -> Pieces:
    """Sort by weight, most first, then by name; a weight that many share gets a bucket of its own."""
    if total <= 2 * PER_BUCKET:
        weights = [-weight for weight in node.weights(range(total))]
        yield [ordinal for _, _, ordinal in sorted(zip(weights, names_of(range(total)), range(total), strict=True))]
        return
    sample: list[float] = []
    sampled = range(0, total, max(1, total // (total // PER_BUCKET * PER_PIVOT)))
    for start in range(0, len(sampled), BATCH):
        sample += [-weight for weight in node.weights(sampled[start : start + BATCH])]
        if slicer.over():
            yield None
    sample.sort()
    pivots = sorted(set(sample[::PER_PIVOT]))
    equal: list[array[int]] = [array("I") for _ in pivots]
    between: list[list[tuple[float, int]]] = [[] for _ in range(len(pivots) + 1)]
    for start in range(0, total, BATCH):
        for ordinal, heavy in enumerate(node.weights(range(start, min(start + BATCH, total))), start):
            weight = -heavy
            number = bisect_left(pivots, weight)
            if number < len(pivots) and pivots[number] == weight:
                equal[number].append(ordinal)
            else:
                between[number].append((weight, ordinal))
        if slicer.over():
            yield None
    for number, some in enumerate(between):
        names = names_of([ordinal for _, ordinal in some])
        triples = sorted((weight, name, ordinal) for (weight, ordinal), name in zip(some, names, strict=True))
        yield [ordinal for _, _, ordinal in triples]
        if number < len(equal):
            yield from _by_name(equal[number], names_of, slicer)
        if slicer.over():
            yield None
