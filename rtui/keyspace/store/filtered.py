"""The keys of a store whose names contain some bytes, as a store of their own: a tree of matches with counts."""

from __future__ import annotations

from collections.abc import Sequence

from rtui.keyspace.slices import Slicer, Slices, only_while
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import CHUNK_BYTES, Chunk, PackedNames, unpack_inline
from rtui.keyspace.store.split_names import SplitNames
from rtui.keyspace.store.store import NamespaceStore


class FilteredStore(NamespaceStore):
    """The matches of a filter, counted and listed like any keyspace, within the memory budget of the searched store.

    `work` searches the keys that store has, and later keys are matched when they are added. The full name of a key is
    searched, with its namespaces and separators. Names that the store dropped for its memory budget cannot be searched;
    `not_searched` counts them.
    """

    def __init__(self, source: NamespaceStore, needle: bytes, *, ignore_case: bool = False) -> None:
        """With `ignore_case`, ASCII letters match in either case."""
        super().__init__(source.separators, budget_bytes=source.budget_bytes, clock=source.clock)
        self.needle = needle.lower() if ignore_case else needle
        self.ignore_case = ignore_case
        self.not_searched = 0
        """The number of keys whose names were dropped."""
        self._source = source
        self._working = True
        source.follow(self)

    def take(self, keys: Sequence[bytes]) -> None:
        """Add the keys that match; the searched store calls this with its new keys."""
        self._add_matching(keys)
        self.repeats_possible = self.repeats_possible or self._working

    def add_split(self, split: SplitNames) -> None:
        """Add the keys that match, like `add`."""
        found = [key for chunk in split.flat for key in self._matching_in(b"", chunk)]
        for label, inline in zip(split.labels, split.inlines, strict=True):
            found += self._matching([label + name for name in unpack_inline(inline)])
        for label, chunk in split.chunks:
            found += self._matching_in(label, chunk)
        self._add(found)
        self.repeats_possible = self.repeats_possible or self._working

    def reset(self) -> None:
        """Start over with a store that was reset; the searched store calls this."""
        super().reset()
        self.not_searched = 0

    def settle(self) -> Slices[int]:
        """Remove repeats; the searched store calls this after it did."""
        self.repeats_possible = True
        return (yield from super().settle())

    def work(self) -> Slices[None]:
        """Search all keys of the store, in slices; matches can be listed from the first slice on."""
        root = self._source.root
        yield from only_while(lambda: self._source.root is root, self._search_all())
        self._working = False
        yield from super().settle()

    def _search_all(self) -> Slices[None]:
        slicer = Slicer(self._source.clock)
        waiting = [(self._source.root, b"")]
        while waiting:
            node, prefix = waiting.pop()
            unopened = node.children is None
            if unopened and node.dropped:
                self.not_searched += node.count
            elif unopened and isinstance(node.suffixes, bytes):
                self._add_matching([prefix + name for name in unpack_inline(node.suffixes)])
            elif unopened and isinstance(node.suffixes, PackedNames):
                yield from self._search(prefix, node.suffixes, slicer)
            if node.children is None:
                continue
            if unopened:  # It was opened meanwhile, and its names are searched again as listed ones.
                self.repeats_possible = True
            yield from self._source.open(node)
            self.not_searched += node.unlisted
            if node.keys is not None:
                yield from self._search(prefix, node.keys, slicer)
            for batch in node.child_batches():
                for label, child in batch:
                    if isinstance(child, Namespace):
                        waiting.append((child, prefix + label))
                    elif isinstance(child, bytes):
                        self._add_matching([prefix + label + name for name in unpack_inline(child)])
                    else:
                        self.not_searched += child
                yield from slicer.pause()

    def _search(self, prefix: bytes, packed: PackedNames, slicer: Slicer) -> Slices[None]:
        """Search names chunk by chunk."""
        for _, chunk in packed.chunks():
            self._add(self._matching_in(prefix, chunk))
            yield from slicer.pause()

    def _matching_in(self, prefix: bytes, chunk: Chunk) -> list[bytes]:
        """Return the matching keys with this prefix and a name in the chunk."""
        indices = indices_with(self.needle, prefix, chunk, ignore_case=self.ignore_case)
        return [prefix + chunk[index] for index in indices]

    def _matching(self, keys: Sequence[bytes]) -> list[bytes]:
        return [key for key in keys if self.needle in (key.lower() if self.ignore_case else key)]

    def _add(self, matching: list[bytes]) -> None:
        if matching:
            super().take(matching)
        self.complete = self._source.complete

    def _add_matching(self, keys: Sequence[bytes]) -> None:
        self._add(self._matching(keys))


def indices_with(
    needle: bytes, prefix: bytes, chunk: Chunk, *, ignore_case: bool, most: int = CHUNK_BYTES
) -> Sequence[int]:
    """Return the indices of names in a chunk that contain `needle` behind a prefix, at least the first `most` of them.

    They are found in the whole blob, not name by name. A name matches if it contains the needle, or if the needle
    begins in the prefix and the name starts with its rest: `op:us` is found in the names `user` and `us` below the
    prefix `shop:`. With `ignore_case` the needle is in lower case.
    """
    folded = chunk
    if ignore_case:
        prefix, folded = prefix.lower(), chunk.lowered()
    if needle in prefix:
        return range(len(chunk))
    indices = folded.containing(needle, most)
    rests = [needle[cut:] for cut in range(1, len(needle)) if prefix.endswith(needle[:cut])]
    if rests:
        indices = sorted({*indices, *(index for rest in rests for index in folded.starting(rest))})
    return indices
