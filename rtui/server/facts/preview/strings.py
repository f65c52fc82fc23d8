"""Bitmaps: strings whose bits are set one by one. Nothing marks them, so this is a guess that says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.facts.preview.content import (
    MAX_JSON_BYTES,
    is_text,
    json_lines,
    signature_of,
    starts_like_json,
    whole_characters,
)
from rtui.server.facts.preview.page import (
    PAGE_ITEMS,
    Meaning,
    Page,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewKind,
    SideTable,
    StringWindow,
)
from rtui.server.facts.preview.source import ValueReader, needed_bytes

SPARSE_BITS: Final = 1
"""A byte counts as typical of a bitmap when all its bits but this many are equal."""

TYPICAL_SHARE: Final = 0.75
"""What part of a window must be typical. Of random bytes it is 7 %."""

_TYPICAL: Final = bytes(value for value in range(256) if not SPARSE_BITS < value.bit_count() < 8 - SPARSE_BITS)


def may_be_bitmap(window: bytes) -> bool:
    """Whether most bytes are nearly all zeros or nearly all ones, as where few or almost all bits are set."""
    if not window:
        return False
    return len(window) - len(window.translate(None, _TYPICAL)) >= TYPICAL_SHARE * len(window)


def count_bits(window: bytes) -> int:
    """Count the bits that are set, as BITCOUNT does."""
    return int.from_bytes(window, "big").bit_count()


def set_bits(window: bytes, offset_bytes: int = 0) -> Iterator[int]:
    """Give the positions of the set bits as GETBIT counts them: from the most significant bit of the first byte."""
    for index, byte in enumerate(window):
        if byte:
            base = (offset_bytes + index) * 8
            for bit in range(8):
                if byte & (0x80 >> bit):
                    yield base + bit


MAGIC: Final = b"HYLL"
"""The first four bytes."""

HEADER_BYTES: Final = 16
"""Magic, encoding, three zero bytes, cached count (hyperloglog.c, struct hllhdr)."""

DENSE_BYTES: Final = HEADER_BYTES + 16384 * 6 // 8
"""The size of each dense one: 16,384 registers of 6 bits."""

_STALE: Final = 0x80
"""The bit of the last header byte that says that the cached count is out of date."""


class HyperLogLogEncoding(StrEnum):
    """How the registers are kept."""

    DENSE = "dense"
    SPARSE = "sparse"


@dataclass(frozen=True, slots=True)
class HyperLogLog:
    """A HyperLogLog's header; the count is None when an element was added since PFCOUNT last ran."""

    encoding: HyperLogLogEncoding
    cached_count: int | None


def read_hyperloglog(head: bytes, size_bytes: int | None) -> HyperLogLog | None:
    """Read the first 16 bytes of a string of `size_bytes`, if that is known; None when it can't be a HyperLogLog."""
    if len(head) < HEADER_BYTES or not head.startswith(MAGIC) or head[5:8] != b"\0\0\0":
        return None
    if head[4] == 0 and size_bytes in (DENSE_BYTES, None):
        encoding = HyperLogLogEncoding.DENSE
    elif head[4] == 1 and (size_bytes is None or size_bytes > HEADER_BYTES):
        encoding = HyperLogLogEncoding.SPARSE
    else:
        return None
    stale = head[15] & _STALE
    return HyperLogLog(encoding, None if stale else int.from_bytes(head[8:16], "little"))


_STALE_COUNT: Final = Unknown(
    Reason.NOT_ASKED, "elements were added since PFCOUNT last ran, and PFCOUNT would write the new count into the key"
)


async def read_string(source: ValueReader, page: Page) -> Preview:
    """Read the window at the page's offset, and all of a JSON document of up to 64 KiB."""
    offset = page.position if isinstance(page.position, int) else 0
    total, window_bytes = source.facts.length, source.window_bytes
    (reply,) = await source.begin(guard.getrange(source.key, offset, offset + window_bytes - 1))
    data = needed_bytes(reply)
    if offset == 0 and isinstance(total, int) and window_bytes < total <= MAX_JSON_BYTES and starts_like_json(data):
        (rest,) = await source.more(guard.getrange(source.key, len(data), total - 1))
        data += needed_bytes(rest)
    ends = offset + len(data) >= total if isinstance(total, int) else len(data) < window_bytes
    shown = Preview(
        key=source.key, type=source.facts.type, kind=PreviewKind.BINARY, page=page, total=total, touched=source.touches
    )
    if offset == 0:
        hyperloglog = read_hyperloglog(data, total if isinstance(total, int) else None)
        if hyperloglog is not None:
            return _windowed(_described(shown, hyperloglog), data, ends=ends)
        lines = json_lines(data) if ends else None
        if lines is not None:
            return replace(shown, kind=PreviewKind.JSON, window=StringWindow(0, data, total, lines))
    if is_text(data, cut_before=offset > 0, cut_after=not ends):
        data = data if ends else whole_characters(data)
        return _windowed(replace(shown, kind=PreviewKind.TEXT), data, ends=ends)
    if signature_of(data) is None and may_be_bitmap(data):
        shown = replace(
            shown, kind=PreviewKind.BITMAP, summary=_bits_summary(data), sections=(_bits_section(data, offset),)
        )
        shown = replace(shown, notes=("this may be a bitmap: in most bytes nearly all bits are equal",))
    signature = signature_of(data) if offset == 0 else None
    if signature is not None:
        shown = replace(shown, notes=(f"it begins as {signature} does",))
    return _windowed(shown, data, ends=ends)


def _windowed(shown: Preview, data: bytes, *, ends: bool) -> Preview:
    """Put the window into the preview, and where the next one begins."""
    offset = shown.page.position if isinstance(shown.page.position, int) else 0
    following = None if ends or not data else shown.page.following(offset + len(data))
    return replace(shown, window=StringWindow(offset, data, shown.total), next_page=following)


def _described(shown: Preview, found: HyperLogLog) -> Preview:
    count: PreviewCell | Unknown = _STALE_COUNT if found.cached_count is None else found.cached_count
    summary = (("distinct elements, as last counted", count), ("registers", found.encoding.value.encode()))
    return replace(shown, kind=PreviewKind.HYPERLOGLOG, summary=summary)


def _bits_summary(data: bytes) -> tuple[tuple[str, PreviewCell | Unknown], ...]:
    return (("bits set in this window", count_bits(data)), ("bits in this window", len(data) * 8))


def _bits_section(data: bytes, offset: int) -> SideTable:
    rows = tuple((bit,) for bit in islice(set_bits(data, offset), PAGE_ITEMS))
    notes = (f"the first {PAGE_ITEMS} of this window",) if count_bits(data) > PAGE_ITEMS else ()
    return SideTable("set bits", (PreviewColumn("bit", Meaning.INDEX),), rows, notes)
