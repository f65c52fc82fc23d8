"""A secret shows nothing of itself, in whatever way it is looked at."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.guard.command import MASK, Secret
from rtui.server.wire.target import Target

PASSWORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text not in MASK)


@given(PASSWORDS)
def test_nothing_shows_it(password: str) -> None:
    secret = Secret(password)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", f"{secret:>9}", "%s" % secret):  # noqa: UP031
        assert shown.strip() == MASK
    assert secret.reveal() == password


def test_a_target_does_not_show_it() -> None:
    target = Target(user="app", password=Secret("pa55word"))
    assert "pa55word" not in f"{target}{target!r}{target.label}{dataclasses.asdict(target)}{target.redis_cli_args()}"


def test_it_does_not_travel() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("pa55word"))


def test_copies_are_as_closed() -> None:
    secret = Secret("pa55word")
    assert copy.deepcopy([secret]) == [secret] == [copy.copy(secret)]


def test_a_traceback_with_values_does_not_show_it() -> None:
    try:
        raise ValueError(Target(password=Secret("pa55word")), Secret("pa55word"))
    except ValueError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert "pa55word" not in "".join(line for line in shown.format() if "raise ValueError" not in line)


def test_only_the_same_secret_is_equal() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


def test_an_empty_one_is_false() -> None:
    assert not Secret("")
    assert Secret(" ")
