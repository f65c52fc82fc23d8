from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.facts.answers import summary_of
from rtui.server.facts.preview.collections import previous_id
from rtui.server.facts.preview.strings import signature_of
from rtui.server.facts.preview.value_reader import Refused, cell, element_page, integer, items, mapping, pairs, score
from rtui.server.wire.errors import Reply

ID = st.integers(0, (1 << 64) - 1)


@given(st.dictionaries(st.binary(), st.binary()))
def test_a_map_is_read_in_every_shape(named: dict[bytes, bytes]) -> None:
    flat = [part for pair in named.items() for part in pair]
    assert dict(pairs(flat)) == named  # type: ignore[arg-type]
    assert dict(pairs([list(pair) for pair in named.items()])) == named
    assert dict(pairs(dict(named))) == named  # type: ignore[arg-type]


def test_what_is_not_a_map_has_nothing() -> None:
    assert mapping(None) == mapping(b"text") == mapping(7) == {}
    assert mapping([1, 2, b"name", 3]) == {b"name": 3}
    assert items(b"text") == []
    assert element_page([b"17", [b"a"]]) == (17, [b"a"])


@pytest.mark.parametrize(
    "reply",
    [None, b"text", 7, [], [b"0"], [b"0", b"a"], [b"-1", []], [b"7" * 5000, []], [b"%d" % (1 << 64), []], [None, []]],
)
def test_what_is_no_page_is_refused_and_not_an_empty_one(reply: Reply) -> None:
    with pytest.raises(Refused):
        element_page(reply)


@given(st.floats(allow_nan=False))
def test_scores_are_exact_as_text_and_as_numbers(number: float) -> None:
    for text in (b"%.17g" % number, repr(number).encode()):
        assert score(text) == number
    assert score(number) == number


def test_odd_scores() -> None:
    assert score(b"-inf") == -math.inf
    assert score(b"not a number") is None
    assert score(None) is None


def test_numbers_beyond_64_bits_with_a_sign_come_as_text() -> None:
    assert integer(b"18446744073709551614") == (1 << 64) - 2
    assert integer(7) == 7
    assert integer(b"x") is integer(None) is None


def test_cells_are_bytes_and_numbers_only() -> None:
    replies: list[Reply] = [b"a", 1, 1.5, None, [b"a"]]
    assert [cell(reply) for reply in replies] == [b"a", 1, 1.5, None, None]


def test_a_description_keeps_its_single_values_in_order() -> None:
    reply = [b"totalSamples", 100, b"labels", [[b"sensor", b"2"]], b"sourceKey", None, b"chunkType", b"compressed"]
    assert summary_of(reply) == (("totalSamples", 100), ("chunkType", b"compressed"))  # type: ignore[arg-type]


@given(ID, ID)
def test_the_id_before_is_the_next_smaller_one(time: int, sequence: int) -> None:
    milliseconds, _, number = previous_id(b"%d-%d" % (time, sequence)).partition(b"-")
    value = (time << 64) + sequence
    assert (int(milliseconds) << 64) + int(number) == max(value - 1, 0)


def test_known_beginnings_have_names() -> None:
    assert signature_of(b"\x1f\x8b\x08\x00rest") == "gzip"
    assert signature_of(b"\x80\x04\x95\x00") == "a Python pickle"
    assert signature_of(b"plain") is signature_of(b"") is None
