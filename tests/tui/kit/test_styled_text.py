"""Lines of styled text: cut, wrapped and fitted to a width, and how numbers and pieces are written in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rtui.keyspace.text.display import Display, SafeText, display_text
from rtui.tui.kit.layout import LEAST_REASON, LinePart, bar, fitted
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    clip,
    cut,
    cut_middle,
    cut_pieces,
    left,
    line_width,
    literal,
    pieces_width,
    right,
    styled,
    width_of,
    wrap,
    wrap_pieces,
)
from tests.keyspace.text.test_display import TEXTS

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


@given(texts, st.integers(4, 40), st.integers(1, 6))
def test_wrapped_text_fits_and_loses_nothing_unsaid(text: str, cells: int, most: int) -> None:
    safe = display_text(text)
    found = wrap(safe, cells, most)
    assert 1 <= len(found) <= most
    assert all(width_of(line) <= cells for line in found)
    assert "".join(found) == safe or "…" in found[-1]


@given(TEXTS, st.integers(1, 40), st.integers(1, 6))
def test_no_piece_of_a_value_is_broken(text: str, cells: int, most: int) -> None:
    pieces = Display().value_text(text, limit=400)
    lines = wrap_pieces(pieces, cells, most)
    assert len(lines) <= most
    for line in lines:
        assert pieces_width(line) <= cells
        assert line_width(styled(line)) == pieces_width(line) == cell_len("".join(piece.text for piece in line))
        assert {piece for piece in line if "\\" in piece.text and len(piece.text) > 1} <= {*pieces}
    if len(lines) < most and all(width_of(piece.text) <= cells for piece in pieces):
        assert [piece for line in lines for piece in line] == pieces
    for in_middle in (False, True):
        shown = cut_pieces(pieces, cells, in_middle=in_middle)
        assert pieces_width(shown) <= cells
        assert (shown == pieces) is (pieces_width(pieces) <= cells)


def test_escapes_are_marked_and_a_backslash_is_not() -> None:
    line = styled(Display().value(b"a\\u202e\xe2\x80\xaeb\x1b"), Role.HASH)
    assert line == (
        Span(SafeText("a\\u202e"), Role.HASH),
        Span(SafeText("\\u202e"), Role.ESCAPE),
        Span(SafeText("b"), Role.HASH),
        Span(SafeText("␛"), Role.ESCAPE),
    )


bar_texts = st.text(max_size=60).map(display_text)
pieces = st.lists(
    st.builds(LinePart, st.integers(1, 4), st.tuples(bar_texts.map(Span)), st.integers(0, 30)), max_size=8
)


@given(pieces, st.integers(0, 120))
def test_pieces_stay_within_the_line(some: list[LinePart], cells: int) -> None:
    assert line_width(fitted(some, cells)) <= cells


def shown(cells: int, reason: str) -> str:
    line = fitted(
        [
            LinePart(1, (Span(literal("76 keys")),)),
            LinePart(5, (Span(literal("took 8ms")),)),
            LinePart(1, (Span(SafeText(reason), Role.WARN),), LEAST_REASON),
        ],
        cells,
    )
    return "".join(span.text for span in line)


def test_a_long_reason_is_cut_and_not_left_out() -> None:
    reason = "the server closed the connection while a reply was read"
    assert shown(80, reason) == f"76 keys · took 8ms · {reason}"
    assert shown(70, reason) == f"76 keys · {reason}"
    assert shown(45, reason) == "76 keys · the server closed the connection w…"
    assert shown(30, reason) == "76 keys · took 8ms"


@given(st.floats(-1, 2), st.integers(1, 40))
def test_a_bar_fills_its_cells_and_grows_with_the_fraction(fraction: float, cells: int) -> None:
    filled, blank = bar(fraction, cells)
    assert len(filled) + len(blank) == cells
    assert len(bar(min(fraction + 0.2, 2), cells)[0]) >= len(filled)
