"""The lines that the charts of several panels share: placing, figures as text, bars, and the map of the hash slots.

The map of the 16,384 slots has rows of cells, each for as many neighbouring slots, marked by how far they deviate. A
cell near the mean, or no further from it than chance would bring it, is quiet: CRC16 spreads keys at random, so a cell
that should hold 49 keys has 28 to 70 nearly always. Cells below and above stand out in two steps each. Of a cluster the
map also shows which node serves each slot, which slots are being moved, and which nobody serves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import isinf, sqrt
from operator import mul
from typing import Final, LiteralString, NamedTuple

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.humanize import Mark, counted
from rtui.analysis.report.document import ClusterReport, CoverageKind
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.slots import Balance
from rtui.analysis.report.tables.table import COVERAGE_MARKS
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import MARGIN, TERMINAL, bar, display_text, prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, left, line_width, literal, right, width_of


def beside_each_other(first: Sequence[Line], second: Sequence[Line], cells: int) -> list[Line]:
    """Join the lines of two columns, the second from cell `cells` on."""
    pairs = zip_longest((clip(one, cells - 1) for one in first), second, fillvalue=())
    return [(*one, gap(cells - line_width(one)), *other) for one, other in pairs]


def inset(lines: Sequence[Line], size: Size) -> list[Line]:
    """Return the lines cut to the size of a chart, one cell further in, where all lines of the screen begin."""
    return [(gap(MARGIN), *clip(line, size.width - 2 * MARGIN)) for line in lines[: size.height]]


def paragraph(text: SafeText, width: int, role: Role) -> list[Line]:
    """Break a text into lines without the margin that prose has elsewhere."""
    return [line[1:] for line in prose(text, width + 2 * MARGIN, role)]


def labelled(word: str, lines: Sequence[Line], cells: int) -> list[Line]:
    """Return lines with a word of at most `cells` cells before the first one."""
    return [(Span(left(SafeText("" if at else word), cells), Role.MUTED), *line) for at, line in enumerate(lines)]


SHORT_FROM: Final = 1_000_000
"""Counts from here on are shortened beside a bar."""


def keys_text(figure: Figure | None, coverage: CoverageKind) -> SafeText:
    """Return a count of keys: `114,000`, `≥ 114,000`, `≈ 114k (112–116k)`; estimates claim few digits."""
    if figure is None:
        return fmt.NOTHING
    mark = COVERAGE_MARKS[coverage]
    if isinstance(figure, Estimate) or mark is Mark.ABOUT or figure >= SHORT_FROM:
        return fmt.written(figure, fmt.short_count, mark)
    return fmt.count(round(figure), mark)


def size_text(figure: Figure | None, coverage: CoverageKind) -> SafeText:
    """Return a sum of bytes: `260 MiB`, `≥ 260 MiB`, `≈ 260 MiB (240–330 MiB)`."""
    return fmt.NOTHING if figure is None else fmt.written(figure, fmt.size, COVERAGE_MARKS[coverage])


def share_text(figure: Figure | None) -> SafeText:
    """Return a share: `38%`, `≈38% (33–44%)`; never a lower bound, since more keys may lower it."""
    return fmt.NOTHING if figure is None else fmt.written(figure, fmt.share)


def without(total: Figure, part: Figure) -> Figure:
    """Return a number of keys less a part of them, at least 0."""
    if not isinstance(total, Estimate) and not isinstance(part, Estimate):
        return max(0, total - part)
    whole, less = as_estimate(total), as_estimate(part)
    low, value, high = whole.low - less.high, whole.value - less.value, whole.high - less.low
    return Estimate(max(0.0, low), max(0.0, value), max(0.0, high))


def share_within(part: Figure, total: Figure) -> Figure:
    """Return a part as a share of the total, with an interval if either is an estimate."""
    value = min(1.0, plain(part) / max(1.0, plain(total)))
    if not isinstance(total, Estimate) and not isinstance(part, Estimate):
        return value
    known, whole = as_estimate(part), as_estimate(total)
    low = 0.0 if isinf(whole.high) else known.low / max(1.0, whole.high)
    high = 1.0 if isinf(known.high) else known.high / max(1.0, whole.low)
    return Estimate(min(low, value), value, min(1.0, max(high, value)))


MIN_LABEL_CELLS: Final = 8
"""A name beside a bar keeps this width; before that is cut further, the bar is left out."""

MIN_BAR_CELLS: Final = 4
"""Shorter bars are left out."""

SLIVER: Final = literal("▏")


class HorizontalBar(NamedTuple):
    """A name, figures in columns, and a bar."""

    name: SafeText
    figures: tuple[SafeText, ...]
    """As many for each of the bars that stand together."""
    value: float | None
    """The value that the bar's length represents; None for no bar."""
    name_role: Role = Role.TEXT
    role: Role = Role.BAR


def bar_lines(
    bars: Sequence[HorizontalBar],
    width: int,
    *,
    whole: float | None = None,
    name_cells: int | None = None,
    cap: int = 48,
) -> list[Line]:
    """Return a line for each bar; a bar takes the width left by names and figures, at most `cap` cells.

    A full bar stands for `whole`, or for the largest value. Figures that do not fit are left out, the rightmost first.
    """
    if not bars:
        return []
    cells = [max(map(width_of, column)) for column in zip(*(one.figures for one in bars), strict=True)]
    figures = sum(cells) + 2 * len(cells)
    longest = max(width_of(one.name) for one in bars)
    names = min(longest, name_cells or longest, width - figures - MIN_BAR_CELLS - 2)
    names = max(names, min(longest, MIN_LABEL_CELLS))
    bar_cells = min(cap, width - names - figures - 2)
    most = max(one.value or 0.0 for one in bars) if whole is None else whole
    lines: list[Line] = []
    for one in bars:
        spans = [Span(left(cut_middle(one.name, names), names), one.name_role)]
        cells_left = width - names
        for at, (text, size) in enumerate(zip(one.figures, cells, strict=True)):
            if cells_left < size + 2:
                break
            spans += (gap(2), Span(right(text, size), Role.MUTED if at else Role.TEXT))
            cells_left -= size + 2
        if one.value is not None and bar_cells >= MIN_BAR_CELLS and cells_left >= bar_cells + 2:
            filled, blank = bar(one.value / most if most else 0.0, bar_cells)
            if not filled and one.value > 0:
                filled, blank = SLIVER, SafeText(blank[1:])
            spans += (gap(2), Span(filled, one.role), Span(blank))
        lines.append(tuple(spans))
    return lines


EIGHTHS: Final = "▁▂▃▄▅▆▇█"
ASCII_EIGHTHS: Final = "_.:-=+*#"
"""Vertical bars of one to eight eighths of a cell."""


def standing(values: Sequence[float], height: int, most: float | None = None) -> list[SafeText]:
    """Return vertical bars, one cell wide each, as `height` lines of text from the top.

    `most`, or the largest value, fills the height; a positive value has an eighth of a cell at least.
    """
    ramp = ASCII_EIGHTHS if TERMINAL.ascii_only else EIGHTHS
    whole = max([*values, 0.0]) if most is None else most
    full = height * len(ramp)
    eighths = [max(1, min(full, round(value / whole * full))) if value > 0 else 0 for value in values]
    return [
        SafeText("".join(ramp[min(reach, len(ramp)) - 1] if (reach := one - below) > 0 else " " for one in eighths))
        for below in range(full - len(ramp), -1, -len(ramp))
    ]


MAX_COLUMNS: Final = 128
MAX_ROWS: Final = 32

GUTTER_CELLS: Final = 8
"""Cells at the left of a row: the number of its first slot, and the mark of the cursor's row."""

STEPS: Final = (0.5, 0.8, 1.25, 2.0)
"""Borders between the shades, as multiples of an even spread."""

CHANCE_DEVIATIONS: Final = 3.0
CHANCE_KEYS: Final = 2
"""Chance explains this number of standard deviations and, where few keys are expected, this number of keys more."""


@dataclass(frozen=True, slots=True)
class Shade:
    """How one step of deviation is drawn; the characters alone tell the steps apart, without colour."""

    character: LiteralString
    ascii_character: LiteralString
    role: Role
    meaning: LiteralString

    @property
    def span(self) -> Span:
        return Span(literal(self.ascii_character) if TERMINAL.ascii_only else literal(self.character), self.role)


SHADES: Final = (
    Shade("░", "=", Role.DEV_LOW_2, "<0.5×"),
    Shade("▒", "-", Role.DEV_LOW_1, "<0.8×"),
    Shade("·", ".", Role.DEV_MEAN, "mean, or chance"),
    Shade("▓", "+", Role.DEV_HIGH_1, ">1.25×"),
    Shade("█", "#", Role.DEV_HIGH_2, "2× or more"),
)
"""From far below the mean to far above it."""

MEAN: Final = SHADES[2]

NOT_OWNED: Final = Span(literal(" "))
"""A cell none of whose slots belongs to the node that was scanned, or has been listed."""

CURSOR: Final = Span(literal("┼"), Role.HEAT_ON)


@dataclass(frozen=True, slots=True)
class SlotMap:
    """The layout of a map; columns, rows and slots per cell are powers of two."""

    columns: int
    rows: int

    @property
    def slots_per_cell(self) -> int:
        return SLOTS // (self.columns * self.rows)

    def place(self, slot: int) -> tuple[int, int]:
        return divmod(slot // self.slots_per_cell, self.columns)

    def cell(self, slot: int) -> range:
        """Return the slots that share a cell with this one."""
        first = slot - slot % self.slots_per_cell
        return range(first, first + self.slots_per_cell)

    def moved(self, slot: int, rows: int, columns: int) -> int:
        """Return the first slot of the cell at this distance, or of the nearest cell of the map."""
        row, column = self.place(slot)
        row = max(0, min(self.rows - 1, row + rows))
        at = max(0, min(self.columns * self.rows - 1, row * self.columns + column + columns))
        return at * self.slots_per_cell


def fitting_map(width: int, height: int) -> SlotMap:
    """Return the largest map in this space, at least 16 by 2 cells."""
    columns, rows = 16, 2
    while columns * 2 <= min(MAX_COLUMNS, width):
        columns *= 2
    while rows * 2 <= min(MAX_ROWS, height):
        rows *= 2
    return SlotMap(columns, rows)


def flagged(ranges: Sequence[tuple[int, int]] | None) -> bytes:
    """Return a flag for each slot: 1 if it is in one of the ranges (first, last); all 1 for None."""
    if ranges is None:
        return bytes([1]) * SLOTS
    flags = bytearray(SLOTS)
    for first, last in ranges:
        flags[first : last + 1] = bytes([1]) * (last + 1 - first)
    return bytes(flags)


def masked(loads: Sequence[int], flags: bytes) -> Sequence[int]:
    """Return the loads of slots, 0 where the flag is."""
    return loads if all(flags) else list(map(mul, loads, flags))


def shade_of(load: float, even: float, *, is_count: bool) -> Shade:
    """Return the shade of a load next to the `even` one; for counts of keys, deviations by chance are not shaded."""
    if even <= 0:
        return MEAN
    if is_count and abs(load - even) <= CHANCE_DEVIATIONS * sqrt(even) + CHANCE_KEYS:
        return MEAN
    return SHADES[bisect_right(STEPS, load / even)]


def legend(shades: Sequence[Shade] = SHADES) -> Line:
    spans = [gap(GUTTER_CELLS)]
    for shade in shades:
        spans += (shade.span, gap(1), Span(literal(shade.meaning), Role.MUTED), gap(2))
    return tuple(spans[:-1])


def shaded(_cell: range, shade: Shade | None) -> Span:
    """Return a cell in the colour of its shade; None is for one none of whose slots was scanned."""
    return NOT_OWNED if shade is None else shade.span


def map_lines(
    slot_map: SlotMap,
    loads: Sequence[int],
    compared: bytes,
    cursor: int,
    *,
    is_count: bool,
    drawn: Callable[[range, Shade | None], Span] = shaded,
) -> list[Line]:
    """Return the rows of the map; neighbouring cells of one colour are one span, the cursor's cell is its own.

    The loads of slots whose flag in `compared` is 0 are left out. `drawn` makes a cell of its slots and their shade.
    """
    per_cell, slots, loads = slot_map.slots_per_cell, sum(compared), masked(loads, compared)
    even = sum(loads) / slots if slots else 0.0
    cursor_row, cursor_column = slot_map.place(cursor)
    lines: list[Line] = []
    for row in range(slot_map.rows):
        row_start = row * slot_map.columns * per_cell
        spans: list[Span] = []
        for column in range(slot_map.columns):
            start = row_start + column * per_cell
            own_slots = sum(compared[start : start + per_cell])
            if (row, column) == (cursor_row, cursor_column):
                cell = CURSOR
            else:
                load = sum(loads[start : start + per_cell])
                shade = shade_of(load, even * own_slots, is_count=is_count) if own_slots else None
                cell = drawn(range(start, start + per_cell), shade)
            if spans and cell is not CURSOR and spans[-1] is not CURSOR and spans[-1].role is cell.role:
                spans[-1] = Span(SafeText(spans[-1].text + cell.text), cell.role)
            else:
                spans.append(cell)
        is_cursor_row = row == cursor_row
        mark = Span(literal(" › ") if is_cursor_row else literal("   "), Role.ACCENT)
        number = Span(SafeText(f"{row_start:>5}"), Role.TEXT if is_cursor_row else Role.FAINT)
        lines.append((number, mark, *spans))
    return lines


ROLES: Final = (Role.HASH, Role.LIST, Role.STRING, Role.SET, Role.STREAM, Role.ZSET, Role.JSON)
"""The colours of nodes in the order of their first slots, again and again; their names stand beside the map."""

MOVING: Final = Shade("»", ">", Role.WARN, "moving")
UNSERVED: Final = Shade("×", "x", Role.BAD, "nobody's")


SHORT_MEANINGS: Final[tuple[LiteralString, ...]] = ("<0.5×", "<0.8×", "mean", ">1.25×", "2×+")
"""The legend of the shades where room is short."""


class SlotOwners:
    """Whose each slot of a cluster is."""

    def __init__(self, cluster: ClusterReport) -> None:
        self._cluster = cluster
        self._moving = {one.slot: one for one in cluster.moving}
        self._owners: list[int | None] = [None] * SLOTS
        for at, node in enumerate(cluster.nodes):
            for first, last in node.slots:
                self._owners[first : last + 1] = [at] * (last + 1 - first)

    @property
    def count(self) -> int:
        return len(self._cluster.nodes)

    def role(self, at: int) -> Role:
        return ROLES[at % len(ROLES)]

    def drawn(self, cell: range, shade: Shade | None) -> Span:
        """Return a cell of the map: in the colour of its first slot's node, or a sign for a slot in trouble."""
        owners = self._owners[cell.start : cell.stop]
        if None in owners:
            return UNSERVED.span
        if not self._moving.keys().isdisjoint(cell):
            return MOVING.span
        return NOT_OWNED if shade is None or owners[0] is None else Span(shade.span.text, self.role(owners[0]))

    def legend(self) -> tuple[Shade, ...]:
        """Return the legend of the map's characters in the colours of nodes, shorter beside slots in trouble."""
        wrong = [*([MOVING] if self._moving else []), *([UNSERVED] if None in self._owners else [])]
        meanings = SHORT_MEANINGS if wrong else [one.meaning for one in SHADES]
        pairs = zip(SHADES, meanings, strict=True)
        return (*(replace(one, role=Role.TEXT, meaning=meaning) for one, meaning in pairs), *wrong)

    def headline(self) -> tuple[Span, ...]:
        """Return the number of slots that are being moved, and of slots that no node serves."""
        moving, unserved = len(self._moving), self._owners.count(None)
        spans = [Span(SafeText(f"{moving:,} moving"), Role.WARN)] if moving else []
        return (*spans, *([Span(SafeText(f"{unserved:,} not served"), Role.BAD)] if unserved else []))

    def name(self, slot: int, cell: range) -> Span:
        """Return the node of a slot, with how many more its cell has."""
        places = list(dict.fromkeys((self._owners[slot], *self._owners[cell.start : cell.stop])))
        served = [at for at in places if at is not None]
        if not served:
            return Span(literal("not served"), Role.BAD)
        label = display_text(self._cluster.nodes[served[0]].label)
        more = f" and {counted(len(served) - 1, 'more node')}" if len(served) > 1 else ""
        return Span(SafeText(f"{label}{more}"), self.role(served[0]))

    def notes(self, cell: range) -> list[Line]:
        """Return which slots of a cell are being moved or not served, one line for each kind."""
        lines: list[Line] = []
        moving = [self._moving[slot] for slot in cell if slot in self._moving]
        if moving:
            more = f" and {len(moving) - 1:,} more" if len(moving) > 1 else ""
            lines.append(
                (Span(SafeText(f"slot {moving[0].slot:,} is moving to {display_text(moving[0].to)}{more}"), Role.WARN),)
            )
        unserved = [slot for slot in cell if self._owners[slot] is None]
        if unserved and len(unserved) < len(cell):
            lines.append((Span(SafeText(f"{counted(len(unserved), 'slot')} of them not served"), Role.BAD),))
        return lines

    def bars(self, width: int, most: int, *, by_bytes: bool) -> list[Line]:
        """Return a line for each of the first nodes with its keys, or bytes where all are known, its share, and a bar.

        The bars are as long as beside all others.
        """
        balance, nodes = Balance(self._cluster), self._cluster.nodes
        by_bytes = by_bytes and balance.memory_bytes is not None
        total = balance.memory_bytes if by_bytes else balance.keys
        values = [(one.memory_bytes if by_bytes else one.keys) if balance.is_read(one) else None for one in nodes]
        bars = []
        for at, (node, value) in enumerate(zip(nodes[:most], values, strict=False)):
            coverage = CoverageKind.EXACT if balance.is_whole(node) else CoverageKind.PARTIAL
            figure = size_text(value, coverage) if by_bytes else keys_text(value, coverage)
            share = fmt.NOTHING if value is None or not total else fmt.share(plain(value) / total)
            role = Role.WARN if balance.standing(node) else Role.BAR
            load = None if value is None else plain(value)
            bars.append(HorizontalBar(display_text(node.label), (figure, share), load, self.role(at), role))
        return bar_lines(bars, width, whole=max((plain(value) for value in values if value is not None), default=0.0))
