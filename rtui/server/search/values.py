"""Searches inside the values of a dump, whose server nobody else waits for: `value:TEXT`.

Every value is read as a whole by pages of the closed list, and each string, field, value, member, item and part of an
entry is searched: its bytes first, and what decoders make of them where that is something else. Of a string the
beginning is decoded, and all of it is searched as it is.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.query.deciding import value_test
from rtui.analysis.query.query import Term
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace import types
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.facts.preview.collections import array_rows, previous_id
from rtui.server.facts.preview.value_reader import Refused, byte_items, element_page, items
from rtui.server.guard.closed_list import MAX_ARRAY_INDEX, MAX_ELEMENTS, MAX_WINDOW_BYTES
from rtui.server.guard.command import Command, GuardError
from rtui.server.guard.evidence import CollectionEvidence
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ServerError

READERS: Final = 16
"""The keys whose values are read at the same time."""

PAGE_BYTES: Final = 1 << 20
"""The bytes of one page of elements, by the memory of an average one."""

DECODED_BYTES: Final = 1 << 20
"""The most bytes of one string or element that are decoded."""

POLL_S: Final = 0.005

_is_plain: Final = re.compile(rb"[ -~\n\t]{0,7}|(?=.*[^\w+/=.:|~-])[ -$&-\[\]-~\n\t]*", re.DOTALL | re.ASCII).fullmatch
"""Matches text that stands for itself: too short to be encoded, or with a character, such as a blank, that no text form
of bytes has, and no escapes. Decoders would take most of the time, and find nothing else in it."""


class UnreadValueError(Exception):
    """A value that can't be read; the message says why, without a full stop."""


class ValueSearch:
    """Takes keys, and hands on those whose values match all terms; `run` it beside the scan that brings the keys."""

    def __init__(
        self, connection: Connection, control: RunControl, terms: Sequence[Term], found: Callable[[KeyRecord], object]
    ) -> None:
        self._connection, self._control, self._found = connection, control, found
        self._terms = [(value_test(term), term.is_negated) for term in terms]
        self._longest = max(len(term.names[0]) for term in terms)
        self._waiting: deque[KeyRecord] = deque()
        self._reading = 0
        self.unread: Counter[str] = Counter()
        """Keys whose values could not be read, by the reason."""

    @property
    def keys(self) -> int:
        """The keys that wait, or are being read."""
        return len(self._waiting) + self._reading

    def add(self, records: Sequence[KeyRecord]) -> None:
        """Let keys wait, whose type, encoding, length and memory were read."""
        self._waiting += records

    async def run(self) -> None:
        """Read values until it is cancelled; raises ConnectionLost."""
        async with asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(self._work(), name="rtui value reader")

    async def _work(self) -> None:
        while True:
            if self._control.is_held:
                await self._control.wait_while_held()
            if not self._waiting:
                await asyncio.sleep(POLL_S)
                continue
            record = self._waiting.popleft()
            self._reading += 1
            try:
                if await self._matches(record):
                    self._found(record)
            except (UnreadValueError, Refused, GuardError) as error:
                self.unread[str(error)] += 1
            finally:
                self._reading -= 1

    async def _matches(self, record: KeyRecord) -> bool:
        """Whether the value passes all terms; raises UnreadValueError, GuardError and ConnectionLost."""
        wanted = {at: is_negated for at, (_, is_negated) in enumerate(self._terms)}
        async for part in self._parts(record):
            texts = [part]
            for at in [*wanted]:
                test, is_negated = self._terms[at]
                if not test(part):
                    if len(texts) == 1 and len(part) <= DECODED_BYTES and not _is_plain(part):
                        texts += decoded_texts(part)
                    if not any(map(test, texts[1:])):
                        continue
                if is_negated:
                    return False
                del wanted[at]
            if not wanted:
                return True
        return all(wanted.values())

    def _parts(self, record: KeyRecord) -> AsyncIterator[bytes]:
        """Yield all parts of a value; a page is let go before the next one is read."""
        mean = (record.memory_bytes or 0) / max(1, record.length or 1)
        count = max(1, min(MAX_ELEMENTS, int(PAGE_BYTES / max(1.0, mean))))
        if record.key_type == types.STRING.name:
            return self._windows(record.key)
        if record.key_type in (types.HASH.name, types.SET.name):
            return self._scanned(record, count)
        return self._paged(record.key, record.key_type, count)

    async def _scanned(self, record: KeyRecord, count: int) -> AsyncIterator[bytes]:
        evidence = CollectionEvidence(record.encoding, record.length, record.memory_bytes)
        scan = guard.hscan if record.key_type == types.HASH.name else guard.sscan
        cursor, is_over = 0, False
        while not is_over:
            cursor, found = element_page(await self._ask(scan(record.key, cursor, count=count, evidence=evidence)))
            for part in byte_items(found):
                yield part
            is_over = not cursor

    async def _paged(self, key: bytes, kind: bytes | None, count: int) -> AsyncIterator[bytes]:
        start, end, parts = 0, b"+", 2 if kind == types.ZSET.name else 1
        while True:
            match kind:
                case types.LIST.name:
                    command = guard.lrange(key, start, start + count - 1)
                case types.ZSET.name:
                    command = guard.zrange(key, start, start + count - 1)
                case types.STREAM.name:
                    command = guard.xrevrange(key, end, b"-", count=count)
                case types.ARRAY.name:
                    command = guard.arscan(key, start, MAX_ARRAY_INDEX, limit=count)
                case _:
                    raise UnreadValueError("values of their type are not read")
            reply = await self._ask(command)
            for part in _flat([reply]):
                yield part
            read = len(array_rows(reply)) if kind == types.ARRAY.name else len(items(reply))
            if read < count * parts:
                return
            start += count
            if kind == types.ARRAY.name:
                start = array_rows(reply)[-1][0] + 1
            elif kind == types.STREAM.name:
                end = previous_id(next(_flat(items(reply)[-1:])))

    async def _windows(self, key: bytes) -> AsyncIterator[bytes]:
        """Yield a string up to DECODED_BYTES at once, and then windows, in each of which the last bytes come again."""
        whole, at = bytearray(), 0
        while True:
            window = await self._ask(guard.getrange(key, at, at + MAX_WINDOW_BYTES - 1))
            if not isinstance(window, bytes):
                raise UnreadValueError("the reply is not a string")
            at += len(window)
            whole += window
            is_last = len(window) < MAX_WINDOW_BYTES
            if is_last or len(whole) + MAX_WINDOW_BYTES > DECODED_BYTES:
                yield bytes(whole)
                del whole[: max(0, len(whole) - self._longest)]
            if is_last:
                return

    async def _ask(self, command: Command) -> Reply:
        (reply,) = await self._connection.run(command)
        if isinstance(reply, ServerError):
            raise UnreadValueError(str(reply))
        return reply

    @property
    def notes(self) -> Iterator[SafeText]:
        """Notes on values that were not searched, as sentences."""
        for why, number in self.unread.most_common():
            yield SafeText(f"{humanize.counted(number, 'value')} not searched: {why}.")


def decoded_texts(data: bytes) -> list[bytes]:
    """Return all texts and bytes in the tree that decoders make of a value."""
    from rtui.values.chain import decode  # noqa: PLC0415 - only this search needs all decoders
    from rtui.values.tree import outline  # noqa: PLC0415

    decoded = decode(data)
    found = [] if decoded.data == data else [decoded.data]
    for row in outline(decoded.root):
        found += [part.raw for part in (row.node.name, row.node) if part is not None and part.value]
    return found


def _flat(reply: Sequence[Reply]) -> Iterator[bytes]:
    for one in reply:
        if isinstance(one, bytes):
            yield one
        elif isinstance(one, list):
            yield from _flat(one)
