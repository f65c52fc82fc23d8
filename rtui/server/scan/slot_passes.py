"""The passes of one node of a cluster: which slots its cursors go through, and how far they are when it tells its view.

The view is asked in the same stream as the SCANs, and read in its turn. So every SCAN that was answered before it was
executed before it, and every other one later: the positions of that moment divide the visits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rtui.keyspace.slots import SLOTS, joined_ranges
from rtui.server.scan.cluster_slots import ClusterSlots
from rtui.server.scan.cursor import Dialect, slot_span, slots_between
from rtui.server.scan.node import ScanNode
from rtui.server.scan.page import is_temporary
from rtui.server.scan.ranges import CursorSpan, Ranges
from rtui.server.scan.slot_ledger import NONE
from rtui.server.scan.slot_views import SlotView, read_slot_view
from rtui.server.scan.turns import NODES_AT_ONCE
from rtui.server.wire.errors import ScanRefusedError, ServerBusyError
from rtui.server.wire.replies import Reply, ServerError

ALL: Final = frozenset(range(SLOTS))

VIEW_EVERY_S: Final = 2.0
"""How often a node is asked for its view, while it is scanned."""

VIEW_BYTES_PER_S: Final = 4 << 20
"""The views of the nodes that are scanned at once bring so many bytes at most: less often in large clusters."""


class SlotPasses:
    """What one node has visited, is visiting and is to visit."""

    def __init__(self, node: ScanNode, slots: ClusterSlots) -> None:
        """Scan the slots of a cluster that this node serves; it has an id."""
        if node.id is None:
            raise ValueError("a node of a cluster has an id")
        self.slots = slots
        self.dialect = node.dialect
        """How the node counts its cursors."""
        self.is_due = True
        """Whether the next thing to do is to ask for a view, and to begin a pass."""
        self.looked_at = float("-inf")
        """When its view was asked last, on the clock of the event loop."""
        self.is_unseen = True
        """Whether it has not told any view yet."""
        self._node, self._id = node, node.id
        self._visiting = NONE
        self._has_begun = False
        self._owned = 0
        self._view_bytes = 0
        self.filter = slots.add_node(self._id, is_by_slot=self.dialect is Dialect.SLOTTED)

    @property
    def fraction(self) -> float | None:
        """The share of its slots that are covered, 0 … 1, in passes after the first; None before."""
        if not self._has_begun or self._visiting is ALL:
            return None
        return 1.0 - self.slots.ledger.open_count(self._id) / self._owned if self._owned else 1.0

    def restart(self, dialect: Dialect) -> None:
        """Begin anew with what is not covered: the cursors mean nothing any more."""
        self.dialect = dialect
        self.is_due, self._visiting = True, NONE
        self.slots.begin_anew(self._id, is_by_slot=dialect is Dialect.SLOTTED)

    def begin(self, reply: Reply) -> ScanNode:
        """Begin a pass with the view that this reply is; return what to scan, which may be nothing.

        Nothing may be under way. Raises ScanRefusedError and ServerBusyError.
        """
        view = self._read(reply)
        wanted = self.slots.begin_pass(self._id, view)
        self.is_due = False
        is_first, self._has_begun = not self._has_begun, self._has_begun or bool(wanted)
        self._visiting = wanted
        node = replace(self._node.whole(self.dialect), slots=view.slots)
        if not wanted:
            return replace(node, dialect=Dialect.SLOTTED, spans=())
        if self.dialect is not Dialect.SLOTTED:
            return node
        if is_first and not self.slots.is_partial:  # with slots that come before the cursor has reached them
            self._visiting = ALL
            return node
        ranges = joined_ranges((slot, slot) for slot in wanted)
        return replace(node, spans=tuple(CursorSpan(*slot_span(first, last)) for first, last in ranges))

    def wants_view(self, now: float, *, is_over: bool) -> bool:
        """Whether it is time for another view; at the end of a pass it always is."""
        nodes = min(self.slots.nodes, NODES_AT_ONCE)
        every_s = max(VIEW_EVERY_S / 2, self._view_bytes * nodes / VIEW_BYTES_PER_S)
        if is_over or now - self.looked_at >= every_s:
            self.looked_at = now
            return True
        return False

    def observe(self, reply: Reply, ranges: Ranges, *, is_of_primary: bool = False) -> None:
        """Learn a view that was asked when the ranges stood where they stand now; raises as `begin` does.

        `is_of_primary` is whether a replica is visited, which may show later what was so at the primary before: the
        view counts as one after the beginning of all visits.
        """
        begun, ended = self._visits(ranges)
        begun = self._visiting if is_of_primary else begun
        self.slots.observe(self._id, self._read(reply), begun=begun, ended=ended)

    def _read(self, reply: Reply) -> SlotView:
        if is_temporary(reply) and isinstance(reply, ServerError):
            raise ServerBusyError(reply.text)
        view = read_slot_view(reply)
        if view is None:
            why = f": {reply}" if isinstance(reply, ServerError) else ""
            raise ScanRefusedError(f"The node does not tell which slots it serves{why}.")
        self.is_unseen = False
        self._owned = len(view.owned)
        self._view_bytes = len(reply) if isinstance(reply, bytes) else 0
        return view

    def _visits(self, ranges: Ranges) -> tuple[frozenset[int], frozenset[int]]:
        """Return the slots whose visits have begun, and those whose visits have ended."""
        visiting = self._visiting
        if ranges.is_done:
            return visiting, visiting
        if ranges.dialect is not Dialect.SLOTTED:
            return (NONE if ranges.is_untouched else visiting), NONE
        unended: set[int] = set()
        begun: set[int] = set()
        for span in ranges.remaining():
            slots, is_begun = slots_between(span.start, span.end)
            unended.update(slots)
            if is_begun:
                begun.add(slots[0])
        ended = visiting - unended
        return ended | (visiting & begun), ended
