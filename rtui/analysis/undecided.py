"""Keys whose place in the tree of patterns is decided later, when enough of them are there to tell heavy names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias

from rtui.analysis.cell import Layout
from rtui.analysis.pattern_tree import KEPT, SHOWN, Pattern, PatternTree, Slot, Weight, weigh
from rtui.analysis.tally import Columns, Tally

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
    is light among thousands of keys loses those to `{*}`. Where no more than `MOST_KEYS` keys ever wait, nothing is
    lost, and the tree depends on the keys alone.
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
        self._place(other._keys, {})

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
        self._tree.sweep()

    def decide(self, *, is_final: bool) -> None:
        """Give every key its place: heavy names get a node, and stand-ins take the keys of all others.

        `is_final` also merges whatever has a node and is too light to be shown.
        """
        self._flush()
        whole = self._whole()
        self._since = whole[0] - self._decided_at[0], whole[1] - self._decided_at[1]
        self._decided_at = whole
        light: dict[Slot, bool] = {}
        for number in count():
            if not self._keys:
                break
            if number >= MOST_ROUNDS:
                decided = {one.slot: False for one in self._keys}
            else:
                decided = self._decide_at_last() if is_final else self._decide()
            waiting, self._keys, self._bytes = self._keys, [], 0
            self._place(waiting, light | decided)
            self._flush()
            light.update((slot, False) for slot, is_heavy in decided.items() if not is_heavy)
        self._tree.sweep()

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

    def _decide_at_last(self) -> dict[Slot, bool]:
        """Say of each place that is wanted whether a summary shows it, and merge the nodes that none shows."""
        self.show()
        weights = weigh(self._tree.root)
        whole = weights[self._tree.root]
        decided = {
            slot: not slot[0].is_crowded or SHOWN.holds(weight, weights[slot[0]], whole)
            for slot, weight in self._wanted().items()
        }
        self._tree.fold(SHOWN)
        self._tree.hide_undecided()
        return decided

    def _wanted(self) -> dict[Slot, Weight]:
        """The places that are wanted, each with the weight of the keys that want it."""
        keys: dict[Slot, int] = {}
        sizes: dict[Slot, int] = {}
        for one in self._keys:
            keys[one.slot] = keys.get(one.slot, 0) + 1
            sizes[one.slot] = sizes.get(one.slot, 0) + one.size_bytes
        return {slot: (number, sizes[slot]) for slot, number in keys.items()}

    def _place(self, keys: Iterable[Undecided], decided: dict[Slot, bool]) -> None:
        """Give keys the place that was decided on; what wants yet another one waits again."""
        for one in keys:
            node, _, wanted = self._tree.place(one.key, decided)
            if wanted is None:
                self._put(node, one)
            else:
                self.add(Undecided(one.key, one.kind, one.layout, one.row, wanted))
