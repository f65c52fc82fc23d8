"""Keys whose names have no node in a crowded tree: they wait until enough of them show which names are heavy.

Say that a namespace has all the nodes it may have, and keys `a:1`, `b:1`, `a:2`, `c:1`, … of further names come. Each
is kept with its facts and the node that it misses. There are two sorts of decisions about them:

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

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, TypeAlias

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
from rtui.analysis.aggregate.tally import Layout, Tally

MOST_UNPLACED_KEYS: Final = 4096
"""At most so many keys wait before they are decided on."""

MOST_UNPLACED_BYTES: Final = 4 << 20
"""Their names have at most so many bytes together."""

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


CountKey: TypeAlias = Callable[[PatternNode, UnplacedKey], None]
"""Counts a key in its node."""


class UnplacedKeys:
    """Holds the keys of names without a node, and gives nodes to those names that are heavy.

    A name that is heavy in the whole is heavy, or nearly so, among any few thousand consecutive keys, unless they come
    ordered by name; it gets its node then, with all its keys. Only a name whose keys come so rarely at first that it
    is light among thousands of keys loses those to `{*}`. Where `is_full` never holds before the final decision, that
    one is made about all keys: the final tree depends on the keys alone, not on their order, nor on summaries made
    meanwhile. Otherwise what a node lost before it was made, or when it was merged as too light to be kept, depends on
    which keys had come by then.
    """

    def __init__(self, tree: PatternTree, count_key: CountKey, flush: Callable[[], object]) -> None:
        """`flush` counts in the tree all that `count_key` got."""
        self._tree = tree
        self._count_key = count_key
        self._flush = flush
        self._keys: list[UnplacedKey] = []
        self._bytes = 0
        self._decided_at: Weight = 0, 0
        """The weight of all keys at the last decision."""
        self._merged_size = 0
        """Nodes that were left when light ones were merged last."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to decide on them."""
        return len(self._keys) > MOST_UNPLACED_KEYS or self._bytes > MOST_UNPLACED_BYTES

    def add(self, one: UnplacedKey) -> None:
        """Keep a key."""
        self._keys.append(one)
        self._bytes += len(one.key)

    def show(self) -> None:
        """Count all keys in the tree for the time being, in the nodes of light names."""
        self._tree.clear_unplaced()
        rows: dict[tuple[MissingNode, bytes | None, Layout], list[Sequence[int]]] = {}
        for one in self._keys:
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
        self._tree.remove_empty_nodes(kept={one.missing[0] for one in self._keys})

    def decide(self, *, is_final: bool) -> None:
        """Place every key: heavy names get a node, the keys of all others are counted in nodes of light names.

        Then nodes that are too light to be kept, or with `is_final` to be shown, are merged.
        """
        self._flush()
        keys, size = weigh(self._tree.root)[self._tree.root]
        whole = keys + len(self._keys), size + sum(one.size_bytes for one in self._keys)
        since = whole[0] - self._decided_at[0], whole[1] - self._decided_at[1]
        self._decided_at = whole
        if is_final:
            self._decide_by_level()
        else:
            self._decide_in_rounds(since)
        self._tree.remove_empty_nodes()
        if is_final:
            self._tree.merge_light(FINAL)
            self._tree.trim()
            return
        if whole[0] >= MERGED_FROM_KEYS and self._tree.size > SPARE_NODES + 2 * self._merged_size:
            self._tree.merge_light(INTERIM)
            self._merged_size = self._tree.size
        if self._tree.is_over_budget:
            self._tree.trim()

    def _decide_in_rounds(self, since: Weight) -> None:
        """Weigh names among the keys that have come since the last decision, on all levels at once."""
        light: dict[MissingNode, bool] = {}
        for round_number in count():
            if not self._keys:
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
            if not self._keys:
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
            decisions |= dict.fromkeys(self._tree.merge_light_of(level, FINAL, weights), False)
            self._tree.clear_unplaced()
            self._place(decisions)

    def _weights(self) -> dict[MissingNode, Weight]:
        """Return the missing nodes, each with the weight of its keys."""
        weights: dict[MissingNode, Weight] = {}
        for one in self._keys:
            keys, size = weights.get(one.missing, (0, 0))
            weights[one.missing] = keys + 1, size + one.size_bytes
        return weights

    def _place(self, decisions: Mapping[MissingNode, bool]) -> None:
        """Count all keys that have a node by now; those that miss yet another one wait again."""
        waiting, self._keys, self._bytes = self._keys, [], 0
        for one in waiting:
            node, _, missing = self._tree.locate(one.key, decisions)
            if missing is None:
                self._count_key(node, one)
            else:
                self.add(one._replace(missing=missing))
        self._flush()
