"""The hash tag that would let keys share a slot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.shared_slot import common_tag
from rtui.keyspace.slots import find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.segments import Separators

SPLIT = Separators()
SEGMENT = st.sampled_from([b"user", b"cart", b"42", b"7", b"", b"{42}", b"{", b"}", b"{}", b"deadbeef1", b"\xff9"])
NAME = st.lists(SEGMENT, min_size=1, max_size=4).map(b":".join) | st.binary(max_size=8)


def test_the_longest_identifier_in_all_names_is_the_tag() -> None:
    found = common_tag([b"user:42:profile", b"cart:42"], SPLIT)
    assert found is not None
    assert (found.tag, found.names) == (b"42", (b"user:{42}:profile", b"cart:{42}"))
    longest = common_tag([b"7:shop:1234:a", b"1234:7:b"], SPLIT)
    assert longest is not None
    assert longest.names == (b"7:shop:{1234}:a", b"{1234}:7:b")


def test_a_name_that_has_the_tag_already_stays() -> None:
    found = common_tag([b"user:{42}:profile", b"cart:42", b"42"], SPLIT)
    assert found is not None
    assert found.names == (b"user:{42}:profile", b"cart:{42}", b"42")
    words = common_tag([b"{shop}:a", b"shop:b"], SPLIT)
    assert words is not None
    assert words.tag == b"shop"


@pytest.mark.parametrize(
    "names",
    [
        [b"user:42", b"cart:43"],
        [b"shop:user", b"shop:cart"],
        [b"{a}:42", b"cart:42"],  # braces before it decide
        [],
    ],
)
def test_without_a_common_identifier_there_is_no_tag(names: list[bytes]) -> None:
    assert common_tag(names, SPLIT) is None


def test_segments_are_those_of_the_separators() -> None:
    names = [b"user/42/profile", b"cart/42"]
    assert common_tag(names, SPLIT) is None
    found = common_tag(names, Separators((b"/",)))
    assert found is not None
    assert found.names == (b"user/{42}/profile", b"cart/{42}")


@given(st.lists(NAME, min_size=1, max_size=4))
def test_a_tag_puts_all_names_into_one_slot_and_adds_nothing_but_its_braces(names: list[bytes]) -> None:
    found = common_tag(names, SPLIT)
    if found is None:
        return
    assert {key_slot(name) for name in found.names} == {found.slot}
    for name, tagged in zip(names, found.names, strict=True):
        assert hashed_bytes(tagged) == found.tag
        if tagged != name:
            tag = find_tag(tagged)[1]
            assert tag is not None
            assert tagged[: tag.start] + found.tag + tagged[tag.end :] == name
