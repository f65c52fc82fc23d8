"""The slots of a cluster and what was delivered of them: the ledger, and the filters of its nodes, kept in step.

Each node's scan begins its passes with `begin_pass`, tells its views to `observe`, and delivers what its filter
accepts. A slot that leaves a node takes its fingerprints along: into `_left` until another node serves it.

A node's filter drops or delivers keys by their slot. Of slots that are not covered (`slot_ledger`) it keeps what was
delivered: 8 bytes a key, its slot and 50 bits of Python's hash of the name, which is seeded for each process. Of slots
that are visited a second time, by whatever node, keys with a known fingerprint are dropped. With 1,000 keys a slot, two
names of a slot have the same fingerprint once in 10^12 slots.
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
"""They are delivered."""

ACCEPT_NEW: Final = 2
"""They are delivered unless their fingerprint is known."""

HASH_BITS: Final = 50
_HASH_MASK: Final = (1 << HASH_BITS) - 1

MOST_BYTES: Final = 64 << 20
"""Fingerprints of the nodes that are scanned at once have so many bytes at most, shared out evenly among them."""


def fingerprint(key: bytes) -> int:
    """Return the slot of a key in the upper 14 bits, its hash in the others; never 0."""
    return key_slot(key) << HASH_BITS | hash(key) & _HASH_MASK or 1


class ClusterSlots:
    """All slots of a cluster during one scan; pure, see the module."""

    def __init__(self, most: int, only: frozenset[int] | None = None) -> None:
        """Remember so many keys of each node at most; cover these slots only, None for all."""
        self.ledger = SlotLedger(only)
        self.is_partial = only is not None
        """Whether only some slots are wanted."""
        self.unsure = 0
        """Keys that may be delivered twice: their slots were visited again, and they had no fingerprints any more."""
        self.revision = 0
        """Grows with whatever brings the scan nearer to its end."""
        self._most = most
        self._filters: dict[str, SlotFilter] = {}
        self._left: list[tuple[set[int], array[int]]] = []
        """Slots that no node serves for now, with fingerprints of theirs and of others."""
        self._listed: set[int] = set()
        """Slots not covered of which something may have been delivered."""

    def add_delivered(self, keys: Collection[bytes]) -> None:
        """Learn keys that were delivered before the first node is scanned, so as not to deliver them again."""
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
        """Have a node visit again what it has not covered, since its cursors are void."""
        self.ledger.add_node(node_id, is_by_slot=is_by_slot)

    def begin_pass(self, node_id: str, view: SlotView) -> frozenset[int]:
        """Learn a node's view right before its next pass; return the slots to visit, none if there are none for now."""
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
        """Learn a node's view, see `SlotLedger.observe`, and have the filters follow."""
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
        """Call visited slots covered though nodes that do not answer may be taking them in."""
        self._forget(self.ledger.cover_without_lost())

    def _forget(self, covered: Mapping[str, frozenset[int]]) -> None:
        """Forget what was delivered of slots that are covered, by the node that has visited them."""
        for node_id, slots in covered.items():
            self._filters[node_id].forget(slots)
            self._listed -= slots

    def _take_over(self, own: SlotFilter, came: Mapping[int, str | None], *, is_by_slot: bool) -> None:
        """Have a node deliver slots that it did not have, without what others have delivered of them.

        Where each slot has a table of its own, what comes twice as that shrinks is dropped, too: the scan sees only
        whether one table for all slots has shrunk.
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
        """Have a node deliver nothing more of these slots; return the fingerprints of what it has delivered."""
        released = self._filters[node_id]
        released.set_slots(slots, DROP)
        self.unsure += released.unknown(slots)
        return released.take(slots)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._filters)

    def uncovered(self) -> dict[str | None, Slots]:
        """Return the slots that are not covered, or doubted, by the node that serves them, None for none.

        They are inclusive pairs.
        """
        found: dict[str | None, list[int]] = {}
        for slot in (frozenset(range(SLOTS)) - self.ledger.covered) | self.ledger.doubted.keys():
            found.setdefault(self.ledger.owners[slot], []).append(slot)
        return {node_id: joined_ranges((slot, slot) for slot in slots) for node_id, slots in found.items()}
