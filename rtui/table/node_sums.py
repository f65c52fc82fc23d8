"""The sums of a partial of the key table by the nodes of a report, and by hash slot.

The nodes of the partial's patterns become a tree that is folded (`folding`), in which a node holds the numbers of the
nodes that were merged into it. Then the tables of the partial are given the numbers of the folded nodes, added up level
by level, and read once: a tally for each node.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rtui.analysis.report.document import NodeKind, SlotsReport, SlotTag
from rtui.analysis.report.expiries import ExpiryBins
from rtui.analysis.report.figures import Sketch
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.slots import SLOTS, crc16
from rtui.table import lives, partial, slots
from rtui.table.folding import FoldedNode, StringLengths, Tally, TtlTally, merge_light
from rtui.table.lives import Lives
from rtui.table.partial import Partial
from rtui.table.patterns import Patterns
from rtui.table.segments import name_hashes
from rtui.table.slots import Slots
from rtui.table.sums import NONE, Dense, Spreads, Tree, Whole, whole

REPORTED_TAGS: Final = 100

MAX_SUM: Final = (1 << 64) - 1
"""The largest sum of bytes that a report holds."""

ROWS_AT_ONCE: Final = 1_024
"""Rows of a table that become lists of Python at once: less than a millisecond."""


class TablePatterns:
    """The patterns of a partial at one moment; rows added later do not change them.

    Below `user` there are `<id>` with 900 strings and 100 hashes, and `index` with one set. `user` adds up to 1,001
    keys: one tally of them all, and the number of keys of each type. Tallies by type exist for the whole keyspace only.
    Nor are bins of expiries added up for every node, since a report shows them for a dozen namespaces; they are
    gathered for those.
    """

    def __init__(self, root: FoldedNode, nodes: list[FoldedNode], origin_min: int) -> None:
        self.root = root
        self.by_type: dict[bytes | None, Tally] = {}
        """The sums of all keys of a type, under None for keys of unknown type."""
        self._nodes = nodes
        """From the root on, each followed by those below it."""
        self._ends: dict[FoldedNode, tuple[int, int]] = {}
        """By node, its number, and the first one behind those below it."""
        self._lives = Lives(origin_min)

    def add_up(self, found: Partial, to_nodes: Whole, slicer: Slicer) -> Slices[None]:
        """Add up all nodes; `to_nodes` has the number of the folded node of each node of the partial."""
        tree = self._numbered()
        cells = to_nodes[found.cell_nodes]
        self.by_type = dict(_Tallies.of(found, found.cell_types).named(found.types))
        yield from slicer.pause()
        self._count_types(found, cells)
        self._lives = found.lives.taken(cells)
        of_nodes = _Tallies.of(found, cells)
        yield from slicer.pause()
        of_nodes.add_up(tree)
        yield from slicer.pause()
        of_nodes.read()
        for number, node in reversed([*enumerate(self._nodes)]):
            below = node.below
            node.expiring = of_nodes.expiring(number)
            if len(below) == 1 and not node.own_keys and node is not self.root:
                node.is_alike, node.tally, node.types = True, below[0].tally, below[0].types
                continue
            node.tally = of_nodes.tally(number)
            for child in below:
                node.types.update(child.types)
            yield from slicer.pause()

    def _numbered(self) -> Tree:
        parents = np.zeros(len(self._nodes), np.int64)
        numbers = {node: number for number, node in enumerate(self._nodes)}
        for node, number in numbers.items():
            for child in node.below:
                parents[numbers[child]] = number
        ends = np.arange(1, len(self._nodes) + 1)
        for number in range(len(self._nodes) - 1, 0, -1):
            ends[parents[number]] = max(ends[parents[number]], ends[number])
        self._ends = {node: (number, int(ends[number])) for node, number in numbers.items()}
        return Tree(parents)

    def _count_types(self, found: Partial, cells: Whole) -> None:
        keys, size = found.counts.rows[: len(cells), partial.KEYS], len(found.types)
        sums = np.bincount(cells * size + found.cell_types, keys, len(self._nodes) * size).astype(np.int64)
        for node in self._nodes:
            node.types = Counter()
        for place in np.flatnonzero(sums).tolist():
            node, key_type = self._nodes[place // size], found.types[place % size]
            keys_of_type = int(sums[place])
            node.types[bytes_of(key_type)] = keys_of_type
            node.own_keys += keys_of_type

    def release(self, slicer: Slicer) -> Slices[None]:
        """Free all nodes but the root: nothing can be read afterwards."""
        self._ends.clear()
        while self._nodes:
            self._nodes.pop().children.clear()
            yield from slicer.pause()

    def expiries(self, nodes: Sequence[FoldedNode], slicer: Slicer) -> Slices[list[tuple[ExpiryBins, int]]]:
        """Return for each node when the keys at and below it expire, and the size of the largest of them."""
        groups, starts, keys, low, high, squares = self._lives.expiries()
        largest = self._lives.greatest.rows[:, lives.EXPIRING_LARGEST]
        found = []
        for node in nodes:
            first, end = self._ends[node]
            rows = slice(*np.searchsorted(groups, (first, end)))
            bins, at = np.unique(starts[rows], return_inverse=True)
            sums = [np.bincount(at, one[rows], len(bins)).tolist() for one in (keys, low, high, squares)]
            counted = (
                (start, int(count), whole(int(lower), int(upper)), int(square))
                for start, count, lower, upper, square in zip(bins.tolist(), *sums, strict=True)
            )
            most = max(0, int(largest[first:end].max(initial=NONE)))
            found.append((ExpiryBins(self._lives.origin_min, self._lives.coarseness, counted), most))
            yield from slicer.pause()
        return found


def counted_patterns(found: Partial, budget: int, slicer: Slicer) -> Slices[TablePatterns]:
    """Return the patterns of a partial, to which nothing may be added meanwhile, folded to at most `budget` nodes."""
    own = found.patterns.own().astype(np.int64)
    root = yield from _tree(found, own, slicer)
    yield from merge_light(root, found.patterns, budget, slicer)
    nodes: list[FoldedNode] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += node.children.values()
    to_folded = np.zeros(len(found.patterns), np.int64)
    for number, node in enumerate(nodes):
        to_folded[node.numbers] = number
        yield from slicer.pause()
    patterns = TablePatterns(root, nodes, found.lives.origin_min)
    yield from patterns.add_up(found, to_folded[own], slicer)
    return patterns


def _tree(found: Partial, own: Whole, slicer: Slicer) -> Slices[FoldedNode]:
    patterns: Patterns = found.patterns
    live = patterns.live()
    keys, sizes = patterns.totals(patterns.keys).tolist(), patterns.totals(patterns.memory).tolist()
    examples = found.examples.taken(own).by_node()
    literals = [node for node in live if patterns.kinds[node] is NodeKind.LITERAL]
    hashes = dict(zip(literals, name_hashes([patterns.segments[node] for node in literals]).tolist(), strict=True))
    made: dict[int, FoldedNode] = {}
    for node in live:
        name = patterns.name(node)
        one = made[node] = FoldedNode(name, node)
        one.keys, one.bytes = keys[node], sizes[node]
        one.examples = examples.get(node, [])
        lost = patterns.has_lost[node]
        one.has_lost = [lost[0], lost[1]]
        one.name_hash = hashes.get(node, 0)
        numbered = patterns.numbered[node]
        if numbered is not None:
            one.numbered = numbered, name[1], NodeKind.PATTERN
        if one.distinct is not None:
            one.distinct.add(patterns.distinct.of(node).tolist())
        if node:
            made[patterns.parents[node]].children[name] = one
        yield from slicer.pause()
    return made[0]


class _Tallies:
    """The sums of groups, to be read as tallies once they are added up."""

    def __init__(self, columns: tuple[Dense, Dense, Spreads, Lives]) -> None:
        self._counts, self._strings, self._memory, self._lives = columns
        self._rows: dict[str, list[Any]] = {}

    @classmethod
    def of(cls, found: Partial, groups: Whole) -> _Tallies:
        """Return the sums of a partial by group; `groups` has that of each cell."""
        columns = found.counts.taken(groups), found.strings.taken(groups), found.memory.taken(groups)
        return cls((*columns, found.lives.sums_by(groups)))

    def add_up(self, tree: Tree) -> None:
        """Add the groups, which are nodes of a tree, to their parents."""
        for one in (self._counts, self._strings, self._memory, self._lives):
            one.add_up(tree)

    def named(self, types: Sequence[str | None]) -> list[tuple[bytes | None, Tally]]:
        """Return the tallies of types by their numbers."""
        self.read()
        counts = self._rows["counts"]
        return [
            (bytes_of(key_type), self.tally(number))
            for number, key_type in enumerate(types)
            if number < len(counts) and counts[number][partial.KEYS]
        ]

    def read(self) -> None:
        """Turn columns into lists; nothing can be added up afterwards."""
        size = max(1, len(self._counts.rows))
        memory, lived = self._memory, self._lives
        columns = {
            "counts": self._counts,
            "strings": self._strings,
            "memory": memory.sums,
            "extremes": memory.greatest,
            "lives": lived.sums,
            "squares": lived.squares,
            "bins": lived.bins,
            "greatest": lived.greatest,
        }
        for name, column in columns.items():
            column.grow(size)
            self._rows[name] = _listed(column.rows)
        groups, buckets, (counts,) = memory.buckets.settle()
        self._rows["starts"] = np.searchsorted(groups, np.arange(size + 1)).tolist()
        self._rows["buckets"], self._rows["sizes"] = _listed(buckets), _listed(counts)
        groups, sizes = lived.largest
        self._rows["first_large"] = np.searchsorted(groups, np.arange(size + 1)).tolist()
        self._rows["large"] = _listed(sizes.astype(np.float64))

    def expiring(self, group: int) -> int:
        of_group: list[int] = self._rows["lives"][group]
        return of_group[lives.KNOWN] - of_group[lives.LASTING]

    def tally(self, group: int) -> Tally:
        counts, strings = self._rows["counts"][group], self._rows["strings"][group]
        idle, frequency = (
            tuple(bins) if any(bins := counts[column]) else None for column in (partial.IDLE, partial.FREQUENCY)
        )
        lengths = None
        if strings[partial.STRINGS]:
            total = whole(strings[partial.LOW], strings[partial.HIGH])
            lengths = StringLengths(
                *(strings[partial.STRINGS], total, strings[partial.LONG], strings[partial.TINY]),
                tuple(strings[partial.TINY_TTL]),
            )
        return Tally(counts[partial.KEYS], self._sizes(group), self._ttl(group), idle, frequency, lengths)

    def _sizes(self, group: int) -> Sketch | None:
        rows = self._rows
        count, low, high = rows["memory"][group]
        if not count:
            return None
        places = slice(*rows["starts"][group : group + 2])
        buckets = dict(zip(rows["buckets"][places], rows["sizes"][places], strict=True))
        largest, smallest = rows["extremes"][group]
        return Sketch.of(buckets, whole(low, high), -smallest, largest)

    def _ttl(self, group: int) -> TtlTally | None:
        rows = self._rows
        known, lasting, low, high = rows["lives"][group]
        if not known:
            return None
        greatest, expires = rows["greatest"][group], known > lasting
        return TtlTally(
            known_keys=known,
            no_ttl_keys=lasting,
            no_ttl_memory_bytes=whole(low, high),
            no_ttl_squares=int(rows["squares"][group][0]),
            no_ttl_largest=tuple(rows["large"][slice(*rows["first_large"][group : group + 2])]),
            bins=tuple(rows["bins"][group][1:]),
            soonest_ms=-greatest[lives.SOONEST] if expires else None,
            range_ms=(-greatest[lives.SHORTEST_LEFT], greatest[lives.LONGEST_LEFT]) if expires else None,
        )


def _listed(rows: NDArray[Any]) -> list[Any]:
    """Return rows as a list, made of some at a time: nothing else runs while one is made."""
    starts = range(0, len(rows), ROWS_AT_ONCE)
    return [row for start in starts for row in rows[start : start + ROWS_AT_ONCE].tolist()]


def encodings_of(found: Partial) -> dict[bytes, Counter[bytes]]:
    """Return by type the encodings of the keys asked for them, with the number of keys of each."""
    made: dict[bytes, Counter[bytes]] = {}
    for (key_type, encoding), count in found.encodings.items():
        made.setdefault(bytes_of(key_type) or b"", Counter())[encoding.encode()] += count
    return made


def slots_of(found: Slots) -> SlotsReport:
    keys, unmeasured = found.rows[:, slots.KEYS], found.rows[:, slots.UNMEASURED]
    left_out = int(unmeasured.sum())
    knows_none = left_out > 0 and left_out == int(keys.sum())
    sums = [whole(low, high) for low, high in found.rows[:, slots.LOW : slots.HIGH + 1].tolist()]
    return SlotsReport(
        keys=array("Q", keys.tolist()),
        memory_bytes=None if knows_none else array("Q", [min(one, MAX_SUM) for one in sums]),
        tags=tuple(
            SlotTag(
                slot=crc16(tag) % SLOTS,
                tag=tag,
                keys=count,
                memory_bytes=whole(low, high) if measured else None,
                at_least=missed > 0,
            )
            for tag, count, missed, low, high, measured in found.tags.heaviest(REPORTED_TAGS).iter_rows()
        ),
        unmeasured=array("Q", unmeasured.tolist()) if left_out and not knows_none else None,
    )


def bytes_of(key_type: str | None) -> bytes | None:
    return None if key_type is None else key_type.encode()
