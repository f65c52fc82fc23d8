"""Strings: a window of bytes, and what they seem to be: text, JSON, a HyperLogLog, a bitmap, or just bytes."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.preview.bitmap import count_bits, may_be_bitmap, set_bits
from rtui.server.preview.bounds import PAGE_ITEMS, STRING_WINDOW_BYTES
from rtui.server.preview.encodedtext import is_text, whole_characters
from rtui.server.preview.hyperloglog import HyperLogLog, read_hyperloglog
from rtui.server.preview.page import Cell, Column, Kind, Meaning, Page, Preview, Section, Window
from rtui.server.preview.prettyjson import MAX_JSON_BYTES, json_lines, starts_like_json
from rtui.server.preview.replies import needed_bytes
from rtui.server.preview.signature import signature_of
from rtui.server.preview.source import Source

_STALE_COUNT: Final = Unknown(
    Reason.NOT_ASKED, "elements were added since PFCOUNT last ran, and PFCOUNT would write the new count into the key"
)


async def read_string(source: Source, page: Page, window_bytes: int = STRING_WINDOW_BYTES) -> Preview:
    """Read the window at the page's offset, and all of a JSON document of up to 64 KiB."""
    offset = page.position if isinstance(page.position, int) else 0
    total = source.facts.length
    (reply,) = await source.begin(guard.getrange(source.key, offset, offset + window_bytes - 1))
    data = needed_bytes(reply)
    if offset == 0 and isinstance(total, int) and window_bytes < total <= MAX_JSON_BYTES and starts_like_json(data):
        (rest,) = await source.more(guard.getrange(source.key, len(data), total - 1))
        data += needed_bytes(rest)
    ends = offset + len(data) >= total if isinstance(total, int) else len(data) < window_bytes
    shown = Preview(
        key=source.key, type=source.facts.type, kind=Kind.BINARY, page=page, total=total, touched=source.touches
    )
    if offset == 0:
        hyperloglog = read_hyperloglog(data, total if isinstance(total, int) else None)
        if hyperloglog is not None:
            return _windowed(_described(shown, hyperloglog), data, ends=ends)
        lines = json_lines(data) if ends else None
        if lines is not None:
            return replace(shown, kind=Kind.JSON, window=Window(0, data, total, lines))
    if is_text(data, cut_before=offset > 0, cut_after=not ends):
        data = data if ends else whole_characters(data)
        return _windowed(replace(shown, kind=Kind.TEXT), data, ends=ends)
    if signature_of(data) is None and may_be_bitmap(data):
        shown = replace(shown, kind=Kind.BITMAP, summary=_bits_summary(data), sections=(_bits_section(data, offset),))
        shown = replace(shown, notes=("this may be a bitmap: in most bytes nearly all bits are equal",))
    signature = signature_of(data) if offset == 0 else None
    if signature is not None:
        shown = replace(shown, notes=(f"it begins as {signature} does",))
    return _windowed(shown, data, ends=ends)


def _windowed(shown: Preview, data: bytes, *, ends: bool) -> Preview:
    """Put the window into the preview, and where the next one begins."""
    offset = shown.page.position if isinstance(shown.page.position, int) else 0
    following = None if ends or not data else shown.page.following(offset + len(data))
    return replace(shown, window=Window(offset, data, shown.total), next_page=following)


def _described(shown: Preview, found: HyperLogLog) -> Preview:
    count: Cell | Unknown = _STALE_COUNT if found.cached_count is None else found.cached_count
    summary = (("distinct elements, as last counted", count), ("registers", found.encoding.value.encode()))
    return replace(shown, kind=Kind.HYPERLOGLOG, summary=summary)


def _bits_summary(data: bytes) -> tuple[tuple[str, Cell | Unknown], ...]:
    return (("bits set in this window", count_bits(data)), ("bits in this window", len(data) * 8))


def _bits_section(data: bytes, offset: int) -> Section:
    rows = tuple((bit,) for bit in islice(set_bits(data, offset), PAGE_ITEMS))
    notes = (f"the first {PAGE_ITEMS} of this window",) if count_bits(data) > PAGE_ITEMS else ()
    return Section("set bits", (Column("bit", Meaning.INDEX),), rows, notes)
