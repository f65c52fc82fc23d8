"""Previews of strings, which may contain anything: a window of bytes, and a guess at their format.

HyperLogLogs and common formats are recognised by their first bytes. A value of up to 64 KiB that begins like a JSON
object or array is read as a whole, so that it can be decoded. A window is text if it is UTF-8 with
next to no control characters, and may be a bitmap if nearly all bits of most bytes are equal; bitmaps have no mark of
their own, so that the preview calls it a guess.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.humanize import size
from rtui.server import guard
from rtui.server.facts.preview.page import (
    Meaning,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewKind,
    SideTable,
    StringWindow,
)
from rtui.server.facts.preview.value_reader import PAGE_ITEMS, Refused, ValueReader, expect_bytes
from rtui.server.guard.closed_list import MAX_WINDOW_BYTES

MAX_STRING_BYTES: Final = 64 << 20
"""The most bytes of a string that are written to a file."""

_NO_COUNT: Final = Unknown(
    Reason.NOT_ASKED, "cached count is stale (PFCOUNT would write), and the registers can't be read"
)
"""The reason why a HyperLogLog has no count: PFCOUNT would write the new one into the key."""


async def read_string(reader: ValueReader) -> Preview:
    """Read the window at the page's offset, and all of a JSON document of up to 64 KiB."""
    offset, total, window_bytes = reader.start, reader.facts.length, reader.window_bytes
    (reply,) = await reader.begin(guard.getrange(reader.key, offset, offset + window_bytes - 1))
    data = expect_bytes(reply)
    if offset == 0 and isinstance(total, int) and window_bytes < total <= MAX_JSON_BYTES and starts_like_json(data):
        (rest,) = await reader.querier.run(guard.getrange(reader.key, len(data), total - 1))
        data += expect_bytes(rest)
    ends = offset + len(data) >= total if isinstance(total, int) else len(data) < window_bytes
    shown = _recognised(reader.preview(PreviewKind.BINARY), data, offset, ends=ends)
    if shown.kind is PreviewKind.HYPERLOGLOG and shown.summary[0][1] is _NO_COUNT:
        shown = await _counted(reader, shown, data)
    if shown.kind is PreviewKind.TEXT and not ends:
        start = _continuations(data)
        data = data[: start + codecs.utf_8_decode(data[start:], "strict", False)[1]] or data
    next_page = None if ends or not data else reader.page.following(offset + len(data), shown=len(data))
    return replace(shown, window=StringWindow(offset, data), next_page=next_page)


async def _counted(reader: ValueReader, shown: Preview, data: bytes) -> Preview:
    """Count the elements of a HyperLogLog from all of its registers, like PFCOUNT, without writing the count."""
    from rtui.values.server_encodings import estimate  # noqa: PLC0415 - a report must not wait for all decoders

    total = shown.total
    if not isinstance(total, int) or total > MAX_WINDOW_BYTES:
        return shown
    if len(data) < total:
        (rest,) = await reader.querier.run(guard.getrange(reader.key, len(data), total - 1))
        data += rest if isinstance(rest, bytes) else b""
    count = estimate(data)
    if count is None:
        return shown
    return replace(shown, summary=(("distinct elements, from its registers", count), *shown.summary[1:]))


def _recognised(shown: Preview, data: bytes, offset: int, *, ends: bool) -> Preview:
    """Return the preview with its kind and other findings about the window; `ends`: the value ends with it."""
    signature = signature_of(data)
    if offset == 0:
        found = read_hyperloglog(data, shown.total if isinstance(shown.total, int) else None)
        if found is not None:
            registers, cached = found
            count: PreviewCell | Unknown = _NO_COUNT if cached is None else cached
            summary = (("distinct elements, as last counted", count), ("registers", registers))
            return replace(shown, kind=PreviewKind.HYPERLOGLOG, summary=summary)
    if is_text(data, cut_before=offset > 0, cut_after=not ends):
        return replace(shown, kind=PreviewKind.TEXT)
    if signature is not None:
        is_said = offset == 0 and signature in _UNDECODED
        return replace(shown, notes=(f"it begins like {signature}",)) if is_said else shown
    if not may_be_bitmap(data):
        return shown
    bits = int.from_bytes(data, "big").bit_count()
    notes = (f"the first {PAGE_ITEMS} of this window",) if bits > PAGE_ITEMS else ()
    rows = tuple((bit,) for bit in islice(set_bits(data, offset), PAGE_ITEMS))
    return replace(
        shown,
        kind=PreviewKind.BITMAP,
        summary=(("bits set in this window", bits), ("bits in this window", len(data) * 8)),
        sections=(SideTable("set bits", (PreviewColumn("bit", Meaning.INDEX),), rows, notes),),
        notes=("this may be a bitmap: in most bytes nearly all bits are equal",),
    )


TEXT_CONTROLS: Final = b"\t\n\r\x1b"
"""Control characters that occur in text: white space, and the escape of coloured logs."""

MAX_CONTROL_SHARE: Final = 0.02
_CONTROLS: Final = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in TEXT_CONTROLS)
_MAX_CONTINUATIONS: Final = 3


def is_text(window: bytes, *, cut_before: bool = False, cut_after: bool = False) -> bool:
    """Whether a window is UTF-8 with next to no control characters; a cut end may cut a character."""
    data = window[_continuations(window) :] if cut_before else window
    try:
        codecs.utf_8_decode(data, "strict", not cut_after)
    except UnicodeDecodeError:
        return False
    controls = len(data) - len(data.translate(None, _CONTROLS))
    return controls <= MAX_CONTROL_SHARE * len(data)


def _continuations(window: bytes) -> int:
    """Return the number of leading bytes that continue a character from before the window."""
    start = 0
    while start < min(len(window), _MAX_CONTINUATIONS) and window[start] & 0xC0 == 0x80:
        start += 1
    return start


_SIGNATURES: Final = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "an LZ4 frame"),
    (b"\xff\x06\x00\x00sNaPpY", "framed snappy"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x78\x9c", "zlib"),
    (b"\x78\xda", "zlib"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\xac\xed\x00\x05", "a serialised Java object"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
)
_UNDECODED: Final = frozenset({"a ZIP archive", "a PDF document"})
"""Formats that no decoder of `rtui.values` names, so that the preview does."""


def signature_of(head: bytes) -> str | None:
    """Return the name of the format that begins with these bytes, or None."""
    return next((name for start, name in _SIGNATURES if head.startswith(start)), None)


MAX_JSON_BYTES: Final = 64 * 1024
"""The longest JSON that is read whole at once: one window of a string."""


def starts_like_json(head: bytes) -> bool:
    return head.lstrip(b" \t\r\n")[:1] in (b"{", b"[")


_STALE: Final = 0x80
"""The bit of the last header byte that marks the cached count as outdated."""


def read_hyperloglog(head: bytes, size_bytes: int | None) -> tuple[bytes, int | None] | None:
    """Read the first 16 bytes of a string of `size_bytes`, if that is known; None if it can't be a HyperLogLog.

    Returns the encoding of the registers, and the count, None if an element was added since PFCOUNT last ran.
    """
    from rtui.values.server_encodings import DENSE_BYTES, HEADER_BYTES, MAGIC  # noqa: PLC0415 - as above

    if len(head) < HEADER_BYTES or not head.startswith(MAGIC) or head[5:8] != b"\0\0\0":
        return None
    if head[4] == 0 and size_bytes in (DENSE_BYTES, None):
        registers = b"dense"
    elif head[4] == 1 and (size_bytes is None or size_bytes > HEADER_BYTES):
        registers = b"sparse"
    else:
        return None
    return registers, (None if head[15] & _STALE else int.from_bytes(head[8:16], "little"))


SPARSE_BITS: Final = 1
"""A byte is typical of a bitmap if all its bits but this many are equal."""

TYPICAL_SHARE: Final = 0.75
"""The share of typical bytes in a bitmap. For random bytes it is 7 %."""

_TYPICAL: Final = bytes(value for value in range(256) if not SPARSE_BITS < value.bit_count() < 8 - SPARSE_BITS)


def may_be_bitmap(window: bytes) -> bool:
    """Whether most bytes are nearly all zeros or nearly all ones, as if few or almost all bits are set."""
    if not window:
        return False
    return len(window) - len(window.translate(None, _TYPICAL)) >= TYPICAL_SHARE * len(window)


def set_bits(window: bytes, offset_bytes: int = 0) -> Iterator[int]:
    """Yield the positions of the set bits as GETBIT counts them: from the most significant bit of the first byte."""
    for index, byte in enumerate(window, offset_bytes):
        if byte:
            yield from (index * 8 + bit for bit in range(8) if byte & (0x80 >> bit))


async def string_windows(reader: ValueReader) -> AsyncIterator[bytes | Unknown]:
    """Yield a whole string in windows of 64 KiB, one round trip each, up to MAX_STRING_BYTES; or why it ends early.

    If the string changes meanwhile, windows are of different states. Raises ConnectionLost.
    """
    at = 0
    while at < MAX_STRING_BYTES:
        try:
            (reply,) = await reader.begin(guard.getrange(reader.key, at, at + MAX_WINDOW_BYTES - 1))
            window = expect_bytes(reply)
        except Refused as refused:
            yield refused.why
            return
        yield window
        at += len(window)
        if len(window) < MAX_WINDOW_BYTES:
            return
    yield Unknown(Reason.TOO_LARGE, f"only the first {size(MAX_STRING_BYTES)} were read")
