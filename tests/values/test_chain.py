"""Which decoders are chosen, one after another, those of a user's own, and values in one line."""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import zlib
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import cbor2
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import (
    Decoder,
    DecodingLimits,
    DecodingStep,
    UnknownDecoderError,
    ValueForm,
    ValueKind,
    ValueNode,
    alternatives,
    choices,
    decode,
    decoder_names,
    outline,
    plugins,
    summarise,
)
from tests.conftest import known
from tests.values.test_bounds import MARKS
from tests.values.test_samples import SAMPLES

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


MARK = b"ORDER:"


class Orders:
    """A decoder as a package would have it."""

    name = "orders"

    def sniff(self, data: bytes) -> float | None:
        return 1.0 if data.startswith(MARK) else None

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        number, state = data[len(MARK) :].split(b",")
        return {"number": int(number), "state": state.decode(), "lines": [None, True, 1.5, b"\xff"]}


class Unpacks(Orders):
    name = "unpacks"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        return gzip.decompress(data[len(MARK) :])


class Fails(Orders):
    name = "fails"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        raise KeyError("no such order \x1b[31m")


class FailsToSniff(Orders):
    name = "fails to sniff"

    def sniff(self, data: bytes) -> float | None:
        raise RecursionError("too deep")


class Large(Orders):
    name = "large"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        return bytes(10 * limits.output_bytes)


class Deep(Orders):
    name = "deep"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        inner: list[object] = []
        inner.append(inner)
        return [inner, *range(100_000)]


class Stepwise(Orders):
    name = "stepwise"

    def decode(self, data: bytes, limits: DecodingLimits) -> object:
        return DecodingStep(ValueNode(ValueKind.TEXT, "one"), ("a note",), truncated=True, form=ValueForm.TEXT)


class Shapeless:
    name = "shapeless"


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    def put(*classes: str) -> None:
        found = tuple(EntryPoint(name, f"{__name__}:{name}", plugins.GROUP) for name in classes)
        monkeypatch.setattr(plugins, "entry_points", lambda group: found if group == plugins.GROUP else ())
        plugins.plugin_formats.cache_clear()

    yield put
    plugins.plugin_formats.cache_clear()


DATA = MARK + b"7,paid"


def test_a_plugin_decodes_what_it_recognises(install: Install) -> None:
    install("Orders")
    found = decode(DATA)
    assert found.chain == ("orders",)
    assert [(child.name and child.name.value, child.kind, child.value) for child in found.root.children] == [
        ("number", ValueKind.NUMBER, "7"),
        ("state", ValueKind.TEXT, "paid"),
        ("lines", ValueKind.LIST, ""),
    ]
    assert decode(b"anything else").chain == ("text",)
    assert "orders" in decoder_names()
    assert alternatives(DATA)[0] == "orders"


def test_what_a_plugin_unpacks_is_decoded_further(install: Install) -> None:
    install("Unpacks")
    assert decode(MARK + gzip.compress(b'{"a": 1}', mtime=0)).chain == ("unpacks", "JSON")


def test_a_plugin_is_found_inside_of_other_layers(install: Install) -> None:
    install("Orders")
    assert decode(gzip.compress(DATA, mtime=0)).chain == ("gzip", "orders")


def test_a_failure_is_named_and_the_value_shown_without_the_plugin(install: Install) -> None:
    install("Fails")
    found = decode(DATA)
    assert found.chain == ("text",)
    assert found.notes == ("fails failed with KeyError: 'no such order \\x1b[31m'",)


def test_a_failure_to_recognise_is_named_once(install: Install) -> None:
    install("FailsToSniff")
    found = decode(gzip.compress(DATA, mtime=0))
    assert found.chain == ("gzip", "text")
    assert found.notes == ("fails to sniff failed with RecursionError: too deep",)


def test_a_plugin_that_was_chosen_and_fails_leaves_the_bytes(install: Install) -> None:
    install("Fails")
    found = decode(DATA, choose="fails")
    assert (found.chain, found.form, found.data) == (("fails",), ValueForm.HEX, DATA)
    assert found.notes


def test_what_a_plugin_returns_is_held_to_the_limits(install: Install) -> None:
    install("Large", "Deep")
    assert len(decode(DATA, choose="large › hex").data) == DecodingLimits().output_bytes
    found = decode(DATA, choose="deep")
    assert found.truncated
    assert sum(1 for _ in outline(found.root)) <= DecodingLimits().elements


def test_a_plugin_may_say_more_with_a_step(install: Install) -> None:
    install("Stepwise")
    found = decode(DATA)
    assert (found.root.value, found.notes, found.truncated, found.form) == ("one", ("a note",), True, ValueForm.TEXT)


@pytest.mark.parametrize("name", ["Shapeless", "Missing"])
def test_a_plugin_that_can_not_be_loaded_says_so_when_it_is_chosen(install: Install, name: str) -> None:
    install(name)
    assert decode(DATA).chain == ("text",)
    assert decode(DATA).notes == ()
    assert decode(DATA, choose=name).notes[0].startswith(f"{name} can't be loaded: ")


def test_the_class_has_the_shape_of_a_decoder() -> None:
    assert isinstance(Orders(), Decoder)


SUMMED_DOCUMENT = json.dumps({f"field {at}": at for at in range(12)}).encode()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"1536236969740", "1536236969740 › 2018-09-06 12:29:29.740 UTC"),
        (b"1700000000", "1700000000 › 2023-11-14 22:13:20 UTC"),
        (gzip.compress(SUMMED_DOCUMENT, mtime=0), "gzip › JSON {12}"),
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
    assert known(summarise(data)).text == text


@pytest.mark.parametrize(
    "data", [b"", b"ann", b"42", SUMMED_DOCUMENT, b'"ann"', b"\x00\x01\xff", b"a:1:{i:0;i:1;}", b"3.5"]
)
def test_what_says_it_itself_has_no_line(data: bytes) -> None:
    assert summarise(data) is None


def test_a_long_value_is_at_least() -> None:
    assert known(summarise(gzip.compress(json.dumps([0] * 3_000).encode(), mtime=0))).value == "[≥ 499]"
    assert known(summarise(msgpack.packb([{"a": 1}] * 3_000))).value == "[3,000]"


def test_a_decoder_may_be_chosen_for_a_row() -> None:
    found = known(summarise(SUMMED_DOCUMENT.hex().encode(), choose="hex digits"))
    assert found.text == "hex digits › JSON {12}"
    assert summarise(SUMMED_DOCUMENT, choose="gzip") is None


@given(st.binary(max_size=300) | st.builds(bytes.__add__, st.sampled_from(MARKS), st.binary(max_size=100)))
def test_any_bytes_have_a_short_line_or_none(data: bytes) -> None:
    found = summarise(data)
    assert found is None or 0 < len(found.text) < 1_000


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_have_a_line(name: str) -> None:
    found, decoded = summarise(SAMPLES[name]), decode(SAMPLES[name])
    if not SAMPLES[name].isascii():
        assert known(found).decoders.split(" › ")[0] == decoded.chain[0]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"words", SUMMED_DOCUMENT, gzip.compress(SUMMED_DOCUMENT, mtime=0), pickle.dumps(1), bytes(range(256)),
        b"\xff" * 40,
    ],
)  # fmt: skip
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
