"""The rows of one expanded namespace: its namespaces, each with its own rows if it is expanded too, and then its keys.

No list of rows exists. A child has an *ordinal*, its number in order of arrival, by which the namespace finds it, and a
*position*, where it is among the children as they are sorted. An *offset* also counts the rows of expanded children. If
`a` is expanded and has two rows, the offsets are

    0  a        position 0
    1    x
    2    y
    3  b        position 1

A `Listing` knows only the positions of its expanded children and how many rows each has, so that it finds the row at
an offset, or the offset of a row, with one bisection: a million collapsed children cost nothing. Sorting makes a
`ChildOrder`; children that arrive later have no place in it and follow in order of arrival.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from rtui.keyspace.slices import Slicer, Slices, finish
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import PackedNames

KEEP_ORDER = 50_000
"""Up to this many namespaces keep their order when some are removed, which takes some ten milliseconds."""

ORDER_BATCH = 8_192
SEARCH_BATCH = 4_096
"""The number of positions stored, and of labels compared, between two checks of the clock."""


class ChildOrder(NamedTuple):
    """An order of the namespaces, or of the keys, of a listing; children without a place in it follow in order of
    arrival."""

    ordinals: array[int]
    """Ordinals by position."""
    positions: array[int]
    """Positions by ordinal."""

    def ordinal_at(self, position: int) -> int:
        return self.ordinals[position] if position < len(self.ordinals) else position

    def position_of(self, ordinal: int) -> int:
        return self.positions[ordinal] if ordinal < len(self.positions) else ordinal


ARRIVAL = ChildOrder(array("I"), array("I"))
"""The order of arrival."""


@dataclass(slots=True, eq=False)
class Listing:
    """The children of one namespace as rows; it is part of the listing of the namespace above while it is attached."""

    node: Namespace
    """The namespace whose children are listed; for a chain in one row, its last namespace."""
    parent: Listing | None
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
    expanded: list[Listing] = field(default_factory=list)
    """The listings of expanded children, from top to bottom."""
    _expanded_positions: list[int] = field(default_factory=list)
    _starts: list[int] | None = None
    """The offsets of the rows of `expanded`, computed on demand."""
    _below: int = 0
    """The number of rows of expanded children."""
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
        """Whether no child is listed in order of arrival."""
        placed = len(self.name_order.ordinals), len(self.key_order.ordinals)
        return (self.name_count < 2 or placed[0] >= self.name_count) and (
            self.key_count < 2 or placed[1] >= self.key_count
        )

    def key_at(self, ordinal: int) -> bytes | None:
        """Return the name of the key with this ordinal, or None."""
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

    def locate(self, offset: int) -> tuple[int, Listing | None, int]:
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
        """Return the offsets of the rows of the expanded children."""
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
        """List all children in another order."""
        self.list_new()
        self.name_order, self.key_order = names, keys
        self._place_expanded()

    def renumber(self) -> list[Listing]:
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
