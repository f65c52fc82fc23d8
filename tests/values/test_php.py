"""Values that PHP, Ruby, Java, django-redis and Celery have written; samples.json says which."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import ValueKind, ValueNode, alternatives, decode, outline, summarise
from tests.conftest import known
from tests.values.test_bounds import SMALL, within
from tests.values.test_libraries import value_of

NAMES = st.text("abcdeéж中", min_size=1, max_size=6)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | WORDS | st.floats(allow_nan=False)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=6,
)


def serialize(value: object) -> bytes:  # noqa: PLR0911 - one a type
    match value:
        case None:
            return b"N;"
        case bool():
            return b"b:%d;" % value
        case int():
            return b"i:%d;" % value
        case float():
            return f"d:{str(value).replace('inf', 'INF')};".encode()
        case str():
            return b's:%d:"%b";' % (len(value.encode()), value.encode())
        case list():
            return serialize(dict(enumerate(value)))
        case dict():
            pairs = b"".join(serialize(key) + serialize(item) for key, item in value.items())
            return b"a:%d:{%b}" % (len(value), pairs)
    raise AssertionError(value)


class Igbinary:
    """Writes igbinary, in its shortest forms, as PHP does."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def document(self, value: object) -> bytes:
        return b"\0\0\0\2" + self.value(value)

    def sized(self, first: int, size: int) -> bytes:
        """Return one of three codes with a size of 1, 2 or 4 bytes."""
        step = 0 if size < 256 else 1 if size < 65_536 else 2
        return bytes((first + step,)) + size.to_bytes(1 << step)

    def value(self, value: object) -> bytes:  # noqa: PLR0911 - one a type
        match value:
            case None:
                return b"\0"
            case bool():
                return b"\5" if value else b"\4"
            case int():
                size = next(size for size in (1, 2, 4, 8) if abs(value) < 256**size)
                code = {1: 0x06, 2: 0x08, 4: 0x0A, 8: 0x20}[size] + (value < 0)
                return bytes((code,)) + abs(value).to_bytes(size)
            case float():
                return b"\x0c" + struct.pack(">d", value)
            case "":
                return b"\x0d"
            case str() if value in self.texts:
                return self.sized(0x0E, self.texts[value])
            case str():
                self.texts[value] = len(self.texts)
                return self.sized(0x11, len(value.encode())) + value.encode()
            case list():
                return self.value(dict(enumerate(value)))
            case dict():
                inside = b"".join(self.value(part) for pair in value.items() for part in pair)
                return self.sized(0x14, len(value)) + inside
        raise AssertionError(value)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
def test_sessions(variables: dict[str, object]) -> None:
    data = b"".join(name.encode() + b"|" + serialize(value) for name, value in variables.items())
    found = decode(data)
    assert found.chain == ("PHP session",)
    assert php_value(found.root) == variables
    assert "PHP session" not in decode(data + b"loose").chain


@given(st.dictionaries(st.text("abcXYZ_", min_size=1, max_size=20), VALUES, min_size=1, max_size=4))
def test_sessions_of_the_binary_handler(variables: dict[str, object]) -> None:
    data = b"".join(bytes((len(name),)) + name.encode() + serialize(value) for name, value in variables.items())
    found = decode(data)
    assert found.chain == ("PHP session",)
    assert php_value(found.root) == variables


@given(VALUES)
def test_igbinary(value: object) -> None:
    data = Igbinary().document(value)
    found = decode(data)
    assert found.chain == ("igbinary",)
    assert php_value(found.root) == value
    assert decode(data + b"\0").chain != ("igbinary",)


def php_value(node: object) -> object:
    """Return the values of a tree; floats of PHP have INF."""
    from rtui.values import ValueNode

    assert isinstance(node, ValueNode)
    for row in outline(node):
        if row.node.kind is ValueKind.NUMBER:
            row.node.value = str(row.node.value).replace("INF", "inf")
    return value_of(node)


@pytest.mark.parametrize(
    "text", [b"a|b", b"a|b|c", b"|", b"x|y:1", b"1|2;3", b"GET /|200", b"a|i:1", b"key|s:3:ab", b"a|N"]
)
def test_other_text_with_bars_is_text(text: bytes) -> None:
    assert decode(text).chain == ("text",)


def test_variables_that_are_not_set() -> None:
    root = decode(b"!gone|last|i:17;").root
    assert [(child.name and child.name.value, child.value, child.type_name) for child in root.children] == [
        ("gone", "null", "not set"), ("last", "17", ""),
    ]  # fmt: skip


def test_the_beginning_of_a_session_is_shown() -> None:
    data = b'user|a:2:{s:2:"id";i:7;s:4:"name";s:3:"Ada";}basket|a:1:{i:0;s:5:"apple";}'
    for length in range(12, len(data)):
        found = decode(data[:length], is_whole=False)
        assert found.chain == ("PHP session",)
        assert found.truncated or length == len(data)


@pytest.mark.parametrize(
    ("digits", "rows"),
    [  # written by igbinary: from the tests of its sources
        ("0000000214041101610601110162060211016306031101640604",
         [("", "map"), ("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]),
        ("00000002170c53696d706c655075626c6963140111016900", [("object SimplePublic", "map"), ("i", "null")]),
        ("000000021704546573741d077061796c6f6164", [("object Test", "payload")]),
        ("0000000217014214020600140106001708737464436c61737314000601140106002202",
         [("object B", "map"), ("0", "list"), ("object stdClass", "map"), ("1", "list"), ("", "the same as value 2")]),
        ("000000021708737464436c61737314021104746573741103626172110576616c75652517045465737414020600067b0e0314010600110378"
         "797a",
         [("object stdClass", "map"), ("test", "bar"), ("object Test", "map"), ("0", "123"), ("value", "list"),
          ("", "xyz")]),
        ("00000002170453756974271106486561727473",
         [("enum Suit", "Hearts")]),
    ],
)  # fmt: skip
def test_objects_and_references_of_igbinary(digits: str, rows: list[tuple[str, str]]) -> None:
    found = decode(bytes.fromhex(digits))
    assert found.chain == ("igbinary",)
    shown = [
        (
            row.node.type_name or (str(row.node.name.value) if row.node.name else ""),
            row.node.value or row.node.kind.value,
        )
        for row in outline(found.root)
    ]
    assert shown == rows
    assert not found.notes


@given(st.binary(max_size=100), st.booleans())
def test_any_bytes_behind_the_mark(data: bytes, is_whole: bool) -> None:
    assert within(decode(b"\0\0\0\2" + data, choose="igbinary", limits=SMALL, is_whole=is_whole), SMALL)
    assert within(decode(data, choose="PHP session", limits=SMALL, is_whole=is_whole), SMALL)


def test_deep_nesting_ends_at_the_limit() -> None:
    for name, data in (
        ("igbinary", b"\0\0\0\2" + b"\x14\1\6\0" * 50_000),
        ("PHP session", b"a|" + b"a:1:{i:0;" * 50_000),
    ):
        found = decode(data, choose=name)
        assert found.truncated
        assert any("levels deeper than" in note for note in found.notes)


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
    assert known(summarise(HEAD + stream)).text == f"Java serialisation {line}"
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
