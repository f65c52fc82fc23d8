"""The hash slots that a cluster's node serves, which say how far a scan of it is."""

from __future__ import annotations

import re
from typing import Final

from rtui.keyspace.slot import SLOTS
from rtui.server import guard
from rtui.server.errors import ConnectionLost
from rtui.server.lane_source import LaneSource
from rtui.server.ranges import Slots
from rtui.server.reply import Reply

_SLOTS: Final = re.compile(rb"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_FIRST_SLOT_FIELD: Final = 8


async def owned_slots(source: LaneSource) -> Slots | None:
    """Ask the node for the slots it serves; None when it does not tell or serves none."""
    lane = await source.bulk()
    try:
        (reply,) = await lane.run(guard.cluster_nodes())
    except ConnectionLost:
        return None
    return parse_slots(reply)


def parse_slots(reply: Reply) -> Slots | None:
    """The slots of the node that answered CLUSTER NODES, a replica's being those of its primary."""
    if not isinstance(reply, bytes):
        return None
    lines = [line.split(b" ") for line in reply.splitlines()]
    nodes = {fields[0]: fields for fields in lines if len(fields) >= _FIRST_SLOT_FIELD}
    own = next((fields for fields in nodes.values() if b"myself" in fields[2].split(b",")), None)
    if own is not None and b"slave" in own[2].split(b","):
        own = nodes.get(own[3])
    if own is None:
        return None
    found = [match for field in own[_FIRST_SLOT_FIELD:] if (match := _SLOTS.fullmatch(field))]
    pairs = [(int(match[1]), int(match[2] or match[1])) for match in found]
    return [(first, last) for first, last in pairs if first <= last < SLOTS] or None
