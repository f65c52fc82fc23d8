"""Expands many namespaces one after the other, in slices: all below one, or all that a key lies in."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace

if TYPE_CHECKING:
    from rtui.keyspace.rows.rows import Row, VisibleRows

ALL_BELOW_LEVELS = 1_000
"""Opening everything below a namespace stops at so many levels: one key can have a hundred thousand."""


def all_below(rows: VisibleRows, top: Namespace, most_rows: int) -> Slices[bool]:
    """Expand a namespace and those below it, level by level; returns whether that was all."""
    slicer = Slicer(rows.store.clock)
    waiting = deque((top,))
    levels = {top: 0}
    listed, everything = 0, True
    while waiting:
        node = waiting.popleft()
        level = levels.pop(node)
        if listed >= most_rows or level >= ALL_BELOW_LEVELS or not rows.can_expand(node):
            return False
        yield from rows.expand(node)
        listing = rows.listing(node)
        if listing is None:
            return False
        everything = everything and node.opened
        listed += listing.name_count + listing.key_count
        for position in range(min(listing.name_count, most_rows - listed)):
            child = node.namespace_at(listing.name_ordinal(position))
            levels[child] = level + 1
            waiting.append(child)
        if slicer.over():
            yield
            slicer.restart()
    return everything


def way_to(rows: VisibleRows, key: bytes) -> Slices[Row | None]:
    """Expand all namespaces that a key lies in; returns its row, None if it is not kept."""
    node = rows.store.root
    for name, separator in rows.store.separators.segments(key):
        if not separator:
            return (yield from rows.key_row(node, name))
        label = name + separator
        if node.children is None or label not in node.children:
            return None
        node = node.child(label)
        if not rows.can_expand(node):
            return None
        yield from rows.expand(node)
    return None
