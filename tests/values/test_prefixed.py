"""Compressed values without a mark, behind a few bytes; text in other encodings; signed values."""

from __future__ import annotations

import base64
import bz2
import gzip
import hmac
import json
import lzma
import pickle
import random
import struct
import zlib

import cramjam
import lz4.block
import lz4.frame
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import DecodingLimits, choices, decode, decoder_names
from rtui.values.chain import MAX_PREFIX
from rtui.values.plain import CHARSETS
from tests.values.test_bounds import SMALL, within
from tests.values.test_libraries import DOCUMENTS

DOCUMENT = {"id": 7, "names": ["Ada", "Grace", "Edsger"], "text": "words and more words, and words again", "gone": None}
JSON = json.dumps(DOCUMENT).encode()
WORDS = "Sie hören von uns, sobald die Lieferung eintrifft; bis dahin bitten wir um Geduld. ".encode() * 5


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


def lzf(data: bytes) -> bytes:
    """Compress as LZF: literal runs, and a repetition where the last 3 to 264 bytes of the window come again."""
    out, literals, at = bytearray(), bytearray(), 0
    while at < len(data):
        found = max(
            ((length, distance) for distance in range(1, min(at, 64) + 1) for length in (264, 33, 8, 3)
             if data[at : at + length] == (data[at - distance : at] * 264)[:length] and at + length <= len(data)),
            default=None,
        )  # fmt: skip
        if found is None:
            literals.append(data[at])
            at += 1
        if literals and (found or len(literals) == 32 or at == len(data)):
            out += bytes((len(literals) - 1,)) + literals
            literals.clear()
        if found:
            length, distance = found[0] - 2, found[1] - 1
            head = min(length, 7) << 5 | distance >> 8
            out += bytes((head, *((length - 7,) if length >= 7 else ()), distance & 0xFF))
            at += found[0]
    return bytes(out)


@pytest.mark.parametrize("content", [JSON, WORDS, pickle.dumps(DOCUMENT), b'user|a:1:{i:0;s:3:"abc";}' * 5])
@pytest.mark.parametrize(
    ("name", "compress"),
    [("deflate", raw_deflate), ("LZF", lzf), ("LZ4 block", lz4.block.compress)],
)  # fmt: skip
def test_what_has_no_mark_is_proved_by_its_content(name: str, compress: object, content: bytes) -> None:
    assert callable(compress)
    found = decode(compress(content))
    assert found.chain[0] == name
    assert found.chain[1:] == decode(content).chain
    assert not found.truncated


@given(DOCUMENTS.map(lambda one: {"a document": one, "b": "text"}))
def test_documents_in_raw_deflate_are_recognised(document: dict[str, object]) -> None:
    data = json.dumps(document, default=str).encode()
    packed = raw_deflate(data)
    chain = ("deflate", "JSON, nearly" if b"Infinity" in data else "JSON")
    assert decode(packed).chain in {chain, ("deflate", "JSON")}
    by_php = zlib.compressobj(1, wbits=-15)
    assert decode(by_php.compress(data) + by_php.flush()).chain == decode(packed).chain


@given(st.binary(max_size=500))
def test_any_bytes_come_back(data: bytes) -> None:
    for name, packed in (("deflate", raw_deflate(data)), ("LZF", lzf(data))):
        assert decode(packed, choose=f"{name} › hex").data == data
    if data:
        assert decode(lz4.block.compress(data), choose="LZ4 block › hex").data == data


def test_the_beginning_of_deflate_is_recognised() -> None:
    data = json.dumps([{"id": at, "name": f"user {at * 7919}"} for at in range(2_000)]).encode()
    found = decode(raw_deflate(data)[:4_096], is_whole=False)
    assert found.chain == ("deflate", "JSON")
    assert data.startswith(found.data)


COMPRESSORS = {
    "gzip": lambda data: gzip.compress(data, mtime=0), "zlib": zlib.compress, "zstd": zstd.compress,
    "LZ4": lz4.frame.compress, "bzip2": bz2.compress, "xz": lzma.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress(data)),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize(
    "prefix", [b"\x01", b"v2", b"\x00\x00\x01\xf4", b"C:1|", b"\xff\xfe\xfd\xfc\xfb\xfa\xf9", b"0123456789abcdef"]
)
def test_what_is_compressed_behind_a_few_bytes_is_found(name: str, prefix: bytes) -> None:
    for content in (JSON, WORDS):
        found = decode(prefix + COMPRESSORS[name](content))
        plural = "" if len(prefix) == 1 else "s"
        assert found.chain == (f"after {len(prefix)} byte{plural}", name, decode(content).chain[-1])
        assert found.data == content
        shown = prefix.decode() if prefix.isascii() and prefix.isalnum() else prefix.hex(" ")
        assert f"before it: {shown}" in found.notes or prefix == b"C:1|"
        assert decode(prefix + COMPRESSORS[name](content), choose=found.title).chain == found.chain


def test_serialised_values_behind_a_few_bytes_are_found() -> None:
    assert decode(b"\x00\x2a" + pickle.dumps(DOCUMENT)).chain == ("after 2 bytes", "pickle")
    assert decode(b"\x00\x04\x08{\x06:\x06ai\x06").chain == ("after 1 byte", "Ruby Marshal")


def test_a_long_prefix_is_not_searched_through() -> None:
    assert decode(bytes(range(200, 200 + MAX_PREFIX + 1)) + zlib.compress(JSON)).chain == ("hex",)


@pytest.mark.slow
def test_random_bytes_are_hardly_ever_compressed_or_behind_a_prefix() -> None:
    source = random.Random(17)
    for length in (8, 12, 24, 100, 1_000):
        for is_whole in (True, False):
            wrong = [
                found.chain
                for _ in range(2_000)
                if (found := decode(source.randbytes(length), is_whole=is_whole)).chain[0]
                in {"deflate", "LZF", "LZ4 block", "Magento", "Rails cache", "UTF-16"}
                or found.chain[0].startswith("after")
            ]
            assert len(wrong) <= 2, wrong


@pytest.mark.parametrize("before", ["{}:\x1f\x8b", ":{}:", ":{}:\x1f\x8b"])
@pytest.mark.parametrize(
    ("letters", "layer", "compress"),
    [
        ("gz", "zlib", zlib.compress),
        ("sn", "snappy block", lambda data: bytes(cramjam.snappy.compress_raw(data))),
        ("lz", "LZF", lzf),
        ("l4", "LZ4 block", lz4.block.compress),
        ("zs", "zstd", zstd.compress),
    ],
)  # fmt: skip
def test_marks_of_magento(before: str, letters: str, layer: str, compress: object) -> None:
    assert callable(compress)
    for content in (JSON, WORDS):
        found = decode(before.format(letters).encode("latin-1") + compress(content))
        assert found.chain == ("Magento", layer, decode(content).chain[-1])
        assert found.data == content


@pytest.mark.parametrize("text", [b"gz:words", b":gz: words", b"sn:1:2:3", b"a:gz:", b"lz:"])
def test_text_with_such_letters_is_text(text: bytes) -> None:
    assert decode(text).chain == ("text",)


@pytest.mark.parametrize(
    ("kind", "version", "payload", "chain", "note"),
    [
        (0x81, b"", zlib.compress(b"\x04\x08{\x06:\x06ai\x06"), ("zlib", "Ruby Marshal"), "never expires, holds"),
        (0x01, b"v42", b"\x04\x08{\x06:\x06ai\x06", ("Ruby Marshal",), "never expires, version v42"),
        (0x02, b"", "Grüße".encode(), ("text",), "holds text"),
        (0x82, b"", zlib.compress(WORDS), ("zlib", "text"), "holds text"),
    ],
)  # fmt: skip
def test_entries_of_the_cache_of_rails(
    kind: int, version: bytes, payload: bytes, chain: tuple[str, ...], note: str
) -> None:
    found = decode(b"\x00\x11" + struct.pack("<Bdi", kind, -1.0, len(version) or -1) + version + payload)
    assert found.chain == ("Rails cache", *chain)
    assert note in found.notes[0]
    soon = decode(b"\x00\x11" + struct.pack("<Bdi", kind, 1.7e9, len(version) or -1) + version + payload)
    assert "expires at 2023-11-14 22:13:20 UTC" in soon.notes[0]


@pytest.mark.parametrize(
    ("payload", "chain"),
    [
        (pickle.dumps(DOCUMENT), ("pickle",)),
        (JSON, ("JSON",)),
        (zlib.compress(JSON), ("zlib", "JSON")),
        (b"a|b", ("text",)),
    ],
)
def test_entries_of_dogpile_cache(payload: bytes, chain: tuple[str, ...]) -> None:
    # The header is as dogpile.cache 1.5.0 has written it.
    found = decode(b'{"ct": 1795769239.2937062, "v": 2}|' + payload)
    assert found.chain == ("dogpile.cache", *chain)
    assert found.data == decode(payload).data
    assert found.notes[0] == "dogpile.cache entry: created at 2026-11-27 08:47:19.293 UTC, version 2"


@pytest.mark.parametrize("text", [b'{"ct": 1, "v": 2}', b'{"ct": "x", "v": 2}|abc', b'{"v": 2}|abc'])
def test_json_with_such_members_is_no_entry_of_dogpile_cache(text: bytes) -> None:
    assert decode(text).chain[0] != "dogpile.cache"


def test_entries_of_the_cache_of_older_rails() -> None:
    entry = b"\x04\x08[\x07i\x06i\x07"
    assert decode(b"\x00" + entry).chain == ("after 1 byte", "Ruby Marshal")
    assert decode(b"\x01" + zlib.compress(entry)).chain == ("after 1 byte", "zlib", "Ruby Marshal")


SAMPLES = {
    "UTF-16 LE": "naïve 中文 text", "UTF-16 BE": "naïve 中文 text", "GB18030 (GBK)": '{"名称": "价格 12 元"}',
    "Big5": "訂單編號：一二三", "Shift_JIS": "注文番号テスト", "EUC-JP": "注文番号テスト", "EUC-KR": "주문 번호",
    "Latin-1": "café à la crème", "Windows-1252 (Latin-1)": "“naïve” – café €", "Latin-2": "zażółć gęślą",
    "Windows-1250": "zażółć gęślą", "Windows-1251": "Привет, мир", "KOI8-R": "Привет, мир", "Windows-1253": "Καλημέρα",
    "Windows-1254": "İstanbul ığüş", "Windows-1255": "שלום", "Windows-1256": "مرحبا", "IBM437": "Ünïcödé",
    "TIS-620": "สวัสดี",
}  # fmt: skip


def test_there_is_a_sample_of_each_encoding() -> None:
    assert set(SAMPLES) == set(CHARSETS)


@pytest.mark.parametrize("name", CHARSETS)
def test_text_in_another_encoding_is_read_by_choice(name: str) -> None:
    data = SAMPLES[name].encode(CHARSETS[name])
    assert name not in decode(data).chain
    assert name in choices(data).others
    found = decode(data, choose=name)
    assert found.data.decode() == SAMPLES[name]
    assert found.chain == (name, *decode(SAMPLES[name].encode()).chain)
    assert decode(data[:-1], choose=name, is_whole=False).truncated


def test_encodings_are_offered_only_where_each_byte_means_something() -> None:
    for data in (b"plain", "Grüße".encode(), JSON, b"\x00\x00\x01\x00", zlib.compress(JSON)):
        assert not set(choices(data).others) & set(CHARSETS), data
    assert decode(b"\xff\xff\xff", choose="GB18030 (GBK)").has_failed
    assert not {"after 1 byte", "after 2 bytes"} & set(choices(b"\x00\x01").others)
    assert "after 2 bytes" in decoder_names()


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=2))
def test_utf_16_with_its_mark_is_recognised(text: str) -> None:
    for mark, charset in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        assert decode(mark + text.encode(charset)).chain[0] == "UTF-16"
        assert decode(mark + text.encode(charset), choose="UTF-16 › text").root.value == text


@given(st.sampled_from(sorted(CHARSETS)), st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(name: str, data: bytes, is_whole: bool) -> None:
    found = decode(data, choose=f"{name} › text", is_whole=is_whole)
    if not found.has_failed:
        again = found.data.decode("utf-8", "surrogatepass").encode(CHARSETS[name], "surrogatepass")
        assert again[:1] == data[:1] or not again


MAGIC = b"\xff\x06\x00\x00S2sTwO"


def chunk(kind: int, content: bytes) -> bytes:
    return bytes((kind,)) + (len(content) + 4).to_bytes(3, "little") + bytes(4) + content


def varint(number: int) -> bytes:
    return bytes((number,)) if number < 128 else bytes((number & 127 | 128,)) + varint(number >> 7)


@given(st.lists(st.binary(max_size=300) | st.sampled_from([b"words " * 900, bytes(5_000)]), max_size=4))
def test_blocks_of_snappy_are_blocks_of_s2(pieces: list[bytes]) -> None:
    data = MAGIC + b"".join(
        chunk(0, bytes(cramjam.snappy.compress_raw(one))) if at % 2 else chunk(1, one) for at, one in enumerate(pieces)
    )
    found = decode(data, choose="S2 › hex")
    assert found.data == b"".join(pieces)
    assert not found.truncated


@pytest.mark.parametrize(
    ("repeat", "length"),
    [
        (b"\x01\x00", 4), (b"\x11\x00", 8), (b"\x15\x00\x05", 13), (b"\x19\x00\x01\x00", 261),
        (b"\x1d\x00\x02\x00\x00", 65_542),
    ],
)  # fmt: skip
def test_repetitions_from_the_last_distance(repeat: bytes, length: int) -> None:
    first = b"\x08abc" + b"\x01\x03"  # three literal bytes, then four from a distance of 3
    expected = b"abcabca" + (b"bca" * length)[:length]
    block = varint(len(expected)) + first + repeat
    assert decode(MAGIC + chunk(0, block)).chain[0] == "S2"
    assert decode(MAGIC + chunk(0, block), choose="S2 › hex").data == expected
    few = decode(MAGIC + chunk(0, block), choose="S2 › hex", limits=DecodingLimits(output_bytes=9))
    assert few.data == expected[:9]
    assert few.truncated


def test_a_repetition_without_a_distance_is_damage() -> None:
    assert decode(MAGIC + chunk(0, b"\x04\x01\x00"), choose="S2").has_failed


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_behind_the_mark(data: bytes, is_whole: bool) -> None:
    for one in (data, chunk(0, data)):
        assert within(decode(MAGIC + one, choose="S2", limits=SMALL, is_whole=is_whole), SMALL)


def test_the_beginning_gives_a_beginning() -> None:
    words = b" ".join(b"word%d" % (at * at * 7919 % 99_991) for at in range(5_000))
    data = MAGIC + chunk(0, bytes(cramjam.snappy.compress_raw(words)))
    for cut in range(20, len(data), len(data) // 20):
        found = decode(data[:cut], is_whole=False)
        assert found.chain == ("S2", "text") or not found.data
        assert words.startswith(found.data)
        assert found.truncated


UNVERIFIED = "the signature is not verified: anyone may have written this"
KEY = b"key"

WRITTEN = {
    # Django 5.2.19: signing.dumps, with compress=True, Signer.sign_object, TimestampSigner.sign
    b"eyJpZCI6MX0:1xWrby:-Re1wSKJ2kXWZSGuYGJC0hhB1N7EysjtJ-3L0R7CbzA": "signed base64 › JSON",
    b".eJyrVirNTFGyMtVRik8sLcmILy1OLYpPSkzOTs0DCiulZCXmpefrJefnlRRlJumBlOhBZYv1fPNTUnOcoGprAdkWGtQ"
    b":1xWrby:zcKBGMpIn0dpBqKvezN_KzH1jLzOuCo0lNJvmPw6nzE": "signed base64 › zlib › JSON",
    b"eyJhIjpbMSwyLDNdfQ:H2TMYa0cXdJgnjCJ2CUfpc3MjYujtWgQKGEi_Ien0Y8": "signed base64 › JSON",
    b"my value:1xWrby:b--VBcrEaaTkmB7Bsq_X9-C1OjfadvUqu8lhaJiQIGs": "signed › text",
    # itsdangerous 2.2.0: URLSafeSerializer, TimestampSigner, Serializer, TimedSerializer
    b"MTIzNDU.sDeqAldoIY8KLunWIgAiz-r2TeQ": "signed base64 › number",
    b".eJyrVipRslLKyS9KzVUYOaRSLQCg21wH.kefX4pCQ2CnQocAdzqMoSYLTlk8": "signed base64 › zlib › JSON",
    b"my string.awlDlg.9xCi0BwhphTxNI3-xCpuPZrzTbI": "signed › text",
    b'{"user": "Ada", "vip": true}.fecEXIV29LRrmd76WuD3RQ56zdY': "signed › JSON",
    b'{"user": "Ada", "vip": true}.awlDlg.hGzcJuzWwxTs97C0vIk_-Y8kBO4': "signed › JSON",
    # Flask 3.1.3: the cookie of a session
    b"eyJhdCI6eyIgZCI6IkZyaSwgMjcgTm92IDIwMjYgMDg6NDc6MTggR01UIn0sInQiOiJ4IiwidHVwIjp7IiB0IjpbMSwyXX0sInVzZXIiOiJBZGEi"
    b"fQ.awlDlg.UMI8FRSAk1iWEY5GVBQOTcf7kMg": "signed base64 › JSON",
}


@pytest.mark.parametrize("data", WRITTEN)
def test_what_libraries_have_signed_is_read_and_said_to_be_unverified(data: bytes) -> None:
    found = decode(data)
    assert found.title == WRITTEN[data]
    assert found.notes[0] == UNVERIFIED
    has_time = b":1xWrby:" in data or b".awlDlg." in data
    assert ("signed at 2026-11-27 08:47:18 UTC" in found.notes) is has_time


def url_safe(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@pytest.mark.parametrize("digest", ["sha1", "sha224", "sha256", "sha384", "sha512"])
@given(value=st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8) | st.none(), min_size=1))
def test_signatures_of_all_lengths(digest: str, value: dict[str, object]) -> None:
    raw = json.dumps(value).encode()
    for payload, inner in ((url_safe(raw), ""), (b"." + url_safe(zlib.compress(raw)), "zlib › ")):
        signature = url_safe(hmac.digest(KEY, payload, digest))
        for separator in (b":", b"."):
            found = decode(payload + separator + signature)
            assert found.title == f"signed base64 › {inner}JSON"
            assert found.data == raw
        rails = base64.b64encode(raw) + b"--" + hmac.digest(KEY, payload, "sha1").hex().encode()
        assert decode(rails).data == raw


@pytest.mark.parametrize("text", ["\x7f" * 9, "\x85\u2028\x7f", "\x9f" * 40])
def test_control_characters_that_json_allows_are_signed_too(text: str) -> None:
    raw = json.dumps({text: text}, ensure_ascii=False).encode()
    signature = url_safe(hmac.digest(KEY, raw, "sha1"))
    assert decode(raw + b"." + signature).title == "signed › JSON"
    assert decode(url_safe(raw) + b"." + signature).title == "signed base64 › JSON"


def test_long_values_are_recognised_by_their_end() -> None:
    payload = url_safe(json.dumps({"rows": list(range(40_000))}).encode())
    found = decode(payload + b":1xWrby:" + url_safe(bytes(range(100, 132))))
    assert found.title == "signed base64 › JSON"


def test_pickles_are_read_and_not_run() -> None:
    payload = url_safe(pickle.dumps({"uid": 5}))
    found = decode(payload + b":" + url_safe(hmac.digest(KEY, payload, "sha256")))
    assert found.title == "signed base64 › pickle"


@pytest.mark.parametrize(
    "text",
    [
        b"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        b"registry.example.com/app@sha384:" + b"ab" * 32,
        b"ada:" + url_safe(bytes(range(100, 132))),
        b"ada@example.com." + url_safe(bytes(range(100, 120))),
        b"bundle.min." + url_safe(bytes(range(100, 120))),
        b"2026-11-27 10:00:00:" + url_safe(bytes(range(100, 132))),
        b"user:zzzzzz:" + url_safe(bytes(range(100, 132))),
        b"cHJvc2Ugb2YgYSBwZXJzb24:" + url_safe(bytes(range(100, 132))),
    ],
)
def test_names_and_tokens_that_look_alike_stay_text(text: bytes) -> None:
    assert decode(text).title == "text"


@given(st.binary(max_size=40), st.binary(max_size=70))
def test_no_bytes_make_it_fail(payload: bytes, signature: bytes) -> None:
    for separator in (b":", b".", b"--"):
        for data in (payload + separator + url_safe(signature), b"." + url_safe(payload) + separator + signature):
            for choice in ("signed", "signed base64"):
                assert decode(data, choose=choice).chain[0] == choice
