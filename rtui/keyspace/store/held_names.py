"""The names that a store holds, page by page, for whoever searches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import PackedNames, unpack_inline
from rtui.keyspace.store.store import NamespaceStore

PAGE: Final = 256
"""The most names in a page: handling one takes less than a millisecond."""


class HeldNames:
    """Walks once over the names below a namespace; the tree stays unchanged.

    `missing` counts keys whose names were dropped for the memory budget.
    """

    def __init__(self, store: NamespaceStore, below: Namespace | None = None, *, is_direct: bool = False) -> None:
        """`below`: the namespace to walk, else the whole store; `is_direct`: only keys directly in it."""
        self.missing = 0
        """The number of keys whose names were dropped; final after the walk."""
        self._store = store
        self._top = store.root if below is None else below
        self._is_direct = is_direct

    def pages(self) -> Iterator[Sequence[bytes]]:
        """Yield all raw names, in pages of at most PAGE, some of them empty; ends early if the store is reset."""
        root = self._store.root
        waiting: list[tuple[Namespace, bytes]] = [(self._top, self._top.path())]
        while waiting:
            node, prefix = waiting.pop()
            for page in self._below(node, prefix, waiting):
                yield self._store.swapped(page)
                if self._store.root is not root:
                    return

    def _below(self, node: Namespace, prefix: bytes, waiting: list[tuple[Namespace, bytes]]) -> Iterator[list[bytes]]:
        if node.children is None:
            if node.dropped:
                self.missing += node.count
            elif isinstance(node.suffixes, bytes):
                yield from _pages(prefix, unpack_inline(node.suffixes))
            elif isinstance(node.suffixes, PackedNames):
                yield from _packed(prefix, node.suffixes)
            return
        for _ in self._store.open(node):
            yield []
        self.missing += node.unlisted
        if node.keys is not None:
            yield from _packed(prefix, node.keys)
        if self._is_direct:
            return
        for batch in node.child_batches():
            for label, child in batch:
                if isinstance(child, Namespace):
                    waiting.append((child, prefix + label))
                elif isinstance(child, bytes):
                    yield from _pages(prefix + label, unpack_inline(child))
                else:
                    self.missing += child


def _packed(prefix: bytes, packed: PackedNames) -> Iterator[list[bytes]]:
    for _, chunk in list(packed.chunks()):
        for start in range(0, len(chunk), PAGE):
            yield [prefix + name for name in chunk.names(start, min(len(chunk), start + PAGE))]


def _pages(prefix: bytes, names: Sequence[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(names), PAGE):
        yield [prefix + name for name in names[start : start + PAGE]]
