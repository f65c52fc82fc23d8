from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from textual.color import Color

from rtui.keyspace.text.display import _DRAWN_TOGETHER, HOSTILE
from rtui.tui.kit.terminal import _LOOKALIKES, _TWO_CELLS, AsciiFilter, ConsoleFilter, SanitisingFilter, plain
from tests.keyspace.text.test_value_text import SEQUENCES

BLACK = Color(0, 0, 0)
CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Cs"}


@given(st.text())
def test_nothing_that_steers_a_terminal_gets_through(text: str) -> None:
    (segment,) = SanitisingFilter().apply([Segment(text)], BLACK)
    assert not HOSTILE.search(_DRAWN_TOGETHER.sub("", segment.text))
    assert not any(ord(ch) < 32 or 0x7F <= ord(ch) < 0xA0 for ch in segment.text)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_deleting_does_not_move_what_stands_behind(text: str) -> None:
    (segment,) = SanitisingFilter().apply([Segment(text)], BLACK)
    assert cell_len(segment.text) == cell_len(text)


def test_every_control_and_direction_is_taken_out() -> None:
    steering = [chr(code) for code in range(0x3000) if unicodedata.category(chr(code)) in CATEGORIES]
    (segment,) = SanitisingFilter().apply([Segment("".join(steering))], BLACK)
    assert segment.text.strip() == ""


@pytest.mark.parametrize("text", SEQUENCES)
def test_what_is_drawn_as_one_gets_through(text: str) -> None:
    (segment,) = SanitisingFilter().apply([Segment(f"a\u200d{text}\u200b\ufe0f")], BLACK)
    assert segment.text == f"a{text}"


def test_controls_of_the_screen_itself_stay() -> None:
    control = Segment("\x1b[2J", None, [(ControlType.CLEAR,)])
    assert SanitisingFilter().apply([control, Segment("a\x1bb")], BLACK) == [control, Segment("ab")]


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x2FFF, exclude_categories=["Cc", "Cf"])))
def test_plain_terminals_get_ascii_of_the_same_width(text: str) -> None:
    assert plain(text).isascii()
    assert cell_len(plain(text)) == cell_len(text)


def test_marks_keep_their_meaning() -> None:
    segments = AsciiFilter().apply([Segment("▾ shop  ≥ 1,204  ≈ 1.2k  ██▌ · – ≠")], BLACK)
    assert segments[0].text == "v shop  >=1,204  ~ 1.2k  ### - - !"


CONSOLE_GLYPHS = "☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼⌂"
"""What code page 437 has in the places of the control characters."""


def test_the_linux_console_gets_only_what_its_fonts_have() -> None:
    ours = "".join(_LOOKALIKES.values()) + "".join(_TWO_CELLS)
    segments = ConsoleFilter().apply([Segment(ours)], BLACK)
    shown = "".join(segment.text for segment in segments)
    assert cell_len(shown) == cell_len(ours)
    missing = [ch for ch in shown if ch not in CONSOLE_GLYPHS and not ch.encode("cp437", "ignore")]
    assert not missing


def test_names_and_controls_pass_the_console_filter() -> None:
    control = Segment("…", None, [(ControlType.BELL,)])
    assert ConsoleFilter().apply([Segment("käse жук 日本"), control], BLACK) == [Segment("käse жук 日本"), control]
