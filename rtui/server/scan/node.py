"""A server to scan: its connection, how it counts cursors, and which ranges or slots of it are scanned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rtui.keyspace.slots import SLOTS
from rtui.server import guard
from rtui.server.scan.cursor import Dialect, dialect_of, equal_ranges
from rtui.server.scan.pace import MAX_COUNT, MAX_WIDTH
from rtui.server.scan.ranges import Ranges, Slots, Span
from rtui.server.scan.requests import QuerySource
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.replies import Reply

CUT_FROM: Final = MAX_WIDTH * MAX_COUNT
"""Keys from which on a keyspace is cut into ranges; below, a page would reach over a whole one."""


def dialect_for(server: ServerIdentity) -> Dialect:
    """How this server counts its cursors."""
    return dialect_of(server.product or "other", server.version, cluster_enabled=server.cluster_enabled)


@dataclass(frozen=True, slots=True)
class ScanNode:
    """A server to scan, how it counts, and what of it (None: everything)."""

    connection: Connection
    dialect: Dialect = Dialect.STANDALONE
    spans: tuple[Span, ...] | None = None
    first_cursor: int = 0
    """Where to begin: the cursor that came with a first page read before; not with `spans`."""
    first_keys: Sequence[bytes] = ()
    """The keys of that page."""
    slots: Slots | None = None
    size: int | None = None
    """About how many keys there are, if known: a small keyspace is not cut."""
    run_id: str | None = None
    """The run of the server that `spans` or `first_cursor` come from, None if they come from nowhere."""
    queries: QuerySource | None = None
    """What is asked about the keys that this node delivers, in the same writes."""

    def whole(self, dialect: Dialect) -> ScanNode:
        """The same node from its beginning."""
        return ScanNode(self.connection, dialect, slots=self.slots, size=self.size, queries=self.queries)

    def ranges(self) -> Ranges:
        """The ranges to scan, cut to go side by side where the order of cursors allows it."""
        if not self.dialect.is_ordered:
            return Ranges(self.dialect, first_cursor=self.first_cursor)
        if self.spans is not None:
            return Ranges(self.dialect, self.spans, slots=self.slots)
        if self.dialect is Dialect.SLOTTED:
            return Ranges(self.dialect, [Span(self.dialect.position(self.first_cursor))], slots=self.slots)
        begin = self.dialect.position(self.first_cursor)
        width = MAX_WIDTH if self.size is None or self.size >= CUT_FROM else 1
        cut = [(max(begin, start), end) for start, end in equal_ranges(width) if end > begin]
        return Ranges(self.dialect, [Span(start, end) for start, end in cut], first_keys=self.first_keys)


_SLOTS: Final = re.compile(rb"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_FIRST_SLOT_FIELD: Final = 8


async def owned_slots(connection: Connection) -> Slots | None:
    """Ask the node for the slots it serves; None when it does not answer or serves none."""
    lane = await connection.bulk()
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
