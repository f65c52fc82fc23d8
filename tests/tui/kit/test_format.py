from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.tui.kit.layout import bar


@given(st.floats(-1, 2), st.integers(1, 40))
def test_a_bar_fills_its_cells_and_grows_with_the_fraction(fraction: float, cells: int) -> None:
    filled, blank = bar(fraction, cells)
    assert len(filled) + len(blank) == cells
    assert len(bar(min(fraction + 0.2, 2), cells)[0]) >= len(filled)
