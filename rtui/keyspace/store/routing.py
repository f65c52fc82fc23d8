"""Takes suffixes down the tree to the namespaces that keep them, splitting them at listed ones on the way.

For a batch of keys, every listed namespace is passed once: its suffixes are split at their first separator, those
without one are its keys, and the others are grouped by child. With `shop:user:1`, `shop:user:2` and `lock`, the root
gets the key `lock` and counts 2 at its child `shop:`. If `shop:` is unopened, it keeps `user:1` and `user:2`; if it is
listed, they are split again there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from rtui.keyspace.store.memory import CHILD_BYTES, NAMESPACE_BYTES, Memory
from rtui.keyspace.store.namespace import Child, Namespace, ShardedDict
from rtui.keyspace.store.packed_names import (
    INLINE_START,
    MAX_INLINE_BYTES,
    append_inline,
    count_inline,
    pack_inline,
    unpack_inline,
)
from rtui.keyspace.text.segments import Separators

BATCH_LEVELS = 16
"""Below this many levels, suffixes are routed one by one: to copy the rest of each at every level is quadratic."""

ChildSuffixes = tuple[bytes, bytes, list[bytes]]
"""What goes to one child: label, separator, suffixes."""

Triple = tuple[bytes, bytes, bytes]
"""A suffix split at its first separator, as `bytes.partition` does."""


class Router:
    """Splits suffixes by separators and counts them on their way."""

    __slots__ = ("_memory", "_on_grown", "_separators", "_single")

    def __init__(self, separators: Separators, memory: Memory, on_grown: Callable[[Namespace], None]) -> None:
        """`on_grown` is called with every namespace that gets new children or keys."""
        self._separators = separators
        self._memory = memory
        self._on_grown = on_grown
        self._single = separators.values[0] if len(separators.values) == 1 else None

    def route(self, top: Namespace, suffixes: Sequence[bytes], *, are_moved: bool = False) -> None:
        """Keep suffixes below the listed namespace `top`, which has counted them already.

        Where memory is full they are only counted, unless they `are_moved`: kept at `top` before.
        """
        self._memory.count_only = self._memory.full and not are_moved
        waiting = [(top, suffixes, 0)]
        while waiting:
            node, items, depth = waiting.pop()
            if depth >= BATCH_LEVELS:
                self._route_each(node, items)
                continue
            listed, sharded = len(node.labels), node.sharded_children()
            triples = self._separators.split_batch(items, brace_before=node.brace_before)
            if self._single is None:
                keys, groups = _by_segment(triples)
            elif sharded is not None and not self._memory.count_only:
                keys, groups = self._keep_inline(sharded, node.labels, self._single, triples)
            else:
                keys = []
                by_head: defaultdict[bytes, list[bytes]] = defaultdict(list)
                for head, found, rest in triples:
                    if found:
                        by_head[head].append(rest)
                    else:
                        keys.append(head)
                groups = [(head + self._single, self._single, rests) for head, rests in by_head.items()]
            if keys:
                self._memory.keep_keys(node, keys)
            for label, separator, rests in groups:
                below = self._add_to_child(node, label, separator, rests)
                if below is not None:
                    waiting.append((below, rests, depth + 1))
            if keys or len(node.labels) > listed:
                self._on_grown(node)

    def add_child(self, node: Namespace, label: bytes, separator: bytes) -> Namespace:
        """Append an empty namespace to the children of a listed one."""
        child = Namespace(label, separator, node)
        node.listed_children()[label] = child
        node.labels.append(label)
        self._memory.held_bytes += CHILD_BYTES + NAMESPACE_BYTES
        return child

    def _keep_inline(
        self, children: ShardedDict[Child], labels: list[bytes], separator: bytes, triples: Iterable[Triple]
    ) -> tuple[list[bytes], list[ChildSuffixes]]:
        """Keep what can be kept inline, without grouping: where children are many, few suffixes go to the same one.

        Returns (keys, groups of what is left).
        """
        keys: list[bytes] = []
        others: defaultdict[bytes, list[bytes]] = defaultdict(list)
        shards, last = children.shards, len(children.shards) - 1
        listed, held = len(labels), 0
        for head, found, rest in triples:
            if not found:
                keys.append(head)
                continue
            label = head + separator
            shard = shards[hash(label) & last]
            child = shard.get(label)
            if child is None and len(rest) <= MAX_INLINE_BYTES:
                shard[label] = inline = INLINE_START[len(rest)] + rest
                labels.append(label)
                held += len(inline)
            elif type(child) is bytes and (more := append_inline(child, rest)) is not None:
                shard[label] = more
                held += len(more) - len(child)
            else:
                others[label].append(rest)
        self._memory.held_bytes += held + CHILD_BYTES * (len(labels) - listed)
        return keys, [(label, separator, rests) for label, rests in others.items()]

    def _route_each(self, top: Namespace, suffixes: Sequence[bytes]) -> None:
        """Take each suffix down any number of levels by itself, copying only what is kept of it."""
        for suffix in suffixes:
            node, start = top, 0
            while (cut := self._separators.cut(suffix, start, brace_before=node.brace_before)) is not None:
                label = suffix[start : cut.separator_end]
                child = node.listed_children().get(label)
                if not isinstance(child, Namespace) or child.children is None or child.own_scan:
                    separator = suffix[cut.separator_start : cut.separator_end]
                    self._add_to_child(node, label, separator, [suffix[cut.separator_end :]])
                    break
                child.count += 1
                node, start = child, cut.separator_end
            else:
                self._memory.keep_keys(node, [suffix[start:]])
            self._on_grown(node)

    def _add_to_child(self, node: Namespace, label: bytes, separator: bytes, rests: list[bytes]) -> Namespace | None:
        """Count and keep suffixes at a child; return it if it is listed, so that they have to be split further."""
        memory, children = self._memory, node.listed_children()
        child = children.get(label)
        if isinstance(child, Namespace):
            if child.own_scan:
                node.add_count(-len(rests))
                child.skipped += len(rests) if child.refilling else 0
                return None
            child.count += len(rests)
            if child.children is not None:
                return child
            memory.keep_suffixes(child, rests)
        elif isinstance(child, int):
            children[label] = child + len(rests)
        elif memory.count_only:
            memory.dropped = True
            if child is None:
                node.unlisted += len(rests)
            else:
                memory.held_bytes -= len(child)
                children[label] = count_inline(child) + len(rests)
        elif self._single is not None and (inline := pack_inline(unpack_inline(child or b"") + rests)) is not None:
            if child is None:
                node.labels.append(label)
                memory.held_bytes += CHILD_BYTES
            children[label] = inline
            memory.held_bytes += len(inline) - len(child or b"")
        else:
            if child is None:
                below = self.add_child(node, label, separator)
            else:
                below = node.child(label)
                memory.held_bytes += NAMESPACE_BYTES
            below.count += len(rests)
            memory.keep_suffixes(below, rests)
        return None


def _by_segment(triples: Iterable[Triple]) -> tuple[list[bytes], list[ChildSuffixes]]:
    """Group what was split at several separators: (suffixes without one, what goes to each child)."""
    keys: list[bytes] = []
    by_segment: defaultdict[tuple[bytes, bytes], list[bytes]] = defaultdict(list)
    for head, separator, rest in triples:
        if separator:
            by_segment[head, separator].append(rest)
        else:
            keys.append(head)
    return keys, [(head + separator, separator, rests) for (head, separator), rests in by_segment.items()]
