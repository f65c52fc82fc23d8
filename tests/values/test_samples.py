"""Values that PHP, Ruby, Java, django-redis and Celery have written; samples.json says which."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from pathlib import Path

import pytest

from rtui.values import ValueKind, ValueNode, alternatives, decode, outline, summarise

SAMPLES = {
    name: base64.b64decode(sample["base64"])
    for name, sample in json.loads(Path(__file__).with_name("samples.json").read_text("utf-8")).items()
}
CHAINS = {"php": "PHP serialize", "ruby": "Ruby Marshal", "java": "Java serialisation"}
COMPRESSORS = {"lzma": "xz", "lz4": "LZ4"}
SERIALISERS = {"json": "JSON"}


def expected(name: str) -> str:
    """Return the chain that a sample's name stands for."""
    first, *words = name.split()
    if first in CHAINS:
        return CHAINS[first]
    serialiser, *compressor = words[words[0] == "result" :]
    names = [*(COMPRESSORS.get(one, one) for one in compressor), SERIALISERS.get(serialiser, serialiser)]
    return " › ".join(names)


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_recognised_and_read_to_its_end(name: str) -> None:
    found = decode(SAMPLES[name])
    assert found.title == expected(name)
    assert not found.truncated
    assert not any(row.node.is_cut for row in outline(found.root))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_beginning_of_it_is_read_as_far_as_it_goes(name: str) -> None:
    data = SAMPLES[name]
    for length in range(len(data)):
        found = decode(data[:length], is_whole=False)
        assert found.truncated
        assert found.chain


@pytest.mark.parametrize("name", SAMPLES)
def test_what_can_be_chosen_for_it_works(name: str) -> None:
    for choice in alternatives(SAMPLES[name]):
        assert decode(SAMPLES[name], choose=choice).title == choice


def plain(node: ValueNode) -> object:
    """Return a tree as Python's own values, types left out."""
    if node.kind is ValueKind.MAP:
        return {str(child.name.value) if child.name else "": plain(child) for child in node.children}
    if node.kind is ValueKind.LIST:
        return [plain(child) for child in node.children]
    return node.value


def member(node: ValueNode, name: str) -> ValueNode:
    return next(child for child in node.children if child.name is not None and child.name.value == name)


def test_a_session_of_php() -> None:
    root = decode(SAMPLES["php session"]).root
    assert plain(root) == {"user_id": "42", "cart": [{"sku": "A-1", "n": "2"}], "flash": "null"}


def test_objects_of_php_have_their_class_and_references_are_named() -> None:
    root = decode(SAMPLES["php shared"]).root
    assert root.kind is ValueKind.LIST
    assert root.children[0].type_name == "object User"
    assert plain(root.children[0]) == {"name": "Ada", "\0*\0age": "36", "\0User\0tags": ["x", "y"]}
    assert (root.children[1].kind, root.children[1].value) == (ValueKind.NOTE, "the same as value 2")


def test_integers_text_and_floats_of_ruby() -> None:
    root = decode(SAMPLES["ruby session"]).root
    numbers = [1, -1, 255, -256, 65536, -65537, 2**31, 2**70, -(2**70)]
    assert plain(root) == {
        "user_id": "42",
        "csrf": "abc=",
        "list": [str(number) for number in numbers],
        "f": ["1.5", "-0", "inf"],
        "n": "nil",
        "t": "true",
    }


def test_objects_of_ruby_have_their_class() -> None:
    root = decode(SAMPLES["ruby object"]).root
    assert root.type_name == "User"
    assert plain(root) == {"@name": "Ada", "@age": "36", "@tags": ["x", "y", "x"], "@self": "nil"}


def test_fields_of_java_come_from_all_classes_of_an_object() -> None:
    root = decode(SAMPLES["java object"]).root
    assert root.type_name == "A$User"
    fields = plain(root)
    assert isinstance(fields, dict)
    assert fields["id"] == "7"
    assert fields["active"] == "true"
    assert fields["big"] == str(1 << 40)
    assert fields["raw"] == b"\1\2\3"
    assert fields["numbers"] == ["1", "2"]
    assert fields["level"] == "HIGH"
    assert member(root, "friend").kind is ValueKind.NOTE


def test_a_map_of_java_is_a_map() -> None:
    root = decode(SAMPLES["java map"]).root
    assert root.kind is ValueKind.MAP
    assert {str(child.name.value) for child in root.children if child.name} == {"user_id", "roles"}
    assert member(root, "roles").kind is ValueKind.LIST


def test_what_another_class_of_java_writes_itself_is_shown() -> None:
    root = decode(SAMPLES["java map"].replace(b"java.util.HashMap", b"java.util.OtherMp")).root
    written = root.children[-1]
    assert written.type_name == "written by java.util.OtherMp"
    assert [child.value for child in written.children if child.kind is ValueKind.TEXT] == ["user_id", "roles"]


def test_results_of_celery() -> None:
    for name in ("celery result json", "celery result msgpack"):
        result = plain(decode(SAMPLES[name]).root)
        assert isinstance(result, dict)
        assert result["status"] == "SUCCESS"
        assert result["result"] == {"total": "3"}


def test_a_pickle_is_the_value() -> None:
    root = decode(SAMPLES["django-redis pickle"]).root
    cart = [{"sku": "A-0", "n": "0"}, {"sku": "A-1", "n": "1"}, {"sku": "A-2", "n": "2"}]
    assert plain(root) == {"user": "Ada", "cart": cart, "vip": "true"}


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
