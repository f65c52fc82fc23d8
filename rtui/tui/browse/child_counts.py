"""Counts what lies directly below a namespace without opening it, which would make the store larger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import PackedNames, unpack_inline
from rtui.keyspace.text.segments import Separators

GROWTH: Final = 1.125
"""During a scan a namespace is counted again when it has grown by this factor."""

LARGEST: Final = 200
"""Only so many of the largest namespaces are listed."""

MOST_KEYS: Final = 200_000
"""Unopened namespaces of more keys are not counted just because the cursor rests on them."""

BATCH: Final = 2_048
"""How many children are handled between two checks of the clock."""


@dataclass(frozen=True, slots=True)
class ChildCount:
    """A namespace directly below: its label with the separator, its keys, and whether a sample says so."""

    label: bytes
    keys: float
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class ChildCounts:
    """The namespaces directly below one, largest first, and the keys directly below, when it had `of` keys in all."""

    parts: tuple[ChildCount, ...] = ()
    namespaces: int = 0
    keys: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class CountedState:
    """The state in which a namespace was counted: how many keys it had, and whether it was open."""

    node: Namespace
    keys: int
    opened: bool

    def is_due(self, last: CountedState, *, complete: bool) -> bool:
        """Return whether to count again; on any change once the counts are totals (`complete`)."""
        if self.node is not last.node or self.opened != last.opened:
            return True
        return self.keys != last.keys if complete else self.keys > last.keys * GROWTH


def count_children(node: Namespace, separators: Separators) -> Slices[ChildCounts | None]:
    """Count what lies directly below, in slices; None where that is not known or would take long."""
    if node.listed:
        return (yield from _listed(node))
    kept = node.suffixes
    if node.dropped or node.count > MOST_KEYS or kept is None:
        return None
    return (yield from _kept(kept, node.count, node.brace_before, separators))


def _listed(node: Namespace) -> Slices[ChildCounts]:
    """Take the children of an open namespace."""
    slicer = Slicer()
    of = node.count
    found: list[tuple[float, int]] = []
    for start in range(0, node.namespace_total, BATCH):
        ordinals = range(start, min(start + BATCH, node.namespace_total))
        found += [(-weight, at) for weight, at in zip(node.weights(ordinals), ordinals, strict=True)]
        found = sorted(found)[:LARGEST]
        yield from slicer.pause()
    parts = tuple(ChildCount(node.labels[at], -weight, -weight > node.count_at(at)) for weight, at in found)
    return ChildCounts(parts, node.namespace_total, node.key_total, of)


def _kept(kept: PackedNames | bytes, of: int, brace_before: bool, separators: Separators) -> Slices[ChildCounts]:
    """Cut the suffixes of an unopened namespace at their first separators."""
    slicer = Slicer()
    counts: Counter[bytes] = Counter()
    batches = iter([unpack_inline(kept)]) if isinstance(kept, bytes) else (chunk.names() for _, chunk in kept.chunks())
    for names in batches:
        cut = separators.split_batch(names, brace_before=brace_before)
        counts.update(head + separator if separator else b"" for head, separator, _ in cut)
        yield from slicer.pause()
    keys = counts.pop(b"", 0)
    parts = tuple(ChildCount(label, count) for label, count in counts.most_common(LARGEST))
    return ChildCounts(parts, len(counts), keys, of)
