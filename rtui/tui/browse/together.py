"""May the marked keys be used together? A card that says it, and which hash tag would allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.report.shared_slot import NO_COMMON_TAG, common_tag, verdict
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.browsing.status import BrowsingStatus, NodeStatus
from rtui.tui.kit.layout import MARGIN, display, prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut_middle, gap, left, literal, right, width_of

SLOT_CELLS: Final = 6
GAP_CELLS: Final = 2

ONE_KEY: Final = literal("One key is marked: space marks others to use with it.")
ONE_SERVER: Final = literal("This server is in no cluster, so any keys may be used together. In one:")


@dataclass(frozen=True, slots=True)
class TogetherTexts:
    """What is said of keys."""

    keys: Sequence[bytes]
    status: BrowsingStatus
    separators: Separators

    def lines(self, width: int) -> list[Line]:
        """Return the verdict, where each key lies, and the tag by which they would share a slot."""
        slots = [key_slot(key) for key in self.keys]
        nodes = [self._node_of(slot) for slot in slots]
        is_together = len(set(slots)) == 1
        lines: list[Line] = []
        if len(self.keys) == 1:
            lines += prose(ONE_KEY, width, Role.MUTED)
        else:
            if self.status.server.cluster_enabled is False:
                lines += prose(ONE_SERVER, width, Role.MUTED)
            known = () if None in nodes else {node.label for node in nodes if node is not None}
            lines += prose(verdict(set(slots), known), width, Role.GOOD if is_together else Role.WARN)
        lines += [(), *self._places(slots, nodes, width)]
        lines += [] if is_together else [(), *self._tag_lines(width)]
        return [clip(line, width) for line in lines]

    def _node_of(self, slot: int) -> NodeStatus | None:
        nodes = self.status.nodes
        return next((node for node in nodes if any(first <= slot <= last for first, last in node.slots)), None)

    def _places(self, slots: Sequence[int], nodes: Sequence[NodeStatus | None], width: int) -> list[Line]:
        """Return a line for each key: its slot, in a cluster its node, and its name."""
        labels = [literal("nobody") if node is None else node.label for node in nodes] if self.status.nodes else []
        node_cells = max(map(width_of, labels), default=0)
        lines: list[Line] = []
        for at, (key, slot) in enumerate(zip(self.keys, slots, strict=True)):
            spans = [gap(MARGIN), Span(right(SafeText(str(slot)), SLOT_CELLS), Role.MUTED), gap(GAP_CELLS)]
            if labels:
                is_served = nodes[at] is not None
                spans += [Span(left(labels[at], node_cells), Role.MUTED if is_served else Role.BAD), gap(GAP_CELLS)]
            spans.append(_name(key, width - sum(width_of(span.text) for span in spans) - MARGIN))
            lines.append(tuple(spans))
        return lines

    def _tag_lines(self, width: int) -> list[Line]:
        common = common_tag(self.keys, self.separators)
        if common is None:
            return prose(NO_COMMON_TAG, width, Role.TEXT)
        lines = prose(common.sentence, width, Role.TEXT)
        indent = MARGIN + GAP_CELLS
        return [*lines, *((gap(indent), _name(name, width - indent - MARGIN, Role.STRONG)) for name in common.names)]


def _name(name: bytes, cells: int, role: Role = Role.TEXT) -> Span:
    return Span(cut_middle(display(name, limit=max(16, cells)) or literal("(empty)"), cells), role)
