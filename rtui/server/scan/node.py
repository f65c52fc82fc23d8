"""A server to scan: how it counts cursors, which ranges or slots of it are scanned, and the queries about its keys.

The queries come from a `QuerySource`, such as the inspection: the scan gives it every page of keys, asks it for the
queries of the next write, and returns their replies to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from rtui.keyspace.store.packed_names import SplitNames
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.scan.cursor import Dialect, equal_ranges
from rtui.server.scan.pace import MAX_COUNT, MAX_WIDTH
from rtui.server.scan.ranges import CursorSpan, Ranges, Slots
from rtui.server.scan.slot_ledger import read_slot_view
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, Reply
from rtui.server.wire.lane import Lane

if TYPE_CHECKING:
    from rtui.server.engine._scan import ScanEngine

LEAST_WIDTH: Final = 8
"""Ranges that a keyspace is cut into, if it is; a power of two."""

CUT_FROM: Final = LEAST_WIDTH * MAX_COUNT
"""Keys from which on a keyspace is cut into ranges; below, a page would reach over a whole one."""

RANGE_KEYS: Final = 4 * MAX_COUNT
"""Keys of a range where there are more ranges than LEAST_WIDTH, so that few pages reach over a border."""


FAR_S: Final = 0.02
"""Round trip in seconds from which small keyspaces are cut, too: a page of a range waits for the one before, and has 20
keys if everything is asked about them at gentle pace."""

FAR_RANGE_KEYS: Final = 125
"""Keys of a range over such a link. A page may reach over the border of its range: repeated keys are dropped."""


def width_for(size: int | None, round_trip_s: float = 0.0) -> int:
    """Return how many ranges to cut `size` keys into: a power of two; LEAST_WIDTH if the size is unknown."""
    if size is None:
        return LEAST_WIDTH
    if round_trip_s >= FAR_S:
        return min(MAX_WIDTH, 1 << max(1, size // FAR_RANGE_KEYS).bit_length() - 1)
    if size < CUT_FROM:
        return 1
    return max(LEAST_WIDTH, min(MAX_WIDTH, 1 << (size // RANGE_KEYS).bit_length() - 1))


@dataclass(slots=True)
class KeyQueries:
    """Queries of one write; the scan calls `answered` or `lost`, once."""

    commands: Sequence[Command]
    """The commands to send, at least one."""
    keys: int
    """Their cost to the server, in whole inspections of a key."""
    answered: Callable[[Sequence[Reply], float | None], None]
    """Processes the replies; raises ServerBusyError when some are asked again.

    The second argument is the round trip less an idle one, None when it was not seen in time.
    """
    lost: Callable[[], None]
    """Called if the connection is lost: asks everything again."""
    is_alone: bool = False
    """Whether nothing else may be in the same write, so that its time is its own."""


class QuerySource(Protocol):
    """Queries about the keys that one node's scan delivers."""

    command_names: tuple[str, ...]
    """The commands that are sent for each key, as the server's statistics name them, in lower case."""
    key_us: float
    """Server time for the whole inspection of a key until it is measured, in µs."""

    @property
    def key_share(self) -> float:
        """Mean share of a whole inspection that a listed key gets, above 0 and at most 1."""

    @property
    def waiting(self) -> int:
        """Keys about which something is still to be sent, or answers are to be read."""

    @property
    def unsent(self) -> int:
        """Keys about which something is still to be sent."""

    async def use_lane(self, lane: Lane) -> None:
        """Prepare to ask on this lane from now on; raises ConnectionLost."""

    def add_page(self, keys: list[bytes]) -> None:
        """Add keys to be queried."""

    def next_write(self, most: int) -> KeyQueries | None:
        """Queries about as many keys as `most`, None when there is nothing to ask."""

    def settle(self) -> None:
        """Read all answers that there are, after which there may be more to send."""

    def reset(self) -> None:
        """Forget all keys that wait: the scan begins again."""

    on_absent: Callable[[Sequence[bytes]], object] | None
    """In a cluster, called with keys that are gone or on another node: a node may not know that they have moved.

    If it is None, the former are counted as gone, and the latter stay unknown.
    """

    def take_waiting(self) -> list[bytes]:
        """Forget all keys that wait, and return them: another node's queries go on with them."""
        ...

    def count_gone(self, keys: int) -> None:
        """Count keys as gone, after that was confirmed."""

    @property
    def compiled(self) -> Callable[[ScanEngine], EngineQueries] | None:
        """Makes a new engine send the queries, as far as it can; None if it can't."""


class EngineQueries(Protocol):
    """Queries about keys that the compiled engine of a scan sends."""

    def prepare(self) -> None:
        """Set the engine's next queries."""

    def take(self) -> None:
        """Take the engine's results since the last call; only while the engine rests, like `prepare`."""

    def hand_on(self) -> Iterator[None]:
        """Hand on the results taken, in parts; yields in between, so that the event loop can run."""


@dataclass(frozen=True, slots=True)
class SplitSink:
    """Takes keys that the compiled engine has split and packed already."""

    separators: Sequence[bytes]
    """Where names are split; the engine does that for separators of one byte."""
    add: Callable[[SplitNames], None]


class Cluster(Protocol):
    """The topology of a cluster as a scan needs it: owners and failed primaries."""

    async def owners(self) -> Mapping[int, str]:
        """Return slot to id of the node that serves it now, asked of any reachable node; raises an RtuiError."""
        ...

    @property
    def given_up(self) -> AbstractSet[str]:
        """The ids of the primaries that the cluster has given up with all of their replicas, as it said last."""
        ...

    async def node(self, node_id: str) -> ScanNode:
        """Return a node that has joined, to be scanned from its beginning; raises an RtuiError."""
        ...


class Primary(Protocol):
    """The primary of a replica that is scanned in its place; its views are replies to CLUSTER NODES, if it is a node.

    Each method raises ServerBusyError where the primary can't be asked, and ConnectionLost where the replica is left.
    """

    async def caught_up(self, lane: Lane) -> Reply:
        """Return its view, once the replica on this lane has all that the primary had then."""
        ...

    async def followed(self, lane: Lane) -> Reply:
        """Return its view now, if the replica has followed it since it had caught up."""
        ...

    async def gone(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that no longer exist, excluding keys on their way to another node."""
        ...


@dataclass(frozen=True, slots=True)
class ScanNode:
    """A server to scan, its cursor dialect, and the spans or slots to scan (None: everything)."""

    connection: Connection
    dialect: Dialect = Dialect.STANDALONE
    id: str | None = None
    spans: tuple[CursorSpan, ...] | None = None
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
    """Queries about the keys that this node delivers, sent in the same writes."""
    primary: Primary | None = None
    """The primary, if the connection may lead to a replica."""

    def whole(self, dialect: Dialect) -> ScanNode:
        return replace(self, dialect=dialect, spans=None, first_cursor=0, first_keys=(), run_id=None)

    def primary_on(self, lane: Lane) -> Primary | None:
        """The primary of the replica that answers on this lane; None where it is no replica to be followed."""
        return self.primary if lane.server.role == "replica" else None

    def ranges(self) -> Ranges:
        """Return the ranges to scan, side by side where the order of cursors allows it."""
        if not self.dialect.is_ordered:
            return Ranges(self.dialect, first_cursor=self.first_cursor)
        if self.spans is not None:
            return Ranges(self.dialect, self.spans, slots=self.slots)
        if self.dialect is Dialect.SLOTTED:
            return Ranges(self.dialect, [CursorSpan(self.dialect.position(self.first_cursor))], slots=self.slots)
        begin, width = self.dialect.position(self.first_cursor), width_for(self.size, self.connection.round_trip_s)
        cut = [CursorSpan(max(begin, start), end) for start, end in equal_ranges(width) if end > begin]
        return Ranges(self.dialect, cut, first_keys=self.first_keys)


async def with_slots(node: ScanNode) -> ScanNode:
    """Return a node with the slots it serves, asking it if cursors go slot by slot and the slots are unknown.

    They stay None if it does not answer or serves none.
    """
    if node.slots is not None or node.dialect is not Dialect.SLOTTED:
        return node
    lane = await node.connection.bulk()
    try:
        (reply,) = await lane.run(guard.cluster_nodes())
    except ConnectionLost:
        return node
    view = read_slot_view(reply)
    return node if view is None or not view.slots else replace(node, slots=view.slots)
