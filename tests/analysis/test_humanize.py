from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Mark


@pytest.mark.parametrize(
    ("value", "mark", "text"),
    [(0, Mark.EXACT, "0"), (286_423, Mark.AT_LEAST, "≥ 286,423"), (1_000_000, Mark.EXACT, "1,000,000")],
)
def test_counts_have_thousands_and_a_mark(value: int, mark: Mark, text: str) -> None:
    assert humanize.count(value, mark) == text


_COUNT_STEPS = {unit: 1000**power for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_BYTE_STEPS = {unit: 1024**power for power, unit in enumerate((" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"))}
_SHORT = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)([A-Za-z ]*)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (999, "999"), (999.4, "999"), (999.6, "1.00k"), (1_000, "1.00k"), (1_234, "1.23k"), (9_996, "10.0k"),
        (29_512, "29.5k"), (786_400, "786k"), (999_499, "999k"), (999_600, "1.00M"), (1_500_000, "1.50M"),
        (10**18, "1.00E"), (10**21, "> 999E"), (10**400, "> 999E"), (-1, "0"),
    ],
)  # fmt: skip
def test_short_counts_have_three_figures(value: float, text: str) -> None:
    assert humanize.short_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"), (128, "128 B"), (2.4, "2 B"), (999, "999 B"), (999.6, "0.98 KiB"), (1_000, "0.98 KiB"),
        (1_023, "1.00 KiB"), (1_024, "1.00 KiB"), (3_072, "3.00 KiB"), (30_200, "29.5 KiB"), (999 << 10, "999 KiB"),
        (1_017 << 10, "0.99 MiB"), (180 << 20, "180 MiB"), (4 << 30, "4.00 GiB"), (1 << 62, "4.00 EiB"),
        (1 << 80, "> 999 EiB"), (10**400, "> 999 EiB"), (-1, "0 B"),
    ],
)  # fmt: skip
def test_sizes_are_in_binary_units(value: float, text: str) -> None:
    assert humanize.size(value) == text


@given(st.one_of(st.integers(0, 10**20), st.floats(0, 1e20)))
def test_short_figures_are_right_to_three_digits_in_one_unit(value: float) -> None:
    for text, steps in ((humanize.short_count(value), _COUNT_STEPS), (humanize.size(value), _BYTE_STEPS)):
        found = _SHORT.fullmatch(text)
        assert found is not None, text
        figures, unit = found.groups()
        assert len(figures) <= 4
        places = len(figures.partition(".")[2])
        assert (places > 0) is (steps[unit] > 1 and float(figures) < 100)
        assert abs(float(figures) - value / steps[unit]) <= 0.5 * 10**-places * (1 + 1e-9)


def _read(text: str, steps: dict[str, int]) -> float:
    found = _SHORT.fullmatch(text)
    assert found is not None, text
    return float(found[1]) * steps[found[2]]


@given(st.one_of(st.integers(0, 10**20), st.floats(0, 1e20)))
def test_a_lower_bound_is_never_above_the_number(value: float) -> None:
    texts = (
        (humanize.short_count(value, Mark.AT_LEAST), _COUNT_STEPS),
        (humanize.size(value, Mark.AT_LEAST), _BYTE_STEPS),
    )
    for text, steps in texts:
        assert text.startswith(Mark.AT_LEAST)
        read = _read(text.removeprefix(Mark.AT_LEAST), steps)
        assert read <= value * (1 + 1e-12)
        assert read >= value * 0.9 or value < 100


_NEAR_EDGES = st.builds(
    lambda step, power, factor, off: max(0, int(step**power * factor) + off),
    st.sampled_from((1000, 1024)),
    st.integers(0, 5),
    st.sampled_from((1, 0.995, 0.9995, 9.995, 99.95, 999.5)),
    st.integers(-3, 3),
)


@given(st.one_of(st.integers(0, 10**20), _NEAR_EDGES), st.one_of(st.integers(0, 10**6), st.integers(0, 3)))
def test_a_larger_number_never_reads_smaller(value: int, more: int) -> None:
    low, high = value, value + more
    assert _read(humanize.short_count(low), _COUNT_STEPS) <= _read(humanize.short_count(high), _COUNT_STEPS)
    assert _read(humanize.size(low), _BYTE_STEPS) <= _read(humanize.size(high), _BYTE_STEPS)


@pytest.mark.parametrize(
    ("fraction", "mark", "text"),
    [
        (0.0, Mark.EXACT, "0%"),
        (0.004, Mark.ABOUT, "<1%"),
        (1 / 200, Mark.EXACT, "<1%"),
        (0.29, Mark.ABOUT, "≈29%"),
        (0.996, Mark.ABOUT, ">99%"),
        (1.0, Mark.EXACT, "100%"),
    ],
)
def test_a_share_as_text(fraction: float, mark: Mark, text: str) -> None:
    assert humanize.share(fraction, mark) == text


@given(st.lists(st.floats(0, 1) | st.floats(0.99, 1) | st.floats(0, 0.01), min_size=3, max_size=3).map(sorted))
def test_only_none_reads_as_none_and_only_all_as_all(fractions: list[float]) -> None:
    low, value, high = fractions
    text = humanize.share(value)
    assert (text == "0%", text == "100%") == (value == 0, value == 1)
    said = humanize.estimated(Estimate(low, value, high), humanize.share)
    assert not re.search(r"(?<![\d.<>])0(\.0)?[%–]", said) or low == 0
    assert not re.search(r"100(\.0)?%", said) or high == 1


@pytest.mark.parametrize(
    ("ms", "text", "short"),
    [
        (-1, "0s", "0s"), (420, "420ms", "420ms"), (SECOND_MS, "1s", "1s"),
        (30 * MINUTE_MS - SECOND_MS, "29m 59s", "29m"), (3 * HOUR_MS, "3h", "3h"),
        (12 * DAY_MS + 4 * HOUR_MS, "12d 4h", "12d"), (400 * DAY_MS, "1y 35d", "1y"),
    ],
)  # fmt: skip
def test_durations_have_two_units(ms: int, text: str, short: str) -> None:
    assert humanize.duration(ms) == text
    assert humanize.short_duration(ms) == short


@pytest.mark.parametrize("noun", ["key", "row", "entry", "match", "second", "slot", "array", "bytes each", "index"])
def test_only_one_of_a_thing_has_no_plural(noun: str) -> None:
    assert [humanize.counted(number, noun).partition(" ")[2] == noun for number in (0, 1, 2)] == [False, True, False]
    assert humanize.counted(1_204, "entry", Mark.AT_LEAST) == "≥ 1,204 entries"


@pytest.mark.parametrize(
    ("per_minute", "text"),
    [(0, "0/min"), (1, "1/min"), (0.1, "6/h"), (0.001, "1/d"), (1e-9, "1/d"), (599, "599/min"), (2_501, "42/s")],
)
def test_a_rate_above_none_is_never_told_as_none(per_minute: float, text: str) -> None:
    assert humanize.rate(per_minute) == text


@pytest.mark.parametrize(
    ("value_s", "text"), [(0, "0s"), (4e-7, "<1µs"), (0.00042, "420µs"), (0.001, "1ms"), (0.5, "500ms"), (61, "1m 1s")]
)
def test_seconds(value_s: float, text: str) -> None:
    assert humanize.seconds(value_s) == text
