"""Sessions of PHP, and what igbinary writes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import ValueKind, decode, outline
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
