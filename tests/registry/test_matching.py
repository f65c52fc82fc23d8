"""The most specific pattern of a key, beside an expression for each pattern tried one after another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.registry.matching import NO_PATTERN, Matcher, ambiguities, common_key
from rtui.registry.patterns import ENUM, INT, IP, LONGEST_KEY, Pattern, Values, read_pattern
from tests.examples import examples
from tests.registry.strategies import SEPARATORS, keys, keys_of, naive, patterns

COLON = (b":",)


def read(*texts: str, separators: Sequence[bytes] = COLON, **values: Values) -> list[Pattern]:
    return [read_pattern(text, values, separators) for text in texts]


def winner(texts: Sequence[str], key: bytes, **values: Values) -> str | None:
    found = [read_pattern(text, values, COLON) for text in texts]
    index = Matcher(found, COLON).match(key)
    return None if index is None else found[index].text


@given(st.data())
@settings(max_examples=examples(120), deadline=None)
def test_it_finds_what_trying_every_pattern_finds(data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from(SEPARATORS))
    found = data.draw(st.lists(patterns(separators), max_size=8))
    drawn = data.draw(st.lists(st.one_of(keys(), *map(keys_of, found)), min_size=1, max_size=12))
    matcher = Matcher(found, separators)
    tried = [(index, naive(found[index])) for index in matcher.order]
    expected = [next((index for index, expression in tried if expression.fullmatch(key)), NO_PATTERN) for key in drawn]
    assert matcher.match_page(drawn) == expected
    assert [matcher.match(key) for key in drawn] == [None if one == NO_PATTERN else one for one in expected]


@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_the_values_of_a_key_make_the_key_again(data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from(SEPARATORS))
    pattern = data.draw(patterns(separators))
    key = data.draw(keys_of(pattern))
    fields = pattern.fields(key)
    assert (fields is not None) == pattern.matches(key) == (naive(pattern).fullmatch(key) is not None)
    if fields is not None and len(fields) == len(pattern.placeholders):
        assert pattern.filled(fields) == key


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_patterns_that_a_key_cannot_be_told_by_are_named_with_such_a_key(data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from(SEPARATORS[:3]))
    first, second = data.draw(patterns(separators)), data.draw(patterns(separators))
    example = common_key(first, second)
    if example is not None:
        assert naive(first).fullmatch(example)
        assert naive(second).fullmatch(example)
    # Where each segment is text, or one placeholder that does not span, every key that both have is found.
    plain = all(
        len(segment.parts) <= 1 and not segment.spans(separators)
        for pattern in (first, second)
        for segment in pattern.segments
    )
    if plain and example is None:
        for key in (data.draw(keys_of(first)), data.draw(keys_of(second))):
            assert not (naive(first).fullmatch(key) and naive(second).fullmatch(key)), key


@pytest.mark.parametrize(
    ("texts", "key", "most_specific"),
    [
        (("user:<id>:<what>", "user:<id>:cart"), b"user:7:cart", "user:<id>:cart"),
        (("<a>:<b>:<c>", "user:<id>:<what>"), b"user:7:cart", "user:<id>:<what>"),
        (("<**>", "<a>:<b>"), b"user:7", "<a>:<b>"),
        (("user:<**>", "user:<a>:<b>"), b"user:7:8", "user:<a>:<b>"),
        (("user:<**>", "<a>:<b>:<c>"), b"user:7:8", "user:<**>"),
        (("<what>", "rank_<period>", "rank_daily_<n>"), b"rank_daily_7", "rank_daily_<n>"),
        (("<name>", "<int>"), b"17", "<int>"),
        (("<name>", "<int>"), b"x", "<name>"),
        (("app:rate:<ip>", "app:rate:<what>"), b"app:rate:10.0.0.1", "app:rate:<ip>"),
        (("app:rate:<ip>", "app:<a>:<b>:<c>"), b"app:rate:2001:db8::7", "app:rate:<ip>"),
        (("<entity>:<id>", "<entity>:list"), b"user:list", "<entity>:list"),
        (("a:<x>:<y>:d:<z>", "a:<**>:d:e"), b"a:1:2:d:e", "a:<**>:d:e"),
    ],
)
def test_the_most_specific_pattern_counts(texts: Sequence[str], key: bytes, most_specific: str) -> None:
    assert winner(texts, key) == most_specific
    assert winner(texts[::-1], key) == most_specific


def test_one_of_a_list_is_more_specific_than_a_form_and_that_than_anything() -> None:
    texts, values = ("<any>:x", "<n>:x", "<one>:x"), {"n": Values(INT), "one": Values(ENUM, (b"7", b"8"))}
    assert winner(texts, b"7:x", **values) == "<one>:x"
    assert winner(texts, b"9:x", **values) == "<n>:x"
    assert winner(texts, b"y:x", **values) == "<any>:x"


def test_an_ambiguity_is_named_with_a_key_and_the_earlier_text_counts() -> None:
    found = read("<entity>:list", "user:<id>")
    assert [(one.first, one.second, one.example) for one in ambiguities(found)] == [(0, 1, b"user:list")]
    assert winner(("<entity>:list", "user:<id>"), b"user:list") == "user:<id>"


def test_patterns_alike_in_all_but_a_name_are_ambiguous_and_the_first_counts() -> None:
    assert [one[:2] for one in ambiguities(read("user:<a>", "user:<b>"))] == [(0, 1)]
    assert winner(("user:<a>", "user:<b>"), b"user:1") == "user:<a>"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rank_<x>_a", "rank_b_<y>"),
        ("<x>_m_<y>", "<u>-n-<v>"),
        ("pre<x>", "<y>fix"),
        ("app:<**>:a", "app:b:<**>"),
        ("<int>:a", "<hex>:<hash>"),
    ],
)
def test_keys_of_two_unlike_patterns_are_found(first: str, second: str) -> None:
    one, two = read(first, second)
    example = common_key(one, two)
    if (first, second) == ("<int>:a", "<hex>:<hash>"):
        assert example is None
    else:
        assert example is not None
        assert one.matches(example)
        assert two.matches(example)


def test_patterns_without_a_common_key_are_no_ambiguity() -> None:
    assert not list(ambiguities(read("user:<id>:cart", "user:<id>:orders", "<int>:x", "<uuid>:x")))


def test_hash_tags_are_literal_braces() -> None:
    assert winner(("{{user{id}}}.following",), b"{user1000}.following") == "{user<id>}.following"
    assert winner(("{user:<id>}:<what>",), b"{user:100}:posts") == "{user:<id>}:<what>"


def test_a_leading_separator_and_empty_segments_are_real() -> None:
    assert winner((":<version>:<**>",), b":1:views.cache") == ":<version>:<**>"
    assert winner(("a::<x>",), b"a::1") == "a::<x>"
    assert winner(("a:<y>:<x>",), b"a::1") is None


def test_a_key_longer_than_any_name_has_no_pattern() -> None:
    assert winner(("<**>",), b"x" * LONGEST_KEY) == "<**>"
    assert winner(("<**>",), b"x" * (LONGEST_KEY + 1)) is None


@pytest.mark.parametrize("text", ["<a>_<b>x", "<a>_<b>_<c>x", "<a>_<n>_<b>x", "<**>:<a>_<b>x"])
def test_a_hostile_key_takes_a_time_that_does_not_explode(text: str) -> None:
    """It would take years if every way to divide the key were tried: the test would not end."""
    pattern = read_pattern(text, {"n": Values(INT)}, COLON)
    assert not pattern.matches(b"_1" * (LONGEST_KEY // 2))


def test_the_most_specific_comes_first() -> None:
    found = read("<entity>:<id>", "user:<id>:x", "rate:<ip>", ip=Values(IP), entity=Values(ENUM, (b"user", b"role")))
    assert Matcher(found, COLON).order == (1, 2, 0)


@given(st.sampled_from(SEPARATORS).flatmap(lambda one: st.lists(patterns(one), min_size=2, max_size=12)))
@settings(max_examples=examples(60), deadline=None)
def test_no_pair_is_left_out_that_has_a_key_in_common(some: list[Pattern]) -> None:
    found = {one[:2] for one in ambiguities(some)}
    pairs = combinations(range(len(some)), 2)
    alike = [(one, two) for one, two in pairs if some[one].specificity == some[two].specificity]
    assert found == {(one, two) for one, two in alike if common_key(some[one], some[two]) is not None}
