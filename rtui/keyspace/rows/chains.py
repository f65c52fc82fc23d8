"""Chains: namespaces that hold nothing but one other namespace, shown together with it in one row.

With the keys `a:b:c:1` and `a:b:c:2`, three rows would have to be opened one after the other for no information. Once
`a` is opened and found to hold nothing but `b:`, which holds nothing but `c:`, they are one chain: a single row
`a:b:c`. It stands for `c:`, its *end*, and has the place of `a:`, its *head*. Unopened namespaces are not looked into,
so `a` has a row of its own until then. When `a:x` arrives, the chain splits into `a` and, below it, `b:c`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rtui.keyspace.store.namespace import Namespace

MOST_LINKS: Final = 64
"""The most namespaces in a chain; the next one begins another chain below it."""

Parts = tuple[list[Namespace], list[Namespace]]
"""The upper and the lower namespaces of a chain that was split."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Two or more namespaces, each the only child of the one before."""

    members: tuple[Namespace, ...]

    @property
    def head(self) -> Namespace:
        """The first namespace."""
        return self.members[0]

    @property
    def end(self) -> Namespace:
        """The last namespace, whose children are listed."""
        return self.members[-1]

    @cached_property
    def name(self) -> bytes:
        """All segments, with the separators between them."""
        return b"".join([node.label for node in self.members[:-1]]) + self.end.name


class Chains:
    """The chains among the rows of one store."""

    def __init__(self, *, joins: bool = True) -> None:
        """Without `joins` there are no chains: each namespace has a row of its own."""
        self._joins = joins
        self._by_member: dict[Namespace, Chain] = {}

    def of(self, namespace: Namespace) -> Chain | None:
        """Return the chain that contains a namespace, or None."""
        return self._by_member.get(namespace)

    def clear(self) -> None:
        """Forget all chains."""
        self._by_member.clear()

    def link_below(self, namespace: Namespace) -> Namespace | None:
        """Return the only child of an opened namespace that may join its chain; None if it holds more, or the chain is
        full."""
        chain = self.of(namespace)
        is_full = chain is not None and len(chain.members) >= MOST_LINKS
        is_link = self._joins and namespace.opened and len(namespace.labels) == 1 and not namespace.key_total
        return namespace.namespace_at(0) if is_link and not namespace.unlisted and not is_full else None

    def join(self, namespace: Namespace, child: Namespace) -> None:
        """Add `child` to the chain that ends with `namespace`, or begin one."""
        chain = self.of(namespace)
        self._keep((*((namespace,) if chain is None else chain.members), child))

    def check(self, namespace: Namespace) -> Parts | None:
        """Split the chain of a namespace where one of it has got a sibling; return both parts, None if it is intact."""
        chain = self.of(namespace)
        if chain is None:
            return None
        for number, (above, below) in enumerate(zip(chain.members, chain.members[1:], strict=False), 1):
            is_link = len(above.labels) == 1 and not above.key_total and below.ordinal >= 0
            if not is_link:
                upper, lower = chain.members[:number], chain.members[number:]
                self.part(namespace)
                self._keep(upper)
                if below.ordinal >= 0:
                    self._keep(lower)
                return list(upper), list(lower)
        return None

    def part(self, namespace: Namespace) -> None:
        """Forget the chain that contains a namespace."""
        chain = self.of(namespace)
        for member in () if chain is None else chain.members:
            del self._by_member[member]

    def find(self, above: Namespace, prefix: bytes) -> Chain | None:
        """Return a chain directly below a namespace whose name, in lower case, starts with `prefix`, or None."""
        chains = (chain for chain in self._by_member.values() if chain.head.parent is above)
        return next((chain for chain in chains if chain.name.lower().startswith(prefix)), None)

    def _keep(self, members: tuple[Namespace, ...]) -> None:
        if len(members) > 1:
            chain = Chain(members)
            self._by_member.update((member, chain) for member in members)
