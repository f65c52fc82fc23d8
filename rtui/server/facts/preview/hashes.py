"""The values and times to live of named hash fields: sizes are asked first, and large values stay on the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import KeyFacts, Reason
from rtui.server import guard
from rtui.server.facts.preview.collections import scanned
from rtui.server.facts.preview.page import (
    CAUTIOUS_ITEMS,
    PAGE_BYTES,
    PAGE_ITEMS,
    SAMPLE_ITEMS,
    VALUE_BYTES,
    VALUES_BYTES,
    Meaning,
    Page,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewKind,
    Unread,
    all_at_once,
    no_sample,
    page_items,
    size_notes,
    too_large,
)
from rtui.server.facts.preview.source import (
    Refused,
    ValueReader,
    byte_items,
    cell,
    items,
    needed_items,
    pairs,
    scan_page,
)
from rtui.server.guard.arguments import MAX_FIELD_BYTES
from rtui.server.guard.command import Command
from rtui.server.guard.key_entries import MAX_ELEMENTS
from rtui.server.wire.replies import Reply, ServerError

MAX_TTL_FIELDS: Final = 1_000
"""Fields of one page whose time to live is asked."""

_NO_FIELD_TTLS: Final = frozenset((b"listpack", b"ziplist"))
"""Encodings in which no field can expire: one that can moves the hash into another encoding."""


async def sizes_and_ttls(
    source: ValueReader, names: Sequence[bytes]
) -> tuple[dict[bytes, int], dict[bytes, int] | None]:
    """Ask in one write for the size of each field's value, and for the fields' times to live.

    Of the times those that there are, in milliseconds; None where the server does not tell.
    """
    sendable = [name for name in names if len(name) <= MAX_FIELD_BYTES]
    lengths = guard.hstrlens(source.key, *sendable, evidence=source.collection)
    replies = await source.more(*lengths, *_ttl_commands(source, sendable))
    sizes = {name: size for name, size in zip(sendable, replies, strict=False) if isinstance(size, int)}
    return sizes, _ttls(sendable, replies[len(sendable) :])


async def ttls(source: ValueReader, names: Sequence[bytes]) -> dict[bytes, int] | None:
    """Ask for the times to live alone, in milliseconds; None where the server does not tell."""
    sendable = [name for name in names if len(name) <= MAX_FIELD_BYTES]
    commands = _ttl_commands(source, sendable)
    return _ttls(sendable, await source.more(*commands)) if commands else None


async def small_values(
    source: ValueReader, names: Sequence[bytes], sizes: dict[bytes, int]
) -> dict[bytes, PreviewCell]:
    """Read the values that are small enough, up to the bound of a page; of the others the size."""
    wanted: list[bytes] = []
    room = VALUES_BYTES
    for name in names:
        size = sizes.get(name)
        if size is not None and size <= min(VALUE_BYTES, room):
            wanted.append(name)
            room -= size
    commands = [guard.hmget(source.key, *some, evidence=source.collection) for some in _portions(wanted)]
    replies = await source.more(*commands) if commands else []
    cells: dict[bytes, PreviewCell] = {name: Unread(sizes.get(name)) for name in names}
    for some, reply in zip(_portions(wanted), replies, strict=False):
        cells.update((name, cell(value)) for name, value in zip(some, items(reply), strict=False))
    return cells


def _ttl_commands(source: ValueReader, names: Sequence[bytes]) -> list[Command]:
    if source.facts.encoding in _NO_FIELD_TTLS or not source.has(redis=(7, 4), valkey=(9, 0)):
        return []
    most = min(MAX_TTL_FIELDS, source.collection.look_ups)
    return [guard.hpttl(source.key, *some, evidence=source.collection) for some in _portions(names[:most])]


def _ttls(names: Sequence[bytes], replies: Sequence[Reply]) -> dict[bytes, int] | None:
    if not replies or any(isinstance(reply, ServerError) for reply in replies):
        return None
    answers = [answer for reply in replies for answer in items(reply)]
    return {name: left for name, left in zip(names, answers, strict=False) if isinstance(left, int) and left >= 0}


def _portions(names: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (names[at : at + MAX_ELEMENTS] for at in range(0, len(names), MAX_ELEMENTS))


COLUMNS = (PreviewColumn("field", Meaning.NAME), PreviewColumn("value", Meaning.VALUE))
"""What a page of a hash shows."""

TTL_COLUMN = PreviewColumn("TTL", Meaning.DURATION_MS)
"""Beside them where fields expire."""

_UNSEEN: Final = "this server lists no names without their values; further pages read both, however large"
_LARGE: Final = "this server lists no names without their values, and some are too large to read them all"


async def read_hash(source: ValueReader, page: Page) -> Preview:
    """Read the fields at the page's cursor: about 100 with the values that are small."""
    known = source.collection
    if page.whole_values and known.may_be_scanned:
        return await _walk(source, page)
    if known.is_compact and known.is_small:
        return await _whole(source, page)
    if not known.is_compact and source.has(redis=(7, 4), valkey=(8, 0)):
        listed = await _listed(source, page)
        if listed is not None:
            return listed
    return await _sampled(source, page)


async def _whole(source: ValueReader, page: Page) -> Preview:
    """Read a small compact hash in one reply, whatever COUNT says."""
    (reply,) = await source.begin(guard.hscan(source.key, 0, count=PAGE_ITEMS, evidence=source.collection))
    values = _values(scan_page(reply)[1])
    return _shown(source, page, values, await ttls(source, list(values)), None)


async def _walk(source: ValueReader, page: Page) -> Preview:
    """Read a page with values whose sizes nobody knows, on a server that can't list names alone."""
    count = page_items(source.facts)
    if not count:
        raise Refused(too_large(source.facts, "field"))
    known = source.collection
    cursor, found = await scanned(source, page, lambda at: guard.hscan(source.key, at, count=count, evidence=known))
    values = _values(found)
    following = page.following(cursor, whole_values=True) if cursor else None
    return _shown(source, page, values, await ttls(source, list(values)), following)


async def _listed(source: ValueReader, page: Page) -> Preview | None:
    """Read names by HSCAN NOVALUES, then what is small; None when the server does not know NOVALUES."""
    count, known = _names_count(source.facts), source.collection

    def ask(at: int) -> Command:
        return guard.hscan(source.key, at, count=count, novalues=True, evidence=known)

    try:
        cursor, found = await scanned(source, page, ask)
    except Refused as refused:
        if refused.why.reason is Reason.FAILED:
            return None
        raise
    names = [name for name in found if isinstance(name, bytes)]
    return await _named(source, page, names, page.following(cursor) if cursor else None)


async def _sampled(source: ValueReader, page: Page) -> Preview:
    """Read random names and what is small of their values; of a hash of up to 50 fields these are all."""
    facts, known = source.facts, source.collection
    count = min(SAMPLE_ITEMS, _names_count(facts))
    if not known.may_be_sampled:
        raise Refused(no_sample(facts, "HRANDFIELD"))
    if count > known.look_ups:
        return await _sampled_compact(source, page, count)
    (reply,) = await source.begin(guard.hrandfield(source.key, count, evidence=known))
    names = byte_items(needed_items(reply))
    sampled = await _named(source, page, names, None)
    if isinstance(facts.length, int) and facts.length <= count:
        return sampled
    if known.is_compact:
        return replace(sampled, notes=(_sample_note(len(names)) + all_at_once(facts, "HSCAN"),))
    can_walk = page_items(facts) == PAGE_ITEMS and not any(isinstance(row[1], Unread) for row in sampled.rows)
    following = page.following(0, whole_values=True) if can_walk else None
    note = _sample_note(len(names)) + (_UNSEEN if can_walk else _LARGE)
    return replace(sampled, notes=(note,), next_page=following)


async def _sampled_compact(source: ValueReader, page: Page, count: int) -> Preview:
    """Sample a compact hash of very many fields, in which looking up one field walks over all: no sizes, no TTLs."""
    memory = source.facts.memory_bytes
    withvalues = isinstance(memory, int) and memory <= PAGE_BYTES
    ask = guard.hrandfield(source.key, count, withvalues=withvalues, evidence=source.collection)
    (reply,) = await source.begin(ask)
    found = needed_items(reply)
    values = _values(found) if withvalues else {name: Unread(None) for name in byte_items(found)}
    return replace(
        _shown(source, page, values, None, None),
        notes=(_sample_note(len(values)) + all_at_once(source.facts, "HSCAN"),),
    )


def _sample_note(count: int) -> str:
    return f"a random sample of {count} fields: "


async def _named(
    source: ValueReader, page: Page, names: Sequence[bytes], following: Page | None, notes: tuple[str, ...] = ()
) -> Preview:
    """Show named fields with their values, as far as these are small."""
    sizes, left = await sizes_and_ttls(source, names)
    values = await small_values(source, names, sizes)
    return replace(_shown(source, page, values, left, following), notes=notes)


def _names_count(facts: KeyFacts) -> int:
    """How many names to ask for: names are taken to be small unless fields are huge on average."""
    mean = facts.mean_element_bytes
    return PAGE_ITEMS if mean is None or mean <= PAGE_BYTES else CAUTIOUS_ITEMS


def _values(found: list[Reply]) -> dict[bytes, PreviewCell]:
    return {name: cell(value) for name, value in pairs(found) if isinstance(name, bytes)}


def _shown(
    source: ValueReader,
    page: Page,
    values: Mapping[bytes, PreviewCell],
    left: dict[bytes, int] | None,
    following: Page | None,
) -> Preview:
    expires = bool(left)
    rows = tuple((name, value, left.get(name)) if left else (name, value) for name, value in values.items())
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=PreviewKind.HASH,
        page=page,
        total=source.facts.length,
        columns=(*COLUMNS, TTL_COLUMN) if expires else COLUMNS,
        rows=rows,
        next_page=following,
        notes=size_notes(source.facts) if page.whole_values else (),
        touched=source.touches,
    )
