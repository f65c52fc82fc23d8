"""Routes suffixes down the tree to the namespaces that keep them, splitting them at listed ones on the way.

For a batch of keys, every listed namespace is passed once: its suffixes are split at their first separator, suffixes
without one are its keys, and the others are grouped by child. With `shop:user:1`, `shop:user:2` and `lock`, the root
gets the key `lock` and counts 2 at its child `shop:`. If `shop:` is unopened, it keeps `user:1` and `user:2`; if it is
listed, they are split again there.

`Memory` keeps names at namespaces, and accounts for their approximate size. Beyond a budget it drops the names of the
largest unopened namespaces; their counts stay exact. Once nothing large is left to drop, new names are only counted.

`free_some` takes a replaced tree apart bit by bit: freeing ten million objects at once would stop everything else for
seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from rtui.keyspace.store.namespace import Namespace, ShardedDict
from rtui.keyspace.store.packed_names import (
    INLINE_START,
    MAX_INLINE_BYTES,
    Chunk,
    PackedNames,
    SplitNames,
    count_inline,
    join_inline,
    pack_inline,
    unpack_inline,
)
from rtui.keyspace.text.segments import Separators

BATCH_LEVELS = 16
"""Below this many levels, suffixes are routed one by one: copying the rest of each at every level is quadratic."""


class Router:
    """Splits suffixes by separators and counts them on their way."""

    __slots__ = ("_memory", "_on_grown", "_separators", "_single")

    def __init__(self, separators: Separators, memory: Memory, on_grown: Callable[[Namespace], None]) -> None:
        """`on_grown` is called with every namespace that gets new children or keys."""
        self._separators = separators
        self._memory = memory
        self._on_grown = on_grown
        self._single = separators.values[0] if len(separators.values) == 1 else None

    def route(self, top: Namespace, suffixes: Sequence[bytes] | Chunk, *, are_moved: bool = False) -> None:
        """Route suffixes from the listed namespace `top`, which has counted them already.

        If memory is full they are only counted, unless they `are_moved`, that is, were kept at `top` before.
        """
        self._memory.count_only = self._memory.full and not are_moved
        waiting: list[tuple[Namespace, Sequence[bytes] | Chunk, int]] = [(top, suffixes, 0)]
        while waiting:
            node, found, depth = waiting.pop()
            items = found.names() if isinstance(found, Chunk) else found
            if depth >= BATCH_LEVELS:
                self._route_each(node, items)
                continue
            listed = len(node.labels)
            keys, groups = self._separators.group_batch(items, brace_before=node.brace_before)
            if keys:
                self._memory.keep_keys(node, keys)
            for below, rests in self._add_to_children(node, groups):
                waiting.append((below, rests, depth + 1))
            if keys or len(node.labels) > listed:
                self._on_grown(node)

    def route_split(self, top: Namespace, split: SplitNames) -> None:
        """Route keys that are split already from the root `top`, which has counted them, as `route` does."""
        memory = self._memory
        memory.count_only = memory.full
        listed = len(top.labels)
        for chunk in split.flat:
            memory.keep_keys(top, chunk)
        others = ((label, label[-1:], unpack_inline(inline)) for label, inline in self._keep_inlines(top, split))
        chunks = ((label, label[-1:], chunk) for label, chunk in split.chunks)
        below = [*self._add_to_children(top, others), *self._add_to_children(top, chunks)]
        if split.flat or len(top.labels) > listed:
            self._on_grown(top)
        for child, kept in below:
            self.route(child, kept)

    def add_child(self, node: Namespace, label: bytes, separator: bytes) -> Namespace:
        """Append an empty namespace to the children of a listed one."""
        child = Namespace(label, separator, node)
        node.listed_children()[label] = child
        node.labels.append(label)
        self._memory.held_bytes += CHILD_BYTES + NAMESPACE_BYTES
        return child

    def _keep_inlines(self, top: Namespace, split: SplitNames) -> Iterable[tuple[bytes, bytes]]:
        """Keep inline suffixes inline if possible; return (label, inline suffixes) of the others."""
        if self._single is None or self._memory.count_only:
            return zip(split.labels, split.inlines, strict=True)
        children, labels = top.sharded_children() or top.listed_children(), top.labels
        shards = children.shards if isinstance(children, ShardedDict) else [children]
        last, listed, held = len(shards) - 1, len(labels), 0
        others = []
        for label, inline in zip(split.labels, split.inlines, strict=True):
            shard = shards[hash(label) & last]
            child = shard.get(label)
            if child is None:
                shard[label] = inline
                labels.append(label)
                held += len(inline)
            elif type(child) is bytes and (joined := join_inline(child, inline)) is not None:
                shard[label] = joined
                held += len(joined) - len(child)
            else:
                others.append((label, inline))
        self._memory.held_bytes += held + CHILD_BYTES * (len(labels) - listed)
        return others

    def _route_each(self, top: Namespace, suffixes: Sequence[bytes]) -> None:
        """Route each suffix down any number of levels by itself, copying only the part that is kept."""
        for suffix in suffixes:
            node, start = top, 0
            while (cut := self._separators.cut(suffix, start, brace_before=node.brace_before)) is not None:
                label = suffix[start : cut.separator_end]
                child = node.listed_children().get(label)
                if not isinstance(child, Namespace) or child.children is None or child.own_scan:
                    separator = suffix[cut.separator_start : cut.separator_end]
                    self._add_to_children(node, [(label, separator, [suffix[cut.separator_end :]])])
                    break
                child.count += 1
                node, start = child, cut.separator_end
            else:
                self._memory.keep_keys(node, [suffix[start:]])
            self._on_grown(node)

    def _add_to_children(
        self, node: Namespace, groups: Iterable[tuple[bytes, bytes, list[bytes] | Chunk]]
    ) -> list[tuple[Namespace, list[bytes] | Chunk]]:
        """Count and keep suffixes at children, given with labels and separators.

        Return the listed children with their suffixes, which have to be split further.
        """
        memory, labels = self._memory, node.labels
        children = node.sharded_children() or node.listed_children()
        shards = children.shards if isinstance(children, ShardedDict) else [children]
        last, listed, held = len(shards) - 1, len(labels), 0
        takes_inline = self._single is not None and not memory.count_only
        below: list[tuple[Namespace, list[bytes] | Chunk]] = []
        for group in groups:
            label, _, rests = group
            shard = shards[hash(label) & last]
            child = shard.get(label)
            if child is None and takes_inline and len(rests) == 1 and len(rest := rests[0]) <= MAX_INLINE_BYTES:
                shard[label] = inline = INLINE_START[len(rest)] + rest
                labels.append(label)
                held += len(inline)
            elif isinstance(child, Namespace):
                if child.own_scan:
                    node.add_count(-len(rests))
                    child.skipped += len(rests) if child.refilling else 0
                    continue
                child.count += len(rests)
                if child.children is not None:
                    below.append((child, rests))
                else:
                    memory.keep_suffixes(child, rests)
            else:
                memory.held_bytes += held + CHILD_BYTES * (len(labels) - listed)
                self._add_to_packed_child(node, group)
                listed, held = len(labels), 0
        memory.held_bytes += held + CHILD_BYTES * (len(labels) - listed)
        return below

    def _add_to_packed_child(self, node: Namespace, group: tuple[bytes, bytes, list[bytes] | Chunk]) -> None:
        """Count, and if possible keep, suffixes at a child that is not an object."""
        label, separator, rests = group
        memory, children = self._memory, node.listed_children()
        child = children.get(label)
        kept = child if isinstance(child, bytes) else None
        if isinstance(child, int):
            children[label] = child + len(rests)
        elif memory.count_only:
            memory.dropped = True
            if kept is None:
                node.unlisted += len(rests)
            else:
                memory.held_bytes -= len(kept)
                children[label] = count_inline(kept) + len(rests)
        elif self._single is not None and isinstance(rests, list) and (inline := pack_inline(rests, kept)) is not None:
            children[label] = inline
            memory.held_bytes += len(inline) - len(kept or b"")
            if kept is None:
                node.labels.append(label)
                memory.held_bytes += CHILD_BYTES
        else:
            if child is None:
                made = self.add_child(node, label, separator)
            else:
                made = node.child(label)
                memory.held_bytes += NAMESPACE_BYTES
            made.count += len(rests)
            memory.keep_suffixes(made, rests)


CHILD_BYTES = 112
NAMESPACE_BYTES = 200
"""The approximate size of a child without its suffixes: label object, dictionary entry and list place; and the
additional size of a `Namespace` object."""

SHRINK_TO = 0.9
"""When the budget is exceeded, names are dropped until the rest takes this share of it."""


@dataclass(slots=True, eq=False)
class Memory:
    """Keeps names at namespaces, within a budget; beyond it, only counts are kept."""

    budget_bytes: int | None
    """The size beyond which names are dropped; None for no limit."""
    held_bytes: int = 0
    """The approximate size of all names, with the objects and dictionary entries that hold them."""
    dropped: bool = False
    """Whether any name was dropped; counts then include repeats that the store cannot find."""
    full: bool = False
    """Whether nothing is left to drop for the budget."""
    count_only: bool = False
    """Whether new names are only counted at the moment; moved names are kept even when `full`."""
    _large: set[Namespace] = field(default_factory=set)
    """The unopened namespaces with at least one full chunk of suffixes, which are the first to be dropped."""

    def keep_suffixes(self, node: Namespace, suffixes: list[bytes] | Chunk) -> None:
        """Keep suffixes at an unopened namespace, which has counted them already."""
        if node.dropped:
            return
        if self.count_only:
            self.drop_names(node)
            return
        kept, before = node.suffixes, node.suffix_bytes
        if kept is None and isinstance(suffixes, list) and (inline := pack_inline(suffixes)) is not None:
            node.suffixes = inline
            self.held_bytes += len(inline)
            return
        if not isinstance(kept, PackedNames):
            kept = node.suffixes = PackedNames(unpack_inline(kept or b""))
        if isinstance(suffixes, list):
            kept.extend(suffixes)
        else:
            kept.append(suffixes)
        self.held_bytes += kept.size_bytes - before
        if kept.full_chunks:
            self._large.add(node)

    def keep_keys(self, node: Namespace, names: list[bytes] | Chunk) -> None:
        """Keep names of keys directly below a listed namespace; a chunk was kept above before."""
        if self.count_only:
            node.unlisted += len(names)
            self.dropped = True
            return
        if node.keys is None:
            node.keys = PackedNames()
        before = node.keys.size_bytes
        if isinstance(names, Chunk):
            node.keys.adopt(names)
        else:
            node.keys.extend(names)
        self.held_bytes += node.keys.size_bytes - before

    def take_chunks(self, node: Namespace) -> deque[Chunk]:
        """Take all suffixes from an unopened namespace; the caller subtracts each chunk from `held_bytes` when done."""
        kept, node.suffixes = node.suffixes, None
        self._large.discard(node)
        if isinstance(kept, PackedNames):
            return kept.release()
        if kept is None:
            return deque()
        chunk = Chunk.of(unpack_inline(kept))
        self.held_bytes += chunk.size_bytes - len(kept)
        return deque((chunk,))

    def drop_names(self, node: Namespace) -> None:
        """Drop the suffixes of an unopened namespace; its count stays."""
        self.held_bytes -= node.suffix_bytes
        node.suffixes = None
        self._large.discard(node)
        node.dropped = self.dropped = True

    def drop_subtree(self, top: Namespace) -> None:
        """Drop everything below a namespace; it is an unopened one again, with nothing but its count."""
        waiting = [top]
        while waiting:
            node = waiting.pop()
            self.drop_names(node)
            self.held_bytes -= 0 if node.keys is None else node.keys.size_bytes
            self.held_bytes -= sum(chunk.size_bytes for chunk in node.pending or ())
            children = [] if node.children is None else list(node.children.values())
            node.forget_children()
            self.held_bytes -= CHILD_BYTES * len(children)
            for child in children:
                if isinstance(child, Namespace):
                    self.held_bytes -= NAMESPACE_BYTES
                    waiting.append(child)
                elif isinstance(child, bytes):
                    self.held_bytes -= len(child)

    def enforce_budget(self) -> None:
        """Drop the names of the largest unopened namespaces if more is held than the budget allows."""
        budget = self.budget_bytes
        if budget is None:
            return
        if self.held_bytes <= budget:
            self.full = self.full and self.held_bytes > budget * SHRINK_TO
            return
        while self._large and self.held_bytes > budget * SHRINK_TO:
            self.drop_names(max(self._large, key=attrgetter("suffix_bytes")))
        self.full = self.held_bytes > budget


FREED_AT_ONCE = 8_192
"""The approximate number of objects freed at a time, which takes a millisecond."""


def free_some(nodes: list[Namespace]) -> None:
    """Free about `FREED_AT_ONCE` of these namespaces and everything below them; nobody accesses them any more."""
    freed = 0
    while nodes and freed < FREED_AT_ONCE:
        node = nodes.pop()
        children = node.children
        if isinstance(children, ShardedDict) and children.shards:
            part = children.shards.pop()
        elif isinstance(children, dict):
            part, node.children = children, None
        elif len(node.labels) > FREED_AT_ONCE:
            part = {}
            freed += FREED_AT_ONCE
            del node.labels[-FREED_AT_ONCE:]
        else:
            freed += 1 + len(node.labels)
            node.forget_children()
            node.suffixes = None
            continue
        nodes.append(node)
        nodes += [child for child in part.values() if isinstance(child, Namespace)]
        freed += len(part)
