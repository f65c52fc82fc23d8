"""What is highlighted in names, whole and cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.query.parsing import parse
from rtui.analysis.query.query import Query, Term
from rtui.tui.find.found_view import Marker, marked_spans, whole_name
from rtui.tui.kit.styled_text import Role, cut_middle


def marked(query: str, name: bytes, cells: int = 80) -> list[str]:
    """The highlighted parts."""
    spans = marked_spans(name, cut_middle(whole_name(name), cells), Marker(parse(query)), whole_name)
    return [str(span.text) for span in spans if span.role is Role.ACCENT]


@pytest.mark.parametrize(
    ("query", "name", "parts"),
    [
        ("cart", b"shop:CART:1", ["CART"]),
        ("Cart", b"shop:cart:1", []),
        ("user:*:cart", b"user:7:cart", ["user:", ":cart"]),
        (r"re:\d+$", b"user:42", ["42"]),
        ("shop cart", b"shop:cart", ["shop", "cart"]),
        ("!cart", b"shop:1", []),
        ("ttl:none", b"shop:1", []),
        ('"\\xc3"', "clé".encode(), ["é"]),
        ("cart", b"\x1b[cart", ["cart"]),
    ],
)
def test_what_was_searched_for_is_marked(query: str, name: bytes, parts: list[str]) -> None:
    assert marked(query, name) == parts


def test_in_a_name_that_is_cut_both_ends_are_marked() -> None:
    name = b"needle:" + b"x" * 100 + b":tail"
    assert marked("needle", name, 30) == ["needle"]
    assert marked("tail", name, 30) == ["tail"]
    assert marked("x" * 50, name, 30)


@given(st.binary(max_size=80), st.binary(min_size=1, max_size=4), st.integers(8, 60))
def test_marking_changes_no_text(name: bytes, needle: bytes, cells: int) -> None:
    shown = cut_middle(whole_name(name), cells)
    spans = marked_spans(name, shown, Marker(Query((Term("text", (needle,)),))), whole_name)
    assert "".join(span.text for span in spans) == shown
