"""The clients of a server, as CLIENT LIST tells them: one line each, of fields in the form `name=value`.

Which fields there are depends on the version; those that are missing are None, and fields of newer servers are left
out. Names of clients and libraries are chosen by the clients, so they are bytes like names of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.fields import FIELDS
from rtui.analysis.health.possible import range_of
from rtui.analysis.health.sample import ClientFigures
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.guard.closed_list import CLIENT_NAME
from rtui.server.guard.evidence import MAX_CLIENTS
from rtui.server.wire.replies import Reply

MAX_LINE_BYTES: Final = 4096
"""A longer line is cut: a real one has some 300 bytes."""

MAX_DIGITS: Final = 30
MAX_WORD: Final = 64
"""Characters of a command or of flags."""


def too_many(connected: int | None) -> Unknown:
    """Return why clients are not listed."""
    if connected is None or connected not in range_of(FIELDS["connected_clients"]):
        return Unknown(Reason.UNSUPPORTED, "INFO does not say how many clients are connected")
    why = f"{connected:,} clients are connected: CLIENT LIST has no pages, and is not sent beyond {MAX_CLIENTS:,}"
    return Unknown(Reason.TOO_LARGE, SafeText(why))


def parse_clients(reply: Reply) -> tuple[ClientFigures, ...]:
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


def _client(fields: Mapping[bytes, bytes]) -> ClientFigures | None:
    if b"addr" not in fields:
        return None
    output = [size for name in (b"omem", b"obl") if (size := _number(fields, name)) is not None]
    subscribed = [count for name in (b"sub", b"psub", b"ssub") if (count := _number(fields, name)) is not None]
    library = b" ".join(part for name in (b"lib-name", b"lib-ver") if (part := fields.get(name, b"")))
    command, flags = (fields.get(name, b"").decode("ascii", "replace") for name in (b"cmd", b"flags"))
    name = fields.get(b"name", b"")
    return ClientFigures(
        id=_number(fields, b"id"),
        address=fields[b"addr"],
        name=name,
        library=library,
        user=fields.get(b"user", b""),
        flags=display_text(flags, limit=MAX_WORD),
        db=_number(fields, b"db"),
        connected_s=_number(fields, b"age"),
        idle_s=_number(fields, b"idle"),
        last_command="" if command == "NULL" else display_text(command, limit=MAX_WORD).upper(),
        subscriptions=sum(subscribed) if subscribed else None,
        query_bytes=_number(fields, b"qbuf"),
        output_bytes=sum(output) if output else None,
        total_bytes=_number(fields, b"tot-mem"),
        is_own=name == CLIENT_NAME.encode(),
    )


def _number(fields: Mapping[bytes, bytes], name: bytes) -> int | None:
    """Return a field that is a whole number, None for any other."""
    text = fields.get(name, b"")
    return int(text) if text.removeprefix(b"-").isdigit() and len(text) <= MAX_DIGITS else None
