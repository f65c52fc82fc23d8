"""What a user asks of one value beyond its pages: a place to go to, one field, or all bytes of a string for a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from rtui.analysis.facts import GONE, KeyFacts, Reason, Unknown
from rtui.analysis.humanize import size
from rtui.server import guard
from rtui.server.facts.preview.page import Page
from rtui.server.facts.preview.places import read_place
from rtui.server.facts.preview.value_reader import MAX_PURPOSE_BYTES, Refused, ValueReader, expect_bytes, expect_items
from rtui.server.guard.closed_list import MAX_WINDOW_BYTES
from rtui.server.guard.spec import MAX_FIELD_BYTES
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection

MAX_VALUE_BYTES: Final = 1 << 20
"""Largest value of a field that is read without a question: no command reads a part of one."""

MAX_STRING_BYTES: Final = 64 << 20
"""So much of a string is read to be written to a file."""


async def find_place(
    connection: Connection, facts: KeyFacts, text: str, *, capabilities: Capabilities, now_s: float
) -> Page | Unknown:
    """Return the page that begins at the place a user has typed, or why there is none; see `preview.places`.

    `now_s` is in seconds since the epoch. Raises ConnectionLost.
    """
    querier = Querier(connection, capabilities, connection.own_reads)
    try:
        return await read_place(ValueReader(querier, facts), text, now_s)
    except Refused as refused:
        return refused.why


async def read_field(
    connection: Connection,
    facts: KeyFacts,
    field: bytes,
    *,
    capabilities: Capabilities,
    most_bytes: int = MAX_VALUE_BYTES,
) -> bytes | Unknown:
    """Return the whole value of one field of a hash, of up to `most_bytes`; raises ConnectionLost.

    Those are at most MAX_PURPOSE_BYTES, and more than MAX_VALUE_BYTES only if the user has said so.
    """
    most_bytes = min(most_bytes, MAX_PURPOSE_BYTES)
    querier = Querier(connection, capabilities, connection.own_reads)
    reader = ValueReader(querier, facts)
    try:
        if not reader.evidence.look_ups or len(field) > MAX_FIELD_BYTES:
            raise Refused(Unknown(Reason.TOO_LARGE, reader.would("HMGET", "walk over all fields")))
        (length,) = await reader.begin(*guard.hstrlens(facts.key, field, evidence=reader.evidence))
        if isinstance(length, int) and length > most_bytes:
            return Unknown(Reason.TOO_LARGE, f"{size(length)}: values over {size(most_bytes)} are not read")
        (reply,) = await querier.run(guard.hmget(facts.key, field, evidence=reader.evidence))
        (value,) = expect_items(reply)
        return value if isinstance(value, bytes) else GONE
    except Refused as refused:
        return refused.why


async def string_windows(
    connection: Connection, facts: KeyFacts, *, capabilities: Capabilities
) -> AsyncIterator[bytes | Unknown]:
    """Yield a whole string in windows of 64 KiB, one round trip each, up to MAX_STRING_BYTES; or why it ends early.

    A string that changes meanwhile is what each window found. Raises ConnectionLost.
    """
    querier = Querier(connection, capabilities, connection.own_reads)
    reader = ValueReader(querier, facts)
    at = 0
    while at < MAX_STRING_BYTES:
        try:
            (reply,) = await reader.begin(guard.getrange(facts.key, at, at + MAX_WINDOW_BYTES - 1))
            window = expect_bytes(reply)
        except Refused as refused:
            yield refused.why
            return
        yield window
        at += len(window)
        if len(window) < MAX_WINDOW_BYTES:
            return
    yield Unknown(Reason.TOO_LARGE, f"only the first {size(MAX_STRING_BYTES)} were read")
