"""Names that mix scripts: which are marked, and what is said of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import mixed_letters, mixed_note


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("paypal", ""),
        ("p\u0430ypal", "\u0430"),
        ("user:p\u0430yp\u0430l:1", "\u0430"),
        ("\u0440\u0430ypal", "\u0440\u0430"),
        ("\u043f\u0440\u0438\u0432\u0435t", "t"),
        ("\u0430lpha-\u03bfmega", "\u0430\u03bf"),
        ("user:\u0438\u043c\u044f:name", ""),
        ("caf\u00e9_na\u00efve-\u0142\u00f3d\u017a", ""),
        ("日本語ひらがなカタカナABC", ""),
        ("한국어漢字abc", ""),
        ("日本語한국어", ""),
        ("漢字\u0430", "\u0430"),
        ("größe:5µm", ""),
        ("①②:½", ""),
        ("ＡＢＣabc", ""),
        ("", ""),
    ],
)
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
