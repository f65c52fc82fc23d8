"""Finds names that were added twice, by their hashes, and removes them; all others stay in order."""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import Packed, handful, names_of

if TYPE_CHECKING:
    from rtui.keyspace.store.store import NamespaceStore

PASS_NAMES = 1 << 22
"""So many names are hashed in one pass over a namespace: 32 MiB of hashes."""

SET_NAMES = 1 << 14
"""About so many hashes, or names, are in a set at a time."""

CHILDREN = 512
"""So many children are looked at before the clock is."""


def remove_repeats(store: NamespaceStore) -> Slices[int]:
    """Remove repeats from all that the store keeps, and from the counts; returns how many there were."""
    slicer = Slicer(store.clock)
    waiting = [store.root]
    removed = 0
    while waiting:
        node = waiting.pop()
        if node.children is None:
            removed += yield from _thin_unopened(store, node, slicer)
            if node.children is None:
                continue
        yield from store.open(node)
        if node.keys is not None:
            removed += yield from _thin(store, node, node.keys, slicer)
        removed += yield from _thin_children(store, node, waiting, slicer)
    return removed


def _thin_unopened(store: NamespaceStore, node: Namespace, slicer: Slicer) -> Slices[int]:
    """Remove repeats from what an unopened namespace keeps."""
    kept = node.kept
    if isinstance(kept, Packed):
        return (yield from _thin(store, node, kept, slicer))
    if kept is None:
        return 0
    node.kept, gone = _thin_handful(kept)
    if gone:
        store.correct(node, -gone, held_bytes=len(node.kept) - len(kept))
    return gone


def _thin_children(store: NamespaceStore, node: Namespace, waiting: list[Namespace], slicer: Slicer) -> Slices[int]:
    """Remove repeats from the children that are handfuls; the others are put on the list of those waiting."""
    removed = start = 0
    while node.children is not None and start < len(node.labels):
        for label in node.labels[start : start + CHILDREN]:
            child = node.children[label]
            if isinstance(child, Namespace):
                waiting.append(child)
            elif isinstance(child, bytes):
                thinner, gone = _thin_handful(child)
                if gone:
                    node.children[label] = thinner
                    store.correct(node, -gone, held_bytes=len(thinner) - len(child))
                    removed += gone
        start += CHILDREN
        if slicer.over():
            yield
            slicer.restart()
    return removed


def _thin_handful(held: bytes) -> tuple[bytes, int]:
    """Return the handful without repeats, and how many there were."""
    names = names_of(held)
    unique = list(dict.fromkeys(names))
    return (handful(unique) or held), len(names) - len(unique)


def _thin(store: NamespaceStore, node: Namespace, packed: Packed, slicer: Slicer) -> Slices[int]:
    """Remove repeats from the suffixes, or the keys, of one namespace; nothing is copied where there are none."""
    removed = 0
    while suspects := (yield from _suspects(packed, slicer)):
        fresh, gone = yield from _without(packed, suspects, slicer)
        if node.kept is packed:
            node.kept = fresh
        elif node.keys is packed:
            node.keys = fresh
            store.reshaped(node)
        else:
            break
        if not gone:
            break
        store.correct(node, -gone, held_bytes=fresh.size_bytes - packed.size_bytes)
        removed += gone
        packed = fresh
    return removed


def _suspects(packed: Packed, slicer: Slicer) -> Slices[set[int]]:
    """The hashes that occur twice among the names, `SET_NAMES` of them at most."""
    passes = 1 + len(packed) // PASS_NAMES
    classes = 1 + len(packed) // passes // SET_NAMES
    suspects: set[int] = set()
    for number in range(passes):
        hashes = [array("q") for _ in range(classes)]
        for _, chunk in packed.chunks():
            for value in map(hash, chunk.names()):
                if passes == 1 or value % passes == number:
                    hashes[value // passes % classes].append(value)
            if slicer.over():
                yield
                slicer.restart()
        for values in hashes:
            suspects.update(islice(_twice(values), SET_NAMES - len(suspects)))
            if slicer.over():
                yield
                slicer.restart()
    return suspects


def _twice(values: array[int]) -> set[int]:
    """The values that occur more than once."""
    if len(set(values)) == len(values):
        return set()
    seen: set[int] = set()
    twice = set()
    for value in values:
        if value in seen:
            twice.add(value)
        seen.add(value)
    return twice


def _without(packed: Packed, suspects: set[int], slicer: Slicer) -> Slices[tuple[Packed, int]]:
    """The same names, each of the suspected ones only once, and how many are gone."""
    fresh = Packed()
    seen: set[bytes] = set()
    read = 0
    for _, chunk in packed.chunks():
        names = chunk.names()
        read += len(names)
        places = []
        for place, value in enumerate(map(hash, names)):
            if value in suspects:
                if names[place] in seen:
                    places.append(place)
                seen.add(names[place])
        fresh.adopt(chunk.without(places) if places else chunk)
        if slicer.over():
            yield
            slicer.restart()
    gone = read - len(fresh)
    fresh.extend(packed.names_at(range(read, len(packed))))
    return fresh, gone
