"""Errors are safe to show and tell their code, and replies of protocol 3 read as those of protocol 2 do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import HOSTILE
from rtui.server.wire.errors import (
    ConnectFailure,
    ConnectionLost,
    FailureKind,
    Reply,
    RtuiError,
    ServerError,
    TargetError,
    as_resp2,
)


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
        title = "Unknown host" if isinstance(error, ConnectFailure) else "title"
        assert (error.title, error.happened, error.remedy) == (title, "happened", "remedy")
        assert str(error) == f"{title}: happened"


def test_only_loading_is_waited_for() -> None:
    assert [kind for kind in FailureKind if kind.is_temporary] == [FailureKind.LOADING, FailureKind.FAILOVER]


@pytest.mark.parametrize(
    ("name", "reply", "expected"),
    [
        ("XINFO STREAM", {b"length": 1, b"groups": {b"a": None}}, [b"length", 1, b"groups", [b"a", None]]),
        ("ZRANGE", [[b"a", 1.5], [b"b", 3.0]], [b"a", b"1.5", b"b", b"3"]),
        ("ZRANGE", [], []),
        ("ZRANGE", [[b"a", float("inf")]], [b"a", b"inf"]),
        ("HRANDFIELD", [[b"f", b"v"]], [b"f", b"v"]),
        ("HRANDFIELD", [b"f", b"g"], [b"f", b"g"]),
        ("XRANGE", [[b"1-0", [b"f", b"v"]]], [[b"1-0", [b"f", b"v"]]]),
        ("HSCAN", [b"0", [b"f", b"v"]], [b"0", [b"f", b"v"]]),
        ("X", True, 1),
        ("X", False, 0),
        ("X", None, None),
        ("X", 1e300, b"1e+300"),
        ("TYPE", b"zset", b"zset"),
    ],
)
def test_shapes(name: str, reply: Reply, expected: Reply) -> None:
    assert as_resp2(name, reply) == expected
