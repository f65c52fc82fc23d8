"""How often bytes are taken for what they are not."""

from __future__ import annotations

import random
import string
import struct
import uuid
import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import decode

BY_SHAPE = frozenset({"text", "hex", "number"})
ROUNDS = 3_000

MIN_WINDOW = 12
"""Shorter beginnings of values don't occur: `{` alone is one of JSON."""


@given(st.text(string.ascii_letters, min_size=1, max_size=24))
def test_words_are_text(word: str) -> None:
    assert decode(word.encode()).chain == ("text",)


@given(
    st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=12), min_size=1, max_size=6),
    st.sampled_from(" -_.:/|,"),
)
def test_words_with_something_between_them_are_text(words: list[str], between: str) -> None:
    assert decode(between.join(words).encode()).chain == ("text",)


@given(st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_numbers_are_numbers(number: float) -> None:
    assert decode(repr(number).encode()).chain == ("number",)


@given(st.uuids())
def test_uuids_are_uuids(value: uuid.UUID) -> None:
    assert decode(str(value).encode()).chain == ("UUID",)
    assert decode(value.hex.encode()).chain in {("text",), ("number",)}


@pytest.mark.parametrize(
    "text",
    [
        b"true", b"OK", b"N;", b"PONG", b"user:42:profile", b"BM", b"BMW", b"GIF", b"GIF89a", b"x^2", b"x", b"ey",
        b"eyes", b"a:b", b"(none)", b"i:", b"https://example.com/a/b?c=d", b"2026-01-02T03:04:05Z", b"10.0.0.5:6379",
        b"a@b.example", b"deadbeefdeadbeefdeadbeef", b"d41d8cd98f00b204e9800998ecf8427e", b"ObjectId", b"RIFF", b"PK",
        b"Obj", b"[INFO] started", b"{user}", b"BZh", b"BZh9",
    ],
)  # fmt: skip
def test_usual_short_values_are_text(text: bytes) -> None:
    expected = "PHP serialize" if text == b"N;" else "text"
    assert decode(text).chain == (expected,)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 12, 16, 20, 32, 64, 256])
def test_random_bytes_are_hardly_ever_recognised(length: int) -> None:
    source = random.Random(length)
    for is_whole in (True, False) if length >= MIN_WINDOW else (True,):
        chains = [decode(source.randbytes(length), is_whole=is_whole).chain for _ in range(ROUNDS)]
        wrong = Counter(chain for chain in chains if not set(chain) <= BY_SHAPE)
        assert wrong.total() <= ROUNDS // 100, wrong


@pytest.mark.parametrize("is_whole", [True, False])
def test_random_bytes_are_hardly_ever_messages(is_whole: bool) -> None:
    source = random.Random(43)
    samples = [source.randbytes(source.randint(20, 200)) for _ in range(1_000)]
    chosen = sum("protobuf" in decode(data, is_whole=is_whole).chain for data in samples)
    assert chosen < len(samples) / 100


@pytest.mark.slow
def test_random_tokens_are_text() -> None:
    source = random.Random(7)
    for alphabet in (
        string.ascii_letters + string.digits,
        string.hexdigits.lower(),
        string.ascii_letters + string.digits + "-_",
    ):
        for length in (16, 20, 22, 24, 32, 40, 43, 64, 128):
            for _ in range(100):
                token = "".join(source.choices(alphabet, k=length)).encode()
                assert decode(token).chain in {("text",), ("number",)}


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
