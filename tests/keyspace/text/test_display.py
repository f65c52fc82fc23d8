"""Names and values as text: it reads as text, escapes are told apart, and nothing of it acts on a terminal."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich._unicode_data import load as load_cell_table
from rich.cells import cell_len

from rtui.keyspace.text.display import (
    _DRAWN_TOGETHER,
    _NARROW_EMOJI,
    _TONED,
    _WIDE_EMOJI,
    DISPLAY_LIMIT,
    HOSTILE,
    Display,
    DisplayedPiece,
    EscapeSyntaxError,
    display,
    display_text,
    is_hidden,
    is_usual,
    mixed_letters,
    mixed_note,
    quoted,
    unescape,
)
from tests.servers import Server

UNICODE = Display()
ASCII = Display(ascii_only=True)
MODES = st.sampled_from([UNICODE, ASCII])

AWKWARD = st.sampled_from(
    [
        "\\", "\\x41", "\\u202e", "x41", "␛", "\x1b", "⏎", "\n", "␠", " ", "…", "...", "e", "é", "\u0301", "\u0323",
        "\u0338", "=", "\x9b", "\u202e", "\u200b", "\U000e0041", "\u1100", "\u1161", "\u212a",
        "\U0001f469\u200d\U0001f680", "\ufe0f", "[/]", "\x7f", "\xa0", "\ud800",
    ]
).map(lambda text: text.encode("utf-8", "surrogatepass"))  # fmt: skip
"""What could be confused with a token or an escape, or change what is around it."""

NAMES = st.one_of(
    st.lists(st.one_of(AWKWARD, st.binary(max_size=3)), max_size=12).map(b"".join),
    st.text(max_size=20).map(str.encode),
    st.binary(max_size=20),
)

XML_FORBIDS = frozenset(map(chr, range(0x20))) - set("\t\n\r") | {"\ufffe", "\uffff"}


def is_lone_mark(text: str, index: int) -> bool:
    """Whether the mark at this index has no letter to stand on."""
    before = text[:index]
    while before and unicodedata.category(before[-1]).startswith("M"):
        before = before[:-1]
    return not before or not before[-1].isalpha()


def assert_safe(shown: str) -> None:
    assert not HOSTILE.search(shown)
    assert shown.isprintable()
    assert not XML_FORBIDS.intersection(shown)
    for index, character in enumerate(shown):
        if unicodedata.category(character).startswith("M"):
            assert not is_lone_mark(shown, index)


@given(st.text(st.characters(max_codepoint=0x600) | st.characters(min_codepoint=0x3000, max_codepoint=0xD7FF)))
@example("a\u0301 ")
@example("\u00e9\\x41")
def test_what_is_usual_is_shown_as_it_is(text: str) -> None:
    if is_usual(text):
        assert display(text.encode(), limit=10 * len(text) + 1) == text


def test_common_letters_are_usual() -> None:
    assert is_usual("row 1: za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 \u65e5\u672c \u0436 \u03bb")
    assert not is_usual("a ")


@pytest.mark.parametrize(
    ("raw", "shown", "in_ascii"),
    [
        (b"shop:user:42", "shop:user:42", "shop:user:42"),
        (b"", "", ""),
        ("sesión:日本".encode(), "sesión:日本", r"sesi\u00f3n:\u65e5\u672c"),
        (b"\x1b]0;x\x07", "␛]0;x␇", r"\x1b]0;x\x07"),
        (b"a\nb\tc\rd\x00\x7f", "a⏎b⇥c␍d␀␡", r"a\x0ab\x09c\x0dd\x00\x7f"),
        (b"\xff\xc3", r"\xff\xc3", r"\xff\xc3"),
        ("\x9b1m".encode(), r"\xc2\x9b1m", r"\xc2\x9b1m"),
        ("a\u202eb".encode(), r"a\u202eb", r"a\u202eb"),
        ("a\u200bb\ufeff\u2028".encode(), r"a\u200bb\ufeff\u2028", r"a\u200bb\ufeff\u2028"),
        ("\U000e0041\ue000".encode(), r"\U000e0041\ue000", r"\U000e0041\ue000"),
        (b"\xed\xa0\x80", r"\xed\xa0\x80", r"\xed\xa0\x80"),
        ("\u0301e".encode(), r"\u0301e", r"\u0301e"),
        ("q\u0323".encode(), "q\u0323", r"q\u0323"),
        ("e\u0301".encode(), r"e\u0301", r"e\u0301"),
        ("é".encode(), "é", r"\u00e9"),
        (":\u0338".encode(), r":\u0338", r":\u0338"),
        ("\u212a".encode(), r"\u212a", r"\u212a"),
        (b"[/]:[bold]", "[/]:[bold]", "[/]:[bold]"),
        (b"C:\\dir\\x", "C:\\dir\\x", "C:\\dir\\x"),
        (rb"\xff", r"\x5cxff", r"\x5cxff"),
        ("␛".encode(), r"\u241b", r"\u241b"),
        (b" a b  ", " a b␠␠", r" a b\x20\x20"),
        (b" ", "␠", r"\x20"),
        ("\U0001f600".encode(), "\U0001f600", r"\U0001f600"),
    ],
)
def test_what_is_shown(raw: bytes, shown: str, in_ascii: str) -> None:
    assert display(raw) == UNICODE.name(raw) == shown
    assert ASCII.name(raw) == in_ascii


@pytest.mark.slow
def test_no_character_gets_through_that_should_not() -> None:
    """Each on its own; whatever is shown as itself takes room in the terminal."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    for character in characters[:0x20000] + characters[0x20000::97] + characters[0xE0000:0xE0200]:
        shown = display_text(character)
        if shown == character:
            assert not is_hidden(character)
            assert cell_len(character) > 0, ascii(character)
        else:
            assert not HOSTILE.search(shown)
            assert shown.isprintable()


def test_hostile_lists_all_that_is_assigned_and_invisible() -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
    for character in map(chr, range(sys.maxunicode + 1)):
        if character != " " and unicodedata.category(character) in hidden:
            assert HOSTILE.match(character), ascii(character)
    assert not HOSTILE.match(" ")


@given(NAMES, MODES, st.integers(1, 60))
def test_safe_at_any_length(raw: bytes, mode: Display, limit: int) -> None:
    shown = mode.name(raw, limit=limit)
    assert_safe(shown)
    assert len(shown) <= limit
    assert shown.isascii() or not mode.ascii_only
    ElementTree.fromstring(f"<a>{shown.replace('&', '').replace('<', '')}</a>")  # noqa: S314 -- our own text


@given(st.text(max_size=30), MODES, st.integers(1, 20))
def test_foreign_text_is_as_safe(text: str, mode: Display, limit: int) -> None:
    shown = mode.text(text, limit=limit)
    assert_safe(shown)
    assert len(shown) <= limit


@given(NAMES, NAMES, MODES)
@example(b"\xff", rb"\xff", UNICODE)
@example(b"\x1b", "␛".encode(), UNICODE)
@example(b"\x9b", "\x9b".encode(), UNICODE)
@example(b"\\\xff", rb"\\xff", UNICODE)
@example("é".encode(), "e\u0301".encode(), UNICODE)
@example(b"a ", b"a", UNICODE)
@example("a\u0323\u0301".encode(), "a\u0301\u0323".encode(), UNICODE)
def test_two_names_never_look_the_same(one: bytes, other: bytes, mode: Display) -> None:
    """As long as neither is cut; nor for a terminal that composes letters and marks or drops spaces at the end."""
    shown_one, shown_other = (mode.name(raw, limit=1_000) for raw in (one, other))
    assert (shown_one == shown_other) == (one == other)
    assert unicodedata.is_normalized("NFC", shown_one)
    assert shown_one.rstrip() == shown_one


def undisplayed(shown: str) -> bytes:
    """Read a name back from what was shown of it: the proof that nothing is lost."""
    pictures = {0x2400 + code: chr(code) for code in range(0x20)} | {0x23CE: "\n", 0x21E5: "\t", 0x2421: "\x7f"}
    raw, at = b"", 0
    while at < len(shown):
        for lead, digits in (("\\x", 2), ("\\u", 4), ("\\U", 8)):
            code = shown[at + 2 : at + 2 + digits]
            if shown.startswith(lead, at) and len(code) == digits and set(code) <= set("0123456789abcdef"):
                raw += bytes([int(code, 16)]) if lead == "\\x" else chr(int(code, 16)).encode()
                at += 2 + digits
                break
        else:
            raw += pictures.get(ord(shown[at]), shown[at]).replace("␠", " ").encode()
            at += 1
    return raw


@given(NAMES, MODES)
def test_what_is_shown_can_be_read_back(raw: bytes, mode: Display) -> None:
    assert undisplayed(mode.name(raw, limit=1_000)) == raw


@given(st.one_of(st.text(), NAMES.map(lambda raw: raw.decode("utf-8", "surrogateescape"))), MODES)
def test_safe_text_stays_as_it_is_within_a_message(text: str, mode: Display) -> None:
    once = mode.text(text)
    assert mode.text(once) == once
    name = mode.name(text.encode("utf-8", "replace"), limit=DISPLAY_LIMIT - len("refused: ."))
    assert mode.text(f"refused: {name}.") == f"refused: {name}."


def test_foreign_text() -> None:
    assert display_text("ERR \x1b[31m\r\n\udcff\ud800") == r"ERR ␛[31m␍⏎\xff\ud800"
    assert display_text("e\u0301") == r"e\u0301"


@pytest.mark.parametrize("unit", ["x", "é", "\U0001f600", "\x1b", "e\u0301", "\u202e", " "])
@pytest.mark.parametrize("mode", [UNICODE, ASCII])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 17, 40, DISPLAY_LIMIT])
def test_long_names_keep_their_beginning_and_their_end(unit: str, mode: Display, limit: int) -> None:
    raw = b"BEGIN" + unit.encode() * 5_000 + b"END"
    shown = mode.name(raw, limit=limit)
    assert_safe(shown)
    mark = "..." if mode.ascii_only else "…"
    assert shown.count(mark[:limit]) == 1
    assert limit - 20 < len(shown) <= limit
    if limit >= 40:
        assert shown.startswith("BEGIN")
        assert shown.endswith("END")
    if not unit.isspace():
        assert shown == mode.text(raw.decode(), limit=limit)


@given(NAMES, NAMES, st.binary(max_size=3), MODES, st.integers(1, 12))
def test_what_lies_in_between_has_no_influence(
    beginning: bytes, end: bytes, filler: bytes, mode: Display, limit: int
) -> None:
    """A name that is too long to be looked at as a whole is shown as a shorter one with the same ends would be."""
    shorter = mode.name(beginning + b"." * 60 + b"-" * 200 + b"." * 60 + end, limit=limit)
    longer = mode.name(beginning + b"." * 60 + (filler or b"-") * 5_000 + b"." * 60 + end, limit=limit)
    assert shorter == longer


class Watched(bytes):
    """A name that fails the test when more of it is taken than a small window."""

    def __getitem__(self, place: object) -> bytes:  # type: ignore[override]
        assert isinstance(place, slice)
        window = bytes.__getitem__(self, place)
        assert len(window) < 10_000
        return window

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise AssertionError("decoded as a whole")


@pytest.mark.parametrize("filling", [b"x", b"\xff", b"\x1b", "é".encode(), "\u0301".encode()])
def test_of_a_huge_name_only_the_ends_are_read(filling: bytes) -> None:
    shown = display(Watched(filling * 5_000_000))
    assert len(shown) <= DISPLAY_LIMIT
    assert_safe(shown)


def test_no_room_shows_nothing() -> None:
    assert display(b"name", limit=0) == ""
    assert display_text("name", limit=-1) == ""


@pytest.mark.parametrize(
    ("raw", "argument"),
    [
        (b"", '""'),
        (b"plain key", '"plain key"'),
        (b'a"b\\c', r'"a\"b\\c"'),
        (b"\n\r\t\x00\x1b\xff", r'"\n\r\t\x00\x1b\xff"'),
        ("é".encode(), r'"\xc3\xa9"'),
    ],
)
def test_quoted(raw: bytes, argument: str) -> None:
    assert quoted(raw) == argument


@given(st.binary())
def test_quoted_is_printable_ascii(raw: bytes) -> None:
    assert quoted(raw).isascii()
    assert quoted(raw).isprintable()


@pytest.fixture
def redis_cli(valkey: Server) -> list[str]:
    """The independent program that reads what `quoted` writes."""
    program = shutil.which("redis-cli") or shutil.which("valkey-cli")
    if program is None:
        pytest.skip("redis-cli is missing: the Debian 12 package redis-tools")
    return [program, "-s", valkey.socket, "--quoted-input"]


AWKWARD_NAMES = [b"", b" ", b"it's", b'"', b"\\", b"\\x41", b"$HOME `id` !x", b"a\nb", bytes(range(1, 256)), b"a\x00b"]


def test_redis_cli_reads_what_is_quoted(redis_cli: list[str]) -> None:
    for raw in AWKWARD_NAMES:
        answer = subprocess.run([*redis_cli, "ECHO", quoted(raw)], capture_output=True, check=True).stdout
        assert answer == raw + b"\n"


@given(st.binary())
def test_quoted_comes_back(raw: bytes) -> None:
    assert unescape(quoted(raw).encode()) == raw


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        (b"", b""),
        (b"plain:1", b"plain:1"),
        (rb"a\xfF\x00", b"a\xff\x00"),
        (rb"\n\r\t\a\b\\\"\'", b"\n\r\t\a\b\\\"'"),
        (rb"\u202e\U0001f600", "\u202e\U0001f600".encode()),
        (rb"\\x41", rb"\x41"),
        (b'"quoted"', b"quoted"),
        (b'"', b'"'),
        (b'"a', b'"a'),
        ("é\\x01".encode(), b"\xc3\xa9\x01"),
    ],
)
def test_escapes(text: bytes, raw: bytes) -> None:
    assert unescape(text) == raw


@pytest.mark.parametrize("text", [b"\\", b"a\\q", rb"\x4", rb"\xzz", rb"\u12", rb"\ud800", rb"\Uffffffff", b"\\\xff"])
def test_an_escape_that_stands_for_nothing_is_refused(text: bytes) -> None:
    with pytest.raises(EscapeSyntaxError, match="no escape"):
        unescape(text)


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("paypal", ""), ("p\u0430ypal", "\u0430"), ("user:p\u0430yp\u0430l:1", "\u0430"),
        ("\u0440\u0430ypal", "\u0440\u0430"), ("\u043f\u0440\u0438\u0432\u0435t", "t"),
        ("\u0430lpha-\u03bfmega", "\u0430\u03bf"), ("user:\u0438\u043c\u044f:name", ""),
        ("caf\u00e9_na\u00efve-\u0142\u00f3d\u017a", ""), ("日本語ひらがなカタカナABC", ""),
        ("한국어漢字abc", ""), ("日本語한국어", ""),
        ("漢字\u0430", "\u0430"), ("größe:5µm", ""), ("①②:½", ""), ("ＡＢＣabc", ""), ("", ""),
    ],
)  # fmt: skip
def test_letters_that_stand_out(name: str, letters: str) -> None:
    assert sorted(mixed_letters(name.encode())) == sorted(letters)


def test_what_is_said() -> None:
    assert mixed_note(b"paypal") is None
    assert mixed_note("p\u0430ypal".encode()) == "mixes scripts: U+0430 cyrillic small letter a"
    note = mixed_note("paypal\u0430\u0435\u043e\u0440\u0441".encode())
    assert note is not None
    assert note.endswith(" and 2 more")


@given(st.binary(max_size=40) | st.text(max_size=20).map(lambda one: one.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_looked_at(name: bytes) -> None:
    assert (mixed_note(name) is None) == (not mixed_letters(name))


@given(st.text(st.characters(min_codepoint=0x41, max_codepoint=0x24F, categories=["L"]), max_size=12))
def test_latin_with_accents_is_one_script(name: str) -> None:
    assert mixed_letters(name.encode()) == []


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

AWKWARD_TEXT = [
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
TEXTS = st.lists(st.sampled_from([*SEQUENCES, *LETTERS, *AWKWARD_TEXT]) | st.characters(), max_size=30).map("".join)


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
    assert [piece.text for piece in UNICODE.value(text.encode()) if piece.is_escape] == escapes


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
