"""The tree of patterns in a report: light names merged, at most a budget of nodes, nothing counted twice.

While keys are counted the tree has far more nodes than anybody wants to read. A `FoldedNode` stands for each of them in
a report, and they are merged level by level from the root. In each namespace, keys and namespaces below it are judged
apart, and before the level below is looked at, so every name is judged by the weights of all keys, and the names below
a pattern by the weights of all names merged into it:

* More than MOST_CHILDREN namespaces that differ in their numbers only, such as `shard_7:`, become `shard_<n>:`.
* If there still are more than MOST_CHILDREN names, they become one pattern: `<id>` where the number of different names
  grows with the keys, `<*>` where it does not, or where they are a thousand words at most. Names whose hash tag holds
  a separator become `{<**>}` or `<**>`.
* A name that holds a hundredth of all keys or of all bytes is never merged, nor one with a fiftieth of its namespace.

At last the heaviest nodes within the budget stay, and all others are merged into those for the rest of their parents;
but keys that end in a separator, such as `app:`, stay beside the rest of `app:`.

Different names of a pattern are counted in bounded memory, whatever their order: the smallest hashes stand for all
(KMV; Bar-Yossef et al., "Counting distinct elements in a data stream", 2002). Hashes are as good as drawn at random, so
the 256th smallest of 50,000 different ones lies at about 256/50,000 of their range; that tells how many there are, to
within an eighth nineteen times in twenty. Up to 255 names the count is exact. The same name has the same hash, so names
that come again change nothing, and two sets are merged by putting their hashes together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from math import sqrt
from operator import itemgetter
from typing import Final, NamedTuple

from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.report.document import NodeKind
from rtui.analysis.report.figures import Sketch
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.text.identifiers import ANY
from rtui.table.key_count import Example, best_examples
from rtui.table.pattern_nodes import (
    MOST_CHILDREN,
    MOST_HASHES,
    MOST_NUMBERED,
    MOST_NUMBERED_KEYS,
    RANGE,
    REST,
    Name,
    PatternNodes,
    is_generic,
)

_DEVIATIONS: Final = 1.96
"""Standard deviations on either side that hold 95 % of all estimates."""


class Distinct:
    """The number of different hashes."""

    __slots__ = ("_hashes",)

    def __init__(self, hashes: Iterable[int] = ()) -> None:
        self._hashes = {*hashes}
        """The smallest of them, and some others."""

    @property
    def hashes(self) -> set[int]:
        """The smallest of them, at most MOST_HASHES."""
        if len(self._hashes) > MOST_HASHES:
            self._hashes = {*sorted(self._hashes)[:MOST_HASHES]}
        return self._hashes

    def add(self, hashes: Iterable[int]) -> None:
        self._hashes.update(hashes)
        if len(self._hashes) > 4 * MOST_HASHES:  # choosing the smallest ones each time would be slow
            self._hashes = self.hashes

    def count(self) -> int | Estimate:
        """Return the number of different names: exact, or an estimate with its 95 % interval."""
        smallest = self.hashes
        if len(smallest) < MOST_HASHES:
            return len(smallest)
        value = (MOST_HASHES - 1) * RANGE / (max(smallest) + 1)
        spread = _DEVIATIONS / sqrt(MOST_HASHES - 2)
        return Estimate(round(value * (1 - spread)), round(value), round(value * (1 + spread)))

    def coded(self) -> float:
        """Return the share of names that look like codes rather than words."""
        smallest = self.hashes
        return sum(one & 1 for one in smallest) / max(1, len(smallest))


ID: Final = b"<id>"
"""The pattern of names that are as good as identifiers, since their number grows with the keys."""

KEYS_OF_A_NAME: Final = 64
"""Most keys for each name at which names are as good as identifiers."""

MOST_WORDS: Final = 1_024
"""Fewer names are words that someone chose, unless they look like codes."""

EMPTY_KEY: Final[Name] = b"", b"", NodeKind.LITERAL
"""The name of keys that end in a separator."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The bounds above which a name of a crowded namespace keeps a node of its own; one of them is enough."""

    of_all: int
    """A share of all keys, or of the memory of all keys, in 1/10,000."""
    of_parent: int
    """A share of the keys of the namespace, in 1/10,000."""
    least_keys: int
    """A share of the keys of the namespace counts only from this many keys on."""

    def is_reached(self, name: FoldedNode, parent: FoldedNode, whole: FoldedNode) -> bool:
        """Whether a name is heavy in a namespace and a keyspace."""
        keys, size = name.keys, name.bytes
        return (
            10_000 * keys >= self.of_all * whole.keys
            or (size > 0 and 10_000 * size >= self.of_all * whole.bytes)
            or (keys >= self.least_keys and 10_000 * keys >= self.of_parent * parent.keys)
        )


FINAL: Final = Threshold(100, 200, 4)
"""Which names a finished summary shows."""


class StringLengths(NamedTuple):
    """Sums over the lengths of sampled strings, which stand for the lengths of others."""

    keys: int
    sum: int
    """Of their lengths."""
    long_keys: int
    """Of more than MOST_SHORT bytes."""
    tiny_keys: int
    """Of at most MOST_TINY bytes."""
    tiny_ttl: tuple[int, ...]
    """Tiny strings whose time to live is known, by TTL_EDGES_MS."""


@dataclass(frozen=True, slots=True)
class TtlTally:
    """Times to live of a set of keys."""

    known_keys: int
    no_ttl_keys: int
    no_ttl_memory_bytes: int
    """Bytes of the keys that do not expire, as far as their memory is known."""
    no_ttl_squares: int
    """The sum of the squares of these sizes."""
    no_ttl_largest: tuple[float, ...]
    """The largest of these sizes, descending, at most MOST_LARGE of them."""
    bins: tuple[int, ...]
    soonest_ms: int | None
    """When the first key expires, in milliseconds since the epoch."""
    range_ms: tuple[int, int] | None
    """The shortest and the longest remaining time to live of expiring keys, when they were asked."""


@dataclass(frozen=True, slots=True)
class Tally:
    """All that is kept of a set of keys; each part is None as long as its fact is not known of any key."""

    keys: int = 0
    memory: Sketch | None = None
    """Bytes of the keys whose memory is known."""
    ttl: TtlTally | None = None
    idle: tuple[int, ...] | None = None
    frequency: tuple[int, ...] | None = None
    strings: StringLengths | None = None


class FoldedNode:
    """A namespace or pattern of a report, with the sums of the keys at and below it."""

    __slots__ = (
        *("bytes", "children", "distinct", "examples", "has_lost", "holds_any_name", "keys", "kind", "name"),
        *("name_hash", "numbered", "numbers", "separator"),
        *("expiring", "is_alike", "own_keys", "tally", "types"),
    )

    def __init__(self, name: Name, number: int | None = None) -> None:
        """`number` is that of the node of the pattern tree that it stands for."""
        self.name, self.separator, self.kind = name
        self.has_lost = [False, False]
        """Whether keys or namespaces below it were merged while keys were counted."""
        self.distinct = Distinct() if self.kind is NodeKind.PATTERN else None
        """How many different segments a pattern stands for."""
        self.name_hash = 0
        """The hash of the name among these."""
        self.holds_any_name = False
        """Whether this is `<id>`, and names are in it that are no identifiers by their form."""
        self.examples: list[Example] = []
        self.numbered: Name | None = None
        """The pattern of names that differ in their numbers only, such as `page_<n>`; None for a name without a number.
        """
        self.keys = 0
        self.bytes = 0
        """Their bytes, as far as they are known."""
        self.children: dict[Name, FoldedNode] = {}
        self.numbers = [] if number is None else [number]
        """The nodes of the pattern tree that were merged into it."""
        self.tally: Tally
        """The sums of all keys here and below; this and the following once the tree is summed."""
        self.types: Counter[bytes | None]
        """How many of them are of which type, under None for those whose type is not known."""
        self.own_keys = 0
        """Keys here, not below."""
        self.expiring = 0
        self.is_alike = False
        """Whether it adds up to the same as its only child."""

    @property
    def hashes(self) -> set[int]:
        return {self.name_hash} if self.distinct is None else self.distinct.hashes

    def rename(self, name: Name) -> None:
        """Give it another name; it must be the only node with that name."""
        if name != (self.name, self.separator, self.kind):
            self.distinct, self.numbered = Distinct(self.hashes), None
            self.name, self.separator, self.kind = name

    def named(self, *, is_space: bool) -> list[Name]:
        return [name for name in self.children if bool(name[1]) is is_space and not is_generic(name)]

    @property
    def below(self) -> list[FoldedNode]:
        return list(self.children.values())


def merge_light(root: FoldedNode, patterns: PatternNodes, budget: int, slicer: Slicer) -> Slices[None]:
    """Merge light nodes, down to at most `budget` nodes besides rest nodes."""
    nodes = [root]
    for node in nodes:  # grows while it is walked
        yield from _merge_light(node, root, patterns, slicer)
        nodes += node.children.values()
        yield from slicer.pause()
    if len(nodes) > budget:
        yield from _trim(root, budget, slicer)


def _merge_light(parent: FoldedNode, root: FoldedNode, patterns: PatternNodes, slicer: Slicer) -> Slices[None]:
    """Merge light names of a namespace that has too many: see the top of this module."""
    for is_space in (False, True):
        names = parent.named(is_space=is_space)
        numbered = Counter([parent.children[name].numbered for name in names])
        most = MOST_NUMBERED if is_space else MOST_NUMBERED_KEYS
        whole = {one for one, count in numbered.items() if count > most or one in parent.children}
        many = {one for one, count in numbered.items() if count > MOST_CHILDREN}
        for name in names:
            child = parent.children[name]
            target = child.numbered
            if target is not None and (
                target in whole or (target in many and not FINAL.is_reached(child, parent, root))
            ):
                del parent.children[name]
                _merge_as(parent, target, child)
                yield from slicer.pause()
        names = parent.named(is_space=is_space)
        if parent.has_lost[is_space] or len(names) > MOST_CHILDREN:
            for name in names:
                child = parent.children[name]
                if not FINAL.is_reached(child, parent, root):
                    del parent.children[name]
                    _merge_as(parent, patterns.any_name(name), child)
                    yield from slicer.pause()
    for name in [name for name in parent.children if name[0] == ANY and name[2] is NodeKind.PATTERN]:
        if _grows(parent.children[name]):
            child = parent.children.pop(name)
            _merge_as(parent, (ID, name[1], NodeKind.PATTERN), child)
            parent.children[ID, name[1], NodeKind.PATTERN].holds_any_name = True


def _grows(pattern: FoldedNode) -> bool:
    """Whether the different names that were merged into a pattern are about as many as its keys, and no few words."""
    if pattern.distinct is None:
        return False
    names = as_estimate(pattern.distinct.count()).value
    is_code = names >= MOST_WORDS or 8 * pattern.distinct.coded() >= 1
    return is_code and KEYS_OF_A_NAME * names >= pattern.keys


def _merge_as(parent: FoldedNode, name: Name, child: FoldedNode) -> None:
    """Merge a node that was taken out of the tree into the child of this name, or put it there under the name."""
    target = parent.children.get(name)
    if target is None and name[2] is not NodeKind.OTHER:
        parent.children[name] = child
        child.rename(name)
        return
    if target is None:
        target = parent.children[name] = FoldedNode(name)
    _merge(target, child)


def _merge(target: FoldedNode, node: FoldedNode) -> None:
    """Add the sums at and below a node to another one; a rest node keeps no children."""
    target.has_lost = [one or other for one, other in zip(target.has_lost, node.has_lost, strict=True)]
    if target.distinct is not None:
        target.distinct.add(node.hashes)
    target.examples = best_examples(target.examples, node.examples)
    target.keys += node.keys
    target.bytes += node.bytes
    target.numbers += node.numbers
    for name, child in node.children.items():
        if target.kind is NodeKind.OTHER:
            target.keys -= child.keys
            target.bytes -= child.bytes
            _merge(target, child)
        else:
            _merge_as(target, name, child)


def _trim(root: FoldedNode, budget: int, slicer: Slicer) -> Slices[None]:
    """Keep the heaviest nodes, light keys last, and merge all others into those for the rest of their parents.

    Of nodes that weigh the same, names decide.
    """
    all_keys, all_bytes = float(max(1, root.keys)), float(max(1, root.bytes))
    by_weight: defaultdict[tuple[bool, float], list[tuple[tuple[Name, ...], FoldedNode]]] = defaultdict(list)
    paths: list[tuple[tuple[Name, ...], FoldedNode]] = [((), root)]
    for path, node in paths:  # grows while it is walked
        if node.kind is not NodeKind.OTHER:
            weight = -max(node.keys / all_keys, node.bytes / all_bytes)
            by_weight[_is_light_key(node, root), weight].append((path, node))
        paths += [((*path, name), child) for name, child in node.children.items()]
        yield from slicer.pause()
    kept: set[FoldedNode] = set()
    for rank in sorted(by_weight):
        alike, left = by_weight[rank], budget - len(kept)
        if len(alike) > left:  # names decide only here
            alike = nsmallest(left, alike, key=itemgetter(0))
        kept.update(node for _, node in alike)
        if len(kept) == budget:
            break
    yield from slicer.pause()
    parents = [root]
    for parent in parents:  # grows while it is walked
        for name, child in list(parent.children.items()):
            if child in kept:
                parents.append(child)
            elif child.kind is not NodeKind.OTHER and name != EMPTY_KEY:
                del parent.children[name]
                _merge_as(parent, (REST, b"", NodeKind.OTHER), child)
        yield from slicer.pause()


def _is_light_key(node: FoldedNode, root: FoldedNode) -> bool:
    """Whether a node is a name that keys end at, and has less than a hundredth of all: merged before others are."""
    return (
        node.kind is NodeKind.LITERAL
        and not node.separator
        and node is not root
        and 100 * node.keys < root.keys
        and (not node.bytes or 100 * node.bytes < root.bytes)
    )
