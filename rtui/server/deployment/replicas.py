"""Reading from replicas: which one of a primary is asked, how far it is behind, and when the primary is asked again.

A replica is asked while it is in sync: its link to the primary is up, no copy of all keys is under way, and it is at
most MOST_LAG_S behind. How far that is follows from the offsets in the stream of replication that both tell:

    second             0      2      4
    primary's offset   100    180    300
    replica's offset                 200

At second 4 the replica has all that the primary had at second 2, so it is 2 s behind at most. A replica that is not in
sync any more, that was promoted or can't be reached is left for good: the connection goes to another one, else to the
primary. A scan notices that another server answers, as after a failover.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, RtuiError
from rtui.server.wire.identity import ServerIdentity, parse_info, parse_number
from rtui.server.wire.replies import Reply
from rtui.server.wire.supervised_tasks import end_task, start_supervised
from rtui.server.wire.target import MAX_PORT, Target
from rtui.server.wire.ways import Address

MOST_LAG_S: Final = 10.0
"""A replica that is further behind is not asked."""

CHOICE_S: Final = 5.0
"""So long it is waited until a replica, or else the primary, has answered before a scan begins with the others."""

CHECK_EVERY_S: Final = 2.0
"""How often it is asked how far replicas are behind."""

_REPLICA: Final = re.compile(r"ip=([^,]+),port=([0-9]{1,5}),state=online(?:,|\Z)")


@dataclass(frozen=True, slots=True)
class Replication:
    """What a server says in INFO replication; what it does not say is None."""

    is_replica: bool | None = None
    is_linked: bool = False
    """Whether a replica's link to its primary is up, and no copy of all keys is under way."""
    offset: int | None = None
    """How many bytes of the stream of replication it has written, or taken in."""
    replicas: tuple[Address, ...] = ()
    """The replicas of a primary that are online."""


def read_replication(reply: Reply) -> Replication:
    """Read the reply to INFO replication."""
    fields = parse_info(reply)
    role = fields.get("role")
    is_replica = None if role is None else role == "slave"
    is_linked = fields.get("master_link_status") == "up" and parse_number(fields, "master_sync_in_progress") == 0
    found = (_REPLICA.match(value) for name, value in fields.items() if re.fullmatch("slave[0-9]{1,5}", name))
    return Replication(
        is_replica,
        is_linked,
        parse_number(fields, "slave_repl_offset" if is_replica else "master_repl_offset"),
        tuple((one[1], int(one[2])) for one in found if one is not None and 0 < int(one[2]) <= MAX_PORT),
    )


class LagWatch:
    """How far a replica is behind its primary, by what both have told at several moments."""

    def __init__(self) -> None:
        self.lag_s: float | None = None
        """At the last moment, in seconds; the replica may have been a round trip further. None before the first one."""
        self._written: deque[tuple[float, int]] = deque()
        """Moments and the offset of the primary then, the first being the last that the replica has reached."""

    def observe(self, primary: int, replica: int, now_s: float) -> float:
        """Learn the offsets of this moment and return the lag; `now_s` is on a monotonic clock."""
        written = self._written
        written.append((now_s, primary))
        while len(written) > 1 and written[1][1] <= replica:
            written.popleft()
        self.lag_s = now_s - written[0][0]
        return self.lag_s


class ReplicaFinder:
    """Says where the connection to a primary's data goes: to a replica that is in sync, else to the primary."""

    note = None

    def __init__(self, places: Callable[[], tuple[Target, Sequence[Target]]]) -> None:
        """`places` returns the primary and its replicas as they are known now; the primary says what is wanted."""
        self.lag = LagWatch()
        self.left: dict[Address, SafeText] = {}
        """The replicas that are not asked any more, and why, as the end of a sentence."""
        self.asked: Address | None = None
        """The replica that is asked; None for the primary."""
        self._places = places
        self._is_tried = False

    async def locate(self) -> Target:
        """Return where the next attempt goes; raises ConnectFailure where there is no replica and has to be one."""
        if self._is_tried and self.asked is not None:
            self.leave(SafeText("can't be reached"))
        self._is_tried = True
        primary, replicas = self._places()
        for one in replicas:
            if (one.host, one.port) not in self.left:
                self.asked, self.lag = (one.host, one.port), LagWatch()
                return one
        self.asked = None
        if primary.replicas != "only":
            return primary
        why = "; ".join(f"{host}:{port} {reason}" for (host, port), reason in self.left.items())
        self.left.clear()
        raise ConnectFailure(
            FailureKind.NO_REPLICA,
            f"No replica of {primary.label} can be asked{f': {why}' if why else ''}.",
            "--replicas prefer asks the primary then.",
        )

    def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
        """Return why the server that has answered is not asked; None where it may be."""
        self._is_tried = False
        if self.asked is None or (server.role == "replica" and server.primary_link_up):
            return None
        why = "has no link to its primary" if server.role == "replica" else "is no replica any more"
        host, port = self.asked
        self.leave(SafeText(why))
        return ConnectFailure(FailureKind.FAILOVER, f"{host}:{port} {why}.", "Another server is asked.")

    def leave(self, why: SafeText) -> None:
        """Do not ask this replica any more."""
        if self.asked is not None:
            self.left[self.asked] = why
            self.asked = None

    def judge(self, replica: Replication, primary: Replication | None, now_s: float) -> SafeText | None:
        """Return why the replica should not be asked any more by what it and its primary say; None if it may be."""
        if not replica.is_replica:
            return SafeText("is no replica any more")
        if not replica.is_linked:
            return SafeText("has no link to its primary, or is copying all keys anew")
        if primary is None or primary.offset is None or replica.offset is None:
            return None
        lag_s = self.lag.observe(primary.offset, replica.offset, now_s)
        return SafeText(f"is {round(lag_s)} s behind its primary") if lag_s > MOST_LAG_S else None

    async def close(self) -> None:
        """End nothing: it asks nobody."""


class ReplicaConnections:
    """A connection for scans to each primary or a replica of it; replicas are checked every few seconds."""

    def __init__(
        self,
        places: Callable[[str], tuple[Target, Sequence[Target]]],
        connect: Callable[[ReplicaFinder], Connection],
        connection_of: Callable[[str], Awaitable[Connection]],
        notes: dict[SafeText, None],
    ) -> None:
        """`places` returns a primary and its replicas by the primary's id, `connection_of` a connection to it.

        `connect` makes a connection that goes where the finder says; `notes` get which replicas were left, and why.
        """
        self.connections: dict[str, Connection] = {}
        """By the ids of the primaries."""
        self._finders: dict[str, ReplicaFinder] = {}
        self._places, self._connect, self._connection_of, self._notes = places, connect, connection_of, notes
        self._checking: asyncio.Task[None] | None = None

    def is_asked(self, primary_id: str) -> bool:
        """Whether it is a replica of this primary that is asked."""
        return primary_id in self._finders and self._finders[primary_id].asked is not None

    def lag_s(self, primary_id: str) -> float | None:
        """How far the replica that is asked is behind; None for the primary, and where that is not known."""
        return self._finders[primary_id].lag.lag_s if self.is_asked(primary_id) else None

    async def connection_for(self, primary_id: str) -> Connection:
        """Return the connection to the data of a primary, which goes on trying where nobody has answered yet."""
        connection = self.connections.get(primary_id)
        if connection is None:
            finder = self._finders[primary_id] = ReplicaFinder(partial(self._places, primary_id))
            connection = self.connections[primary_id] = self._connect(finder)
            connection.start()
            if self._checking is None:
                self._checking = start_supervised(self._check_all(), name="rtui replicas", failed=self._failed)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHOICE_S):
                await connection.online()
        return connection

    @for_purpose(Purpose.SERVER)
    async def _check_all(self) -> None:
        """Leave replicas that are not in sync any more."""
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            await asyncio.gather(*(self._check(one) for one in self._finders if self.is_asked(one)))

    async def _check(self, primary_id: str) -> None:
        finder, connection = self._finders[primary_id], self.connections[primary_id]
        try:
            replica = await _replication_of(connection)
        except ConnectionLost:
            return
        primary: Replication | None = None
        with contextlib.suppress(ConnectionLost):
            primary = await _replication_of(await self._connection_of(primary_id))
        why = finder.judge(replica, primary, asyncio.get_running_loop().time())
        if why is not None:
            self._notes[SafeText(f"The replica {connection.target.label} {why}: it is not asked any more.")] = None
            finder.leave(why)
            connection.reconnect(SafeText(f"The replica {why}."))

    def _failed(self, failure: RtuiError) -> None:
        self._notes[failure.happened] = None

    async def close(self) -> None:
        """Close all connections."""
        await end_task(self._checking)
        await asyncio.gather(*(one.close() for one in self.connections.values()))


async def _replication_of(connection: Connection) -> Replication:
    """Ask a server how its replication is; raises ConnectionLost."""
    (reply,) = await connection.run(guard.info("replication"))
    return read_replication(reply)
