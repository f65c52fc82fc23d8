"""Work for the details: children of a namespace counted in slices, pages of a value read until there are matches.

Counting opens nothing, which would make the store larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import unpack_inline
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import STRING
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.preview.page import Preview

GROWTH: Final = 1.125
"""During a scan a namespace is counted again when it has grown by this factor."""

LARGEST: Final = 200
"""Only so many of the largest namespaces are listed."""

MOST_KEYS: Final = 200_000
"""Unopened namespaces of more keys are not counted just because the cursor rests on them."""

FEW_ASKED: Final = 100
"""Namespaces of no more keys are asked how big these are when the cursor rests on them: as many as rows on a screen."""

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
    complete: bool
    """Whether the scan had seen every key."""

    def is_due(self, last: CountedState) -> bool:
        """Return whether to count again: on any change of totals, and after a scan, when few keys are asked."""
        if self.node is not last.node or self.opened != last.opened:
            return True
        if not self.complete:
            return self.keys > last.keys * GROWTH
        return self.keys != last.keys or (not last.complete and 0 < self.keys <= FEW_ASKED)


def count_children(node: Namespace, separators: Separators) -> Slices[ChildCounts | None]:
    """Count what lies directly below, in slices; None where that is not known or would take long."""
    slicer, of, kept = Slicer(), node.count, node.suffixes
    if node.listed:
        found: list[tuple[float, int]] = []
        for start in range(0, len(node.labels), BATCH):
            ordinals = range(start, min(start + BATCH, len(node.labels)))
            found += [(-weight, at) for weight, at in zip(node.weights(ordinals), ordinals, strict=True)]
            found = sorted(found)[:LARGEST]
            yield from slicer.pause()
        parts = tuple(ChildCount(node.labels[at], -weight, -weight > node.count_at(at)) for weight, at in found)
        return ChildCounts(parts, len(node.labels), node.key_total, of)
    if node.dropped or of > MOST_KEYS or kept is None:
        return None
    counts: Counter[bytes] = Counter()
    keys, brace_before = 0, node.brace_before
    batches = [unpack_inline(kept)] if isinstance(kept, bytes) else (chunk.names() for _, chunk in kept.chunks())
    for names in batches:
        unsplit, groups = separators.group_batch(names, brace_before=brace_before)
        keys += len(unsplit)
        for label, _, rests in groups:
            counts[label] += len(rests)
        yield from slicer.pause()
    parts = tuple(ChildCount(label, count) for label, count in counts.most_common(LARGEST))
    return ChildCounts(parts, len(counts), keys, of)


MOST_FOUND: Final = 100
"""A page of what was found ends with so many matches,"""

MOST_LOOKED_AT: Final = 100_000
"""or when so many elements were looked at,"""

MOST_BYTES_LOOKED_AT: Final = 16 << 20
"""in a string so many bytes."""


def is_enough(found: Preview) -> bool:
    """Return whether what was found so far is shown as a page, and the next one is fetched only when it is wanted."""
    count = len(found.rows) if found.elements is None else found.elements
    most = MOST_LOOKED_AT if found.type != STRING.name else MOST_BYTES_LOOKED_AT
    return count >= MOST_FOUND or found.looked_at >= most or found.refusal is not None


def with_more(found: Preview, more: Preview) -> Preview:
    """Return what was found so far with what was found behind it; the page stays the first one."""
    elements = None if found.elements is None else found.elements + (more.elements or 0)
    wide = found if len(found.columns) >= len(more.columns) else more
    rows = (*found.rows, *more.rows)
    if found.columns != more.columns:
        rows = tuple((*row, None)[: len(wide.columns)] for row in rows)
    window, kind = (more.window, more.kind) if more.window is not None else (found.window, found.kind)
    return replace(
        found,
        columns=wide.columns,
        rows=rows,
        elements=elements,
        window=window,
        kind=kind,
        looked_at=found.looked_at + more.looked_at,
        next_page=more.next_page,
        refusal=more.refusal,
    )


async def matches(session: BrowsingSession, facts: KeyFacts, preview: Preview) -> AsyncIterator[Preview]:
    """Yield what was found after a first page, each time with more, until it is enough or there is no more."""
    while preview.next_page is not None and preview.window is None and not is_enough(preview):
        more = await session.keys.preview(facts, preview.next_page)
        preview = with_more(preview, more)
        yield preview
        if more.refusal is not None:
            return
