"""The namespaces and keys of a store whose names best match a typed text, out of millions of names.

With the keys `shop:user:1`, `shop:user:2` and `shop:bus`, the text `us` finds the namespace `shop:user:` and the key
`shop:bus`, and after them the keys in that namespace. A namespace is found only if the text is in its own name, not
just in the name of one around it. Unopened namespaces are found, too, though they exist only as a part of packed names.

The names are searched chunk by chunk, first for the text itself, which is found in whole chunks at once. Only the first
`PER_CHUNK` matches of each chunk are rated: `s` is in every name, and the first fifty of those are as good as any. If
too few names contain the text, a second walk looks for its letters in order, name by name.

`FilteredStore` has all keys whose names contain some bytes, as a tree with counts. `HeldNames` gives the names of a
store or a namespace, page by page, to other searches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Final

from rtui.keyspace.slices import Slicer, Slices, only_while
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import CHUNK_BYTES, Chunk, PackedNames, SplitNames, unpack_inline
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.matching import Match, TextMatcher

MOST_FOUND: Final = 50

PER_CHUNK: Final = 64
"""The most matches rated in a chunk of some two thousand names."""

SLICE_S: Final = 0.0015
"""The length of a slice in seconds: half as long as elsewhere, since somebody is typing."""

MatchingIn = Callable[[bytes, Chunk], Iterable[bytes]]
"""Returns the matching names with this prefix in this chunk."""


class NameSearch:
    """Searches the current names of a store; names that arrive during the search may be missed."""

    def __init__(self, store: NamespaceStore, text: bytes) -> None:
        """`text` is not empty."""
        self.matcher = TextMatcher(text)
        self.not_searched = 0
        """The number of keys whose names were dropped."""
        self._store = store
        self._namespaces: dict[bytes, Match] = {}
        self._keys: dict[bytes, Match] = {}
        self._last = b""
        """The last namespace found, which neighbouring names share."""

    @property
    def namespaces(self) -> list[tuple[Match, bytes]]:
        """The prefixes of the best matching namespaces so far, the best first."""
        return _best(self._namespaces)

    @property
    def keys(self) -> list[tuple[Match, bytes]]:
        """The raw names of the best matching keys so far, the best first."""
        return [(match, self._store.swapped([key])[0]) for match, key in _best(self._keys)]

    def work(self) -> Slices[None]:
        """Search, in slices; ends early if the store is reset."""
        root = self._store.root
        yield from only_while(lambda: self._store.root is root, self._search())

    def _search(self) -> Slices[None]:
        yield from self._walk(self._containing, in_order=False)
        if len(self._namespaces) + len(self._keys) < MOST_FOUND and len(self.matcher.text) > 1:
            self.not_searched = 0
            yield from self._walk(self._in_order, in_order=True)

    def _walk(self, matching_in: MatchingIn, *, in_order: bool) -> Slices[None]:
        slicer = Slicer(self._store.clock, SLICE_S)
        waiting: deque[tuple[Namespace, bytes]] = deque([(self._store.root, b"")])
        while waiting:
            node, prefix = waiting.popleft()
            yield from slicer.pause()
            if node.children is None:
                if node.dropped:
                    self.not_searched += node.count
                elif isinstance(node.suffixes, bytes):
                    self._rate([prefix + name for name in unpack_inline(node.suffixes)], in_order=in_order)
                elif isinstance(node.suffixes, PackedNames):
                    yield from self._search_packed(prefix, node.suffixes, matching_in, slicer, in_order=in_order)
                continue
            yield from self._store.open(node)
            self.not_searched += node.unlisted
            is_inside = self.matcher.match(prefix, in_order=in_order) is not None
            if node.keys is not None:
                yield from self._search_packed(prefix, node.keys, matching_in, slicer, in_order=in_order)
            for batch in node.child_batches():
                for label, child in batch:
                    if not is_inside:
                        self._rate_namespace(prefix + label, in_order=in_order)
                    if isinstance(child, Namespace):
                        waiting.append((child, prefix + label))
                    elif isinstance(child, bytes):
                        self._rate([prefix + label + name for name in unpack_inline(child)], in_order=in_order)
                    else:
                        self.not_searched += child
                yield from slicer.pause()

    def _search_packed(
        self, prefix: bytes, packed: PackedNames, matching_in: MatchingIn, slicer: Slicer, *, in_order: bool
    ) -> Slices[None]:
        for _, chunk in packed.chunks():
            self._rate(matching_in(prefix, chunk), in_order=in_order)
            yield from slicer.pause()

    def _containing(self, prefix: bytes, chunk: Chunk) -> Iterable[bytes]:
        matcher = self.matcher
        indices = indices_with(matcher.text, prefix, chunk, ignore_case=matcher.ignores_case, most=PER_CHUNK)
        return [prefix + chunk[index] for index in indices[:PER_CHUNK]]

    def _in_order(self, prefix: bytes, chunk: Chunk) -> Iterable[bytes]:
        names: Sequence[bytes] = chunk.names()
        return self.matcher.with_letters([prefix + name for name in names] if prefix else names)[:PER_CHUNK]

    def _rate(self, keys: Iterable[bytes], *, in_order: bool) -> None:
        """Rate keys, and the namespaces in their names; keep matches."""
        for key in keys:
            found = self.matcher.match(key, in_order=in_order)
            if found is None:
                continue
            _keep(self._keys, key, found)
            if not self._last or not key.startswith(self._last):
                start = 0
                brace_before = False
                while (cut := self._store.separators.cut(key, start, brace_before=brace_before)) is not None:
                    brace_before = brace_before or key.find(b"{", start, cut.separator_end) >= 0
                    start = cut.separator_end
                    if self._rate_namespace(key[:start], in_order=in_order):
                        break

    def _rate_namespace(self, prefix: bytes, *, in_order: bool) -> bool:
        """Rate a namespace and keep it if its name matches; return whether it does."""
        found = self.matcher.match(prefix, in_order=in_order)
        if found is None:
            return False
        self._last = prefix
        _keep(self._namespaces, prefix, found)
        return True


def _keep(found: dict[bytes, Match], name: bytes, match: Match) -> None:
    found[name] = match
    if len(found) > 8 * MOST_FOUND:
        best = _best(found)
        found.clear()
        found.update((name, match) for match, name in best)


def _best(found: dict[bytes, Match]) -> list[tuple[Match, bytes]]:
    return nsmallest(MOST_FOUND, ((match, name) for name, match in found.items()))


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


class FilteredStore(NamespaceStore):
    """The matches of a filter, counted and listed like any keyspace, within the memory budget of the searched store.

    `work` searches the keys that store has, and later keys are matched when they are added. The full name of a key is
    searched, with its namespaces and separators. Names that the store dropped for its memory budget cannot be searched;
    `not_searched` counts them.

    This finds what a query of one text finds (`rtui.analysis.query`), by a search of whole packed chunks instead of
    single names, in slices that let the interface paint while somebody types.
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
        for _, chunk in packed.chunks():
            self._add(self._matching_in(prefix, chunk))
            yield from slicer.pause()

    def _matching_in(self, prefix: bytes, chunk: Chunk) -> list[bytes]:
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
