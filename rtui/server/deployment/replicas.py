"""Reading from replicas: the choice of a primary's replica, its lag, and the return to the primary.

A replica is used while it is in sync: its link to the primary is up, no full synchronisation is under way, and it is at
most MOST_LAG_S behind. The lag follows from the replication offsets of both:

    second             0      2      4
    primary's offset   100    180    300
    replica's offset                 200

At second 4 the replica has everything that the primary had at second 2, so it is 2 s behind at most. A replica that is
not in sync any more, was promoted or can't be reached is left for good: the connection goes to another one, else to the
primary. A scan notices that another server answers, as after a failover.

A replica holds the data that its primary held a moment before. So all pages from it between two moments are pages of
the primary between two earlier moments, as long as it follows this primary. For a scan that takes views of the primary
(see `scan.slot_ledger`) such a page lies between two of them under these conditions:

1. Before the first page the replica has reached the replication offset that the primary had after the first view:
   the pages are of a later state.
2. The second view is read after the last page: the pages are of an earlier state.
3. The replica has followed the primary all the time. Afterwards its replication id is still the primary's, and the
   primary has not begun a full synchronisation: a replica that had left it would have needed one.

If one of them fails, the replica is left, and unconfirmed slots are scanned again on another server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.wire.capability import CommandRunner
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, Reply, RtuiError, ServerBusyError
from rtui.server.wire.failures import demoted_failure
from rtui.server.wire.identity import ServerIdentity, parse_info, parse_number
from rtui.server.wire.supervised_tasks import BackgroundTasks, end_task, for_each, start_supervised
from rtui.server.wire.target import Address, Target, address_text

MOST_BEHIND_S: Final = 10.0
"""The time for a replica to reach the offset that its primary had when a scan began."""

CATCH_UP_EVERY_S: Final = 0.02
"""The interval at which it is asked meanwhile."""


@dataclass(frozen=True, slots=True)
class Replication:
    """The fields of INFO replication; missing ones are None."""

    is_replica: bool | None = None
    is_linked: bool = False
    """Whether a replica's link to its primary is up, and no full synchronisation is under way."""
    offset: int | None = None
    """The replication offset: bytes written by a primary, or processed by a replica."""
    stream: str | None = None
    """The replication id, which a replica has from its primary."""


def read_replication(reply: Reply) -> Replication:
    fields = parse_info(reply)
    role = fields.get("role")
    is_replica = None if role is None else role == "slave"
    is_linked = fields.get("master_link_status") == "up" and parse_number(fields, "master_sync_in_progress") == 0
    offset = parse_number(fields, "slave_repl_offset" if is_replica else "master_repl_offset")
    return Replication(is_replica, is_linked, offset, fields.get("master_replid") or None)


async def ask_replication(server: CommandRunner) -> Replication:
    """Read the replication state of a server; raises ConnectionLost."""
    (reply,) = await server.run(guard.info("replication"))
    return read_replication(reply)


def why_not_in_sync(replica: Replication) -> SafeText | None:
    """Return why a replica should not be used by its own account, as the end of a sentence, or None."""
    if not replica.is_replica:
        return SafeText("is no longer a replica")
    if not replica.is_linked:
        return SafeText("has no link to its primary, or is in a full resynchronisation")
    return None


@dataclass(frozen=True, slots=True)
class _Primary:
    """The state of a primary at one moment."""

    view: Reply
    """Its reply to CLUSTER NODES; None outside a cluster."""
    replication: Replication
    full_copies: int | None
    """The number of full synchronisations that it has begun."""


class FollowedPrimary:
    """The primary of a replica that is scanned in its place; implements `scan.node.Primary`, see the module."""

    def __init__(
        self,
        label: SafeText,
        connection: Callable[[], Awaitable[Connection]],
        leave: Callable[[SafeText], ConnectionLost],
    ) -> None:
        """`leave` switches to another server, for a reason that ends a sentence; it returns the exception to raise."""
        self.label = label
        """`host:port` of the primary."""
        self._connection, self._leave = connection, leave
        self._before: tuple[str | None, int | None] = None, None
        """The primary's replication id and number of full synchronisations when the replica had last caught up."""

    @for_purpose(Purpose.SERVER)
    async def caught_up(self, lane: CommandRunner) -> Reply:
        """Return the primary's view once the replica on this lane has caught up with it.

        Raises ConnectionLost if the replica is left because it has not, and ServerBusyError without the primary.
        """
        loop = asyncio.get_running_loop()
        primary, until = await self._ask(), loop.time() + MOST_BEHIND_S
        while True:
            replica = await ask_replication(lane)
            self._check(replica, primary)
            if (replica.offset or 0) >= (primary.replication.offset or 0):
                break
            if loop.time() > until:
                raise self._leave(SafeText(f"has not reached in {MOST_BEHIND_S:g} s the offset of its primary"))
            await asyncio.sleep(CATCH_UP_EVERY_S)
        self._before = primary.replication.stream, primary.full_copies
        return primary.view

    @for_purpose(Purpose.SERVER)
    async def followed(self, lane: CommandRunner) -> Reply:
        """Return the primary's current view, if the replica has followed it since it caught up; raises as above."""
        replica = await ask_replication(lane)
        primary = await self._ask()
        self._check(replica, primary)
        if (primary.replication.stream, primary.full_copies) != self._before:
            raise self._leave(SafeText("may have had a full resynchronisation"))
        return primary.view

    def _check(self, replica: Replication, primary: _Primary) -> None:
        """Leave a replica that does not follow this primary, or may not; raises ConnectionLost."""
        why = why_not_in_sync(replica)
        known = (primary.replication.offset, primary.replication.stream, primary.full_copies, replica.offset)
        if why is None and None in known:
            why = SafeText("can't be compared with its primary, which does not report its offset (INFO)")
        if why is None and replica.stream != primary.replication.stream:
            why = SafeText("follows another primary")
        if why is not None:
            raise self._leave(why)

    async def _ask(self) -> _Primary:
        """Read the primary's state, its offset after its view. Raises ServerBusyError if unreachable."""
        try:
            connection = await self._connection()
            view = (guard.cluster_nodes(),) if connection.server.cluster_enabled else ()
            asked: tuple[Command, ...] = (*view, guard.info("replication"), guard.info("stats"))
            *views, replication, stats = await connection.run(*asked)
        except ConnectionLost as lost:
            raise ServerBusyError(f"Its primary {self.label} can't be reached: {lost.happened}") from None
        full_copies = parse_number(parse_info(stats), "sync_full")
        return _Primary(views[0] if views else None, read_replication(replication), full_copies)

    @for_purpose(Purpose.SERVER)
    async def gone(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that the primary does not have either, so that they are not just moving to another node.

        Raises ConnectionLost.
        """
        connection = await self._connection()
        replies = await connection.run(*map(guard.key_type, keys))
        return [key for key, reply in zip(keys, replies, strict=True) if reply == b"none"]


MOST_LAG_S: Final = 10.0

MOST_NAMED: Final = 5
"""The most primaries without a replica that are named."""

CHOICE_S: Final = 2.0
"""The time to wait for a replica in sync before a scan begins; else the primary is used."""

CHECK_EVERY_S: Final = 2.0


class LagWatch:
    """The lag of a replica behind its primary, from the offsets of both at several moments."""

    def __init__(self) -> None:
        self.lag_s: float | None = None
        """The lag in seconds at the last moment; the replica may have been a round trip further. None before the first
        one."""
        self._written: deque[tuple[float, int]] = deque()
        """Moments with the primary's offset; the first is the last that the replica has reached."""

    def observe(self, primary: int, replica: int, now_s: float) -> float:
        """Learn the offsets of this moment and return the lag; `now_s` is on a monotonic clock."""
        written = self._written
        written.append((now_s, primary))
        while len(written) > 1 and written[1][1] <= replica:
            written.popleft()
        self.lag_s = now_s - written[0][0]
        return self.lag_s


def no_replica_failure(primaries: Sequence[str], why: str = "") -> ConnectFailure:
    """Return the failure for primaries without a usable replica; `why` is the end of a sentence."""
    named = ", ".join(primaries[:MOST_NAMED]) + (", …" if len(primaries) > MOST_NAMED else "")
    happened = f"No replica of {named} is available{f': {why}' if why else ''}."
    return ConnectFailure(FailureKind.NO_REPLICA, happened, "--replicas prefer falls back to the primary.")


class ReplicaFinder:
    """Chooses the address of a primary's data: a replica that is in sync, else the primary."""

    note = None

    def __init__(
        self,
        places: Callable[[], tuple[Target, Sequence[Target]]],
        on_left: Callable[[SafeText], object] = lambda happened: None,
    ) -> None:
        """`places` returns the current targets of the primary and its replicas; the primary has the user's choice.

        `on_left` is called with a sentence for each replica that is left.
        """
        self.lag = LagWatch()
        self.left: dict[Address, SafeText] = {}
        """The replicas that were left, each with the reason as the end of a sentence."""
        self.asked: Address | None = None
        """The replica in use; None for the primary."""
        self._places, self._on_left = places, on_left
        self._is_tried = False
        self._zones: dict[Address, SafeText | None] = {}

    async def locate(self) -> Target:
        """Return the target of the next attempt; raises ConnectFailure if a replica is required and there is none."""
        if self._is_tried and self.asked is not None:
            self.leave(SafeText("can't be reached"))
        self._is_tried = True
        primary, replicas = self._places()
        left = [replica for replica in replicas if (replica.host, replica.port) not in self.left]
        if left:
            one = min(left, key=lambda one: (self._distance(one, primary.zone), (one.host, one.port) != self.asked))
            self.asked, self.lag = (one.host, one.port), LagWatch()
            return one
        self.asked = None
        if primary.replicas != "only":
            return primary
        why = "; ".join(f"{address_text(*address)} {reason}" for address, reason in self.left.items())
        self.left.clear()
        raise no_replica_failure([primary.label], why)

    def _distance(self, replica: Target, zone: str | None) -> int:
        """Return 0 for a replica in our zone, 1 for an unknown zone, 2 for others."""
        address = replica.host, replica.port
        if zone is None or address not in self._zones:
            return 1
        return 0 if self._zones[address] == zone else 2

    def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
        """Return why the server is not used, or None."""
        self._is_tried = False
        if self.asked is None:
            primary, _ = self._places()
            is_demoted = primary.sentinels is not None and server.role == "replica"
            return demoted_failure(primary) if is_demoted else None
        if server.role == "replica" and server.primary_link_up:
            is_known = self.asked in self._zones
            self._zones[self.asked] = server.zone
            followed, replicas = self._places()
            untried = any((replica.host, replica.port) not in {*self._zones, *self.left} for replica in replicas)
            if is_known or followed.zone in {None, server.zone} or server.zone is None or not untried:
                return None
            happened = f"{address_text(*self.asked)} is in zone {server.zone}."
            return ConnectFailure(FailureKind.FAILOVER, happened, "Trying another replica.")
        why = "has no link to its primary" if server.role == "replica" else "is no longer a replica"
        who = address_text(*self.asked)
        self.leave(SafeText(why))
        return ConnectFailure(FailureKind.FAILOVER, f"{who} {why}.", "Using another server.")

    def leave(self, why: SafeText) -> None:
        if self.asked is not None:
            who = address_text(*self.asked)
            self.left[self.asked] = why
            self.asked = None
            self._on_left(SafeText(f"The replica {who} {why}; it is no longer used."))

    def judge(self, replica: Replication, primary: Replication | None, now_s: float) -> SafeText | None:
        """Return why the replica should not be used any more by its and its primary's account, or None."""
        why = why_not_in_sync(replica)
        if why is not None or primary is None or primary.offset is None or replica.offset is None:
            return why
        lag_s = self.lag.observe(primary.offset, replica.offset, now_s)
        return SafeText(f"is {round(lag_s)} s behind its primary") if lag_s > MOST_LAG_S else None

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True, slots=True)
class AskedReplica:
    """A connection for scans to a replica, or, once that was left, to the primary; and that primary."""

    connection: Connection
    finder: ReplicaFinder
    primary: FollowedPrimary


class ReplicaConnections:
    """A connection for scans to a replica of each primary; replicas are checked every few seconds."""

    def __init__(
        self,
        places: Callable[[str], tuple[Target, Sequence[Target]]],
        connect: Callable[[ReplicaFinder], Connection],
        connection_of: Callable[[str], Awaitable[Connection]],
        notes: dict[SafeText, None],
    ) -> None:
        """`places` returns the targets of a primary and its replicas by the primary's id, `connection_of` its
        connection.

        `connect` makes a connection whose addresses the finder chooses; `notes` get the replicas that were left, with
        reasons.
        """
        self._asked: dict[str, AskedReplica] = {}
        """By the ids of the primaries."""
        self._used: set[str] = set()
        self._given_up: set[str] = set()
        """Primaries whose replicas were not in sync in time."""
        self._places, self._connect, self._connection_of, self._notes = places, connect, connection_of, notes
        self._checking: asyncio.Task[None] | None = None
        self._closing = BackgroundTasks()

    def is_asked(self, primary_id: str) -> bool:
        return primary_id in self._asked and self._asked[primary_id].finder.asked is not None

    def connection(self, primary_id: str) -> Connection | None:
        return self._asked[primary_id].connection if primary_id in self._asked else None

    def lag_s(self, primary_id: str) -> float | None:
        """Return the lag of the replica in use; None for the primary, and if it is unknown."""
        return self._asked[primary_id].finder.lag.lag_s if self.is_asked(primary_id) else None

    async def asked(self, primary_id: str) -> AskedReplica | None:
        """Return the replica to use in place of a primary, once it has caught up; None to use the primary.

        If only replicas are allowed, the connection goes on trying to find one.
        """
        primary, replicas = self._places(primary_id)
        is_needed = primary.replicas == "only"
        if not is_needed and (primary_id in self._given_up or not (replicas or primary_id in self._asked)):
            return None
        found = self._asked.get(primary_id) or self._begin(primary_id)
        is_in_sync = False
        with contextlib.suppress(TimeoutError, ConnectionLost):
            async with asyncio.timeout(CHOICE_S):
                await self._in_sync(found)
                is_in_sync = True
        if primary_id in self._given_up:
            return None
        if is_in_sync or is_needed or primary_id in self._used:
            self._used.add(primary_id)
            return found
        self._note(SafeText(f"Using the primary {primary.label}: no replica was in sync within {CHOICE_S:g} s."))
        self._given_up.add(primary_id)
        self.forget(primary_id)
        return None

    def _begin(self, primary_id: str) -> AskedReplica:
        finder = ReplicaFinder(partial(self._places, primary_id), self._note)
        connection = self._connect(finder)
        followed = FollowedPrimary(
            self._places(primary_id)[0].label,
            partial(self._connection_of, primary_id),
            partial(self._leave, primary_id),
        )
        found = self._asked[primary_id] = AskedReplica(connection, finder, followed)
        connection.start()
        if self._checking is None:
            self._checking = start_supervised(self._check_all(), name="rtui replicas", failed=self._failed)
        return found

    async def _in_sync(self, found: AskedReplica) -> None:
        """Wait until a replica has caught up with its primary, or the primary is used instead.

        Raises ConnectionLost once the connection is closed.
        """
        while True:
            await found.connection.online()
            if found.finder.asked is None:
                return
            try:
                await found.primary.caught_up(found.connection)
            except ConnectionLost:
                await asyncio.sleep(0)  # until the connection knows of it, too
            except ServerBusyError:  # without its primary; the scan waits for that
                return
            else:
                return

    def _leave(self, primary_id: str, why: SafeText) -> ConnectionLost:
        """Switch from a replica to another server; return the exception that says so.

        The role of a primary that was a replica when connected is read again.
        """
        found = self._asked.get(primary_id)
        if found is not None:
            found.finder.leave(why)
            found.connection.reconnect(SafeText(f"The replica {why}."))
        return ConnectionLost(SafeText(f"The replica {why}."))

    @for_purpose(Purpose.SERVER)
    async def _check_all(self) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            await for_each([asked for asked in self._asked if self.is_asked(asked)], self._check)

    async def _check(self, primary_id: str) -> None:
        found = self._asked[primary_id]
        primary: Replication | None = None
        try:
            replica = await ask_replication(found.connection)
            with contextlib.suppress(ConnectionLost):
                primary = await ask_replication(await self._connection_of(primary_id))
        except ConnectionLost:
            return
        why = found.finder.judge(replica, primary, asyncio.get_running_loop().time())
        if why is not None:
            self._leave(primary_id, why)

    def _note(self, happened: SafeText) -> None:
        self._notes[happened] = None

    def _failed(self, failure: RtuiError) -> None:
        self._note(failure.happened)

    def forget(self, primary_id: str) -> None:
        """Close the connection in place of a primary in the background; another one is made on demand."""
        found = self._asked.pop(primary_id, None)
        self._used.discard(primary_id)
        if found is not None:
            self._closing.start(found.connection.close(), name="rtui closing")

    async def close(self) -> None:
        await end_task(self._checking)
        await asyncio.gather(*(asked.connection.close() for asked in self._asked.values()), self._closing.finish())
