"""Whatever the bytes are: nothing is raised or run, no limit is exceeded, and seldom is it taken for what it is not."""

from __future__ import annotations

import ast
import base64
import bz2
import gzip
import json
import os
import pickle
import random
import string
import struct
import subprocess
import sys
import uuid
import zlib
from collections import Counter
from pathlib import Path

import brotli
import lz4.frame
import msgpack
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

import rtui.values
from rtui.values import Decoded, DecodingLimits, ValueForm, ValueKind, decode, decoder_names, outline
from tests.values.test_samples import SAMPLES

SMALL = DecodingLimits(output_bytes=4_096, layers=3, depth=8, elements=50)
NAMES = decoder_names()
MARKS = (
    b"\x1f\x8b\x08\0", b"\x78\x9c", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18\x64\x40\xa7", b"BZh91AY&SY",
    b"\xfd7zXZ\0", b"\xff\x06\0\0sNaPpY\0", b"\x80\x04\x95", b"(dp", b"\xac\xed\0\x05sr\0\x01A", b"\x04\x08",
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ",
    b"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0", b"a:3:{", b'O:3:"Foo":2:{', b"\xdf\0\0\xff\xff", b"\xbf", b"\x9f",
    b"\xdd\xff\xff\xff\xff", b"\xd9\xd9\xf7", b"ey", b"[[{", b'{"a":',
)  # fmt: skip
"""How values of known formats begin."""


def within(found: Decoded, limits: DecodingLimits) -> bool:
    """Tell whether a result keeps to the limits."""
    rows = [(row.depth, len(row.node.raw)) for row in outline(found.root)]
    return (
        len(found.chain) <= limits.layers + 1
        and len(rows) <= limits.elements + 8  # the parts of a token, and what a container opens before it is full
        and max(depth for depth, _ in rows) <= limits.depth + 2
        and len(found.notes) <= 64
    )


@given(st.binary(max_size=400), st.booleans())
def test_random_bytes(data: bytes, is_whole: bool) -> None:
    assert within(decode(data, limits=SMALL, is_whole=is_whole), SMALL)


@given(st.sampled_from(MARKS), st.binary(max_size=200), st.booleans())
def test_random_bytes_behind_a_mark(mark: bytes, data: bytes, is_whole: bool) -> None:
    assert within(decode(mark + data, limits=SMALL, is_whole=is_whole), SMALL)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.binary(max_size=200) | st.builds(bytes.__add__, st.sampled_from(MARKS), st.binary(max_size=100)))
def test_random_bytes_with_each_decoder(name: str, data: bytes) -> None:
    found = decode(data, limits=SMALL, choose=name)
    assert found.chain[0] == name
    assert within(found, SMALL)


@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_changed_samples(name: str, draw: st.DataObject) -> None:
    data = bytearray(SAMPLES[name])
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    cut = draw.draw(st.integers(0, len(data)))
    for limits in (SMALL, DecodingLimits()):
        assert within(decode(bytes(data[:cut]), limits=limits, is_whole=draw.draw(st.booleans())), limits)


ZEROS = 300_000_000
"""How many bytes come out of the bombs."""


def _bombs() -> dict[str, bytes]:
    """Return small values that become large ones, each made in pieces."""
    made = {}
    piece = bytes(1_000_000)
    for name, stream in (
        ("gzip", zlib.compressobj(wbits=31)),
        ("zlib", zlib.compressobj()),
        ("bzip2", bz2.BZ2Compressor()),
    ):
        made[name] = b"".join(stream.compress(piece) for _ in range(ZEROS // len(piece) // 10)) + stream.flush()
    made["zstd"] = zstd.compress(piece * 100)
    made["LZ4"] = lz4.frame.compress(piece * 20)
    made["brotli"] = brotli.compress(piece * 50, quality=1)
    return made


@pytest.mark.slow
def test_a_bomb_costs_no_more_than_its_limit() -> None:
    for name, data in _bombs().items():
        found = decode(data, choose=f"{name} › hex")
        assert len(found.data) == DecodingLimits().output_bytes, name
        assert found.truncated
        assert found.notes == (f"only the first 1,048,576 bytes that come out of {name} are shown",)


@pytest.mark.slow
def test_a_bomb_takes_no_memory() -> None:
    """In a process that may have 100 MiB more than it has, a gzip of half a gigabyte is decoded, not refused."""
    stream = zlib.compressobj(wbits=31)
    data = b"".join(stream.compress(bytes(1_000_000)) for _ in range(500)) + stream.flush()
    program = (
        "import resource, sys\n"
        "from rtui.values import decode\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)\n"
        "print(len(decode(sys.stdin.buffer.read()).data))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True)
    assert int(found.stdout) == DecodingLimits().output_bytes


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("JSON", b"[" * 100_000),
        ("JSON", b'{"a":' * 100_000),
        ("msgpack", b"\x91" * 100_000),
        ("msgpack", b"\x81\xa1a" * 50_000),
        ("CBOR", b"\x81" * 100_000),
        ("CBOR", b"\xd9\xd9\xf7" * 100_000),
        ("CBOR", b"\x9f" * 100_000),
        ("PHP serialize", b"a:1:{i:0;" * 50_000),
        ("Ruby Marshal", b"\x04\x08" + b"[\x06" * 50_000),
        ("Ruby Marshal", b"\x04\x08" + b"I" * 100_000),
        ("Ruby Marshal", b"\x04\x08o" + b"I" * 100_000),
        ("protobuf", b"\x0b" * 100_000),
        ("pickle", b"\x80\x04" + b"(" * 100_000),
        ("Java serialisation", b"\xac\xed\0\x05" + (b"r\0\x01A" + bytes(8) + b"\x02\0\0x") * 20_000),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:8].hex(),
)
def test_what_is_nested_too_deeply_ends_at_the_limit(name: str, data: bytes) -> None:
    for is_whole in (True, False):
        found = decode(data, choose=name, is_whole=is_whole)
        assert found.truncated or found.form is ValueForm.HEX
        assert found.notes
        assert within(found, DecodingLimits())


@pytest.mark.parametrize("data", [b"\xdd\xff\xff\xff\xff" + b"\xc0" * 9, b"\x9b" + b"\xff" * 8 + b"\xf6" * 9])
def test_a_declared_count_reserves_nothing(data: bytes) -> None:
    found = decode(data, choose="msgpack" if data[0] == 0xDD else "CBOR")
    assert len(found.root.children) == 9
    assert found.root.missing == found.root.total - 9 if found.root.total else False
    assert found.root.is_cut


def test_elements_end_at_the_limit() -> None:
    for name, data in (("msgpack", msgpack.packb([0] * 100_000)), ("JSON", json.dumps([0] * 100_000).encode())):
        found = decode(data, choose=name)
        assert len(found.root.children) == DecodingLimits().elements - 1
        assert found.notes == ("only the first 5,000 elements are shown",)


def test_layers_end_at_the_limit() -> None:
    data = b"the innermost text"
    for _ in range(30):
        data = base64.b64encode(data)
    found = decode(data)
    assert found.chain == (*["base64"] * 8, "text")
    assert found.notes == ("only 8 layers are decoded",)
    for _ in range(30):
        data = gzip.compress(data, mtime=0)
    assert decode(data).chain == (*["gzip"] * 8, "hex")


def test_time_ends() -> None:
    found = decode(json.dumps([0] * 4_000).encode(), limits=DecodingLimits(seconds=0.0), choose="JSON")
    assert found.truncated
    assert found.notes == ("decoding was stopped after 0 s",)


class _Runs:
    """A value whose pickle runs a program when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_never_loaded(tmp_path: Path, protocol: int) -> None:
    file = tmp_path / "was run"
    data = pickle.dumps({"value": [_Runs(file)]}, protocol)
    for value in (data, zlib.compress(data), base64.b64encode(data)):
        found = decode(value)
        assert found.chain[-1] == "pickle"
        for name in (found.title, f"{found.title} instructions"):
            listed = decode(value, choose=name)
            assert (listed.form is ValueForm.LISTING) is name.endswith("instructions")
            assert any("would import and call posix.system" in note for note in listed.notes)
    assert not file.exists()


DANGEROUS = frozenset(
    {"pickle", "_pickle", "marshal", "shelve", "subprocess", "ctypes", "yaml", "jsonpickle", "dill", "os"}
)
RUNNING = frozenset({"eval", "exec", "compile", "__import__", "getattr", "setattr"})


def test_nothing_in_the_room_can_run_what_a_value_says() -> None:
    folder = Path(rtui.values.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                assert not {alias.name.partition(".")[0] for alias in node.names} & DANGEROUS, path
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] not in DANGEROUS, path
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in RUNNING, path


def test_a_number_of_many_digits_is_not_converted() -> None:
    for data in (b"9" * 30_000, b"[" + b"9" * 30_000 + b"]", pickle.dumps(1 << 100_000, 2)):
        assert not decode(data).truncated


def test_numbers_of_protobuf_end_at_ten_bytes() -> None:
    found = decode(b"\x08" + b"\xff" * 100_000, choose="protobuf")
    assert found.root.kind is ValueKind.MAP
    assert any("ten bytes" in note for note in found.notes)


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
        ("PNG", png(640, 480)), ("JPEG", jpeg(640, 480)), ("GIF", gif(640, 480)), ("BMP", bmp(640, 480)),
        ("WebP", LOSSY), ("WebP", LOSSLESS), ("WebP", EXTENDED),
    ],
)  # fmt: skip
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
