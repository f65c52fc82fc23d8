"""Keeps names packed, knows how much memory they take, and drops names for a budget while counts stay."""

from __future__ import annotations

from collections import deque

from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import Chunk, Packed, handful, names_of
from rtui.keyspace.store.sharded_dict import WideDict

CHILD_BYTES = 112
"""What a child takes besides its suffixes: its label as an object, a dictionary entry and a place in a list."""

NAMESPACE_BYTES = 200
"""What a namespace takes more when it is an object, beside its suffixes."""

ROOM = 0.9
"""What is dropped for the budget brings the rest down to this part of it."""


class Memory:
    """Holds names at namespaces; beyond the budget the largest unopened namespaces keep only their count."""

    __slots__ = ("_large", "budget_bytes", "dropped", "full", "held_bytes", "refusing")

    budget_bytes: int | None
    """From so many bytes on, names are dropped."""

    held_bytes: int
    """About what all names take, with what stands around them."""

    dropped: bool
    """Whether any name was dropped."""

    full: bool
    """Whether nothing is left that could be dropped, so that new names are only counted."""

    refusing: bool
    """Whether new names are only counted at the moment; what is only moved is kept even when `full`."""

    def __init__(self, budget_bytes: int | None) -> None:
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self.dropped = self.full = self.refusing = False
        self._large: set[Namespace] = set()

    def keep(self, node: Namespace, suffixes: list[bytes]) -> None:
        """Keep suffixes of an unopened namespace, which counts them already."""
        if node.dropped:
            return
        if self.refusing:
            self.drop(node)
            return
        kept = node.kept
        if kept is None:
            few = handful(suffixes)
            if few is not None:
                node.kept = few
                self.held_bytes += len(few)
                return
            kept = node.kept = Packed()
        elif isinstance(kept, bytes):
            self.held_bytes -= len(kept)
            suffixes = names_of(kept) + suffixes
            kept = node.kept = Packed()
        before = kept.size_bytes
        kept.extend(suffixes)
        self.held_bytes += kept.size_bytes - before
        if kept.full_chunks:
            self._large.add(node)

    def keep_keys(self, node: Namespace, names: list[bytes]) -> None:
        """Keep names of keys directly below a listed namespace."""
        if self.refusing:
            node.unlisted += len(names)
            self.dropped = True
            return
        if node.keys is None:
            node.keys = Packed()
        before = node.keys.size_bytes
        node.keys.extend(names)
        self.held_bytes += node.keys.size_bytes - before

    def keep_chunk(self, node: Namespace, chunk: Chunk) -> None:
        """Keep a whole chunk of names of keys directly below a listed namespace."""
        if node.keys is None:
            node.keys = Packed()
        before = node.keys.size_bytes
        node.keys.adopt(chunk)
        self.held_bytes += node.keys.size_bytes - before

    def release(self, node: Namespace) -> deque[Chunk]:
        """Take from an unopened namespace what it kept; it stays accounted for until each chunk is given back."""
        kept, node.kept = node.kept, None
        self._large.discard(node)
        if isinstance(kept, Packed):
            return kept.release()
        if kept is None:
            return deque()
        chunk = Chunk.of(names_of(kept))
        self.held_bytes += chunk.size_bytes - len(kept)
        return deque((chunk,))

    def drop(self, node: Namespace) -> None:
        """Forget the names that an unopened namespace kept; its count stays."""
        kept, node.kept = node.kept, None
        self._large.discard(node)
        if kept is not None:
            self.held_bytes -= len(kept) if isinstance(kept, bytes) else kept.size_bytes
        node.dropped = self.dropped = True

    def forget_below(self, top: Namespace) -> None:
        """Forget all that is listed below a namespace; it is an unopened one again, with nothing but its count."""
        waiting = [top]
        while waiting:
            node = waiting.pop()
            self.drop(node)
            self.held_bytes -= 0 if node.keys is None else node.keys.size_bytes
            self.held_bytes -= sum(chunk.size_bytes for chunk in node.pending or ())
            children = [] if node.children is None else list(node.children.values())
            node.forget_children()
            for child in children:
                self.held_bytes -= CHILD_BYTES
                if isinstance(child, Namespace):
                    self.held_bytes -= NAMESPACE_BYTES
                    waiting.append(child)
                elif isinstance(child, bytes):
                    self.held_bytes -= len(child)

    def shed(self) -> None:
        """Drop the names of the largest unopened namespaces while more is held than the budget allows."""
        budget = self.budget_bytes
        if budget is None:
            return
        if self.held_bytes <= budget:
            self.full = self.full and self.held_bytes > budget * ROOM
            return
        while self._large and self.held_bytes > budget * ROOM:
            self.drop(max(self._large, key=_kept_bytes))
        self.full = self.held_bytes > budget


def _kept_bytes(node: Namespace) -> int:
    return node.kept.size_bytes if isinstance(node.kept, Packed) else 0


SWEPT = 8_192
"""About so many names are freed at a time, in a millisecond."""


class Waste:
    """Namespaces that nobody needs any more, with all that is below them."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: list[Namespace] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def put(self, node: Namespace) -> None:
        """Have a namespace taken to pieces; it is not to be looked into any more."""
        self._nodes.append(node)

    def sweep(self) -> None:
        """Free some of it."""
        swept = 0
        while self._nodes and swept < SWEPT:
            node = self._nodes.pop()
            children = node.children
            if isinstance(children, WideDict) and children.parts:
                part = children.parts.pop()
                self._nodes.append(node)
            elif isinstance(children, dict):
                part, node.children = children, None
                self._nodes.append(node)
            elif len(node.labels) > SWEPT:
                swept += SWEPT
                del node.labels[-SWEPT:]
                self._nodes.append(node)
                continue
            else:
                swept += 1 + len(node.labels)
                node.forget_children()
                node.kept = None
                continue
            self._nodes += [child for child in part.values() if isinstance(child, Namespace)]
            swept += len(part)
