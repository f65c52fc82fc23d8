"""The natural order of names: total, numbers by value, identifiers by their bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.segments import raw_java_name
from tests.keyspace.naive import naturally

ODD = st.lists(st.sampled_from(b"0019aZ:-_\0\x01\xc3\xff"), max_size=10).map(bytes)
LONG = st.tuples(st.integers(0, 300), st.integers(0, 10**400)).map(lambda one: b"0" * one[0] + b"%d" % one[1])
CROCKFORD = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26)
BASE62 = st.text("0123456789ABCDXYZabcdxyz", min_size=6, max_size=22).filter(lambda one: not one.isdigit())
HEX = st.text("0123456789abcdef", min_size=8, max_size=40).filter(lambda one: not one.isdigit())


@given(st.lists(ODD | LONG, unique=True))
def test_order_is_that_of_a_naive_model(names: list[bytes]) -> None:
    assert sorted(names, key=natural) == sorted(names, key=naturally)


@given(ODD | LONG | st.binary(max_size=12), ODD | LONG | st.binary(max_size=12))
def test_different_names_are_never_equal(one: bytes, other: bytes) -> None:
    assert (natural(one) == natural(other)) == (one == other)


@given(st.sampled_from([CROCKFORD, BASE62, HEX, st.uuids().map(str)]).flatmap(lambda one: st.lists(one, unique=True)))
def test_identifiers_are_in_the_order_of_their_bytes(identifiers: list[str]) -> None:
    names = [b"conv:" + one.encode() for one in identifiers]
    assert sorted(names, key=natural) == sorted(names)


def test_uuid_whose_groups_are_digits_is_no_number() -> None:
    names = [b"1234567f-0000-4000-8000-000000000000", b"12345678-0000-4000-8000-000000000000"]
    names += [b"02345678-9999-4000-8000-000000000000", b"ab345678-1000-4000-8000-000000000001"]
    assert sorted(names, key=natural) == sorted(names)


@pytest.mark.parametrize(
    "ascending",
    [
        (b"deploy:2", b"deploy:10", b"deploy:100"),
        (b"7", b"07", b"007", b"8"),
        (b"v10-1", b"v2-9", b"v2-10"),
        (b"1.9.0", b"1.10.0"),
        (b"2024-01-02T03:04:05Z", b"2024-01-12T03:04:05Z"),
        (b"node_2:a", b"node_10:a"),
        (b"1", b"2", b"0af", b"1e9"),
        (b"99999999999999999999", b"100000000000000000000"),
        (b"9" * 300, b"1" + b"0" * 300),
    ],
)
def test_is_ascending(ascending: tuple[bytes, ...]) -> None:
    for before, after in pairwise(ascending):
        assert natural(before) < natural(after)


@given(st.lists(ODD, unique=True))
def test_java_names_stand_behind_their_texts(texts: list[bytes]) -> None:
    names = [name for text in texts for name in (text, raw_java_name(text) or b"")]
    listed = sorted(names, key=natural)
    assert [name for name in listed if name in texts] == sorted(texts, key=natural)
    assert len({*map(natural, names)}) == len(names)
    assert all(natural(text) < natural(raw_java_name(text) or b"") for text in texts)
