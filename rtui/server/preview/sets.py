"""Sets: pages by scan cursor, the whole where it is small and compact, else a random sample."""

from __future__ import annotations

from rtui.server import guard
from rtui.server.preview.bounds import (
    SAMPLE_ITEMS,
    all_at_once,
    no_sample,
    page_items,
    size_notes,
    too_large,
)
from rtui.server.preview.page import Column, Kind, Meaning, Page, Preview, Row
from rtui.server.preview.replies import cell, needed_items
from rtui.server.preview.scanning import scanned
from rtui.server.preview.source import Refused, Source

COLUMNS = (Column("member", Meaning.NAME),)
"""What a page of a set shows."""


async def read_set(source: Source, page: Page) -> Preview:
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


async def _sample(source: Source, page: Page, count: int) -> Preview:
    if not source.collection.may_be_sampled:
        raise Refused(no_sample(source.facts, "SRANDMEMBER"))
    (reply,) = await source.begin(guard.srandmember(source.key, count, evidence=source.collection))
    rows = tuple((cell(member),) for member in needed_items(reply))
    note = f"a random sample of {len(rows)} members: {all_at_once(source.facts, 'SSCAN')}"
    return _shown(source, page, rows, None, (note,))


def _shown(
    source: Source, page: Page, rows: tuple[Row, ...], following: Page | None, notes: tuple[str, ...]
) -> Preview:
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=Kind.SET,
        page=page,
        total=source.facts.length,
        columns=COLUMNS,
        rows=rows,
        next_page=following,
        notes=notes,
        touched=source.touches,
    )
