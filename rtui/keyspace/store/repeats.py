"""Finds repeated names among packed names, and removes all but the first of each.

SCAN may return a key more than once, and a set of all names to recognise it would take several times the memory of the
packed names. So repeats are removed afterwards, in rounds of two walks over the names:

1. The hashes of all names are collected, 8 bytes each, in arrays: `a b a c` gives `h(a) h(b) h(a) h(c)`. The array is
   chosen by the hash itself, so that equal ones meet in one array and only one small set is needed at a time. Hashes
   that occur twice, here `h(a)`, are suspects. Beyond four million names, this is done in several passes, each for
   another part of all hashes, so that they never take more than 32 MiB.
2. Only names with a suspect hash are compared as bytes. Of each, every occurrence but the first is removed. Chunks
   without repeats are shared with the result, not copied.

A round handles a limited number of suspects; the caller repeats it until no more repeats are found. Names may be
appended meanwhile.
"""

from __future__ import annotations

from array import array
from itertools import islice

from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.packed_names import PackedNames, pack_inline, unpack_inline

PASS_NAMES = 1 << 22
"""The approximate number of hashes collected in one pass: 32 MiB."""

SET_SIZE = 1 << 14
"""The approximate maximum of hashes, or names, in a set at a time."""


def remove_inline_repeats(inline: bytes) -> tuple[bytes, int]:
    """Return inline names without repeats, and the number of repeats."""
    names = unpack_inline(inline)
    unique = list(dict.fromkeys(names))
    return (pack_inline(unique) or inline), len(names) - len(unique)


def remove_repeats(packed: PackedNames, slicer: Slicer) -> Slices[tuple[PackedNames, int]]:
    """Run one round: return the names without the repeats that it found, and their number; 0 if none are left."""
    suspects = yield from _repeated_hashes(packed, slicer)
    if not suspects:
        return packed, 0
    result = PackedNames()
    seen: set[bytes] = set()
    read = 0
    for _, chunk in packed.chunks():
        names = chunk.names()
        read += len(names)
        repeats = []
        for index, value in enumerate(map(hash, names)):
            if value in suspects:
                if names[index] in seen:
                    repeats.append(index)
                seen.add(names[index])
        result.adopt(chunk.without(repeats) if repeats else chunk)
        yield from slicer.pause()
    removed = read - len(result)
    result.extend(packed.names_at(range(read, len(packed))))
    return result, removed


def _repeated_hashes(packed: PackedNames, slicer: Slicer) -> Slices[set[int]]:
    """Return hashes that occur twice among the names, at most `SET_SIZE` of them."""
    passes = 1 + len(packed) // PASS_NAMES
    classes = 1 + len(packed) // passes // SET_SIZE
    repeated: set[int] = set()
    for number in range(passes):
        hashes = [array("q") for _ in range(classes)]
        for _, chunk in packed.chunks():
            for value in map(hash, chunk.names()):
                if passes == 1 or value % passes == number:
                    hashes[value // passes % classes].append(value)
            yield from slicer.pause()
        for values in hashes:
            if len(set(values)) < len(values):
                once: set[int] = set()
                twice: set[int] = set()
                for value in values:
                    (twice if value in once else once).add(value)
                repeated.update(islice(twice, SET_SIZE - len(repeated)))
            yield from slicer.pause()
    return repeated
