"""Fills a namespace whose names were dropped from a scan of its prefix."""

from __future__ import annotations

from collections.abc import Sequence

from rtui.keyspace.namespace import Namespace
from rtui.keyspace.store import NamespaceStore


class Refill:
    """Takes the keys that a targeted scan finds; counts follow what it found.

    From its beginning on, keys that another scan meets under this prefix are known already and not counted again.
    """

    __slots__ = ("_before", "_found", "_node", "_prefix", "_store")

    def __init__(self, store: NamespaceStore, node: Namespace) -> None:
        """Begin to fill `node`; ValueError if it does not need a scan."""
        if not node.dropped or node.children is not None:
            raise ValueError("only a namespace that needs a scan is filled by one")
        self._store = store
        self._node = node
        self._prefix = node.path()
        self._before = node.count
        self._found = 0
        node.dropped = False
        node.passed = 0
        node.refilling = node.sealed = True
        store.begin(node)

    def add(self, keys: Sequence[bytes]) -> None:
        """Keep a batch of full key names; those without the prefix are passed over."""
        length = len(self._prefix)
        suffixes = [key[length:] for key in keys if key.startswith(self._prefix)]
        if not suffixes or not self._under_way():
            return
        self._found += len(suffixes)
        self._store.correct(self._node, max(0, self._found - self._node.count))
        self._store.route(self._node, suffixes)
        self._store.pass_on([self._prefix + suffix for suffix in suffixes])

    def done(self) -> None:
        """The scan has ended: what it found is what there is."""
        if self._under_way():
            self._node.refilling = False
            self._store.correct(self._node, self._found - self._node.count)

    def abandon(self) -> None:
        """The scan was broken off: the namespace needs one again, and has the count it would have without this one."""
        node = self._node
        if self._under_way():
            node.refilling = node.sealed = False
            self._store.forget(node)
            self._store.correct(node, self._before + node.passed - node.count)

    def _under_way(self) -> bool:
        return self._node.refilling and self._node.root is self._store.root
