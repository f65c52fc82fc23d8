"""The first page of a keyspace: the first rows after one round trip, with the size of the database at that moment.

It is asked for on the interactive lane, which is open already, in one write with what tells the size. A server that
answers SCAN only by itself is asked once more, one command at a time, on the lane for bulk work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import Primary, ScanNode
from rtui.server.scan.node_scan import MAX_LOSSES
from rtui.server.scan.page import (
    BeginAgainError,
    ScanFilter,
    SizeSnapshot,
    read_snapshot,
    scan_page,
    snapshot_commands,
)
from rtui.server.scan.progress import Cost
from rtui.server.wire.backoff import backoff_s
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, ServerBusyError

FIRST_COUNT: Final = 20
"""COUNT of the page that brings the first rows, on the interactive lane, where names may be of any length."""


class FirstPage:
    """Asks for the first page until it comes; `read` it once, the rest may be read at any time."""

    def __init__(self, only: ScanFilter) -> None:
        self.waits_for: SafeText | None = None
        """Why it does not come yet."""
        self.keys: Sequence[bytes] = ()
        """All that the server has sent, also what the filter does not let through."""
        self.before: SizeSnapshot | None = None
        """The database when it came; None before that."""
        self.cost = Cost()
        self.revision = 0
        """Raised by every change of `waits_for`."""
        self._only = only

    @property
    def is_uncounted(self) -> bool:
        """Whether the server counts its keys only now and then: DBSIZE was 0 beside keys."""
        return bool(self.keys) and self.before is not None and self.before.size == 0

    @property
    def size(self) -> int | None:
        """Keys of the database when it came, if that is known."""
        return None if self.before is None or self.is_uncounted else self.before.size

    async def read(self, connection: Connection, primary: Primary | None, store: NamespaceStore) -> ScanNode | None:
        """Put the first rows into the store; return what is left to scan, None if that was all.

        `primary` is that of a replica. Raises a ScanRefusedError, or ConnectionLost after MAX_LOSSES of them.
        """
        only, is_alone = self._only, False
        attempt = losses = 0
        while True:
            await connection.online()
            server = connection.server
            match, passes = only.sent_to(server)
            command = guard.scan(0, count=FIRST_COUNT, match=match, key_type=only.key_type)
            asked = (command, *snapshot_commands(connection))
            try:
                if is_alone:  # on the interactive lane others may ask something at the same time
                    lane = await connection.bulk()
                    replies = [*await lane.run(command), *await lane.run(*asked[1:])]
                else:
                    replies = await connection.run(*asked)
                cursor, keys = scan_page(replies[0])
                break
            except BeginAgainError:
                if is_alone:
                    raise
                is_alone = True
            except (ConnectionLost, ServerBusyError) as trouble:
                attempt += 1
                losses += isinstance(trouble, ConnectionLost)
                if losses >= MAX_LOSSES:
                    raise
                self._wait_for(trouble.happened)
                await asyncio.sleep(backoff_s(attempt, Random()))
        self._wait_for(None)
        self.keys, self.before = keys, read_snapshot(connection, replies[1:])
        self.cost = Cost(commands=len(asked), keys=len(keys))
        store.add(keys if passes is None else [*filter(passes, keys)])
        if not cursor:
            return None
        return ScanNode(
            connection,
            dialect_of(server),
            first_cursor=cursor,
            first_keys=keys,
            size=self.size,
            run_id=server.run_id,
            primary=primary,
        )

    def _wait_for(self, why: SafeText | None) -> None:
        self.waits_for = why
        self.revision += 1
