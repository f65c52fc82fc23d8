"""How many nodes of a cluster are asked in bulk at the same time: each waits for its turn, first come, first served.

What a run costs rtui itself grows with the nodes that are under way, not with all there are: connections, threads and
buffers, and callbacks that stand before a key that is pressed. So a node is scanned to its end before another one
begins. That suits a cluster, too: between two views of a node little time passes in which its slots may move, and what
was delivered of them is to be remembered for that time only. The pace of each node stays what it is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rtui.server.wire.connection import Connection

NODES_AT_ONCE: Final = 16
"""Nodes that are asked in bulk at the same time.

At the gentle pace each gives 14,000 inspected keys a second or more, and rtui adds up 240,000 a second with one
processor: more nodes are not faster, and have a keypress wait longer (tests/bench/README.md).
"""


class Turns:
    """Lets at most `at_once` nodes work at a time, with as many connections for bulk work open."""

    def __init__(self, at_once: int = NODES_AT_ONCE) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._at_once = at_once
        self._working = 0
        self._rested: dict[Connection, None] = {}
        """Connections of nodes that had turns, and that work no more: the one that has rested longest comes first."""

    @contextlib.asynccontextmanager
    async def turn(self, connection: Connection) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the block.

        Lanes for bulk work that have rested longest are closed where there would be too many.
        """
        async with self._free:
            self._working += 1
            connection.bulk_turns += 1
            self._rested.pop(connection, None)
            while self._rested and self._working + len(self._rested) > self._at_once:
                rested = next(iter(self._rested))
                del self._rested[rested]
                rested.close_bulk()
            try:
                yield
            finally:
                self._working -= 1
                connection.bulk_turns -= 1
                self._rested[connection] = None
