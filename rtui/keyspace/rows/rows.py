"""The rows of the tree: its expanded part, flattened and addressed by number, without a list of all rows anywhere.

Every expanded namespace has a `NamespaceListing`, and row 100,000 is found by walking down from the listing of the
root: which expanded child contains the offset, and what is the offset in it? So the rows of a million keys cost nothing
until they are sorted, and eight bytes each then.

A namespace with nothing in it but one other is shown with it in one row, `a:b:c`, once it has been opened: see
`listings.Chain`.

Rows stay in place: children that arrive during a scan are listed behind the others of their kind until the next
sorting, by the user or at the end of the scan.

All work over many children is done in slices, between which rows can be read.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from rtui.keyspace.rows.listing import NamespaceListing, Sort, Weigher
from rtui.keyspace.rows.listings import Listings, until_reset
from rtui.keyspace.slices import Slicer, Slices, finish
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import HEADER, swapped

ALL_BELOW_ROWS = 10_000
ALL_BELOW_LEVELS = 1_000
"""The most rows, and levels, that expanding everything below a namespace lists: one key can have a hundred thousand
levels."""


class RowKind(Enum):
    """The kind of a row."""

    NAMESPACE = "namespace"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Row:
    """One row. Rows are equal if they stand for the same namespace or key, wherever it is listed now.

    A renumbered key is another row; data kept by row is never found for a key of another name.
    """

    kind: RowKind
    namespace: Namespace
    """The namespace itself, for a chain its end; for a key, the namespace that contains it."""
    ordinal: int
    """The number of the key among the keys of `namespace`; -1 for a namespace. `settle` may renumber keys."""
    depth: int = field(compare=False)
    name: bytes
    """The last segment, without a separator; for a chain, all of its segments."""

    def key(self) -> bytes:
        """Return the raw name of the key; for a namespace, the prefix of its keys with the separator."""
        if self.kind is RowKind.NAMESPACE:
            return self.namespace.path()
        name, root = self.namespace.path() + self.name, self.namespace.root
        return swapped(name, root.java_separator) if name.startswith(HEADER) else name


class VisibleRows:
    """The rows of a store's tree by number."""

    def __init__(
        self,
        store: NamespaceStore,
        *,
        sort: Sort = Sort.COUNT,
        weigher: Weigher | None = None,
        joins_chains: bool = False,
        is_reversed: bool = False,
    ) -> None:
        """`weigher` gives the weights of orders beyond names and counts; `joins_chains` shows `a:b:c` in one row."""
        self.store = store
        self._listings = Listings(store, sort, weigher, joins_chains=joins_chains, is_reversed=is_reversed)

    @property
    def sort_order(self) -> Sort:
        return self._listings.sort_order

    @property
    def is_reversed(self) -> bool:
        return self._listings.is_reversed

    @property
    def is_in_order(self) -> bool:
        root = self._listings.root
        return all(listing.is_in_order for listing in self._listings if listing.attached or listing is root)

    def __len__(self) -> int:
        self._listings.follow()
        return self._listings.root.size

    def row(self, index: int) -> Row:
        """Return the row with this number; IndexError if there is none."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        listing, position = self._locate(index)
        return self._row_at(listing, position)

    def window(self, start: int, count: int) -> list[Row]:
        """Return up to `count` rows from `start` on."""
        found: list[Row] = []
        if not 0 <= start < len(self):
            return found
        listing, position = self._locate(start)
        while len(found) < count:
            found.append(self._row_at(listing, position))
            below = self._listings.get(found[-1].namespace) if found[-1].kind is RowKind.NAMESPACE else None
            if below is not None and below.attached and below.size:
                listing, position = below, 0
                continue
            position += 1
            while position >= listing.child_count and listing.parent is not None:
                position, listing = listing.parent.position_of(listing.head) + 1, listing.parent
            if position >= listing.child_count:
                break
        return found

    def index_of(self, row: Row) -> int | None:
        """Return the number of this row, or None if it is not listed; a renumbered key is found by its name."""
        self._listings.follow()
        listing = self._listings.get(self.above(row))
        if listing is not None and row.kind is RowKind.KEY and listing.key_at(row.ordinal) != row.name:
            row = finish(self.key_row(row.namespace, row.name)) or row
        position = None if listing is None else self._position(listing, row)
        if listing is None or position is None:
            return None
        index = listing.offset(position)
        while listing.parent is not None:
            if not listing.attached:
                return None
            index += 1 + listing.parent.offset(listing.parent.position_of(listing.head))
            listing = listing.parent
        return index

    def row_of(self, namespace: Namespace) -> Row:
        listing = self._listings.get(self._listings.head(namespace).parent)
        return self._namespace_row(namespace, 0 if listing is None else listing.depth)

    def above(self, row: Row) -> Namespace | None:
        """Return the namespace that lists this row among its children; None for the root."""
        return row.namespace if row.kind is RowKind.KEY else self._listings.head(row.namespace).parent

    @until_reset
    def key_row(self, namespace: Namespace, name: bytes) -> Slices[Row | None]:
        """Return the row of the key with this name directly in a listed namespace, or None; in slices."""
        listing = self._listings.get(namespace)
        if listing is None or namespace.keys is None:
            return None
        slicer = Slicer(self.store.clock)
        for first, chunk in namespace.keys.chunks():
            index = chunk.index(name)
            if index >= 0:
                return Row(RowKind.KEY, namespace, first + index, listing.depth, name)
            yield from slicer.pause()
        return None

    def is_expanded(self, namespace: Namespace) -> bool:
        """Whether the namespace's children are listed below its row, should that be visible."""
        listing = self._listings.get(self._listings.end(namespace))
        return listing is self._listings.root or (listing is not None and listing.attached)

    def can_expand(self, namespace: Namespace) -> bool:
        """Whether the namespace is listed in one that is, or was, expanded."""
        if namespace.root is not self.store.root or namespace.parent is None:
            return namespace is self._listings.root.node
        head = self._listings.head(namespace)
        return self._listings.get(head.parent) is not None and head.ordinal >= 0

    def expand(self, namespace: Namespace) -> Slices[None]:
        """List the children of a namespace: present ones at once, the rest in slices.

        Call `refresh` between slices to see more of them. At the end the children are sorted, unless they were when the
        namespace was expanded before; after a refill, expand it again to sort them. Raises ValueError if the namespace
        above was never expanded.
        """
        self._listings.follow()
        self._listings.check_chain(namespace)
        namespace = self._listings.end(namespace)
        if namespace is self._listings.root.node:
            return self._listings.open(self._listings.root)
        if not self.can_expand(namespace):
            raise ValueError("the namespace above is not expanded")
        return self._listings.open(self._listings.attach(namespace))

    def collapse(self, namespace: Namespace) -> None:
        """Hide the children of a namespace; expanded namespaces below stay so for the next time."""
        listing = self._listings.get(self._listings.end(namespace))
        if listing is not None:
            listing.detach()

    @until_reset
    def expand_all(self, namespace: Namespace, *, most_rows: int = ALL_BELOW_ROWS) -> Slices[bool]:
        """Expand a namespace and everything below it, level by level, in slices; return whether nothing was left out.

        It stops after listing `most_rows` or reaching `ALL_BELOW_LEVELS`, and skips namespaces that need a scan of
        their own.
        """
        slicer = Slicer(self.store.clock)
        waiting = deque(((namespace, 0),))
        listed, everything = 0, True
        while waiting:
            node, level = waiting.popleft()
            if listed >= most_rows or level >= ALL_BELOW_LEVELS or not self.can_expand(node):
                return False
            yield from self.expand(node)
            listing = self._listings.get(self._listings.end(node))
            if listing is None:
                return False
            node = listing.node
            everything = everything and node.opened
            listed += listing.child_count
            for position in range(min(listing.name_count, most_rows - listed)):
                waiting.append((node.namespace_at(listing.name_order.ordinal_at(position)), level + 1))
            yield from slicer.pause()
        return everything

    @until_reset
    def reveal(self, key: bytes) -> Slices[Row | None]:
        """Expand all namespaces that contain a key, given by its raw name, in slices; return its row, or None."""
        node = self.store.root
        for name, separator in self.store.separators.segments(self.store.swapped([key])[0]):
            if not separator:
                return (yield from self.key_row(node, name))
            label = name + separator
            if node.children is None or label not in node.children:
                return None
            node = node.child(label)
            if not self.can_expand(node):
                return None
            yield from self.expand(node)
        return None

    def reveal_namespace(self, prefix: bytes) -> Slices[Row | None]:
        """Expand all namespaces that contain this one, in slices; return its row, or None if the store does not have
        it."""
        node = self.store.root
        for name, separator in self.store.separators.segments(prefix):
            label = name + separator
            if not separator:
                return self.row_of(self._listings.end(node)) if not name and node.parent is not None else None
            if not self.can_expand(node):
                return None
            yield from self.expand(node)
            if node.children is None or label not in node.children:
                return None
            node = node.child(label)
        return None

    def parent_row(self, row: Row) -> Row | None:
        """Return the row of the namespace that contains this row; None at the first level."""
        above = self.above(row)
        return None if above is None or above.parent is None else self.row_of(above)

    def end_sibling(self, row: Row, *, last: bool) -> Row:
        listing = self._listings.get(self.above(row))
        return row if listing is None else self._row_at(listing, listing.child_count - 1 if last else 0)

    @until_reset
    def find_sibling(self, row: Row, prefix: bytes) -> Slices[Row | None]:
        """Return the next row of the same namespace whose name starts with `prefix`, or None; in slices.

        Ignores case. The search starts at `row` and wraps around.
        """
        self._listings.follow()
        listing = self._listings.get(self.above(row))
        position = None if listing is None else self._position(listing, row)
        if listing is None or position is None:
            return None
        found = yield from listing.find(prefix.lower(), position, Slicer(self.store.clock))
        if found is None:
            chain = self._listings.chains.find(listing.node, prefix.lower())
            return None if chain is None else self.row_of(chain.end)
        return None if found is None else self._row_at(listing, found)

    def take_closed(self) -> list[bytes]:
        """Return the prefixes of the namespaces that were expanded before the store was reset, once."""
        self._listings.follow()
        closed, self._listings.closed = self._listings.closed, []
        return closed

    def refresh(self) -> None:
        """List the children that the store got since the last call; costs grow with the expanded namespaces that
        changed."""
        self._listings.list_new()

    def sort(self, order: Sort, *, is_reversed: bool = False) -> Slices[None]:
        """Sort the children of all expanded namespaces, in slices; all rows move to their new places at the end."""
        return self._listings.sort(order, is_reversed=is_reversed)

    def with_keys(self) -> list[Namespace]:
        """Return the expanded namespaces with several keys directly in them, whose order may matter."""
        root = self._listings.root
        return [one.node for one in self._listings if one.key_count > 1 and (one.attached or one is root)]

    @until_reset
    def arrange(self, namespace: Namespace) -> Slices[None]:
        """Sort the children of one expanded namespace, in slices."""
        self._listings.follow()
        listing = self._listings.get(namespace)
        if listing is not None:
            yield from self._listings.arrange(listing)

    def _locate(self, index: int) -> tuple[NamespaceListing, int]:
        """Return the listing of a row by number, and the position in it."""
        listing: NamespaceListing = self._listings.root
        while True:
            position, below, index = listing.locate(index)
            if below is None:
                return listing, position
            listing = below

    def _position(self, listing: NamespaceListing, row: Row) -> int | None:
        if row.kind is RowKind.NAMESPACE:
            ordinal = self._listings.head(row.namespace).ordinal
            return listing.name_order.position_of(ordinal) if 0 <= ordinal < listing.name_count else None
        is_there = listing.key_at(row.ordinal) == row.name
        return listing.name_count + listing.key_order.position_of(row.ordinal) if is_there else None

    def _row_at(self, listing: NamespaceListing, position: int) -> Row:
        node = listing.node
        if position < listing.name_count:
            child = node.namespace_at(listing.name_order.ordinal_at(position))
            return self._namespace_row(child, listing.depth)
        ordinal = listing.key_order.ordinal_at(position - listing.name_count)
        return Row(RowKind.KEY, node, ordinal, listing.depth, node.key_at(ordinal))

    def _namespace_row(self, namespace: Namespace, depth: int) -> Row:
        chain = self._listings.chains.of(namespace)
        if chain is None:
            return Row(RowKind.NAMESPACE, namespace, -1, depth, namespace.name)
        return Row(RowKind.NAMESPACE, chain.end, -1, depth, chain.name)
