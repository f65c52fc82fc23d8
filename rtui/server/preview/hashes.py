"""Hashes: names first, then the sizes of their values, then the values that are small: a huge one stays where it is.

HSCAN answers names and values, and no bound holds for a value. So only a hash that is small as a whole is read that
way. Else HSCAN NOVALUES (Redis 7.4, Valkey 8.0) or HRANDFIELD give the names. An older server can't list the names of a
large hash page by page: a random sample is shown, and values are read unseen only when somebody turns the page and none
of the sampled ones was large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import KeyFacts, Reason
from rtui.server import guard
from rtui.server.guard import Command
from rtui.server.preview.bounds import (
    CAUTIOUS_ITEMS,
    PAGE_BYTES,
    PAGE_ITEMS,
    SAMPLE_ITEMS,
    all_at_once,
    no_sample,
    page_items,
    size_notes,
    too_large,
)
from rtui.server.preview.fields import sizes_and_ttls, small_values, ttls
from rtui.server.preview.page import Cell, Column, Kind, Meaning, Page, Preview, Unread
from rtui.server.preview.replies import byte_items, cell, needed_items, pairs, scan_page
from rtui.server.preview.scanning import scanned
from rtui.server.preview.source import Refused, Source
from rtui.server.reply import Reply

COLUMNS = (Column("field", Meaning.NAME), Column("value", Meaning.VALUE))
"""What a page of a hash shows."""

TTL_COLUMN = Column("TTL", Meaning.DURATION_MS)
"""Beside them where fields expire."""

_UNSEEN: Final = "this server lists no names without their values; further pages read both, however large"
_LARGE: Final = "this server lists no names without their values, and some are too large to read them all"


async def read_hash(source: Source, page: Page) -> Preview:
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


async def _whole(source: Source, page: Page) -> Preview:
    """Read a small compact hash in one reply, whatever COUNT says."""
    (reply,) = await source.begin(guard.hscan(source.key, 0, count=PAGE_ITEMS, evidence=source.collection))
    values = _values(scan_page(reply)[1])
    return _shown(source, page, values, await ttls(source, list(values)), None)


async def _walk(source: Source, page: Page) -> Preview:
    """Read a page with values whose sizes nobody knows, on a server that can't list names alone."""
    count = page_items(source.facts)
    if not count:
        raise Refused(too_large(source.facts, "field"))
    known = source.collection
    cursor, found = await scanned(source, page, lambda at: guard.hscan(source.key, at, count=count, evidence=known))
    values = _values(found)
    following = page.following(cursor, whole_values=True) if cursor else None
    return _shown(source, page, values, await ttls(source, list(values)), following)


async def _listed(source: Source, page: Page) -> Preview | None:
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


async def _sampled(source: Source, page: Page) -> Preview:
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


async def _sampled_compact(source: Source, page: Page, count: int) -> Preview:
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
    source: Source, page: Page, names: Sequence[bytes], following: Page | None, notes: tuple[str, ...] = ()
) -> Preview:
    """Show named fields with their values, as far as these are small."""
    sizes, left = await sizes_and_ttls(source, names)
    values = await small_values(source, names, sizes)
    return replace(_shown(source, page, values, left, following), notes=notes)


def _names_count(facts: KeyFacts) -> int:
    """How many names to ask for: names are taken to be small unless fields are huge on average."""
    mean = facts.mean_element_bytes
    return PAGE_ITEMS if mean is None or mean <= PAGE_BYTES else CAUTIOUS_ITEMS


def _values(found: list[Reply]) -> dict[bytes, Cell]:
    return {name: cell(value) for name, value in pairs(found) if isinstance(name, bytes)}


def _shown(
    source: Source,
    page: Page,
    values: Mapping[bytes, Cell],
    left: dict[bytes, int] | None,
    following: Page | None,
) -> Preview:
    expires = bool(left)
    rows = tuple((name, value, left.get(name)) if left else (name, value) for name, value in values.items())
    return Preview(
        key=source.key,
        type=source.facts.type,
        kind=Kind.HASH,
        page=page,
        total=source.facts.length,
        columns=(*COLUMNS, TTL_COLUMN) if expires else COLUMNS,
        rows=rows,
        next_page=following,
        notes=size_notes(source.facts) if page.whole_values else (),
        touched=source.touches,
    )
