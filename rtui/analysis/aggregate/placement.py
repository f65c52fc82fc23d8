"""Finds the rows of a batch of keys, mostly by their shapes instead of walking the tree of patterns.

Walking the tree costs several microseconds a key. But a keyspace has few shapes: in `shop:user:42:cart` every digit but
0 is replaced by 0, which gives the shape `shop:user:00:cart`, and all keys of that shape have the same node if the tree
says so (the *likeness* of the node, see `rtui.keyspace.text.identifiers`): digits may differ in an id, not in a name
like `page7`. A second kind of shape marks whole parts that are numbers, UUIDs or hashes, of whatever length. For a
batch, the shapes of all keys are computed by one call of `bytes.translate`, and the lists of rows that their facts go
into are looked up in a dictionary; only keys of unknown shapes are located in the tree. A shape is remembered when the
node was there before the key, since most nodes that are new have one key only: `page_7`, a random token. Rows know
their shapes, so when a node is merged only these are forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from rtui.analysis.aggregate.pattern_tree import Layout, PatternTree, Rows
from rtui.keyspace.text.identifiers import DIGITS, MARKS, Shapes
from rtui.keyspace.text.segments import Separators

MOST_SHAPES: Final = 16_384
"""Shapes that are remembered, all together; beyond that all are forgotten and learnt anew."""

LONGEST_SHAPE: Final = 128
"""No longer shape is remembered, in bytes."""


@dataclass(slots=True)
class _KnownShapes:
    """The rows of shapes, for keys of one type of which the same facts are known."""

    by_digits: dict[bytes, Rows] = field(default_factory=dict)
    by_marks: dict[bytes, tuple[Rows, int]] = field(default_factory=dict)
    """With the likeness of the node."""


class Placement:
    """Maps keys to the rows that collect their facts."""

    def __init__(self, tree: PatternTree, separators: Separators) -> None:
        self._tree = tree
        self._shapes = Shapes(separators.values)
        self._known: dict[tuple[bytes | None, Layout], _KnownShapes] = {}
        self._remembered = 0

    def find(self, keys: Sequence[bytes], key_type: bytes | None, layout: Layout) -> Sequence[Rows]:
        """Return the rows of each of these keys of one type, whose facts have this layout."""
        while self._tree.removed:
            self._forget(self._tree.removed.pop())
        known = self._known.get((key_type, layout))
        if known is None:
            known = self._known[key_type, layout] = _KnownShapes()
        shapes = self._shapes.of_digits(keys)
        found = list(map(known.by_digits.get, shapes))
        unknown = [index for index, rows in enumerate(found) if rows is None]
        if unknown:
            marked = self._shapes.of_marks([keys[index] for index in unknown])
            for index, shape in zip(unknown, marked, strict=True):
                learnt = known.by_digits.get(shapes[index])
                if learnt is not None:
                    found[index] = learnt
                    continue
                place = None if shape is None else known.by_marks.get(shape)
                if place is None:
                    node, likeness = self._tree.locate(keys[index])
                    place = self._tree.rows_of(node, key_type, layout), likeness
                    if likeness & MARKS and shape is not None and self._has_room(shape):
                        known.by_marks[shape] = place
                        place[0].shapes.append(shape)
                rows, likeness = place
                if likeness & DIGITS and self._has_room(shapes[index]):
                    known.by_digits[shapes[index]] = rows
                    rows.shapes.append(shapes[index])
                found[index] = rows
        return cast("list[Rows]", found)

    def _has_room(self, shape: bytes) -> bool:
        """Whether a shape may be remembered; all others may have been forgotten for it."""
        if len(shape) > LONGEST_SHAPE:
            return False
        if self._remembered >= MOST_SHAPES:
            self._forget_all()
        self._remembered += 1
        return True

    def _forget(self, rows: Rows) -> None:
        """Forget the shapes of rows whose node was merged."""
        known = self._known[rows.key_type, rows.layout]
        for shape in rows.shapes:
            self._remembered -= (known.by_digits.pop(shape, None) is not None) + (
                known.by_marks.pop(shape, None) is not None
            )
        rows.shapes = []

    def _forget_all(self) -> None:
        for known in self._known.values():
            for rows in known.by_digits.values():
                rows.shapes = []
            for rows, _ in known.by_marks.values():
                rows.shapes = []
            known.by_digits.clear()
            known.by_marks.clear()
        self._remembered = 0
