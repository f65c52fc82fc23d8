"""What is nearly JSON is laid out, and what is not JSON in it is named."""

from __future__ import annotations

import base64
import gzip
import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.values import ValueKind, ValueNode, decode, drop_unfinished, node_json, outline
from tests.values.test_bounds import SMALL, within

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
SCALARS = st.none() | st.booleans() | st.integers() | TEXTS | st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=8
)
RECORDS = st.dictionaries(TEXTS, DOCUMENTS, min_size=1, max_size=4)


def python_value(node: ValueNode) -> object:
    words = {"null": None, "None": None, "true": True, "True": True, "false": False, "False": False}
    match node.kind:
        case ValueKind.MAP:
            return {str(child.name.value): python_value(child) for child in node.children if child.name is not None}
        case ValueKind.LIST:
            return [python_value(child) for child in node.children]
        case ValueKind.CONSTANT:
            return words.get(str(node.value), math.nan if node.value == "NaN" else node.value)
        case ValueKind.NUMBER:
            text = str(node.value).rstrip("LDF")
            return float(text) if any(letter in text for letter in ".eE") else int(text)
    return node.value


@given(RECORDS)
def test_the_repr_of_a_document_of_python_is_read(document: dict[str, object]) -> None:
    data = repr(document).encode()
    found = decode(data)
    assert found.chain in {("JSON, nearly",), ("JSON",)}
    assert python_value(found.root) == document
    assert not found.truncated


@given(RECORDS, st.integers(1, 9))
def test_marks_at_both_ends_are_left_out(document: dict[str, object], count: int) -> None:
    data = json.dumps(document).encode()
    marked = decode(b"\xef\xbb\xbf" + data)
    ended = decode(data + bytes(count))
    for found, note in ((marked, "a byte order mark at byte 0"), (ended, "NUL at the end")):
        assert found.chain == ("JSON, nearly",)
        assert python_value(found.root) == document
        assert note in found.notes[0]
        assert node_json(found.root) == node_json(decode(data).root)


@pytest.mark.parametrize(
    ("data", "values", "note"),
    [
        (b'{"pid":0L,"cpu":1.5D,"f":-2F}', ["0L", "1.5D", "-2F"], "0L at byte 7, 1.5D at byte 16, -2F at byte 25"),
        ('{"é":NaN,"b":[Infinity]}'.encode(), ["NaN", "Infinity"], "NaN at byte 6, Infinity at byte 15"),
        (b"[-Infinity, NaN, NaN]", ["-Infinity", "NaN", "NaN"], "-Infinity at byte 1, NaN at byte 12 (2 times)"),
        (b'{"a":1,\n"b":[2,],}', ["1", "2"], "a comma before the end at byte 14 (2 times)"),
        (b'{"a":"x\ny\tz"}', ["x\ny\tz"], "a control character at byte 7"),
        (b"{'a': 'it\\'s', 'b': None}", ["it's", "None"], "a text in single quotes at byte 1 (3 times), None"),
        (b'["\\q"]', ["q"], "an escape that JSON lacks at byte 2"),
        (b'{"a":undefined}', ["undefined"], "undefined at byte 5"),
        (b'[12345678901234567890123L]', ["12345678901234567890123L"], "12345678901234567890123L at byte 1"),
    ],
)  # fmt: skip
def test_what_is_not_json_is_named_and_stays_as_it_is(data: bytes, values: list[str], note: str) -> None:
    found = decode(data)
    assert found.chain == ("JSON, nearly",)
    assert [
        row.node.value for row in outline(found.root) if row.node.kind not in (ValueKind.MAP, ValueKind.LIST)
    ] == values
    assert found.notes[0].startswith(f"not JSON: {note}")
    assert not found.truncated


@pytest.mark.parametrize(
    "text",
    [
        b"[INFO] started", b"{user}", b"{a: 1}", b"[1,2", b'["x",1,2', b"[1,,2]", b"[,]", b"{,}", b"[a]", b"{0}",
        b"\xef\xbb\xbfhello", b"{user:1}", b"[1L 2L]", b"{'a'}", b"{'a': b}", b"[None", b"['it's']", b'{"a":1}}',
        b"[]]", b'{"a":1} {"b":2}', b"[2026-01-02] x", b"{%s}", b"[1.2.3]", b"{'a': 1L", b"[NaNny]", b"[10.0.0.1]",
    ],
)  # fmt: skip
def test_other_text_with_brackets_is_text(text: bytes) -> None:
    assert decode(text).chain == ("text",)


@given(RECORDS)
@example({"\x7f": None})
@example({"a": "\x7f\x80\x85\x9f" * 20})
@example({"\u2028": "\u2029", "\ufeff": ["\ufffe", "\U000e0001", "\U0010ffff"]})
def test_json_is_json(document: dict[str, object]) -> None:
    for data in (json.dumps(document).encode(), json.dumps(document, ensure_ascii=False, indent=1).encode()):
        assert decode(data).chain == ("JSON",)
    assert decode(json.dumps(document).encode()[:-1]).chain == ("text",)


ODD_TEXTS = st.text(st.characters(categories=["Cc", "Cf", "Cn", "Co", "Zl", "Zp"], exclude_characters="\n\t\r"))


@given(st.lists(ODD_TEXTS, min_size=1) | st.dictionaries(ODD_TEXTS, ODD_TEXTS, min_size=1), st.integers(0, 3))
@example(["\x7f" * 10_000], 1)
@example([""], 3)
def test_json_of_characters_that_cannot_be_seen_is_json(document: object, spaces: int) -> None:
    written = " \r\n\t"[:spaces] + json.dumps(document, ensure_ascii=False)
    for data in (written.encode(), gzip.compress(written.encode()), base64.b64encode(written.encode() + b" " * 40)):
        found = decode(data)
        assert found.chain[-1] == "JSON"
        assert python_value(found.root) == document
    assert decode(written.encode()[:-2], is_whole=False).chain == ("JSON",)


@pytest.mark.parametrize(
    "written",
    [
        r'{"\ud800":"\udfff"}', r'["\ude00\ud83d"]', r'"\ud800"', r'{"a":"\u0000\u001b\u007F\u0080\u2028"}',
        r'["\/\b\f"]',
        '"\x7f\x7f"', '{"":""}', '{"a":1,"a":2}', "[-0,1E+400,-0.0e-0]", " \r\n\t[ ]\n", '["\x7f",\n\t"\x80"]',
    ],
)  # fmt: skip
def test_unusual_json_is_json(written: str) -> None:
    found = decode(written.encode())
    assert found.chain == ("JSON",)
    assert not found.truncated
    text = node_json(found.root)
    assert text is not None
    assert json.loads(text) == json.loads(written)


@pytest.mark.parametrize("data", [b'{"a":"\x80"}', b'["\xed\xa0\x80"]', b'{"a":"\x00"}', b"[\x7f]", b'{"\x7f":1}\x7f'])
def test_what_json_does_not_allow_is_not_json(data: bytes) -> None:
    assert decode(data).chain != ("JSON",)


def test_what_is_not_json_far_behind_the_beginning_is_read_too() -> None:
    data = b"[" + b'{"name": "somebody", "id": 7},' * 800 + b'{"id": 0L}]'
    found = decode(data)
    assert found.chain == ("JSON",)
    assert not found.truncated
    assert found.notes == (f"not JSON: 0L at byte {len(data) - 4:,}",)
    damaged = decode(data.replace(b"0L", b"0 0"))
    assert damaged.truncated
    assert len(damaged.root.children) == 801


def test_the_beginning_of_a_long_value_is_read() -> None:
    data = json.dumps([{"id": at, "score": math.nan} for at in range(500)]).encode()
    found = decode(data[:5_000], is_whole=False)
    assert found.chain == ("JSON, nearly",)
    assert found.truncated
    assert len(found.root.children) > 100


@given(st.lists(RECORDS, min_size=2, max_size=4), st.sampled_from(["\n", "\r\n", " \n\n"]))
def test_json_in_lines(documents: list[dict[str, object]], between: str) -> None:
    data = between.join(map(json.dumps, documents)).encode()
    for one in (data, data + b"\n"):
        found = decode(one)
        assert found.chain == ("JSON lines",)
        assert python_value(found.root) == documents
    assert decode(data[:-1], is_whole=False).chain == ("JSON lines",)


@given(st.text("{}[]'\",:0123LDNaInf\\\n\0 ", max_size=60), st.booleans())
def test_any_text_is_read_within_the_limits(text: str, is_whole: bool) -> None:
    for name in ("JSON, nearly", "JSON lines", "JSON"):
        assert within(decode(text.encode(), choose=name, limits=SMALL, is_whole=is_whole), SMALL)


@pytest.mark.parametrize("data", [b"[" * 100_000, b"{'a':" * 100_000, b"[1L,[" * 50_000])
def test_deep_nesting_ends_at_the_limit(data: bytes) -> None:
    for is_whole in (True, False):
        assert any(
            "levels deeper than" in note for note in decode(data, choose="JSON, nearly", is_whole=is_whole).notes
        )


ANY_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(ANY_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


@given(st.lists(VALUES) | st.dictionaries(st.text(), VALUES))
def test_json_is_the_same_json(value: object) -> None:
    found = node_json(decode(json.dumps(value).encode(), choose="JSON").root)
    assert found is not None
    assert json.loads(found) == value
    assert all(line.isprintable() for line in found.split("\n"))


@given(st.dictionaries(st.text(st.characters()), st.text(st.characters())))
@example({"\ud800": "\udfff"})
def test_halves_of_characters_stay(value: dict[str, str]) -> None:
    written = json.dumps(value)
    found = node_json(decode(written.encode(), choose="JSON").root)
    assert found is not None
    assert json.loads(found) == json.loads(written)


def test_what_json_has_no_word_for_is_text_or_base64() -> None:
    name = ValueNode(ValueKind.NUMBER, "1")
    root = ValueNode(
        ValueKind.MAP,
        children=[
            ValueNode(ValueKind.BYTES, b"\xff", name=name),
            ValueNode(ValueKind.CONSTANT, "undefined", name=name),
        ],
    )
    assert node_json(root) == '{\n  "1": {"base64": "/w=="},\n  "1": "undefined"\n}'
    assert node_json(
        ValueNode(ValueKind.LIST, children=[ValueNode(ValueKind.NUMBER, "0x10"), ValueNode(ValueKind.NUMBER, "1e400")])
    ) == ('[\n  "0x10",\n  1e400\n]')


@pytest.mark.parametrize("data", [b'{"a": [1, 2', b"[1, 2,"])
def test_of_a_value_that_was_cut_there_is_none(data: bytes) -> None:
    assert node_json(decode(data, is_whole=False, choose="JSON").root) is None


@given(st.lists(VALUES, min_size=1) | st.dictionaries(st.text(), VALUES, min_size=1), st.data())
def test_json_of_what_was_cut_is_json_that_says_so(value: object, data: st.DataObject) -> None:
    whole = json.dumps(value).encode()
    cut = data.draw(st.integers(1, len(whole) - 1))
    root = decode(whole[:cut], is_whole=False, choose="JSON").root
    drop_unfinished(root)
    found = node_json(root, may_be_cut=True)
    assert found is not None
    json.loads(found)
    assert "…" in found


def test_words_that_are_no_data_are_marked() -> None:
    root = decode(b"a:2:{i:0;a:0:{}i:1;R:2;}").root
    found = node_json(root, may_be_cut=True)
    assert found is not None
    assert json.loads(found)[1] == {"…": "the same as value 2"}


def test_instructions_are_no_json() -> None:
    assert node_json(decode(b"\x80\x04K\x01.", choose="pickle instructions").root) is None
