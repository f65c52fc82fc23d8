"""Sets: pages by scan cursor, the whole where it is small and compact, else a random sample."""

from __future__ import annotations

from rtui.analysis.facts import KeyFacts, Unknown
from rtui.server import guard
from rtui.server.preview.bounds import (
    CAUTIOUS_ITEMS,
    SAMPLE_ITEMS,
    all_at_once,
    is_compact,
    is_small,
    page_items,
    size_notes,
    too_large,
)
from rtui.server.preview.page import Column, Kind, Meaning, Page, Preview, Row
from rtui.server.preview.replies import cell, items
from rtui.server.preview.scanning import scanned
from rtui.server.preview.source import Refused, Source, needed

COLUMNS = (Column("member", Meaning.NAME),)
"""What a page of a set shows."""


async def read_set(source: Source, page: Page) -> Preview:
    """Read the members at the page's cursor: about 100, fewer where members are large."""
    count = page_items(source.facts)
    if not count:
        raise Refused(too_large(source.facts, "member"))
    if is_compact(source.facts) and not _may_come_whole(source.facts):
        return await _sample(source, page, min(SAMPLE_ITEMS, count))
    cursor, found = await scanned(source, page, lambda at: guard.sscan(source.key, at, count=count))
    rows = tuple((cell(member),) for member in found)
    return _shown(source, page, rows, page.following(cursor) if cursor else None, size_notes(source.facts))


def _may_come_whole(facts: KeyFacts) -> bool:
    """Whether the server may answer with all members: small by memory, or next to none where memory is not known."""
    if isinstance(facts.memory_bytes, Unknown):
        return not isinstance(facts.length, Unknown) and facts.length <= CAUTIOUS_ITEMS
    return is_small(facts)


async def _sample(source: Source, page: Page, count: int) -> Preview:
    (reply,) = await source.begin(guard.srandmember(source.key, count))
    rows = tuple((cell(member),) for member in items(needed(reply)))
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
