"""What a pattern expects of a key, and what is said of one that has something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.quantities import Bounds, write_duration
from rtui.registry.expectations import (
    NO_TTL,
    Breach,
    ExpectationError,
    Expectations,
    FoundKey,
    breaches_of,
    read_length,
    read_size,
    read_ttl,
    read_type,
)

MINUTE = 60_000
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "missing", "ten_minutes", "an_hour", "three_hours"),
    [
        ("30m", Breach.TTL_MISSING, None, Breach.TTL_LONG, Breach.TTL_LONG),
        ("30m..2h", Breach.TTL_MISSING, None, None, Breach.TTL_LONG),
        ("<=10m", Breach.TTL_MISSING, None, Breach.TTL_LONG, Breach.TTL_LONG),
        ("<10m", Breach.TTL_MISSING, Breach.TTL_LONG, Breach.TTL_LONG, Breach.TTL_LONG),
        (">=2h", Breach.TTL_MISSING, None, None, None),
        ("required", Breach.TTL_MISSING, None, None, None),
        ("none", None, Breach.TTL_UNEXPECTED, Breach.TTL_UNEXPECTED, Breach.TTL_UNEXPECTED),
        ("none|2h", None, None, None, Breach.TTL_LONG),
        ("none | required", None, None, None, None),
        ("5m|2h", Breach.TTL_MISSING, None, None, Breach.TTL_LONG),
    ],
)
def test_what_is_left_of_a_ttl(
    text: str,
    missing: Breach | None,
    ten_minutes: Breach | None,
    an_hour: Breach | None,
    three_hours: Breach | None,
) -> None:
    ttl = read_ttl(text)
    left = (NO_TTL, 10 * MINUTE, HOUR, 3 * HOUR)
    assert [ttl.breach(one) for one in left] == [missing, ten_minutes, an_hour, three_hours]


@given(st.integers(1, 10**10), st.integers(0, 10**10))
def test_a_key_that_was_given_what_is_agreed_never_breaks_it(given_ms: int, passed_ms: int) -> None:
    ttl = read_ttl(write_duration(given_ms))
    assert ttl.breach(max(0, given_ms - passed_ms)) is None
    assert ttl.breach(given_ms + 1) is Breach.TTL_LONG


def test_too_short_times_show_only_in_many_keys() -> None:
    ttl = read_ttl("30m..2h")
    assert not ttl.is_too_short(10 * MINUTE, keys=2)
    assert ttl.is_too_short(10 * MINUTE, keys=30)
    assert not ttl.is_too_short(29 * MINUTE, keys=30)
    assert not ttl.is_too_short(30 * MINUTE, keys=1_000_000)
    assert not read_ttl("<=10m").is_too_short(1, keys=1_000_000)
    assert not ttl.is_too_short(0, keys=0)


@pytest.mark.parametrize("text", ["", "soon", "30", "30x", "2h..30m", "..", "none|", "<=", "30m..2h..3h"])
def test_what_is_no_ttl_says_how_it_is_written(text: str) -> None:
    if text == "30":
        assert read_ttl(text).high_ms == 30_000
        return
    with pytest.raises(ExpectationError):
        read_ttl(text)


def test_sizes_and_lengths() -> None:
    assert read_size("<=10K") == Bounds(None, 10_240)
    assert read_size("1K..1M") == Bounds(1_024, 1_048_576)
    assert read_length("<=10KB") == Bounds(None, 10_240)
    assert read_length("<=10k") == Bounds(None, 10_000)
    assert read_length("1..500") == Bounds(1, 500)
    assert read_length("5") == Bounds(5, 5)
    with pytest.raises(ExpectationError, match="<=1000"):
        read_length("many")


def test_types_have_their_names_and_some_that_people_use() -> None:
    assert read_type("zset") == b"zset"
    assert read_type("json") == b"ReJSON-RL"
    assert read_type("bitmap") == b"string"
    assert read_type("myModType") == b"myModType"
    with pytest.raises(ExpectationError):
        read_type("hsah")


def test_each_part_that_is_broken_has_its_bit_and_what_is_unknown_has_none() -> None:
    expected = Expectations((b"hash", b"string"), read_ttl("30m"), read_size("<=1K"), "<=1K", read_length("<=5"), "<=5")
    assert expected.broken(FoundKey()) == 0
    assert expected.broken(FoundKey(b"hash", 1, 10, 5)) == 0
    found = breaches_of(expected.broken(FoundKey(b"set", NO_TTL, 2_000, 6)))
    assert found == (Breach.TYPE, Breach.TTL_MISSING, Breach.SIZE, Breach.LENGTH)


def test_checks_say_what_is_expected_and_whether_it_is_known() -> None:
    expected = Expectations((b"hash",), read_ttl("30m"))
    kind, ttl = expected.checks(FoundKey(b"hash", NO_TTL))
    assert (kind.fact, kind.expected, kind.breach, kind.is_known) == ("type", "hash", None, True)
    assert (ttl.fact, ttl.expected, ttl.breach, ttl.is_known) == ("TTL", "30m", Breach.TTL_MISSING, True)
    assert [check.is_known for check in expected.checks(FoundKey())] == [False, False]
    assert Expectations().checks(FoundKey()) == ()
