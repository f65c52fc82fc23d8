"""The clients of a server, as CLIENT LIST tells them: one line each, of fields in the form `name=value`.

Which fields there are depends on the version; those that are missing are None, and fields of newer servers are left
out. Names of clients and libraries are chosen by the clients, so they are bytes like names of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rtui.server.guard.evidence import MAX_CLIENTS
from rtui.server.wire.replies import Reply

MAX_LINE_BYTES: Final = 4096
"""A longer line is cut: a real one has some 300 bytes."""

MAX_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class Client:
    """A client that is connected."""

    id: int | None
    address: bytes
    """`127.0.0.1:50123`, or `/run/redis.sock:0`."""
    name: bytes = b""
    """What it calls itself with CLIENT SETNAME."""
    library: bytes = b""
    """The library that it uses and its version, as that says itself: `redis-py 8.1.0`. From Redis 7.2 on, Valkey."""
    user: bytes = b""
    """From Redis 6.0 on."""
    db: int | None = None
    connected_s: int | None = None
    idle_s: int | None = None
    """Seconds since its last command."""
    last_command: str = ""
    """In capitals, such as `CONFIG|GET`: the last command that it has sent."""
    output_bytes: int | None = None
    """Replies that wait to be read by it."""
    query_bytes: int | None = None
    """What it has sent and the server has not carried out."""


def parse_clients(reply: Reply) -> tuple[Client, ...]:
    """Read the reply to CLIENT LIST; lines of another form are left out."""
    if not isinstance(reply, bytes):
        return ()
    lines = reply.split(b"\n", MAX_CLIENTS + 1)[: MAX_CLIENTS + 1]
    found = (_client(dict(_fields(line[:MAX_LINE_BYTES]))) for line in lines)
    return tuple(client for client in found if client is not None)


def _fields(line: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield names and values; no server lets a blank into one of them."""
    for part in line.split(b" "):
        name, equals, value = part.partition(b"=")
        if equals:
            yield name, value


def _client(fields: Mapping[bytes, bytes]) -> Client | None:
    if b"addr" not in fields:
        return None
    output = [size for name in (b"omem", b"obl") if (size := _number(fields, name)) is not None]
    library = b" ".join(part for name in (b"lib-name", b"lib-ver") if (part := fields.get(name, b"")))
    command = fields.get(b"cmd", b"").decode("ascii", "replace").upper()
    return Client(
        id=_number(fields, b"id"),
        address=fields[b"addr"],
        name=fields.get(b"name", b""),
        library=library,
        user=fields.get(b"user", b""),
        db=_number(fields, b"db"),
        connected_s=_number(fields, b"age"),
        idle_s=_number(fields, b"idle"),
        last_command="" if command == "NULL" else command,
        output_bytes=sum(output) if output else None,
        query_bytes=_number(fields, b"qbuf"),
    )


def _number(fields: Mapping[bytes, bytes], name: bytes) -> int | None:
    """Return a field that is a whole number, None for any other."""
    text = fields.get(name, b"")
    return int(text) if text.isdigit() and len(text) <= MAX_DIGITS else None
