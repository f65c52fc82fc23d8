"""Objects of Java's own classes are the values that they are."""

from __future__ import annotations

import struct
import uuid

import pytest

from rtui.values import ValueKind, decode, outline, summarise

HEAD = b"\xac\xed\x00\x05"


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def described(name: str, fields: str, flags: int = 2, parent: bytes = b"p") -> bytes:
    """Return the description of a class, whose fields are as `value:J`."""
    parts = [one.split(":") for one in fields.split()]
    inside = b"".join(
        kind[0].encode() + utf(field) + (b"t" + utf(kind) if kind[0] in "L[" else b"") for field, kind in parts
    )
    return b"r" + utf(name) + bytes(8) + bytes((flags,)) + struct.pack(">H", len(parts)) + inside + b"x" + parent


NUMBER = described("java.lang.Number", "")


def boxed(name: str, kind: str, value: bytes) -> bytes:
    return b"s" + described(f"java.lang.{name}", f"value:{kind}", parent=NUMBER) + value


def block(data: bytes) -> bytes:
    return b"w" + bytes((len(data),)) + data


@pytest.mark.parametrize(
    ("stream", "line"),
    [
        (b"t" + utf("ann"), '"ann"'),
        (boxed("Long", "J", struct.pack(">q", 1536236969740)),
         "java.lang.Long 1536236969740 › 2018-09-06 12:29:29.740 UTC"),
        (boxed("Integer", "I", struct.pack(">i", -7)), "java.lang.Integer -7"),
        (boxed("Short", "S", struct.pack(">h", 3)), "java.lang.Short 3"),
        (boxed("Double", "D", struct.pack(">d", 1.5)), "java.lang.Double 1.5"),
        (boxed("Boolean", "Z", b"\1"), "java.lang.Boolean true"),
        (boxed("Character", "C", b"\0a"), 'java.lang.Character "a"'),
        (b"s" + described("java.util.Date", "", 3) + block(struct.pack(">q", 1_700_000_000_123)) + b"x",
         'java.util.Date "2023-11-14 22:13:20.123 UTC"'),
        (b"s" + described("java.util.UUID", "leastSigBits:J mostSigBits:J") + struct.pack(">qq", -2, 5),
         f'java.util.UUID "{uuid.UUID(int=(5 << 64) + 2**64 - 2)}"'),
        (b"s" + described("java.time.Ser", "", 12) + block(b"\2" + struct.pack(">qi", 1_700_000_000, 0)) + b"x",
         'java.time.Instant "2023-11-14 22:13:20 UTC"'),
        (b"s" + described("java.time.Ser", "", 12) + block(b"\3" + struct.pack(">ibb", 2026, 1, 2)) + b"x",
         'java.time.LocalDate "2026-01-02"'),
        (b"s" + described("java.time.Ser", "", 12) + block(b"\5" + struct.pack(">ibbbb", 2026, 1, 2, 3, ~4)) + b"x",
         'java.time.LocalDateTime "2026-01-02 03:04:00"'),
        (b"s" + described("java.util.ArrayList", "size:I", 3) + struct.pack(">i", 2) + block(bytes(4))
         + b"t" + utf("a") + b"t" + utf("b") + b"x", "java.util.ArrayList [2]"),
        (b"s" + described("java.util.HashMap", "loadFactor:F threshold:I", 3) + bytes(8) + block(bytes(8))
         + b"t" + utf("k") + b"t" + utf("v") + b"x", "java.util.HashMap {1}"),
        (b"s" + described("java.util.LinkedHashMap", "accessOrder:Z", 2,
                          described("java.util.HashMap", "loadFactor:F threshold:I", 3)) + bytes(8) + block(bytes(8))
         + b"t" + utf("k") + b"t" + utf("v") + b"x" + b"\0", "java.util.LinkedHashMap {1}"),
        (b"s" + described("java.math.BigInteger", "signum:I magnitude:[B", 2, NUMBER) + struct.pack(">i", -1)
         + b"u" + described("[B", "") + struct.pack(">i", 2) + b"\1\0", "java.math.BigInteger -256"),
    ],
)  # fmt: skip
def test_an_object_in_one_line(stream: bytes, line: str) -> None:
    found = summarise(HEAD + stream)
    assert found is not None
    assert found.text == f"Java serialisation {line}"
    decoded = decode(HEAD + stream)
    assert not decoded.truncated
    assert not decoded.notes or "since 1970" in decoded.notes[0]
    for length in range(len(stream)):
        assert decode(HEAD + stream[:length], is_whole=False).truncated


def test_objects_that_are_not_as_their_class_writes_them_stay_as_they_are() -> None:
    for stream in (
        b"s" + described("java.lang.Long", "other:J", parent=NUMBER) + bytes(8),
        b"s" + described("java.util.UUID", "mostSigBits:J") + bytes(8),
        b"s" + described("java.util.Date", "", 3) + block(b"\1") + b"x",
        b"s" + described("java.time.Ser", "", 12) + block(b"\x63") + b"x",
        b"s" + described("java.time.Ser", "", 12) + block(b"") + b"x",
        b"s" + described("java.util.HashMap", "", 3) + b"t" + utf("k") + b"t" + utf("v") + b"x",
    ):
        root = decode(HEAD + stream).root
        assert root.kind is ValueKind.MAP
        assert len(list(outline(root))) > 1
