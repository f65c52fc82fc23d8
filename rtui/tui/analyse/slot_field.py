"""The 16,384 slots as a field of cells, each so many neighbours as the room asks for, and how loaded each cell is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.format import in_ascii
from rtui.tui.kit.styled_text import Line, Role, Span, gap, own

MOST_COLUMNS: Final = 128
MOST_ROWS: Final = 32

GUTTER_CELLS: Final = 8
"""Number of the first slot of a row, and where the cursor's row is."""

STEPS: Final = (0.5, 1.5, 3.0)
"""Borders of the steps of load, as multiples of an even spread."""


@dataclass(frozen=True, slots=True)
class Shade:
    """How one step of load is drawn: the character alone tells it, without any colour."""

    character: LiteralString
    plain: LiteralString
    role: Role
    meaning: LiteralString


SHADES: Final = (
    Shade("·", ".", Role.FAINT, "none"),
    Shade("░", ":", Role.MUTED, "below half the mean"),
    Shade("▒", "=", Role.BAR, "the mean"),
    Shade("▓", "%", Role.ACCENT, "1.5×"),
    Shade("█", "#", Role.WARN, "3× or more"),
)
"""From nothing to much; each from the border of STEPS before it on."""

STRANGE: Final = own(" ")
"""A cell none of whose slots belongs to the node that was asked."""


CROSS: Final = own("┼")
"""The cell under the cursor; beside the field stands what it holds."""


@dataclass(frozen=True, slots=True)
class Field:
    """How the slots are laid out: rows of cells, each of as many neighbouring slots; all are powers of two."""

    columns: int
    rows: int

    @property
    def slots_a_cell(self) -> int:
        """How many slots a cell stands for."""
        return SLOTS // (self.columns * self.rows)

    def place(self, slot: int) -> tuple[int, int]:
        """Return the row and the column of a slot."""
        return divmod(slot // self.slots_a_cell, self.columns)

    def cell(self, slot: int) -> range:
        """Return the slots that share the cell of this one."""
        first = slot - slot % self.slots_a_cell
        return range(first, first + self.slots_a_cell)

    def moved(self, slot: int, rows: int, columns: int) -> int:
        """Return the first slot of the cell that lies so far away, as far as the field goes."""
        row, column = self.place(slot)
        row = max(0, min(self.rows - 1, row + rows))
        at = max(0, min(self.columns * self.rows - 1, row * self.columns + column + columns))
        return at * self.slots_a_cell


def fitting_field(width: int, height: int) -> Field:
    """Return the largest field within so many cells and lines, never smaller than 16 by 2."""
    columns, rows = 16, 2
    while columns * 2 <= min(MOST_COLUMNS, width):
        columns *= 2
    while rows * 2 <= min(MOST_ROWS, height):
        rows *= 2
    return Field(columns, rows)


def owned_slots(owned: Sequence[tuple[int, int]] | None) -> bytes:
    """Return a flag for each slot: whether the node that was asked answers for it."""
    if owned is None:
        return bytes([1]) * SLOTS
    flags = bytearray(SLOTS)
    for first, last in owned:
        flags[first : last + 1] = bytes([1]) * (last + 1 - first)
    return bytes(flags)


def shade_of(load: float, even: float) -> Shade:
    """Return how a load is drawn that would be `even` if all slots held as much."""
    if load <= 0 or even <= 0:
        return SHADES[0]
    return SHADES[1 + bisect_right(STEPS, load / even)]


def field_lines(field: Field, loads: Sequence[int], owned: bytes, cursor: int) -> list[Line]:
    """Return the rows of the field, each with the number of its first slot; the cursor's cell stands out."""
    total, mine = sum(loads), sum(owned)
    even = total / mine if mine else 0.0
    at_row, at_column = field.place(cursor)
    lines = []
    for row in range(field.rows):
        first = row * field.columns * field.slots_a_cell
        cells = [_cell(field, loads, owned, even, first + at * field.slots_a_cell) for at in range(field.columns)]
        here = row == at_row
        sign = Span(own(" ▸ ") if here else own("   "), Role.ACCENT)
        number = Span(SafeText(f"{first:>5}"), Role.TEXT if here else Role.FAINT)
        lines.append((number, sign, *_runs(cells, at_column if here else None)))
    return lines


def _cell(field: Field, loads: Sequence[int], owned: bytes, even: float, first: int) -> Span:
    """Return one cell."""
    end = first + field.slots_a_cell
    mine = sum(owned[first:end])
    if not mine:
        return Span(STRANGE)
    shade = shade_of(sum(loads[first:end]), even * mine)
    return Span(own(shade.plain) if in_ascii() else own(shade.character), shade.role)


def _runs(cells: Sequence[Span], cursor: int | None) -> Line:
    """Join neighbours of one look, which a slow link thanks for; the cursor's cell stays alone."""
    runs: list[Span] = []
    for at, cell in enumerate(cells):
        if at == cursor:
            runs.append(Span(CROSS, Role.HEAT_ON))
        elif runs and runs[-1].role is cell.role and at - 1 != cursor:
            runs[-1] = Span(SafeText(runs[-1].text + cell.text), cell.role)
        else:
            runs.append(cell)
    return tuple(runs)


def legend_line() -> Line:
    """Return what the shades mean."""
    spans: list[Span] = []
    for shade in SHADES:
        spans += (
            Span(own(shade.plain) if in_ascii() else own(shade.character), shade.role),
            gap(1),
            Span(own(shade.meaning), Role.MUTED),
            gap(2),
        )
    return tuple(spans[:-1])
