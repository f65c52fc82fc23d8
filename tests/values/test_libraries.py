"""What the real libraries write is read as they mean it, and what servers keep is computed as they do it."""

from __future__ import annotations

import bz2
import datetime
import gzip
import lzma
import math
import struct
import time
import zlib
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import brotli
import bson
import cbor2
import cramjam
import lz4.frame
import msgpack
import pytest
from backports import zstd
from google.protobuf import any_pb2, struct_pb2, timestamp_pb2, type_pb2
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import DecodingLimits, ValueKind, ValueNode, alternatives, decode, outline
from rtui.values.server_encodings import DENSE_BYTES, HEADER_BYTES, Likeness, estimate, geo_likeness, longitude_latitude
from tests.servers import Server

WORDS = b" ".join(b"word%d" % (at * at * 7919 % 99_991) for at in range(5_000))

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "zstd": zstd.compress,
    "LZ4": lz4.frame.compress,
    "brotli": brotli.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress(data)),
    "snappy block": lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


@cache
def packed_words(name: str) -> bytes:
    return COMPRESSORS[name](WORDS)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_what_was_compressed_is_recognised(name: str) -> None:
    found = decode(COMPRESSORS[name](WORDS))
    assert found.chain == (name, "text")
    assert found.data == WORDS
    assert not found.truncated


@pytest.mark.parametrize("name", COMPRESSORS)
@given(data=st.binary(max_size=2_000))
def test_any_bytes_come_back(name: str, data: bytes) -> None:
    found = decode(COMPRESSORS[name](data), choose=f"{name} › hex")
    assert found.data == data
    assert not found.truncated


@pytest.mark.parametrize("name", COMPRESSORS)
@given(cut=st.integers(1, 4_000))
def test_the_beginning_gives_a_beginning(name: str, cut: int) -> None:
    packed = packed_words(name)
    found = decode(packed[: min(cut, len(packed) - 1)], choose=name, is_whole=False)
    assert found.truncated
    assert WORDS.startswith(found.data) or found.data == packed[: len(found.data)]


@pytest.mark.parametrize("name", ["gzip", "zlib", "snappy", "snappy block"])
def test_half_of_it_gives_much_of_its_content(name: str) -> None:
    packed = packed_words(name)
    found = decode(packed[: len(packed) // 2], is_whole=False)
    assert found.chain[0] == name
    assert len(found.data) > len(WORDS) // 4


@pytest.mark.parametrize("name", ["gzip", "zstd", "LZ4", "bzip2", "xz"])
def test_streams_that_follow_one_another_are_joined(name: str) -> None:
    found = decode(COMPRESSORS[name](b"first and ") + COMPRESSORS[name](b"second"))
    assert found.data == b"first and second"
    assert not found.notes


@pytest.mark.parametrize("name", ["gzip", "zlib", "zstd", "LZ4", "bzip2", "xz"])
def test_what_follows_a_stream_is_said(name: str) -> None:
    found = decode(COMPRESSORS[name](WORDS) + b"more", choose=name)
    assert found.data == WORDS
    assert any("4 bytes follow" in note for note in found.notes)


def value_of(node: ValueNode) -> Any:
    """Return a tree as the values that it was written from."""
    match node.kind:
        case ValueKind.MAP:
            return {value_of(child.name): value_of(child) for child in node.children if child.name is not None}
        case ValueKind.LIST:
            return [value_of(child) for child in node.children]
        case ValueKind.CONSTANT:
            return {"null": None, "true": True, "false": False}[str(node.value)]
        case ValueKind.NUMBER:
            text = str(node.value)
            return float(text) if any(letter in text for letter in ".eni") else int(text)
    return node.value


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner), max_leaves=20)


@given(DOCUMENTS)
def test_msgpack(document: object) -> None:
    assert value_of(decode(msgpack.packb(document), choose="msgpack").root) == document


@given(DOCUMENTS)
def test_cbor(document: object) -> None:
    assert value_of(decode(cbor2.dumps(document), choose="CBOR").root) == document


@given(st.dictionaries(NAMES, DOCUMENTS))
def test_bson(document: dict[str, object]) -> None:
    found = decode(bson.encode(document))
    assert found.chain == ("BSON",)
    assert value_of(found.root) == document


@given(st.dictionaries(NAMES, DOCUMENTS, min_size=1))
def test_records_are_recognised(document: dict[str, object]) -> None:
    for name, data in (("msgpack", msgpack.packb(document)), ("CBOR", cbor2.dumps(document))):
        if len(data) >= 4:
            assert decode(data).chain == (name,)


@given(DOCUMENTS.map(lambda document: {"field": document, "more": "text"}), st.data())
def test_beginnings_of_records_give_a_part_of_the_tree(document: dict[str, object], draw: st.DataObject) -> None:
    for name, data in (
        ("msgpack", msgpack.packb(document)),
        ("CBOR", cbor2.dumps(document)),
        ("BSON", bson.encode(document)),
    ):
        found = decode(data[: draw.draw(st.integers(1, len(data) - 1))], choose=name, is_whole=False)
        assert found.truncated
        whole = decode(data, choose=name)
        assert sum(1 for _ in outline(found.root)) <= sum(1 for _ in outline(whole.root))


def test_dates_and_extensions_of_msgpack() -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    found = decode(msgpack.packb({"at": moment, "own": msgpack.ExtType(7, b"abc")}, datetime=True)).root
    assert [(child.value, child.type_name) for child in found.children] == [
        ("2026-01-02 03:04:05 UTC", "timestamp"),
        (b"abc", "extension 7"),
    ]


@pytest.mark.parametrize("length", [3, 8, 31, 32, 100, 129, 160, 191, 192, 255, 256, 3_000, 70_000])
def test_a_text_alone_is_msgpack_where_its_length_fits(length: int) -> None:
    text = ("Zoë reads pages " * 5_000)[: length - 1]
    data = msgpack.packb(text)
    found = decode(data)
    assert found.chain == ("msgpack",)
    assert found.root.value == text
    assert decode(zlib.compress(data)).chain == ("zlib", "msgpack")
    assert decode(data + b"\n").chain != ("msgpack",)


@pytest.mark.parametrize("first", "فقكلمنهوي")
def test_arabic_text_is_text_whatever_its_length(first: str) -> None:
    for words in ("مرحبا بكم ", "ي و "):
        for length in range(60, 110):
            assert decode((first + words * 20)[:length].encode()).chain == ("text",)


@pytest.mark.parametrize("text", ["£500", "¥12345", "©", "§ 1"])
def test_signs_of_latin_1_before_numbers_are_no_msgpack(text: str) -> None:
    assert decode(text.encode("latin-1")).chain != ("msgpack",)


# What msgpackr 2 has packed for Node.js with useRecords.
RECORDS = bytes.fromhex(
    "92d4724095a475736572a463617274a3766970a47365656ea5746f74616ca341646192d4724192a3736b75a16ea3412d300041a3412d3101c3c0cb402900000000000040a34164619241a3412d300041a3412d3101c3c0cb4029000000000000"
)


def test_records_of_msgpackr_are_maps() -> None:
    found = decode(RECORDS)
    assert found.chain == ("msgpack",)
    cart = [{"sku": "A-0", "n": 0}, {"sku": "A-1", "n": 1}]
    record = {"user": "Ada", "cart": cart, "vip": True, "seen": None, "total": 12.5}
    assert value_of(found.root) == [record, record]
    assert not found.truncated
    for length in range(len(RECORDS)):
        assert decode(RECORDS[:length], is_whole=False).truncated


@given(st.binary(max_size=60))
def test_what_follows_the_mark_of_a_record_may_be_anything(rest: bytes) -> None:
    for head in (b"\xd4r@", b"\x92\xd4r@\x91\xa1a\x01", b"\xd4r"):
        assert decode(head + rest, choose="msgpack").chain[0] == "msgpack"


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        cbor2.CBORTag(28, [1, 2]),
        cbor2.CBORTag(256, {"a": 1}),
        cbor2.CBORTag(32, "https://example.com/"),
    ],
)
def test_cbor_may_begin_with_a_tag(value: object) -> None:
    assert decode(cbor2.dumps(value)).chain == ("CBOR",)


def test_tags_and_pieces_of_cbor() -> None:
    data = cbor2.dumps({"tag": cbor2.CBORTag(4321, [1]), "set": {1, 2}, "bytes": b"x"})
    assert {child.type_name for child in decode(data).root.children} == {"tag 4321", "set", ""}
    pieces = decode(b"\xbf\x61a\x7f\x61x\x61y\xff\xff").root.children[0]
    assert [child.value for child in pieces.children] == ["x", "y"]


def test_types_of_bson() -> None:
    document = {
        "id": bson.ObjectId("507f1f77bcf86cd799439011"),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        "pattern": bson.Regex("a+", "i"),
        "code": bson.Code("x()", {"x": 1}),
        "big": bson.Int64(5),
        "exact": bson.Decimal128("1.5"),
    }
    root = decode(bson.encode(document)).root
    types = {str(child.name.value): child.type_name for child in root.children if child.name}
    assert types == {
        "id": "ObjectId",
        "at": "date",
        "pattern": "regular expression",
        "code": "code with scope",
        "big": "int64",
        "exact": "decimal128",
    }
    assert root.children[0].value == "507f1f77bcf86cd799439011"


def test_protobuf_shows_fields_by_their_numbers() -> None:
    message = struct_pb2.Struct()
    message.update({"name": "Ada", "age": 36.0, "tags": ["x", "y"]})
    found = decode(message.SerializeToString(deterministic=True))
    assert found.chain == ("protobuf",)
    texts = {row.node.value for row in outline(found.root) if row.node.kind is ValueKind.TEXT}
    assert {"name", "Ada", "age", "tags", "x", "y"} <= texts


def test_protobuf_by_hand_as_its_documentation_encodes_it() -> None:
    # protobuf.dev/programming-guides/encoding: a = 150; b = "testing"; c { a = 150 }
    data = b"\x08\x96\x01" + b"\x12\x07testing" + b"\x1a\x03\x08\x96\x01" + b"\x25" + struct.pack("<f", 1.5)
    root = decode(data, choose="protobuf").root
    assert [child.name.value for child in root.children if child.name] == ["1", "2", "3", "4"]
    assert [child.value for child in root.children[:2]] == ["150", "testing"]
    assert root.children[2].children[0].value == "150"
    assert root.children[3].type_name == "fixed32, as float 1.5"


@pytest.mark.parametrize(
    "message",
    [
        type_pb2.Field(kind=type_pb2.Field.TYPE_INT64, number=70_000, packed=True),
        type_pb2.Option(name="a", value=any_pb2.Any(value=bytes(range(128, 150)))),
        timestamp_pb2.Timestamp(seconds=1_767_323_045, nanos=999_999_999),
    ],
)
def test_small_messages_are_chosen_without_any_text(message: Message) -> None:
    assert decode(message.SerializeToString()).chain == ("protobuf",)


def test_fields_in_another_order_are_a_message_too() -> None:
    data = b"\x22\x08\x08\x07\x10\xac\x02\x18\x80\x01" + b"\x08\x2a" + b"\x12\x03Ada" + b"\x18\x90\x4e"
    assert decode(data).chain == ("protobuf",)


@pytest.mark.parametrize("data", [b"\x0a\x20" + 32 * b"x", b"\x08\x80\x80\x80\x80\x80\x80\x80\x01"])
def test_a_field_alone_is_offered(data: bytes) -> None:
    assert decode(data).chain in {("text",), ("hex",)}
    assert "protobuf" in alternatives(data)


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (("backports.zstd", "zstd"), ("lz4.frame", "LZ4"), ("cramjam", "snappy")):
        with monkeypatch.context() as patched:
            patched.setitem(__import__("sys").modules, module, None)
            if module == "backports.zstd":
                patched.delattr("backports.zstd", raising=False)
            if module == "lz4.frame":
                patched.delattr("lz4.frame", raising=False)
            packed = COMPRESSORS_KEPT[name]
            found = decode(packed)
        assert found.chain == (name,)
        assert found.data == packed
        assert found.notes == (f"{name}: install redis-rtui[decode] to read it",)


COMPRESSORS_KEPT = {name: COMPRESSORS[name](WORDS) for name in ("zstd", "LZ4", "snappy")}


def test_only_as_much_as_asked_for_comes_out() -> None:
    for name, compress in COMPRESSORS.items():
        found = decode(compress(bytes(1_000_000)), choose=f"{name} › hex", limits=DecodingLimits(output_bytes=1_000))
        assert 0 < len(found.data) <= 1_000, name
        assert found.truncated
        assert any("only the first" in note for note in found.notes), name


def test_not_a_number_is_a_number() -> None:
    root = decode(msgpack.packb({"x": math.nan, "y": math.inf})).root
    assert [child.value for child in root.children] == ["nan", "inf"]


PLACES = {
    "Palermo": (13.361389, 38.115556), "Montréal": (-73.567, 45.501), "New York": (-74.006, 40.713),
    "Nairobi": (36.817, -1.286), "Auckland": (174.763, -36.848), "Honolulu": (-157.858, 21.307),
    "Ushuaia": (-68.304, -54.801), "Longyearbyen": (15.635, 78.220), "Null Island": (0.0, 0.0),
    "a corner": (180.0, 85.05112878), "another": (-180.0, -85.05112878),
}  # fmt: skip


def test_places_are_those_of_the_server(server: Server) -> None:
    source = Random(5)
    places = PLACES | {str(at): (source.uniform(-180, 180), source.uniform(-85, 85)) for at in range(300)}
    with server.client() as client:
        client.geoadd("places", [part for name, place in places.items() for part in (*place, name)])
        scores = client.zrange("places", 0, -1, withscores=True)
        told = client.geopos("places", *(member for member, _ in scores))
    for (member, score), place in zip(scores, told, strict=True):
        assert longitude_latitude(score) == pytest.approx(place, abs=1e-12), member


@pytest.mark.parametrize("score", [-1, 0.5, (1 << 53) + 2, 1 << 54, float("inf"), float("nan"), float("-inf"), 1.5e300])
def test_other_scores_are_no_places(score: float) -> None:
    assert longitude_latitude(score) is None
    assert geo_likeness([score]) is Likeness.NO


NOW = time.time()


@pytest.mark.parametrize(
    "scores",
    [
        [], [0.0], [1.0, 2.0, 3.0], [NOW], [NOW * 1_000 // 1], [float(int(NOW)) * 1_000_000], [12.5, 1 << 50],
        [(1 << 51) + 1, -1.0], [(1 << 51) + 1, 7.0], [1 << 60, 1 << 61], [4e12],
        [float(int(NOW * 1_000)) * 1_000 + 1_000 * at for at in range(50)],
    ],
)  # fmt: skip
def test_what_other_sorted_sets_hold_is_no_geo_key(scores: list[float]) -> None:
    assert geo_likeness(scores) is Likeness.NO


def test_times_in_microseconds_are_possible_places_and_no_more() -> None:
    assert geo_likeness([1_790_000_000_123_457, 1_795_873_974_549_446]) is Likeness.POSSIBLE


def test_places_on_several_continents_are_a_geo_key(valkey: Server) -> None:
    with valkey.client() as client:
        client.geoadd("places", [part for name, place in list(PLACES.items())[:9] for part in (*place, name)])
        scores = [score for _, score in client.zrange("places", 0, -1, withscores=True)]
        client.geoadd("place", (13.361389, 38.115556, "Palermo"))
        alone = [score for _, score in client.zrange("place", 0, -1, withscores=True)]
    assert geo_likeness(scores) is Likeness.LIKELY
    assert geo_likeness(alone) is Likeness.LIKELY


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, 1_000, 5_000, 20_000])
def test_counts_are_those_of_the_server(server: Server, count: int) -> None:
    with server.client() as client:
        client.pfadd("h")
        for start in range(0, count, 1_000):
            client.pfadd("h", *(f"element {count}:{at}" for at in range(start, min(count, start + 1_000))))
        stale = client.get("h")
        assert isinstance(stale, bytes)
        assert estimate(stale) == client.pfcount("h")
        assert estimate(client.get("h")) == client.pfcount("h")


def test_both_ways_to_keep_registers_were_counted(valkey: Server) -> None:
    with valkey.client() as client:
        client.pfadd("sparse", *range(100))
        client.pfadd("dense", *range(5_000))
        sparse, dense = client.get("sparse"), client.get("dense")
    assert (sparse[4], dense[4], len(dense)) == (1, 0, DENSE_BYTES)


def test_registers_up_to_the_highest_value_are_counted(valkey: Server) -> None:
    """The server counts what is written into the registers, which no element would reach."""
    source = Random(11)
    for most in (1, 5, 20, 51):
        bits = sum(source.randint(0, most) << 6 * at for at in range(1 << 14))
        data = b"HYLL" + bytes(11) + b"\x80" + bits.to_bytes(DENSE_BYTES - HEADER_BYTES, "little")
        with valkey.client() as client:
            client.set("h", data)
            assert estimate(data) == client.pfcount("h")


@given(st.binary(max_size=100) | st.binary(max_size=100).map(lambda rest: b"HYLL\x01" + bytes(11) + rest))
def test_other_bytes_have_no_count(data: bytes) -> None:
    assert estimate(data) is None or len(data) > HEADER_BYTES


def test_a_part_has_no_count(valkey: Server) -> None:
    with valkey.client() as client:
        client.pfadd("sparse", *range(100))
        client.pfadd("dense", *range(5_000))
        for name in ("sparse", "dense"):
            data = client.get(name)
            assert estimate(data) is not None
            assert not any(estimate(data[:end]) for end in range(0, len(data), 37))
            assert estimate(data + b"\x80") is None
