"""How often bytes are taken for what they are not."""

from __future__ import annotations

import random
import string
import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import decode

BY_SHAPE = frozenset({"text", "hex", "number"})
ROUNDS = 3_000

MIN_WINDOW = 12
"""Shorter beginnings of values don't occur: `{` alone is one of JSON."""


@given(st.text(string.ascii_letters, min_size=1, max_size=24))
def test_words_are_text(word: str) -> None:
    assert decode(word.encode()).chain == ("text",)


@given(
    st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=12), min_size=1, max_size=6),
    st.sampled_from(" -_.:/|,"),
)
def test_words_with_something_between_them_are_text(words: list[str], between: str) -> None:
    assert decode(between.join(words).encode()).chain == ("text",)


@given(st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_numbers_are_numbers(number: float) -> None:
    assert decode(repr(number).encode()).chain == ("number",)


@given(st.uuids())
def test_uuids_are_uuids(value: uuid.UUID) -> None:
    assert decode(str(value).encode()).chain == ("UUID",)
    assert decode(value.hex.encode()).chain in {("text",), ("number",)}


@pytest.mark.parametrize(
    "text",
    [
        b"true", b"OK", b"N;", b"PONG", b"user:42:profile", b"BM", b"BMW", b"GIF", b"GIF89a", b"x^2", b"x", b"ey",
        b"eyes", b"a:b", b"(none)", b"i:", b"https://example.com/a/b?c=d", b"2026-01-02T03:04:05Z", b"10.0.0.5:6379",
        b"a@b.example", b"deadbeefdeadbeefdeadbeef", b"d41d8cd98f00b204e9800998ecf8427e", b"ObjectId", b"RIFF", b"PK",
        b"Obj", b"[INFO] started", b"{user}", b"BZh", b"BZh9",
    ],
)  # fmt: skip
def test_usual_short_values_are_text(text: bytes) -> None:
    expected = "PHP serialize" if text == b"N;" else "text"
    assert decode(text).chain == (expected,)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 12, 16, 20, 32, 64, 256])
def test_random_bytes_are_hardly_ever_recognised(length: int) -> None:
    source = random.Random(length)
    for is_whole in (True, False) if length >= MIN_WINDOW else (True,):
        chains = [decode(source.randbytes(length), is_whole=is_whole).chain for _ in range(ROUNDS)]
        wrong = Counter(chain for chain in chains if not set(chain) <= BY_SHAPE)
        assert wrong.total() <= ROUNDS // 100, wrong


@pytest.mark.parametrize("is_whole", [True, False])
def test_random_bytes_are_hardly_ever_messages(is_whole: bool) -> None:
    source = random.Random(43)
    samples = [source.randbytes(source.randint(20, 200)) for _ in range(1_000)]
    chosen = sum("protobuf" in decode(data, is_whole=is_whole).chain for data in samples)
    assert chosen < len(samples) / 100


@pytest.mark.slow
def test_random_tokens_are_text() -> None:
    source = random.Random(7)
    for alphabet in (
        string.ascii_letters + string.digits,
        string.hexdigits.lower(),
        string.ascii_letters + string.digits + "-_",
    ):
        for length in (16, 20, 22, 24, 32, 40, 43, 64, 128):
            for _ in range(100):
                token = "".join(source.choices(alphabet, k=length)).encode()
                assert decode(token).chain in {("text",), ("number",)}
