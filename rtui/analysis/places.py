"""Finds the buffers of many keys at once, by the shapes of keys whose place is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from rtui.analysis.cell import Buffer, Layout
from rtui.analysis.pattern_tree import PatternTree
from rtui.keyspace.identifiers import DIGITS, MARKS
from rtui.keyspace.segments import Separators
from rtui.keyspace.shapes import Shapes

MOST_SHAPES: Final = 16_384
"""Shapes that are remembered, all together; when there are more, they are learnt anew."""

LONGEST_SHAPE: Final = 128
"""No longer shape is remembered, in bytes."""

Place: TypeAlias = tuple[Buffer, int]
"""Where a key belongs, and which keys belong there too: see `PatternTree.place`."""


@dataclass(slots=True)
class _Known:
    """The places of shapes, for keys of one type of which the same facts are known."""

    by_digits: dict[bytes, Buffer] = field(default_factory=dict)
    by_marks: dict[bytes, Place] = field(default_factory=dict)


class Places:
    """From keys to the buffers that collect what is known of them."""

    def __init__(self, tree: PatternTree, separators: Separators) -> None:
        self.buffers: list[Buffer] = []
        """All there are."""
        self._tree = tree
        self._folds = tree.folds
        self._shapes = Shapes(separators.values)
        self._known: dict[tuple[bytes | None, Layout], _Known] = {}
        self._remembered = 0

    def find(self, keys: Sequence[bytes], kind: bytes | None, layout: Layout) -> Sequence[Buffer]:
        """The buffers of keys of one type, of which the facts of this layout are known."""
        known = self._known.get((kind, layout))
        if known is None:
            known = self._known[kind, layout] = _Known()
        shapes = self._shapes.of_digits(keys)
        found = list(map(known.by_digits.get, shapes))
        if not all(found):
            missing = [index for index, buffer in enumerate(found) if buffer is None]
            marked = self._shapes.of_marks([keys[index] for index in missing])
            for index, shape in zip(missing, marked, strict=True):
                place = None if shape is None else known.by_marks.get(shape)
                if place is None:
                    place = self._place(keys[index], kind, layout)
                    if place[1] & MARKS and shape is not None and self._has_room(shape):
                        known.by_marks[shape] = place
                found[index], likeness = place
                if likeness & DIGITS and self._has_room(shapes[index]):
                    known.by_digits[shapes[index]] = place[0]
        return cast("list[Buffer]", found)

    def forget_poured(self) -> bool:
        """Let go of the buffers whose cells were poured into others; returns whether there may have been any."""
        if self._folds == self._tree.folds:
            return False
        self._folds = self._tree.folds
        self._forget()
        self.buffers = [buffer for buffer in self.buffers if not buffer.cell.is_poured]
        return True

    def _place(self, key: bytes, kind: bytes | None, layout: Layout) -> Place:
        """Find the place of one key by its segments."""
        node, likeness = self._tree.place(key)
        buffer, is_new = self._tree.cell(node, kind).buffer(layout)
        if is_new:
            self.buffers.append(buffer)
        return buffer, likeness

    def _has_room(self, shape: bytes) -> bool:
        """Whether a shape may be remembered; all others may have been forgotten for it."""
        if len(shape) > LONGEST_SHAPE:
            return False
        if self._remembered >= MOST_SHAPES:
            self._forget()
        self._remembered += 1
        return True

    def _forget(self) -> None:
        for known in self._known.values():
            known.by_digits.clear()
            known.by_marks.clear()
        self._remembered = 0
