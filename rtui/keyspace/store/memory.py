"""The memory that names take: where they are kept, how much it is, and how it is given back.

`Memory` puts names at namespaces and keeps an account of about what they take. Beyond a budget it drops the names of
the largest unopened namespaces; their counts stay exact. Once nothing large is left to drop, new names are only
counted. `free_some` takes a tree that a store has replaced apart bit by bit: to free ten million objects at once would
stop everything else for seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter

from rtui.keyspace.store.namespace import Namespace, ShardedDict
from rtui.keyspace.store.packed_names import Chunk, PackedNames, pack_inline, unpack_inline

CHILD_BYTES = 112
"""What a child takes besides its suffixes: its label as an object, a dictionary entry and a place in a list."""

NAMESPACE_BYTES = 200
"""What a child takes in addition when it is a `Namespace` object."""

SHRINK_TO = 0.9
"""When the budget is exceeded, names are dropped until the rest takes this share of it."""


@dataclass(slots=True, eq=False)
class Memory:
    """Keeps names at namespaces, within a budget; beyond it, only counts are kept."""

    budget_bytes: int | None
    """Above this, names are dropped; None for no limit."""
    held_bytes: int = 0
    """About what all names take, with the objects and dictionary entries that they are kept in."""
    dropped: bool = False
    """Whether any name was dropped; counts then include repeats that the store cannot find."""
    full: bool = False
    """Whether nothing is left that could be dropped for the budget."""
    count_only: bool = False
    """Whether new names are only counted at the moment; names that are only moved are kept even when `full`."""
    _large: set[Namespace] = field(default_factory=set)
    """The unopened namespaces with at least one full chunk of suffixes, which are the first to be dropped."""

    def keep_suffixes(self, node: Namespace, suffixes: list[bytes]) -> None:
        """Keep suffixes at an unopened namespace, which has counted them already."""
        if node.dropped:
            return
        if self.count_only:
            self.drop_names(node)
            return
        kept = node.suffixes
        if kept is None:
            inline = pack_inline(suffixes)
            if inline is not None:
                node.suffixes = inline
                self.held_bytes += len(inline)
                return
            kept = node.suffixes = PackedNames()
        elif isinstance(kept, bytes):
            self.held_bytes -= len(kept)
            suffixes = unpack_inline(kept) + suffixes
            kept = node.suffixes = PackedNames()
        before = kept.size_bytes
        kept.extend(suffixes)
        self.held_bytes += kept.size_bytes - before
        if kept.full_chunks:
            self._large.add(node)

    def keep_keys(self, node: Namespace, names: list[bytes] | Chunk) -> None:
        """Keep names of keys directly below a listed namespace; a chunk of them has been kept above before."""
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
        """Drop all that is listed below a namespace; it is an unopened one again, with nothing but its count."""
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
"""About the number of objects freed at a time, which takes a millisecond."""


def free_some(nodes: list[Namespace]) -> None:
    """Free about `FREED_AT_ONCE` of these namespaces and of all below them, which nobody accesses any more."""
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
