"""Where a preview reads from: one key, watched for vanishing or turning into something else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis.facts import GONE, Frequency, IdleBasis, KeyFacts, Reason, Unknown
from rtui.keyspace.text.display import display
from rtui.server import guard
from rtui.server.facts.preview.page import STRING_WINDOW_BYTES, PreviewCell
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import CollectionEvidence
from rtui.server.guard.spec import Version
from rtui.server.wire.capability import Querier, unknown_from
from rtui.server.wire.own_reads import STALE_S
from rtui.server.wire.replies import Reply, ServerError


class Refused(Exception):  # noqa: N818 - it ends a preview, it is no error
    """Nothing can be shown, for a reason."""

    def __init__(self, why: Unknown) -> None:
        super().__init__(why.detail)
        self.why = why


@dataclass(frozen=True, slots=True)
class ValueReader:
    """One key, what is known of it, and how to ask for more."""

    querier: Querier
    facts: KeyFacts
    window_bytes: int = STRING_WINDOW_BYTES
    """How much of a string one page shows."""

    @property
    def key(self) -> bytes:
        """The key's name."""
        return self.facts.key

    @property
    def touches(self) -> bool:
        """Whether reading counts as an access."""
        return self.querier.touches

    @property
    def collection(self) -> CollectionEvidence:
        """What is known of a hash or set, as the guard wants to know it."""
        facts = self.facts
        return CollectionEvidence(
            None if isinstance(facts.encoding, Unknown) else facts.encoding,
            None if isinstance(facts.length, Unknown) else facts.length,
            None if isinstance(facts.memory_bytes, Unknown) else facts.memory_bytes,
        )

    def has_more(self, end: int, is_full: bool) -> bool:
        """Whether elements may follow index `end`: behind a full page, unless it ends where the value does."""
        return is_full and end != self.facts.length

    def has(self, *, redis: Version, valkey: Version) -> bool:
        """Whether the server may know what these versions brought; a server that hides its version is asked."""
        server = self.querier.connection.server
        if server.version is None or server.product not in ("redis", "valkey"):
            return True
        return server.version >= (valkey if server.product == "valkey" else redis)

    async def begin(self, *commands: Command) -> list[Reply]:
        """Send the first commands of a page and TYPE behind them; raises Refused when the key is not what it was.

        Where reading counts as a use, and the idle time was not read just now, that is read once more before it.
        """
        recency = self._recency() if commands and self.touches else ()
        if commands and self.touches:  # before it is sent, since whoever asked may be gone when it is answered
            self._note_own_read(None)
        *replies, kind = await self.querier.run(*recency, *commands, guard.key_type(self.key))
        if recency:
            self._note_own_read(replies.pop(0))
        if kind == b"none":
            raise Refused(GONE)
        if isinstance(kind, bytes) and kind != self.facts.type:
            raise Refused(Unknown(Reason.GONE, f"another key has its name now, of type {display(kind, limit=64)}"))
        return replies

    def _recency(self) -> tuple[Command, ...]:
        """What has to be read before the value, since the value's reading would change it."""
        is_known = time.time() - self.facts.asked_at_s <= STALE_S
        is_kept = self.facts.idle_basis is IdleBasis.ACCESS and not isinstance(self.facts.idle_s, Unknown)
        return (guard.object_idletime(self.key),) if is_kept and not is_known else ()

    def _note_own_read(self, idle_s: Reply) -> None:
        """Remember that this key was read, and when it was used before; `idle_s` is what was read just now, if it was.

        What the facts say of its use holds unless somebody used it since.
        """
        own_reads, facts, now_s = self.querier.own_reads, self.facts, time.time()
        used_s = None if isinstance(facts.idle_s, Unknown) else facts.asked_at_s - facts.idle_s
        if isinstance(idle_s, int):
            found = own_reads.idle(self.key, idle_s, now_s)
            used_s = used_s if found.is_own_read else now_s - idle_s
        counter = facts.frequency.counter if isinstance(facts.frequency, Frequency) else None
        own_reads.add(self.key, now_s, used_s=used_s, counter=counter)

    async def more(self, *commands: Command) -> list[Reply]:
        """Send further commands of the same page."""
        return await self.querier.run(*commands)


def needed(reply: Reply) -> Reply:
    """Give a reply without which there is nothing to show; raises Refused for an error."""
    if isinstance(reply, ServerError):
        raise Refused(unknown_from(reply))
    return reply


def optional(reply: Reply) -> Reply:
    """Give a reply that may be missing: None for an error."""
    return None if isinstance(reply, ServerError) else reply


NO_ANSWER: Final = Unknown(Reason.FAILED, "the server's answer is not what was asked for")
"""Why nothing is shown of an answer that can't be read."""

_CURSORS: Final = range(1 << 64)

_DIGITS: Final = 20
"""Most digits of an unsigned number of 64 bits."""


def items(reply: Reply) -> list[Reply]:
    """Take an array, or a set of protocol 3, as a list; anything else is empty."""
    return list(reply) if isinstance(reply, (list, set, frozenset)) else []


def byte_items(reply: Reply) -> list[bytes]:
    """Take the byte strings of an array."""
    return [item for item in items(reply) if isinstance(item, bytes)]


def pairs(reply: Reply) -> Iterator[tuple[Reply, Reply]]:
    """Take a map: flat in protocol 2, a map or an array of pairs in protocol 3."""
    if isinstance(reply, dict):
        yield from reply.items()
        return
    flat = items(reply)
    if flat and all(isinstance(item, list) and len(item) == 2 for item in flat):
        for item in flat:
            left, right = items(item)
            yield left, right
        return
    yield from zip(flat[::2], flat[1::2], strict=False)


def mapping(reply: Reply) -> dict[bytes, Reply]:
    """Take a map with names as a dict."""
    return {name: value for name, value in pairs(reply) if isinstance(name, bytes)}


def cell(reply: Reply) -> PreviewCell:
    """Take one value as a cell; what is neither bytes nor a number is an empty one."""
    return reply if isinstance(reply, (bytes, int, float)) else None


def whole(reply: Reply) -> int | None:
    """Take a number; one that does not fit into 64 bits with a sign comes as text."""
    if isinstance(reply, bytes) and reply.isdigit() and len(reply) <= _DIGITS:
        return int(reply)
    return reply if isinstance(reply, int) else None


def score(reply: Reply) -> float | None:
    """Take a score: text in protocol 2, a number in protocol 3. Both are exact."""
    if isinstance(reply, (int, float)):
        return float(reply)
    try:
        return float(reply) if isinstance(reply, bytes) else None
    except ValueError:
        return None


def scan_page(reply: Reply) -> tuple[int, list[Reply]]:
    """Take the next cursor and the elements of HSCAN or SSCAN; raises Refused for what is no page."""
    parts = needed_items(reply)
    cursor = whole(parts[0]) if len(parts) == 2 else None
    if cursor is None or cursor not in _CURSORS:
        raise Refused(NO_ANSWER)
    return cursor, needed_items(parts[1])


def needed_items(reply: Reply) -> list[Reply]:
    """Take an array without which there is nothing to show; raises Refused for anything else, error or not."""
    if isinstance(needed(reply), (list, set, frozenset)):
        return items(reply)
    raise Refused(NO_ANSWER)


def needed_bytes(reply: Reply) -> bytes:
    """Take a byte string without which there is nothing to show; raises Refused for anything else, error or not."""
    found = needed(reply)
    if isinstance(found, bytes):
        return found
    raise Refused(NO_ANSWER)
