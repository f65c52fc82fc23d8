"""The values and times to live of named hash fields: sizes are asked first, and large values stay on the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rtui.server import guard
from rtui.server.errors import ServerError
from rtui.server.guard import MAX_ELEMENTS, MAX_FIELD_BYTES, Command
from rtui.server.preview.bounds import VALUE_BYTES, VALUES_BYTES
from rtui.server.preview.page import Cell, Unread
from rtui.server.preview.replies import cell, items
from rtui.server.preview.source import Source
from rtui.server.reply import Reply

MAX_TTL_FIELDS: Final = 1_000
"""Fields of one page whose time to live is asked."""

_NO_FIELD_TTLS: Final = frozenset((b"listpack", b"ziplist"))
"""Encodings in which no field can expire: one that can moves the hash into another encoding."""


async def sizes_and_ttls(source: Source, names: Sequence[bytes]) -> tuple[dict[bytes, int], dict[bytes, int] | None]:
    """Ask in one write for the size of each field's value, and for the fields' times to live.

    Of the times those that there are, in milliseconds; None where the server does not tell.
    """
    sendable = [name for name in names if len(name) <= MAX_FIELD_BYTES]
    lengths = guard.hstrlens(source.key, *sendable, evidence=source.collection)
    replies = await source.more(*lengths, *_ttl_commands(source, sendable))
    sizes = {name: size for name, size in zip(sendable, replies, strict=False) if isinstance(size, int)}
    return sizes, _ttls(sendable, replies[len(sendable) :])


async def ttls(source: Source, names: Sequence[bytes]) -> dict[bytes, int] | None:
    """Ask for the times to live alone, in milliseconds; None where the server does not tell."""
    sendable = [name for name in names if len(name) <= MAX_FIELD_BYTES]
    commands = _ttl_commands(source, sendable)
    return _ttls(sendable, await source.more(*commands)) if commands else None


async def small_values(source: Source, names: Sequence[bytes], sizes: dict[bytes, int]) -> dict[bytes, Cell]:
    """Read the values that are small enough, up to the bound of a page; of the others the size."""
    wanted: list[bytes] = []
    room = VALUES_BYTES
    for name in names:
        size = sizes.get(name)
        if size is not None and size <= min(VALUE_BYTES, room):
            wanted.append(name)
            room -= size
    commands = [guard.hmget(source.key, *some, evidence=source.collection) for some in _portions(wanted)]
    replies = await source.more(*commands) if commands else []
    cells: dict[bytes, Cell] = {name: Unread(sizes.get(name)) for name in names}
    for some, reply in zip(_portions(wanted), replies, strict=False):
        cells.update((name, cell(value)) for name, value in zip(some, items(reply), strict=False))
    return cells


def _ttl_commands(source: Source, names: Sequence[bytes]) -> list[Command]:
    if source.facts.encoding in _NO_FIELD_TTLS or not source.has(redis=(7, 4), valkey=(9, 0)):
        return []
    most = min(MAX_TTL_FIELDS, source.collection.look_ups)
    return [guard.hpttl(source.key, *some, evidence=source.collection) for some in _portions(names[:most])]


def _ttls(names: Sequence[bytes], replies: Sequence[Reply]) -> dict[bytes, int] | None:
    if not replies or any(isinstance(reply, ServerError) for reply in replies):
        return None
    answers = [answer for reply in replies for answer in items(reply)]
    return {name: left for name, left in zip(names, answers, strict=False) if isinstance(left, int) and left >= 0}


def _portions(names: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (names[at : at + MAX_ELEMENTS] for at in range(0, len(names), MAX_ELEMENTS))
