"""Lists: pages by index."""

from __future__ import annotations

from rtui.server import guard
from rtui.server.preview.bounds import page_items, size_notes, too_large
from rtui.server.preview.page import Column, Kind, Meaning, Page, Preview
from rtui.server.preview.replies import cell, needed_items
from rtui.server.preview.source import Refused, Source

COLUMNS = (Column("index", Meaning.INDEX), Column("item", Meaning.VALUE))
"""What a page of a list shows."""


async def read_list(source: Source, page: Page) -> Preview:
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
        kind=Kind.LIST,
        page=page,
        total=source.facts.length,
        columns=COLUMNS,
        rows=tuple((start + at, cell(item)) for at, item in enumerate(found)),
        next_page=page.following(start + count) if source.has_more(start + len(found), len(found) == count) else None,
        notes=size_notes(source.facts),
        touched=source.touches,
    )
