"""The slots of a cluster and the keys delivered from them: the ledger and the filters of its nodes, kept in step.

Each node's scan begins its passes with `begin_pass`, reports its views to `observe`, and delivers the keys that its
filter accepts. A slot that leaves a node takes its fingerprints along: into `_left` until another node serves it.

A node's filter drops or delivers keys by their slot. For slots that are not covered (`slot_ledger`) it keeps a
fingerprint of each delivered key: 8 bytes, with the slot and 50 bits of Python's hash of the name, which is seeded for
each process. When slots are visited a second time, by whatever node, keys with a known fingerprint are dropped. With
1,000 keys a slot, two names of a slot have the same fingerprint once in 10^12 slots.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from rtui.keyspace.slots import SLOTS, joined_ranges, key_slot
from rtui.server.engine._slot_filter import SlotFilter
from rtui.server.scan.ranges import Slots
from rtui.server.scan.slot_ledger import NONE, Observed, SlotLedger, SlotView

DROP: Final = 0
"""Keys of the slot are dropped."""

ACCEPT: Final = 1
"""Keys of the slot are delivered."""

ACCEPT_NEW: Final = 2
"""Keys of the slot are delivered unless their fingerprint is known."""

HASH_BITS: Final = 50
_HASH_MASK: Final = (1 << HASH_BITS) - 1

MOST_BYTES: Final = 64 << 20
"""Most bytes of fingerprints, shared out evenly among the nodes that are scanned at once."""


def fingerprint(key: bytes) -> int:
    """Return the slot of a key in the upper 14 bits, its hash in the others; never 0."""
    return key_slot(key) << HASH_BITS | hash(key) & _HASH_MASK or 1


class ClusterSlots:
    """All slots of a cluster during one scan; pure, see the module."""

    def __init__(self, most: int, only: frozenset[int] | None = None) -> None:
        """Remember up to `most` keys of each node; cover the slots of `only`, or all if None."""
        self.ledger = SlotLedger(only)
        self.is_partial = only is not None
        """Whether only some slots are wanted."""
        self.unsure = 0
        """Keys that may be delivered twice: their slots were visited again, and they had no fingerprints any more."""
        self.revision = 0
        """Grows with all progress of the scan."""
        self._most = most
        self._filters: dict[str, SlotFilter] = {}
        self._left: list[tuple[set[int], array[int]]] = []
        """Slots that no node serves for now, with fingerprints of theirs and of others."""
        self._listed: set[int] = set()
        """Uncovered slots from which keys may have been delivered."""

    def add_delivered(self, keys: Collection[bytes]) -> None:
        """Learn keys that were delivered before the first node is scanned, so that they are not delivered again."""
        if keys:
            slots = {key_slot(key) for key in keys}
            self._left.append((slots, array("Q", map(fingerprint, keys))))
            self._listed |= slots

    def add_node(self, node_id: str, *, is_by_slot: bool) -> SlotFilter:
        """Expect a node, which may have been there before; return its filter."""
        self.ledger.add_node(node_id, is_by_slot=is_by_slot)
        if node_id not in self._filters:
            self._filters[node_id] = SlotFilter(self._most)
        return self._filters[node_id]

    def begin_anew(self, node_id: str, *, is_by_slot: bool) -> None:
        self.ledger.add_node(node_id, is_by_slot=is_by_slot)

    def begin_pass(self, node_id: str, view: SlotView) -> frozenset[int]:
        """Learn a node's view right before its next pass; return the slots to visit, empty if none is due."""
        before = frozenset(self._listed)
        self.observe(node_id, view)
        wanted = self.ledger.wanted(node_id)
        again, own = wanted & before, self._filters[node_id]
        self.unsure += own.unknown(again)
        own.set_slots(again, ACCEPT_NEW)
        own.know(own.take(again))
        return wanted

    def observe(
        self, node_id: str, view: SlotView, *, begun: AbstractSet[int] = NONE, ended: AbstractSet[int] = NONE
    ) -> Observed:
        """Learn a node's view, see `SlotLedger.observe`, and update the filters."""
        seen = self.ledger.observe(node_id, view, begun=begun, ended=ended)
        own = self._filters[node_id]
        if seen.went:
            self._left.append((set(seen.went), self._release(node_id, seen.went)))
        if seen.came:
            self._take_over(own, seen.came, is_by_slot=self.ledger.is_by_slot(node_id))
        own.set_slots(seen.visited, DROP)
        self._forget(seen.covered)
        self.revision += bool(seen.covered or seen.came or seen.went)
        return seen

    def cover_without_lost(self) -> None:
        """Cover visited slots even if nodes that do not answer may be importing them."""
        self._forget(self.ledger.cover_without_lost())

    def _forget(self, covered: Mapping[str, frozenset[int]]) -> None:
        """Forget the fingerprints of covered slots, by the node that has visited them."""
        for node_id, slots in covered.items():
            self._filters[node_id].forget(slots)
            self._listed -= slots

    def _take_over(self, own: SlotFilter, came: Mapping[int, str | None], *, is_by_slot: bool) -> None:
        """Deliver slots that have moved to a node, without the keys that other nodes have delivered from them.

        With a table for each slot, keys that are listed twice as it shrinks are dropped, too: the scan can only notice
        the shrinking of a single table for all slots.
        """
        fresh = came.keys() - self._listed
        own.set_slots(fresh, ACCEPT_NEW if is_by_slot else ACCEPT)
        self._listed |= fresh
        own.set_slots(came.keys() - fresh, ACCEPT_NEW)
        for before in {one for one in came.values() if one is not None}:
            own.know(self._release(before, [slot for slot, one in came.items() if one == before]))
        for slots, fingerprints in self._left:
            if not slots.isdisjoint(came):
                own.know(fingerprints)
                slots.difference_update(came)
        self._left = [left for left in self._left if left[0]]

    def _release(self, node_id: str, slots: Collection[int]) -> array[int]:
        """Stop delivering these slots of a node; return the fingerprints of the keys it has delivered from them."""
        released = self._filters[node_id]
        released.set_slots(slots, DROP)
        self.unsure += released.unknown(slots)
        return released.take(slots)

    @property
    def nodes(self) -> int:
        return len(self._filters)

    def uncovered(self) -> dict[str | None, Slots]:
        """Return the slots that are not covered, or doubted, by the node that serves them, None for none.

        They are inclusive pairs.
        """
        found: dict[str | None, list[int]] = {}
        for slot in (frozenset(range(SLOTS)) - self.ledger.covered) | self.ledger.doubted.keys():
            found.setdefault(self.ledger.owners[slot], []).append(slot)
        return {node_id: joined_ranges((slot, slot) for slot in slots) for node_id, slots in found.items()}
