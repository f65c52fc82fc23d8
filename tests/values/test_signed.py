"""Values with a signature behind them: what libraries wrote is read, tokens that look alike are left as text."""

from __future__ import annotations

import base64
import hmac
import json
import pickle
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import decode

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
