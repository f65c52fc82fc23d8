"""Text in values: it reads as text, escapes are told apart, and nothing of it acts on a terminal."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich._unicode_data import load as load_cell_table
from rich.cells import cell_len

from rtui.keyspace.text.display import (
    _DRAWN_TOGETHER,
    _NARROW_EMOJI,
    _TONED,
    _WIDE_EMOJI,
    HOSTILE,
    Display,
    DisplayedPiece,
    is_hidden,
)

UNICODE, ASCII = Display(), Display(ascii_only=True)

SEQUENCES = [
    "👨‍👩‍👧‍👦",
    "👩🏽‍❤️‍💋‍👨🏿",
    "🏳️‍🌈",
    "🏴‍☠️",
    "🏋🏽‍♀️",
    "⛓️‍💥",
    "👁️‍🗨️",
    "🧑🏿‍🚀",
    "👍🏽",
    "❤️",
    "☺️",
    "☺︎",
    "7️⃣",
    "#️⃣",
    "🇵🇱",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
]
"""Emoji of several characters: joined, with skin tones and variation selectors, keycaps, flags."""

LETTERS = [
    *(unicodedata.normalize("NFD", letter) for letter in ("é", "ệ", "ỡ", "Å", "が", "각", "한", "й", "שׁ")),
    "स्",
    "नि",
    "க்",
    "ที่",
    "مَّ",
    "ស្",
]
"""Letters with their marks, and syllables of jamo."""

AWKWARD = [
    *(
        "\x1b", "\n", "\t", "\r", "\x00", "\x7f", "\x85", "\x9b", "\u202e", "\u2066", "\u200e", "\u061c", "\u200b",
        "\u2060",
    ),
    *("\ufeff", "\xad", "\ufe0f", "\ufe0e", "\u200d", "\u200c", "\U000e0041", "\U000e007f", "\U0001f3fd", "\U0001f1e6"),
    *(
        "\uffff", "\ud800", "\udc80", "\u2028", "\u2029", "\u0378", "\ue000", "\u115f", "\u1160", "\u11a8", "\u3164",
        "\u0301",
    ),
    *(
        "\\", "\\u202e", "\\x1b", "␛", "␠", "…", " ", "a", "7", "#", "я", "م", "ی", "ष", "्", "👨", "❤", "🏴", "日",
        "\u1112",
    ),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from([*SEQUENCES, *LETTERS, *AWKWARD]) | st.characters(), max_size=30).map("".join)


def joined(pieces: list[DisplayedPiece]) -> str:
    return "".join(piece.text for piece in pieces)


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("text", [*SEQUENCES, *LETTERS])
def test_what_is_drawn_as_one_is_a_piece(text: str) -> None:
    for around in ("", "a", " ", "日", "é"):
        pieces = UNICODE.value(f"{around}{text}x{around}".encode())
        assert DisplayedPiece(text) in pieces  # type: ignore[arg-type]
        assert not any(piece.is_escape and piece.text != "␠" for piece in pieces)
    assert cell_len(text) == (
        2 if text in SEQUENCES and "\ufe0e" not in text else cell_len(unicodedata.normalize("NFC", text))
    )


@pytest.mark.parametrize(
    "text",
    [
        "می‌خواهم", "क्‌ष", "Tiếng Việt, naïve café", r"Zo\u00eb and C:\x41 \\ \U0001f600 \n", "␛⏎␠ are pictures",
        "quotes \"in\" 'it'",
    ],
)  # fmt: skip
def test_text_without_escapes_is_the_text(text: str) -> None:
    for form in ("NFC", "NFD"):
        pieces = UNICODE.value(unicodedata.normalize(form, text).encode())
        assert joined(pieces) == unicodedata.normalize(form, text)
        assert not any(piece.is_escape for piece in pieces)


@pytest.mark.parametrize(
    ("text", "escapes"),
    [
        ("a\u200db \ufe0fx ❤\u200d", [r"\u200d", r"\ufe0f", r"\u200d"]),
        ("a\u200cb \u200cम", [r"\u200c", r"\u200c"]),
        ("x🏽 🏽", [r"\U0001f3fd", r"\U0001f3fd"]),
        ("🇩 🇩🇪🇫", [r"\U0001f1e9", r"\U0001f1eb"]),
        ("\U000e0067 🏴\U000e0067", [r"\U000e0067", r"\U000e0067"]),
        ("Z" + "\u0351" * 7, [r"\u0351"] * 3),
        (" \u0301:\u0301", [r"\u0301", r"\u0301"]),
        ("\u1161 \u11a8", [r"\u1161", r"\u11a8"]),
        ("\x1b[1m\x9b\r", ["␛", r"\xc2\x9b", "␍"]),
        (
            "\u202e\u2066\u200b\ufeff\xad\u2028\uffff\u0378",
            [rf"\u{code}" for code in ["202e", "2066", "200b", "feff", "00ad", "2028", "ffff", "0378"]],
        ),
        ("a  ", ["␠", "␠"]),
    ],
)
def test_what_stays_an_escape(text: str, escapes: list[str]) -> None:
    pieces = UNICODE.value(text.encode())
    assert [piece.text for piece in pieces if piece.is_escape] == escapes


@given(TEXTS, st.sampled_from([UNICODE, ASCII]))
def test_nothing_of_a_value_acts_on_a_terminal(text: str, display: Display) -> None:
    for pieces in (display.value(raw(text), limit=1_000), display.value_text(text, limit=1_000)):
        for piece in pieces:
            assert piece.text
            rest = _DRAWN_TOGETHER.sub("", piece.text)
            assert not any(is_hidden(character) for character in rest), ascii(piece)
            assert cell_len(piece.text) > 0
            assert not piece.is_escape or len(piece.text) == 1 or re.fullmatch(r"(\\(x..|u.{4}|U.{8}))+", piece.text)
            assert sum(unicodedata.category(one)[0] == "M" for one in piece.text) <= 5
        assert sum(cell_len(piece.text) for piece in pieces) == cell_len(joined(pieces))
        assert display is UNICODE or joined(pieces).isascii()


@given(TEXTS)
def test_each_character_is_shown_or_escaped(text: str) -> None:
    """In order: nothing is lost, and what is no escape is as it was."""
    rest = text
    for piece in UNICODE.value_text(text, limit=10_000):
        if piece.is_escape:
            rest = rest[1:]
        else:
            assert rest.startswith(piece.text)
            rest = rest[len(piece.text) :]
    assert not rest


@given(TEXTS, st.integers(0, 60))
def test_a_limit_is_kept_and_breaks_no_piece(text: str, limit: int) -> None:
    whole = UNICODE.value(raw(text), limit=10_000)
    shown = UNICODE.value(raw(text), limit=limit)
    assert len(joined(shown)) <= limit
    if len(joined(whole)) > limit > 0:
        assert "…" in joined(shown)
    known = {piece.text for piece in whole} | {"…"}
    edge = [piece for piece in shown if piece.text not in known]
    assert len(edge) <= 3 or not HOSTILE.search(joined(edge))


def test_the_widths_of_emoji_are_those_of_the_terminal_library() -> None:
    for character in map(chr, range(0xA0, 0x1FB00)):
        if re.match(f"[{_NARROW_EMOJI}]", character):
            assert (cell_len(character), cell_len(character + "\ufe0f")) == (1, 2), ascii(character)
        elif re.match(f"[{_WIDE_EMOJI}]", character) and character.isprintable():
            assert cell_len(character) == cell_len(character + "\ufe0f") == 2, ascii(character)
        if re.match(f"[{_TONED}]", character):
            assert cell_len(character + "\U0001f3fd") == 2
    known = {one for one in load_cell_table("auto").narrow_to_wide if not one.isascii()}
    assert {one for one in known if not re.match(f"[{_NARROW_EMOJI}]", one)} == set()
