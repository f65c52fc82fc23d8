from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis import words
from rtui.analysis.words import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Mark


@pytest.mark.parametrize(
    ("value", "mark", "text"),
    [(0, Mark.EXACT, "0"), (286_423, Mark.AT_LEAST, "≥ 286,423"), (1_000_000, Mark.EXACT, "1,000,000")],
)
def test_counts_have_thousands_and_a_mark(value: int, mark: Mark, text: str) -> None:
    assert words.count(value, mark) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (999, "999"), (1_000, "1k"), (1_234, "1.2k"), (9_990, "10k"), (786_400, "786k"), (999_600, "1M"),
        (1_500_000, "1.5M"), (10**18, "1E"),
    ],
)  # fmt: skip
def test_short_counts_have_two_or_three_figures(value: float, text: str) -> None:
    assert words.short_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (128, "128 B"),
        (1_023, "1023 B"),
        (1_024, "1.0K"),
        (1_945, "1.9K"),
        (4 << 30, "4.0G"),
        (180 << 20, "180M"),
    ],
)
def test_sizes_are_binary(value: int, text: str) -> None:
    assert words.size(value) == text


@pytest.mark.parametrize(
    ("fraction", "mark", "text"),
    [(0.0, Mark.EXACT, "0%"), (0.004, Mark.ABOUT, "<1%"), (0.29, Mark.ABOUT, "≈29%"), (1.0, Mark.EXACT, "100%")],
)
def test_shares_never_round_something_to_nothing(fraction: float, mark: Mark, text: str) -> None:
    assert words.share(fraction, mark) == text


@pytest.mark.parametrize(
    ("ms", "text", "short"),
    [
        (-1, "0s", "0s"),
        (420, "420ms", "420ms"),
        (SECOND_MS, "1s", "1s"),
        (30 * MINUTE_MS - SECOND_MS, "29m 59s", "29m"),
        (3 * HOUR_MS, "3h", "3h"),
        (12 * DAY_MS + 4 * HOUR_MS, "12d 4h", "12d"),
        (400 * DAY_MS, "1y 35d", "1y"),
    ],
)
def test_durations_have_two_units(ms: int, text: str, short: str) -> None:
    assert words.duration(ms) == text
    assert words.short_duration(ms) == short


@given(st.integers(0, 10**24))
def test_short_figures_stay_short(value: int) -> None:
    assert len(words.short_count(min(value, 10**20))) <= 4
    assert len(words.size(min(value, 10**20))) <= 6
