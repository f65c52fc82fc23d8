"""Finds the buffers of a batch of keys, mostly by their shapes instead of walking the tree of patterns.

Walking the tree costs several microseconds a key. But a keyspace has few shapes: in `shop:user:42:cart` every digit but
0 is replaced by 0, which gives the shape `shop:user:00:cart`, and all keys of that shape have the same node if the tree
says so (the *likeness* of the node, see `rtui.keyspace.text.identifiers`): digits may differ in an id, not in a name
like `page7`. A second kind of shape marks whole parts that are numbers, UUIDs or hashes, of whatever length. For a
batch, the shapes of all keys are computed by one call of `bytes.translate`, and their buffers looked up in a
dictionary; only keys of unknown shapes are located in the tree, and their shapes remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from rtui.analysis.aggregate.pattern_tree import MissingNode, PatternNode, PatternTree
from rtui.analysis.aggregate.tally import Buffer, Layout, Tally
from rtui.analysis.aggregate.unplaced import UnplacedKey, UnplacedKeys
from rtui.keyspace.text.identifiers import DIGITS, MARKS, Shapes
from rtui.keyspace.text.segments import Separators

MOST_SHAPES: Final = 16_384
"""Shapes that are remembered, all together; beyond that all are forgotten and learnt anew."""

LONGEST_SHAPE: Final = 128
"""No longer shape is remembered, in bytes."""

NO_FACTS: Final = (0,)
"""The row in a buffer of a key of which nothing is known."""


@dataclass(slots=True)
class _KnownShapes:
    """The buffers of shapes, for keys of one type of which the same facts are known."""

    by_digits: dict[bytes, Buffer] = field(default_factory=dict)
    by_marks: dict[bytes, tuple[Buffer, int]] = field(default_factory=dict)
    """With the likeness of the node."""


class Placement:
    """Maps keys to the buffers that collect their facts, and holds the keys that have none yet."""

    def __init__(self, tree: PatternTree, separators: Separators) -> None:
        self.buffers: list[Buffer] = []
        """The buffers of all nodes."""
        self.unplaced = UnplacedKeys(tree, self._count_key, self.flush)
        """Keys that have no node yet."""
        self._discard = Buffer(Tally(tree.scale), ())
        """Takes the rows of keys without a node, and is never counted."""
        self._tree = tree
        self._merges = tree.merges
        self._shapes = Shapes(separators.values)
        self._known: dict[tuple[bytes | None, Layout], _KnownShapes] = {}
        self._remembered = 0

    def find(
        self, keys: Sequence[bytes], key_type: bytes | None, layout: Layout
    ) -> tuple[Sequence[Buffer], Sequence[tuple[int, MissingNode]]]:
        """Return the buffer of each of these keys of one type, whose facts have this layout.

        Also return which keys have no node yet, by index, with the node that is missing. Their buffer is one whose rows
        are dropped.
        """
        self._discard.values.clear()
        unplaced: list[tuple[int, MissingNode]] = []
        known = self._known.get((key_type, layout))
        if known is None:
            known = self._known[key_type, layout] = _KnownShapes()
        shapes = self._shapes.of_digits(keys)
        found = list(map(known.by_digits.get, shapes))
        if not all(found):
            unknown = [index for index, buffer in enumerate(found) if buffer is None]
            marked = self._shapes.of_marks([keys[index] for index in unknown])
            for index, shape in zip(unknown, marked, strict=True):
                place = None if shape is None else known.by_marks.get(shape)
                if place is None:
                    node, likeness, missing = self._tree.locate(keys[index])
                    if missing is not None:
                        unplaced.append((index, missing))
                        found[index] = self._discard
                        continue
                    place = self._buffer(node, key_type, layout), likeness
                    if likeness & MARKS and shape is not None and self._has_room(shape):
                        known.by_marks[shape] = place
                found[index], likeness = place
                if likeness & DIGITS and self._has_room(shapes[index]):
                    known.by_digits[shapes[index]] = place[0]
        return cast("list[Buffer]", found), unplaced

    def flush(self) -> None:
        """Count all keys that wait in buffers."""
        for buffer in self.buffers:
            buffer.flush()

    def forget_merged(self) -> None:
        """Drop the buffers of nodes that were merged into others."""
        if self._merges != self._tree.merges:
            self._merges = self._tree.merges
            self._forget_shapes()
            self.buffers = [buffer for node in self._tree.root.walk() for buffer in node.buffers.values()]

    def _buffer(self, node: PatternNode, key_type: bytes | None, layout: Layout) -> Buffer:
        found = node.buffers.get((key_type, layout))
        if found is None:
            found = node.buffers[key_type, layout] = Buffer(self._tree.tally(node, key_type), layout)
            self.buffers.append(found)
        return found

    def _count_key(self, node: PatternNode, one: UnplacedKey) -> None:
        self._buffer(node, one.key_type, one.layout).values.extend(one.row or NO_FACTS)

    def _has_room(self, shape: bytes) -> bool:
        """Whether a shape may be remembered; all others may have been forgotten for it."""
        if len(shape) > LONGEST_SHAPE:
            return False
        if self._remembered >= MOST_SHAPES:
            self._forget_shapes()
        self._remembered += 1
        return True

    def _forget_shapes(self) -> None:
        for known in self._known.values():
            known.by_digits.clear()
            known.by_marks.clear()
        self._remembered = 0
