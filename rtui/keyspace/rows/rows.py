"""The rows of the tree: what is expanded, flattened and addressed by number, without a list of all rows anywhere.

Every expanded namespace has a `Listing`, and row 100,000 is found by walking down from the listing of the root: which
expanded child contains the offset, and what offset is it there? So the rows of a million keys cost nothing until they
are sorted, and eight bytes each then.

A namespace with nothing in it but one other is shown with that in one row, `a:b:c`, once it has been opened: see
`chains`.

Rows stay in place: what arrives while a scan runs is listed after the children of its kind until the user sorts again.
All work over many children is done in slices, during which rows can be read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Concatenate, ParamSpec

from rtui.keyspace.rows.chains import Chains
from rtui.keyspace.rows.listing import ARRIVAL, Listing
from rtui.keyspace.rows.ordering import Sort, Weigher, orders_of
from rtui.keyspace.slices import Slicer, Slices, T, finish, only_while
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore

P = ParamSpec("P")

ALL_BELOW_ROWS = 10_000
ALL_BELOW_LEVELS = 1_000
"""Expanding everything below a namespace stops after so many rows or levels: one key can have a hundred thousand."""

SORT_AT_ONCE = 2_000
"""Up to this many children are sorted without a pause where a listing has to be sorted at once."""


class RowKind(Enum):
    """What a row stands for."""

    NAMESPACE = "namespace"
    """All keys with a common prefix."""
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Row:
    """One row. Rows are equal if they stand for the same thing, wherever it is listed now.

    A key that got another number is another row; what is kept by row is never found for a key of another name.
    """

    kind: RowKind
    namespace: Namespace
    """The namespace itself, of a chain the last one, or the one that the key is directly in."""
    ordinal: int
    """The number of the key among the keys of `namespace`; -1 for a namespace. `settle` may renumber keys."""
    depth: int = field(compare=False)
    """How many rows of namespaces it is below."""
    name: bytes
    """The last segment, without a separator; of a chain all of its segments."""

    def key(self) -> bytes:
        """Return the full name of the key; for a namespace, the prefix of its keys, its separator included."""
        return self.namespace.path() if self.kind is RowKind.NAMESPACE else self.namespace.path() + self.name


def _until_reset(
    work: Callable[Concatenate[VisibleRows, P], Slices[T]],
) -> Callable[Concatenate[VisibleRows, P], Slices[T | None]]:
    """Make work of a method that ends with None when the store is reset."""

    @wraps(work)
    def guarded(rows: VisibleRows, /, *args: P.args, **kwargs: P.kwargs) -> Slices[T | None]:
        root = rows.store.root
        return only_while(lambda: rows.store.root is root, work(rows, *args, **kwargs))

    return guarded


class VisibleRows:
    """The rows of a store's tree by number."""

    def __init__(
        self,
        store: NamespaceStore,
        *,
        sort: Sort = Sort.COUNT,
        weigher: Weigher | None = None,
        joins_chains: bool = False,
    ) -> None:
        """`weigher` knows what is sorted by beside names and counts; `joins_chains` shows `a:b:c` in one row."""
        self.store = store
        self.sort_order = sort
        self._weigher = weigher
        self._chains = Chains() if joins_chains else None
        self._changes = store.watch()
        self._listings: dict[Namespace | None, Listing] = {}
        self._begin()

    def __len__(self) -> int:
        self._renumber()
        return self._root.size

    def row(self, index: int) -> Row:
        """Return the row with this number; IndexError if there is none."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        listing, position = self._locate(index)
        return self._row_at(listing, position)

    def window(self, start: int, count: int) -> list[Row]:
        """Return the rows from `start` on, `count` of them or as many as there are."""
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
        """Return the number of this row, None if it is not listed; a key that was renumbered is found by its name."""
        self._renumber()
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
        """Return the row of a namespace, whether it is visible or not."""
        listing = self._listings.get(self._head(namespace).parent)
        return self._namespace_row(namespace, 0 if listing is None else listing.depth)

    def above(self, row: Row) -> Namespace | None:
        """Return the namespace whose children are listed with this row; None for the root."""
        return row.namespace if row.kind is RowKind.KEY else self._head(row.namespace).parent

    @_until_reset
    def key_row(self, namespace: Namespace, name: bytes) -> Slices[Row | None]:
        """Return the row of the key with this name directly in a listed namespace, None if it has none; in slices."""
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
        """Tell whether its children are listed below its row, if that is visible."""
        listing = self._listings.get(self._end(namespace))
        return listing is self._root or (listing is not None and listing.attached)

    def can_expand(self, namespace: Namespace) -> bool:
        """Tell whether the namespace is listed in one that is, or was, expanded."""
        if namespace.root is not self.store.root or namespace.parent is None:
            return namespace is self._root.node
        head = self._head(namespace)
        return head.parent in self._listings and head.ordinal >= 0

    def expand(self, namespace: Namespace) -> Slices[None]:
        """List the children of a namespace: those it has at once, the rest in the slices of what is returned.

        Call `refresh` between slices to see more of them. At the end the children are sorted, unless they were when the
        namespace was expanded before; after a refill of it, expand it again to have them sorted. Raises ValueError if
        the namespace that it is in was never expanded.
        """
        self._renumber()
        namespace = self._end(namespace)
        if namespace is not self._root.node:
            if not self.can_expand(namespace):
                raise ValueError("the namespace above is not expanded")
            parent = self._listings[self._head(namespace).parent]
            listing = self._listings.get(namespace)
            if listing is None:
                listing = self._listings[namespace] = Listing(namespace, parent)
            if not listing.attached:
                if parent.name_order.position_of(listing.head.ordinal) >= parent.name_count:
                    parent.list_new()
                listing.list_new()
                listing.attach()
                listing.arranged = False
        return self._open(self._listings[namespace])

    def collapse(self, namespace: Namespace) -> None:
        """Hide the children of a namespace; what is expanded below stays so for the next time."""
        listing = self._listings.get(self._end(namespace))
        if listing is not None:
            listing.detach()

    @_until_reset
    def expand_all(self, namespace: Namespace, *, most_rows: int = ALL_BELOW_ROWS) -> Slices[bool]:
        """Expand a namespace and all below it, level by level, in slices; returns whether that is all.

        It stops when it has listed `most_rows` or reached `ALL_BELOW_LEVELS`, and skips namespaces that need a scan of
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
            listing = self._listings.get(self._end(node))
            if listing is None:
                return False
            node = listing.node
            everything = everything and node.opened
            listed += listing.child_count
            for position in range(min(listing.name_count, most_rows - listed)):
                waiting.append((node.namespace_at(listing.name_order.ordinal_at(position)), level + 1))
            yield from slicer.pause()
        return everything

    @_until_reset
    def reveal(self, key: bytes) -> Slices[Row | None]:
        """Expand all namespaces that a key is in, in slices; returns its row, None if the store does not have it."""
        node = self.store.root
        for name, separator in self.store.separators.segments(key):
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
        """Expand all namespaces that one is in, in slices; returns its row, None if the store does not have it."""
        node = self.store.root
        for name, separator in self.store.separators.segments(prefix):
            label = name + separator
            if not separator:
                return self.row_of(self._end(node)) if not name and node.parent is not None else None
            if not self.can_expand(node):
                return None
            yield from self.expand(node)
            if node.children is None or label not in node.children:
                return None
            node = node.child(label)
        return None

    def parent_row(self, row: Row) -> Row | None:
        """Return the row of the namespace that this row is in; None at the first level."""
        above = self.above(row)
        return None if above is None or above.parent is None else self.row_of(above)

    def end_sibling(self, row: Row, *, last: bool) -> Row:
        """Return the first, or the last, row of the same namespace."""
        listing = self._listings.get(self.above(row))
        return row if listing is None else self._row_at(listing, listing.child_count - 1 if last else 0)

    @_until_reset
    def find_sibling(
        self, row: Row, prefix: bytes, *, after: bool = False, ignore_case: bool = False
    ) -> Slices[Row | None]:
        """Return the next row of the same namespace whose name starts with `prefix`, None without; in slices.

        The search starts at `row`, or with `after` at the one after it, and goes on from the first to the last.
        """
        self._renumber()
        listing = self._listings.get(self.above(row))
        position = None if listing is None else self._position(listing, row)
        if listing is None or position is None:
            return None
        found = yield from listing.find(prefix, position + after, ignore_case, Slicer(self.store.clock))
        if found is None and self._chains is not None:
            chain = self._chains.find(listing.node, prefix, ignore_case=ignore_case)
            return None if chain is None else self.row_of(chain.end)
        return None if found is None else self._row_at(listing, found)

    def refresh(self) -> None:
        """List what the store got since the last time; the cost grows with the expanded namespaces that changed."""
        self._renumber()
        grown, self._changes.grown = self._changes.grown, set()
        for node in grown:
            listing = self._listings.get(node)
            if listing is not None:
                listing.list_new()
            else:
                self._check_chain(node)

    def sort(self, order: Sort) -> Slices[None]:
        """Sort the children of all expanded namespaces, in slices; all rows move to their new places at the end."""
        self.sort_order = order
        self._renumber()
        return self._sort(order)

    def with_keys(self) -> list[Namespace]:
        """Return the expanded namespaces with several keys directly in them, whose order may matter."""
        return [
            one.node for one in self._listings.values() if one.key_count > 1 and (one.attached or one is self._root)
        ]

    @_until_reset
    def arrange(self, namespace: Namespace) -> Slices[None]:
        """Sort the children of one expanded namespace, in slices."""
        self._renumber()
        listing = self._listings.get(namespace)
        if listing is not None:
            yield from self._arrange(listing)

    @_until_reset
    def _sort(self, order: Sort) -> Slices[None]:
        slicer = Slicer(self.store.clock)
        sorted_orders = []
        for listing in list(self._listings.values()):
            labels, keys = listing.node.labels, listing.node.keys
            orders = yield from orders_of(listing.node, order, slicer, self._weigher)
            sorted_orders.append((listing, labels, keys, orders))
            yield from slicer.pause()
        self._renumber()
        for listing, labels, keys, orders in sorted_orders:
            node = listing.node
            if self.sort_order is order and node.labels is labels and (keys is None or node.keys is keys):
                listing.set_orders(*orders)

    @_until_reset
    def _open(self, listing: Listing) -> Slices[None]:
        """Open the namespace of a listing, list all of its children and sort them."""
        yield from self.store.open(listing.node)
        self._renumber()
        yield from self._join_chain(listing)
        listing.list_new()
        if listing.node.opened and not listing.arranged:
            yield from self._arrange(listing)
            listing.arranged = True

    def _arrange(self, listing: Listing) -> Slices[None]:
        """Sort the children of one listing."""
        node = listing.node
        orders = yield from orders_of(node, self.sort_order, Slicer(self.store.clock), self._weigher)
        self._renumber()
        if listing.node is node:
            listing.set_orders(*orders)

    def _arrange_at_once(self, listing: Listing) -> None:
        """Sort the children of one listing if they are few."""
        if len(listing.node.labels) + listing.node.key_total <= SORT_AT_ONCE:
            finish(self._arrange(listing))

    def _begin(self) -> None:
        """Start with the root of the store, as it is now."""
        self._changes.grown, self._changes.reshaped = set(), set()
        for listing in self._listings.values():
            listing.parent, listing.expanded = None, []  # They refer to each other; so each is freed at once.
        self._root = Listing(self.store.root, None)
        self._listings = {self.store.root: self._root}
        if self._chains is not None:
            self._chains.clear()
        self._arrange_at_once(self._root)
        self._root.arranged = True

    def _renumber(self) -> None:
        """Follow ordinals that changed in the store, or begin again if it was reset."""
        if self.store.root is not self._root.node:
            self._begin()
        reshaped = self._changes.reshaped
        if not reshaped:
            return
        self._changes.reshaped = set()
        for node in reshaped:
            listing = self._listings.get(node)
            if listing is None:
                self._check_chain(node)
                continue
            were_sorted = listing.key_order is not ARRIVAL
            self._forget(listing.renumber())
            if were_sorted and listing.key_order is ARRIVAL:
                self._arrange_at_once(listing)

    def _locate(self, index: int) -> tuple[Listing, int]:
        """Return the listing and the position in it of a row by number."""
        listing: Listing = self._root
        while True:
            position, below, index = listing.locate(index)
            if below is None:
                return listing, position
            listing = below

    def _forget(self, removed: list[Listing]) -> None:
        """Forget listings whose namespaces were removed, with all that is expanded in them."""
        while removed:
            gone = removed.pop()
            self._listings.pop(gone.node, None)
            if self._chains is not None:
                self._chains.part(gone.node)
            removed += gone.expanded

    def _position(self, listing: Listing, row: Row) -> int | None:
        """Return the position of a row among the children listed, None if it is not among them."""
        if row.kind is RowKind.NAMESPACE:
            ordinal = self._head(row.namespace).ordinal
            return listing.name_order.position_of(ordinal) if 0 <= ordinal < listing.name_count else None
        is_there = listing.key_at(row.ordinal) == row.name
        return listing.name_count + listing.key_order.position_of(row.ordinal) if is_there else None

    def _row_at(self, listing: Listing, position: int) -> Row:
        node = listing.node
        if position < listing.name_count:
            child = node.namespace_at(listing.name_order.ordinal_at(position))
            return self._namespace_row(child, listing.depth)
        ordinal = listing.key_order.ordinal_at(position - listing.name_count)
        return Row(RowKind.KEY, node, ordinal, listing.depth, node.key_at(ordinal))

    # chains

    def _namespace_row(self, namespace: Namespace, depth: int) -> Row:
        """Return the row of a namespace, or of the chain that it is in."""
        chain = None if self._chains is None else self._chains.of(namespace)
        if chain is None:
            return Row(RowKind.NAMESPACE, namespace, -1, depth, namespace.name)
        return Row(RowKind.NAMESPACE, chain.end, -1, depth, chain.name)

    def _head(self, namespace: Namespace) -> Namespace:
        """Return the first namespace of the chain that this one is in, or itself."""
        chain = None if self._chains is None else self._chains.of(namespace)
        return namespace if chain is None else chain.head

    def _end(self, namespace: Namespace) -> Namespace:
        """Return the last namespace of the chain that this one is in, or itself."""
        chain = None if self._chains is None else self._chains.of(namespace)
        return namespace if chain is None else chain.end

    def _join_chain(self, listing: Listing) -> Slices[None]:
        """Have a listing list what is at the end of the chain that its namespace begins or goes on."""
        slicer = Slicer(self.store.clock)
        while self._chains is not None and listing.parent is not None and self._listings.get(listing.node) is listing:
            child = self._chains.link_below(listing.node)
            if child is None or child in self._listings or self.store.needs_scan(child):
                return
            del self._listings[listing.node]
            self._chains.join(listing.node, child)
            self._listings[child] = listing
            listing.arranged = False
            listing.list_other(child)
            yield from self.store.open(child)
            self._renumber()
            listing.list_new()
            yield from slicer.pause()

    def _check_chain(self, namespace: Namespace) -> None:
        """Part the chain that a namespace is in where a namespace of it holds more than the next one by now."""
        while self._chains is not None and (parted := self._chains.check(namespace)) is not None:
            upper, lower = parted
            listing = self._listings.pop(lower[-1], None)
            if listing is None or listing.parent is None:
                return
            was_attached, parent = listing.attached, listing.parent
            listing.detach()
            if lower[0].ordinal < 0:
                self._forget(listing.expanded)
                continue
            between = self._listings[upper[-1]] = Listing(upper[-1], parent)
            between.head = upper[0]
            between.arranged = True
            self._listings[lower[-1]] = listing
            listing.parent, listing.head = between, lower[0]
            self._set_depths(listing)
            if was_attached:
                between.attach()
            listing.attach()

    def _set_depths(self, top: Listing) -> None:
        """Set how deep the rows of a listing, and of all that hang below it, are."""
        below: dict[Listing | None, list[Listing]] = {}
        for listing in self._listings.values():
            below.setdefault(listing.parent, []).append(listing)
        waiting = [top]
        while waiting:
            listing = waiting.pop()
            listing.depth = 0 if listing.parent is None else listing.parent.depth + 1
            waiting += below.get(listing, [])
