"""The nodes of a cluster in the map of its slots: whose each slot is, which are being moved, which nobody serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, LiteralString

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import counted
from rtui.analysis.report.document import ClusterReport, CoverageKind
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.slots import Balance
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.slot_map import NOT_OWNED, SHADES, Shade
from rtui.tui.kit.chart_lines import HorizontalBar, bar_lines, keys_text, size_text
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import Line, Role, Span, literal

ROLES: Final = (Role.HASH, Role.LIST, Role.STRING, Role.SET, Role.STREAM, Role.ZSET, Role.JSON)
"""The colours of nodes in the order of their first slots, again and again; their names stand beside the map."""

MOVING: Final = Shade("»", ">", Role.WARN, "moving")
UNSERVED: Final = Shade("×", "x", Role.BAD, "nobody's")


SHORT_MEANINGS: Final[tuple[LiteralString, ...]] = ("<0.5×", "<0.8×", "mean", ">1.25×", "2×+")
"""What the shades mean, where there is less room."""


class SlotOwners:
    """Whose each slot of a cluster is."""

    def __init__(self, cluster: ClusterReport) -> None:
        self._cluster = cluster
        self._moving = {one.slot: one for one in cluster.moving}
        self._owners: list[int | None] = [None] * SLOTS
        """By slot the place of its node."""
        for at, node in enumerate(cluster.nodes):
            for first, last in node.slots:
                self._owners[first : last + 1] = [at] * (last + 1 - first)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self._cluster.nodes)

    def role(self, at: int) -> Role:
        """Return the colour of the node at this place."""
        return ROLES[at % len(ROLES)]

    def drawn(self, cell: range, shade: Shade | None) -> Span:
        """Return a cell of the map: in the colour of its first slot's node, or what is wrong with one of its slots."""
        owners = self._owners[cell.start : cell.stop]
        if None in owners:
            return UNSERVED.span
        if not self._moving.keys().isdisjoint(cell):
            return MOVING.span
        return NOT_OWNED if shade is None or owners[0] is None else Span(shade.span.text, self.role(owners[0]))

    def legend(self) -> tuple[Shade, ...]:
        """Return what the characters of the map mean, in the colours of nodes, shorter beside what is wrong."""
        wrong = [*([MOVING] if self._moving else []), *([UNSERVED] if None in self._owners else [])]
        meanings = SHORT_MEANINGS if wrong else [one.meaning for one in SHADES]
        pairs = zip(SHADES, meanings, strict=True)
        return (*(replace(one, role=Role.TEXT, meaning=meaning) for one, meaning in pairs), *wrong)

    def headline(self) -> tuple[Span, ...]:
        """Return how many slots are being moved, and how many are served by nobody."""
        moving, unserved = len(self._moving), self._owners.count(None)
        spans = [Span(SafeText(f"{moving:,} moving"), Role.WARN)] if moving else []
        return (*spans, *([Span(SafeText(f"{unserved:,} served by nobody"), Role.BAD)] if unserved else []))

    def name(self, slot: int, cell: range) -> Span:
        """Return the node of a slot, with how many more its cell has."""
        places = list(dict.fromkeys((self._owners[slot], *self._owners[cell.start : cell.stop])))
        served = [at for at in places if at is not None]
        if not served:
            return Span(literal("served by nobody"), Role.BAD)
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
            lines.append((Span(SafeText(f"{counted(len(unserved), 'slot')} of them served by nobody"), Role.BAD),))
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
