"""Brings suffixes down the tree to the namespaces that keep them, dividing them at listed ones on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from rtui.keyspace.handful import count_of, handful, names_of
from rtui.keyspace.memory import CHILD_BYTES, NAMESPACE_BYTES, Memory
from rtui.keyspace.namespace import Namespace
from rtui.keyspace.segments import Separators

DEEP = 16
"""Below so many levels, suffixes are walked one by one: cutting each anew at each level would be quadratic."""

Group = tuple[bytes, bytes, list[bytes]]
"""What goes to one child: label, separator, suffixes."""


class Router:
    """Divides suffixes by separators and counts them on their way; what it finds new it reports as grown."""

    __slots__ = ("_grown", "_memory", "_single", "separators")

    def __init__(self, separators: Separators, memory: Memory, grown: Callable[[Namespace], None]) -> None:
        self.separators = separators
        self._memory = memory
        self._grown = grown
        self._single = separators.values[0] if len(separators.values) == 1 else None

    def route(self, top: Namespace, suffixes: Sequence[bytes]) -> None:
        """Bring suffixes, already counted at the listed namespace `top`, to where they are kept."""
        waiting = [(top, suffixes, 0)]
        while waiting:
            node, items, depth = waiting.pop()
            if depth >= DEEP:
                for suffix in items:
                    self._walk(node, suffix)
                continue
            keys, groups = self._divide(items, node.brace_behind)
            if keys:
                self._memory.keep_keys(node, keys)
            listed = len(node.labels)
            for label, separator, rests in groups:
                below = self._give(node, label, separator, rests)
                if below is not None:
                    waiting.append((below, rests, depth + 1))
            if keys or len(node.labels) > listed:
                self._grown(node)

    def add_child(self, node: Namespace, label: bytes, separator: bytes) -> Namespace:
        """Append an empty namespace to the children of a listed one."""
        child = Namespace(label, separator, node)
        children = node.children
        assert children is not None  # noqa: S101 - its caller lists it first
        children[label] = child
        node.labels.append(label)
        self._memory.held_bytes += CHILD_BYTES + NAMESPACE_BYTES
        return child

    def _divide(self, suffixes: Sequence[bytes], brace_behind: bool) -> tuple[list[bytes], Iterable[Group]]:
        """Cut suffixes at their first separator: (those without one, groups of what follows it)."""
        keys: list[bytes] = []
        triples = self.separators.split_batch(suffixes, brace_behind=brace_behind)
        single = self._single
        if single is not None:
            by_head: defaultdict[bytes, list[bytes]] = defaultdict(list)
            for head, separator, rest in triples:
                if separator:
                    by_head[head].append(rest)
                else:
                    keys.append(head)
            return keys, [(head + single, single, rests) for head, rests in by_head.items()]
        by_segment: defaultdict[tuple[bytes, bytes], list[bytes]] = defaultdict(list)
        for head, separator, rest in triples:
            if separator:
                by_segment[head, separator].append(rest)
            else:
                keys.append(head)
        return keys, [(head + separator, separator, rests) for (head, separator), rests in by_segment.items()]

    def _walk(self, top: Namespace, suffix: bytes) -> None:
        """Bring one suffix down any number of levels, cutting it only where it stays."""
        node, start = top, 0
        while True:
            cut = self.separators.cut(suffix, start, brace_behind=node.brace_behind)
            if cut is None:
                self._memory.keep_keys(node, [suffix[start:]])
                break
            label = suffix[start : cut.separator_end]
            child = (node.children or {}).get(label)
            if isinstance(child, Namespace) and child.children is not None and not child.sealed:
                child.count += 1
                node, start = child, cut.separator_end
                continue
            separator = suffix[cut.separator_start : cut.separator_end]
            self._give(node, label, separator, [suffix[cut.separator_end :]])
            break
        self._grown(node)

    def _give(self, node: Namespace, label: bytes, separator: bytes, rests: list[bytes]) -> Namespace | None:
        """Count and keep suffixes at a child; return it if it is listed itself and they have to go further down."""
        children = node.children or {}
        child = children.get(label)
        if isinstance(child, Namespace):
            if child.sealed:
                _count(node, -len(rests))
                child.passed += len(rests) if child.refilling else 0
                return None
            child.count += len(rests)
            if child.children is not None:
                return child
            self._memory.keep(child, rests)
        elif child is None:
            self._give_new(node, label, separator, rests)
        elif isinstance(child, int):
            children[label] = child + len(rests)
        elif self._memory.refusing:
            self._memory.held_bytes -= len(child)
            self._memory.dropped = True
            children[label] = count_of(child) + len(rests)
        else:
            self._give_handful(node, label, child, rests)
        return None

    def _give_new(self, node: Namespace, label: bytes, separator: bytes, rests: list[bytes]) -> None:
        """Keep suffixes at a child that was not there; where there is no memory for its name, only count them."""
        memory = self._memory
        if memory.refusing:
            node.unlisted += len(rests)
            memory.dropped = True
            return
        few = handful(rests) if self._single is not None else None
        if few is None or node.children is None:
            child = self.add_child(node, label, separator)
            child.count = len(rests)
            memory.keep(child, rests)
            return
        node.children[label] = few
        node.labels.append(label)
        memory.held_bytes += CHILD_BYTES + len(few)

    def _give_handful(self, node: Namespace, label: bytes, held: bytes, rests: list[bytes]) -> None:
        """Keep more suffixes at a child that is a handful so far."""
        few = handful(names_of(held) + rests)
        if few is not None and node.children is not None:
            self._memory.held_bytes += len(few) - len(held)
            node.children[label] = few
            return
        child = node.child(label)
        child.count += len(rests)
        self._memory.held_bytes += NAMESPACE_BYTES
        self._memory.keep(child, rests)


def _count(node: Namespace, more: int) -> None:
    """Change the count of a namespace and of all above it."""
    above: Namespace | None = node
    while above is not None:
        above.count += more
        above = above.parent
