"""What the server itself knows of all keys: histograms of their sizes (`INFO keysizes`), a bound on their memory."""

from __future__ import annotations

import re
from typing import Final

from rtui.analysis.report.document import KeySizes
from rtui.server import guard
from rtui.server.wire.capability import Capabilities, CommandRunner, Querier
from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import ServerIdentity, parse_identity, parse_info, parse_number
from rtui.server.wire.replies import Reply

_NAME: Final = re.compile(r"db([0-9]{1,10})_(distrib_[a-z0-9_]{1,50})", re.ASCII)
_BIN: Final = re.compile(r"([0-9]{1,4})([KMGTPE]?)=([0-9]{1,19})", re.ASCII)
_UNITS: Final = {unit: 1 << 10 * power for power, unit in enumerate(("", *"KMGTPE"))}


async def key_sizes(connection: CommandRunner, capabilities: Capabilities, db: int) -> tuple[KeySizes, ...]:
    """Ask for the histograms of one database; none where the server keeps none or denies INFO.

    Strings are counted by bytes, the other types by elements. Raises ConnectionLost.
    """
    (reply,) = await Querier(connection, capabilities).run(guard.info("keysizes"))
    return parse_key_sizes(reply, db)


def parse_key_sizes(reply: Reply, db: int) -> tuple[KeySizes, ...]:
    """Read `db0_distrib_strings_sizes:0=1,1=4,2K=7`: lower bounds in binary units and keys, lowest first."""
    found = []
    for field, value in parse_info(reply).items():
        name = _NAME.fullmatch(field)
        if name is not None and int(name[1]) == db and (bins := _bins(value)):
            found.append(KeySizes(name[2], bins))
    return tuple(found)


def _bins(text: str) -> tuple[tuple[int, int], ...]:
    matches = (_BIN.fullmatch(one) for one in text.split(","))
    return tuple(sorted((int(one[1]) * _UNITS[one[2]], int(one[3])) for one in matches if one is not None))


TABLE_ENTRY_BYTES: Final = 32
"""What MEMORY USAGE counts of a key that `used_memory_dataset` does not: its entry in the table of keys.

Measured with keys of sixteen kinds on eight servers: 31 bytes at most, but for numbers that all keys share.
"""

EMBEDDED_ENTRY_BYTES: Final = 8
"""The same for Valkey from 8.1 on, where keys lie in the table: 4 bytes at most."""


async def memory_bound(connection: Connection, capabilities: Capabilities) -> int | None:
    """Ask how many bytes all keys have at most; None where INFO is denied. Raises ConnectionLost."""
    memory, keyspace = await Querier(connection, capabilities).run(guard.info("memory"), guard.info("keyspace"))
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
    fields = parse_info(memory)
    used, dataset = parse_number(fields, "used_memory"), parse_number(fields, "used_memory_dataset")
    if used is None:
        return None
    bound = max(0, used - (parse_number(fields, "used_memory_startup") or 0))
    databases = parse_identity((keyspace,)).databases
    if dataset and databases is not None:
        bound = min(bound, dataset + entry_bytes * databases.get(db, 0))
    return bound
