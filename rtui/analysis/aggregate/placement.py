"""Finds the buffers of many keys at once, by the shapes of keys whose place is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from rtui.analysis.aggregate.buffers import Buffer, Cell, Layout
from rtui.analysis.aggregate.pattern_tree import Pattern, PatternTree, Slot
from rtui.analysis.aggregate.undecided import Undecided, UndecidedKeys
from rtui.keyspace.text.identifiers import DIGITS, MARKS, Shapes
from rtui.keyspace.text.segments import Separators

MOST_SHAPES: Final = 16_384
"""Shapes that are remembered, all together; when there are more, they are learnt anew."""

LONGEST_SHAPE: Final = 128
"""No longer shape is remembered, in bytes."""

Place: TypeAlias = tuple[Buffer, int]
"""Where a key belongs, and which keys belong there too: see `PatternTree.place`."""

NO_FACTS: Final = (0,)
"""What a key of which nothing is known leaves in a buffer."""


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
        self.undecided = UndecidedKeys(tree, self._put, self.flush)
        """Keys that have no place yet."""
        self._nowhere = Buffer(Cell(tree.scale), ())
        self._tree = tree
        self._folds = tree.folds
        self._shapes = Shapes(separators.values)
        self._known: dict[tuple[bytes | None, Layout], _Known] = {}
        self._remembered = 0

    def find(
        self, keys: Sequence[bytes], kind: bytes | None, layout: Layout
    ) -> tuple[Sequence[Buffer], Sequence[tuple[int, Slot]]]:
        """The buffers of keys of one type, of which the facts of this layout are known.

        And which of them have no place yet: their index, and the place they want. Their buffer counts nothing.
        """
        self._nowhere.values.clear()
        homeless: list[tuple[int, Slot]] = []
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
                    node, likeness, wanted = self._tree.place(keys[index])
                    if wanted is not None:
                        homeless.append((index, wanted))
                        found[index] = self._nowhere
                        continue
                    place = self._buffer(node, kind, layout), likeness
                    if likeness & MARKS and shape is not None and self._has_room(shape):
                        known.by_marks[shape] = place
                found[index], likeness = place
                if likeness & DIGITS and self._has_room(shapes[index]):
                    known.by_digits[shapes[index]] = place[0]
        return cast("list[Buffer]", found), homeless

    def flush(self) -> None:
        """Count all keys that wait in buffers."""
        for buffer in self.buffers:
            buffer.flush()

    def forget_poured(self) -> bool:
        """Let go of the buffers whose cells were poured into others; returns whether there may have been any."""
        if self._folds == self._tree.folds:
            return False
        self._folds = self._tree.folds
        self._forget()
        self.buffers = [buffer for buffer in self.buffers if not buffer.cell.is_poured]
        return True

    def _buffer(self, node: Pattern, kind: bytes | None, layout: Layout) -> Buffer:
        """The buffer for the keys of one type there."""
        buffer, is_new = self._tree.cell(node, kind).buffer(layout)
        if is_new:
            self.buffers.append(buffer)
        return buffer

    def _put(self, node: Pattern, one: Undecided) -> None:
        """Count a key whose place is decided."""
        self._buffer(node, one.kind, one.layout).values.extend(one.row or NO_FACTS)

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
