"""The keys of a store whose names hold some bytes, as a store of their own: a tree of matches with its own counts."""

from __future__ import annotations

from collections.abc import Sequence

from rtui.keyspace.slices import Slicer, Slices, only_while
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import Chunk, Packed, names_of
from rtui.keyspace.store.store import NamespaceStore

CHILDREN = 512
"""So many children are searched before the clock is looked at."""


class Filtered:
    """A view of a store that follows it: `work` searches what is loaded, later keys are matched as they come.

    The full name of a key is searched, its namespaces and separators included. Names that the store dropped for its
    memory budget cannot be searched; there are `not_searched` of them.
    """

    store: NamespaceStore
    """The matches, counted and listed like any keyspace, and bounded in memory like the store they come from."""

    searched: int
    """Keys whose names were looked at."""

    not_searched: int
    """Keys of which only the count is known."""

    def __init__(self, source: NamespaceStore, needle: bytes, *, ignore_case: bool = False) -> None:
        """`ignore_case` speaks of ASCII letters."""
        self.store = NamespaceStore(source.separators, budget_bytes=source.budget_bytes, clock=source.clock)
        self.needle = needle.lower() if ignore_case else needle
        self.ignore_case = ignore_case
        self.searched = self.not_searched = 0
        self._source = source
        self._working = True
        source.follow(self)

    def add(self, keys: Sequence[bytes]) -> None:
        """Take up keys that the store gets; it calls this itself."""
        self.searched += len(keys)
        self._add([key for key in keys if self.needle in (key.lower() if self.ignore_case else key)])
        if self._working:
            self.store.repeats_possible = True

    def reset(self) -> None:
        """Begin anew with a store that forgot everything; it calls this itself."""
        self.store.reset()
        self.searched = self.not_searched = 0

    def settle(self) -> Slices[None]:
        """Remove repeats, when the store does."""
        self.store.repeats_possible = True
        yield from self.store.settle()

    def work(self) -> Slices[None]:
        """Search all that is loaded, in slices; matches can be listed from the first slice on."""
        root = self._source.root
        yield from only_while(lambda: self._source.root is root, self._search_all())
        self._working = False
        yield from self.store.settle()

    def _search_all(self) -> Slices[None]:
        slicer = Slicer(self._source.clock)
        waiting = [(self._source.root, b"")]
        while waiting:
            node, prefix = waiting.pop()
            if node.children is None:
                yield from self._search_unopened(node, prefix, slicer)
                if node.children is None:
                    continue
            yield from self._source.open(node)
            self.not_searched += node.unlisted
            if node.keys is not None:
                yield from self._search(prefix, node.keys, slicer)
            yield from self._search_children(node, prefix, waiting, slicer)

    def _add(self, keys: list[bytes]) -> None:
        self.store.add(keys)
        self.store.complete = self._source.complete

    def _search_unopened(self, node: Namespace, prefix: bytes, slicer: Slicer) -> Slices[None]:
        kept = node.kept
        if node.dropped:
            self.not_searched += node.count
        elif isinstance(kept, bytes):
            self._search_few(prefix, names_of(kept))
        elif kept is not None:
            yield from self._search(prefix, kept, slicer)
            if node.children is not None:
                # It was opened meanwhile, and is searched again as a listed one.
                self.store.repeats_possible = True

    def _search_children(
        self, node: Namespace, prefix: bytes, waiting: list[tuple[Namespace, bytes]], slicer: Slicer
    ) -> Slices[None]:
        start = 0
        while node.children is not None and start < len(node.labels):
            for label in node.labels[start : start + CHILDREN]:
                child = node.children[label]
                if isinstance(child, Namespace):
                    waiting.append((child, prefix + label))
                elif isinstance(child, bytes):
                    self._search_few(prefix + label, names_of(child))
                else:
                    self.not_searched += child
            start += CHILDREN
            if slicer.over():
                yield
                slicer.restart()

    def _search_few(self, prefix: bytes, names: list[bytes]) -> None:
        self.searched += len(names)
        keys = [prefix + name for name in names]
        self._add([key for key in keys if self.needle in (key.lower() if self.ignore_case else key)])

    def _search(self, prefix: bytes, packed: Packed, slicer: Slicer) -> Slices[None]:
        """Search chunk by chunk: in the blob, and for what begins in the prefix and ends in a name."""
        folded = prefix.lower() if self.ignore_case else prefix
        everything = self.needle in folded
        length = len(self.needle)
        rests = [self.needle[cut:] for cut in range(1, length) if folded.endswith(self.needle[:cut])]
        for _, chunk in packed.chunks():
            self.searched += len(chunk)
            names = chunk.names() if everything else [chunk[place] for place in self._matching(chunk, rests)]
            self._add([prefix + name for name in names])
            if slicer.over():
                yield
                slicer.restart()

    def _matching(self, chunk: Chunk, rests: list[bytes]) -> list[int]:
        """The places of the names that hold the needle, or that start with one of its rests."""
        folded = chunk.lowered() if self.ignore_case else chunk
        places = folded.containing(self.needle)
        if not rests:
            return places
        return sorted({*places, *(place for rest in rests for place in folded.starting(rest))})
