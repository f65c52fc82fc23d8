"""The hash tag that would let keys share a slot, and what it does to the others of their kind, against those keys."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.document import CoverageKind
from rtui.analysis.report.shared_slot import common_tag, tag_spread
from rtui.keyspace.slots import SLOTS, find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.segments import Separators
from tests.analysis.report.test_namespaces import reported

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


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 6))
def test_the_fullest_slot_has_at_least_what_is_said(users: int, carts: int, parts: int) -> None:
    profiles = [
        b"user:%d:part%s" % (number, b"abcdef"[at : at + 1]) for number, at in product(range(users), range(parts))
    ]
    baskets = [b"cart:%d" % number for number in range(carts)]
    names = [profiles[0], baskets[0]]
    found = tag_spread(reported([*profiles, *baskets]).report, names, b"0")
    assert found is not None
    kind = [name for name in profiles if name.endswith(b"parta")] + baskets
    slots = Counter(key_slot(name.split(b":")[1]) for name in kind)
    assert found.keys == len(kind)
    assert slots.most_common(1)[0][1] / len(kind) >= found.fullest * (1 - 1e-9)
    assert found.ratio == found.fullest * SLOTS


def test_the_sentence_names_patterns_and_share() -> None:
    keys = [b"user:%d:%d" % (user, at) for user, at in product(range(5), range(40))]
    found = tag_spread(reported(keys).report, [b"user:1:7"], b"1")
    assert found is not None
    assert found.sentence == (
        "By the report 200 keys of user:{id}:{id} have 5 identifiers: "
        "the fullest slot would hold at least 20% of them, 3,277× the mean."
    )


@pytest.mark.parametrize("kind", [CoverageKind.EXACT, CoverageKind.PARTIAL])
def test_what_a_report_does_not_have_is_not_known(kind: CoverageKind) -> None:
    report = reported([b"user:%d" % number for number in range(9)], kind).report
    assert tag_spread(report, [b"user:1", b"cart:1"], b"1") is None
    assert tag_spread(report, [b"user:1"], b"user") is not None
    assert tag_spread(report, [b"user:1"], b"other") is None
