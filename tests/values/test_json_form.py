"""A decoded tree, or a part of it, as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.values import Kind, Node, decode, drop_unfinished, node_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


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
    name = Node(Kind.NUMBER, "1")
    root = Node(Kind.MAP, children=[Node(Kind.BYTES, b"\xff", name=name), Node(Kind.CONSTANT, "undefined", name=name)])
    assert node_json(root) == '{\n  "1": {"base64": "/w=="},\n  "1": "undefined"\n}'
    assert node_json(Node(Kind.LIST, children=[Node(Kind.NUMBER, "0x10"), Node(Kind.NUMBER, "1e400")])) == (
        '[\n  "0x10",\n  1e400\n]'
    )


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
