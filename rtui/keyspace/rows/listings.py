"""The listings of all expanded namespaces, kept in step with the store.

The store records which namespaces have grown, and whose children were renumbered; `follow` and `list_new` bring their
listings up to date, so that the cost grows with the changes and not with the number of rows.

A `Chain` has one listing, of its last namespace, whose rows are below the row of the first. When a chain
splits, its listing stays with the lower part, below a new one for the upper part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import islice
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from rtui.keyspace.rows.listing import ARRIVAL, NamespaceListing, Sort, Weigher, orders_of
from rtui.keyspace.slices import Slicer, Slices, T, finish, only_while
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore

MOST_LINKS: Final = 64
"""The most namespaces in a chain; the next one begins another chain below it."""

Parts = tuple[list[Namespace], list[Namespace]]
"""The upper and the lower namespaces of a chain that was split."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Two or more namespaces, each the only child of the one before, shown in one row.

    With the keys `a:b:c:1` and `a:b:c:2`, three rows would have to be opened, one after the other, to see anything new.
    Once `a` is opened and found to hold nothing but `b:`, which holds nothing but `c:`, they are one chain: a single
    row `a:b:c`. It stands for `c:`, its *end*, and has the place of `a:`, its *head*. Unopened namespaces are not
    looked into, so `a` has a row of its own until then. When `a:x` arrives, the chain splits into `a` and, below it,
    `b:c`.
    """

    members: tuple[Namespace, ...]

    @property
    def head(self) -> Namespace:
        return self.members[0]

    @property
    def end(self) -> Namespace:
        return self.members[-1]

    @cached_property
    def name(self) -> bytes:
        return b"".join([node.label for node in self.members[:-1]]) + self.end.name


class Chains:
    """The chains among the rows of one store."""

    def __init__(self, *, joins: bool = True) -> None:
        """Without `joins` there are no chains: each namespace has a row of its own."""
        self._joins = joins
        self._by_member: dict[Namespace, Chain] = {}

    def of(self, namespace: Namespace) -> Chain | None:
        return self._by_member.get(namespace)

    def clear(self) -> None:
        self._by_member.clear()

    def link_below(self, namespace: Namespace) -> Namespace | None:
        """Return the only child of an opened namespace, which may join its chain; None if there is none, or no room."""
        chain = self.of(namespace)
        is_full = chain is not None and len(chain.members) >= MOST_LINKS
        is_link = self._joins and namespace.opened and len(namespace.labels) == 1 and not namespace.key_total
        return namespace.namespace_at(0) if is_link and not namespace.unlisted and not is_full else None

    def join(self, namespace: Namespace, child: Namespace) -> None:
        """Add `child` to the chain that ends with `namespace`, or begin one."""
        chain = self.of(namespace)
        self._register((*((namespace,) if chain is None else chain.members), child))

    def check(self, namespace: Namespace) -> Parts | None:
        """Split the chain of a namespace where one of it has got a sibling; return both parts, None if it is intact."""
        chain = self.of(namespace)
        if chain is None:
            return None
        for number, (above, below) in enumerate(zip(chain.members, chain.members[1:], strict=False), 1):
            is_link = len(above.labels) == 1 and not above.key_total and below.ordinal >= 0
            if not is_link:
                upper, lower = chain.members[:number], chain.members[number:]
                self.forget(namespace)
                self._register(upper)
                if below.ordinal >= 0:
                    self._register(lower)
                return list(upper), list(lower)
        return None

    def forget(self, namespace: Namespace) -> None:
        chain = self.of(namespace)
        for member in () if chain is None else chain.members:
            del self._by_member[member]

    def find(self, above: Namespace, prefix: bytes) -> Chain | None:
        """Return a chain directly below a namespace whose name, in lower case, starts with `prefix`, or None."""
        chains = (chain for chain in self._by_member.values() if chain.head.parent is above)
        return next((chain for chain in chains if chain.name.lower().startswith(prefix)), None)

    def _register(self, members: tuple[Namespace, ...]) -> None:
        if len(members) > 1:
            chain = Chain(members)
            self._by_member.update((member, chain) for member in members)


P = ParamSpec("P")

MOST_REMEMBERED: Final = 500
"""The most expanded namespaces that are remembered when the store is reset."""

SORT_AT_ONCE: Final = 2_000
"""The most children that are sorted without a pause when a listing has to be sorted at once."""


class HasStore(Protocol):
    """An object that works over a store."""

    store: NamespaceStore


Over = TypeVar("Over", bound=HasStore)


def until_reset(work: Callable[Concatenate[Over, P], Slices[T]]) -> Callable[Concatenate[Over, P], Slices[T | None]]:
    """Let a method's work end early, with None, when the store is reset."""

    @wraps(work)
    def guarded(over: Over, /, *args: P.args, **kwargs: P.kwargs) -> Slices[T | None]:
        root = over.store.root
        return only_while(lambda: over.store.root is root, work(over, *args, **kwargs))

    return guarded


class Listings:
    """The listings of a store's tree by namespace."""

    def __init__(
        self,
        store: NamespaceStore,
        sort: Sort,
        weigher: Weigher | None,
        *,
        joins_chains: bool,
        is_reversed: bool = False,
    ) -> None:
        """`weigher` gives the weights of orders beyond names and counts; `joins_chains` shows `a:b:c` in one row."""
        self.store = store
        self.sort_order, self.is_reversed = sort, is_reversed
        self._weigher = weigher
        self.chains = Chains(joins=joins_chains)
        self._changes = store.watch()
        self._by_node: dict[Namespace | None, NamespaceListing] = {}
        self.closed: list[bytes] = []
        """The prefixes of the namespaces that were expanded when the store was reset; `take_closed` empties it."""
        self._begin()

    def __iter__(self) -> Iterator[NamespaceListing]:
        return iter(self._by_node.values())

    def get(self, namespace: Namespace | None) -> NamespaceListing | None:
        """Return the listing of a namespace, attached or not; None if it was never expanded, or is inside a chain."""
        return self._by_node.get(namespace)

    def head(self, namespace: Namespace) -> Namespace:
        chain = self.chains.of(namespace)
        return namespace if chain is None else chain.head

    def end(self, namespace: Namespace) -> Namespace:
        chain = self.chains.of(namespace)
        return namespace if chain is None else chain.end

    def follow(self) -> None:
        """Follow ordinals that changed in the store; start again if it was reset."""
        if self.store.root is not self.root.node:
            self._begin()
        reshaped = self._changes.reshaped
        if not reshaped:
            return
        self._changes.reshaped = set()
        for node in reshaped:
            listing = self._by_node.get(node)
            if listing is None:
                self.check_chain(node)
                continue
            were_sorted = listing.key_order is not ARRIVAL
            self._forget(listing.renumber())
            if were_sorted and listing.key_order is ARRIVAL:
                self._arrange_at_once(listing)

    def _begin(self) -> None:
        self._changes.grown, self._changes.reshaped = set(), set()
        self.closed += [listing.node.path() for listing in islice(self._expanded(), MOST_REMEMBERED - len(self.closed))]
        for listing in self._by_node.values():
            listing.parent, listing.expanded = None, []  # They refer to each other; so each is freed at once.
        self.root = NamespaceListing(self.store.root, None)
        self._by_node = {self.store.root: self.root}
        self.chains.clear()
        self._arrange_at_once(self.root)
        self.root.arranged = True

    def _expanded(self) -> Iterator[NamespaceListing]:
        """Yield the visible listings except the root's, upper ones first."""
        waiting = list(self._by_node.values())[:1]  # the root's, before there is another
        while waiting:
            listing = waiting.pop()
            waiting += listing.expanded
            if listing.parent is not None:
                yield listing

    def _forget(self, removed: list[NamespaceListing]) -> None:
        """Forget listings whose namespaces were removed, with everything expanded in them."""
        while removed:
            gone = removed.pop()
            self._by_node.pop(gone.node, None)
            self.chains.forget(gone.node)
            removed += gone.expanded

    def attach(self, namespace: Namespace) -> NamespaceListing:
        """Return the listing of a namespace, the end of its chain if it is in one, with its rows shown below its own
        row.

        It lists the children that have arrived. The parent namespace has a listing.
        """
        parent = self._by_node[self.head(namespace).parent]
        listing = self._by_node.get(namespace)
        if listing is None:
            listing = self._by_node[namespace] = NamespaceListing(namespace, parent)
        if not listing.attached:
            if parent.name_order.position_of(listing.head.ordinal) >= parent.name_count:
                parent.list_new()
            listing.list_new()
            listing.attach()
            listing.arranged = False
        return listing

    def list_new(self) -> None:
        """List the children that the store got since the last call."""
        self.follow()
        grown, self._changes.grown = self._changes.grown, set()
        for node in grown:
            listing = self._by_node.get(node)
            if listing is not None:
                listing.list_new()
            else:
                self.check_chain(node)

    @until_reset
    def open(self, listing: NamespaceListing) -> Slices[None]:
        """Open the namespace of a listing, list all of its children and sort them, in slices."""
        yield from self.store.open(listing.node)
        self.follow()
        yield from self._join_chain(listing)
        listing.list_new()
        if listing.node.opened and not listing.arranged:
            yield from self.arrange(listing)
            listing.arranged = True

    def arrange(self, listing: NamespaceListing) -> Slices[None]:
        """Sort the children of one listing, in slices."""
        node = listing.node
        slicer, is_reversed = Slicer(self.store.clock), self.is_reversed
        orders = yield from orders_of(node, self.sort_order, slicer, self._weigher, is_reversed=is_reversed)
        self.follow()
        if listing.node is node:
            listing.set_orders(*orders)

    def _arrange_at_once(self, listing: NamespaceListing) -> None:
        if len(listing.node.labels) + listing.node.key_total <= SORT_AT_ONCE:
            finish(self.arrange(listing))

    def sort(self, order: Sort, *, is_reversed: bool = False) -> Slices[None]:
        """Sort the children of all listings, in slices; they move to their new places together, at the end."""
        self.sort_order, self.is_reversed = order, is_reversed
        self.follow()
        return self._sort(order, is_reversed)

    @until_reset
    def _sort(self, order: Sort, is_reversed: bool) -> Slices[None]:
        slicer = Slicer(self.store.clock)
        sorted_orders = []
        for listing in list(self._by_node.values()):
            labels, keys = listing.node.labels, listing.node.keys
            orders = yield from orders_of(listing.node, order, slicer, self._weigher, is_reversed=is_reversed)
            sorted_orders.append((listing, labels, keys, orders))
            yield from slicer.pause()
        self.follow()
        for listing, labels, keys, orders in sorted_orders:
            node = listing.node
            is_wanted = self.sort_order is order and self.is_reversed is is_reversed
            if is_wanted and node.labels is labels and (keys is None or node.keys is keys):
                listing.set_orders(*orders)

    def _join_chain(self, listing: NamespaceListing) -> Slices[None]:
        """Let a listing show the children of the end of the chain that its namespace begins or continues."""
        slicer = Slicer(self.store.clock)
        while listing.parent is not None and self._by_node.get(listing.node) is listing:
            child = self.chains.link_below(listing.node)
            if child is None or child in self._by_node or self.store.needs_scan(child):
                return
            del self._by_node[listing.node]
            self.chains.join(listing.node, child)
            self._by_node[child] = listing
            listing.arranged = False
            listing.list_other(child)
            yield from self.store.open(child)
            self.follow()
            listing.list_new()
            yield from slicer.pause()

    def check_chain(self, namespace: Namespace) -> None:
        """Split the chain that contains a namespace where one of it has got a sibling."""
        while (parts := self.chains.check(namespace)) is not None:
            upper, lower = parts
            listing = self._by_node.pop(lower[-1], None)
            if listing is None or listing.parent is None:
                return
            was_attached, parent = listing.attached, listing.parent
            listing.detach()
            if lower[0].ordinal < 0:
                self._forget(listing.expanded)
                continue
            between = self._by_node[upper[-1]] = NamespaceListing(upper[-1], parent)
            between.head = upper[0]
            between.arranged = True
            self._by_node[lower[-1]] = listing
            listing.parent, listing.head = between, lower[0]
            self._set_depths(listing)
            between.attach()  # also where the chain was collapsed: its row stands for the lower part, and stays
            if was_attached:
                listing.attach()

    def _set_depths(self, top: NamespaceListing) -> None:
        below: dict[NamespaceListing | None, list[NamespaceListing]] = {}
        for listing in self._by_node.values():
            below.setdefault(listing.parent, []).append(listing)
        waiting = [top]
        while waiting:
            listing = waiting.pop()
            listing.depth = 0 if listing.parent is None else listing.parent.depth + 1
            waiting += below.get(listing, [])
