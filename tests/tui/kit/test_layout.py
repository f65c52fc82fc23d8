from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import SafeText, display_text
from rtui.tui.kit.layout import LEAST_REASON, Piece, fitted
from rtui.tui.kit.styled_text import Role, Span, line_width, literal

texts = st.text(max_size=60).map(display_text)
pieces = st.lists(st.builds(Piece, st.integers(1, 4), st.tuples(texts.map(Span)), st.integers(0, 30)), max_size=8)


@given(pieces, st.integers(0, 120))
def test_pieces_stay_within_the_line(some: list[Piece], cells: int) -> None:
    assert line_width(fitted(some, cells)) <= cells


def shown(cells: int, reason: str) -> str:
    line = fitted(
        [
            Piece(1, (Span(literal("76 keys")),)),
            Piece(5, (Span(literal("took 8ms")),)),
            Piece(1, (Span(SafeText(reason), Role.WARN),), LEAST_REASON),
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
