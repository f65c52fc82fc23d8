"""What the row of a key says of it before its facts are there, and the page of its value that is asked for by that.

Without a row the type takes one round trip, what depends on it a second one, and the value a third, of 0.2 s each over
a slow link. A row of the tree mostly knows type and memory. So memory and length are asked together with the type, and
the first page of the value right behind them, if it is small. Its replies are taken only where the facts, once they are
there, ask for the very same commands; where the key has become another one meanwhile, the others are sent then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rtui.analysis.facts import RowFacts
from rtui.keyspace import types
from rtui.server import guard
from rtui.server.facts.preview.value_reader import PAGE_ITEMS, STRING_WINDOW_BYTES
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import COMPACT_BYTES, CollectionEvidence, counts_sizes
from rtui.server.wire.capability import Querier
from rtui.server.wire.command_log import Purpose, sent_for
from rtui.server.wire.replies import Reply

TYPE_HOLDS_S: Final = 600.0
"""A type that was asked longer ago is asked again before anything else: the name may be another key's by now."""

SIZE_HOLDS_S: Final = 60.0
"""Likewise a size."""

MAX_AHEAD_BYTES: Final = 16 * 1024
"""Most memory of a collection whose page is asked for before the cursor has rested for a round trip."""


def _string(key: bytes, row: RowFacts) -> Command:
    return guard.getrange(key, 0, STRING_WINDOW_BYTES - 1)


def _list(key: bytes, row: RowFacts) -> Command:
    return guard.lrange(key, 0, PAGE_ITEMS - 1)


def _zset(key: bytes, row: RowFacts) -> Command:
    return guard.zrange(key, 0, PAGE_ITEMS - 1)


def _set(key: bytes, row: RowFacts) -> Command:
    return guard.sscan(key, 0, count=PAGE_ITEMS, evidence=_evidence(row))


def _hash(key: bytes, row: RowFacts) -> Command | None:
    is_compact = row.encoding in _MEASURED
    return guard.hscan(key, 0, count=PAGE_ITEMS, evidence=_evidence(row)) if is_compact else None


def _evidence(row: RowFacts) -> CollectionEvidence:
    encoding = row.encoding if isinstance(row.encoding, bytes) else None
    return CollectionEvidence(encoding, None, row.memory_bytes if isinstance(row.memory_bytes, int) else None)


_MEASURED: Final = frozenset((b"listpack", b"ziplist", b"intset", b"listpackex"))
"""Encodings of one block of memory, whose size is not estimated from a few elements."""

FIRST_PAGES: Final[Mapping[bytes, Callable[[bytes, RowFacts], Command | None]]] = {
    types.STRING.name: _string,
    types.LIST.name: _list,
    types.ZSET.name: _zset,
    types.SET.name: _set,
    types.HASH.name: _hash,
}
"""What the readers in `preview` ask first for a page of a small value, by type."""

assert MAX_AHEAD_BYTES <= COMPACT_BYTES  # noqa: S101 - else the guard would refuse what is asked


class KnownKey:
    """The row of one key, and the first page of its value once `ask_page` has sent for it."""

    def __init__(self, row: RowFacts, now_s: float) -> None:
        """`now_s` is in seconds since the epoch."""
        self._row = row
        self._age_s = now_s - row.asked_at_s
        self._commands: tuple[Command, ...] = ()
        self._replies: asyncio.Task[list[Reply]] | None = None

    @property
    def type(self) -> bytes | None:
        """The type that the key has, unless it has become another one; None where that was asked too long ago."""
        return self._row.type if isinstance(self._row.type, bytes) and self._age_s <= TYPE_HOLDS_S else None

    def ask_page(self, querier: Querier) -> None:
        """Send for the first page and go on without waiting; nothing is sent where the value may be large."""
        row, key_type = self._row, self.type
        server = querier.connection.server
        is_exact = row.encoding in _MEASURED or counts_sizes(server.product, server.version)
        is_small = is_exact and isinstance(row.memory_bytes, int) and row.memory_bytes <= MAX_AHEAD_BYTES
        is_bounded = key_type == types.STRING.name or (is_small and self._age_s <= SIZE_HOLDS_S)
        first_page = FIRST_PAGES.get(key_type or b"")
        page = None if first_page is None or not is_bounded else first_page(row.key, row)
        if page is None or not querier.capabilities.allows(page.name):
            return
        with sent_for(Purpose.PREVIEW):
            self._commands = page, guard.key_type(row.key)
            self._replies = asyncio.ensure_future(querier.send(*self._commands))
            self._replies.add_done_callback(forget_failure)

    async def replies(self, commands: Sequence[Command]) -> list[Reply] | None:
        """Return the replies if just these commands were sent ahead, once: else None. Raises ConnectionLost."""
        sent, replies = self._commands, self._replies
        self._replies = None
        if replies is None or [one.packed for one in commands] != [one.packed for one in sent]:
            return None
        return await replies


def forget_failure(task: asyncio.Task[Any]) -> None:
    """Take note of a failure for which nobody may wait."""
    if not task.cancelled():
        task.exception()
