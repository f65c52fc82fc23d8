"""Keys whose place in the tree of patterns is decided later, when enough of them are there to tell heavy names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias

from rtui.analysis.aggregate.buffers import Layout
from rtui.analysis.aggregate.pattern_tree import (
    KEPT,
    MOST_CHILDREN,
    SHOWN,
    Pattern,
    PatternTree,
    Slot,
    Weight,
    is_plain,
    weigh,
)
from rtui.analysis.aggregate.tally import Columns, Tally

MOST_KEYS: Final = 4096
"""So many keys wait at most before it is decided about all of them."""

MOST_BYTES: Final = 4 << 20
"""Their names have so many bytes together at most."""

FOLDED_FROM: Final = 10_000
"""With fewer keys than this nothing is folded before the end: shares of them say too little."""

MOST_ROUNDS: Final = 64
"""After so many rounds of decisions, more than a tree has levels, stand-ins take the keys of all that wait."""

SPARE_NODES: Final = 512
"""Light nodes are looked for when there are so many more nodes, and twice as many, as were left the last time."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A key, the facts of it that are known, and the place that there was no room for."""

    key: bytes
    kind: bytes | None
    layout: Layout
    row: Sequence[int]
    """The facts, in the order of the layout."""
    slot: Slot

    @property
    def size_bytes(self) -> int:
        """The memory of the key, 0 where it is not known."""
        return self.row[self.layout.index("memory_bytes")] if "memory_bytes" in self.layout else 0


Put: TypeAlias = Callable[[Pattern, Undecided], None]
"""Counts a key at its place."""


class UndecidedKeys:
    """Holds the keys of names that a crowded tree has no node for, and gives nodes to those names that are heavy.

    A name that is heavy in the whole is heavy, or nearly so, among any few thousand keys in a row, unless they come
    ordered by name; it gets its node then, with all its keys. Only a name whose keys come so thinly at first that it
    is light among thousands of keys loses those to `{*}`. Where `is_full` never holds before the final decision, that
    one is made about all keys: the final tree depends on the keys alone, not on their order, nor on whether anybody
    looked meanwhile. Otherwise what a node lost before it was made, or when it was merged as too light to be kept,
    depends on which keys had come by then.
    """

    def __init__(self, tree: PatternTree, put: Put, flush: Callable[[], object]) -> None:
        """`flush` counts in the tree all that was put at its place."""
        self._tree = tree
        self._put = put
        self._flush = flush
        self._keys: list[Undecided] = []
        self._bytes = 0
        self._decided_at: Weight = 0, 0
        self._since: Weight = 0, 0
        self._folded_size = 0

    def __len__(self) -> int:
        """Give the number of keys."""
        return len(self._keys)

    @property
    def is_full(self) -> bool:
        """Whether it has to be decided about them."""
        return len(self._keys) > MOST_KEYS or self._bytes > MOST_BYTES

    def add(self, one: Undecided) -> None:
        """Keep a key."""
        self._keys.append(one)
        self._bytes += len(one.key)

    def adopt(self, other: UndecidedKeys) -> None:
        """Take over the keys of another tree, which was merged into this one's."""
        self._keys += other._keys
        self._place_again({})

    def show(self) -> None:
        """Count all keys in the tree for the time being, in the stand-ins of the names that have no node."""
        self._tree.hide_undecided()
        rows: dict[tuple[Slot, bytes | None, Layout], list[Sequence[int]]] = {}
        for one in self._keys:
            rows.setdefault((one.slot, one.kind, one.layout), []).append(one.row)
        stand_ins: dict[tuple[Pattern, bytes | None, Layout], list[Sequence[int]]] = {}
        for (slot, kind, layout), found in rows.items():
            stand_ins.setdefault((self._tree.stand_in(*slot), kind, layout), []).extend(found)
        for (node, kind, layout), found in stand_ins.items():
            columns = Columns(**dict(zip(layout, zip(*found, strict=True), strict=True))) if layout else Columns()
            tally = node.undecided.get(kind)
            if tally is None:
                tally = node.undecided[kind] = Tally(self._tree.scale)
            tally.add(len(found), columns)

    def hide(self) -> None:
        """Have them counted nowhere again."""
        self._tree.hide_undecided()
        self._tree.sweep({one.slot[0] for one in self._keys})

    def decide(self, *, is_final: bool) -> None:
        """Give every key its place: heavy names get a node, and stand-ins take the keys of all others.

        `is_final` also merges whatever has a node and is too light to be shown.
        """
        self._flush()
        whole = self._whole()
        self._since = whole[0] - self._decided_at[0], whole[1] - self._decided_at[1]
        self._decided_at = whole
        if is_final:
            self._decide_at_last()
        else:
            self._decide_in_rounds()
        self._tree.sweep()

    def _decide_in_rounds(self) -> None:
        """Decide by the keys that have come since the last time, on all levels at once."""
        light: dict[Slot, bool] = {}
        for number in count():
            if not self._keys:
                break
            decided = self._decide() if number < MOST_ROUNDS else {one.slot: False for one in self._keys}
            self._place_again(light | decided)
            light.update((slot, False) for slot, is_heavy in decided.items() if not is_heavy)

    def trim(self, *, is_final: bool) -> None:
        """Merge what is too light to be kept, or to be shown; all buffers have been flushed."""
        if is_final:
            self._tree.fold(SHOWN)
            self._tree.trim()
            return
        keys = self._decided_at[0]
        if keys >= FOLDED_FROM and self._tree.size > SPARE_NODES + 2 * self._folded_size:
            self._tree.fold(KEPT)
            self._folded_size = self._tree.size
        if self._tree.is_over_budget:
            self._tree.trim()

    def _whole(self) -> Weight:
        """All keys so far, those that wait too, and their bytes."""
        keys, size = weigh(self._tree.root)[self._tree.root]
        return keys + len(self._keys), size + sum(one.size_bytes for one in self._keys)

    def _decide(self) -> dict[Slot, bool]:
        """Say of each place that is wanted whether it is heavy among the keys that have come since the last time."""
        wanted = self._wanted()
        parents: dict[Pattern, int] = {}
        for slot, weight in wanted.items():
            parents[slot[0]] = parents.get(slot[0], 0) + weight[0]
        return {slot: KEPT.holds(weight, (parents[slot[0]], 0), self._since) for slot, weight in wanted.items()}

    def _decide_at_last(self) -> None:
        """Decide what a summary shows, level by level from the root.

        It is decided about the names of a namespace, those with nodes and those that are wanted alike, only when all
        levels above are done: then every key that belongs in the namespace is there, and the weights are final. Below a
        stand-in, whose keys come together only while names are merged, any earlier decision would see some of them.
        """
        decided: dict[Slot, bool] = {}
        for level in self._tree.levels():
            if not self._keys:
                break
            decided.update(self._decide_level(level))
            self._place_again(decided)

    def _decide_level(self, level: Sequence[Pattern]) -> dict[Slot, bool]:
        """Say of each place wanted below these whether a summary shows it, and merge the nodes that none shows.

        What is merged is said to be light, too: keys may wait below it.
        """
        parents = set(level)
        wanted = {slot: weight for slot, weight in self._wanted().items() if slot[0] in parents}
        names = Counter(parent for parent, name in wanted if not is_plain(name))
        for parent, number in names.items():
            parent.is_crowded = parent.is_crowded or parent.named + number > MOST_CHILDREN
        self.show()
        weights = weigh(self._tree.root)
        whole = weights[self._tree.root]
        decided = {
            (parent, name): is_plain(name) or not parent.is_crowded or SHOWN.holds(weight, weights[parent], whole)
            for (parent, name), weight in wanted.items()
        }
        merged = self._tree.fold_level(level, SHOWN, weights)
        self._tree.hide_undecided()
        return decided | dict.fromkeys(merged, False)

    def _wanted(self) -> dict[Slot, Weight]:
        """The places that are wanted, each with the weight of the keys that want it."""
        keys: dict[Slot, int] = {}
        sizes: dict[Slot, int] = {}
        for one in self._keys:
            keys[one.slot] = keys.get(one.slot, 0) + 1
            sizes[one.slot] = sizes.get(one.slot, 0) + one.size_bytes
        return {slot: (number, sizes[slot]) for slot, number in keys.items()}

    def _place_again(self, decided: dict[Slot, bool]) -> None:
        """Place all keys that wait, and count those that have a place now."""
        waiting, self._keys, self._bytes = self._keys, [], 0
        self._place(waiting, decided)
        self._flush()

    def _place(self, keys: Iterable[Undecided], decided: dict[Slot, bool]) -> None:
        """Give keys the place that was decided on; what wants yet another one waits again."""
        for one in keys:
            node, _, wanted = self._tree.place(one.key, decided)
            if wanted is None:
                self._put(node, one)
            else:
                self.add(Undecided(one.key, one.kind, one.layout, one.row, wanted))
