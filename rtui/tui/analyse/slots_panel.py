"""The Slots panel: a map of the slots, the cell under its cursor, the evenness of the spread, the nodes of a cluster.

The nodes are the cluster's; for a single server, the nodes that a cluster of it would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import wilson
from rtui.analysis.humanize import Mark, counted, decimal, noun
from rtui.analysis.humanize import ratio as ratio_text
from rtui.analysis.report.document import CoverageKind, Report, SlotTag
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.slots import cluster_of, is_outlier, node_loads, nodes, skew, slot_tags
from rtui.analysis.report.tables.slots import slots as fullest_slots
from rtui.analysis.report.tables.table import Subject
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import HIGH_ROOM, AnalysePanel, PanelState, PanelTable, panel_command, unfound
from rtui.tui.kit.chart_lines import (
    GUTTER_CELLS,
    SHADES,
    HorizontalBar,
    SlotMap,
    SlotOwners,
    bar_lines,
    beside_each_other,
    fitting_map,
    flagged,
    inset,
    keys_text,
    legend,
    map_lines,
    masked,
    paragraph,
    shaded,
    size_text,
)
from rtui.tui.kit.layout import MARGIN, LinePart, display, fitted, tab
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, gap, line_width, literal, width_of
from rtui.tui.kit.table_rows import ColumnOrder

CLUSTER_SIZES: Final = (3, 6, 12, 24)
"""Numbers of primaries of the simulated cluster."""

SIDE_CELLS: Final = 36
BETWEEN_CELLS: Final = 3
"""The least width of the texts beside the map, and the blank cells before them."""

ENOUGH_COLUMNS: Final = 64
"""The columns of a map before the texts have room beside it."""

TAG_CELLS: Final = 24
"""Longer hash tags are cut in the middle."""

MAX_TAGS: Final = 3
"""The most hash tags listed for a cell."""

MIN_CLUSTER_LINES: Final = 5
"""With fewer lines left the nodes are left out."""

NOT_LISTED: Final = literal("not scanned yet")

UNEVEN: Final = 1.25
"""A node with this many times the mean is highlighted."""

MAX_LINES: Final = 35
"""Lines of the chart at most: 32 rows of cells and three around them."""

LOW_LINES: Final = 13
"""Lines of the chart on a screen of 24: eight rows of cells, the cursor's cell, the legend, and the skew in words."""

MIN_TABLE_LINES: Final = 9
"""Lines that the chart leaves to the table on larger screens."""

AROUND_LINES: Final = 3
"""The headline, the legend and the line of the cursor."""


@dataclass(frozen=True, slots=True)
class SlotsState(PanelState):
    """The user's choices in the panel."""

    by_bytes: bool = False
    nodes: int = CLUSTER_SIZES[1]
    pinned: tuple[Subject, int] | None = None
    """A slot chosen in the map, and the table's subject then; it holds until the cursor of the table moves on."""


def _next_cluster_size(report: Report, state: SlotsState, _size: Size) -> SlotsState | None:
    larger = [count for count in CLUSTER_SIZES if count > state.nodes]
    return replace(state, nodes=min(larger, default=CLUSTER_SIZES[0])) if simulates_cluster(report) else None


def _move_cursor(columns: int, rows: int, report: Report, state: SlotsState, size: Size) -> SlotsState:
    slot = map_for(size).moved(cursor_slot(report, state), rows, columns)
    return replace(state, pinned=(state.subject, slot))


class SlotsPanel(AnalysePanel[SlotsState]):
    """A map of all slots with a cursor; tables of nodes, of the fullest slots and of hash tags."""

    id = "slots"
    title = literal("Slots")
    key = "6"
    help = "Show how keys and memory are spread over the 16,384 hash slots and the cluster nodes."
    words = "cluster keyslot crc16 hash tag"
    initial = SlotsState()
    commands = (
        panel_command(
            _next_cluster_size, "nodes", "N", "Nodes", "Simulate a cluster of N nodes.", footer=10
        ),
        panel_command(
            lambda _report, state, _size: replace(state, by_bytes=not state.by_bytes),
            "weigh", "m", "Bytes/keys", "Show slots by memory or by keys.", footer=10,
        ),
        *(
            panel_command(
                partial(_move_cursor, columns, rows),
                f"cell_{name}", f"shift+{name}", f"Chart cursor {name}", f"Move the cursor of the chart {name}.",
                label=f"⇧{arrow}",
            )
            for name, arrow, columns, rows in (
                ("left", "←", -1, 0), ("right", "→", 1, 0), ("up", "↑", 0, -1), ("down", "↓", 0, 1),
            )
        ),
    )  # fmt: skip

    def tables(self, report: Report, state: SlotsState) -> tuple[PanelTable, ...]:
        order = ColumnOrder("sampled_keys" if report.head.coverage.kind is CoverageKind.ESTIMATE else "keys")
        tables = [
            # without its note, which repeats what the chart says
            PanelTable("slots", literal("fullest slots"), lambda: replace(fullest_slots(report), note=""), order=order,
                       top=literal("fullest")),
            PanelTable("slot_tags", literal("hash tags"), partial(slot_tags, report), order=order,
                       top=literal("heaviest"), empty=unfound(report, "No key has a hash tag")),
        ]  # fmt: skip
        if report.cluster is not None:
            tables.insert(0, PanelTable("nodes", literal("nodes"), partial(nodes, report), is_outlier))
        if simulates_cluster(report):
            title = SafeText(f"as a cluster of {state.nodes}")
            tables.append(PanelTable(f"cluster {state.nodes}", title, partial(cluster_of, report, state.nodes)))
        return tuple(tables)

    def chart_lines(self, space: Size) -> int:
        return LOW_LINES if space.height < HIGH_ROOM else min(MAX_LINES, space.height - MIN_TABLE_LINES)

    def chart(self, report: Report, state: SlotsState, size: Size) -> list[Line]:
        width, slot_map = size.width - 2, map_for(size)
        texts = SlotTexts(report, slot_map, state)
        loads = texts.loads
        owners = texts.owners
        drawn, shades = (shaded, SHADES) if owners is None else (owners.drawn, owners.legend())
        rows = map_lines(slot_map, loads.values, texts.compared, texts.cursor, is_count=not loads.is_bytes, drawn=drawn)
        beside = width - GUTTER_CELLS - slot_map.columns - BETWEEN_CELLS
        if beside < SIDE_CELLS:
            summary = texts.summary(width, size.height - len(rows) - 3)
            return inset([texts.headline(width), *rows, texts.cursor_line(width), legend(shades), *summary], size)
        left: list[Line] = [*rows, texts.pointer(), legend(shades)]
        cell = texts.cell_lines()
        right = [*cell, (), *texts.summary(beside, size.height - len(cell) - 2)]
        height = size.height - 1
        return inset([texts.headline(width), *beside_each_other(left[:height], right[:height], width - beside)], size)

    def charted(self, report: Report, state: SlotsState) -> SlotsState:
        """Return the state with nothing of the table but the slot under the cursor."""
        return replace(state, subject=None, pinned=(None, cursor_slot(report, state)))

    def clicked(self, _report: Report, state: SlotsState, size: Size, x: int, y: int) -> SlotsState | None:
        slot_map = map_for(size)
        row, column = y - 1, x - MARGIN - GUTTER_CELLS
        if not (0 <= row < slot_map.rows and 0 <= column < slot_map.columns):
            return None
        slot = (row * slot_map.columns + column) * slot_map.slots_per_cell
        return replace(state, pinned=(state.subject, slot))


def cursor_slot(report: Report, state: SlotsState) -> int:
    """Return a slot of the cell under the cursor: the pinned slot, the table row's, or the first slot."""
    if state.pinned is not None and state.pinned[0] == state.subject:
        return state.pinned[1]
    owned = report.summary.slots.owned
    if report.cluster is not None and isinstance(state.subject, str):
        served = next((one.slots for one in report.cluster.nodes if one.label == state.subject), ())
        return served[0][0] if served else 0
    return state.subject if isinstance(state.subject, int) else owned[0][0] if owned else 0


@dataclass(frozen=True, slots=True)
class Loads:
    """The keys or the bytes of every slot."""

    values: Sequence[int]
    is_bytes: bool
    coverage: CoverageKind

    def text(self, value: float) -> SafeText:
        """Return a sum of slots as text; in an estimate it is exact, but of the sample."""
        coverage = CoverageKind.EXACT if self.coverage is CoverageKind.ESTIMATE else self.coverage
        if self.is_bytes:
            return size_text(value, coverage)
        return SafeText(f"{keys_text(value, coverage)} {noun(value, 'key')}")


def loads_of(report: Report, *, by_bytes: bool) -> Loads:
    """Return the loads in bytes if they are wanted and known, else in keys."""
    slots, coverage = report.summary.slots, report.head.coverage.kind
    if by_bytes and slots.memory_bytes is not None:
        is_complete = slots.unmeasured is None or coverage is CoverageKind.ESTIMATE
        return Loads(slots.memory_bytes, True, coverage if is_complete else CoverageKind.PARTIAL)
    return Loads(slots.keys, False, coverage)


def map_for(size: Size) -> SlotMap:
    """Return the map for a chart of this size: one that leaves room beside it unless that makes it small."""
    width, rows = size.width - 2 * MARGIN - GUTTER_CELLS, size.height - AROUND_LINES
    with_texts = fitting_map(width - SIDE_CELLS - BETWEEN_CELLS, rows)
    return with_texts if with_texts.columns >= ENOUGH_COLUMNS else fitting_map(width, rows)


class SlotTexts:
    """The texts around a map: its measure, the cell under its cursor, the evenness of the spread."""

    def __init__(self, report: Report, slot_map: SlotMap, state: SlotsState) -> None:
        self.loads = loads_of(report, by_bytes=state.by_bytes)
        self.owners = None if report.cluster is None else SlotOwners(report.cluster)
        self.owned = flagged(report.summary.slots.owned)
        self.compared = flagged(report.summary.slots.compared)
        self.cursor = cursor_slot(report, state)
        self._report, self._map, self._state = report, slot_map, state
        self._cell = cell = slot_map.cell(self.cursor)
        self._tags = [tag for tag in report.summary.slots.tags if tag.slot in cell]
        self._cell_text = SafeText(f"slot {cell[0]:,}" if len(cell) == 1 else f"slots {cell[0]:,}–{cell[-1]:,}")

    def headline(self, width: int) -> Line:
        of_sample = " of the sample" if self.loads.coverage is CoverageKind.ESTIMATE else ""
        per_cell = self._map.slots_per_cell
        total = Span(SafeText(f"{self.loads.text(sum(self.loads.values))}{of_sample}"), Role.STRONG)
        nodes = "" if self.owners is None else f" of {counted(self.owners.count, 'node')}"
        pieces = [LinePart(0, (total, Span(SafeText(f" in {counted(sum(self.owned), 'slot')}{nodes}"), Role.MUTED)))]
        if self.owners is not None:
            pieces += [LinePart(1, (span,)) for span in self.owners.headline()]
        if per_cell > 1:
            pieces.append(LinePart(2, (Span(SafeText(f"each cell is {per_cell} slots"), Role.MUTED),)))
        if self._state.by_bytes and not self.loads.is_bytes:
            pieces.append(LinePart(1, (Span(literal("memory is not known"), Role.WARN),)))
        return fitted(pieces, width)

    def pointer(self) -> tuple[Span, Span]:
        """Return the line below the map that points at the column of the cursor."""
        return gap(GUTTER_CELLS + self._map.place(self.cursor)[1]), Span(literal("▲"), Role.ACCENT)

    def cursor_line(self, width: int) -> Line:
        """Return the cell under the cursor in one line that points at it."""
        load, ratio = self._load_of_cell(self.loads)
        parts = [self._cell_text]
        parts += [NOT_LISTED] if ratio is None else [self.loads.text(load), SafeText(f"{ratio} the mean")]
        parts += [SafeText(f"{tag_name(tag, 16)} {tag_keys(tag, self.loads.coverage)}") for tag in self._tags[:1]]
        lines: list[Line] = [(Span(part),) for part in parts]
        if self.owners is not None:
            lines[1:1] = [(self.owners.name(self.cursor, self._cell),), *self.owners.notes(self._cell)]
        pieces = [LinePart(rank, line) for rank, line in enumerate(lines)]
        before, mark = self.pointer()
        at = line_width((before,))
        if at < width // 2:
            return before, mark, gap(1), *fitted(pieces, width - at - 2)
        text = fitted(pieces, at - 1)
        return gap(at - 1 - line_width(text)), *text, gap(1), mark

    def cell_lines(self) -> list[Line]:
        """Return the cell under the cursor: its slots, their node, keys, bytes and heaviest hash tags."""
        lines: list[Line] = [(Span(self._cell_text, Role.ACCENT),)]
        if self.owners is not None:
            lines += [(self.owners.name(self.cursor, self._cell),), *self.owners.notes(self._cell)]
        elif not sum(self.owned[self._cell.start : self._cell.stop]):
            return [*lines, (Span(literal("belongs to another node"), Role.MUTED),)]
        load, ratio = self._load_of_cell(self.loads)
        if ratio is None:
            return [*lines, (Span(NOT_LISTED, Role.MUTED),)]
        others = "all slots" if self.compared == self.owned else "scanned slots"
        compared = SafeText(f" · {ratio} the mean of {others}")
        lines.append((Span(self.loads.text(load), Role.STRONG), Span(compared, Role.MUTED)))
        other = loads_of(self._report, by_bytes=not self.loads.is_bytes)
        if other.is_bytes is not self.loads.is_bytes:
            text = other.text(self._load_of_cell(other)[0])
            lines.append((Span(SafeText(f"{text} of memory") if other.is_bytes else text, Role.MUTED),))
        times = [one.values.get("cpu-usec", 0) for one in self._report.hot.slots if one.slot in self._cell]
        if sum(times):
            mark = Mark.EXACT if len(times) == len(self._cell) else Mark.AT_LEAST
            lines.append((Span(SafeText(f"{fmt.seconds(sum(times) / 1e6, mark)} of CPU time"), Role.MUTED),))
        for tag in self._tags[:MAX_TAGS]:
            keys = SafeText(f"{tag_keys(tag, self.loads.coverage)} {noun(plain(tag.keys), 'key')}")
            lines.append((Span(tag_name(tag, TAG_CELLS)), gap(2), Span(keys, Role.MUTED)))
        return lines

    def summary(self, width: int, lines_left: int) -> list[Line]:
        """Return the evenness of the spread, and with enough room the load of each node."""
        lines = paragraph(skew_text(self._report), width, Role.TEXT)
        if self.owners is not None:
            lines_of_nodes = self.owners.count + 1
            cluster = [(), *self.owners.bars(width, max(0, lines_left), by_bytes=self.loads.is_bytes)]
        elif simulates_cluster(self._report):
            cluster = self._simulated(width)
            lines_of_nodes = len(cluster)
        else:
            return lines
        lines_left -= len(lines)
        if lines_of_nodes > lines_left >= MIN_CLUSTER_LINES:
            more = SafeText(f"and {lines_of_nodes - lines_left + 1:,} more in the table")
            return [*lines, *cluster[: lines_left - 1], (Span(more, Role.FAINT),)]
        return [*lines, *(cluster if lines_of_nodes <= lines_left else ())]

    def _simulated(self, width: int) -> list[Line]:
        """Return the load of each primary of a simulated cluster, under a line with the other sizes."""
        loads, nodes = self.loads, self._state.nodes
        found, total = node_loads(loads.values, nodes), sum(loads.values)
        mean = total / nodes
        head: list[Span] = [Span(literal("as a cluster of"), Role.ACCENT), gap(1)]
        head += (tab(SafeText(str(size)), is_chosen=size == nodes) for size in CLUSTER_SIZES)
        most = f"  fullest {ratio_text(max(one.load for one in found) / mean)}" if mean else ""
        if line_width(head) + width_of(most) <= width:
            head.append(Span(SafeText(most), Role.MUTED))
        is_sampled = loads.coverage is CoverageKind.ESTIMATE and not loads.is_bytes
        bars = []
        for one in found:
            part = fmt.share(one.load / total if total else 0)
            if is_sampled and total:
                part = fmt.written(wilson(one.load, total), fmt.share)
            name, role = SafeText(f"{one.first:,}–{one.last:,}"), Role.WARN if one.load > mean * UNEVEN else Role.BAR
            bars.append(HorizontalBar(name, (loads.text(one.load), part), one.load, Role.MUTED, role))
        return [(), tuple(head), *bar_lines(bars, width)]

    def _load_of_cell(self, loads: Loads) -> tuple[int, SafeText | None]:
        """Return the cell's keys or bytes and their ratio to an even spread; estimated from a sample.

        The ratio is None for a cell none of whose slots has been listed.
        """
        cell, compared = self._cell, self.compared
        values = masked(loads.values, compared)
        own_slots = sum(compared[cell.start : cell.stop])
        if not own_slots and any(self.owned[cell.start : cell.stop]):
            return 0, None
        total, load = sum(values), sum(values[cell.start : cell.stop])
        factor = sum(compared) / own_slots if total and own_slots else 0.0
        if loads.coverage is CoverageKind.ESTIMATE and factor and not loads.is_bytes:
            return load, fmt.written(wilson(load, total).scaled(factor), ratio_text)
        return load, ratio_text(load / total * factor if factor else 0.0)


def tag_name(tag: SlotTag, cells: int) -> SafeText:
    return cut_middle(SafeText("{" + display(tag.tag, limit=cells * 2) + "}"), cells)


def tag_keys(tag: SlotTag, coverage: CoverageKind) -> SafeText:
    """Return the keys of a tag: a lower bound if it was not counted from the start, or those of the sample."""
    if coverage is CoverageKind.ESTIMATE:
        return SafeText(f"{keys_text(tag.keys, CoverageKind.PARTIAL if tag.at_least else CoverageKind.EXACT)} sampled")
    return keys_text(tag.keys, CoverageKind.PARTIAL if tag.at_least else coverage)


def skew_text(report: Report) -> SafeText:
    """Return in words how far the fullest slot is above the mean, and whether chance explains it."""
    slots = report.summary.slots
    found = skew(slots.keys, slots.compared)
    if not found.keys:
        return literal("There are no keys." if slots.listed is None else "No slot has been scanned completely yet.")
    so_far = "" if slots.listed is None else " of those scanned so far"
    sampled = " of the sample" if report.head.coverage.kind is CoverageKind.ESTIMATE else ""
    text = (
        f"The fullest slot{sampled} is {found.slot:,} with {counted(found.keys, 'key')}, "
        f"{ratio_text(found.ratio)} the mean of {decimal(found.mean)}{so_far}."
    )
    if found.is_chance:
        return SafeText(f"{text} Random spread explains it.")
    tag = next((tag for tag in slots.tags if tag.slot == found.slot), None)
    if tag is None:
        return SafeText(f"{text} Random spread does not explain it: many keys share the slot.")
    held = f"the hash tag {tag_name(tag, TAG_CELLS)} holds {tag_keys(tag, report.head.coverage.kind)} of them"
    return SafeText(f"{text} Random spread does not explain it: {held}.")


def simulates_cluster(report: Report) -> bool:
    """Whether the panel shows how a cluster would spread the keys: not where the server is a node of one."""
    return report.summary.slots.owned is None and not report.head.server.cluster_enabled
