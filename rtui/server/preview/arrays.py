"""Arrays (Redis 8.8): the elements that are there, with their indexes; holes are skipped."""

from __future__ import annotations

from rtui.server import guard
from rtui.server.guard.value_entries import MAX_ARRAY_INDEX
from rtui.server.preview.bounds import page_items, size_notes, too_large
from rtui.server.preview.page import Column, Kind, Meaning, Page, Preview
from rtui.server.preview.replies import cell, needed_items, pairs, whole
from rtui.server.preview.source import Refused, Source, optional

COLUMNS = (Column("index", Meaning.INDEX), Column("element", Meaning.VALUE))
"""What a page of an array shows."""


async def read_array(source: Source, page: Page) -> Preview:
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
        kind=Kind.ARRAY,
        page=page,
        total=source.facts.length,
        summary=(("highest index + 1", whole(optional(highest))),),
        columns=COLUMNS,
        rows=rows,
        next_page=page.following(last + 1) if len(rows) == count and last < MAX_ARRAY_INDEX else None,
        notes=size_notes(source.facts),
        touched=source.touches,
    )
