"""The keyspace as seen so far: a tree of namespaces that is divided only where someone opens it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol
from weakref import WeakSet

from rtui.keyspace.slices import Clock, Slicer, Slices, only_while
from rtui.keyspace.store.memory import CHILD_BYTES, NAMESPACE_BYTES, Memory, Waste
from rtui.keyspace.store.namespace import Estimated, Namespace
from rtui.keyspace.store.packed_names import Chunk
from rtui.keyspace.store.repeats import remove_repeats
from rtui.keyspace.store.routing import Router
from rtui.keyspace.text.segments import Segment, Separators


@dataclass(eq=False, slots=True, weakref_slot=True)
class Changes:
    """What has changed in the shape of the tree since its reader last emptied this; counts are not in it."""

    grown: set[Namespace] = field(default_factory=set)
    """Namespaces that have more children, behind those they had."""

    reshaped: set[Namespace] = field(default_factory=set)
    """Namespaces whose children have other ordinals now."""


class Follower(Protocol):
    """What is told of all keys that a store gets."""

    def add(self, keys: Sequence[bytes]) -> None:
        """The store got these keys."""

    def reset(self) -> None:
        """The store forgot everything."""

    def settle(self) -> Slices[None]:
        """The store removed repeats."""


class NamespaceStore:
    """Namespaces with counts, filled in batches; a namespace that nobody opened costs its suffixes as packed bytes."""

    root: Namespace
    """Holds everything; listed from the start, and another object after `reset`."""

    revision: int
    """Raised by every change, counts included."""

    complete: bool
    """Whether the counts are totals: set by whoever scans."""

    repeats_possible: bool
    """Whether a key may have been added twice since the last `settle`: set by whoever scans."""

    def __init__(
        self, separators: Separators | None = None, *, budget_bytes: int | None = None, clock: Clock = perf_counter
    ) -> None:
        """Beyond `budget_bytes`, names are dropped and only counts are kept; `clock` ends slices."""
        self.separators = Separators() if separators is None else separators
        self.revision = 0
        self.clock = clock
        self.budget_bytes = budget_bytes
        self._watchers: WeakSet[Changes] = WeakSet()
        self._followers: WeakSet[Follower] = WeakSet()
        self._waste = Waste()
        self._start()

    @property
    def keys(self) -> int:
        """Distinct keys counted so far; with `repeats_possible`, at most so many."""
        return self.root.count

    @property
    def held_bytes(self) -> int:
        """About what the names kept here take in memory, with what stands around them."""
        return self._memory.held_bytes

    @property
    def dropped(self) -> bool:
        """Whether names were dropped for the memory budget; counts then include repeats that `settle` cannot find."""
        return self._memory.dropped

    @property
    def full(self) -> bool:
        """Whether new names are only counted: nothing is left that could be dropped for them."""
        return self._memory.full

    def watch(self) -> Changes:
        """A record of changes that this store fills for as long as somebody holds it."""
        changes = Changes()
        self._watchers.add(changes)
        return changes

    def follow(self, follower: Follower) -> None:
        """Pass on all keys that come, for as long as somebody holds the follower."""
        self._followers.add(follower)

    def reset(self) -> None:
        """Forget everything: another scan, or another filter, begins."""
        self._waste.put(self.root)
        self._start()
        for follower in self._followers:
            follower.reset()
        self.revision += 1

    def add(self, keys: Sequence[bytes]) -> None:
        """Count and keep a batch of keys."""
        if not keys:
            return
        self._waste.sweep()
        self.root.count += len(keys)
        self.route(self.root, keys)
        self.pass_on(keys)

    def pass_on(self, keys: Sequence[bytes]) -> None:
        """Tell the followers of keys that were kept or counted."""
        for follower in self._followers:
            follower.add(keys)

    def open(self, node: Namespace) -> Slices[None]:
        """Divide what a namespace keeps among its children, in slices; it can be listed from the first slice on.

        One that `needs_scan` stays as it is. Keys may be added meanwhile, and two may drive an opening at a time.
        """
        if node.dropped or node.refilling or node.root is not self.root:
            return
        if node.children is None:
            self.begin(node)
        slicer = Slicer(self.clock, slice_s=0)
        while node.pending is not None:
            if node.pending:
                self._unpack(node, node.pending.popleft())
            if not node.pending:
                node.pending = None
            self._changed()
            if node.pending is not None and slicer.over():
                yield
                if node.root is not self.root:
                    return
                slicer = Slicer(self.clock)

    def needs_scan(self, node: Namespace) -> bool:
        """Whether only a scan of its prefix can tell what is in this namespace; see `Refill`."""
        return node.dropped and node.root is self.root

    def is_exact(self, node: Namespace) -> bool:
        """Whether the count of a namespace is a total, not just what has been seen or divided so far."""
        return node.is_exact(complete=self.complete)

    def expect(self, path: Sequence[Segment], estimate: Estimated) -> None:
        """Say what a sample knows of the namespace at `path`; it appears with count 0 if no key of it was seen yet."""
        self._expect(self.root, tuple(path), estimate)
        self.revision += 1

    def drop_estimates(self) -> None:
        """Forget what samples said: what was only expected, and of which no key was seen, disappears."""
        empty: defaultdict[Namespace, set[bytes]] = defaultdict(set)
        for node in self._estimated:
            node.estimate = node.expected = None
            parent = node.parent
            listed = {} if parent is None or parent.children is None else parent.children
            if parent is not None and node.count == 0 and listed.get(node.label) is node:  # its parent may be forgotten
                empty[parent].add(node.label)
        self._estimated.clear()
        for parent, labels in empty.items():
            for label in labels:
                if parent.children is not None:
                    del parent.children[label]
            parent.labels = [label for label in parent.labels if label not in labels]
            self._memory.held_bytes -= (CHILD_BYTES + NAMESPACE_BYTES) * len(labels)
            self.reshaped(parent)
        self.revision += 1

    def settle(self) -> Slices[int]:
        """Remove keys that were added twice, in slices; returns how many there were.

        Names dropped for the memory budget cannot be compared: where `dropped`, counts may still have repeats.
        """
        if not self.repeats_possible:
            return 0
        self.repeats_possible = False
        root = self.root
        removed = yield from only_while(lambda: self.root is root, remove_repeats(self))
        for follower in list(self._followers):
            yield from follower.settle()
        return removed or 0

    def find(self, path: Iterable[Segment]) -> Namespace | None:
        """The namespace at this path, if it is listed."""
        node = self.root
        for name, separator in path:
            if node.children is None or name + separator not in node.children:
                return None
            node = node.child(name + separator)
        return node

    def route(self, top: Namespace, suffixes: Sequence[bytes]) -> None:
        """Keep suffixes below a listed namespace that counts them already."""
        self._memory.refusing = self._memory.full
        self._router.route(top, suffixes)
        self._changed()

    def begin(self, node: Namespace) -> None:
        """Make an unopened namespace a listed one; what it kept is pending."""
        node.children, node.labels = {}, []
        chunks = deque(self._memory.release(node))
        node.pending = chunks or None
        for path, estimate in (node.expected or {}).items():
            self._expect(node, path, estimate)
        node.expected = None
        self._grown(node)
        self._changed()

    def forget(self, node: Namespace) -> None:
        """Keep nothing of a namespace but its count; it needs a scan then."""
        self._memory.forget_below(node)
        self.reshaped(node)

    def correct(self, node: Namespace, more: int, *, held_bytes: int = 0) -> None:
        """Change the count of a namespace and of all above it, and what they hold; nothing if it was reset away."""
        if node.root is not self.root:
            return
        self._memory.held_bytes += held_bytes
        above: Namespace | None = node
        while above is not None:
            above.count += more
            above = above.parent
        self.revision += 1

    def reshaped(self, node: Namespace) -> None:
        """Tell the watchers that the children of this namespace have other ordinals now."""
        self.revision += 1
        for changes in self._watchers:
            changes.reshaped.add(node)

    def _start(self) -> None:
        self._memory = Memory(self.budget_bytes)
        self._router = Router(self.separators, self._memory, self._grown)
        single = self.separators.values[0] if len(self.separators.values) == 1 else b""
        self.root = Namespace(b"", single)
        self.root.children, self.root.labels = {}, []
        self.root.brace_behind = False
        self.complete = self.repeats_possible = False
        self._estimated: set[Namespace] = set()

    def _changed(self) -> None:
        self.revision += 1
        self._memory.shed()

    def _grown(self, node: Namespace) -> None:
        for changes in self._watchers:
            changes.grown.add(node)

    def _unpack(self, node: Namespace, chunk: Chunk) -> None:
        """Divide one chunk of what a namespace kept; without a separator in it, it becomes a chunk of keys as it is."""
        self._memory.held_bytes -= chunk.size_bytes
        self._memory.refusing = False
        if any(separator in chunk.blob for separator in self.separators.values):
            self._router.route(node, chunk.names())
        else:
            self._memory.keep_chunk(node, chunk)
            self._grown(node)

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
                node = self._router.add_child(node, label, separator)
                self._estimated.add(node)
        if node is not top:
            node.estimate = estimate
            self._estimated.add(node)


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
