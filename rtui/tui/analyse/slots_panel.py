"""What the Slots panel draws: the field, what is under its cursor, how even the spread is, and a cluster of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rtui.analysis.estimates import share
from rtui.analysis.humanize import counted, decimal, noun
from rtui.analysis.humanize import ratio as ratio_text
from rtui.analysis.report.document import CoverageKind, Report, SlotTag
from rtui.analysis.report.slot_balance import node_loads, skew
from rtui.analysis.report.tables.cell_text import written
from rtui.analysis.report.tables.slots import cluster_of, slot_tags
from rtui.analysis.report.tables.slots import slots as fullest_slots
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.chart_lines import (
    HIGH_ROOM,
    Bar,
    bar_lines,
    beside_each_other,
    inset,
    keys_text,
    kind_of,
    size_text,
    value_of,
)
from rtui.tui.analyse.panel import Area, Choices, Listing
from rtui.tui.analyse.slot_field import (
    GUTTER_CELLS,
    Field,
    field_lines,
    fitting_field,
    legend_line,
    owned_slots,
)
from rtui.tui.kit import format as fmt
from rtui.tui.kit.format import display
from rtui.tui.kit.layout import Piece, fitted, prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, line_width, own
from rtui.tui.kit.table_rows import Order

CLUSTER_SIZES: Final = (3, 6, 12, 24)
"""The clusters that a server on its own is imagined as."""

SIDE_CELLS: Final = 36
"""What is told beside the field needs at least so much."""

TAG_CELLS: Final = 24
"""A hash tag is cut in the middle beyond this."""

MOST_TAGS: Final = 3
"""So many tags of a cell are named."""

FEWEST_NODES: Final = 5
"""Where not even so many lines are left, nothing is said of a cluster."""

BETWEEN_CELLS: Final = 3
"""Between the field and what is beside it."""

ENOUGH_COLUMNS: Final = 64
"""A field of so many columns gives room to the texts before it grows."""

UNEVEN: Final = 1.25
"""A node with so many times the mean stands out."""

MOST_LINES: Final = 35
"""The chart is never higher: 32 rows of cells and what is around them."""

LOW_LINES: Final = 12
"""The chart on a screen of 24: eight rows of cells, what is under the cursor, and the skew in words."""

FEWEST_LINES: Final = 9
"""On larger ones it leaves so much to the table."""

AROUND_LINES: Final = 3
"""The headline, the legend and the line of the cursor."""


@dataclass(frozen=True, slots=True)
class SlotsState:
    """Where the user is in the panel."""

    cursor: int = 0
    """A slot of the cell under the cursor."""
    by_bytes: bool = False
    nodes: int = CLUSTER_SIZES[0]


@dataclass(frozen=True, slots=True)
class Loads:
    """One figure of every slot, and how to write it."""

    values: Sequence[int]
    is_bytes: bool
    kind: CoverageKind

    def text(self, value: float) -> SafeText:
        """Write a sum of slots; in an estimate it counts the sample, exactly."""
        kind = _as_counted(self.kind)
        return size_text(value, kind) if self.is_bytes else SafeText(f"{keys_text(value, kind)} {noun(value, 'key')}")


def _as_counted(kind: CoverageKind) -> CoverageKind:
    """Return how sums of slots are told: those of a sample are exact, of the sample."""
    return CoverageKind.EXACT if kind is CoverageKind.ESTIMATE else kind


def loads_of(report: Report, *, by_bytes: bool) -> Loads:
    """Return bytes where they are wanted and known, else keys."""
    slots = report.summary.slots
    if by_bytes and slots.memory_bytes is not None:
        kind = kind_of(report)
        is_whole = slots.unmeasured is None or kind is CoverageKind.ESTIMATE
        return Loads(slots.memory_bytes, True, kind if is_whole else CoverageKind.PARTIAL)
    return Loads(slots.keys, False, kind_of(report))


def slots_lines(report: Report, width: int, height: int, state: SlotsState) -> list[Line]:
    """Return the panel in at most `height` lines: the field at the left, the rest beside it or below."""
    field = field_of(width, height)
    view = SlotsView(report, field, state, loads_of(report, by_bytes=state.by_bytes))
    rows = field_lines(field, view.loads.values, view.owned, state.cursor)
    beside = width - GUTTER_CELLS - field.columns - BETWEEN_CELLS
    if beside < SIDE_CELLS:
        told = view.told(width, height - len(rows) - 2)
        lines = [view.headline(), *rows, view.cursor_line(width), *told]
        return [clip(line, width) for line in lines[:height]]
    pointer = view.pointer()
    body: list[Line] = [*rows, pointer, (gap(GUTTER_CELLS), *legend_line())]
    cell = view.cell_told(beside)
    side = [*cell, (), *view.told(beside, height - len(cell) - 2)][: height - 1]
    lines = [view.headline(), *beside_each_other(body[: height - 1], side, width - beside)]
    return [clip(line, width) for line in lines]


def field_of(width: int, height: int) -> Field:
    """Return how the field is laid out in a panel of this size: with room beside it unless that makes it small."""
    rows = height - AROUND_LINES
    wide = fitting_field(width - GUTTER_CELLS - SIDE_CELLS - BETWEEN_CELLS, rows)
    return wide if wide.columns >= ENOUGH_COLUMNS else fitting_field(width - GUTTER_CELLS, rows)


def slot_at(width: int, height: int, x: int, y: int) -> int | None:
    """Return the first slot of the cell of the field at a place of the panel, None beside the field."""
    field = field_of(width, height)
    row, column = y - 1, x - GUTTER_CELLS
    if not (0 <= row < field.rows and 0 <= column < field.columns):
        return None
    return (row * field.columns + column) * field.slots_a_cell


@dataclass(frozen=True, slots=True)
class SlotsView:
    """The texts around a field."""

    report: Report
    field: Field
    state: SlotsState
    loads: Loads

    @property
    def owned(self) -> bytes:
        """A flag for each slot: whether the node that was asked answers for it."""
        return owned_slots(self.report.summary.slots.owned)

    @property
    def cell(self) -> range:
        """The slots under the cursor."""
        return self.field.cell(self.state.cursor)

    def headline(self) -> Line:
        """Say what is drawn."""
        where = own(" of the sample") if self.loads.kind is CoverageKind.ESTIMATE else own("")
        count, a_cell = sum(self.owned), self.field.slots_a_cell
        spans = [
            Span(SafeText(self.loads.text(sum(self.loads.values)) + where), Role.STRONG),
            Span(
                SafeText(f" in {counted(count, 'slot')}{f' · each cell is {a_cell} slots' if a_cell > 1 else ''}"),
                Role.MUTED,
            ),
        ]
        if self.state.by_bytes and not self.loads.is_bytes:
            spans.append(Span(own(" · bytes are not known"), Role.WARN))
        return tuple(spans)

    def pointer(self) -> Line:
        """Point at the column of the cursor."""
        return gap(GUTTER_CELLS + self.field.place(self.state.cursor)[1]), Span(own("▲"), Role.ACCENT)

    def cursor_line(self, width: int) -> Line:
        """Tell in one line what is under the cursor, pointing at it."""
        here, ratio = self._share(self.loads)
        parts = [self._cell_text(), self.loads.text(here), SafeText(f"{ratio} the mean")]
        parts += [SafeText(f"{tag_name(tag, 16)} {self._tag_keys(tag)}") for tag in self._tags()[:1]]
        pieces = [Piece(rank, (Span(part),)) for rank, part in enumerate(parts)]
        *before, mark = self.pointer()
        at = line_width(before)
        if at < width // 2:
            return *before, mark, gap(1), *fitted(pieces, width - at - 2)
        words = fitted(pieces, at - 1)
        return gap(at - 1 - line_width(words)), *words, gap(1), mark

    def cell_told(self, width: int) -> list[Line]:
        """Tell what is under the cursor."""
        lines: list[Line] = [(Span(self._cell_text(), Role.ACCENT),)]
        if not sum(self.owned[self.cell.start : self.cell.stop]):
            return [*lines, (Span(own("belongs to another node"), Role.MUTED),)]
        here, ratio = self._share(self.loads)
        even = SafeText(f" · {ratio} the mean of all slots")
        lines.append((Span(self.loads.text(here), Role.STRONG), Span(even, Role.MUTED)))
        other = loads_of(self.report, by_bytes=not self.loads.is_bytes)
        if other.is_bytes is not self.loads.is_bytes:
            text = other.text(self._share(other)[0])
            lines.append((Span(SafeText(f"{text} of memory") if other.is_bytes else text, Role.MUTED),))
        for tag in self._tags()[:MOST_TAGS]:
            keys = SafeText(f"{self._tag_keys(tag)} {noun(value_of(tag.keys), 'key')}")
            lines.append((Span(tag_name(tag, TAG_CELLS)), gap(2), Span(keys, Role.MUTED)))
        return [clip(line, width) for line in lines]

    def told(self, width: int, room: int) -> list[Line]:
        """Tell how even the spread is, and where there is room what a cluster would make of it."""
        lines = [line[1:] for line in prose(skew_text(self.report), width + 2, Role.TEXT)]
        if imagines_cluster(self.report):
            cluster = [(), *cluster_lines(self.loads, self.state.nodes, width)]
            left_over = room - len(lines)
            if len(cluster) > left_over >= FEWEST_NODES:
                hidden = len(cluster) - left_over + 1
                more = SafeText(f"and {hidden} more, which the table lists")
                cluster = [*cluster[: left_over - 1], (Span(more, Role.FAINT),)]
            lines += cluster if len(cluster) <= left_over else []
        return lines

    def _cell_text(self) -> SafeText:
        cell = self.cell
        return SafeText(f"slot {cell[0]:,}" if len(cell) == 1 else f"slots {cell[0]:,}–{cell[-1]:,}")

    def _share(self, loads: Loads) -> tuple[int, SafeText]:
        """Return what the cell holds, and how many times that is of an even spread: of keys of a sample about."""
        cell, owned = self.cell, self.owned
        mine, total = sum(owned[cell.start : cell.stop]), sum(loads.values)
        here = sum(loads.values[cell.start : cell.stop])
        times = sum(owned) / mine if total and mine else 0.0
        if loads.kind is CoverageKind.ESTIMATE and times and not loads.is_bytes:
            return here, written(share(here, total).scaled(times), ratio_text)
        return here, ratio_text(here / total * times if times else 0.0)

    def _tags(self) -> list[SlotTag]:
        return [tag for tag in self.report.summary.slots.tags if tag.slot in self.cell]

    def _tag_keys(self, tag: SlotTag) -> SafeText:
        return tag_keys(tag, self.loads.kind)


def tag_name(tag: SlotTag, cells: int) -> SafeText:
    """Return a hash tag with its braces."""
    return cut_middle(SafeText("{" + display(tag.tag, limit=cells * 2) + "}"), cells)


def tag_keys(tag: SlotTag, kind: CoverageKind) -> SafeText:
    """Return the keys of a tag, at least so many where it was not followed from the first on; those of a sample."""
    text = keys_text(tag.keys, CoverageKind.PARTIAL if tag.at_least else _as_counted(kind))
    return SafeText(f"{text} sampled") if kind is CoverageKind.ESTIMATE else text


def skew_text(report: Report) -> SafeText:
    """Say in words how far the fullest slot is above the others, and whether chance explains it."""
    slots = report.summary.slots
    found = skew(slots.keys, slots.owned)
    if not found.keys:
        return own("There are no keys.")
    sampled = " of the sample" if kind_of(report) is CoverageKind.ESTIMATE else ""
    text = (
        f"The fullest slot{sampled} is {found.slot:,} with {counted(found.keys, 'key')}, "
        f"{ratio_text(found.ratio)} the mean of {decimal(found.mean)}."
    )
    if found.is_chance:
        return SafeText(f"{text} Chance explains it: as many keys spread at random look the same.")
    return SafeText(f"{text} Chance does not explain it: {_tag_reason(report, found.slot)}.")


def _tag_reason(report: Report, slot: int) -> SafeText:
    """Say what loads a slot, as far as it is known."""
    for tag in report.summary.slots.tags:
        if tag.slot == slot:
            held = f"{tag_keys(tag, kind_of(report))} of them"
            return SafeText(f"the hash tag {tag_name(tag, TAG_CELLS)} holds {held}")
    return own("many keys share it")


def cluster_lines(loads: Loads, nodes: int, width: int) -> list[Line]:
    """Draw what each node of a cluster of `nodes` would hold."""
    found = node_loads(loads.values, nodes)
    most, total = max(one.load for one in found), sum(loads.values)
    mean = total / nodes
    sizes: list[Span] = [Span(own("as a cluster of"), Role.ACCENT), gap(1)]
    for size in CLUSTER_SIZES:
        chosen = size == nodes
        sizes.append(Span(SafeText(f"[{size}]" if chosen else f" {size} "), Role.TAB_ON if chosen else Role.TAB))
    fullest = Span(SafeText(f"  fullest {ratio_text(most / mean)}" if mean else ""), Role.MUTED)
    if line_width((*sizes, fullest)) <= width:
        sizes.append(fullest)
    bars = [
        Bar(
            SafeText(f"{one.first:,}–{one.last:,}"),
            (loads.text(one.load), _part(loads, one.load, total)),
            one.load / most if most else 0.0,
            Role.MUTED,
            Role.WARN if one.load > mean * UNEVEN else Role.BAR,
        )
        for one in found
    ]
    return [tuple(sizes), *bar_lines(bars, width)]


def _part(loads: Loads, load: int, total: int) -> SafeText:
    """Return a load as a share of all; that of a sample's keys with its interval."""
    if loads.kind is CoverageKind.ESTIMATE and not loads.is_bytes and total:
        return written(share(load, total), fmt.share)
    return fmt.share(load / total if total else 0.0)


def imagines_cluster(report: Report) -> bool:
    """Whether it is shown what a cluster would make of the keys: not where there is one."""
    return report.summary.slots.owned is None and not report.head.server.cluster_enabled


def listings(report: Report, choices: Choices) -> tuple[Listing, ...]:
    """Return the tables: the fullest slots, the tags that load them, and outside a cluster what one would be like."""
    order = Order("sampled_keys" if kind_of(report) is CoverageKind.ESTIMATE else "keys")
    found = [
        Listing("slots", own("fullest slots"), partial(_slots_table, report), order=order, among=own("fullest")),
        Listing("slot_tags", own("hash tags"), partial(slot_tags, report), order=order, among=own("heaviest"),
                nothing=own("No key that was seen has a hash tag")),
    ]  # fmt: skip
    if imagines_cluster(report):
        title = SafeText(f"as a cluster of {choices.nodes}")
        found.append(Listing(f"cluster {choices.nodes}", title, partial(cluster_of, report, choices.nodes)))
    return tuple(found)


def _slots_table(report: Report) -> Table:
    """Return the fullest slots; what their note would say stands in the chart already."""
    return replace(fullest_slots(report), note="")


def state_of(report: Report, choices: Choices) -> SlotsState:
    """Return where the cursor of the field is: where it was moved, or on the slot under the cursor of the table."""
    slot = choices.subject if isinstance(choices.subject, int) else _first_slot(report)
    if choices.pointed is not None and choices.pointed[0] == choices.subject:
        slot = choices.pointed[1]
    return SlotsState(slot, choices.by_bytes, choices.nodes)


def _first_slot(report: Report) -> int:
    """Return the first slot that was asked."""
    owned = report.summary.slots.owned
    return owned[0][0] if owned else 0


def chart(report: Report, choices: Choices, area: Area) -> list[Line]:
    """Return the chart."""
    return inset(slots_lines(report, area.width - 2, area.height, state_of(report, choices)))


def chart_height(report: Report, choices: Choices, room: Area) -> int:
    """Return how many lines the chart takes: those of the field and around it."""
    height = LOW_LINES if room.height < HIGH_ROOM else min(MOST_LINES, room.height - FEWEST_LINES)
    return min(height, len(chart(report, choices, Area(room.width, height))))


def hit(_report: Report, choices: Choices, area: Area, x: int, y: int) -> Choices | None:
    """Put the cursor onto the cell that was clicked."""
    slot = slot_at(area.width - 2, area.height, x - 1, y)
    return None if slot is None else replace(choices, pointed=(choices.subject, slot))


def move(report: Report, choices: Choices, area: Area, columns: int, lines: int) -> Choices:
    """Move the cursor of the field by cells."""
    field = field_of(area.width - 2, area.height)
    slot = field.moved(state_of(report, choices).cursor, lines, columns)
    return replace(choices, pointed=(choices.subject, slot))
