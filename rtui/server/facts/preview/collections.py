"""Previews of lists, sets, sorted sets, arrays and streams.

Lists, sorted sets and arrays are read by index: a page begins at the end of the one before. Sets are unordered and read
by SSCAN; if that would return all members at once, a random sample is shown instead of pages.

Of a stream the newest entries come first, and the first page has the stream itself with its consumer groups. XINFO
STREAM includes the first and last entries in full, and the lists of groups and consumers have no pages. So the stream
is described only if its average entry is known to be small, and groups and consumers are listed only if there are few:
XINFO STREAM has the number of groups, and XINFO GROUPS the number of consumers of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.humanize import size
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
)
from rtui.server.facts.preview.value_reader import (
    PAGE_ITEMS,
    ValueReader,
    cell,
    element_page,
    expect_items,
    integer,
    items,
    mapping,
    pairs,
    score,
)
from rtui.server.guard.closed_list import MAX_ARRAY_INDEX, MAX_RANDOM
from rtui.server.guard.evidence import MAX_CONSUMERS, MAX_GROUPS, ConsumerEvidence, EntryEvidence, GroupEvidence
from rtui.server.guard.spec import MAX_FIELD_BYTES
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


MAX_ENTRIES: Final = 50
"""The most entries of a page; each has at least one field and so one row."""

MAX_SEQUENCE: Final = (1 << 64) - 1
MAX_DETAILED_GROUPS: Final = 10

STREAM_COLUMNS: Final = (
    PreviewColumn("entry", Meaning.STREAM_ID),
    PreviewColumn("field", Meaning.NAME),
    PreviewColumn("value", Meaning.VALUE),
)
"""A row is a field; the id is on the first field of an entry."""

_ID: Final = re.compile(rb"[0-9]{1,20}(?:-[0-9]{1,20})?")

_GROUP_FIELDS: Final = (
    (b"name", PreviewColumn("group", Meaning.NAME)),
    (b"consumers", PreviewColumn("consumers", Meaning.COUNT)),
    (b"pending", PreviewColumn("pending", Meaning.COUNT)),
    (b"lag", PreviewColumn("lag", Meaning.COUNT)),
    (b"last-delivered-id", PreviewColumn("last delivered", Meaning.STREAM_ID)),
)
_PENDING_COLUMNS: Final = (
    PreviewColumn("oldest pending", Meaning.STREAM_ID),
    PreviewColumn("newest pending", Meaning.STREAM_ID),
)
_NO_LAG: Final = Unknown(
    Reason.UNSUPPORTED, "entries were deleted or the group started mid-stream: the server can't compute the lag"
)
_CONSUMER_FIELDS: Final = (
    (b"name", PreviewColumn("consumer", Meaning.NAME)),
    (b"pending", PreviewColumn("pending", Meaning.COUNT)),
    (b"idle", PreviewColumn("idle", Meaning.DURATION_MS)),
    (b"inactive", PreviewColumn("inactive", Meaning.DURATION_MS)),
)


async def read_stream(reader: ValueReader) -> Preview:
    """Read up to 50 entries from the page's id backwards; on the first page the stream itself and its groups too."""
    page, is_first = reader.page, reader.page == FIRST
    count = min(MAX_ENTRIES, reader.require_items("entry"))
    end = page.position if isinstance(page.position, bytes) else b"+"
    entries = guard.xrevrange(reader.key, end, _lowest(page), count=count)
    evidence = EntryEvidence(reader.facts.mean_element_bytes)
    describes = is_first and evidence.is_light
    replies = await reader.begin(entries, *([guard.xinfo_stream(reader.key, evidence)] if describes else []))
    found = expect_items(replies[0])
    if is_first and evidence.mean_bytes is None:
        texts = (text for entry in found for fields in items(entry)[1:] for pair in pairs(fields) for text in pair)
        total_bytes = sum(len(text) for text in texts if isinstance(text, bytes))
        evidence = EntryEvidence(total_bytes / max(1, len(found)))
        if evidence.is_light:
            replies += await reader.querier.run(guard.xinfo_stream(reader.key, evidence))
    described = mapping(replies[1]) if len(replies) > 1 else {}
    notes = reader.size_notes
    if is_first and not evidence.is_light:
        notes += ("groups are not listed: XINFO STREAM would return the first and last entry in full",)
    sections, group_notes = await _read_groups(reader, described.get(b"groups"))
    after = _before_last(found) if len(found) == count else None
    next_page = None if after is None else page.following(after, shown=len(found))
    return replace(
        reader.preview(PreviewKind.STREAM),
        summary=tuple(
            (name.decode("utf-8", "backslashreplace"), cell(value))
            for name, value in described.items()
            if isinstance(value, (bytes, int)) and not name.startswith(b"radix-tree")
        ),
        columns=STREAM_COLUMNS,
        rows=_kept_rows(reader, found),
        elements=len(found),
        sections=sections,
        next_page=next_page,
        notes=notes + group_notes,
    )


def _kept_rows(reader: ValueReader, found: Sequence[Reply]) -> tuple[PreviewRow, ...]:
    rows = [row for entry in found for row in entry_rows(entry)]
    cells = iter(reader.kept(value for row in rows for value in row))  # type: ignore[misc]
    return tuple(tuple(islice(cells, len(row))) for row in rows)


def _lowest(page: Page) -> bytes:
    return page.span.last if page.span is not None and isinstance(page.span.last, bytes) else b"-"


def _before_last(found: Sequence[Reply]) -> bytes | None:
    """Return the id before the last entry's, where the next page begins; None if there is none."""
    match items(found[-1])[:1] if found else []:
        case [bytes(last)] if _ID.fullmatch(last) and last != b"0-1":
            return previous_id(last)
    return None


async def page_of_entries(reader: ValueReader, end: bytes, count: int) -> tuple[list[Reply], bytes | None]:
    """Return up to `count` entries from an id backwards, and the id to continue from, None at the end."""
    (reply,) = await reader.querier.run(guard.xrevrange(reader.key, end, _lowest(reader.page), count=count))
    found = expect_items(reply)
    return found, _before_last(found) if len(found) == count else None


def previous_id(entry_id: bytes) -> bytes:
    """Return the id right before this one; servers before 6.2 have no exclusive ends."""
    milliseconds, _, sequence = entry_id.partition(b"-")
    time, number = int(milliseconds), int(sequence or b"0")
    if number:
        return b"%d-%d" % (time, number - 1)
    return b"%d-%d" % (time - 1, MAX_SEQUENCE) if time else b"0-0"


def entry_rows(entry: Reply) -> list[PreviewRow]:
    """Return a row for each field of an entry."""
    parts = items(entry)
    if len(parts) != 2:
        return []
    fields = [(cell(name), cell(value)) for name, value in pairs(parts[1])] or [(None, None)]
    return [(None if at else cell(parts[0]), *field) for at, field in enumerate(fields)]


def _of_group(group: Mapping[bytes, Reply], field: bytes) -> PreviewCell:
    """Return one figure of a group; a nil lag is not 0 but unknown."""
    found = group.get(field)
    return _NO_LAG if field == b"lag" and found is None else cell(found)


async def _read_groups(reader: ValueReader, count: Reply) -> tuple[tuple[SideTable, ...], tuple[str, ...]]:
    """Return tables of the groups and of their consumers, and notes on missing ones; `count` is of groups."""
    if not isinstance(count, int) or not count:
        return (), ()
    if count > MAX_GROUPS:
        return (), (f"{count:,} groups: more than {MAX_GROUPS} are not listed, the server has no pages for them",)
    (reply,) = await reader.querier.run(guard.xinfo_groups(reader.key, GroupEvidence(count)))
    groups = [mapping(group) for group in items(reply)]
    if not groups:
        return (), ("the server did not list the groups",)
    detailed: dict[bytes, ConsumerEvidence] = {}
    for group in groups:
        match group.get(b"name"), group.get(b"consumers"):
            case bytes(name), int(consumers) if len(name) <= MAX_FIELD_BYTES and 0 < consumers <= MAX_CONSUMERS:
                if len(detailed) < MAX_DETAILED_GROUPS:
                    detailed[name] = ConsumerEvidence(consumers)
    replies = await reader.querier.run(
        *(guard.xinfo_consumers(reader.key, name, evidence) for name, evidence in detailed.items()),
        *(guard.xpending(reader.key, name, evidence) for name, evidence in detailed.items()),
    )
    pending = dict(zip(detailed, replies[len(detailed) :], strict=True))
    known_fields = [field for field in _GROUP_FIELDS if any(field[0] in group for group in groups)]
    rows: list[PreviewRow] = []
    for group in groups:
        group_name = group.get(b"name")
        summary = items(pending.get(group_name)) if isinstance(group_name, bytes) else []
        span = (cell(summary[1]), cell(summary[2])) if len(summary) > 2 else (None, None)
        rows.append((*(_of_group(group, field) for field, _ in known_fields), *span))
    tables = [SideTable("groups", (*(column for _, column in known_fields), *_PENDING_COLUMNS), tuple(rows))]
    for subject, reply in zip(detailed, replies, strict=False):
        listed = [mapping(consumer) for consumer in items(reply)]
        known = [(field, column) for field, column in _CONSUMER_FIELDS if any(field in consumer for consumer in listed)]
        cells = tuple(tuple(cell(consumer.get(field)) for field, _ in known) for consumer in listed)
        tables.append(SideTable("consumers of", tuple(column for _, column in known), cells, subject=subject))
    left_out = sum(1 for group in groups if group.get(b"consumers")) - len(detailed)
    return tuple(tables), (f"the consumers of {left_out} groups are not listed",) if left_out > 0 else ()
