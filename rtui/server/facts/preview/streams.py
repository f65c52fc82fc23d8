"""The consumer groups of a stream: groups, their consumers and what is pending, when there are few of them."""

from __future__ import annotations

import re
from typing import Final

from rtui.analysis.facts import Unknown
from rtui.server import guard
from rtui.server.facts.preview.page import (
    FIRST,
    Meaning,
    Page,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewKind,
    PreviewRow,
    SideTable,
    page_items,
    size_notes,
    too_large,
)
from rtui.server.facts.preview.source import Refused, ValueReader, cell, items, mapping, needed_items, optional, pairs
from rtui.server.guard.arguments import MAX_FIELD_BYTES
from rtui.server.guard.evidence import MAX_CONSUMERS, MAX_GROUPS, ConsumerEvidence, EntryEvidence, GroupEvidence
from rtui.server.wire.replies import Reply

DETAILED_GROUPS: Final = 10
"""Groups whose consumers are listed."""

_GROUPS: Final = (
    ("group", b"name", Meaning.NAME),
    ("consumers", b"consumers", Meaning.COUNT),
    ("pending", b"pending", Meaning.COUNT),
    ("lag", b"lag", Meaning.COUNT),
    ("last delivered", b"last-delivered-id", Meaning.STREAM_ID),
)
_CONSUMERS: Final = (
    ("consumer", b"name", Meaning.NAME),
    ("pending", b"pending", Meaning.COUNT),
    ("idle", b"idle", Meaning.DURATION_MS),
    ("inactive", b"inactive", Meaning.DURATION_MS),
)
_PENDING: Final = (
    PreviewColumn("oldest pending", Meaning.STREAM_ID),
    PreviewColumn("newest pending", Meaning.STREAM_ID),
)


async def read_groups(
    source: ValueReader, described: dict[bytes, Reply]
) -> tuple[tuple[SideTable, ...], tuple[str, ...]]:
    """Give tables of the groups and consumers of a stream that XINFO STREAM described, and notes on what is missing."""
    count = described.get(b"groups")
    if not isinstance(count, int) or not count:
        return (), ()
    if count > MAX_GROUPS:
        return (), (f"{count:,} groups: more than {MAX_GROUPS} are not listed, the server has no pages for them",)
    (reply,) = await source.more(guard.xinfo_groups(source.key, GroupEvidence(count)))
    groups = [mapping(group) for group in items(optional(reply))]
    if not groups:
        return (), ("the groups were not told",)
    detailed = [group for group in groups if _is_detailed(group)][:DETAILED_GROUPS]
    known = {
        name: ConsumerEvidence(count)
        for group in detailed
        if isinstance(name := group.get(b"name"), bytes) and isinstance(count := group.get(b"consumers"), int)
    }
    names = list(known)
    replies = await source.more(
        *(guard.xinfo_consumers(source.key, name, evidence) for name, evidence in known.items()),
        *(guard.xpending(source.key, name, evidence) for name, evidence in known.items()),
    )
    pending = dict(zip(names, replies[len(names) :], strict=True))
    consumers = tuple(
        _consumers(name, optional(reply)) for name, reply in zip(names, replies[: len(names)], strict=True)
    )
    left_out = sum(1 for group in groups if group.get(b"consumers")) - len(names)
    notes = (f"the consumers of {left_out} groups are not listed",) if left_out > 0 else ()
    return (_groups(groups, pending), *consumers), notes


def _is_detailed(group: dict[bytes, Reply]) -> bool:
    consumers, name = group.get(b"consumers"), group.get(b"name")
    if not isinstance(consumers, int) or not isinstance(name, bytes):
        return False
    return 0 < consumers <= MAX_CONSUMERS and len(name) <= MAX_FIELD_BYTES


def _groups(groups: list[dict[bytes, Reply]], pending: dict[bytes, Reply]) -> SideTable:
    columns = [PreviewColumn(title, meaning) for title, _, meaning in _GROUPS]
    rows = tuple((*(cell(group.get(name)) for _, name, _ in _GROUPS), *_span(group, pending)) for group in groups)
    return SideTable("groups", (*columns, *_PENDING), rows)


def _span(group: dict[bytes, Reply], pending: dict[bytes, Reply]) -> tuple[PreviewCell, PreviewCell]:
    """Give the ids of the oldest and newest entry that a group has pending."""
    name = group.get(b"name")
    summary = items(optional(pending.get(name))) if isinstance(name, bytes) else []
    return (cell(summary[1]), cell(summary[2])) if len(summary) > 2 else (None, None)


def _consumers(group: bytes, reply: Reply) -> SideTable:
    consumers = [mapping(consumer) for consumer in items(reply)]
    known = [part for part in _CONSUMERS if any(part[1] in consumer for consumer in consumers)]
    columns = tuple(PreviewColumn(title, meaning) for title, _, meaning in known)
    rows = tuple(tuple(cell(consumer.get(name)) for _, name, _ in known) for consumer in consumers)
    return SideTable("consumers of", columns, rows, subject=group)


COLUMNS = (
    PreviewColumn("entry", Meaning.STREAM_ID),
    PreviewColumn("field", Meaning.NAME),
    PreviewColumn("value", Meaning.VALUE),
)
"""What a page of a stream shows: a row a field, the id on the first of an entry."""

_ID: Final = re.compile(rb"[0-9]{1,20}(?:-[0-9]{1,20})?")
"""What an entry is called: milliseconds and a number."""

MAX_SEQUENCE: Final = (1 << 64) - 1
"""The highest second half of an entry id."""

ENTRIES: Final = 50
"""Entries of a page; each has at least one field and so one row."""


async def read_stream(source: ValueReader, page: Page) -> Preview:
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
        kind=PreviewKind.STREAM,
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


def _rows(entry: Reply) -> list[PreviewRow]:
    """Make a row of each field of an entry."""
    parts = items(entry)
    if len(parts) != 2:
        return []
    shown: PreviewCell = cell(parts[0])
    rows: list[PreviewRow] = []
    for name, value in pairs(parts[1]):
        rows.append((shown, cell(name), cell(value)))
        shown = None
    return rows or [(shown, None, None)]


def _summary(described: dict[bytes, Reply]) -> tuple[tuple[str, PreviewCell | Unknown], ...]:
    return tuple(
        (name.decode("utf-8", "backslashreplace"), cell(value))
        for name, value in described.items()
        if isinstance(value, (bytes, int)) and not name.startswith(b"radix-tree")
    )
