from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import display_text
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    clip,
    cut,
    cut_middle,
    left,
    line_width,
    right,
    spread,
    width_of,
    wrap,
)

texts = st.text(max_size=60).map(display_text)
lines = st.lists(st.builds(Span, texts, st.sampled_from(Role)), max_size=5).map(tuple)


@given(texts, st.integers(0, 40))
def test_fitted_text_takes_the_cells_it_was_given(text: str, cells: int) -> None:
    safe = display_text(text)
    assert width_of(cut(safe, cells)) <= cells
    assert width_of(cut_middle(safe, cells)) <= cells
    assert width_of(left(safe, cells)) == cells
    assert width_of(right(safe, cells)) == cells


def test_a_long_name_keeps_its_end() -> None:
    shown = cut_middle(display_text("shop:user:1234567890:profile"), 16)
    assert shown == "shop:use…profile"


@given(lines, st.integers(0, 60))
def test_a_clipped_line_fits(line: Line, cells: int) -> None:
    assert line_width(clip(line, cells)) <= cells


@given(lines, lines, st.integers(30, 200))
def test_two_ends_of_a_line_fill_it(start: Line, end: Line, cells: int) -> None:
    if line_width(end) <= cells:
        assert line_width(spread(start, end, cells)) == max(cells, line_width(end))


@given(texts, st.integers(4, 40), st.integers(1, 6))
def test_wrapped_text_fits_and_loses_nothing_unsaid(text: str, cells: int, most: int) -> None:
    safe = display_text(text)
    found = wrap(safe, cells, most)
    assert 1 <= len(found) <= most
    assert all(width_of(line) <= cells for line in found)
    assert "".join(found) == safe or "…" in found[-1]
