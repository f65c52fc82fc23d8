"""Which slots of a cluster are scanned, by which node, and which are covered: each of their keys delivered, once.

Slots move from node to node while they are scanned. A key may be on its way, before the cursor of one node and behind
that of the other, or on both. So the keys that a node lists count by these rules:

1. Each slot is assigned to one node: the one that says it serves it, with the highest config epoch where two say so.
   Keys of it that other nodes list are dropped (`ClusterSlots`), such as keys that are just being moved to them.
2. Every few seconds each node is asked for its view, in the same stream as its SCANs. So it is known of
   each slot whether its visit, all SCANs that list it, lies before a view, behind it or around it.
3. A slot is covered when its visit lies between two views of its node, and by these and all between them the node has
   served it all the time, and it was not being moved. A config epoch that has grown tells that a slot may have been
   away and back between two views.
4. A slot that was visited in other circumstances is visited again, by the node that serves it then. The fingerprints of
   its delivered keys keep them from being delivered twice. Once it is covered, no more keys of it are delivered.

So a slot that moves from A to B while A lists it is not covered by A: A's next view does not have it any more, or says
that it is being moved. B's view has it, so it is assigned to B, with A's fingerprints. B delivers the rest: on its way
if its cursor is still before the slot, else in a pass for that slot. Where a replica is promoted it is the same for all
slots that its primary had not covered.

Not noticed is a slot that is marked as moving, loses keys, gets them back and is unmarked, all between two views and
without having changed its owner: nothing tells of it. Where a server has one table for all slots (Redis before 7.4)
every slot is under way until the pass is over. An epoch that grows together with the number of the node's slots counts
for nothing there, or a node that takes in slots would never be done.

Nor is it proven that no other node has keys of a covered slot: one that was promoted in the middle of a move need not
know of it. If a node still takes in such a slot by its last view, the scan has a note: some keys may be missing.

A view is read from the node's reply to CLUSTER NODES, of which only its own line matters:

    <id> <address> myself,master - 0 0 <epoch> connected 0-5460 7000 [5461->-<id>] [9000-<-<id>]

A node alone knows which of its slots are being moved. A replica reports the slots of its primary, without their moves.
The parser of a line's last fields is also used for the lines of other nodes (`deployment.topology`).

`ClusterSlots` keeps the ledger and the filters of its nodes in step. Each node's scan begins its passes with
`begin_pass`, reports its views to `observe`, and delivers the keys that its filter accepts. A slot that leaves a node
takes its fingerprints along: into `_left` until another node serves it. A filter drops or delivers keys by their slot.
For slots that are not covered it keeps a fingerprint of each delivered key: 8 bytes, with the slot and 50 bits of
Python's hash of the name, which is seeded for each process. When slots are visited a second time, by whatever node,
keys with a known fingerprint are dropped. With 1,000 keys a slot, two names of a slot have the same fingerprint once in
10^12 slots.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from rtui.keyspace.slots import SLOTS, each_slot, joined_ranges, key_slot
from rtui.server.engine._slot_filter import SlotFilter
from rtui.server.scan.ranges import Slots
from rtui.server.wire.errors import Reply

_SLOTS: Final = re.compile(rb"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_MOVING: Final = re.compile(rb"\[([0-9]{1,5})-([<>])-([^\]]*)\]")
_EPOCH: Final = re.compile(rb"[0-9]{1,20}")
_FIRST_SLOT_FIELD: Final = 8


@dataclass(frozen=True, slots=True)
class SlotView:
    """The slots of one node by its own account, at one moment."""

    served_by: str
    """The id of the node itself, or of the primary whose replica it is."""
    slots: Slots
    """The slots served, as inclusive pairs."""
    moves: Mapping[int, str] = field(default_factory=dict)
    """Slots that are being handed over or taken in, each with the id of the node that is to have it."""
    epoch: int = 0
    """The config epoch; it grows whenever the node takes over slots that another one served."""

    @property
    def moving(self) -> frozenset[int]:
        """The slots that are being handed over or taken in: keys of them may be on either node."""
        return frozenset(self.moves)

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(each_slot(self.slots))


def read_slot_view(reply: Reply) -> SlotView | None:
    """Read the view of the node that answered CLUSTER NODES; None for anything else."""
    if not isinstance(reply, bytes):
        return None
    own = own_line(reply)
    if own is not None and b"slave" in own[2].split(b","):
        others = (line.split(b" ") for line in reply.splitlines() if own is not None and line.startswith(own[3] + b" "))
        own = next((fields for fields in others if len(fields) >= _FIRST_SLOT_FIELD), None)
    if own is None:
        return None
    served, own_id = own[_FIRST_SLOT_FIELD:], _text(own[0])
    return SlotView(
        served_by=own_id,
        slots=served_slots(served),
        moves={slot: other if is_leaving else own_id for slot, is_leaving, other in moving_slots(served)},
        epoch=int(own[6]) if _EPOCH.fullmatch(own[6]) else 0,
    )


def own_line(reply: bytes) -> list[bytes] | None:
    """Return the fields of the node itself in its reply to CLUSTER NODES; None where none is its own."""
    lines = (line.split(b" ") for line in reply.splitlines() if b"myself" in line)
    return next((one for one in lines if len(one) >= _FIRST_SLOT_FIELD and b"myself" in one[2].split(b",")), None)


def served_slots(fields: Sequence[bytes]) -> Slots:
    """Read the slots in the last fields of a CLUSTER NODES line, as inclusive pairs in order; other fields are left
    out."""
    found = [match for one in fields if (match := _SLOTS.fullmatch(one))]
    pairs = ((int(match[1]), int(match[2] or match[1])) for match in found)
    return sorted((first, last) for first, last in pairs if first <= last < SLOTS)


def moving_slots(fields: Sequence[bytes]) -> Iterator[tuple[int, bool, str]]:
    """Yield the slots that are being moved, whether they leave the node, and the id of the other node."""
    for one in fields:
        match = _MOVING.fullmatch(one)
        if match is not None and int(match[1]) < SLOTS:
            yield int(match[1]), match[2] == b">", _text(match[3])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


NONE: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Node:
    """The ledger's record of one node."""

    is_by_slot: bool
    owned: frozenset[int] = NONE
    moves: Mapping[int, str] = field(default_factory=dict)
    """Slots that are being moved, with the id of the node that is to have each."""
    epoch: int = 0
    is_lost: bool = False
    """Whether it does not answer."""
    told_at: int = 0
    """The number of its last view, counted over all nodes; 0 before the first."""
    open: set[int] = field(default_factory=set)
    """Slots that are assigned to it and not covered."""
    clean: set[int] = field(default_factory=set)
    """Slots that it has served without their being moved since the view before their visit began."""
    visited: set[int] = field(default_factory=set)
    """Slots in `open` that it has visited since they were assigned to it."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The changes made by a view."""

    covered: frozenset[int] = NONE
    came: dict[int, str | None] = field(default_factory=dict)
    """Slots not covered that are assigned to the node from now on, each with the node that had it before, if any."""
    went: frozenset[int] = NONE
    """Slots not covered that it does not serve any more."""


class SlotLedger:
    """The book of all slots of a cluster; pure, see the module."""

    def __init__(self, only: AbstractSet[int] | None = None) -> None:
        """Cover these slots, None for all."""
        self.owners: list[str | None] = [None] * SLOTS
        """By slot the id of the node that serves it, also where it is covered; None while nobody says so."""
        self.covered: set[int] = set() if only is None else set(range(SLOTS)) - only
        """Slots of which every key was delivered, and slots outside `only`."""
        self._nodes: dict[str, _Node] = {}
        self._views = 0

    def add_node(self, node_id: str, *, is_by_slot: bool) -> None:
        """Expect views of a node; or begin anew with it, as after a restart: it has visited nothing."""
        node = self._nodes.setdefault(node_id, _Node(is_by_slot))
        node.is_by_slot = is_by_slot
        node.clean.clear()
        node.visited.clear()

    def is_by_slot(self, node_id: str) -> bool:
        """Whether the cursors of a node go slot by slot."""
        return self._nodes[node_id].is_by_slot

    @property
    def is_complete(self) -> bool:
        return len(self.covered) == SLOTS

    @property
    def sought(self) -> frozenset[int]:
        """Slots not covered that no node which answers serves."""
        heard = [node.open for node in self._nodes.values() if node.told_at and not node.is_lost]
        return frozenset(range(SLOTS)).difference(self.covered, *heard)

    def open_count(self, node_id: str) -> int:
        return len(self._nodes[node_id].open)

    def is_moving(self, slot: int) -> bool:
        """Whether a slot is being moved, by the view of the node that serves it."""
        owner = self.owners[slot]
        return owner is not None and slot in self.moving(owner)

    def moving(self, node_id: str) -> AbstractSet[int]:
        """The slots that this node reports as moving."""
        return self._nodes[node_id].moves.keys()

    @property
    def views(self) -> int:
        return self._views

    def has_told(self, node_id: str, views: int) -> bool:
        """Whether this node has reported a view since the first `views` views."""
        return self._nodes[node_id].told_at > views

    @property
    def moves(self) -> dict[int, str]:
        """Slots that nodes are handing over, by their own views, each with the id of the node that is to have it."""
        return {
            slot: target
            for node_id, node in self._nodes.items()
            for slot, target in node.moves.items()
            if self.owners[slot] == node_id != target
        }

    def wanted(self, node_id: str) -> frozenset[int]:
        """The slots that a pass of a node, which begins right after its view, is to visit.

        Each is visited when it is assigned, whatever its state, and again when it is not being moved any more; where
        there is one table for all slots only when none of them is.
        """
        node = self._nodes[node_id]
        left, moving = node.open, self.moving(node_id)
        fresh = left - node.visited
        if node.is_by_slot:
            return frozenset(fresh | (left - moving))
        return frozenset(left) if fresh or not left & moving else NONE

    @property
    def is_taking_in(self) -> bool:
        """Whether a node takes in slots, by its last view, that no node which is known to serve them hands over."""
        handed_over = self.moves
        return any(
            target == node_id and slot not in handed_over
            for node_id, node in self._nodes.items()
            for slot, target in node.moves.items()
        )

    def lose(self, node_id: str) -> None:
        """Note that a node does not answer: its slots are sought elsewhere."""
        self._nodes[node_id].is_lost = True

    def observe(
        self, node_id: str, view: SlotView, *, begun: AbstractSet[int] = NONE, ended: AbstractSet[int] = NONE
    ) -> Observed:
        """Learn a node's view, taken when the visits of slots `begun` had begun in its pass, and those of `ended` had
        ended."""
        node = self._nodes[node_id]
        owned = view.owned if view.served_by == node_id else NONE
        is_other_epoch = node.epoch != view.epoch and (node.is_by_slot or owned <= node.owned)
        stable = owned - view.moving
        node.clean = {slot for slot in stable if slot not in begun or (slot in node.clean and not is_other_epoch)}
        lost, node.owned = node.owned - owned, owned
        self._views += 1
        node.told_at, node.is_lost = self._views, False
        node.moves, node.epoch = view.moves, view.epoch
        for slot in lost:
            if self.owners[slot] == node_id:
                self.owners[slot] = None
        went = frozenset(node.open & lost)
        node.open -= went
        node.visited -= went
        came = self._assign(node_id, node)
        node.clean -= came.keys() & begun
        node.visited |= ended & node.open
        covered = frozenset(ended & node.open & node.clean)
        self.covered |= covered
        node.open -= covered
        node.visited -= covered
        return Observed(covered, came, went)

    def _assign(self, node_id: str, node: _Node) -> dict[int, str | None]:
        """Assign slots to a node that it serves; return those not covered that it did not have."""
        came: dict[int, str | None] = {}
        for slot in node.owned:
            before = self.owners[slot]
            if before == node_id:
                continue
            other = None if before is None else self._nodes[before]
            if other is not None and slot in other.owned and other.epoch > node.epoch:
                continue
            self.owners[slot] = node_id
            if slot not in self.covered:
                if other is not None:
                    other.open.discard(slot)
                    other.visited.discard(slot)
                node.open.add(slot)
                came[slot] = before
        return came


DROP: Final = 0

ACCEPT: Final = 1

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
        own.set_slots(seen.covered, DROP)
        own.forget(seen.covered)
        self._listed -= seen.covered
        self.revision += bool(seen.covered or seen.came or seen.went)
        return seen

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
        """Return the slots that are not covered, as inclusive pairs, by the node that serves them, None for none."""
        found: dict[str | None, list[int]] = {}
        for slot in set(range(SLOTS)) - self.ledger.covered:
            found.setdefault(self.ledger.owners[slot], []).append(slot)
        return {node_id: joined_ranges((slot, slot) for slot in slots) for node_id, slots in found.items()}
