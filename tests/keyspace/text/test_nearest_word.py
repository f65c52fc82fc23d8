"""The nearest word to one that is unknown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.matching import did_you_mean, nearest_word

WORDS = ("browse.filter", "browse.sort", "tree.columns", "tree.width")


def test_the_nearest_word_is_suggested() -> None:
    assert nearest_word("browse.filtr", WORDS) == "browse.filter"
    assert did_you_mean("tree.with", WORDS) == " Did you mean tree.width?"


def test_nothing_is_suggested_for_what_is_like_no_word() -> None:
    assert nearest_word("xyz", WORDS) is None
    assert did_you_mean("xyz", WORDS) == ""
    assert nearest_word("xyz", ()) is None


def test_how_much_alike_they_must_be_is_chosen() -> None:
    assert nearest_word("abxx", ["abyy"], least=0.5) == "abyy"
    assert nearest_word("abxx", ["abyy"], least=0.6) is None


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8), st.data())
def test_a_known_word_is_its_own_nearest(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    assert nearest_word(word, words) == word
