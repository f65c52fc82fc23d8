"""Values in one line, and all decoders by name."""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import zlib

import cbor2
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import DecodingLimits, ValueForm, choices, decode, decoder_names, summarise
from tests.values.test_bounds import MARKS
from tests.values.test_samples import SAMPLES

DOCUMENT = json.dumps({f"field {at}": at for at in range(12)}).encode()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"1536236969740", "1536236969740 › 2018-09-06 12:29:29.740 UTC"),
        (b"1700000000", "1700000000 › 2023-11-14 22:13:20 UTC"),
        (gzip.compress(DOCUMENT, mtime=0), "gzip › JSON {12}"),
        (base64.b64encode(gzip.compress(b"a few words of text", mtime=0)), 'base64 › gzip "a few words of text"'),
        (msgpack.packb({"a": 1, "b": [1, 2]}), "msgpack {2}"),
        (b"eyJpZCI6MX0:1xWrby:-Re1wSKJ2kXWZSGuYGJC0hhB1N7EysjtJ-3L0R7CbzA", "signed base64 › JSON {1}"),
        (b"\xaejust some text", 'msgpack "just some text"'),
        (cbor2.dumps({"a": 1, "b": [1, 2], "c": None}), "CBOR {3}"),
        (zlib.compress(b"1700000000 " * 30), 'zlib "' + ("1700000000 " * 37)[:330] + '"'),
        (zlib.compress(b"x " * 3_000), 'zlib "' + "x " * 200 + '…"'),
        (b's:3:"ann";', 'PHP serialize "ann"'),
    ],
)  # fmt: skip
def test_a_value_in_one_line(data: bytes, text: str) -> None:
    found = summarise(data)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize("data", [b"", b"ann", b"42", DOCUMENT, b'"ann"', b"\x00\x01\xff", b"a:1:{i:0;i:1;}", b"3.5"])
def test_what_says_it_itself_has_no_line(data: bytes) -> None:
    assert summarise(data) is None


def test_a_long_value_is_at_least() -> None:
    found = summarise(gzip.compress(json.dumps([0] * 3_000).encode(), mtime=0))
    assert found is not None
    assert found.value == "[≥ 499]"
    whole = summarise(msgpack.packb([{"a": 1}] * 3_000))
    assert whole is not None
    assert whole.value == "[3,000]"


def test_a_decoder_may_be_chosen_for_a_row() -> None:
    found = summarise(DOCUMENT.hex().encode(), choose="hex digits")
    assert found is not None
    assert found.text == "hex digits › JSON {12}"
    assert summarise(DOCUMENT, choose="gzip") is None


@given(st.binary(max_size=300) | st.builds(bytes.__add__, st.sampled_from(MARKS), st.binary(max_size=100)))
def test_any_bytes_have_a_short_line_or_none(data: bytes) -> None:
    found = summarise(data)
    assert found is None or 0 < len(found.text) < 1_000


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_have_a_line(name: str) -> None:
    found, decoded = summarise(SAMPLES[name]), decode(SAMPLES[name])
    if not SAMPLES[name].isascii():
        assert found is not None
        assert found.decoders.split(" › ")[0] == decoded.chain[0]


@pytest.mark.parametrize(
    "data",
    [b"", b"words", DOCUMENT, gzip.compress(DOCUMENT, mtime=0), pickle.dumps(1), bytes(range(256)), b"\xff" * 40],
)
def test_every_decoder_can_be_chosen_by_name(data: bytes) -> None:
    found = choices(data)
    first = {name.split(" › ")[0] for name in found.fitting}
    assert not set(found.others) & first
    assert list(found.others) == sorted(found.others, key=str.casefold)
    assert {"deflate", "hex digits", "gzip", "protobuf", "JSON"} <= first | set(found.others)
    assert first | set(found.others) <= set(decoder_names())
    for name in found.others:
        decoded = decode(data, choose=name)
        assert decoded.chain[0] == name
        if decoded.has_failed:
            assert decoded.form is ValueForm.HEX
            assert decoded.notes[-1].startswith(name)
            assert decoded.data == data


def test_what_fits_has_not_failed() -> None:
    for data in SAMPLES.values():
        for name in choices(data).fitting:
            assert not decode(data, choose=name).has_failed, name


def test_a_limit_is_no_failure() -> None:
    found = decode(gzip.compress(bytes(5_000)), limits=DecodingLimits(output_bytes=1_000), choose="gzip")
    assert not found.has_failed
