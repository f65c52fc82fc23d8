"""What is nearly JSON is laid out; bytes written as text: base64, hexadecimal digits, JSON Web Tokens, UUIDs."""

from __future__ import annotations

import base64
import gzip
import json
import math
import uuid
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.values import ValueForm, ValueKind, ValueNode, decode, drop_unfinished, node_json, outline
from tests.conftest import known
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
    found = decode(repr(document).encode())
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
    assert json.loads(known(node_json(found.root))) == json.loads(written)


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
    found = known(node_json(decode(json.dumps(value).encode(), choose="JSON").root))
    assert json.loads(found) == value
    assert all(line.isprintable() for line in found.split("\n"))


@given(st.dictionaries(st.text(st.characters()), st.text(st.characters())))
@example({"\ud800": "\udfff"})
def test_halves_of_characters_stay(value: dict[str, str]) -> None:
    written = json.dumps(value)
    found = known(node_json(decode(written.encode(), choose="JSON").root))
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
    root = decode(whole[: data.draw(st.integers(1, len(whole) - 1))], is_whole=False, choose="JSON").root
    drop_unfinished(root)
    found = known(node_json(root, may_be_cut=True))
    json.loads(found)
    assert "…" in found


def test_words_that_are_no_data_are_marked() -> None:
    found = known(node_json(decode(b"a:2:{i:0;a:0:{}i:1;R:2;}").root, may_be_cut=True))
    assert json.loads(found)[1] == {"…": "the same as value 2"}


def test_instructions_are_no_json() -> None:
    assert node_json(decode(b"\x80\x04K\x01.", choose="pickle instructions").root) is None


# RFC 7519, section 3.1: the token signed with HMAC SHA-256.
TOKEN = (
    b"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
    b"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
    b"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)


def member(node: ValueNode, name: str) -> ValueNode:
    return next(child for child in node.children if child.name is not None and child.name.value == name)


def test_header_and_claims_of_a_token_are_shown_and_said_to_be_unverified() -> None:
    found = decode(TOKEN)
    assert found.chain == ("JWT",)
    assert member(member(found.root, "header"), "alg").value == "HS256"
    assert member(member(found.root, "claims"), "iss").value == "joe"
    assert member(found.root, "signature").type_name == "not verified"
    assert len(member(found.root, "signature").value) == 32
    assert found.notes[0] == "the signature is not verified: anyone may have written this"
    assert found.notes[1] == "exp as seconds since 1970: 2011-03-22 18:43:00 UTC"


def test_the_beginning_of_a_token_is_shown() -> None:
    for cut in range(45, len(TOKEN)):
        found = decode(TOKEN[:cut], is_whole=False)
        assert found.chain == ("JWT",)
        assert member(member(found.root, "header"), "alg").value == "HS256"


def test_an_encrypted_token_shows_its_header() -> None:
    # RFC 7516, section 3.3, shortened.
    header = b"eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ"
    token = header + b".OKOawDo13gRp2ojaHV7LFpZcgV7T6DVZKTyKOMTYUmKo.48V1_ALb6US04U3b.5eym8TW_.XFBo"
    found = decode(token)
    assert found.chain == ("JWT",)
    assert [child.name and child.name.value for child in found.root.children] == ["header"]
    assert "the claims are encrypted" in found.notes


def test_what_only_looks_like_a_token_is_text() -> None:
    for text in (b"eyJ.x.y", b"eyes.are.open", b"eyJhbGciOiJub25lIn0", b"a.b.c"):
        assert decode(text).chain[0] != "JWT"


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=12))
def test_base64_of_text_in_both_alphabets_with_and_without_padding(text: str) -> None:
    raw = text.encode()
    for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        assert decode(encoded, choose="base64 › text").root.value == text
        assert decode(encoded.rstrip(b"="), choose="base64 › text").root.value == text


@given(st.binary())
def test_base64_of_bytes(raw: bytes) -> None:
    if raw:
        assert decode(base64.encodebytes(raw), choose="base64 › hex").data == raw
        assert decode(raw.hex().encode(), choose="hex digits › hex").data == raw


def test_deflate_is_chosen_by_hand() -> None:
    packer = zlib.compressobj(wbits=-15)
    assert decode(packer.compress(b"some text") + packer.flush(), choose="deflate").root.value == "some text"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("c232ab00-9414-11ec-b3c8-9f6bdeced846", "version 1, made at 2022-02-22 19:22:22 UTC"),  # RFC 9562, A.1
        ("1ec9414c-232a-6b00-b3c8-9f6bdeced846", "version 6, made at 2022-02-22 19:22:22 UTC"),  # A.5
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "version 7, made at 2022-02-22 19:22:22 UTC"),  # A.6
        ("919108f7-52d1-4320-9bac-f847db4148a8", "version 4"),  # A.3
    ],
)
def test_uuids_tell_their_version_and_time(text: str, note: str) -> None:
    for data, choose in ((text.encode(), None), (uuid.UUID(text).bytes, "UUID")):
        found = decode(data, choose=choose)
        assert (found.chain, found.root.value, found.notes) == (("UUID",), text, (note,))


JSON_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(JSON_DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_json_is_read_as_pythons_own_reader_does(document: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    if ascii_only or text.isprintable():
        assert as_value(decode(text.encode("utf-8", "surrogatepass"), choose="JSON").root) == document


def as_value(node: ValueNode) -> object:
    match node.kind:
        case ValueKind.MAP:
            return {str(child.name.value) if child.name else "": as_value(child) for child in node.children}
        case ValueKind.LIST:
            return [as_value(child) for child in node.children]
        case ValueKind.TEXT:
            return node.value
    return json.loads(str(node.value))


@given(JSON_DOCUMENTS.filter(lambda document: isinstance(document, (dict, list)) and bool(document)), st.data())
def test_the_beginning_of_json_is_a_part_of_its_tree(document: object, draw: st.DataObject) -> None:
    data = json.dumps(document).encode()
    found = decode(data[: draw.draw(st.integers(1, len(data) - 1))], is_whole=False)
    assert found.chain == ("JSON",)
    assert found.truncated
    whole = {row.path: row.node for row in outline(decode(data).root)}
    for row in outline(found.root):
        kept = whole[row.path]
        if not row.node.is_cut:
            assert (row.node.kind, row.node.value) == (kept.kind, kept.value)


@pytest.mark.parametrize(
    "text",
    [
        b"{a: 1}", b"[1 2]", b'{"a" 1}', b'{"a": 1} x', b"[01]", b"[", b'{"a":',
    ],
)  # fmt: skip
def test_what_is_not_quite_json_is_text(text: bytes) -> None:
    assert decode(text).chain == ("text",)


def test_json_that_is_damaged_is_shown_up_to_the_damage() -> None:
    found = decode(b'{"a": 1, "b": oops}', choose="JSON")
    assert found.form is ValueForm.TREE
    assert found.truncated
    assert found.root.is_cut
    assert [child.value for child in found.root.children] == ["1"]
    assert found.notes == ("damaged at byte 14: it has 'o' where a value should be",)
