"""What a pass hands on: keys of one type and what was learnt of each, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.tally import Columns, Tally


@dataclass(frozen=True, slots=True)
class Inspected:
    """A batch of keys of one type; each column is parallel to `keys`, or None where the fact is known of none of them.

    Keys of which something is missing that others have come in a batch of their own, so that no column has holes.
    """

    kind: bytes | None
    """The type as the server names it; None where it may not be asked."""
    keys: Sequence[bytes]
    ttl_ms: Sequence[int] | None = None
    """What is left of the life in milliseconds, NO_EXPIRY for keys that do not expire."""
    memory_bytes: Sequence[int] | None = None
    """MEMORY USAGE with its default samples."""
    idle_s: Sequence[int] | None = None
    frequency: Sequence[int] | None = None
    """The LFU counter, 0 … 255."""
    lengths: Sequence[int] | None = None
    """Bytes of a string, else the number of elements."""
    note: str = ""
    """What one has to know of these keys, such as why their memory was not asked; a safe sentence."""


Layout: TypeAlias = tuple[str, ...]
"""Which columns rows have, by their names in `Columns`."""


class Buffer:
    """Facts of keys of one cell and one layout that are not counted yet.

    They stand one after the other, key by key, so that a column is a slice, and no row has to be held.
    """

    __slots__ = ("_layout", "cell", "values")

    def __init__(self, cell: Cell, layout: Layout) -> None:
        self.cell = cell
        self.values: list[int] = []
        """Extended by the facts of a key in the order of the layout; of a key without any, by one number."""
        self._layout = layout

    @property
    def keys(self) -> int:
        """How many keys wait."""
        return len(self.values) // max(1, len(self._layout))

    def flush(self) -> int:
        """Count the keys; returns how many there were."""
        values, width = self.values, len(self._layout)
        count = self.keys
        if count:
            columns = Columns(**{name: values[at::width] for at, name in enumerate(self._layout)})
            self.cell.final.tally.add(count, columns)
            values.clear()
        return count


class Cell:
    """What is known of the keys of one pattern and one type; it may have been poured into another since."""

    __slots__ = ("_buffers", "_into", "tally")

    def __init__(self, scale: ExpiryScale) -> None:
        self.tally = Tally(scale)
        """What has been counted."""
        self._into: Cell | None = None
        self._buffers: dict[Layout, Buffer] = {}

    @property
    def final(self) -> Cell:
        """Where its keys are counted: itself, or what it was poured into."""
        cell = self
        while cell._into is not None:
            cell = cell._into
        return cell

    @property
    def is_poured(self) -> bool:
        """Whether its keys are counted elsewhere."""
        return self._into is not None

    @property
    def keys(self) -> int:
        """All keys so far, those in buffers too."""
        return self.tally.keys + sum(buffer.keys for buffer in self._buffers.values())

    def buffer(self, layout: Layout) -> tuple[Buffer, bool]:
        """The buffer for rows of this layout, and whether it is new."""
        found = self._buffers.get(layout)
        if found is not None:
            return found, False
        made = self._buffers[layout] = Buffer(self, layout)
        return made, True

    def pour(self, into: Cell) -> None:
        """Count everything in another cell, what waits in buffers too, now and from now on."""
        for buffer in self._buffers.values():
            buffer.flush()
        into.tally.merge(self.tally)
        self.tally = into.tally
        self._into = into
