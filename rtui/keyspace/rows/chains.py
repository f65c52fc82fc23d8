"""Chains: namespaces that hold nothing but one other namespace, shown with that in one row.

With the keys `a:b:c:1` and `a:b:c:2`, three rows that say the same would be opened one after the other. Once `a` is
opened and found to hold nothing but `b:`, which holds nothing but `c:`, they are one chain: a single row `a:b:c`. It
stands for `c:`, its *end*, and has the place of `a:`, its *head*. What is not opened is not looked into, so `a` is a
row of its own until then. When `a:x` arrives, the chain parts into `a` and, below it, `b:c`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rtui.keyspace.store.namespace import Namespace

MOST_LINKS: Final = 64
"""A chain has no more namespaces than this; what follows is another one below it."""

Parts = tuple[list[Namespace], list[Namespace]]
"""The upper and the lower namespaces of a chain that was parted."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Two or more namespaces, each the only one in the one before."""

    members: tuple[Namespace, ...]

    @property
    def head(self) -> Namespace:
        """The first one."""
        return self.members[0]

    @property
    def end(self) -> Namespace:
        """The last one, whose children are listed."""
        return self.members[-1]

    @cached_property
    def name(self) -> bytes:
        """All segments, with the separators between them."""
        return b"".join([node.label for node in self.members[:-1]]) + self.end.name


class Chains:
    """The chains of the rows of one store."""

    def __init__(self, *, joins: bool = True) -> None:
        """Without `joins` none begins: each namespace has a row of its own."""
        self._joins = joins
        self._by_member: dict[Namespace, Chain] = {}

    def of(self, namespace: Namespace) -> Chain | None:
        """Return the chain that a namespace is in, None if it is in none."""
        return self._by_member.get(namespace)

    def clear(self) -> None:
        """Forget all."""
        self._by_member.clear()

    def link_below(self, namespace: Namespace) -> Namespace | None:
        """Return the namespace that is all that an opened one holds, None if it holds more or the chain is long."""
        chain = self.of(namespace)
        is_full = chain is not None and len(chain.members) >= MOST_LINKS
        is_link = self._joins and namespace.opened and len(namespace.labels) == 1 and not namespace.key_total
        return namespace.namespace_at(0) if is_link and not namespace.unlisted and not is_full else None

    def join(self, namespace: Namespace, child: Namespace) -> None:
        """Add `child` to the chain that ends with a namespace, or begin one."""
        chain = self.of(namespace)
        self._keep((*((namespace,) if chain is None else chain.members), child))

    def check(self, namespace: Namespace) -> Parts | None:
        """Part the chain of a namespace where one in it is not all that the one before holds; None: it holds."""
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
        """Forget the chain that a namespace is in."""
        chain = self.of(namespace)
        for member in () if chain is None else chain.members:
            del self._by_member[member]

    def find(self, above: Namespace, prefix: bytes) -> Chain | None:
        """Return a chain directly below a namespace whose name, in small letters, starts with `prefix`, or None."""
        chains = (chain for chain in self._by_member.values() if chain.head.parent is above)
        return next((chain for chain in chains if chain.name.lower().startswith(prefix)), None)

    def _keep(self, members: tuple[Namespace, ...]) -> None:
        if len(members) > 1:
            chain = Chain(members)
            self._by_member.update((member, chain) for member in members)
