"""Values behind a short prefix: versions, flags and headers that caches put before the value.

Rails 7.1 and dogpile.cache have headers with a mark, whose fields are shown in notes. For all other prefixes, which
only their writer understands, decoders with a mark are tried at the first few offsets, and the prefix is shown.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from rtui.values.limits import Budget, Invalid
from rtui.values.plain import date_text
from rtui.values.source import CERTAIN, Format, Source, by_hand
from rtui.values.tree import Step

MAX_PREFIX: Final = 16
"""The longest prefix in bytes."""

MIN_BEHIND: Final = 8
"""The fewest bytes behind a prefix."""

_MARKS: Final = re.compile(
    rb"(?=\x1f\x8b\x08|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|BZh[1-9]|\xfd7zXZ\0|\x78[\x01\x5e\x9c\xda]|\x80[\x02-\x05]"
    rb"|\x04\x08[\[{ocIe\"/:]|\xac\xed\0\x05|\xff\x06\0\0[sS]|\0\0\0[\x01\x02]\x14|Obj\x01)",
    re.DOTALL,
)
"""The first bytes of formats with an unmistakable mark."""

_RAILS: Final = b"\x00\x11"
_RAILS_HEADER: Final = struct.Struct("<2xBdi")
_RAILS_TYPES: Final = {1: "Marshal or another serialiser", 2: "text", 3: "bytes", 4: "ASCII"}
_COMPRESSED: Final = 0x80


def marked_offsets(source: Source) -> list[int]:
    """Return the offsets among the first bytes at which a format with a mark may begin; none in text."""
    if source.is_text:
        return []
    found = (match.start() for match in _MARKS.finditer(source.data[: MAX_PREFIX + 6]))
    return [at for at in found if 0 < at <= MAX_PREFIX and at + MIN_BEHIND <= len(source.data)]


def after(count: int) -> Format:
    """Return the decoder that skips `count` bytes."""

    def read(source: Source, _budget: Budget) -> Step:
        if len(source.data) <= count:
            raise Invalid(f"has more than {count} bytes")
        prefix = source.data[:count]
        shown = prefix.decode() if prefix.isascii() and prefix.decode().isprintable() else prefix.hex(" ")
        return Step(source.data[count:], (f"before it: {shown}",), not source.is_whole)

    return Format(f"after {count} byte{'s' if count > 1 else ''}", by_hand, read, can_read=lambda _source: False)


def _rails_header(data: bytes) -> tuple[int, float, int] | None:
    """Return type, expiry time and version length of a Rails cache entry, or None."""
    if not data.startswith(_RAILS) or len(data) < _RAILS_HEADER.size:
        return None
    kind, expires, version = _RAILS_HEADER.unpack_from(data)
    is_known = kind & ~_COMPRESSED in _RAILS_TYPES and version >= -1 and (expires == -1 or 0 < expires < 1 << 40)
    return (kind, expires, version) if is_known else None


def _sniff_rails(source: Source, _budget: Budget) -> float | None:
    return CERTAIN if _rails_header(source.data) else None


def _read_rails(source: Source, _budget: Budget) -> Step:
    """Return the content of an ActiveSupport::Cache entry, as Rails writes it from 7.1 on."""
    header = _rails_header(source.data)
    if header is None:
        raise Invalid("begins with 00 11 and the header of a cache entry")
    kind, expires, version_bytes = header
    start = _RAILS_HEADER.size + max(0, version_bytes)
    notes = ["never expires" if expires < 0 else f"expires at {date_text(expires)}"]
    if version_bytes > 0:
        notes.append(f"version {source.data[_RAILS_HEADER.size : start].decode('utf-8', 'surrogateescape')}")
    notes.append(f"holds {_RAILS_TYPES[kind & ~_COMPRESSED]}")
    return Step(source.data[start:], (f"Rails cache entry: {', '.join(notes)}",), not source.is_whole)


_DOGPILE: Final = re.compile(rb'\{"ct": ([0-9]{1,12}(?:\.[0-9]{1,9})?), "v": ([0-9]{1,4})\}\|')


def _sniff_dogpile(source: Source, _budget: Budget) -> float | None:
    return CERTAIN if _DOGPILE.match(source.data) else None


def _read_dogpile(source: Source, _budget: Budget) -> Step:
    """Return the content behind the creation time and version that dogpile.cache writes as JSON from 1.1 on."""
    header = _DOGPILE.match(source.data)
    if header is None:
        raise Invalid('begins with {"ct": …, "v": …}|')
    note = f"dogpile.cache entry: created at {date_text(float(header[1]))}, version {header[2].decode()}"
    return Step(source.data[header.end() :], (note,), not source.is_whole)


FORMATS: Final = (
    Format("Rails cache", _sniff_rails, _read_rails),
    Format("dogpile.cache", _sniff_dogpile, _read_dogpile),
)
"""The decoders that recognise a header."""

PREFIXES: Final = tuple(after(count) for count in range(1, MAX_PREFIX + 1))
"""The decoders that skip a prefix, one for each length."""
