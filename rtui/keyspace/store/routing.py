"""Brings suffixes down the tree to the namespaces that keep them, dividing them at listed ones on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from rtui.keyspace.store.memory import CHILD_BYTES, NAMESPACE_BYTES, Memory
from rtui.keyspace.store.namespace import Child, Namespace
from rtui.keyspace.store.packed_names import LONGEST_NAME, ONE, count_of, handful, names_of, with_one
from rtui.keyspace.store.sharded_dict import WIDE, WideDict
from rtui.keyspace.text.segments import Separators

DEEP = 16
"""Below so many levels, suffixes are walked one by one: cutting each anew at each level would be quadratic."""

Group = tuple[bytes, bytes, list[bytes]]
"""What goes to one child: label, separator, suffixes."""


Triple = tuple[bytes, bytes, bytes]
"""A suffix cut at its first separator, as `bytes.partition` does."""


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
            listed = len(node.labels)
            triples = self.separators.split_batch(items, brace_behind=node.brace_behind)
            if self._single is None:
                keys, groups = _grouped(triples)
            elif isinstance(node.children, WideDict) and not self._memory.refusing:
                keys, groups = self._keep_few(node.children, node.labels, self._single, triples)
            else:
                keys, groups = _grouped_by_head(triples, self._single)
            if keys:
                self._memory.keep_keys(node, keys)
            for label, separator, rests in groups:
                below = self._give(node, label, separator, rests)
                if below is not None:
                    waiting.append((below, rests, depth + 1))
            if len(node.labels) > WIDE and isinstance(node.children, dict):
                node.children = WideDict(node.children)
            if keys or len(node.labels) > listed:
                self._grown(node)

    def add_child(self, node: Namespace, label: bytes, separator: bytes) -> Namespace:
        """Append an empty namespace to the children of a listed one."""
        child = Namespace(label, separator, node)
        if node.children is None:
            node.children, node.labels = {}, []
        node.children[label] = child
        node.labels.append(label)
        self._memory.held_bytes += CHILD_BYTES + NAMESPACE_BYTES
        return child

    def _keep_few(
        self, children: WideDict[Child], labels: list[bytes], separator: bytes, triples: Iterable[Triple]
    ) -> tuple[list[bytes], list[Group]]:
        """Keep what can stay in handfuls, without grouping: where children are many, few suffixes share one.

        Returns (keys, groups of what is left).
        """
        keys: list[bytes] = []
        others: defaultdict[bytes, list[bytes]] = defaultdict(list)
        parts, last = children.parts, len(children.parts) - 1
        listed, held = len(labels), 0
        for head, found, rest in triples:
            if not found:
                keys.append(head)
                continue
            label = head + separator
            part = parts[hash(label) & last]
            child = part.get(label)
            if child is None and len(rest) <= LONGEST_NAME:
                part[label] = few = ONE[len(rest)] + rest
                labels.append(label)
                held += len(few)
            elif type(child) is bytes and (more := with_one(child, rest)) is not None:
                part[label] = more
                held += len(more) - len(child)
            else:
                others[label].append(rest)
        self._memory.held_bytes += held + CHILD_BYTES * (len(labels) - listed)
        return keys, [(label, separator, rests) for label, rests in others.items()]

    def _walk(self, top: Namespace, suffix: bytes) -> None:
        """Bring one suffix down any number of levels, cutting it only where it stays."""
        node, start = top, 0
        while True:
            cut = self.separators.cut(suffix, start, brace_behind=node.brace_behind)
            if cut is None:
                self._memory.keep_keys(node, [suffix[start:]])
                break
            label = suffix[start : cut.separator_end]
            child = None if node.children is None else node.children.get(label)
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
        children = node.children
        child = None if children is None else children.get(label)
        if children is None or child is None:
            self._give_new(node, label, separator, rests)
        elif isinstance(child, Namespace):
            if child.sealed:
                _count(node, -len(rests))
                child.passed += len(rests) if child.refilling else 0
                return None
            child.count += len(rests)
            if child.children is not None:
                return child
            self._memory.keep(child, rests)
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


def _grouped_by_head(triples: Iterable[Triple], separator: bytes) -> tuple[list[bytes], list[Group]]:
    """Group what was cut at the only separator there is: (suffixes without one, groups of what follows it)."""
    keys: list[bytes] = []
    by_head: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for head, found, rest in triples:
        if found:
            by_head[head].append(rest)
        else:
            keys.append(head)
    return keys, [(head + separator, separator, rests) for head, rests in by_head.items()]


def _grouped(triples: Iterable[Triple]) -> tuple[list[bytes], list[Group]]:
    """Group what was cut at several separators: (suffixes without one, groups of what follows one)."""
    keys: list[bytes] = []
    by_segment: defaultdict[tuple[bytes, bytes], list[bytes]] = defaultdict(list)
    for head, separator, rest in triples:
        if separator:
            by_segment[head, separator].append(rest)
        else:
            keys.append(head)
    return keys, [(head + separator, separator, rests) for (head, separator), rests in by_segment.items()]


def _count(node: Namespace, more: int) -> None:
    """Change the count of a namespace and of all above it."""
    above: Namespace | None = node
    while above is not None:
        above.count += more
        above = above.parent
