"""Previews of hashes: names first, then the sizes of their values, then small values.

A value of a hash may be as large as a string, and HSCAN returns names and values together. So a page is read in one of
four ways:

* a compact hash of up to 256 KiB in one reply, since HSCAN returns the whole of it whatever COUNT says;
* a table by HSCAN NOVALUES (Redis 7.4, Valkey 8.0), HSTRLEN of each name, and HMGET of the values up to 16 KiB;
* on older servers by random names (HRANDFIELD), HSTRLEN and HMGET; if average fields are small, further pages
  walk over the table by HSCAN with values;
* a compact hash of very many fields by random fields only, since looking up one field walks over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import GONE, Reason, Unknown
from rtui.analysis.humanize import size
from rtui.server import guard
from rtui.server.facts.preview.page import Meaning, Preview, PreviewCell, PreviewColumn, PreviewKind, Unread
from rtui.server.facts.preview.value_reader import (
    CAUTIOUS_ITEMS,
    MAX_PAGE_BYTES,
    MAX_PURPOSE_BYTES,
    PAGE_ITEMS,
    Refused,
    ValueReader,
    byte_items,
    cell,
    element_page,
    expect_items,
    items,
    pairs,
)
from rtui.server.guard.closed_list import MAX_ELEMENTS, MAX_RANDOM
from rtui.server.guard.command import Command
from rtui.server.guard.spec import MAX_FIELD_BYTES
from rtui.server.wire.errors import Reply, ServerError

VALUE_BYTES: Final = 16 * 1024
"""The largest value that is read; for larger ones the size is shown."""

MAX_VALUE_BYTES: Final = 1 << 20
"""The largest field value that is read as a whole without a question: no command reads a part of one."""

VALUES_BYTES: Final = 256 * 1024
"""The most bytes of values in one page."""

MOST_DRAWN: Final = 300
"""The most fields of a table whose names are all found by random draws, if names can't be listed."""

DRAWS_AT_ONCE: Final = 4
MOST_DRAWS: Final = 80
"""The most draws, of which DRAWS_AT_ONCE go into one write. Redis 6.2 favours fields after empty buckets: of 300
fields, all had come after 11 writes in the median of 150 hashes, after 28 in the worst."""

MAX_DRAWN_BYTES: Final = 1024
"""Drawing stops at a longer name."""

MAX_TTL_FIELDS: Final = 1_000
"""The most fields of one page whose TTL is read."""

_COLUMNS: Final = (PreviewColumn("field", Meaning.NAME), PreviewColumn("value", Meaning.VALUE))
_TTL_COLUMN: Final = PreviewColumn("TTL", Meaning.DURATION_MS)

_NO_FIELD_TTLS: Final = frozenset((b"listpack", b"ziplist"))
"""Encodings in which no field can expire: a TTL moves the hash into another encoding."""

_UNSEEN: Final = "this server has no HSCAN NOVALUES; further pages read names and values, of any size"
_LARGE: Final = "this server has no HSCAN NOVALUES, and some values are too large to read"


async def read_hash(reader: ValueReader) -> Preview:
    """Read the fields at the page's cursor: about 100 with small values."""
    evidence = reader.evidence
    if reader.page.whole_values and evidence.may_be_scanned:
        count = reader.require_items("field")
        found, cursor = await reader.scan(lambda at: guard.hscan(reader.key, at, count=count, evidence=evidence))
        next_page = reader.page.following(cursor, whole_values=True, shown=len(found) // 2) if cursor else None
        return replace(await with_ttls(reader, _values(found)), next_page=next_page, notes=reader.size_notes)
    if evidence.is_compact and evidence.is_small:
        (reply,) = await reader.begin(guard.hscan(reader.key, 0, count=PAGE_ITEMS, evidence=evidence))
        return await with_ttls(reader, _values(element_page(reply)[1]))
    if not evidence.is_compact and reader.supports(redis=(7, 4), valkey=(8, 0)):
        count = _name_count(reader)
        try:
            found, cursor = await reader.scan(
                lambda at: guard.hscan(reader.key, at, count=count, novalues=True, evidence=evidence)
            )
        except Refused as refused:
            if refused.why.reason is not Reason.FAILED:  # it fails where the server does not know NOVALUES
                raise
        else:
            shown = await read_named(reader, byte_items(found))
            next_page = reader.page.following(cursor, shown=len(shown.rows)) if cursor else None
            return replace(shown, next_page=next_page)
    return await _read_sample(reader)


async def _read_sample(reader: ValueReader) -> Preview:
    """Read random names with their small values; of a hash of up to 50 fields these are all."""
    evidence, length, memory_bytes = reader.evidence, reader.facts.length, reader.facts.memory_bytes
    reader.require_sample("HRANDFIELD")
    count = min(MAX_RANDOM, _name_count(reader))
    if count > evidence.look_ups:
        withvalues = isinstance(memory_bytes, int) and memory_bytes <= MAX_PAGE_BYTES
        command = guard.hrandfield(reader.key, count, withvalues=withvalues, evidence=evidence)
        found = expect_items((await reader.begin(command))[0])
        values = _values(found) if withvalues else {name: Unread(None) for name in byte_items(found)}
        note = f"a random sample of {len(values)} fields: {reader.would('HSCAN', 'answer with all at once')}"
        return replace(_shown(reader, values, {}), notes=(note,), first=None)
    (reply,) = await reader.begin(guard.hrandfield(reader.key, count, evidence=evidence))
    names = byte_items(expect_items(reply))
    if not evidence.is_compact and isinstance(length, int) and count < length <= MOST_DRAWN:
        names = await _draw_all(reader, names, length)
    shown = await read_named(reader, names)
    if isinstance(length, int) and length <= max(count, len(names)):
        return shown
    if evidence.is_compact:
        return replace(
            shown,
            notes=(f"a random sample of {len(names)} fields: {reader.would('HSCAN', 'answer with all at once')}",),
            first=None,
        )
    can_walk = reader.max_items == PAGE_ITEMS and not any(isinstance(row[1], Unread) for row in shown.rows)
    note = f"a random sample of {len(names)} fields: {_UNSEEN if can_walk else _LARGE}"
    next_page = reader.page.following(0, whole_values=True, shown=0) if can_walk else None
    return replace(shown, notes=(note,), first=None, next_page=next_page)


async def _draw_all(reader: ValueReader, names: Sequence[bytes], length: int) -> list[bytes]:
    """Draw random names until all are known: a draw has no duplicates, so that a few hundred are soon complete.

    Drawing goes on only while names are short.
    """
    drawn = dict.fromkeys(names)
    command = guard.hrandfield(reader.key, MAX_RANDOM, evidence=reader.evidence)
    for _ in range(MOST_DRAWS):
        if len(drawn) >= length or max(map(len, drawn), default=0) > MAX_DRAWN_BYTES:
            break
        for reply in await reader.querier.run(*[command] * DRAWS_AT_ONCE):
            drawn.update(dict.fromkeys(byte_items(reply)))
    return list(drawn)


def _name_count(reader: ValueReader) -> int:
    """Return the number of names to ask for: names are assumed small unless fields are huge on average."""
    mean = reader.facts.mean_element_bytes
    return PAGE_ITEMS if mean is None or mean <= MAX_PAGE_BYTES else CAUTIOUS_ITEMS


async def read_named(reader: ValueReader, names: Sequence[bytes]) -> Preview:
    """Read sizes and TTLs of named fields in one write, then in another the small values."""
    sendable = [name for name in names if len(name) <= MAX_FIELD_BYTES]
    lengths = guard.hstrlens(reader.key, *sendable, evidence=reader.evidence)
    replies = await reader.querier.run(*lengths, *_ttl_commands(reader, sendable))
    sizes = {name: size for name, size in zip(sendable, replies, strict=False) if isinstance(size, int)}
    wanted: list[bytes] = []
    room = VALUES_BYTES
    for name in names:
        size = sizes.get(name)
        if size is not None and size <= min(VALUE_BYTES, room):
            wanted.append(name)
            room -= size
    portions = list(_portions(wanted))
    found = await reader.querier.run(*(guard.hmget(reader.key, *some, evidence=reader.evidence) for some in portions))
    values: dict[bytes, PreviewCell] = {name: Unread(sizes.get(name)) for name in names}
    for some, reply in zip(portions, found, strict=True):
        values.update((name, cell(value)) for name, value in zip(some, items(reply), strict=False))
    return _shown(reader, values, _ttls(sendable, replies[len(lengths) :]))


async def with_ttls(reader: ValueReader, values: Mapping[bytes, PreviewCell]) -> Preview:
    names = [name for name in values if len(name) <= MAX_FIELD_BYTES]
    return _shown(reader, values, _ttls(names, await reader.querier.run(*_ttl_commands(reader, names))))


def _ttl_commands(reader: ValueReader, names: Sequence[bytes]) -> list[Command]:
    if reader.facts.encoding in _NO_FIELD_TTLS or not reader.supports(redis=(7, 4), valkey=(9, 0)):
        return []
    most = min(MAX_TTL_FIELDS, reader.evidence.look_ups)
    return [guard.hpttl(reader.key, *some, evidence=reader.evidence) for some in _portions(names[:most])]


def _ttls(names: Sequence[bytes], replies: Sequence[Reply]) -> dict[bytes, int]:
    """Return the existing TTLs in milliseconds; empty if the server has refused some."""
    if any(isinstance(reply, ServerError) for reply in replies):
        return {}
    answers = [answer for reply in replies for answer in items(reply)]
    return {name: left for name, left in zip(names, answers, strict=False) if isinstance(left, int) and left >= 0}


def _portions(names: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (names[at : at + MAX_ELEMENTS] for at in range(0, len(names), MAX_ELEMENTS))


def _values(found: list[Reply]) -> dict[bytes, PreviewCell]:
    return {name: cell(value) for name, value in pairs(found) if isinstance(name, bytes)}


def _shown(reader: ValueReader, values: Mapping[bytes, PreviewCell], ttls: Mapping[bytes, int]) -> Preview:
    return replace(
        reader.preview(PreviewKind.HASH),
        columns=(*_COLUMNS, _TTL_COLUMN) if ttls else _COLUMNS,
        rows=tuple((name, value, ttls.get(name)) if ttls else (name, value) for name, value in values.items()),
    )


async def read_field(reader: ValueReader, field: bytes, most_bytes: int = MAX_VALUE_BYTES) -> bytes | Unknown:
    """Return the whole value of one field of a hash, of up to `most_bytes`; raises ConnectionLost.

    `most_bytes` is limited to MAX_PURPOSE_BYTES; more than MAX_VALUE_BYTES needs the user's request.
    """
    most_bytes, key = min(most_bytes, MAX_PURPOSE_BYTES), reader.key
    try:
        if not reader.evidence.look_ups or len(field) > MAX_FIELD_BYTES:
            raise Refused(Unknown(Reason.TOO_LARGE, reader.would("HMGET", "walk over all fields")))
        (length,) = await reader.begin(*guard.hstrlens(key, field, evidence=reader.evidence))
        if isinstance(length, int) and length > most_bytes:
            return Unknown(Reason.TOO_LARGE, f"{size(length)}: values over {size(most_bytes)} are not read")
        (reply,) = await reader.querier.run(guard.hmget(key, field, evidence=reader.evidence))
        (value,) = expect_items(reply)
        return value if isinstance(value, bytes) else GONE
    except Refused as refused:
        return refused.why
