"""Pages by scan cursor: a call may come back empty, and then the next one follows by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.server import guard
from rtui.server.facts.preview.page import (
    SAMPLE_ITEMS,
    Meaning,
    Page,
    Preview,
    PreviewColumn,
    PreviewKind,
    PreviewRow,
    all_at_once,
    no_sample,
    page_items,
    size_notes,
    too_large,
)
from rtui.server.facts.preview.source import (
    Refused,
    ValueReader,
    cell,
    needed_items,
    optional,
    pairs,
    scan_page,
    score,
    whole,
)
from rtui.server.guard.command import Command
from rtui.server.guard.key_entries import MAX_ARRAY_INDEX
from rtui.server.wire.replies import Reply

MAX_EMPTY_CALLS: Final = 10
"""How many empty answers in a row end a page all the same: a table right after a mass deletion is mostly holes."""


async def scanned(source: ValueReader, page: Page, ask: Callable[[int], Command]) -> tuple[int, list[Reply]]:
    """Scan from the page's cursor until something is found; give the cursor behind it, 0 at the end, and what it is."""
    cursor = page.position if isinstance(page.position, int) else 0
    (reply,) = await source.begin(ask(cursor))
    cursor, found = scan_page(reply)
    for _ in range(MAX_EMPTY_CALLS - 1):
        if found or not cursor:
            break
        (reply,) = await source.more(ask(cursor))
        cursor, found = scan_page(reply)
    return cursor, found


LIST_COLUMNS = (PreviewColumn("index", Meaning.INDEX), PreviewColumn("item", Meaning.VALUE))
"""What a page of a list shows."""


async def read_list(source: ValueReader, page: Page) -> Preview:
    """Read up to 100 items from the page's index on, fewer where items are large."""
    start = page.position if isinstance(page.position, int) else 0
    count = page_items(source.facts)
    if not count:
        raise Refused(too_large(source.facts, "item"))
    (reply,) = await source.begin(guard.lrange(source.key, start, start + count - 1))
    found = needed_items(reply)
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=PreviewKind.LIST,
        page=page,
        total=source.facts.length,
        columns=LIST_COLUMNS,
        rows=tuple((start + at, cell(item)) for at, item in enumerate(found)),
        next_page=page.following(start + count) if source.has_more(start + len(found), len(found) == count) else None,
        notes=size_notes(source.facts),
        touched=source.touches,
    )


SET_COLUMNS = (PreviewColumn("member", Meaning.NAME),)
"""What a page of a set shows."""


async def read_set(source: ValueReader, page: Page) -> Preview:
    """Read the members at the page's cursor: about 100, fewer where members are large."""
    count = page_items(source.facts)
    if not count:
        raise Refused(too_large(source.facts, "member"))
    known = source.collection
    if not known.may_be_scanned:
        return await _sample(source, page, min(SAMPLE_ITEMS, count))
    cursor, found = await scanned(source, page, lambda at: guard.sscan(source.key, at, count=count, evidence=known))
    rows = tuple((cell(member),) for member in found)
    return _shown(source, page, rows, page.following(cursor) if cursor else None, size_notes(source.facts))


async def _sample(source: ValueReader, page: Page, count: int) -> Preview:
    if not source.collection.may_be_sampled:
        raise Refused(no_sample(source.facts, "SRANDMEMBER"))
    (reply,) = await source.begin(guard.srandmember(source.key, count, evidence=source.collection))
    rows = tuple((cell(member),) for member in needed_items(reply))
    note = f"a random sample of {len(rows)} members: {all_at_once(source.facts, 'SSCAN')}"
    return _shown(source, page, rows, None, (note,))


def _shown(
    source: ValueReader, page: Page, rows: tuple[PreviewRow, ...], following: Page | None, notes: tuple[str, ...]
) -> Preview:
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=PreviewKind.SET,
        page=page,
        total=source.facts.length,
        columns=SET_COLUMNS,
        rows=rows,
        next_page=following,
        notes=notes,
        touched=source.touches,
    )


ZSET_COLUMNS = (
    PreviewColumn("rank", Meaning.INDEX),
    PreviewColumn("member", Meaning.NAME),
    PreviewColumn("score", Meaning.SCORE),
)
"""What a page of a sorted set shows."""


async def read_zset(source: ValueReader, page: Page) -> Preview:
    """Read up to 100 members with their scores from the page's rank on, fewer where members are large."""
    start = page.position if isinstance(page.position, int) else 0
    count = page_items(source.facts)
    if not count:
        raise Refused(too_large(source.facts, "member"))
    (reply,) = await source.begin(guard.zrange(source.key, start, start + count - 1))
    found = list(pairs(needed_items(reply)))
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=PreviewKind.ZSET,
        page=page,
        total=source.facts.length,
        columns=ZSET_COLUMNS,
        rows=tuple((start + at, cell(member), score(points)) for at, (member, points) in enumerate(found)),
        next_page=page.following(start + count) if source.has_more(start + len(found), len(found) == count) else None,
        notes=size_notes(source.facts),
        touched=source.touches,
    )


ARRAY_COLUMNS = (PreviewColumn("index", Meaning.INDEX), PreviewColumn("element", Meaning.VALUE))
"""What a page of an array shows."""


async def read_array(source: ValueReader, page: Page) -> Preview:
    """Read up to 100 elements from the page's index on, fewer where elements are large."""
    start = page.position if isinstance(page.position, int) else 0
    count = page_items(source.facts)
    if not count:
        raise Refused(too_large(source.facts, "element"))
    reply, highest = await source.begin(
        guard.arscan(source.key, start, MAX_ARRAY_INDEX, limit=count), guard.arlen(source.key)
    )
    found = [(whole(index), cell(element)) for index, element in pairs(needed_items(reply))]
    rows = tuple((index, element) for index, element in found if index is not None and 0 <= index <= MAX_ARRAY_INDEX)
    last = rows[-1][0] if rows else start
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=PreviewKind.ARRAY,
        page=page,
        total=source.facts.length,
        summary=(("highest index + 1", whole(optional(highest))),),
        columns=ARRAY_COLUMNS,
        rows=rows,
        next_page=page.following(last + 1) if len(rows) == count and last < MAX_ARRAY_INDEX else None,
        notes=size_notes(source.facts),
        touched=source.touches,
    )
