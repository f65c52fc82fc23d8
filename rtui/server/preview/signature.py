"""What bytes seem to be by how they begin: compressed data, serialised objects, pictures."""

from __future__ import annotations

from typing import Final

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
"""Beginnings, the longer ones before shorter ones of the same bytes, and what begins so."""


def signature_of(head: bytes) -> str | None:
    """Name what begins with these bytes; None when nothing known does."""
    return next((name for start, name in _SIGNATURES if head.startswith(start)), None)
