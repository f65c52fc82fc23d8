"""Which slots of a cluster are scanned, by which node, and which are covered: each of their keys delivered, once.

Slots move from node to node while they are scanned. A key may be on its way, before the cursor of one node and behind
that of the other, or on both. So the keys that a node lists count by these rules:

1. Each slot is assigned to one node: the one that says it serves it, with the highest config epoch where two say so.
   Keys of it that other nodes list are dropped (`cluster_slots`), such as keys that are just being moved to them.
2. Every few seconds each node is asked for its view, in the same stream as its SCANs. So it is known of
   each slot whether its visit, all SCANs that list it, lies before a view, behind it or around it.
3. A slot is covered when its visit lies between two views of its node, and by these and all between them the node has
   served it all the time, and it was not being moved. A config epoch that has grown tells that a slot may have been
   away and back between two views. Nor may another node be importing it: a node that was promoted in the middle of a
   move need not know of it, while keys of the slot are on the importing node. If that has no keys of it, the mark is
   ignored: moves that were given up leave it for weeks. So after the visit all other nodes are to tell a view, too,
   also those that do not answer just now but serve slots: others wait for these anyway.
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

If not all nodes are scanned at once, slots are covered without a view of nodes that have not had their turn. Covered
slots that such a node turns out to be importing, with keys, are doubted: they are not visited again, but not called
covered.

A view is read from the node's reply to CLUSTER NODES, of which only its own line matters:

    <id> <address> myself,master - 0 0 <epoch> connected 0-5460 7000 [5461->-<id>] [9000-<-<id>]

A node alone knows which of its slots are being moved. A replica reports the slots of its primary, without their moves.
The parser of a line's last fields is also used for the lines of other nodes (`deployment.topology`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from rtui.keyspace.slots import SLOTS, each_slot
from rtui.server.scan.ranges import Slots
from rtui.server.scan.run_control import NODES_AT_ONCE
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
    """Whether its cursors go slot by slot."""
    is_first: bool
    """Whether it was there before any node told a view."""
    owned: frozenset[int] = NONE
    moves: Mapping[int, str] = field(default_factory=dict)
    """Slots that are being moved, with the id of the node that is to have each."""
    epoch: int = 0
    is_lost: bool = False
    """Whether it does not answer."""
    has_left: bool = False
    """Whether it is no member of the cluster any more, so far as is known."""
    told_at: int = 0
    """The number of its last view, counted over all nodes; 0 before the first."""
    open: set[int] = field(default_factory=set)
    """Slots that are assigned to it and not covered."""
    clean: set[int] = field(default_factory=set)
    """Slots that it has served without their being moved since the view before their visit began."""
    visited: set[int] = field(default_factory=set)
    """Slots in `open` that it has visited since they were assigned to it."""
    unconfirmed: set[int] = field(default_factory=set)
    """Slots in `visited` that are covered once each other node has told another view, and does not take them in."""
    empty: frozenset[int] = NONE
    """Slots that it is taking in, and of which it had no key when it was asked."""

    @property
    def is_heard(self) -> bool:
        """Whether its last view is current, as far as is known."""
        return self.told_at > 0 and not self.is_lost


@dataclass(frozen=True, slots=True)
class Observed:
    """The changes made by a view."""

    visited: frozenset[int] = NONE
    """Slots of the node that are covered, from now on or once all other nodes have confirmed it."""
    covered: dict[str, frozenset[int]] = field(default_factory=dict)
    """Slots that are covered from now on, by the node that has visited them."""
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
        self.doubted: dict[int, str] = {}
        """Covered slots that another node has turned out to be taking in, with its id: it may have keys of them."""
        self._unwanted = frozenset(self.covered)
        self._nodes: dict[str, _Node] = {}
        self._views = 0
        """Number of views received."""
        self._visited_at = [0] * SLOTS
        """By slot the number of the view that its last visit lies before."""

    def add_node(self, node_id: str, *, is_by_slot: bool) -> None:
        """Expect views of a node; or begin anew with it, as after a restart: it has visited nothing."""
        node = self._nodes.setdefault(node_id, _Node(is_by_slot, is_first=not self._views))
        node.is_by_slot = is_by_slot
        node.clean.clear()
        node.visited.clear()
        node.unconfirmed.clear()

    def is_by_slot(self, node_id: str) -> bool:
        """Whether the cursors of a node go slot by slot."""
        return self._nodes[node_id].is_by_slot

    @property
    def is_complete(self) -> bool:
        return len(self.covered) == SLOTS and not self.doubted

    @property
    def sought(self) -> frozenset[int]:
        """Slots not covered that no node which answers serves, or that one takes in which does not answer."""
        heard: set[int] = set()
        for node in self._nodes.values():
            if node.is_heard:
                heard |= node.open
        for node_id, node in self._nodes.items():
            if not node.is_heard:
                heard.difference_update(slot for slot, target in node.moves.items() if target == node_id)
        return frozenset(range(SLOTS)) - self.covered - heard

    def open_count(self, node_id: str) -> int:
        return len(self._nodes[node_id].open)

    def is_moving(self, slot: int) -> bool:
        """Whether a slot is being moved, by the view of the node that serves it, or of one that takes it in."""
        owner = self.owners[slot]
        return owner is not None and slot in self.moving(owner)

    def moving(self, node_id: str) -> AbstractSet[int]:
        """The slots that this node reports as moving, or that others with keys of them report as importing."""
        node = self._nodes[node_id]
        return node.moves.keys() | self._taken_in_but_by(node)

    def takes_in(self, node_id: str) -> bool:
        """Whether this node is importing uncovered slots: only its next view tells their outcome."""
        moves = self._nodes[node_id].moves
        return any(target == node_id and slot not in self.covered for slot, target in moves.items())

    @property
    def views(self) -> int:
        return self._views

    def has_told(self, node_id: str, views: int) -> bool:
        """Whether this node has reported a view since the first `views` views."""
        return self._nodes[node_id].told_at > views

    @property
    def told_by_all(self) -> int:
        """The number of the oldest of the last views of all nodes that slots wait for."""
        return min((node.told_at for node in self._awaited()), default=self._views)

    def is_awaited(self, node_id: str) -> bool:
        """Whether slots of others are not covered before a node tells another view."""
        node = self._nodes[node_id]
        if node.is_lost or len(self._nodes) > NODES_AT_ONCE:
            return False
        others = (one.unconfirmed for one in self._nodes.values() if one is not node)
        return any(self._visited_at[slot] >= node.told_at for slots in others for slot in slots)

    def only_taken_in(self, node_id: str) -> list[int]:
        """Slots not covered, or doubted, that a node takes in, and that no other node says it is handing over."""
        moves, handed_over = self._nodes[node_id].moves, self.moves
        found = [
            slot
            for slot, target in moves.items()
            if target == node_id and slot not in self.covered and slot not in handed_over
        ]
        return found + [slot for slot, target in self.doubted.items() if target == node_id]

    @property
    def taken_in(self) -> dict[str, set[int]]:
        """Slots that are not wanted here and that nodes are taking in, by the ids of these: others look after them."""
        found = {
            node_id: {slot for slot, target in node.moves.items() if target == node_id and slot in self._unwanted}
            for node_id, node in self._nodes.items()
        }
        return {node_id: slots for node_id, slots in found.items() if slots}

    def note_empty(self, node_id: str, slots: AbstractSet[int]) -> None:
        """Note the importing slots of which a node has no key now."""
        self._nodes[node_id].empty = frozenset(slots)
        for slot in [slot for slot, target in self.doubted.items() if target == node_id and slot in slots]:
            del self.doubted[slot]

    def _taken_in_but_by(self, node: _Node) -> set[int]:
        """The slots that other nodes are taking in, by their last views, and have keys of as far as is known."""
        others = ((node_id, one) for node_id, one in self._nodes.items() if one.moves and one is not node)
        return {
            slot
            for node_id, one in others
            for slot, target in one.moves.items()
            if target == node_id and slot not in one.empty
        }

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
        left, moving = node.open - node.unconfirmed, self.moving(node_id)
        fresh = left - node.visited
        if node.is_by_slot:
            return frozenset(fresh | (left - moving))
        return frozenset(left) if fresh or not left & moving else NONE

    def lose(self, node_id: str) -> None:
        """Note that a node does not answer: its slots are sought elsewhere."""
        node = self._nodes[node_id]
        node.is_lost, node.empty = True, NONE

    def keep(self, members: AbstractSet[str]) -> None:
        """Forget the importing slots of nodes that have left the cluster: all but `members`."""
        for node_id, node in self._nodes.items():
            node.has_left = node_id not in members and not node.is_heard
            if node.has_left:
                node.moves = {}

    def observe(
        self, node_id: str, view: SlotView, *, begun: AbstractSet[int] = NONE, ended: AbstractSet[int] = NONE
    ) -> Observed:
        """Learn a node's view, taken when the visits of slots `begun` had begun in its pass, and those of `ended` had
        ended."""
        node = self._nodes[node_id]
        owned = view.owned if view.served_by == node_id else NONE
        is_other_epoch = node.epoch != view.epoch and (node.is_by_slot or owned <= node.owned)
        stable = owned - view.moving - self._taken_in_but_by(node)
        node.clean = {slot for slot in stable if slot not in begun or (slot in node.clean and not is_other_epoch)}
        lost, node.owned = node.owned - owned, owned
        if node.is_first and not node.told_at:
            self._doubt(node_id, view)
        self._views += 1
        node.told_at, node.is_lost = self._views, False
        node.moves, node.epoch = view.moves, view.epoch
        node.empty &= view.moves.keys()
        for slot in lost:
            if self.owners[slot] == node_id:
                self.owners[slot] = None
        went = frozenset(node.open & lost)
        node.open -= went
        node.visited -= went
        came = self._assign(node_id, node)
        node.clean -= came.keys() & begun
        node.visited |= ended & node.open
        visited = frozenset(ended & node.open & node.clean)
        node.unconfirmed |= visited
        for slot in visited:
            self._visited_at[slot] = self._views
        return Observed(visited, self._cover(), came, went)

    def _doubt(self, node_id: str, first: SlotView) -> None:
        """Doubt that slots are covered that a node takes in, by its first view, and that nobody hands over."""
        covered, handed_over = self.covered - self._unwanted, self.moves
        for slot, target in first.moves.items():
            if target == node_id and slot in covered and slot not in handed_over:
                self.doubted[slot] = node_id

    def cover_without_lost(self) -> dict[str, frozenset[int]]:
        """Wait no more for views of nodes that do not answer; return the slots that are covered now, by node."""
        return self._cover(without_lost=True)

    @property
    def unvisited(self) -> set[int]:
        """Slots that are not covered, or doubted, and do not only wait for views of other nodes."""
        left = set(range(SLOTS)) - self.covered
        return left.difference(*(node.unconfirmed for node in self._nodes.values())) | self.doubted.keys()

    def _cover(self, *, without_lost: bool = False) -> dict[str, frozenset[int]]:
        """Return the slots that are covered from now on, by node."""
        found: dict[str, frozenset[int]] = {}
        awaited = [node for node in self._awaited() if not (without_lost and node.is_lost)]
        for node_id, node in self._nodes.items():
            if not node.unconfirmed:
                continue
            node.unconfirmed &= node.open
            node.unconfirmed -= self._taken_in_but_by(node)
            told_at = min((one.told_at for one in awaited if one is not node), default=self._views + 1)
            found[node_id] = covered = frozenset(slot for slot in node.unconfirmed if self._visited_at[slot] < told_at)
            self.covered |= covered
            for slots in (node.open, node.visited, node.unconfirmed):
                slots.difference_update(covered)
        return {node_id: covered for node_id, covered in found.items() if covered}

    def _awaited(self) -> list[_Node]:
        """The nodes without whose views no slot of another one is covered."""
        if len(self._nodes) > NODES_AT_ONCE:
            return []
        lost = {node_id for node_id, node in self._nodes.items() if node.is_lost}
        serving = lost and lost.intersection(self.owners)
        return [
            node
            for node_id, node in self._nodes.items()
            if node_id not in lost or (node_id in serving and not node.has_left)
        ]

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
        for one in self._nodes.values():
            one.empty = one.empty.difference(came) if one.empty else NONE
        return came
