"""Collects the keys of one pattern and one type, in buffers that are counted many rows at a time."""

from __future__ import annotations

from typing import TypeAlias

from rtui.analysis.expiry_bins import ExpiryScale
from rtui.analysis.tally import Columns, Tally

Layout: TypeAlias = tuple[str, ...]
"""Which columns rows have, by their names in `Columns`."""

Row: TypeAlias = tuple[int, ...]
"""The facts of one key, in the order of its layout."""


class Buffer:
    """Rows of one cell and one layout that are not counted yet."""

    __slots__ = ("_layout", "append", "cell", "rows")

    def __init__(self, cell: Cell, layout: Layout) -> None:
        self.cell = cell
        self.rows: list[Row] = []
        self.append = self.rows.append
        """Takes up a row."""
        self._layout = layout

    def flush(self) -> int:
        """Count the rows; returns how many there were."""
        rows = self.rows
        count = len(rows)
        if count:
            columns = Columns(**dict(zip(self._layout, zip(*rows, strict=True), strict=True)))
            self.cell.final.tally.add(count, columns)
            rows.clear()
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
        return self.tally.keys + sum(len(buffer.rows) for buffer in self._buffers.values())

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
