"""Proves by replies that a server's cursors are positions before one is made up, whatever the server says it is.

Random cursors, ranges side by side and progress rest on cursors that are reversed bucket numbers (`cursor.py`). A
server that calls itself a standalone Redis may be a proxy for several, whose cursors hold the number of a shard as
well. So a few cursors at random places are asked for a page of one key, in one write, each of them twice: the second
time with a bit changed that is above all buckets. If cursors are positions, both pages are the same, each returned
cursor is ahead of the one sent, and hardly any is 0, the end of the scan.

A server that fails is scanned from cursor 0 with the cursors that it returns, one call at a time, without an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from rtui.server import guard
from rtui.server.chance import new_random
from rtui.server.scan.cursor import POSITION_END, Dialect, dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.page import BeginAgainError, scan_page
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ScanRefusedError, ServerBusyError

PLACES: Final = 6

MOST_ENDS: Final = 3
"""Random places at most where SCAN may return 0: four do so by chance once in 65,000 writes with 128 buckets."""

MOST_CHANGED: Final = 1
"""Random places at most that may return two different pages, since keys come and go between two commands."""

ABOVE_BUCKETS: Final = 1 << 62
"""The bit that is changed: no table has as many buckets."""

ATTEMPTS: Final = 2
"""Tries before cursors are judged not to be positions."""

PROVED_FROM: Final = 250
"""Smaller databases are neither cut into ranges nor sampled."""


def places(dialect: Dialect, rng: Random) -> list[int]:
    """Return the cursors to prove: 0 and random ones, or only 0 if cursors go slot by slot, as a node has few slots."""
    random_places = [dialect.cursor(rng.randrange(POSITION_END)) for _ in range(PLACES)]
    return [0, *random_places] if dialect is Dialect.STANDALONE else [0]


def are_positions(dialect: Dialect, cursors: Sequence[int], replies: Sequence[Reply]) -> bool:
    """Return whether these pairs of SCAN replies, to each cursor and to the one with the changed bit, prove positions.

    Raises ServerBusyError.
    """
    try:
        pages = [scan_page(reply) for reply in replies]
        reached = [dialect.reached(cursor) for cursor, _ in pages]
    except (ScanRefusedError, ValueError):
        return False
    ends = sum(cursor == 0 for cursor, _ in pages[2::2])
    changed = sum(one != other for one, other in zip(pages[::2], pages[1::2], strict=True))
    are_ahead = all(dialect.position(sent) < now for sent, now in zip(cursors, reached[::2], strict=True))
    return are_ahead and ends <= MOST_ENDS and changed <= (MOST_CHANGED if len(cursors) > 1 else 0)


def is_refused(reply: Reply) -> bool:
    """Whether SCAN is not answered even from the beginning, so that nothing is told about cursors."""
    try:
        scan_page(reply)
    except BeginAgainError:
        return False
    except ScanRefusedError:
        return True
    return False


def is_last_page(reply: Reply) -> bool:
    """Whether a scan from the beginning has ended with this page. Raises ServerBusyError."""
    try:
        return scan_page(reply)[0] == 0
    except ScanRefusedError:
        return False


def as_proven(node: ScanNode) -> ScanNode:
    """Return the node to scan, from its first page's cursor without ranges if its cursors are proven not to be
    positions."""
    if node.connection.cursors_are_positions is not False:
        return node
    return replace(node, dialect=Dialect.OPAQUE, spans=None)


def known_dialect(connection: Connection) -> Dialect:
    """Return how the server counts its cursors: opaque if they are proven not to be positions."""
    return Dialect.OPAQUE if connection.cursors_are_positions is False else dialect_of(connection.server)


@for_purpose(Purpose.SCAN)
async def prove_cursors(connection: Connection, size: int | None) -> int:
    """Find out whether cursors are positions, unless a keyspace of `size` keys (None: unknown) is too small to need it.

    Returns the number of commands sent, 0 if the answer is already known. A server that is busy or refuses SCAN, and a
    keyspace that turns out to be small, leave it unknown. Raises ConnectionLost.
    """
    dialect = dialect_of(connection.server)
    is_known = connection.cursors_are_positions is not None or not dialect.is_ordered
    if is_known or (size is not None and size < PROVED_FROM):
        return 0
    generation, first_page, commands = connection.generation, guard.scan(0, count=PROVED_FROM), 0
    for _ in range(ATTEMPTS):
        cursors = places(dialect, new_random("cursor proof"))
        asked = [guard.scan(one, count=1) for cursor in cursors for one in (cursor, cursor ^ ABOVE_BUCKETS)]
        replies = await connection.run(*asked, *(() if size is not None else (first_page,)))
        commands += len(replies)
        try:
            found = are_positions(dialect, cursors, replies[: len(asked)])
            if not found and (is_refused(replies[0]) or (size is None and is_last_page(replies[-1]))):
                return commands
        except ServerBusyError:
            return commands
        if generation != connection.generation:  # another server may have answered
            return commands + await prove_cursors(connection, size)
        connection.cursors_are_positions = found
        if found:
            break
    return commands
