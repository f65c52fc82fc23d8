"""Asks which of some names are keys: one command a name, many in one write, nothing of any value.

EXISTS leaves idle times and access counters alone from Redis 6.2 on; before, it counts as a use of the key. TYPE never
does and costs the same, so it is sent to older servers, and to those that don't say what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.keyspace.types import NO_TYPE
from rtui.server import guard
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, KeyCommand, build_batch, split_keys
from rtui.server.wire.capability import Querier, Verdict, unknown_from
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.replies import Reply, ServerError

UNTOUCHING_SINCE: Final = (6, 2)
"""The first Redis whose EXISTS is no use of the key."""

MOST_IN_WRITE: Final = 100
"""Names that are asked in one write: 0.1 ms of the server's time."""

Presence = bool | Unknown
"""Whether a key is there, or why nobody knows."""


def presence_query(server: ServerIdentity) -> KeyCommand:
    """Return the command that tells whether a key is there and is no use of it on this server."""
    version = server.version
    is_new = server.product == "valkey" or (
        server.product == "redis" and version is not None and version >= UNTOUCHING_SINCE
    )
    return guard.exists if is_new else guard.key_type


async def are_there(querier: Querier, names: Iterable[bytes]) -> dict[bytes, Presence]:
    """Return of each name whether it is a key; a command that is refused is sent once. Raises ConnectionLost."""
    found: dict[bytes, Presence] = {}
    short: list[bytes] = []
    for name in dict.fromkeys(names):
        if len(name) <= MAX_BULK_KEY_BYTES:
            short.append(name)
        else:
            found[name] = Unknown(Reason.TOO_LARGE, "names over 64 KiB are not asked")
    command = presence_query(querier.connection.server)
    is_tried = querier.capabilities[command.spec.name].verdict is not Verdict.UNTRIED
    first = MOST_IN_WRITE if is_tried else 1
    writes = [short[:first], *(short[at : at + MOST_IN_WRITE] for at in range(first, len(short), MOST_IN_WRITE))]
    for some in writes:
        if not querier.capabilities.allows(command.spec.name):
            refused = querier.capabilities[command.spec.name]
            found.update(dict.fromkeys(some, Unknown(Reason(refused.verdict.value), refused.reason)))
        elif some:
            replies = await _ask(querier, command, some)
            found.update(zip(some, map(_presence, replies), strict=True))
    return found


async def _ask(querier: Querier, command: KeyCommand, names: Sequence[bytes]) -> list[Reply]:
    batches = [build_batch(command, part) for part in split_keys(names, 1)]
    replies = await querier.connection.run(*batches)
    querier.record([command.spec.name] * len(replies), replies)
    return replies


def _presence(reply: Reply) -> Presence:
    if isinstance(reply, ServerError):
        return unknown_from(reply)
    if isinstance(reply, bytes):
        return reply != NO_TYPE
    return reply == 1 if reply in (0, 1) else Unknown(Reason.FAILED, "the answer is neither 0 nor 1")
