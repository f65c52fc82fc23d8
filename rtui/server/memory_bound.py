"""The most bytes that the keys of one database can have, by what the server says of its memory."""

from __future__ import annotations

from typing import Final

from rtui.server import guard
from rtui.server.asking import Asking
from rtui.server.capability import Capabilities
from rtui.server.connection import Connection
from rtui.server.identity import ServerIdentity, identity, number, parse_fields
from rtui.server.reply import Reply

TABLE_ENTRY_BYTES: Final = 32
"""What MEMORY USAGE counts of a key that `used_memory_dataset` does not: its entry in the table of keys.

Measured with keys of sixteen kinds on eight servers: 31 bytes at most, but for numbers that all keys share.
"""

EMBEDDED_ENTRY_BYTES: Final = 8
"""The same for Valkey from 8.1 on, where keys lie in the table: 4 bytes at most."""


async def memory_bound(connection: Connection, capabilities: Capabilities) -> int | None:
    """Ask for the bound; None where the server does not say or denies INFO. Raises ConnectionLost."""
    memory, keyspace = await Asking(connection, capabilities).run(guard.info("memory"), guard.info("keyspace"))
    entry_bytes = _entry_bytes(connection.server)
    return parse_memory_bound(memory, keyspace, connection.target.db, entry_bytes)


def _entry_bytes(server: ServerIdentity) -> int:
    is_embedded = server.product == "valkey" and (server.version or ()) >= (8, 1)
    return EMBEDDED_ENTRY_BYTES if is_embedded else TABLE_ENTRY_BYTES


def parse_memory_bound(memory: Reply, keyspace: Reply, db: int, entry_bytes: int = TABLE_ENTRY_BYTES) -> int | None:
    """Read INFO memory and INFO keyspace.

    Keys cannot have more than the server uses beside what it used when it had none; nor more than its data set of all
    databases, with the entries of this database's keys.
    """
    fields = parse_fields(memory)
    used, dataset = number(fields, "used_memory"), number(fields, "used_memory_dataset")
    if used is None:
        return None
    bound = max(0, used - (number(fields, "used_memory_startup") or 0))
    databases = identity((keyspace,)).databases
    if dataset and databases is not None:
        bound = min(bound, dataset + entry_bytes * databases.get(db, 0))
    return bound
