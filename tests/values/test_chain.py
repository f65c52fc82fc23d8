"""Which decoders are chosen, one after another, and what is left."""

from __future__ import annotations

import base64
import gzip
import json
import zlib

import pytest

from rtui.values import UnknownDecoderError, ValueForm, ValueKind, alternatives, decode, decoder_names, outline

DOCUMENT = {"id": 7, "names": ["Ada", "Grace"], "price": 1.5, "gone": None}
JSON = json.dumps(DOCUMENT).encode()


@pytest.mark.parametrize(
    ("data", "chain"),
    [
        (JSON, ("JSON",)),
        (gzip.compress(JSON, mtime=0), ("gzip", "JSON")),
        (zlib.compress(JSON), ("zlib", "JSON")),
        (base64.b64encode(gzip.compress(JSON, mtime=0)), ("base64", "gzip", "JSON")),
        (base64.urlsafe_b64encode(b"\xff\xfe" + JSON), ("text",)),
        (base64.b64encode(base64.b64encode(JSON)), ("base64", "base64", "JSON")),
        (b"aGVsbG8gd29ybGQ=", ("base64", "text")),
        (b"administrator123", ("text",)),
        (b"1700000000", ("number",)),
        (b"", ("text",)),
        (b"\x00\x01\x02\xff", ("hex",)),
        ("Grüße".encode(), ("text",)),
    ],
)
def test_a_chain_follows_from_the_bytes(data: bytes, chain: tuple[str, ...]) -> None:
    found = decode(data)
    assert found.chain == chain
    assert not found.truncated


def test_the_innermost_bytes_are_kept() -> None:
    assert decode(base64.b64encode(gzip.compress(JSON, mtime=0))).data == JSON


def test_json_keeps_numbers_and_repeated_members_as_they_are() -> None:
    root = decode(b'{"a": 1.10, "a": 1e400, "b": 123456789012345678901234567890}').root
    assert [(node.name and node.name.value, node.value) for node in root.children] == [
        ("a", "1.10"),
        ("a", "1e400"),
        ("b", "123456789012345678901234567890"),
    ]


def test_the_beginning_of_a_document_is_shown_as_such() -> None:
    found = decode(b'{"a": [1, 2, {"b": "long te', is_whole=False)
    assert found.truncated
    rows = [(row.depth, row.node.kind, row.node.value) for row in outline(found.root)]
    assert rows == [
        (0, ValueKind.MAP, ""),
        (1, ValueKind.LIST, ""),
        (2, ValueKind.NUMBER, "1"),
        (2, ValueKind.NUMBER, "2"),
        (2, ValueKind.MAP, ""),
        (3, ValueKind.TEXT, "long te"),
    ]


def test_the_beginning_of_a_stream_gives_the_beginning_of_its_content() -> None:
    document = json.dumps([{"id": at, "name": f"user {at * 7919}"} for at in range(2_000)]).encode()
    found = decode(gzip.compress(document, mtime=0)[:4_096], is_whole=False)
    assert found.chain == ("gzip", "JSON")
    assert found.truncated
    assert document.startswith(found.data)
    assert len(found.data) > 4_096


def test_a_decoder_can_be_chosen() -> None:
    data = base64.b64encode(gzip.compress(JSON, mtime=0))
    assert decode(data, choose="hex").form is ValueForm.HEX
    assert decode(data, choose="base64 › hex").chain == ("base64", "hex")
    assert decode(data, choose="base64").chain == ("base64", "gzip", "JSON")
    assert decode(JSON, choose="gzip").form is ValueForm.HEX
    assert decode(JSON, choose="gzip").notes


def test_a_name_that_no_decoder_has_is_refused() -> None:
    with pytest.raises(UnknownDecoderError, match="nonsense"):
        decode(b"", choose="nonsense")


def test_alternatives_begin_with_what_was_found_and_can_all_be_chosen() -> None:
    data = base64.b64encode(gzip.compress(JSON, mtime=0))
    names = alternatives(data)
    assert names[0] == "base64 › gzip › JSON"
    assert {"base64 › gzip › text", "base64 › hex", "text", "hex"} <= set(names)
    assert [decode(data, choose=name).title for name in names] == list(names)


def test_every_decoder_can_be_chosen_for_any_bytes() -> None:
    for name in decoder_names():
        assert decode(b"\x01\x02 anything \xff", choose=name).chain[0] == name


def test_an_outline_folds_and_sorts() -> None:
    root = decode(b'{"b": [1, 2], "a": {"y": 1, "x": 2}}').root
    rows = list(outline(root, folded=lambda path: path == (0,), by_name=True))
    assert [row.path for row in rows] == [(), (1,), (1, 1), (1, 0), (0,)]
    assert [row.is_folded for row in rows] == [False, False, False, False, True]
    rows = list(outline(root, by_name=True, is_reversed=True))
    assert [row.path for row in rows] == [(), (0,), (0, 0), (0, 1), (1,), (1, 0), (1, 1)]


def test_dates_are_hints_only_where_they_are_plausible() -> None:
    assert decode(b"1700000000").notes == ("as seconds since 1970: 2023-11-14 22:13:20 UTC",)
    assert decode(b"1700000000123").notes == ("as milliseconds since 1970: 2023-11-14 22:13:20.123 UTC",)
    assert decode(b"12345").notes == ()
