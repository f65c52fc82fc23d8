"""The namespaces and key patterns of a keyspace, as a tree of bounded size whose shape does not depend on key order.

Each level of the tree is a segment of the keys. An identifier is replaced by its placeholder, so `user:42:cart` and
`user:97:cart` share the path `user`, `{id}`, `cart`. A name that is no identifier gets a node of its own, and since a
keyspace may have millions of such names, they are limited in two ways:

* A namespace with up to MOST_CHILDREN names keeps them all. One with more is *crowded*: in the end only its heavy names
  remain, those with a hundredth of all keys or bytes, and all others are merged into the pattern `{*}`.
* All nodes together stay within a budget: the lightest are merged into one node for the rest, below their parent.

Which names are heavy is known only when all keys have been seen, and the first names to come are not the heaviest. Say
that `user:<name>` has 10,000 names with one key each and `user:bot` with 600 keys. The first 128 names get a node at
once. Keys of further names wait, up to 4,096 of them (`placement`). When that many wait, their names are weighed: `bot`
is 6 % of what has come, gets a node, and its keys go there; the keys of all other waiting names go to `{*}`. At the end
the 128 names of one key each, which have a node only because they came first, turn out to be light and are merged into
`{*}`, too. The result is `user` with `bot` (600 keys) and `{*}` (10,000), whatever came first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.tally import Buffer, Layout, Tally
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.text.identifiers import DIGITS, LONGEST, MARKS, PLACEHOLDERS, Identifiers
from rtui.keyspace.text.segments import Separators

MOST_CHILDREN: Final = 128
"""A namespace with more names than this keeps those that are heavy; all others become one pattern."""

WORKING_NODES: Final = 2
"""While keys are counted there may be this many times the budget of nodes before the lightest are merged."""

DEEPEST_LEVEL: Final = 32
"""At most so many levels are told apart: nobody lays out more namespaces within each other."""

ANY: Final = b"{*}"
"""The pattern of a namespace with too many names."""

REST: Final = b""
"""The name of the node for what is beyond the budget."""

Name: TypeAlias = tuple[bytes, bytes, NodeKind]
"""What tells siblings apart: segment or pattern, separator, kind. A key and a namespace differ by the separator."""

Weight: TypeAlias = tuple[int, int]
"""Keys, and their bytes as far as they are known."""


class Threshold(NamedTuple):
    """Which names of a crowded namespace keep a node of their own: those that reach one of these bounds."""

    of_all: int
    """A share of all keys, or of the memory of all keys, in 1/10,000."""
    of_parent: int
    """A share of the keys of the namespace, in 1/10,000."""
    least_keys: int
    """A share of the keys of the namespace counts only from this many keys on."""

    def is_reached(self, weight: Weight, parent: Weight, whole: Weight) -> bool:
        """Whether a name of this weight is heavy in a namespace and a keyspace of these weights."""
        keys, size = weight
        return (
            10_000 * keys >= self.of_all * whole[0]
            or (size > 0 and 10_000 * size >= self.of_all * whole[1])
            or (keys >= self.least_keys and 10_000 * keys >= self.of_parent * parent[0])
        )


FINAL: Final = Threshold(100, 200, 4)
"""Which names a finished summary shows."""

INTERIM: Final = Threshold(25, 50, 2)
"""Which names have a node while keys are being counted: lighter ones, too, since they may become heavier."""


class PatternNode:
    """One segment in one place of the tree: what is known of the keys that end here, and the segments behind it."""

    def __init__(self, name: Name, *, likeness: int) -> None:
        self.name, self.separator, self.kind = name
        self.likeness = likeness
        """Which other segments belong here as well: see `rtui.keyspace.text.identifiers`."""
        self.is_crowded = False
        """Whether it has had too many names."""
        self.named = 0
        """How many children have a name of their own."""
        self.children: dict[Name, PatternNode] = {}
        self.tallies: dict[bytes | None, Tally] = {}
        """By type, what has been counted of the keys that end here, or are not followed further."""
        self.buffers: dict[tuple[bytes | None, Layout], Buffer] = {}
        """By type and layout, the keys that wait to be counted in the tallies."""
        self.unplaced: dict[bytes | None, Tally] = {}
        """By type, keys below here that have no node yet; only while a summary is made."""

    @property
    def keys(self) -> int:
        """All keys that have been counted here and below."""
        return sum(tally.keys for tally in self.all_tallies())

    def own_tallies(self) -> Iterator[Tally]:
        """Yield what has been counted of each type here, not below."""
        yield from self.tallies.values()
        yield from self.unplaced.values()

    def walk(self) -> Iterator[PatternNode]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def all_tallies(self) -> Iterator[Tally]:
        """Yield what has been counted of each type, here and below."""
        for node in self.walk():
            yield from node.own_tallies()


MissingNode: TypeAlias = tuple[PatternNode, Name]
"""A node that the tree does not have: its parent and its name."""

_NO_DECISIONS: Final[Mapping[MissingNode, bool]] = {}


class PatternTree:
    """Finds the nodes of keys, and keeps the number of nodes small."""

    def __init__(
        self, separators: Separators, scale: ExpiryScale, *, depth: int | None = None, budget: int = 4096
    ) -> None:
        self.root = PatternNode((b"", b"", NodeKind.LITERAL), likeness=DIGITS | MARKS)
        self.merges = 0
        """Grows when nodes were merged: buffers of before may not be used any more."""
        self.scale = scale
        self.size = 1
        """How many nodes there are."""
        self._separators = separators
        self._single = separators.values[0] if len(separators.values) == 1 else None
        self._identifiers = Identifiers(separators.values)
        self._levels = DEEPEST_LEVEL if depth is None else max(0, min(depth, DEEPEST_LEVEL))
        self._budget = budget

    @property
    def is_over_budget(self) -> bool:
        """Whether there are so many nodes that no name gets one at once any more."""
        return self.size >= WORKING_NODES * self._budget

    def locate(
        self, key: bytes, decisions: Mapping[MissingNode, bool] = _NO_DECISIONS
    ) -> tuple[PatternNode, int, MissingNode | None]:
        """Return the node of a key, and its likeness: which other keys have this node, too, until nodes are merged.

        Nodes are made as long as there is room for them. Where there is none, the third is the node that is missing,
        and the first its parent, unless it is decided already: a missing node that is True in `decisions` is made,
        for one that is False the node of the light names stands in.
        """
        node = self.root
        likeness = DIGITS | MARKS
        segments: list[tuple[bytes, bytes]]
        if self._single is None or b"{" in key:
            segments = [*islice(self._separators.segments(key), self._levels)]
        else:
            names = key.split(self._single, self._levels)
            segments = [(name, self._single) for name in names[:-1]]
            if len(names) <= self._levels:
                segments.append((names[-1], b""))
        for name, separator in segments:
            child = node.children.get((name, separator, NodeKind.LITERAL))
            if child is None:
                child, others, wanted = self._find(node, name, separator)
                if child is None:
                    is_heavy = decisions.get((node, wanted))
                    if is_heavy is None:
                        return node, 0, (node, wanted)
                    child = self._make(node, wanted, likeness=0) if is_heavy else self.light_node(node, wanted)
                likeness &= others
            else:
                likeness &= child.likeness
            node = child
            if node.kind is NodeKind.OTHER:
                break
        return node, likeness, None

    def _find(self, parent: PatternNode, name: bytes, separator: bytes) -> tuple[PatternNode | None, int, Name]:
        """Return the child for a segment that has none under its literal name; None where there is no room for it."""
        if len(name) > LONGEST:
            wanted = (ANY, separator, NodeKind.PATTERN)
            return parent.children.get(wanted) or self._make(parent, wanted, likeness=0), 0, wanted
        pattern, likeness = self._identifiers.form(name)
        kind = NodeKind.LITERAL if pattern is None else NodeKind.PATTERN
        wanted = (name if pattern is None else pattern, separator, kind)
        found = parent.children.get(wanted)
        if found is None:
            is_generic = is_generic_name(wanted)
            if not is_generic and parent.named >= MOST_CHILDREN:
                parent.is_crowded = True
            elif not self.is_over_budget and (is_generic or not parent.is_crowded):
                found = self._make(parent, wanted, likeness=likeness)
        return found, likeness, wanted

    def _make(self, parent: PatternNode, name: Name, *, likeness: int) -> PatternNode:
        made = parent.children[name] = PatternNode(name, likeness=likeness)
        self.size += 1
        if not is_generic_name(name):
            parent.named += 1
            parent.is_crowded = parent.is_crowded or parent.named > MOST_CHILDREN
        return made

    def light_node(self, parent: PatternNode, name: Name) -> PatternNode:
        """Return the child that counts the keys of a light name: `{*}`, or the one for what is beyond the budget."""
        if parent.is_crowded and not is_generic_name(name):
            name = (ANY, name[1], NodeKind.PATTERN)
        else:
            name = (REST, b"", NodeKind.OTHER)
        return parent.children.get(name) or self._make(parent, name, likeness=0)

    def levels(self) -> Iterator[list[PatternNode]]:
        """Yield all nodes level by level; a level is collected when it is asked for, so changes of it count."""
        level = [self.root]
        while level:
            yield level
            level = [child for node in level for child in node.children.values()]

    def clear_unplaced(self) -> None:
        """Forget the tallies of keys without a node."""
        for node in self.root.walk():
            node.unplaced.clear()

    def remove_empty_nodes(self, kept: Container[PatternNode] = ()) -> None:
        """Remove nodes of light names that count nothing, since their keys have got nodes, but none in `kept`."""
        for node in list(self.root.walk()):
            for name, child in list(node.children.items()):
                if _is_light_name(name) and not child.tallies and not child.children and child not in kept:
                    del node.children[name]
                    self.size -= 1

    def merge_light(
        self, parents: Iterable[PatternNode], threshold: Threshold, weights: dict[PatternNode, Weight]
    ) -> list[MissingNode]:
        """Merge the light names of the crowded ones of these namespaces, and return the nodes that are gone now.

        `weights` are of the whole tree as it is, and brought up to date.
        """
        gone: list[MissingNode] = []
        for parent in parents:
            if not parent.is_crowded:
                continue
            light = [
                name
                for name, child in parent.children.items()
                if not is_generic_name(name)
                and not threshold.is_reached(weights[child], weights[parent], weights[self.root])
            ]
            targets = set()
            for name in light:
                child = parent.children.pop(name)
                parent.named -= 1
                target = self.light_node(parent, name)
                self._merge_into(target, child)
                targets.add(target)
            for target in targets:
                weights.update(weigh(target))
            self.merges += bool(light)
            gone += [(parent, name) for name in light]
        return gone

    def trim(self) -> None:
        """Keep the heaviest nodes within the budget, and merge all others into those for the rest of their parents."""
        if self.size <= self._budget:
            return
        weights = weigh(self.root)
        all_keys, all_bytes = (max(1, value) for value in weights[self.root])
        ranked: list[tuple[float, tuple[Name, ...], PatternNode]] = []
        paths: list[tuple[tuple[Name, ...], PatternNode]] = [((), self.root)]
        for path, node in paths:  # grows while it is walked
            if node.kind is not NodeKind.OTHER:
                keys, size = weights[node]
                ranked.append((-max(keys / all_keys, size / all_bytes), path, node))
            paths += [((*path, name), child) for name, child in node.children.items()]
        ranked.sort(key=lambda one: one[:2])
        kept = {node for *_, node in ranked[: self._budget]}
        rest = (REST, b"", NodeKind.OTHER)
        for parent in self.root.walk():
            for name, child in list(parent.children.items()):
                if child not in kept and child.kind is not NodeKind.OTHER:
                    del parent.children[name]
                    parent.named -= not is_generic_name(name)
                    self._merge_into(parent.children.get(rest) or self._make(parent, rest, likeness=0), child)
                    self.merges += 1

    def _merge_into(self, target: PatternNode, node: PatternNode) -> None:
        """Count all that is at and below a node, which has been taken out of the tree, in another one."""
        self.size -= 1
        target.is_crowded = target.is_crowded or node.is_crowded
        for buffer in node.buffers.values():
            buffer.flush()
        for key_type, tally in node.tallies.items():
            target.tallies.setdefault(key_type, Tally(self.scale)).merge(tally)
        for key_type, tally in node.unplaced.items():
            target.unplaced.setdefault(key_type, Tally(self.scale)).merge(tally)
        for name, child in node.children.items():
            if target.kind is NodeKind.OTHER:
                self._merge_into(target, child)
            else:
                same = target.children.get(name) or self._make(target, name, likeness=child.likeness)
                self._merge_into(same, child)


def weigh(node: PatternNode) -> dict[PatternNode, Weight]:
    """Return the weights of a node and of each one below it."""
    weights: dict[PatternNode, Weight] = {}
    for one in reversed(list(node.walk())):
        keys = size = 0
        for tally in one.own_tallies():
            keys += tally.keys
            size += 0 if tally.memory is None else tally.memory.sum
        for child in one.children.values():
            below = weights[child]
            keys += below[0]
            size += below[1]
        weights[one] = keys, size
    return weights


def is_generic_name(name: Name) -> bool:
    """Whether this is one of the few patterns that any namespace has room for."""
    return _is_light_name(name) or (name[2] is NodeKind.PATTERN and name[0] in PLACEHOLDERS)


def _is_light_name(name: Name) -> bool:
    """Whether this is a node that counts the keys of light names."""
    return name[2] is NodeKind.OTHER or (name[2] is NodeKind.PATTERN and name[0] == ANY)
