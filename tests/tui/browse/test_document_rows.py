"""A long value as rows: no more than can be read, and none is drawn before it is looked at."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.slices import Slicer
from rtui.tui.browse import document as module
from rtui.tui.browse import value_view
from rtui.tui.browse.document import (
    MOST_HEX_BYTES,
    MOST_TEXT_BYTES,
    MOST_TEXT_LINES,
    TEXT_LINES,
    DecodedDocument,
    document_rows,
    open_document,
    text_rows,
)
from rtui.tui.browse.value_view import ValueView
from rtui.tui.kit.layout import MARGIN, value_pieces
from rtui.tui.kit.styled_text import wrap_pieces
from rtui.values import Choices, decode
from rtui.values.tree import DEFAULT
from tests.tui.browse.test_value import text_of


@given(st.lists(st.binary(max_size=60) | st.text(max_size=400).map(str.encode), max_size=5), st.integers(1, 90))
def test_lines_are_known_to_be_as_many_as_they_are_broken_into(lines: list[bytes], width: int) -> None:
    room = max(1, width - 2 * MARGIN)
    data = b"\n".join(lines)
    expected = [
        "".join(piece.text for piece in part)
        for raw in data.split(b"\n")
        for part in wrap_pieces(value_pieces(raw, limit=room * TEXT_LINES), room, TEXT_LINES)
    ]
    assert ["".join(span.text for span in row.line[1:]) for row in text_rows(data, width)] == expected


def test_what_was_packed_small_is_shown_as_far_as_it_can_be_read() -> None:
    rows = document_rows(open_document(gzip.compress(bytes(1_000_000))), 80)
    assert sum(row.item is not None for row in rows) == MOST_HEX_BYTES / 16
    assert "the first 16.0 KiB of 977 KiB are shown: P shows all, w writes it" in text_of(rows)
    text = "żółć 1 and more\n" * 20_000
    rows = document_rows(open_document(gzip.compress(text.encode())), 80)
    shown = [row for row in rows if row.item is not None]
    assert len(shown) == MOST_TEXT_BYTES // len("żółć 1 and more\n".encode()) + 1
    assert "\\x" not in text_of(shown)
    assert "the first 64.0 KiB" in text_of(rows)


LONG = json.dumps({"version": 12, "users": [{"id": 1000 + at, "name": "żółć " * at} for at in range(40)]}).encode()


@given(st.integers(1, len(LONG) - 1))
def test_a_beginning_holds_whole_elements_and_says_once_that_it_goes_on(cut: int) -> None:
    rows = document_rows(open_document(LONG[:cut], is_whole=False, total_bytes=len(LONG)), 80)
    shown = text_of(rows)
    whole = {text_of([row]) for row in document_rows(open_document(LONG), 80)}
    others = [text_of([row]) for row in rows if row.item is not None and text_of([row]) not in whole]
    # beside the maps and lists that were not read to their end, only a text shows what there is of it
    assert all("≥" in one or one.endswith(" … goes on") for one in others)
    assert sum("goes on" in one for one in others) <= 1
    assert shown.count("The value goes on: ") == 1


def test_the_beginning_of_a_long_text_fits_with_what_is_said_of_it() -> None:
    rows = document_rows(open_document(b'{"a": {"b": "' + b"x" * 5_000, is_whole=False), 60)
    (line,) = [text_of([row]) for row in rows if '"b"' in text_of([row])]
    assert line.endswith("… goes on")
    assert len(line) < 60


def test_of_a_text_of_many_lines_the_first_are_shown() -> None:
    rows = document_rows(open_document(gzip.compress(b"\n" * 60_000)), 80)
    assert sum(row.is_item for row in rows) == MOST_TEXT_LINES + 1
    assert "the first 4.88 KiB of 58.6 KiB are shown" in text_of(rows)


def test_a_long_value_is_searched_in_slices() -> None:
    view = ValueView()
    view.rows = tuple(document_rows(open_document(json.dumps(list(range(500))).encode()), 80))
    with patch.object(value_view, "Slicer", partial(Slicer, slice_s=0.0)):
        assert sum(1 for _ in view.find_text("none")) == len(view.rows)


def test_rows_that_nobody_looks_at_are_not_drawn() -> None:
    data = b"[" + b",".join(b'{"id": %d}' % number for number in range(1_000)) + b"]"
    found = DecodedDocument(data, decode(data, limits=replace(DEFAULT, seconds=60)), choices=Choices(("JSON",), ()))
    never = AssertionError
    with patch.object(module, "_node_line", side_effect=never), patch.object(module, "_node_item", side_effect=never):
        rows = document_rows(found, 80)
    assert len(rows) == 2_001
    assert '"id": 999' in text_of(document_rows(found, 80)[-1:])
