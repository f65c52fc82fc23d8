"""Previews of lists, sets, sorted sets and arrays.

Lists, sorted sets and arrays are read by index: a page begins at the end of the one before. Sets are unordered and read
by SSCAN; if that would return all members at once, a random sample is shown instead of pages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rtui.analysis.humanize import size
from rtui.server import guard
from rtui.server.facts.preview.page import FIRST, Meaning, Preview, PreviewCell, PreviewColumn, PreviewKind, PreviewRow
from rtui.server.facts.preview.value_reader import (
    PAGE_ITEMS,
    ValueReader,
    cell,
    element_page,
    expect_items,
    integer,
    pairs,
    score,
)
from rtui.server.guard.closed_list import MAX_ARRAY_INDEX, MAX_RANDOM
from rtui.server.wire.errors import Reply

LIST_COLUMNS: Final = (PreviewColumn("index", Meaning.INDEX), PreviewColumn("item", Meaning.VALUE))
SET_COLUMNS: Final = (PreviewColumn("member", Meaning.NAME),)
ZSET_COLUMNS: Final = (
    PreviewColumn("rank", Meaning.INDEX),
    PreviewColumn("member", Meaning.NAME),
    PreviewColumn("score", Meaning.SCORE),
)
ARRAY_COLUMNS: Final = (PreviewColumn("index", Meaning.INDEX), PreviewColumn("element", Meaning.VALUE))


SHORT_BYTES: Final = 64
"""The longest members that are listed if some are too large to be read."""

LENGTHS_AT_ONCE: Final = 13


async def read_list(reader: ValueReader) -> Preview:
    """Read up to 100 items from the page's index on, fewer if items are large."""
    start, count = reader.start, reader.require_items("item")
    (reply,) = await reader.begin(guard.lrange(reader.key, start, start + count - 1))
    found = expect_items(reply)
    return replace(
        reader.preview(PreviewKind.LIST),
        columns=LIST_COLUMNS,
        rows=tuple((start + at, item) for at, item in enumerate(reader.kept(found))),
        next_page=reader.page_after(len(found), count),
        notes=reader.size_notes,
    )


async def read_set(reader: ValueReader) -> Preview:
    """Read the members at the page's cursor, about 100, fewer if members are large; or a random sample of them."""
    evidence = reader.evidence
    if not reader.max_items and evidence.may_be_scanned:
        return await _short_members(reader, PreviewKind.SET)
    count = reader.require_items("member")
    shown = replace(reader.preview(PreviewKind.SET), columns=SET_COLUMNS)
    if evidence.may_be_scanned:
        found, cursor = await reader.scan(lambda at: guard.sscan(reader.key, at, count=count, evidence=evidence))
        next_page = reader.page.following(cursor, shown=len(found)) if cursor else None
        return replace(
            shown, rows=tuple((member,) for member in reader.kept(found)), next_page=next_page, notes=reader.size_notes
        )
    reader.require_sample("SRANDMEMBER")
    (reply,) = await reader.begin(guard.srandmember(reader.key, min(MAX_RANDOM, count), evidence=evidence))
    rows = tuple((member,) for member in reader.kept(expect_items(reply)))
    note = f"a random sample of {len(rows)} members: {reader.would('SSCAN', 'answer with all at once')}"
    return replace(shown, rows=rows, notes=(note,), first=None)


async def _short_members(reader: ValueReader, kind: PreviewKind) -> Preview:
    """Read the short ones of the next 100 members of a table, if members are too large to be read.

    No command returns the size of a member, but a glob of n question marks matches members of n bytes only, and the
    server leaves all others out. So each length is asked for, from the same cursor.
    """
    is_set = kind is PreviewKind.SET
    pages: list[tuple[int, list[Reply]]] = []
    for least in range(0, SHORT_BYTES + 1, LENGTHS_AT_ONCE):
        commands = [
            (guard.sscan if is_set else guard.zscan)(
                reader.key, reader.start, count=PAGE_ITEMS, match=b"?" * length, evidence=reader.evidence
            )
            for length in range(least, min(least + LENGTHS_AT_ONCE, SHORT_BYTES + 1))
        ]
        replies = await (reader.querier.run(*commands) if pages else reader.begin(*commands))
        pages += map(element_page, replies)
    found = [member for _, members in pages for member in members]
    rows: tuple[PreviewRow, ...] = tuple((cell(member),) for member in found)
    if not is_set:
        rows = tuple((None, cell(member), score(points)) for member, points in pairs(found))
    cursor = pages[0][0]
    next_page = replace(reader.page.following(cursor), is_short=True) if cursor else None
    mean = reader.facts.mean_element_bytes or 0
    note = f"only members of up to {SHORT_BYTES} bytes are listed: on average one takes {size(mean)}"
    return replace(
        reader.preview(kind),
        columns=SET_COLUMNS if is_set else ZSET_COLUMNS,
        rows=rows,
        first=None,
        next_page=next_page,
        notes=(note,),
        offers=reader.offers("member"),
    )


async def read_zset(reader: ValueReader) -> Preview:
    """Read up to 100 members with their scores from the page's rank on, fewer if members are large.

    A span ends with its last rank.
    """
    may_walk = reader.page == FIRST or reader.page.is_short
    if may_walk and not reader.max_items and reader.evidence.may_be_scanned:
        return await _short_members(reader, PreviewKind.ZSET)
    start, count, span = reader.start, reader.require_items("member"), reader.page.span
    if span is not None and isinstance(span.last, int):
        count = max(1, min(count, span.last - start + 1))
    (reply,) = await reader.begin(guard.zrange(reader.key, start, start + count - 1))
    found = list(pairs(expect_items(reply)))
    is_last = span is not None and isinstance(span.last, int) and start + len(found) > span.last
    return replace(
        reader.preview(PreviewKind.ZSET),
        columns=ZSET_COLUMNS,
        rows=tuple(
            (start + at, member, score(points))
            for at, (member, (_, points)) in enumerate(zip(reader.kept(one for one, _ in found), found, strict=True))
        ),
        next_page=None if is_last else reader.page_after(len(found), count),
        notes=reader.size_notes,
    )


async def read_array(reader: ValueReader) -> Preview:
    """Read up to 100 elements from the page's index on, fewer if elements are large; indexes may have gaps."""
    start, count = reader.start, reader.require_items("element")
    reply, highest = await reader.begin(
        guard.arscan(reader.key, start, MAX_ARRAY_INDEX, limit=count), guard.arlen(reader.key)
    )
    found = array_rows(reply)
    rows = list(zip((index for index, _ in found), reader.kept(one for _, one in found), strict=True))  # type: ignore[misc]
    is_inside = not rows or rows[-1][0] < MAX_ARRAY_INDEX
    last = rows[-1][0] if rows else start
    return replace(
        reader.preview(PreviewKind.ARRAY),
        summary=(("highest index + 1", integer(highest)),),
        columns=ARRAY_COLUMNS,
        rows=tuple(rows),
        next_page=reader.page.following(last + 1, shown=len(rows)) if len(rows) == count and is_inside else None,
        notes=reader.size_notes,
    )


def array_rows(reply: Reply) -> list[tuple[int, PreviewCell]]:
    """Return indexes and elements of an ARSCAN reply; raises Refused for anything else."""
    found = [(integer(index), cell(element)) for index, element in pairs(expect_items(reply))]
    return [(index, element) for index, element in found if index is not None and 0 <= index <= MAX_ARRAY_INDEX]
