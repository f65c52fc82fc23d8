"""The rows of the tree: what is expanded, flattened, without a list of all rows anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from rtui.keyspace.rows.expanding import all_below, way_to
from rtui.keyspace.rows.listing import Listing, first_starting
from rtui.keyspace.rows.ordering import Sort, orders_of
from rtui.keyspace.slices import Slicer, Slices, T, finish, only_while
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore

ALL_BELOW_ROWS = 10_000
"""Opening everything below a namespace stops after so many rows."""

SORT_AT_ONCE = 2_000
"""So many children are sorted without a pause where a listing has to be put right at once."""


class Kind(Enum):
    """What a row stands for."""

    NAMESPACE = "namespace"
    """All keys with a common prefix."""

    KEY = "key"
    """One key."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. Rows are equal if they stand for the same thing, wherever it is listed now.

    A key that got another number is another row; what is kept by row is never found for a key of another name.
    """

    kind: Kind
    """Whether it is a namespace or a key."""

    namespace: Namespace
    """The namespace itself, or the one that the key lies directly in."""

    ordinal: int
    """Which of the keys of `namespace` it is; -1 for a namespace. `settle` may renumber keys, see `index_of`."""

    depth: int = field(compare=False)
    """How many namespaces it lies in."""

    name: bytes
    """The last segment, without a separator."""

    def key(self) -> bytes:
        """The full name of the key; for a namespace, the prefix of its keys, its separator included."""
        return self.namespace.path() if self.kind is Kind.NAMESPACE else self.namespace.path() + self.name


@dataclass(frozen=True, slots=True)
class Change:
    """What a refresh did."""

    changed: bool
    """Whether there are rows that were not there, or that moved."""

    shift: int
    """How many rows more are above the anchor; negative if there are less. 0 if the anchor is not listed any more."""


class VisibleRows:
    """The rows of a store's tree by number. Nothing that is listed moves until it is sorted again, but for what
    arrives: namespaces are listed behind the namespaces, keys behind the keys.
    """

    def __init__(self, store: NamespaceStore, *, sort: Sort = Sort.COUNT) -> None:
        self.store = store
        self.sort_order = sort
        self._changes = store.watch()
        self._root = Listing(store.root, None)
        self._listings = {store.root: self._root}
        self._moved = False
        self._begin()

    def __len__(self) -> int:
        self._put_right()
        return self._root.size

    def row(self, index: int) -> Row:
        """The row with this number; IndexError if there is none."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        listing, position = self._descend(index)
        return _row_at(listing, position)

    def window(self, start: int, count: int) -> list[Row]:
        """The rows from `start` on, `count` of them or as many as there are: one descent for all of them."""
        found: list[Row] = []
        if not 0 <= start < len(self):
            return found
        listing, position = self._descend(start)
        while len(found) < count:
            found.append(_row_at(listing, position))
            below = self._listings.get(found[-1].namespace) if found[-1].kind is Kind.NAMESPACE else None
            if below is not None and below.attached and below.size:
                listing, position = below, 0
                continue
            position += 1
            while position >= listing.name_count + listing.key_count and listing.parent is not None:
                position = listing.parent.position_of_name(listing.parent.ordinal_of(listing.node)) + 1
                listing = listing.parent
            if position >= listing.name_count + listing.key_count:
                break
        return found

    def index_of(self, row: Row) -> int | None:
        """The number of this row, None if it is not listed; a key that was renumbered is found by its name."""
        self._put_right()
        listing = self._listing_with(row)
        if listing is not None and row.kind is Kind.KEY and listing.key_at(row.ordinal) != row.name:
            again = finish(self.key_row(row.namespace, row.name))
            return None if again is None else self._index(again)
        return self._index(row)

    def row_of(self, namespace: Namespace) -> Row:
        """The row of a namespace, whether it is visible or not."""
        listing = self._listings.get(namespace.parent) if namespace.parent is not None else None
        return Row(Kind.NAMESPACE, namespace, -1, 0 if listing is None else listing.depth, namespace.name)

    def key_row(self, namespace: Namespace, name: bytes) -> Slices[Row | None]:
        """The row of the key with this name directly in a listed namespace, None if it has none; in slices."""
        return self._only_now(self._search_key(namespace, name))

    # expanding

    def is_expanded(self, namespace: Namespace) -> bool:
        """Whether its children are listed below its row, if that is visible."""
        listing = self._listings.get(namespace)
        return listing is self._root or (listing is not None and listing.attached)

    def expand(self, namespace: Namespace) -> Slices[None]:
        """List the children of a namespace: what is known at once, the rest in slices of what is returned.

        Whoever drives it calls `refresh` between slices to see more of it. At the end the children are sorted, unless
        they were when it was expanded already; after a refill of the namespace, expand it again to have them sorted.
        ValueError if the namespace it lies in was never expanded.
        """
        self._put_right()
        if namespace is not self._root.node:
            if namespace.parent is None or not self.can_expand(namespace):
                raise ValueError("the namespace above is not expanded")
            parent = self._listings[namespace.parent]
            listing = self._listings.get(namespace)
            if listing is None:
                listing = self._listings[namespace] = Listing(namespace, parent)
            if not listing.attached:
                if parent.position_of_name(namespace.ordinal) >= parent.name_count:
                    parent.take_new()
                listing.take_new()
                listing.attach()
                listing.arranged = False
        return self._only_now(self._fill(self._listings[namespace]))

    def collapse(self, namespace: Namespace) -> None:
        """List the children of a namespace no more; what is expanded below stays so for the next time."""
        listing = self._listings.get(namespace)
        if listing is not None:
            listing.detach()

    def can_expand(self, namespace: Namespace) -> bool:
        """Whether the namespace is listed in one that is expanded, or was."""
        if namespace.root is not self.store.root or namespace.parent is None:
            return namespace is self._root.node
        return namespace.parent in self._listings and namespace.ordinal >= 0

    def expand_all(self, namespace: Namespace, *, most_rows: int = ALL_BELOW_ROWS) -> Slices[bool | None]:
        """Expand a namespace and all below it, level by level, in slices; returns whether that is all.

        It stops when it has listed `most_rows` or gone down `ALL_BELOW_LEVELS`, and passes over namespaces that need a
        scan of their own.
        """
        return self._only_now(all_below(self, namespace, most_rows))

    def reveal(self, key: bytes) -> Slices[Row | None]:
        """Expand all namespaces that a key lies in, in slices; returns its row, None if it is not kept here."""
        return self._only_now(way_to(self, key))

    def listing(self, namespace: Namespace) -> Listing | None:
        """How the children of a namespace are listed, if it was ever expanded."""
        return self._listings.get(namespace)

    # moving

    def parent_row(self, row: Row) -> Row | None:
        """The row of the namespace that this row lies in; None at the first level."""
        above = row.namespace if row.kind is Kind.KEY else row.namespace.parent
        return None if above is None or above.parent is None else self.row_of(above)

    def first_sibling(self, row: Row) -> Row:
        """The first row of the same namespace."""
        listing = self._listing_with(row)
        return row if listing is None else _row_at(listing, 0)

    def last_sibling(self, row: Row) -> Row:
        """The last row of the same namespace."""
        listing = self._listing_with(row)
        return row if listing is None else _row_at(listing, listing.name_count + listing.key_count - 1)

    def find_sibling(
        self, row: Row, prefix: bytes, *, after: bool = False, ignore_case: bool = False
    ) -> Slices[Row | None]:
        """The next row of the same namespace whose name starts with `prefix`, from `row` on, then from the first on.

        With `after`, `row` itself comes last. In slices.
        """
        self._put_right()
        return self._only_now(self._search_sibling(row, prefix, after, ignore_case))

    # changing

    def refresh(self, anchor: Row | None = None) -> Change:
        """List what the store got since; costs what the expanded namespaces that grew cost, not their rows."""
        before = None if anchor is None else self._index(anchor)
        rows = self._root.size
        self._put_right()
        moved, self._moved = self._moved, False
        grown, self._changes.grown = self._changes.grown, set()
        for node in grown:
            listing = self._listings.get(node)
            if listing is not None:
                listing.take_new()
        after = None if anchor is None or before is None else self.index_of(anchor)
        return Change(moved or rows != self._root.size, 0 if before is None or after is None else after - before)

    def sort(self, order: Sort) -> Slices[None]:
        """Sort the children of all expanded namespaces, in slices; all rows take their new place at the end."""
        self.sort_order = order
        self._put_right()
        return self._only_now(self._sort(order))

    def _begin(self) -> None:
        """Start with the root of the store, as it is now."""
        self._changes.grown, self._changes.reshaped = set(), set()
        for listing in self._listings.values():
            listing.dissolve()
        self._root = Listing(self.store.root, None)
        self._listings = {self.store.root: self._root}
        finish(self._arrange(self._root, most=SORT_AT_ONCE))
        self._root.arranged = True

    def _only_now(self, work: Slices[T]) -> Slices[T | None]:
        """Do work until the store is reset."""
        root = self.store.root
        return only_while(lambda: self.store.root is root, work)

    def _fill(self, listing: Listing) -> Slices[None]:
        yield from self.store.open(listing.node)
        self._put_right()
        listing.take_new()
        if listing.node.opened and not listing.arranged:
            yield from self._arrange(listing)
            listing.arranged = True

    def _arrange(self, listing: Listing, most: int | None = None) -> Slices[None]:
        """Sort one listing; with `most`, only if it has not more children."""
        node = listing.node
        if most is None or node.namespace_total + node.key_total <= most:
            orders = yield from orders_of(node, self.sort_order, Slicer(self.store.clock))
            self._put_right()
            listing.set_orders(*orders)

    def _sort(self, order: Sort) -> Slices[None]:
        slicer = Slicer(self.store.clock)
        sorted_orders = []
        for listing in list(self._listings.values()):
            labels, keys = listing.node.labels, listing.node.keys
            orders = yield from orders_of(listing.node, order, slicer)
            sorted_orders.append((listing, labels, keys, orders))
            if slicer.over():
                yield
                slicer.restart()
        self._put_right()
        for listing, labels, keys, orders in sorted_orders:
            now = listing.node
            if self.sort_order is order and now.labels is labels and (keys is None or now.keys is keys):
                listing.set_orders(*orders)

    def _search_key(self, namespace: Namespace, name: bytes) -> Slices[Row | None]:
        listing = self._listings.get(namespace)
        if listing is None or namespace.keys is None:
            return None
        slicer = Slicer(self.store.clock)
        for first, chunk in namespace.keys.chunks():
            place = chunk.index(name)
            if place >= 0:
                return Row(Kind.KEY, namespace, first + place, listing.depth, name)
            if slicer.over():
                yield
                slicer.restart()
        return None

    def _search_sibling(self, row: Row, prefix: bytes, after: bool, ignore_case: bool) -> Slices[Row | None]:
        listing = self._listing_with(row)
        position = None if listing is None else _position(listing, row)
        if listing is None or position is None:
            return None
        slicer = Slicer(self.store.clock)
        found = yield from first_starting(listing, prefix, position + after, ignore_case, slicer)
        return None if found is None else _row_at(listing, found)

    def _put_right(self) -> None:
        """List anew what was renumbered, and everything if the store was reset."""
        if self.store.root is not self._root.node:
            self._begin()
            self._moved = True
        reshaped = self._changes.reshaped
        if not reshaped:
            return
        self._changes.reshaped = set()
        self._moved = True
        for node in reshaped:
            listing = self._listings.get(node)
            if listing is None:
                continue
            were_sorted = listing.keys_are_sorted
            for gone in listing.renumber():
                self._forget(gone)
            if were_sorted and not listing.keys_are_sorted:
                finish(self._arrange(listing, most=SORT_AT_ONCE))

    def _forget(self, top: Listing) -> None:
        waiting = [top]
        while waiting:
            listing = waiting.pop()
            self._listings.pop(listing.node, None)
            waiting += listing.expanded

    def _index(self, row: Row) -> int | None:
        """The number of a row as it is listed now, though ordinals may wait to be put right."""
        listing = self._listing_with(row)
        position = None if listing is None else _position(listing, row)
        if listing is None or position is None:
            return None
        index = listing.offset(position)
        while listing.parent is not None:
            if not listing.attached:
                return None
            index += 1 + listing.parent.offset(listing.parent.position_of_name(listing.parent.ordinal_of(listing.node)))
            listing = listing.parent
        return index

    def _descend(self, index: int) -> tuple[Listing, int]:
        """The listing and the position in it of a row by number."""
        listing: Listing = self._root
        while True:
            position, below, index = listing.locate(index)
            if below is None:
                return listing, position
            listing = below

    def _listing_with(self, row: Row) -> Listing | None:
        above = row.namespace if row.kind is Kind.KEY else row.namespace.parent
        return None if above is None else self._listings.get(above)


def _position(listing: Listing, row: Row) -> int | None:
    """Where a row is among the children that are listed."""
    if row.kind is Kind.NAMESPACE:
        ordinal = listing.ordinal_of(row.namespace)
        return listing.position_of_name(ordinal) if 0 <= ordinal < listing.name_count else None
    return listing.position_of_key(row.ordinal) if listing.key_at(row.ordinal) == row.name else None


def _row_at(listing: Listing, position: int) -> Row:
    node = listing.node
    if position < listing.name_count:
        child = node.namespace_at(listing.name_ordinal(position))
        return Row(Kind.NAMESPACE, child, -1, listing.depth, child.name)
    ordinal = listing.key_ordinal(position)
    return Row(Kind.KEY, node, ordinal, listing.depth, node.key_at(ordinal))
