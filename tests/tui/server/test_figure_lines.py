"""How figures went as rows of bars: what hardly changes looks level, what changes fills the height."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size

from rtui.analysis.health.panel import Line as Figure
from rtui.analysis.report.tables.table import Unit
from rtui.tui.kit.styled_text import line_width
from rtui.tui.server.panels import plot_lines, sparkline

HISTORIES = st.lists(st.none() | st.floats(-1e12, 1e12) | st.integers(0, 2**40), max_size=60)


def figure(*history: float | None) -> Figure:
    return Figure("used_memory", "used", history[-1] if history else None, Unit.BYTES, history=history)


@pytest.mark.parametrize(
    ("history", "bars"),
    [
        ((700, 703, 701, 704), "▁▁▁▁"),
        ((5, 5, 5), "▁▁▁"),
        ((0, 0), "▁▁"),
        ((0, 50, 100), "▁▄█"),
        ((100, None, 200), "▁ █"),
        ((3,), ""),
    ],
)
def test_what_hardly_changes_looks_level(history: tuple[float | None, ...], bars: str) -> None:
    assert sparkline(history, 16) == bars


def test_the_scale_of_a_plot_says_how_high_it_is() -> None:
    (top, *_, bottom, _) = plot_lines(figure(1000 << 20, 1001 << 20), Size(60, 6), 10)
    assert "1.03 GiB" in top[0].text
    assert "0.98 GiB" in bottom[0].text


@given(HISTORIES, st.integers(1, 20), st.integers(0, 120), st.integers(0, 20))
def test_any_history_fits(history: list[float | None], cells: int, width: int, height: int) -> None:
    assert len(sparkline(history, cells)) <= cells
    lines = plot_lines(figure(*history), Size(width, height), 60)
    assert len(lines) <= height
    assert all(line_width(line) <= width for line in lines)
