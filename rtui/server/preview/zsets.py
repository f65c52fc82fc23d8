"""Sorted sets: pages by rank, lowest score first."""

from __future__ import annotations

from rtui.server import guard
from rtui.server.preview.bounds import page_items, size_notes, too_large
from rtui.server.preview.page import Column, Kind, Meaning, Page, Preview
from rtui.server.preview.replies import cell, needed_items, pairs, score
from rtui.server.preview.source import Refused, Source

COLUMNS = (Column("rank", Meaning.INDEX), Column("member", Meaning.NAME), Column("score", Meaning.SCORE))
"""What a page of a sorted set shows."""


async def read_zset(source: Source, page: Page) -> Preview:
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
        kind=Kind.ZSET,
        page=page,
        total=source.facts.length,
        columns=COLUMNS,
        rows=tuple((start + at, cell(member), score(points)) for at, (member, points) in enumerate(found)),
        next_page=page.following(start + count) if source.has_more(start + len(found), len(found) == count) else None,
        notes=size_notes(source.facts),
        touched=source.touches,
    )
