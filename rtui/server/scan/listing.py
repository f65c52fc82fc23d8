"""The keys that one node has listed: turns replies to SCAN into new keys, and tracks the node's cursors.

Each page goes through one `Listing`. It checks that the server moves on, in order, and has not begun again; leaves out
keys that were listed before or that do not match; and counts.

A node of a cluster is listed in passes: which slots its cursors go through, and how far they are when it reports its
view. The view is requested in the same stream as the SCANs, and read in its turn. So every SCAN that was answered
before it was executed before it, and every other one later: the cursor positions at that moment divide the visits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Final

from rtui.keyspace.slots import SLOTS, each_slot, joined_ranges
from rtui.server.scan.cursor import BeginningWatch, Dialect, slot_span, slots_between
from rtui.server.scan.node import ScanNode
from rtui.server.scan.page import BeginAgainError, ScanFilter, is_temporary, measured_page
from rtui.server.scan.progress import ScanNote
from rtui.server.scan.ranges import CursorSpan, Range, Ranges
from rtui.server.scan.run_control import NODES_AT_ONCE
from rtui.server.scan.slot_ledger import NONE, ClusterSlots, SlotView, read_slot_view
from rtui.server.wire.errors import Reply, ScanRefusedError, ServerBusyError, ServerError

ALL: Final = frozenset(range(SLOTS))

VIEW_EVERY_S: Final = 2.0
"""How often a node is asked for its view, while it is scanned."""

VIEW_BYTES_PER_S: Final = 4 << 20
"""Bytes per second that the views of all nodes scanned at once may bring: views are rarer in large clusters."""


class SlotPasses:
    """The slots that one node has visited, is visiting and is to visit."""

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
        """Begin again with the slots that are not covered, since the cursors are void."""
        self.dialect = dialect
        self.is_due, self._visiting = True, NONE
        self.slots.begin_anew(self._id, is_by_slot=dialect is Dialect.SLOTTED)

    def begin(self, reply: Reply) -> ScanNode:
        """Begin a pass with the view in this reply; return the node with the slots to scan, possibly none.

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
        if is_first and (not self.slots.is_partial or wanted >= view.owned):  # with what comes before the cursor
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
        """Learn a view that was requested at the current position of `ranges`; raises as `begin` does.

        `is_of_primary`: a replica is visited, which may show an earlier state of its primary, so the view counts as one
        after the beginning of all visits.
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
            raise ScanRefusedError(f"The node does not report its slots{why}.")
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


STUCK_AFTER: Final = 1000
"""Replies in a row that carry the cursor they were asked with: the server does not move."""

OUT_OF_ORDER: Final = 8_000
"""Most keys under way that may be answered out of order: some tables of rows, as a row may miss its late length."""


class Listing:
    """The pages of one node, in one pass over its keyspace, or in several over its slots of a cluster."""

    def __init__(self, node: ScanNode, only: ScanFilter, slots: ClusterSlots | None = None) -> None:
        """With `slots` nothing is listed before `begin_pass`."""
        self.node = node
        self.only = only
        self.matches: Callable[[bytes], bool] | None = None
        """Matches a name on our side, for a server that is not sent a pattern; None if the server filters."""
        self.passes = None if slots is None else SlotPasses(node, slots)
        self.keys = 0
        """Keys that the server returned."""
        self.delivered = 0
        """Keys that went to the sink since the scan began, or began again."""
        self.name_bytes = 0.0
        """The mean length of the names in a page; after longer ones it falls by a tenth a page at most."""
        self._was_resized = False
        """Whether `was_resized` held in an earlier pass over the node's slots."""
        self._looked: tuple[int, set[int]] | None = None
        """Number of keys listed at the last look, and the slots that were not listed then; see `unlisted`."""
        self._unasked: frozenset[int] | set[int] = frozenset()
        """The slots that were not done at the look before that."""
        self._begin(node)

    def _begin(self, node: ScanNode) -> None:
        self.ranges = node.ranges()
        self._beginning = BeginningWatch(node.first_keys)
        self._stuck = 0
        if node.dialect is Dialect.STANDALONE:
            self.ranges.table.observe(node.first_cursor)

    def begin_anew(self, dialect: Dialect) -> None:
        """List everything again from the start."""
        self._begin(self.node.whole(dialect))
        self.delivered, self._looked = 0, None
        self._was_resized = False

    def begin_pass(self, view: Reply) -> None:
        """Begin a pass over the node's slots with the view in this reply; nothing may be under way.

        Raises ScanRefusedError and ServerBusyError.
        """
        if self.passes is not None:
            node = self.passes.begin(view)
            self._was_resized = self.was_resized
            self._begin(node)

    def take_page(self, one: Range, reply: Reply) -> list[bytes]:
        """Move a range on by the reply to its SCAN; return the keys that are to be delivered.

        Raises ServerBusyError, CursorOrderError and ScanRefusedError, which is a BeginAgainError where the scan may go
        on from its beginning.
        """
        cursor, keys, size_bytes = measured_page(reply)
        self._stuck = self._stuck + 1 if cursor == one.cursor and cursor else 0
        if self._stuck >= STUCK_AFTER:
            raise ScanRefusedError("The server returns every SCAN cursor unchanged.")
        if not self.ranges.dialect.is_ordered and self._beginning.observe(keys):
            raise BeginAgainError(ScanNote.BEGAN_AGAIN)
        fresh = self.ranges.advance(one, cursor, keys)
        if self.matches is not None:
            fresh = [*filter(self.matches, fresh)]
        if self.passes is not None:
            fresh = self.passes.filter.accept(fresh)
        self.keys += len(keys)
        if keys:
            self.name_bytes = max(size_bytes / len(keys), 0.9 * self.name_bytes)
        return fresh

    def fraction(self, size: int | None) -> float | None:
        """The share listed, 0 … 1: by the cursors, else by `size`, the keys of the database, unless it filters; else
        None."""
        if self.passes is not None and self.passes.fraction is not None:
            return self.passes.fraction
        if self.passes is not None and self.ranges.dialect.is_ordered:
            if self.passes.is_unseen:
                return 0.0
            if self.ranges.is_done:
                return 1.0
        by_cursor = self.ranges.fraction()
        if by_cursor is not None or not size or not self.only.is_open:
            return by_cursor
        return 1.0 if self.ranges.is_done else min(0.99, self.keys / size)

    def unlisted(self, waiting: int) -> set[int]:
        """Return the slots not yet done: some key is not listed, or not asked about; empty unless cursors go slot by
        slot.

        `waiting` keys are still to be asked about, nearly in the order in which they were listed. So all slots that
        were listed at the last look are done once as many keys, and a few more, have been asked about.
        """
        ranges = self.ranges
        if ranges.dialect is not Dialect.SLOTTED:
            return set()
        own = set(range(SLOTS) if ranges.slots is None else each_slot(ranges.slots))
        ahead = own.intersection(chain(*(slots_between(one.start, one.end)[0] for one in ranges.remaining())))
        if not waiting:
            return ahead
        if self._looked is None or self.delivered - waiting >= self._looked[0] + OUT_OF_ORDER:
            self._unasked = own if self._looked is None else self._looked[1]
            self._looked = self.delivered, ahead
        return own & self._unasked

    @property
    def was_resized(self) -> bool:
        """Whether a key may have been delivered twice since the server resized its one table."""
        is_now = self.ranges.repeats_possible or self.ranges.table.has_shrunk
        return self._was_resized or (is_now and self.ranges.dialect is Dialect.STANDALONE)

    @property
    def repeats_possible(self) -> bool:
        """Whether a key may have been delivered twice; in a cluster not where cursors go slot by slot."""
        is_filtered = self.passes is not None and self.ranges.dialect is Dialect.SLOTTED
        return self.was_resized or not (is_filtered or self.ranges.dialect is Dialect.STANDALONE)
