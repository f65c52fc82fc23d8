"""Type and size of pictures, from headers written as their formats describe them."""

from __future__ import annotations

import struct
import zlib

import pytest

from rtui.values import decode


def png(width: int, height: int) -> bytes:
    """PNG (RFC 2083): signature, IHDR, IDAT, IEND."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress((b"\0" + bytes(3 * width)) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    """JPEG (ITU T.81): start, an APP0 and an APP1 segment, a progressive frame."""
    app0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    app1 = b"\xff\xe1" + struct.pack(">H", 2_002) + bytes(2_000)
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + app0 + app1 + b"\xff" + frame


def gif(width: int, height: int) -> bytes:
    """GIF (89a specification): signature and logical screen."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\xf0\0\0" + bytes(6) + b"\x3b"


def bmp(width: int, height: int) -> bytes:
    """BMP: file header and BITMAPINFOHEADER, rows from the top."""
    body = struct.pack("<IiiHHIIiiII", 40, width, -height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 54) + body


def webp(kind: bytes, body: bytes) -> bytes:
    """WebP (RFC 9649): a RIFF container with one chunk."""
    chunk = kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


LOSSY = webp(b"VP8 ", b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", 640 | 1 << 14, 480))
LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(8))
EXTENDED = webp(b"VP8X", b"\x10\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("PNG", png(640, 480)),
        ("JPEG", jpeg(640, 480)),
        ("GIF", gif(640, 480)),
        ("BMP", bmp(640, 480)),
        ("WebP", LOSSY),
        ("WebP", LOSSLESS),
        ("WebP", EXTENDED),
    ],
)
def test_the_size_is_read_from_the_header(name: str, data: bytes) -> None:
    found = decode(data)
    assert found.chain == (name,)
    facts = {str(child.name.value): child.value for child in found.root.children if child.name}
    assert (facts["width"], facts["height"]) == ("640", "480")


@pytest.mark.parametrize("data", [png(640, 480)[:16], jpeg(640, 480)[:200], LOSSY[:20]])
def test_where_the_size_is_not_yet_there_it_is_said(data: bytes) -> None:
    found = decode(data, is_whole=False)
    assert found.chain[0] in {"PNG", "JPEG", "WebP"}
    assert found.notes == ("its size is not in these bytes",)
