"""The namespace store: all keys seen so far as a tree of namespaces that is divided only where someone looks.

A keyspace of a hundred million keys has tens of millions of namespaces, of which a user opens a few dozen. So the
store is lazy. With the keys `shop:user:1`, `shop:user:2`, `shop:cart:1` and `lock`:

1. *Add*: every key is split once, at its first separator. The root, listed from the start, gets the key `lock` and the
   namespace `shop:` with the count 3, which keeps the suffixes `user:1`, `user:2` and `cart:1` as packed bytes, see
   `packed_names`. That takes two bytes a key besides its suffix, and about a microsecond; a third of it where the
   compiled engine has split and packed the keys (`split_names`).
2. *Open*: expanding `shop:` divides its suffixes at the next separator. It then has the children `user:` and `cart:`,
   which keep `1`, `2` and `1`. That is done chunk by chunk in slices, so that children can be listed from the first
   slice on, and keys added meanwhile are split down to the new children, see `routing`.
3. *Drop*: beyond a memory budget, the largest unopened namespaces lose their suffixes and keep the count (`routing`).
   Opening one then needs a scan of its prefix. A `Refill` takes the keys of that scan.
4. *Settle*: SCAN may return a key twice. When a scan has ended, repeats are found and removed, from the counts too, see
   `remove_repeats`.

Names that Java has serialised are kept in the form in which they are split, see `segments`: all below a namespace of
their own.

Before any of that, a sample of the keyspace may say which namespaces to expect: they are listed with count 0 and an
estimate. A view registers a `Changes` with `watch` and reads it when it next refreshes; nothing is called back.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from weakref import WeakSet

from rtui.keyspace.slices import Clock, Slicer, Slices, only_while
from rtui.keyspace.store.namespace import Estimated, Namespace
from rtui.keyspace.store.packed_names import PackedNames, SplitNames, pack_inline, unpack_inline
from rtui.keyspace.store.routing import CHILD_BYTES, NAMESPACE_BYTES, Memory, Router, free_some
from rtui.keyspace.text.segments import Segment, Separators, all_swapped

PASS_NAMES = 1 << 22
"""The approximate number of hashes collected in one pass: 32 MiB."""

SET_SIZE = 1 << 14


def remove_inline_repeats(inline: bytes) -> tuple[bytes, int]:
    """Return inline names without repeats, and the number of repeats."""
    names = unpack_inline(inline)
    unique = list(dict.fromkeys(names))
    return (pack_inline(unique) or inline), len(names) - len(unique)


def remove_repeats(packed: PackedNames, slicer: Slicer) -> Slices[tuple[PackedNames, int]]:
    """Run one round: return the names without the repeats that it found, and their number; 0 if none are left.

    SCAN may return a key more than once, and a set of all names to recognise it would take several times the memory of
    the packed names. So repeats are removed afterwards, in rounds of two walks over the names:

    1. The hashes of all names are collected, 8 bytes each, in arrays: `a b a c` gives `h(a) h(b) h(a) h(c)`. The array
       is chosen by the hash itself, so that equal ones meet in one array and only one small set is needed at a time.
       Hashes that occur twice, here `h(a)`, are suspects. Beyond four million names, this is done in several passes,
       each for another part of all hashes, so that they never take more than 32 MiB.
    2. Only names with a suspect hash are compared as bytes. Of each, every occurrence but the first is removed. Chunks
       without repeats are shared with the result, not copied.

    A round handles a limited number of suspects; the caller repeats it until no more repeats are found. Names may be
    appended meanwhile.
    """
    suspects = yield from _repeated_hashes(packed, slicer)
    if not suspects:
        return packed, 0
    result = PackedNames()
    seen: set[bytes] = set()
    read = 0
    for _, chunk in packed.chunks():
        names = chunk.names()
        read += len(names)
        repeats = []
        for index, value in enumerate(map(hash, names)):
            if value in suspects:
                if names[index] in seen:
                    repeats.append(index)
                seen.add(names[index])
        result.adopt(chunk.without(repeats) if repeats else chunk)
        yield from slicer.pause()
    removed = read - len(result)
    result.extend(packed.names_at(range(read, len(packed))))
    return result, removed


def _repeated_hashes(packed: PackedNames, slicer: Slicer) -> Slices[set[int]]:
    """Return hashes that occur twice among the names, at most `SET_SIZE` of them."""
    passes = 1 + len(packed) // PASS_NAMES
    classes = 1 + len(packed) // passes // SET_SIZE
    repeated: set[int] = set()
    for number in range(passes):
        hashes = [array("q") for _ in range(classes)]
        for _, chunk in packed.chunks():
            for value in map(hash, chunk.names()):
                if passes == 1 or value % passes == number:
                    hashes[value // passes % classes].append(value)
            yield from slicer.pause()
        for values in hashes:
            if len(set(values)) < len(values):
                once: set[int] = set()
                twice: set[int] = set()
                for value in values:
                    (twice if value in once else once).add(value)
                repeated.update(islice(twice, SET_SIZE - len(repeated)))
            yield from slicer.pause()
    return repeated


@dataclass(eq=False, slots=True, weakref_slot=True)
class Changes:
    """Changes to the shape of the tree since the reader last emptied this; counts are not included."""

    grown: set[Namespace] = field(default_factory=set)
    """Namespaces that have got more children, behind their earlier ones."""
    reshaped: set[Namespace] = field(default_factory=set)


class NamespaceStore:
    """A tree of namespaces with counts, filled in batches and opened in slices; see the top of this module."""

    def __init__(
        self, separators: Separators | None = None, *, budget_bytes: int | None = None, clock: Clock = perf_counter
    ) -> None:
        """Beyond `budget_bytes`, names are dropped and only counts are kept; `clock` measures slices."""
        self.separators = Separators() if separators is None else separators
        self.revision = 0
        """Raised by every change, counts included."""
        self.clock = clock
        self.budget_bytes = budget_bytes
        self._watchers: WeakSet[Changes] = WeakSet()
        self._followers: WeakSet[NamespaceStore] = WeakSet()
        self.complete = False
        """Whether the counts are totals; set by the scan."""
        self.repeats_possible = False
        """Whether a key may have been added twice since the last `settle`; set by the scan."""
        self._replaced: list[Namespace] = []
        self._start()

    @property
    def keys(self) -> int:
        """The number of distinct keys counted so far; an upper bound with `repeats_possible`."""
        return self.root.count

    def watch(self) -> Changes:
        """Return a record of changes that this store fills for as long as the caller holds it."""
        changes = Changes()
        self._watchers.add(changes)
        return changes

    def follow(self, follower: NamespaceStore) -> None:
        """Pass all keys that are added on to a filter of this store, for as long as the caller holds it."""
        self._followers.add(follower)

    def reset(self) -> None:
        """Forget everything: another scan, or another filter, begins."""
        self._replaced.append(self.root)
        self._start()
        for follower in self._followers:
            follower.reset()
        self.revision += 1

    def add(self, keys: Sequence[bytes]) -> None:
        if keys:
            self.take(self.swapped(keys))

    def swapped(self, names: Sequence[bytes]) -> Sequence[bytes]:
        """Convert raw names to the split form in which they are kept, or back: see `segments`."""
        return all_swapped(names, self.separators.java_separator)

    def take(self, keys: Sequence[bytes]) -> None:
        """Count and keep a batch of keys, given in the form in which they are kept."""
        free_some(self._replaced)
        self.root.count += len(keys)
        self.router.route(self.root, keys)
        self.changed(keys)

    def add_split(self, split: SplitNames) -> None:
        """Count and keep a batch of keys that are split already at the separators of this store."""
        free_some(self._replaced)
        if self.separators.java_separator:
            split, java = split.without_headers()
            self.add(java)
        self.root.count += split.count
        self.router.route_split(self.root, split)
        self.changed()
        for follower in self._followers:
            follower.add_split(split)

    def changed(self, keys: Sequence[bytes] = ()) -> None:
        """Enforce the budget after a change, and pass keys that were kept or counted on to the followers."""
        self.revision += 1
        self.memory.enforce_budget()
        if keys:
            for follower in self._followers:
                follower.take(keys)

    def open(self, node: Namespace) -> Slices[None]:
        """Divide the suffixes of a namespace among its children, in slices; it can be listed from the first slice on.

        A namespace that `needs_scan` stays as it is. Keys may be added meanwhile, and two callers may open it at the
        same time.
        """
        if node.dropped or node.refilling or node.root is not self.root:
            return
        if node.children is None:
            self.begin(node)
        slicer: Slicer | None = None
        while node.pending is not None:
            if node.pending:
                chunk = node.pending.popleft()
                self.memory.held_bytes -= chunk.size_bytes
                if any(separator in chunk.blob for separator in self.separators.values):
                    self.router.route(node, chunk.names(), are_moved=True)
                else:
                    self.memory.count_only = False
                    self.memory.keep_keys(node, chunk)
                    self._grown(node)
            if not node.pending:
                node.pending = None
            self.changed()
            if node.pending is None:
                return
            if slicer is None:
                yield
                slicer = Slicer(self.clock)
            else:
                yield from slicer.pause()
            if node.root is not self.root:
                return

    def needs_scan(self, node: Namespace) -> bool:
        """Whether only a scan of its prefix can list the contents of this namespace; see `Refill`."""
        return node.dropped and node.root is self.root

    def expect(self, path: Sequence[Segment], estimate: Estimated) -> None:
        """Set the estimate of the namespace at `path`, which is listed with count 0 if none of its keys was seen."""
        self._expect(self.root, tuple(path), estimate)
        self.revision += 1

    def drop_estimates(self) -> None:
        """Forget all estimates; namespaces without a seen key are removed."""
        empty: defaultdict[Namespace, set[bytes]] = defaultdict(set)
        for node in self._estimated:
            node.estimate = node.expected = None
            parent = node.parent
            listed = {} if parent is None or parent.children is None else parent.children
            # Its parent may have been dropped meanwhile.
            if parent is not None and node.count == 0 and listed.get(node.label) is node:
                empty[parent].add(node.label)
        self._estimated.clear()
        for parent, labels in empty.items():
            for label in labels:
                if parent.children is not None:
                    del parent.children[label]
            parent.labels = [label for label in parent.labels if label not in labels]
            self.memory.held_bytes -= (CHILD_BYTES + NAMESPACE_BYTES) * len(labels)
            self.reshaped(parent)
        self.revision += 1

    def settle(self) -> Slices[int]:
        """Remove keys that were added twice, in slices; return their number.

        Names dropped for the memory budget cannot be compared, so that counts may include repeats then.
        """
        if not self.repeats_possible:
            return 0
        self.repeats_possible = False
        root = self.root
        removed = yield from only_while(lambda: self.root is root, self._remove_repeats())
        for follower in list(self._followers):
            yield from follower.settle()
        return removed or 0

    def begin(self, node: Namespace) -> None:
        """Make an unopened namespace a listed one; its suffixes are pending."""
        node.children, node.labels = {}, []
        node.pending = self.memory.take_chunks(node) or None
        for path, estimate in (node.expected or {}).items():
            self._expect(node, path, estimate)
        node.expected = None
        self._grown(node)
        self.changed()

    def forget(self, node: Namespace) -> None:
        """Keep nothing of a namespace but its count; it needs a scan then."""
        self.memory.drop_subtree(node)
        self.reshaped(node)

    def correct(self, node: Namespace, more: int, *, held_bytes: int = 0) -> None:
        """Add to the counts of a namespace and of all above it, and to the memory held, unless the store was reset."""
        if node.root is not self.root:
            return
        self.memory.held_bytes += held_bytes
        node.add_count(more)
        self.revision += 1

    def reshaped(self, node: Namespace) -> None:
        self.revision += 1
        for changes in self._watchers:
            changes.reshaped.add(node)

    def _start(self) -> None:
        self.memory = Memory(self.budget_bytes)
        """Accounts for the size of all names, and drops some beyond the budget."""
        self.router = Router(self.separators, self.memory, self._grown)
        """Routes suffixes down the tree; only `Refill` uses it besides the store."""
        single = self.separators.values[0] if len(self.separators.values) == 1 else b""
        self.root = Namespace(b"", single, java_separator=self.separators.java_separator)
        """The top of the tree, always listed; another object after `reset`."""
        self.root.children, self.root.labels = {}, []
        self.complete = self.repeats_possible = False
        self._estimated: set[Namespace] = set()

    def _grown(self, node: Namespace) -> None:
        for changes in self._watchers:
            changes.grown.add(node)

    def _remove_repeats(self) -> Slices[int]:
        """Remove repeats from all names, opening partly listed namespaces; return their number."""
        slicer = Slicer(self.clock)
        waiting = [self.root]
        removed = 0
        while waiting:
            node = waiting.pop()
            if node.children is None:
                if isinstance(node.suffixes, PackedNames):
                    removed += yield from self._remove_from(node, node.suffixes, slicer)
                elif node.suffixes is not None:
                    inline, repeats = remove_inline_repeats(node.suffixes)
                    if repeats:
                        self.correct(node, -repeats, held_bytes=len(inline) - len(node.suffixes))
                        node.suffixes = inline
                        removed += repeats
                if node.children is None:
                    continue
            yield from self.open(node)
            if node.keys is not None:
                removed += yield from self._remove_from(node, node.keys, slicer)
            for batch in node.child_batches():
                for label, child in batch:
                    if isinstance(child, Namespace):
                        waiting.append(child)
                    elif isinstance(child, bytes):
                        inline, repeats = remove_inline_repeats(child)
                        if repeats:
                            node.listed_children()[label] = inline
                            self.correct(node, -repeats, held_bytes=len(inline) - len(child))
                            removed += repeats
                yield from slicer.pause()
        return removed

    def _remove_from(self, node: Namespace, packed: PackedNames, slicer: Slicer) -> Slices[int]:
        """Remove repeats from the suffixes, or the keys, of one namespace; return their number."""
        removed = 0
        while True:
            unique, repeats = yield from remove_repeats(packed, slicer)
            if repeats and node.suffixes is packed:
                node.suffixes = unique
            elif repeats and node.keys is packed:
                node.keys = unique
                self.reshaped(node)
            else:
                return removed
            self.correct(node, -repeats, held_bytes=unique.size_bytes - packed.size_bytes)
            removed += repeats
            packed = unique

    def _expect(self, top: Namespace, path: tuple[Segment, ...], estimate: Estimated) -> None:
        node = top
        for level, (name, separator) in enumerate(path):
            if node.children is None:
                node.expected = node.expected or {}
                node.expected[path[level:]] = estimate
                self._estimated.add(node)
                return
            label = name + separator
            if label in node.children:
                node = node.child(label)
            else:
                self._grown(node)
                node = self.router.add_child(node, label, separator)
                self._estimated.add(node)
        if node is not top:
            node.estimate = estimate
            self._estimated.add(node)


class Refill:
    """Fills a dropped namespace with the keys that a scan of its prefix finds.

    Once it has begun, keys that other scans find with this prefix are not counted again.
    """

    __slots__ = ("_before", "_found", "_node", "_prefix", "_store")

    def __init__(self, store: NamespaceStore, node: Namespace) -> None:
        """Begin to fill `node`; raises ValueError if it does not need a scan."""
        if not node.dropped or node.children is not None:
            raise ValueError("only a namespace that needs a scan is filled by one")
        self._store = store
        self._node = node
        self._prefix = node.path()
        self._before = node.count
        self._found = 0
        node.dropped = False
        node.skipped = 0
        node.refilling = node.own_scan = True
        store.begin(node)

    def add(self, keys: Sequence[bytes]) -> None:
        """Keep a batch of raw key names; names without the prefix are ignored."""
        length, names = len(self._prefix), self._store.swapped(keys)
        suffixes = [key[length:] for key in names if key.startswith(self._prefix)]
        if not suffixes or not self._under_way():
            return
        self._found += len(suffixes)
        self._store.correct(self._node, max(0, self._found - self._node.count))
        self._store.router.route(self._node, suffixes)
        self._store.changed([self._prefix + suffix for suffix in suffixes])

    def done(self) -> None:
        if self._under_way():
            self._node.refilling = False
            self._store.correct(self._node, self._found - self._node.count)

    def abandon(self) -> None:
        """End with the scan incomplete: the namespace needs one again, and its count is as without this one."""
        node = self._node
        if self._under_way():
            node.refilling = node.own_scan = False
            self._store.forget(node)
            self._store.correct(node, self._before + node.skipped - node.count)

    def _under_way(self) -> bool:
        return self._node.refilling and self._node.root is self._store.root
