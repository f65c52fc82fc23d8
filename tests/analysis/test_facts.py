from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.analysis.columns import (
    ALL_COLUMNS,
    EVERYTHING,
    SAMPLED_COLUMNS,
    SMALL_KEYSPACE,
    Asked,
    Columns,
    ColumnsError,
    columns_for,
    parse_columns,
)
from rtui.analysis.facts import (
    GONE,
    NO_TTL,
    Frequency,
    KeyFacts,
    LfuSettings,
    Reason,
    RowFacts,
    Ttl,
    Unknown,
    gone_key,
    gone_row,
    ttl_at,
)
from tests.conftest import known


@pytest.mark.parametrize(("counter", "per_minute"), [(10, 51), (20, 151), (50, 451), (100, 951), (255, 2501)])
def test_a_counter_tells_the_rate_that_holds_it(counter: int, per_minute: float) -> None:
    assert Frequency(counter).per_minute == per_minute


def test_only_the_highest_counter_is_a_lower_bound() -> None:
    assert Frequency(255).is_saturated
    assert not Frequency(254).is_saturated


def test_a_counter_at_or_below_that_of_a_new_key_tells_at_most_one_access_a_decay_time() -> None:
    assert {Frequency(counter).per_minute for counter in range(6)} == {1.0}


@settings(deadline=None)
@given(st.integers(5, 254), st.integers(0, 1000), st.integers(1, 100))
def test_the_rate_is_where_gain_and_decay_are_equal(counter: int, factor: int, decay: int) -> None:
    rate = known(Frequency(counter, LfuSettings(factor, decay, assumed=False)).per_minute)
    gained_a_minute = rate / ((counter - 5) * factor + 1)
    assert gained_a_minute == pytest.approx(1 / decay)


def test_a_counter_that_never_decays_tells_no_rate() -> None:
    assert Frequency(100, LfuSettings(10, 0, assumed=False)).per_minute is None


def test_the_moment_of_expiry_is_counted_from_the_moment_of_asking() -> None:
    def facts(ttl: Ttl) -> RowFacts:
        return RowFacts(b"k", b"string", ttl, 64, 1_000.0)

    assert facts(2_500).expires_at_s == 1_002.5
    assert facts(NO_TTL).expires_at_s is None
    assert facts(GONE).expires_at_s is None


def test_no_ttl_gone_and_denied_are_three_things() -> None:
    assert len({NO_TTL, GONE, Unknown(Reason.DENIED)}) == 3


def test_an_unknown_is_never_taken_for_a_value() -> None:
    assert not Unknown(Reason.DENIED)


def test_what_is_gone_says_so_in_each_fact() -> None:
    assert gone_row(b"k", 0.0).is_gone
    facts = gone_key(b"k", 0.0)
    assert facts.is_gone
    assert {facts.encoding, facts.length, facts.memory_bytes, facts.ttl_ms, facts.idle_s, facts.frequency} == {GONE}
    assert facts.expires_at_s is None


def test_the_mean_is_known_only_with_both_memory_and_length() -> None:
    unknown = Unknown(Reason.DENIED)

    def mean(memory: int | Unknown, length: int | Unknown) -> float | None:
        return KeyFacts(b"k", 0.0, b"hash", b"listpack", length, memory, NO_TTL, unknown, unknown).mean_element_bytes

    assert mean(100, 4) == 25
    assert mean(100, 0) is None
    assert mean(unknown, 4) is None
    assert mean(100, unknown) is None


@given(st.integers(0, 10**12), st.floats(0, 1e9), st.floats(-1e6, 1e9))
def test_a_time_to_live_runs_down_with_the_clock_and_never_up(ttl_ms: int, asked_at_s: float, passed_s: float) -> None:
    left = ttl_at(ttl_ms, asked_at_s, asked_at_s + passed_s)
    assert isinstance(left, int)
    assert 0 <= left <= ttl_ms
    assert abs(left - max(0, ttl_ms - max(0.0, passed_s * 1000))) <= 2
    assert RowFacts(b"k", b"string", ttl_ms, 64, asked_at_s).at(asked_at_s + passed_s).ttl_ms == left


def test_what_has_no_time_to_live_does_not_run_down() -> None:
    assert ttl_at(NO_TTL, 0.0, 1e9) is NO_TTL
    unknown = Unknown(Reason.DENIED)
    assert ttl_at(unknown, 0.0, 1e9) is unknown


HALVES = st.sampled_from([Asked.ALL, Asked.NONE])
COLUMNS = st.builds(
    Columns, ttl=HALVES, memory=HALVES, idle=st.sampled_from(Asked), length=st.sampled_from(Asked),
    encoding=st.sampled_from(Asked),
)  # fmt: skip


@given(COLUMNS)
def test_the_text_of_columns_is_read_as_the_same(columns: Columns) -> None:
    assert parse_columns(str(columns)) == columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("all", ALL_COLUMNS),
        ("default", None),
        ("ttl,memory,idle/8,length/8,encoding/16", SAMPLED_COLUMNS),
        ("type, TTL ,memory,frequency,length,encoding", EVERYTHING),
        ("type", Columns(Asked.NONE, Asked.NONE, Asked.NONE, Asked.NONE, Asked.NONE)),
        ("memory,length/8", Columns(Asked.NONE, Asked.ALL, Asked.NONE, Asked.SAMPLED, Asked.NONE)),
    ],
)
def test_what_is_typed(text: str, columns: Columns | None) -> None:
    assert parse_columns(text) == columns


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing is not a column; the columns are type, ttl, memory, idle, length, encoding"),
        ("ttl,", "nothing is not a column"),
        ("size", "'size' is not a column"),
        ("ttl,all", "'all' stands alone"),
        ("ttl/8", "'ttl/8' is not possible: ttl asks all keys; samples are idle/8, length/8, encoding/16"),
        ("idle/4", "'idle/4' is not possible"),
        ("type/8", "'type/8' is no"),
        ("idle/8,frequency", "'frequency' is there twice"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, says: str) -> None:
    with pytest.raises(ColumnsError, match=re.escape(says)):
        parse_columns(text)


def test_small_keyspaces_are_asked_everything() -> None:
    assert columns_for(None, SMALL_KEYSPACE) == ALL_COLUMNS
    assert columns_for(None, SMALL_KEYSPACE + 1) == SAMPLED_COLUMNS
    assert columns_for(None, None) == SAMPLED_COLUMNS
    assert columns_for(SAMPLED_COLUMNS, 5) == SAMPLED_COLUMNS
