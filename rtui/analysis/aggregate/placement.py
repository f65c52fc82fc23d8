"""Finds the buffers of a batch of keys, mostly by their shapes, and decides where the keys of light names go.

Walking the tree of patterns costs several microseconds a key. But a keyspace has few shapes: in `shop:user:42:cart`
every digit but 0 is replaced by 0, which gives the shape `shop:user:00:cart`, and all keys of that shape have the same
node if the tree says so (the *likeness* of the node, see `rtui.keyspace.text.identifiers`): digits may differ in an id,
not in a name like `page7`. A second kind of shape marks whole parts that are numbers, UUIDs or hashes, of whatever
length. For a batch, the shapes of all keys are computed by one call of `bytes.translate`, and their buffers looked up
in a dictionary; only keys of unknown shapes are located in the tree, and their shapes remembered.

In a crowded tree, keys of further names have no node: they wait until enough of them show which names are heavy. Say
that a namespace has all the nodes it may have, and keys `a:1`, `b:1`, `a:2`, `c:1`, … of further names come. Each is
kept with its facts and the node that it misses. There are two sorts of decisions about them:

* When more than 4,096 wait in the middle of a pass, names are weighed among the keys that have come since the last
  decision. Heavy ones get a node, all others are light, and every key is counted. Locating a key again can lead to the
  next missing node, one level deeper, so this is done in rounds.
* For a final summary the tree is walked level by level. On each level waiting keys are counted for the time being, in
  nodes of light names, so that weights are those of all keys; then names with nodes and names without are judged alike,
  and light ones merged. Only then does the next level have all of its keys, below merged names, too.

A summary of a pass that still runs decides nothing: `show` counts waiting keys in nodes of light names, and `hide`
removes them afterwards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, cast

from rtui.analysis.aggregate.pattern_tree import (
    FINAL,
    INTERIM,
    MOST_CHILDREN,
    MissingNode,
    PatternNode,
    PatternTree,
    Weight,
    is_generic_name,
    weigh,
)
from rtui.analysis.aggregate.tally import Buffer, Layout, Tally
from rtui.keyspace.text.identifiers import DIGITS, MARKS, Shapes
from rtui.keyspace.text.segments import Separators

MOST_SHAPES: Final = 16_384
LONGEST_SHAPE: Final = 128
"""So many shapes are remembered, none of more bytes; beyond that all are forgotten and learnt anew."""

NO_FACTS: Final = (0,)
"""The row in a buffer of a key of which nothing is known."""

MOST_UNPLACED_KEYS: Final = 4096
MOST_UNPLACED_BYTES: Final = 4 << 20
"""At most so many keys, with so many bytes of names together, wait before they are decided on."""

MERGED_FROM_KEYS: Final = 10_000
"""With fewer keys than this nothing is merged before the end: shares of them say too little."""

MOST_ROUNDS: Final = 64
"""After so many rounds of a decision, more than a tree has levels, all missing nodes count as light."""

SPARE_NODES: Final = 512
"""Light nodes are merged when there are so many more nodes, and twice as many, as were left the last time."""


class UnplacedKey(NamedTuple):
    """A key, its known facts, and the node that it misses."""

    key: bytes
    key_type: bytes | None
    layout: Layout
    row: Sequence[int]
    """The facts in the order of the layout."""
    size_bytes: int
    """The memory of the key, 0 where it is not known."""
    missing: MissingNode


class Placement:
    """Maps keys to the buffers that collect their facts, and gives nodes to names that turn out to be heavy.

    A name that is heavy in the whole is heavy, or nearly so, among any few thousand consecutive keys, unless they come
    ordered by name; it gets its node then, with all its keys. Only a name whose keys come so rarely at first that it
    is light among thousands of keys loses those to `{*}`. Where `is_full` never holds before the final decision, that
    one is made about all keys: the final tree depends on the keys alone, not on their order, nor on summaries made
    meanwhile. Otherwise what a node lost before it was made, or when it was merged as too light to be kept, depends on
    which keys had come by then.
    """

    def __init__(self, tree: PatternTree, separators: Separators) -> None:
        self.buffers: list[Buffer] = []
        """The buffers of all nodes."""
        self._discard = Buffer(Tally(tree.scale), ())
        """Takes the rows of keys without a node, and is never counted."""
        self._tree = tree
        self._merges = tree.merges
        self._shapes = Shapes(separators.values)
        self._by_digits: defaultdict[tuple[bytes | None, Layout], dict[bytes, Buffer]] = defaultdict(dict)
        """By type and layout, the buffers of digit shapes."""
        self._by_marks: defaultdict[tuple[bytes | None, Layout], dict[bytes, tuple[Buffer, int]]] = defaultdict(dict)
        """The buffers of mark shapes, with the likeness of the node."""
        self._remembered = 0
        self._unplaced: list[UnplacedKey] = []
        """Keys that have no node yet."""
        self._unplaced_bytes = 0
        self._decided_at: Weight = 0, 0
        """The weight of all keys at the last decision."""
        self._merged_size = 0
        """Nodes that were left when light ones were merged last."""

    def find(
        self, keys: Sequence[bytes], key_type: bytes | None, layout: Layout
    ) -> tuple[Sequence[Buffer], Sequence[tuple[int, MissingNode]]]:
        """Return the buffer of each of these keys of one type, whose facts have this layout.

        Also return which keys have no node yet, by index, with the node that is missing. Their buffer is one whose rows
        are dropped.
        """
        self._discard.values.clear()
        unplaced: list[tuple[int, MissingNode]] = []
        by_digits, by_marks = self._by_digits[key_type, layout], self._by_marks[key_type, layout]
        shapes = self._shapes.of_digits(keys)
        found = list(map(by_digits.get, shapes))
        if not all(found):
            unknown = [index for index, buffer in enumerate(found) if buffer is None]
            marked = self._shapes.of_marks([keys[index] for index in unknown])
            for index, shape in zip(unknown, marked, strict=True):
                place = None if shape is None else by_marks.get(shape)
                if place is None:
                    node, likeness, missing = self._tree.locate(keys[index])
                    if missing is not None:
                        unplaced.append((index, missing))
                        found[index] = self._discard
                        continue
                    place = self._buffer(node, key_type, layout), likeness
                    if likeness & MARKS and shape is not None and self._has_room(shape):
                        by_marks[shape] = place
                found[index], likeness = place
                if likeness & DIGITS and self._has_room(shapes[index]):
                    by_digits[shapes[index]] = place[0]
        return cast("list[Buffer]", found), unplaced

    @property
    def is_full(self) -> bool:
        """Whether it is time to decide on them."""
        return len(self._unplaced) > MOST_UNPLACED_KEYS or self._unplaced_bytes > MOST_UNPLACED_BYTES

    def hold(self, one: UnplacedKey) -> None:
        """Keep a key that has no node."""
        self._unplaced.append(one)
        self._unplaced_bytes += len(one.key)

    def show(self) -> None:
        """Count all keys in the tree for the time being, in the nodes of light names."""
        self._tree.clear_unplaced()
        rows: dict[tuple[MissingNode, bytes | None, Layout], list[Sequence[int]]] = {}
        for one in self._unplaced:
            rows.setdefault((one.missing, one.key_type, one.layout), []).append(one.row)
        by_node: dict[tuple[PatternNode, bytes | None, Layout], list[Sequence[int]]] = {}
        for (missing, key_type, layout), found in rows.items():
            by_node.setdefault((self._tree.light_node(*missing), key_type, layout), []).extend(found)
        for (node, key_type, layout), found in by_node.items():
            tally = node.unplaced.setdefault(key_type, Tally(self._tree.scale))
            tally.add(len(found), **dict(zip(layout, zip(*found, strict=True), strict=True)) if layout else {})

    def hide(self) -> None:
        """Undo `show`."""
        self._tree.clear_unplaced()
        self._tree.remove_empty_nodes(kept={one.missing[0] for one in self._unplaced})

    def decide(self, *, is_final: bool) -> None:
        """Place every key: heavy names get a node, the keys of all others are counted in nodes of light names.

        Then nodes that are too light to be kept, or with `is_final` to be shown, are merged.
        """
        self._flush()
        keys, size = weigh(self._tree.root)[self._tree.root]
        whole = keys + len(self._unplaced), size + sum(one.size_bytes for one in self._unplaced)
        since = whole[0] - self._decided_at[0], whole[1] - self._decided_at[1]
        self._decided_at = whole
        if is_final:
            self._decide_by_level()
        else:
            self._decide_in_rounds(since)
        self._tree.remove_empty_nodes()
        is_large = whole[0] >= MERGED_FROM_KEYS and self._tree.size > SPARE_NODES + 2 * self._merged_size
        if is_final or is_large:
            weights = weigh(self._tree.root)
            for level in self._tree.levels():
                self._tree.merge_light(level, FINAL if is_final else INTERIM, weights)
            self._merged_size = self._merged_size if is_final else self._tree.size
        if is_final or self._tree.is_over_budget:
            self._tree.trim()
        if self._merges != self._tree.merges:
            self._merges = self._tree.merges
            self._forget_shapes()
            self.buffers = [buffer for node in self._tree.root.walk() for buffer in node.buffers.values()]

    def _decide_in_rounds(self, since: Weight) -> None:
        """Weigh names among the keys that have come since the last decision, on all levels at once."""
        light: dict[MissingNode, bool] = {}
        for round_number in count():
            if not self._unplaced:
                break
            weights = self._weights()
            parents: Counter[PatternNode] = Counter()
            for (parent, _), (keys, _) in weights.items():
                parents[parent] += keys
            decisions = {
                missing: round_number < MOST_ROUNDS and INTERIM.is_reached(weight, (parents[missing[0]], 0), since)
                for missing, weight in weights.items()
            }
            self._place(light | decisions)
            light.update((missing, False) for missing, is_heavy in decisions.items() if not is_heavy)

    def _decide_by_level(self) -> None:
        """Decide what a summary shows, level by level from the root.

        The names of a namespace, those with nodes and those without, are judged only when all levels above are done:
        then every key that belongs in the namespace is there, and the weights are final. Below a node of light names,
        whose keys come together only while names are merged, any earlier decision would see some of them.
        """
        decisions: dict[MissingNode, bool] = {}
        for level in self._tree.levels():
            if not self._unplaced:
                break
            parents = set(level)
            missing = {one: weight for one, weight in self._weights().items() if one[0] in parents}
            names = Counter(parent for parent, name in missing if not is_generic_name(name))
            for parent, number in names.items():
                parent.is_crowded = parent.is_crowded or parent.named + number > MOST_CHILDREN
            self.show()
            weights = weigh(self._tree.root)
            for (parent, name), weight in missing.items():
                is_heavy = FINAL.is_reached(weight, weights[parent], weights[self._tree.root])
                decisions[parent, name] = is_heavy or not parent.is_crowded or is_generic_name(name)
            # Further keys may wait below the nodes that are merged now.
            decisions |= dict.fromkeys(self._tree.merge_light(level, FINAL, weights), False)
            self._tree.clear_unplaced()
            self._place(decisions)

    def _weights(self) -> dict[MissingNode, Weight]:
        """Return the missing nodes, each with the weight of its keys."""
        weights: dict[MissingNode, Weight] = {}
        for one in self._unplaced:
            keys, size = weights.get(one.missing, (0, 0))
            weights[one.missing] = keys + 1, size + one.size_bytes
        return weights

    def _place(self, decisions: Mapping[MissingNode, bool]) -> None:
        """Count all keys that have a node by now; those that miss yet another one wait again."""
        waiting, self._unplaced, self._unplaced_bytes = self._unplaced, [], 0
        for one in waiting:
            node, _, missing = self._tree.locate(one.key, decisions)
            if missing is None:
                self._buffer(node, one.key_type, one.layout).values.extend(one.row or NO_FACTS)
            else:
                self.hold(one._replace(missing=missing))
        self._flush()

    def _flush(self) -> None:
        for buffer in self.buffers:
            buffer.flush()

    def _buffer(self, node: PatternNode, key_type: bytes | None, layout: Layout) -> Buffer:
        found = node.buffers.get((key_type, layout))
        if found is None:
            found = node.buffers[key_type, layout] = Buffer(
                node.tallies.setdefault(key_type, Tally(self._tree.scale)), layout
            )
            self.buffers.append(found)
        return found

    def _has_room(self, shape: bytes) -> bool:
        """Whether a shape may be remembered; all others may have been forgotten for it."""
        if len(shape) > LONGEST_SHAPE:
            return False
        if self._remembered >= MOST_SHAPES:
            self._forget_shapes()
        self._remembered += 1
        return True

    def _forget_shapes(self) -> None:
        self._by_digits.clear()
        self._by_marks.clear()
        self._remembered = 0
