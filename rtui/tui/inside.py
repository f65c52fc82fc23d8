"""What lies directly below a namespace, counted without opening it: looking must not make the store larger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from rtui.keyspace.handful import names_of
from rtui.keyspace.namespace import Namespace
from rtui.keyspace.packed import Packed
from rtui.keyspace.segments import Separators
from rtui.keyspace.slices import Slicer, Slices

LARGEST: Final = 200
"""So many namespaces are told apart, the largest ones."""

MOST_KEYS: Final = 200_000
"""Unopened namespaces of more keys are not counted just because the cursor rests on them."""

BATCH: Final = 2_048
"""So many children are looked at between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Inside:
    """The parts of a namespace: labels with their separators, largest first, and the keys directly below."""

    parts: tuple[tuple[bytes, int], ...] = ()
    namespaces: int = 0
    keys: int = 0


def look_inside(node: Namespace, separators: Separators) -> Slices[Inside | None]:
    """Count what lies directly below, in slices; None where that is not known or would take long."""
    if node.listed:
        return (yield from _listed(node))
    kept = node.kept
    if node.dropped or node.count > MOST_KEYS or kept is None:
        return None
    return (yield from _kept(kept, node.brace_behind, separators))


def _listed(node: Namespace) -> Slices[Inside]:
    """Take the children of an open namespace."""
    slicer = Slicer()
    found: list[tuple[int, int]] = []
    for start in range(0, node.namespace_total, BATCH):
        stop = min(start + BATCH, node.namespace_total)
        found += [(-node.count_at(at), at) for at in range(start, stop)]
        found = sorted(found)[:LARGEST]
        if slicer.over():
            yield
            slicer.restart()
    parts = tuple((node.labels[at], -count) for count, at in found)
    return Inside(parts, node.namespace_total, node.key_total)


def _kept(kept: Packed | bytes, brace_behind: bool, separators: Separators) -> Slices[Inside]:
    """Cut the suffixes of an unopened namespace at their first separators."""
    slicer = Slicer()
    counts: Counter[bytes] = Counter()
    batches = iter([names_of(kept)]) if isinstance(kept, bytes) else (chunk.names() for _, chunk in kept.chunks())
    for names in batches:
        cut = separators.split_batch(names, brace_behind=brace_behind)
        counts.update(head + separator if separator else b"" for head, separator, _ in cut)
        if slicer.over():
            yield
            slicer.restart()
    keys = counts.pop(b"", 0)
    return Inside(tuple(counts.most_common(LARGEST)), len(counts), keys)
