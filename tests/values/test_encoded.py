"""Bytes written as text: base64, hexadecimal digits, JSON Web Tokens, UUIDs, and JSON with what may stand in it."""

from __future__ import annotations

import base64
import json
import uuid
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import ValueForm, ValueKind, ValueNode, decode, outline

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


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
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


@given(DOCUMENTS.filter(lambda document: isinstance(document, (dict, list)) and bool(document)), st.data())
def test_the_beginning_of_json_is_a_part_of_its_tree(document: object, draw: st.DataObject) -> None:
    data = json.dumps(document).encode()
    cut = draw.draw(st.integers(1, len(data) - 1))
    found = decode(data[:cut], is_whole=False)
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
