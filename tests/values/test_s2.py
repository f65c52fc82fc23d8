"""S2 in frames: what Snappy writes, and repetitions from the last distance."""

from __future__ import annotations

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values import Limits, decode
from tests.values.test_bounds import SMALL, within

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
    found = decode(MAGIC + chunk(0, block))
    assert found.chain[0] == "S2"
    assert decode(MAGIC + chunk(0, block), choose="S2 › hex").data == expected
    few = decode(MAGIC + chunk(0, block), choose="S2 › hex", limits=Limits(output_bytes=9))
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
