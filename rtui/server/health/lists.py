"""Parsing lists of clients, cluster nodes, slow commands and latency events; names in them are bytes.

CLIENT LIST has one line per client, of fields in the form `name=value`. Its fields depend on the version; missing ones
are None, and unknown ones are left out. Names of clients and libraries are chosen by the clients.

CLUSTER NODES lists the nodes as seen by the node that was asked: whether it reaches them, and their slots. Unlike the
topology, which guides scans, this includes failed nodes that serve nothing any more.

An entry of SLOWLOG has 4 fields before Redis 4.0, 6 up to Redis 8.8 and 7 from Redis 8.10 on; one of COMMANDLOG has 6.
The server keeps at most 32 arguments of 128 bytes each (Redis 8.10: as many as configured), and the number of the
others. It replaces passwords by `(redacted)`. LATENCY LATEST has a line for each event, with four fields, in Valkey 8.1
with six.

A log is read in two steps: its latest entry, which costs next to nothing, and if that is new, all new entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.fields import FIELDS
from rtui.analysis.health.possible import range_of
from rtui.analysis.health.sample import ClientFigures, LatencyEvent, LoggedCommand, Peer
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.guard.closed_list import CLIENT_NAME, EVENT_NAME, MAX_SLOW
from rtui.server.guard.evidence import MAX_CLIENTS
from rtui.server.wire.errors import Reply

MAX_LINE_BYTES: Final = 4096
"""A longer line is cut: a real one has some 300 bytes."""

MAX_DIGITS: Final = 30
MAX_WORD: Final = 64
"""The most characters of a command or of flags."""


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
    """Yield names and values; no server allows a blank in one of them."""
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
    text = fields.get(name, b"")
    return int(text) if text.removeprefix(b"-").isdigit() and len(text) <= MAX_DIGITS else None


MAX_PEERS: Final = 100
"""The most nodes of a cluster that are listed: each node has a view of all others."""

MAX_PEER_BYTES: Final = 64 << 10
MAX_ADDRESS_BYTES: Final = 300
_LEAST_FIELDS: Final = 8
_SLOTS: Final = re.compile(rb"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_STATES: Final = {b"fail": "down", b"fail?": "suspect", b"handshake": "joining", b"noaddr": "without an address"}


def parse_peers(reply: Reply) -> tuple[Peer, ...]:
    """Read the reply to CLUSTER NODES: id, address, flags, primary, ping, pong, epoch, link and slots in each line.

    Lines of another form are left out.
    """
    if not isinstance(reply, bytes):
        return ()
    lines = (line[:MAX_PEER_BYTES].split(b" ") for line in reply.split(b"\n", MAX_PEERS + 1)[: MAX_PEERS + 1])
    return tuple(_peer(fields) for fields in lines if len(fields) >= _LEAST_FIELDS)


def _peer(fields: list[bytes]) -> Peer:
    flags = fields[2].split(b",")
    address = fields[1][:MAX_ADDRESS_BYTES].partition(b",")[0].partition(b"@")[0]
    return Peer(
        address,
        is_replica=b"slave" in flags,
        state=next((_STATES[flag] for flag in flags if flag in _STATES), "ok"),
        is_linked=b"myself" in flags or fields[7].strip() == b"connected",
        slots=sum(map(_slots_in, fields[8:])),
        is_self=b"myself" in flags,
    )


def _slots_in(field: bytes) -> int:
    """Return the number of slots in a field; migrating slots, in brackets, are not counted."""
    found = _SLOTS.fullmatch(field.strip())
    if found is None:
        return 0
    first, last = int(found[1]), int(found[2] or found[1])
    return last - first + 1 if first <= last < SLOTS else 0


MAX_ARGUMENTS: Final = 32
MAX_ARGUMENT_BYTES: Final = 256
"""The most bytes kept of an argument: 128, and the number of the others."""

MAX_EVENTS: Final = 32
"""The most latency events read; Redis has some twenty."""

MAX_MOMENTS: Final = 160
"""The most moments read of an event: the server's own limit."""

MAX_EVENT_NAME: Final = 32
MAX_NUMBER: Final = (1 << 63) - 1


def parse_slow_log(reply: Reply) -> tuple[LoggedCommand, ...]:
    """Read the reply to SLOWLOG GET or COMMANDLOG GET, latest first; entries of another form are left out."""
    found = []
    for entry in reply[:MAX_SLOW] if isinstance(reply, list) else []:
        match entry:
            case [int(number), int(at_s), int(amount), list(argv), *more]:
                texts = tuple(one[:MAX_ARGUMENT_BYTES] for one in argv[: MAX_ARGUMENTS + 1] if isinstance(one, bytes))
                who = [text[:MAX_ARGUMENT_BYTES] if isinstance(text, bytes) else b"" for text in (*more, b"", b"")[:2]]
                if texts:
                    is_own = who[1] == CLIENT_NAME.encode()
                    words = _count(more[2]) if len(more) > 2 else None
                    found.append(LoggedCommand(number, at_s, amount, redacted(texts), who[0], who[1], is_own, words))
    return tuple(found)


def _count(reply: Reply) -> int | None:
    return reply if isinstance(reply, int) and 0 < reply <= MAX_NUMBER else None


REDACTED: Final = b"(redacted)"
"""The replacement of a password, as the server writes it."""

_OPEN_ARGUMENTS: Final = {
    (b"AUTH",): 0,
    (b"HELLO",): 1,
    (b"ACL", b"SETUSER"): 1,
    (b"CONFIG", b"SET"): 1,
    (b"MIGRATE",): 5,
}
"""The number of arguments before the first password, by command."""


def redacted(argv: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return a command line without passwords, which old servers leave in."""
    for words, count in _OPEN_ARGUMENTS.items():
        if tuple(word.upper() for word in argv[: len(words)]) == words:
            shown = len(words) + count
            return (*argv[:shown], *(REDACTED for _ in argv[shown:]))
    return argv


def parse_latency_latest(reply: Reply) -> tuple[LatencyEvent, ...]:
    """Read the reply to LATENCY LATEST, without histories."""
    found = []
    for line in reply[:MAX_EVENTS] if isinstance(reply, list) else []:
        match line:
            case [bytes(name), int(at_s), int(latest_ms), int(highest_ms), *_] if name:
                event = display_text(name.decode("utf-8", "replace"), limit=MAX_EVENT_NAME)
                found.append(LatencyEvent(event, at_s, latest_ms, highest_ms))
    return tuple(found)


def parse_latency_history(reply: Reply) -> tuple[tuple[int, int], ...]:
    """Read the reply to LATENCY HISTORY: seconds since the epoch and milliseconds, oldest first."""
    found = []
    for moment in reply[-MAX_MOMENTS:] if isinstance(reply, list) else []:
        match moment:
            case [int(at_s), int(ms)] if 0 <= at_s <= MAX_NUMBER and 0 <= ms <= MAX_NUMBER:
                found.append((at_s, ms))
    return tuple(sorted(found))


class LogReader:
    """The entries of one log read so far."""

    def __init__(self) -> None:
        self.entries: tuple[LoggedCommand, ...] | None = None
        """Latest first; None before the first reading."""

    def to_request(self, latest: Reply) -> int:
        """Return the number of entries to request, by the reply with the latest one; 0 if it is known."""
        newest, known = parse_slow_log(latest), self.entries
        if not newest:
            self.entries = ()
            return 0
        if not known:
            return MAX_SLOW
        new = newest[0].id - known[0].id
        return new if 0 <= new <= MAX_SLOW else MAX_SLOW  # another run of the server counts from 0 on

    def add(self, reply: Reply, asked: int) -> tuple[LoggedCommand, ...]:
        """Add the reply to a request for `asked` entries, and return all entries."""
        latest, known = parse_slow_log(reply), self.entries or ()
        lowest = min((entry.id for entry in latest), default=0)
        older = tuple(entry for entry in known if entry.id < lowest) if asked < MAX_SLOW else ()
        self.entries = (*latest, *older)[:MAX_SLOW]
        return self.entries


class LatencyReader:
    """The latency events with their histories read so far."""

    def __init__(self) -> None:
        self.events: tuple[LatencyEvent, ...] = ()
        self.is_read = False
        self._latest: tuple[LatencyEvent, ...] = ()

    def to_request(self, latest: Reply) -> tuple[str, ...]:
        """Return the names of events with new delays, by the reply to LATENCY LATEST."""
        self._latest = parse_latency_latest(latest)
        known = {event.name: event.at_s for event in self.events}
        return tuple(
            one.name for one in self._latest if known.get(one.name) != one.at_s and EVENT_NAME.match(one.name.encode())
        )

    def add(self, asked: Sequence[str], replies: Sequence[Reply]) -> tuple[LatencyEvent, ...]:
        """Add the histories of the events that were requested, and return all events."""
        histories = {event.name: event.history for event in self.events}
        histories |= dict(zip(asked, map(parse_latency_history, replies), strict=True))
        self.is_read = True
        self.events = tuple(msgspec.structs.replace(one, history=histories.get(one.name, ())) for one in self._latest)
        return self.events
