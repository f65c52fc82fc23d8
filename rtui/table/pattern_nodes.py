"""The nodes of a tree of patterns, by number, and the merging that keeps them few.

A node is a segment or the pattern of some, in one place. Nodes are merged into others, and keep their numbers until
`fold` gives all nodes new ones; until then sums by number stay right, and only count for another node.

* Names that differ in their numbers only, `page_7` and `page_8`, become `page_<n>` for good when there are more than
  MOST_NUMBERED_KEYS, as namespaces more than MOST_NUMBERED. How many there are says the keyspace, not the order.
* A namespace with more than MOST_NAMES names keeps the heavy ones, as frequent items are counted (Misra and Gries,
  1982; merged as by Agarwal et al., "Mergeable summaries", 2012): each pays as many keys and as many bytes as half of
  MOST_NAMES of them have left, and those that can pay neither become `<*>`. All payments together are at most
  2 / MOST_NAMES of the keys or bytes of the namespace: whatever has more is never merged, and at most so much of any
  name is counted in `<*>`, however the keys come. Which names have a node below this bound depends on their order. From
  then on, names that are new and light get no node (see `LEAST_OF_NAMES`), which adds as little to the bound.
* Keys, which end at a name, and namespaces, which go on, are counted apart.
* When there are more than `most` nodes, fewer names are kept in each namespace, down to MOST_CHILDREN; then the
  lightest nodes go to one node for the rest, below their parent; among equals keys first, then by a hash of the path.

A node is found by its parent and the hash of its name (`NodeIndex`); different names are counted by hashes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rtui.keyspace.text.identifiers import ANY_NAMES, PLACEHOLDERS, Identifiers, NodeKind
from rtui.table.segments import Hashes, mixed, name_hashes, text_hashes

_PARENT: Final = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_OF_A_NODE: Final = 4


class NodeIndex:
    """A hash table with open addressing: a node stands where its hash says, or in the next free slot."""

    def __init__(self) -> None:
        self._hashes: NDArray[np.uint64]
        """By slot; 0 for an empty one."""
        self._nodes: NDArray[np.int32]
        self.rebuild(np.empty(0, np.uint64), np.empty(0, np.int32))

    def __len__(self) -> int:
        return self._count

    def rebuild(self, hashes: NDArray[np.uint64], nodes: NDArray[np.int32]) -> None:
        """Hold these nodes only, under these hashes of parent and name."""
        bits = max(10, int(_SLOTS_OF_A_NODE * len(nodes)).bit_length())
        self._bits, self._count = np.uint64(64 - bits), len(nodes)
        order = np.argsort(hashes)
        hashes, nodes = hashes[order], nodes[order]
        at = np.arange(len(nodes))
        slots = np.maximum.accumulate((hashes >> self._bits).astype(np.int64) - at) + at
        size = (1 << bits) + len(nodes) + 1
        self._hashes, self._nodes = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
        self._hashes[slots], self._nodes[slots] = hashes, nodes

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the node of each hash, -1 if there is none."""
        slots = (hashes >> self._bits).astype(np.int64)
        held = self._hashes[slots]
        found = self._nodes[slots]
        others = np.flatnonzero((held != hashes) & (held != 0))
        found[held == 0] = -1
        while len(others):
            slots[others] += 1
            held = self._hashes[slots[others]]
            is_here, is_free = held == hashes[others], held == 0
            found[others] = np.where(is_here, self._nodes[slots[others]], -1)
            others = others[~is_here & ~is_free]
        return found

    def add(self, hashes: NDArray[np.uint64], nodes: NDArray[np.int32] | int) -> None:
        """Hold more nodes, which are not held; each hash is there once."""
        nodes = np.broadcast_to(np.int32(nodes), hashes.shape)
        slots, left = (hashes >> self._bits).astype(np.int64), np.arange(len(hashes))
        is_many = 2 * (self._count + len(hashes)) > len(self._hashes)
        while len(left):
            # The last slot stays free: there every search ends.
            if is_many or slots[left].max() >= len(self._hashes) - 1:
                is_held = self._hashes != 0
                self.rebuild(
                    np.concatenate((self._hashes[is_held], hashes[left])),
                    np.concatenate((self._nodes[is_held], nodes[left])),
                )
                return
            free = left[self._hashes[slots[left]] == 0]
            self._hashes[slots[free]] = hashes[free]  # of those that want the same slot, one has it then
            is_held = self._hashes[slots[left]] == hashes[left]
            held, left = left[is_held], left[~is_held]
            self._nodes[slots[held]] = nodes[held]
            self._count += len(held)
            slots[left] += 1


def below(parents: NDArray[np.int32], names: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes of nodes by their parents and the hashes of their names; never 0."""
    return mixed(names + parents.astype(np.uint64) * _PARENT) | np.uint64(1)


MOST_HASHES: Final = 256
"""Hashes that are kept of a pattern: see `rtui.table.folding`, which counts by them."""

MOST_WAITING: Final = 262_144
"""Hashes that wait to be ordered."""

_BITS: Final = np.uint64(32)

RANGE: Final = 1 << 32
"""Hashes are below this; the last bit says that a name looks like a code rather than a word."""


class DistinctNames:
    """The smallest hashes of names by node (KMV), in two arrays, whatever the order of adding and merging."""

    def __init__(self) -> None:
        self._held: NDArray[np.uint64] = np.empty(0, np.uint64)
        """Node and hash in one number, ordered."""
        self._waiting: list[NDArray[np.uint64]] = []
        self._limits: NDArray[np.uint32] = np.empty(0, np.uint32)
        """By node: larger hashes are not kept."""

    @property
    def nodes(self) -> NDArray[np.int32]:
        return (self._kept() >> _BITS).astype(np.int32)

    @property
    def hashes(self) -> NDArray[np.uint32]:
        return (self._kept() & np.uint64(RANGE - 1)).astype(np.uint32)

    def add(self, nodes: NDArray[np.int32], hashes: NDArray[np.uint32]) -> None:
        """Count names, one row each, repeats among them."""
        if not len(nodes):
            return
        if len(self._limits) <= (last := int(nodes.max())):
            more = np.full(last + 1 - len(self._limits), RANGE - 1, np.uint32)
            self._limits = np.concatenate((self._limits, more))
        is_small = hashes <= self._limits[nodes]
        self._waiting.append(nodes[is_small].astype(np.uint64) << _BITS | hashes[is_small])
        if sum(map(len, self._waiting)) > MOST_WAITING:
            self._kept()

    def move(self, into: NDArray[np.int32]) -> None:
        """Give the names of each node to another one, by the old ids."""
        nodes, hashes = into[self.nodes], self.hashes
        self.__init__()  # type: ignore[misc]
        self.add(nodes, hashes)

    def of(self, node: int) -> NDArray[np.uint32]:
        """Return the smallest hashes of the names of a node, at most MOST_HASHES, in order."""
        first, end = np.searchsorted(self._kept(), np.array([node, node + 1], np.uint64) << _BITS)
        return (self._held[first:end] & np.uint64(RANGE - 1)).astype(np.uint32)

    def _kept(self) -> NDArray[np.uint64]:
        """Merge the waiting hashes, and return all hashes kept."""
        if any(map(len, self._waiting)):
            ordered = np.sort(np.concatenate((self._held, *self._waiting)))
            ordered = ordered[np.append(True, ordered[1:] != ordered[:-1])]
            nodes = (ordered >> _BITS).astype(np.int32)
            starts = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
            sizes = np.append(starts[1:], len(nodes)) - starts
            self._held = ordered[np.arange(len(nodes)) - np.repeat(starts, sizes) < MOST_HASHES]
            full = starts[sizes >= MOST_HASHES]
            self._limits[nodes[full]] = (ordered[full + MOST_HASHES - 1] & np.uint64(RANGE - 1)).astype(np.uint32)
        self._waiting.clear()
        return self._held


MOST_CHILDREN: Final = 128
"""A report shows of a namespace with more names than this only the heavy ones."""

MOST_NAMES: Final = 512
"""Names of a namespace beyond which the light ones are merged."""

MOST_NUMBERED_KEYS: Final = 32
"""More keys than this that differ in their numbers only are one pattern."""

MOST_NUMBERED: Final = 1_024
"""More namespaces than this that differ in their numbers only are one pattern."""

LIGHTEST: Final = 1 / 65_536
"""Share of the keys or bytes placed with a new name up to which it gets no node, once there were too many nodes."""

MOST_BYTES: Final = 1 << 62
"""Larger sizes, which only a faulty server reports, count as this."""

ROOT: Final = 0

REST: Final = b""
"""The name of the node for the nodes beyond the budget."""

Name: TypeAlias = tuple[bytes, bytes, NodeKind]
"""The identity of a node among its siblings: segment or pattern, separator, kind. Keys have no separator, namespaces
do."""

Ints: TypeAlias = NDArray[np.int64]

_LITERAL, _PATTERN, _OTHER = NodeKind.LITERAL, NodeKind.PATTERN, NodeKind.OTHER


def is_generic(name: Name) -> bool:
    """Whether this is the empty name or one of the few patterns that never count as too many."""
    text, _, kind = name
    if kind is _LITERAL:
        return not text
    return kind is _OTHER or text in ANY_NAMES or text in PLACEHOLDERS


_NONE_LOST: Final = False, False

_OF_KINDS: Final = {_LITERAL: 0x165667B19E3779F9, _PATTERN: 0x9E3779B97F4A7C15, _OTHER: 0xC2B2AE3D27D4EB4F}
"""By kind, a part of the hash of a path."""

T = TypeVar("T")


def _chosen(values: list[T], places: list[int]) -> list[T]:
    return [values[place] for place in places]


class PatternNodes:
    """The nodes of a tree, from the root, which is 0."""

    def __init__(self, separators: tuple[bytes, ...], most: int) -> None:
        self.most = most
        """Most nodes, without rest nodes; beyond, some are merged."""
        self.identifiers = Identifiers(separators)
        self.parents = [ROOT]
        self.segments, self.separators, self.kinds = [b""], [b""], [_LITERAL]
        """By node: see `Name`."""
        self.levels = [0]
        self.numbered: list[bytes | None] = [None]
        """By node: the pattern that a name becomes where many differ in their numbers only."""
        self.has_lost = [_NONE_LOST]
        """By node: whether keys, and whether namespaces, below it have been merged because there were too many."""
        self._counts: Ints = np.zeros((2, 64), np.int64)
        self._distinct = DistinctNames()
        self.most_names = MOST_NAMES
        self.most_numbered = MOST_NUMBERED
        self.lightest = 0.0
        """The share of all keys or bytes that all nodes had at least that were kept when others went to the rest."""
        self._into = [ROOT]
        """By node: itself, or the node that it was merged into."""
        self._merged = self._moved = self._added_up = 0
        """How many nodes were merged, by now and when their names and their counts were moved to where they are."""
        self._children: list[dict[Name, int] | None] = [None]
        self._alike: defaultdict[tuple[int, bytes, bytes], dict[int, None]] = defaultdict(dict)
        """The names below a node that differ in their numbers only, by their pattern and separator."""
        self.paid: dict[int, tuple[int, int]] = {}
        """By node: how many of its keys and bytes count no more in favour of it."""
        self._crowded: dict[int, None] = {}
        """Nodes that may have too many names."""
        self._placed_at = 0, 0
        """The numbers of nodes and of merged nodes when `_arrays` were made."""
        self._arrays: tuple[NDArray[np.int32], Ints, Ints]
        self._lost_names: list[tuple[int, bytes]] = []
        """Patterns and the names that were merged into them, which wait to be counted."""

    @property
    def size(self) -> int:
        return len(self.parents) - self._merged

    def __len__(self) -> int:
        """The number of node numbers, including merged nodes."""
        return len(self.parents)

    @property
    def distinct(self) -> DistinctNames:
        """The names that patterns stand for, by node."""
        if self._merged != self._moved:
            self._distinct.move(self.own())
            self._moved = self._merged
        return self._distinct

    @property
    def keys(self) -> Ints:
        """By node: the keys that end here, or are not followed further."""
        return self._column(0)

    @property
    def memory(self) -> Ints:
        return self._column(1)

    def _column(self, which: int) -> Ints:
        if (size := self._counts.shape[1]) < len(self.parents):
            self._counts = np.pad(self._counts, ((0, 0), (0, max(size, len(self.parents) - size))))
        if self._added_up != self._merged:
            own, self._added_up = self.own(), self._merged
            gone = np.flatnonzero(own != np.arange(len(own)))
            for column in self._counts:
                np.add.at(column, own[gone], column[gone])
                column[gone] = 0
        return self._counts[which, : len(self.parents)]

    def name(self, node: int) -> Name:
        return self.segments[node], self.separators[node], self.kinds[node]

    def children(self, node: int) -> dict[Name, int]:
        return self._children[node] or {}

    def live(self) -> list[int]:
        """Return all nodes that were not merged, parents first."""
        found: list[int] = self._live().tolist()
        return found

    def _live(self) -> NDArray[np.int64]:
        own, _, levels = self._places()
        live = np.flatnonzero(own == np.arange(len(own)))
        return live[np.argsort(levels[live], kind="stable")]

    def own(self) -> NDArray[np.int32]:
        """Return the node that is in the place of each by now."""
        return self._places()[0]

    def _places(self) -> tuple[NDArray[np.int32], Ints, Ints]:
        """Return the result of `own`, and the parent and level of each node; they change with every node made or
        merged."""
        now = len(self), self._merged
        if self._placed_at != now:
            into = np.array(self._into, np.int32)
            while not np.array_equal(into, again := into[into]):
                into = again
            self._placed_at, self._arrays = now, (into, np.array(self.parents), np.array(self.levels))
        return self._arrays

    def totals(self, values: Ints) -> Ints:
        """Return the sums at and below each node of `values` at each node; merged nodes count for their new one."""
        own, parents, levels = self._places()
        summed = np.zeros(len(self), np.int64)
        np.add.at(summed, own, values)
        live = self._live()
        firsts = np.searchsorted(levels[live], np.arange(1, int(levels.max()) + 2))
        for first, end in zip(firsts[-2::-1], firsts[:0:-1], strict=True):  # the deepest level first
            np.add.at(summed, parents[live[first:end]], summed[live[first:end]])
        return summed

    def make(self, parent: int, name: Name, numbered: bytes | None = None) -> int:
        """Add a node below another one, which has none of this name."""
        made = len(self.parents)
        segment, separator, kind = name
        self.parents.append(parent)
        self.segments.append(segment)
        self.separators.append(separator)
        self.kinds.append(kind)
        self.levels.append(self.levels[parent] + 1)
        self.numbered.append(numbered)
        self.has_lost.append(_NONE_LOST)
        self._into.append(made)
        self._children.append(None)
        self._hang(parent, made, name)
        return made

    def child(self, parent: int, name: Name, numbered: bytes | None = None) -> int:
        """Return the node below another one for a segment or pattern, a new one if need be."""
        found = self._found(parent, name, numbered)
        return self.make(parent, name, numbered) if found is None else found

    def _found(self, parent: int, name: Name, numbered: bytes | None) -> int | None:
        """Return the child of a node for a segment or pattern, None if there is none."""
        children = self._children[parent]
        if children is None:
            return None
        found = children.get(name)
        if found is None and numbered is not None:
            found = children.get((numbered, name[1], _PATTERN))
        return found

    def count(self, nodes: NDArray[np.int32], sizes: NDArray[np.float64] | None) -> None:
        """Count keys that end at these nodes, and their memory, which is a whole number or NaN."""
        keys, total = self.keys, self.memory
        keys += np.bincount(nodes, minlength=len(self))
        if sizes is not None:
            total += np.bincount(nodes, np.nan_to_num(sizes), len(self)).clip(max=MOST_BYTES).astype(np.int64)

    def settle(self) -> None:
        """Merge names and nodes if there are too many."""
        self._merge_crowds()
        while self.size > self.most and max(self.most_names, self.most_numbered) > MOST_CHILDREN:
            self.most_names = max(MOST_CHILDREN, self.most_names // 2)
            self.most_numbered = max(MOST_CHILDREN, self.most_numbered // 2)
            fewest = min(self.most_names, self.most_numbered)
            self._crowded.update(
                {node: None for node, below in enumerate(self._children) if below and len(below) > fewest}
            )
            self._merge_crowds()
        if self.size > self.most:
            self._trim(3 * self.most // 4)
        if self._lost_names:
            nodes, names = zip(*self._lost_names, strict=True)
            self._distinct.add(self.own()[list(nodes)], name_hashes(names))
            self._lost_names = []

    def _trim(self, budget: int) -> None:
        """Keep the `budget` heaviest nodes, and merge all others into the rest nodes of their parents."""
        live = self._live()
        live = live[np.array([self.kinds[node] is not _OTHER for node in live.tolist()])]
        if len(live) <= budget:
            return
        keys, sizes = self.totals(self.keys), self.totals(self.memory)
        weights = np.maximum(keys[live] / max(1, int(keys[ROOT])), sizes[live] / max(1, int(sizes[ROOT])))
        is_key = np.array([not self.separators[node] for node in live.tolist()]) & (live != ROOT)
        order = np.lexsort((self._path_hashes()[live], self._places()[2][live], is_key, -weights))
        self.lightest = max(LIGHTEST, float(weights[order[budget - 1]]))
        is_kept = np.zeros(len(self), bool)
        is_kept[live[order[:budget]]] = True
        light = live[~is_kept[live] & is_kept[self._places()[1][live]]]
        for node in light.tolist():
            name = self.name(node)
            if name[0] or name[1]:
                self.replace(self.parents[node], name, (REST, b"", _OTHER))

    def replace(self, parent: int, name: Name, target: Name, numbered: bytes | None = None) -> None:
        """Merge the child `name` into the child `target`, which is made if need be."""
        child = self._take(parent, name)
        into = self.children(parent).get(target)
        self.merge_into(self.make(parent, target, numbered) if into is None else into, child)

    def any_name(self, name: Name) -> Name:
        """Return the pattern for a name that is merged because there are too many."""
        text, separator, kind = name
        return self.identifiers.any_name(text, is_pattern=kind is _PATTERN), separator, _PATTERN

    def merge_into(self, target: int, node: int) -> None:
        """Count all that is at and below a node, which has been taken out of the tree, in another one."""
        self._into[node] = target
        self._merged += 1
        if (paid := self.paid.pop(node, None)) is not None:
            self._pay(target, *paid)
        self._crowded.pop(node, None)
        self._lose(target, self.has_lost[node])
        kind = self.kinds[target]
        if kind is _PATTERN and self.kinds[node] is _LITERAL:
            self._lost_names.append((target, self.segments[node]))
        below, self._children[node] = self._children[node], None
        for name, child in below.items() if below else ():
            self._unlist(node, child)
            if kind is _OTHER:
                self.merge_into(target, child)
            else:
                numbered = self.numbered[child]
                found = self._found(target, name, numbered)
                if found is None:
                    self.parents[child] = target
                    self._hang(target, child, name)
                else:
                    self.merge_into(found, child)

    def _lose(self, node: int, lost: tuple[bool, bool]) -> None:
        if lost != _NONE_LOST:
            before = self.has_lost[node]
            self.has_lost[node] = before[0] or lost[0], before[1] or lost[1]

    def _hang(self, parent: int, child: int, name: Name) -> None:
        children = self._children[parent]
        if children is None:
            children = self._children[parent] = {}
        children[name] = child
        numbered = self.numbered[child]
        if numbered is not None:
            alike = self._alike[parent, numbered, name[1]]
            alike[child] = None
            if len(alike) > (self.most_numbered if name[1] else MOST_NUMBERED_KEYS):
                self._crowded[parent] = None
        elif name[2] is _PATTERN and (parent, name[0], name[1]) in self._alike:
            self._crowded[parent] = None
        if len(children) > self.most_names:
            self._crowded[parent] = None

    def _take(self, parent: int, name: Name) -> int:
        children = self._children[parent] or {}
        child = children.pop(name)
        self._unlist(parent, child)
        return child

    def _unlist(self, parent: int, child: int) -> None:
        numbered = self.numbered[child]
        if numbered is not None:
            alike = self._alike[parent, numbered, self.separators[child]]
            alike.pop(child, None)
            if not alike:
                del self._alike[parent, numbered, self.separators[child]]

    def _merge_crowds(self) -> None:
        while self._crowded:
            crowded, self._crowded = list(self._crowded), {}
            for node in crowded:
                if self._into[node] == node:
                    self._fold_numbers(node)
            if any(len(self.children(node)) > self.most_names for node in crowded):
                weights = self.totals(self.keys), self.totals(self.memory)
                for node in crowded:
                    if self._into[node] == node and len(self.children(node)) > self.most_names:
                        for is_space in (False, True):
                            self._merge_light(node, weights, is_space=is_space)

    def _fold_numbers(self, parent: int) -> None:
        """Merge names that differ in their numbers only, if there are many or their pattern already has a node."""
        counted: defaultdict[tuple[bytes, bytes], list[Name]] = defaultdict(list)
        for name, child in self.children(parent).items():
            numbered = self.numbered[child]
            if numbered is not None:
                counted[numbered, name[1]].append(name)
        for (numbered, separator), names in counted.items():
            wanted: Name = (numbered, separator, _PATTERN)
            most = self.most_numbered if separator else min(self.most_numbered, MOST_NUMBERED_KEYS)
            if len(names) > most or wanted in self.children(parent):
                for name in names:
                    self.replace(parent, name, wanted)

    def units(self, parent: int, *, is_space: bool) -> dict[Name, list[Name]]:
        """Return the names below a node that may be too many; names that differ in their numbers only are grouped."""
        found: dict[Name, list[Name]] = {}
        for name, child in self.children(parent).items():
            if bool(name[1]) is is_space and not is_generic(name):
                numbered = self.numbered[child]
                unit: Name = name if numbered is None else (numbered, name[1], _PATTERN)
                found.setdefault(unit, []).append(name)
        return found

    def _merge_light(self, parent: int, weights: tuple[Ints, Ints], *, is_space: bool) -> None:
        """If a node has too many names, let all of them pay, and merge those that can't."""
        units = self.units(parent, is_space=is_space)
        if len(units) <= self.most_names:
            return
        children = self.children(parent)
        held = [children[names[0]] for names in units.values()]
        members = [children[name] for names in units.values() for name in names]
        firsts = np.cumsum([0, *map(len, units.values())])[:-1]
        left = np.stack([np.add.reduceat(values[members], firsts) for values in weights], axis=1)
        left -= np.array([self.paid.get(node, (0, 0)) for node in held])
        is_heavy = self._pay_all(parent, held, left, is_space=is_space)
        for names, stays in zip(units.values(), is_heavy, strict=True):
            for name in () if stays else names:
                self.replace(parent, name, self.any_name(name))

    def _pay_all(self, parent: int, held: Sequence[int], left: Ints, *, is_space: bool) -> NDArray[np.bool_]:
        """Let names pay with these keys and bytes left; return which of them have something left then.

        The first ones have nodes, which remember their payments.
        """
        paying = self.most_names // 2
        cut = np.partition(left, -paying, axis=0)[-paying]
        self._lose(parent, (not is_space, is_space))
        for node, (keys, sizes) in zip(held, np.clip(left, 0, cut).tolist(), strict=False):
            self._pay(node, keys, sizes)
        is_heavy: NDArray[np.bool_] = (left > cut).any(axis=1)
        return is_heavy

    def _path_hashes(self, *, tell_kinds: bool = False) -> Hashes:
        """Return by node a hash of its path, the same in any process."""
        of_separators = dict(zip(some := [*set(self.separators)], mixed(text_hashes(some)).tolist(), strict=True))
        found = text_hashes(self.segments)
        found += np.array([of_separators[separator] for separator in self.separators], np.uint64)
        if tell_kinds:
            found = mixed(found + np.array([_OF_KINDS[kind] for kind in self.kinds], np.uint64))
        _, parents, levels = self._places()
        order = np.argsort(levels, kind="stable")
        ends = np.searchsorted(levels[order], np.arange(1, int(levels.max()) + 2))
        for first, end in pairwise(ends.tolist()):
            here = order[first:end]
            found[here] = mixed(found[here] + found[parents[here]])
        return found

    def fold(self) -> NDArray[np.int32]:
        """Merge nodes if there are too many, and number them anew; returns new ids by old id."""
        self.settle()
        if not self._merged:
            return np.arange(len(self), dtype=np.int32)
        own, live = self.own(), self.live()
        new = np.zeros(len(self), np.int32)
        new[live] = np.arange(len(live), dtype=np.int32)
        renumbered = new[own]
        self._counts = np.stack((self.keys, self.memory))[:, live]
        self._distinct.move(renumbered)
        self.parents = [int(new[self.parents[node]]) for node in live]
        self.segments, self.separators, self.kinds, self.levels, self.numbered, self.has_lost = (
            _chosen(self.segments, live),
            _chosen(self.separators, live),
            _chosen(self.kinds, live),
            _chosen(self.levels, live),
            _chosen(self.numbered, live),
            _chosen(self.has_lost, live),
        )
        below = [self._children[node] for node in live]
        self._children = [some and {name: int(new[child]) for name, child in some.items()} for some in below]
        self.paid = {int(new[node]): paid for node, paid in self.paid.items()}
        self._into, self._merged, self._moved, self._added_up = list(range(len(live))), 0, 0, 0
        self._placed_at = 0, 0
        self._alike.clear()
        for node, numbered in enumerate(self.numbered):
            if numbered is not None:
                self._alike[self.parents[node], numbered, self.separators[node]][node] = None
        return renumbered

    def _nodes_like(self, other: PatternNodes) -> NDArray[np.int32]:
        """Return by node of another tree the node at the same path here, -1 where there is none."""
        live, wanted = self._live(), other._live()
        here, there = self._path_hashes(tell_kinds=True)[live], other._path_hashes(tell_kinds=True)[wanted]
        order = np.argsort(here)
        at = order[np.minimum(np.searchsorted(here, there, sorter=order), len(order) - 1)]
        found = np.full(len(other), -1, np.int32)
        found[wanted] = np.where(here[at] == there, live[at], -1)
        found[ROOT] = ROOT
        return found

    def merge(self, other: PatternNodes) -> NDArray[np.int32]:
        """Add the nodes of another tree with the same separators; returns the own id of each of its ids."""
        found = self._nodes_like(other)
        for node in other.live():
            if found[node] >= 0:
                continue
            target, name = int(found[other.parents[node]]), other.name(node)
            if self.kinds[target] is not _OTHER:
                target = self.child(target, name, other.numbered[node])
                if self.kinds[target] is _PATTERN and name[2] is _LITERAL:
                    self._lost_names.append((target, name[0]))
            found[node] = target
        for node, has_lost in enumerate(other.has_lost):
            if has_lost != _NONE_LOST and other._into[node] == node:
                self._lose(int(found[node]), has_lost)
        for node, paid in other.paid.items():
            self._pay(int(found[node]), *paid)
        found = found[other.own()]
        for column, added in ((self.keys, other.keys), (self.memory, other.memory)):
            np.add.at(column, found, added)
        self.distinct.add(found[other.distinct.nodes], other.distinct.hashes)
        self.settle()
        return self.own()[found]

    def _pay(self, node: int, keys: int, sizes: int) -> None:
        before = self.paid.get(node, (0, 0))
        self.paid[node] = before[0] + keys, before[1] + sizes
