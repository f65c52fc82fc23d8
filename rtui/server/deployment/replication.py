"""What servers say of replication, and whether a replica has followed its primary while it was read in its place.

A replica holds what its primary held a moment before. So all pages that it gives between two moments are pages of the
primary between two earlier ones, as long as it follows this primary. To a scan that takes views of the primary (see
`scan.slot_ledger`) such a page lies between two of them under these conditions:

1. Before the first page the replica has reached the offset in the stream of replication that the primary had after
   the first view: what the pages tell is of later.
2. The second view is asked after the last page: what the pages tell is of earlier.
3. The replica has followed the primary all the time. Afterwards its stream has the primary's id of replication still,
   and the primary has not begun to send anybody all keys anew: a replica that had left it would have needed that.

Where one of them does not hold, the replica is left, and what was not confirmed is scanned again on another server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.scan.node import slots_without_keys
from rtui.server.wire.capability import CommandRunner
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, ServerBusyError
from rtui.server.wire.identity import parse_info, parse_number
from rtui.server.wire.replies import Reply

MOST_BEHIND_S: Final = 10.0
"""A replica is waited for so long to reach what its primary had when a scan began."""

CATCH_UP_EVERY_S: Final = 0.02
"""How often it is asked meanwhile."""


@dataclass(frozen=True, slots=True)
class Replication:
    """What a server says in INFO replication; what it does not say is None."""

    is_replica: bool | None = None
    is_linked: bool = False
    """Whether a replica's link to its primary is up, and no copy of all keys is under way."""
    offset: int | None = None
    """How many bytes of the stream of replication it has written, or taken in."""
    stream: str | None = None
    """The id of that stream, which a replica has from its primary."""


def read_replication(reply: Reply) -> Replication:
    """Read the reply to INFO replication."""
    fields = parse_info(reply)
    role = fields.get("role")
    is_replica = None if role is None else role == "slave"
    is_linked = fields.get("master_link_status") == "up" and parse_number(fields, "master_sync_in_progress") == 0
    offset = parse_number(fields, "slave_repl_offset" if is_replica else "master_repl_offset")
    return Replication(is_replica, is_linked, offset, fields.get("master_replid") or None)


async def ask_replication(server: CommandRunner) -> Replication:
    """Ask a server how its replication is; raises ConnectionLost."""
    (reply,) = await server.run(guard.info("replication"))
    return read_replication(reply)


def why_not_in_sync(replica: Replication) -> SafeText | None:
    """Return why a replica should not be asked by what it says itself, as the end of a sentence; None if it may be."""
    if not replica.is_replica:
        return SafeText("is no replica any more")
    if not replica.is_linked:
        return SafeText("has no link to its primary, or is copying all keys anew")
    return None


@dataclass(frozen=True, slots=True)
class _Primary:
    """What a primary says of itself at one moment."""

    view: Reply
    """Its reply to CLUSTER NODES; None outside a cluster."""
    replication: Replication
    full_copies: int | None
    """How often it has begun to send a replica all keys."""


class FollowedPrimary:
    """The primary of a replica that is scanned in its place; implements `scan.node.Primary`, see the module."""

    def __init__(
        self,
        label: SafeText,
        connection: Callable[[], Awaitable[Connection]],
        leave: Callable[[SafeText], ConnectionLost],
    ) -> None:
        """`leave` has another server asked from now on, for a reason that ends a sentence; it returns what to raise."""
        self.label = label
        """`host:port` of the primary."""
        self._connection, self._leave = connection, leave
        self._before: tuple[str | None, int | None] = None, None
        """The primary's stream, and its full copies, when the replica had caught up last."""

    @for_purpose(Purpose.SERVER)
    async def caught_up(self, lane: CommandRunner) -> Reply:
        """Return the primary's view once the replica on this lane has all that the primary had then.

        Raises ConnectionLost where the replica is left since it has not, and ServerBusyError without the primary.
        """
        loop = asyncio.get_running_loop()
        primary, until = await self._ask(), loop.time() + MOST_BEHIND_S
        while True:
            replica = await ask_replication(lane)
            self._check(replica, primary)
            if (replica.offset or 0) >= (primary.replication.offset or 0):
                break
            if loop.time() > until:
                raise self._leave(SafeText(f"has not reached in {MOST_BEHIND_S:g} s what its primary had"))
            await asyncio.sleep(CATCH_UP_EVERY_S)
        self._before = primary.replication.stream, primary.full_copies
        return primary.view

    @for_purpose(Purpose.SERVER)
    async def followed(self, lane: CommandRunner) -> Reply:
        """Return the primary's view now, if the replica has followed it since it had caught up; raises as above."""
        replica = await ask_replication(lane)
        primary = await self._ask()
        self._check(replica, primary)
        if (primary.replication.stream, primary.full_copies) != self._before:
            raise self._leave(SafeText("may have copied all keys anew"))
        return primary.view

    def _check(self, replica: Replication, primary: _Primary) -> None:
        """Leave a replica that does not follow this primary, or of which that can't be told; raises ConnectionLost."""
        why = why_not_in_sync(replica)
        known = (primary.replication.offset, primary.replication.stream, primary.full_copies, replica.offset)
        if why is None and None in known:
            why = SafeText("can't be compared with its primary, which does not tell how far it is (INFO)")
        if why is None and replica.stream != primary.replication.stream:
            why = SafeText("follows another primary")
        if why is not None:
            raise self._leave(why)

    async def _ask(self) -> _Primary:
        """Ask the primary; its offset is that of a moment after its view. Raises ServerBusyError if it can't be had."""
        try:
            connection = await self._connection()
            view = (guard.cluster_nodes(),) if connection.server.cluster_enabled else ()
            asked: tuple[Command, ...] = (*view, guard.info("replication"), guard.info("stats"))
            *views, replication, stats = await connection.run(*asked)
        except ConnectionLost as lost:
            raise ServerBusyError(f"Its primary {self.label} can't be asked: {lost.happened}") from None
        full_copies = parse_number(parse_info(stats), "sync_full")
        return _Primary(views[0] if views else None, read_replication(replication), full_copies)

    @for_purpose(Purpose.SERVER)
    async def gone(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of these keys that are nowhere by the primary's account, not just on their way to another node.

        Raises ConnectionLost.
        """
        connection = await self._connection()
        replies = await connection.run(*map(guard.key_type, keys))
        return [key for key, reply in zip(keys, replies, strict=True) if reply == b"none"]

    @for_purpose(Purpose.SERVER)
    async def without_keys(self, slots: Sequence[int]) -> set[int]:
        """Return those of these slots of which the primary has no key; raises ConnectionLost."""
        return await slots_without_keys(await self._connection(), slots)
