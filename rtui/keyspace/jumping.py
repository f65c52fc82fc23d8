"""Finds the next child of a listed namespace by the beginning of its name, in slices."""

from __future__ import annotations

from collections.abc import Iterator

from rtui.keyspace.listing import Listing
from rtui.keyspace.slices import Slicer, Slices

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
