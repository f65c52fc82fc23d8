"""The nodes of a cluster as the one that was asked sees them, by CLUSTER NODES: whether it reaches them; their slots.

Other than the topology, which scans go by, this has nodes that were given up and serve nothing any more.
"""

from __future__ import annotations

import re
from typing import Final

from rtui.analysis.health.sample import Peer
from rtui.keyspace.slots import SLOTS
from rtui.server.wire.replies import Reply

MAX_PEERS: Final = 100
"""Of a cluster with more nodes they are not listed: what each sees would be read from all of them."""

MAX_LINE_BYTES: Final = 64 << 10
MAX_ADDRESS_BYTES: Final = 300
_LEAST_FIELDS: Final = 8
_SLOTS: Final = re.compile(rb"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_STATES: Final = {b"fail": "down", b"fail?": "suspect", b"handshake": "joining", b"noaddr": "without an address"}


def parse_peers(reply: Reply) -> tuple[Peer, ...]:
    """Read the reply: id, address, flags, primary, ping, pong, epoch, link and slots a line; others are left out."""
    if not isinstance(reply, bytes):
        return ()
    lines = (line[:MAX_LINE_BYTES].split(b" ") for line in reply.split(b"\n", MAX_PEERS + 1)[: MAX_PEERS + 1])
    return tuple(_peer(fields) for fields in lines if len(fields) >= _LEAST_FIELDS)


def _peer(fields: list[bytes]) -> Peer:
    flags = fields[2].split(b",")
    address = fields[1][:MAX_ADDRESS_BYTES].partition(b",")[0].partition(b"@")[0]
    return Peer(
        address,
        is_replica=b"slave" in flags,
        state=next((_STATES[flag] for flag in flags if flag in _STATES), "ok"),
        is_linked=b"myself" in flags or fields[7].strip() == b"connected",
        slots=sum(map(_count, fields[8:])),
        is_self=b"myself" in flags,
    )


def _count(field: bytes) -> int:
    """Return how many slots a field names; those that are being moved are in brackets, and are none of them."""
    found = _SLOTS.fullmatch(field.strip())
    if found is None:
        return 0
    first, last = int(found[1]), int(found[2] or found[1])
    return last - first + 1 if first <= last < SLOTS else 0
