"""What a node of a cluster says of its own slots: those it serves, those that are just being moved, its config epoch.

A view is read from the node's reply to CLUSTER NODES, of which only its own line matters:

    <id> <address> myself,master - 0 0 <epoch> connected 0-5460 7000 [5461->-<id>] [9000-<-<id>]

A node alone knows which of its slots are being moved. A replica tells the slots of its primary, without that. What
stands in the last fields of a line is read here for whoever reads other lines, too (`deployment.topology`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rtui.keyspace.slots import SLOTS, each_slot
from rtui.server.scan.ranges import Slots
from rtui.server.wire.replies import Reply

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
    """Those that are served, as inclusive pairs."""
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
        """The slots that are served, one by one."""
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
    """Read the slots that a line's last fields name, as inclusive pairs in order; what are no slots is left out."""
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
