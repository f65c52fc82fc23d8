"""Streams: entries newest first, and the groups that read them."""

from __future__ import annotations

import re
from typing import Final

from rtui.analysis.facts import Unknown
from rtui.server import guard
from rtui.server.guard import EntryEvidence
from rtui.server.preview.bounds import page_items, size_notes, too_large
from rtui.server.preview.groups import read_groups
from rtui.server.preview.page import FIRST, Cell, Column, Kind, Meaning, Page, Preview, Row
from rtui.server.preview.replies import cell, items, mapping, needed_items, pairs
from rtui.server.preview.source import Refused, Source, optional
from rtui.server.reply import Reply

COLUMNS = (Column("entry", Meaning.STREAM_ID), Column("field", Meaning.NAME), Column("value", Meaning.VALUE))
"""What a page of a stream shows: a row a field, the id on the first of an entry."""

_ID: Final = re.compile(rb"[0-9]{1,20}(?:-[0-9]{1,20})?")
"""What an entry is called: milliseconds and a number."""

MAX_SEQUENCE: Final = (1 << 64) - 1
"""The highest second half of an entry id."""

ENTRIES: Final = 50
"""Entries of a page; each has at least one field and so one row."""


async def read_stream(source: Source, page: Page) -> Preview:
    """Read up to 50 entries from the page's id backwards; on the first page the stream itself and its groups too."""
    count = min(ENTRIES, page_items(source.facts))
    if not count:
        raise Refused(too_large(source.facts, "entry"))
    end = page.position if isinstance(page.position, bytes) else b"+"
    entries = guard.xrevrange(source.key, end, b"-", count=count)
    known = EntryEvidence(source.facts.mean_element_bytes)
    describes_at_once = page == FIRST and known.is_light
    replies = await source.begin(entries, *([guard.xinfo_stream(source.key, known)] if describes_at_once else []))
    found = needed_items(replies[0])
    rows = [row for entry in found for row in _rows(entry)]
    last = _id_of(found[-1]) if found else None
    if page == FIRST and known.mean_bytes is None:
        known = EntryEvidence(_mean_bytes(found))
        replies += await source.more(guard.xinfo_stream(source.key, known)) if known.is_light else []
    described = mapping(optional(replies[1])) if len(replies) > 1 else {}
    notes = size_notes(source.facts)
    if page == FIRST and not known.is_light:
        notes += ("groups are not listed: XINFO STREAM would answer with the first and last entry in full",)
    sections, group_notes = await read_groups(source, described)
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=Kind.STREAM,
        page=page,
        total=source.facts.length,
        summary=_summary(described),
        columns=COLUMNS,
        rows=tuple(rows),
        sections=sections,
        next_page=page.following(before(last)) if last and len(found) == count and last != b"0-1" else None,
        notes=notes + group_notes,
        touched=source.touches,
    )


def before(entry_id: bytes) -> bytes:
    """Give the id right before this one; servers before 6.2 know no exclusive ends."""
    milliseconds, _, sequence = entry_id.partition(b"-")
    time, number = int(milliseconds), int(sequence or b"0")
    if number:
        return b"%d-%d" % (time, number - 1)
    return b"%d-%d" % (time - 1, MAX_SEQUENCE) if time else b"0-0"


def _mean_bytes(entries: list[Reply]) -> float:
    """Say how large the entries are on average that were read."""
    texts = (text for entry in entries for fields in items(entry)[1:] for pair in pairs(fields) for text in pair)
    return sum(len(text) for text in texts if isinstance(text, bytes)) / max(1, len(entries))


def _id_of(entry: Reply) -> bytes | None:
    parts = items(entry)
    found = parts[0] if parts else None
    return found if isinstance(found, bytes) and _ID.fullmatch(found) else None


def _rows(entry: Reply) -> list[Row]:
    """Make a row of each field of an entry."""
    parts = items(entry)
    if len(parts) != 2:
        return []
    shown: Cell = cell(parts[0])
    rows: list[Row] = []
    for name, value in pairs(parts[1]):
        rows.append((shown, cell(name), cell(value)))
        shown = None
    return rows or [(shown, None, None)]


def _summary(described: dict[bytes, Reply]) -> tuple[tuple[str, Cell | Unknown], ...]:
    return tuple(
        (name.decode("utf-8", "backslashreplace"), cell(value))
        for name, value in described.items()
        if isinstance(value, (bytes, int)) and not name.startswith(b"radix-tree")
    )
