"""Errors are safe to show, and error replies tell their code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import HOSTILE
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, RtuiError, ServerError, TargetError


@given(st.text())
def test_whatever_a_server_says_is_safe(message: str) -> None:
    said = ServerError(message)
    lost = ConnectionLost(message, message)
    for shown in (str(said), said.text, said.code, lost.happened, lost.remedy, str(lost)):
        assert HOSTILE.search(shown) is None


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        ("NOPERM User x has no permissions", "NOPERM", "User x has no permissions"),
        ("ERR unknown command", "ERR", "unknown command"),
        ("WRONGTYPE Operation against", "WRONGTYPE", "Operation against"),
        ("value is not an integer", "ERR", "value is not an integer"),
        ("LOADING", "LOADING", ""),
        ("", "ERR", ""),
        ("\x1b[31mERR x", "ERR", None),
    ],
)
def test_the_code_is_the_first_word(message: str, code: str, text: str | None) -> None:
    said = ServerError(message)
    assert said.code == code
    if text is not None:
        assert said.text == text


def test_a_long_error_is_cut() -> None:
    assert len(ServerError("ERR " + "x" * 100_000).text) < 2_000


def test_every_error_has_its_parts() -> None:
    for error in (
        RtuiError("title", "happened", "remedy"),
        TargetError("title", "happened", "remedy"),
        ConnectFailure(FailureKind.NAME, "happened", "remedy"),
    ):
        title = "The name does not resolve" if isinstance(error, ConnectFailure) else "title"
        assert (error.title, error.happened, error.remedy) == (title, "happened", "remedy")
        assert str(error) == f"{title}: happened"


def test_only_loading_is_waited_for() -> None:
    assert [kind for kind in FailureKind if kind.is_temporary] == [FailureKind.LOADING, FailureKind.FAILOVER]
