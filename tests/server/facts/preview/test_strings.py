from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.facts.preview.strings import (
    is_text,
    may_be_bitmap,
    read_hyperloglog,
    set_bits,
    starts_like_json,
)
from rtui.values.server_encodings import DENSE_BYTES


@given(st.binary())
def test_only_objects_and_arrays_start_like_json(data: bytes) -> None:
    assert starts_like_json(data) == (data.lstrip(b" \t\r\n")[:1] in (b"{", b"["))


@given(st.text(st.characters(exclude_categories=["C"])), st.integers(0, 300), st.integers(0, 300))
def test_a_window_of_text_is_text_wherever_it_is_cut(text: str, start: int, size: int) -> None:
    data = text.encode()
    assert is_text(data[start : start + size], cut_before=start > 0, cut_after=True)


def test_a_character_cut_without_a_mark_is_not_text() -> None:
    assert not is_text("é".encode()[:1])
    assert not is_text("é".encode()[1:])


@pytest.mark.parametrize("data", [b"\0\0\0\1", b"\x80abc", b"\xff" * 8, bytes(range(256)), b"\x1f\x8b\x08\0"])
def test_bytes_are_not_text(data: bytes) -> None:
    assert not is_text(data, cut_after=True)


def test_logs_with_colours_and_line_breaks_are_text() -> None:
    assert is_text(b"\x1b[31mred\x1b[0m\r\n\tnext")


def test_the_header_of_a_hyperloglog_tells_its_count() -> None:
    head = b"HYLL\1\0\0\0" + (1234).to_bytes(8, "little")
    assert read_hyperloglog(head, 100) == (b"sparse", 1234)


def test_a_stale_count_is_none() -> None:
    head = b"HYLL\0\0\0\0" + (1234).to_bytes(7, "little") + b"\x80"
    assert read_hyperloglog(head, DENSE_BYTES) == (b"dense", None)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"", 0),
        (b"HYLL", 4),
        (b"HYLL\2" + bytes(11), 100),
        (b"HYLL\0" + bytes(11), 100),
        (b"HYLX\1" + bytes(11), 100),
        (b"HYLL likes you!!", 16),
    ],
)
def test_what_only_begins_alike_is_no_hyperloglog(head: bytes, size: int) -> None:
    assert read_hyperloglog(head, size) is None


@given(st.binary(), st.integers(0, 1000))
def test_set_bits_are_those_of_the_number(window: bytes, offset: int) -> None:
    bits = list(set_bits(window, offset))
    assert len(bits) == sum(byte.bit_count() for byte in window)
    for bit in bits:
        assert window[bit // 8 - offset] >> (7 - bit % 8) & 1


def test_sparse_and_nearly_full_bits_may_be_a_bitmap() -> None:
    assert may_be_bitmap(b"\x00\x40\x00\x00\x01\x00")
    assert may_be_bitmap(b"\xff\xfe\xff\xff")
    assert not may_be_bitmap(b"")
    assert not may_be_bitmap(b"plain text")
    assert not may_be_bitmap(bytes(range(256)))
