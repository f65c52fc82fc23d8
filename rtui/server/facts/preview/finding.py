"""Finding elements inside a value, a bounded piece of it at a time.

Hashes, sets and sorted sets are searched by the server: HSCAN, SSCAN and ZSCAN with MATCH, 100 elements a command. The
exact typed name is looked up first, so that it is found at once however many there are. Lists, streams and arrays have
no such command (LPOS walks over the whole list in one go), so their pages are read and searched here. A string is
searched in windows; the window that begins with the match is shown.

Each page of matches is the result of a limited number of commands, perhaps empty: `Preview.looked_at` counts the
searched elements, and the next page continues behind them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.facts.preview.collections import (
    ARRAY_COLUMNS,
    LIST_COLUMNS,
    MAX_ENTRIES,
    SET_COLUMNS,
    STREAM_COLUMNS,
    ZSET_COLUMNS,
    array_rows,
    entry_rows,
    page_of_entries,
)
from rtui.server.facts.preview.hashes import read_named, with_ttls
from rtui.server.facts.preview.page import Find, Page, Preview, PreviewColumn, PreviewKind, PreviewRow, Unread
from rtui.server.facts.preview.strings import read_string
from rtui.server.facts.preview.value_reader import (
    PAGE_ITEMS,
    Refused,
    ValueReader,
    byte_items,
    cell,
    element_page,
    expect_bytes,
    expect_items,
    pairs,
    score,
)
from rtui.server.guard.closed_list import MAX_ARRAY_INDEX, MAX_WINDOW_BYTES
from rtui.server.guard.command import Command
from rtui.server.guard.spec import MAX_FIELD_BYTES
from rtui.server.wire.errors import Reply

CALLS: Final = 20
"""The number of commands for one page of matches, sent one after the other."""

ScanCommand = Callable[[int, int], Command]
"""Builds the command that lists matching elements from a cursor, for a COUNT."""


def _wanted(reader: ValueReader) -> Find:
    find = reader.page.find
    return Find(b"") if find is None else find


def _may_look_up(reader: ValueReader, find: Find) -> bool:
    """Whether the exact typed name can be looked up at a bounded cost."""
    return bool(reader.evidence.look_ups) and len(find.text) <= MAX_FIELD_BYTES


async def _scan(reader: ValueReader, name: str, command: ScanCommand) -> tuple[list[Reply], Page | None, int]:
    """Return the matches among the next elements, the page behind them, and the number of searched elements.

    `name` is the command's, for a refusal.
    """
    if not reader.evidence.may_be_scanned:
        raise Refused(Unknown(Reason.TOO_LARGE, reader.would(name, "walk over all elements at once")))
    count = reader.require_items("element")
    cursor, calls = reader.start, 0
    found: list[Reply] = []
    while calls < CALLS and len(found) < PAGE_ITEMS:
        (reply,) = await reader.querier.run(command(cursor, count))
        cursor, matching = element_page(reply)
        found += matching
        calls += 1
        if not cursor:
            break
    looked_at = calls * count
    if not cursor and isinstance(reader.facts.length, int):
        looked_at = reader.facts.length
    return found, reader.page.following(cursor) if cursor else None, looked_at


def _matches(reader: ValueReader, kind: PreviewKind, rows: list[PreviewRow], **found: object) -> Preview:
    shown = replace(reader.preview(kind), rows=tuple(rows), first=None)
    return replace(shown, **found)  # type: ignore[arg-type]


async def find_in_hash(reader: ValueReader) -> Preview:
    """Read fields whose names match: the exact name first, with small values."""
    find, evidence = _wanted(reader), reader.evidence
    pattern = find.pattern
    await reader.begin(reads_more=True)
    is_first = not reader.start
    has_exact = _may_look_up(reader, find)
    exact: tuple[PreviewRow, ...] = ()
    shown = reader.preview(PreviewKind.HASH)
    if is_first and has_exact:
        shown = await read_named(reader, [find.text])
        exact = tuple(row for row in shown.rows if _is_there(row))
        if find.is_exact:
            return replace(shown, rows=exact, first=None, looked_at=1)

    def command(cursor: int, count: int, *, novalues: bool = False) -> Command:
        return guard.hscan(reader.key, cursor, count=count, evidence=evidence, match=pattern, novalues=novalues)

    named = None
    if not evidence.is_compact and reader.supports(redis=(7, 4), valkey=(8, 0)):
        try:
            found, following, looked_at = await _scan(reader, "HSCAN", partial(command, novalues=True))
        except Refused as refused:
            if refused.why.reason is not Reason.FAILED:  # it fails where the server does not know NOVALUES
                raise
        else:
            named = [name for name in byte_items(found) if not (has_exact and name == find.text)]
            shown = await read_named(reader, named)
    if named is None:
        found, following, looked_at = await _scan(reader, "HSCAN", command)
        values = {name: cell(value) for name, value in pairs(found) if isinstance(name, bytes)}
        if has_exact:
            values.pop(find.text, None)
        shown = await with_ttls(reader, values)
    width = len(shown.columns)
    rows = [*((*row, None)[:width] for row in exact), *shown.rows]
    return replace(shown, rows=tuple(rows), first=None, next_page=following, looked_at=looked_at)


def _is_there(row: PreviewRow) -> bool:
    """Whether a field that was looked up exists: its value was read, or has a size."""
    value = row[1]
    return isinstance(value, bytes) or (isinstance(value, Unread) and bool(value.size_bytes))


async def find_in_set(reader: ValueReader) -> Preview:
    """Read matching members, the exact one first."""
    find, evidence = _wanted(reader), reader.evidence
    pattern = find.pattern
    await reader.begin(reads_more=True)
    rows: list[PreviewRow] = []
    has_exact = _may_look_up(reader, find)
    if not reader.start and has_exact:
        (is_there,) = await reader.querier.run(guard.sismember(reader.key, find.text, evidence=evidence))
        rows = [(find.text,)] if is_there == 1 else []
        if find.is_exact:
            return _matches(reader, PreviewKind.SET, rows, columns=SET_COLUMNS, looked_at=1)

    def command(cursor: int, count: int) -> Command:
        return guard.sscan(reader.key, cursor, count=count, evidence=evidence, match=pattern)

    found, following, looked_at = await _scan(reader, "SSCAN", command)
    rows += [(cell(member),) for member in found if not (has_exact and member == find.text)]
    return _matches(reader, PreviewKind.SET, rows, columns=SET_COLUMNS, next_page=following, looked_at=looked_at)


async def find_in_zset(reader: ValueReader) -> Preview:
    """Read matching members with their scores, the exact one first, with its rank."""
    find, evidence = _wanted(reader), reader.evidence
    pattern = find.pattern
    await reader.begin(reads_more=True)
    rows: list[PreviewRow] = []
    has_exact = _may_look_up(reader, find)
    if not reader.start and has_exact:
        (rank,) = await reader.querier.run(guard.zrank(reader.key, find.text, evidence=evidence))
        if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0:
            (reply,) = await reader.querier.run(guard.zrange(reader.key, rank, rank))
            rows = [(rank, cell(member), score(points)) for member, points in pairs(expect_items(reply))]

    def command(cursor: int, count: int) -> Command:
        return guard.zscan(reader.key, cursor, count=count, evidence=evidence, match=pattern)

    found, following, looked_at = await _scan(reader, "ZSCAN", command)
    exact = find.text if has_exact else None
    rows += [(None, cell(member), score(points)) for member, points in pairs(found) if member != exact]
    return _matches(reader, PreviewKind.ZSET, rows, columns=ZSET_COLUMNS, next_page=following, looked_at=looked_at)


P = TypeVar("P", int, bytes)


async def _walk(
    reader: ValueReader,
    kind: PreviewKind,
    columns: tuple[PreviewColumn, ...],
    position: P,
    read: Callable[[P], Awaitable[tuple[Sequence[Sequence[PreviewRow]], P | None]]],
) -> Preview:
    """Read pages of elements from a position on and keep the matching ones.

    `read` returns the rows of each element of a page, and the position behind them, None at the end.
    """
    matches, is_stream = _wanted(reader).matcher, kind is PreviewKind.STREAM
    await reader.begin(reads_more=True)
    rows: list[PreviewRow] = []
    kept = looked_at = 0
    following: Page | None = None
    for _ in range(CALLS):
        found, behind = await read(position)
        for parts in found:
            if any(isinstance(part, bytes) and matches(part) for row in parts for part in row):
                rows += parts
                kept += 1
        looked_at += len(found)
        following = None if behind is None else reader.page.following(behind)
        if behind is None or kept >= (MAX_ENTRIES if is_stream else PAGE_ITEMS):
            break
        position = behind
    elements = kept if is_stream else None
    return _matches(reader, kind, rows, columns=columns, elements=elements, next_page=following, looked_at=looked_at)


async def find_in_list(reader: ValueReader) -> Preview:
    count = reader.require_items("item")

    async def read(start: int) -> tuple[Sequence[Sequence[PreviewRow]], int | None]:
        (reply,) = await reader.querier.run(guard.lrange(reader.key, start, start + count - 1))
        found = byte_items(expect_items(reply))
        rows = [[(start + at, item)] for at, item in enumerate(found)]
        return rows, start + len(found) if len(found) == count else None

    return await _walk(reader, PreviewKind.LIST, LIST_COLUMNS, reader.start, read)


async def find_in_array(reader: ValueReader) -> Preview:
    count = reader.require_items("element")

    async def read(start: int) -> tuple[Sequence[Sequence[PreviewRow]], int | None]:
        (reply,) = await reader.querier.run(guard.arscan(reader.key, start, MAX_ARRAY_INDEX, limit=count))
        found = array_rows(reply)
        last = found[-1][0] if len(found) == count else MAX_ARRAY_INDEX
        return [[row] for row in found], last + 1 if last < MAX_ARRAY_INDEX else None

    return await _walk(reader, PreviewKind.ARRAY, ARRAY_COLUMNS, reader.start, read)


async def find_in_stream(reader: ValueReader) -> Preview:
    """Read pages of entries, newest first, and keep those whose id, a field or a value matches."""
    count = min(MAX_ENTRIES, reader.require_items("entry"))

    async def read(end: bytes) -> tuple[Sequence[Sequence[PreviewRow]], bytes | None]:
        found, end_after = await page_of_entries(reader, end, count)
        return [*map(entry_rows, found)], end_after

    first = reader.page.position if isinstance(reader.page.position, bytes) else b"+"
    return await _walk(reader, PreviewKind.STREAM, STREAM_COLUMNS, first, read)


async def find_in_string(reader: ValueReader) -> Preview:
    """Search bytes from the page's offset on, and read the window that begins with the match."""
    text = _wanted(reader).text
    at = offset = reader.start
    await reader.begin(reads_more=True)
    for _ in range(CALLS):
        (reply,) = await reader.querier.run(guard.getrange(reader.key, at, at + MAX_WINDOW_BYTES - 1))
        data = expect_bytes(reply)
        place = data.find(text) if text else -1
        if place >= 0:
            found = at + place
            window = await read_string(replace(reader, page=Page(found, number=2)))
            return replace(
                window, page=reader.page, next_page=reader.page.following(found + 1), looked_at=found - offset + 1
            )
        if len(data) < MAX_WINDOW_BYTES:
            return replace(reader.preview(PreviewKind.NOTHING), looked_at=at + len(data) - offset)
        at += MAX_WINDOW_BYTES - len(text) + 1
    return replace(reader.preview(PreviewKind.NOTHING), next_page=reader.page.following(at), looked_at=at - offset)
