"""Commands that a lane answers itself: those denied before, those disabled, those that a server must not get."""

from __future__ import annotations

import asyncio

import pytest

from rtui.server import guard
from rtui.server.guard.command import build_batch
from rtui.server.guard.compatible import COMPATIBLE
from rtui.server.guard.names import CommandNames
from rtui.server.wire.errors import NOT_SENT, ConnectionLost, FailureKind, Reply, ServerError
from rtui.server.wire.lane import Refusals, with_errors

DENIED = ServerError("NOPERM User x has no permissions to run the 'strlen' command")
NO_KEY = ServerError("NOPERM No permissions to access a key")
STRLEN, EXISTS = guard.strlen(b"k"), guard.exists(b"k")


def test_a_command_is_refused_once_the_server_has_denied_it() -> None:
    refusals = Refusals(CommandNames())
    assert not refusals.denied
    refusals.learn((STRLEN, EXISTS), [DENIED, 1])
    assert refusals.of((EXISTS, STRLEN, STRLEN), None) == [None, DENIED, DENIED]
    refusals.forget()
    assert refusals.of((STRLEN,), None) == [None]


def test_a_denied_key_or_a_batch_denies_no_command() -> None:
    refusals = Refusals(CommandNames())
    refusals.learn((STRLEN,), [NO_KEY])
    refusals.learn((build_batch(guard.strlen, [b"a", b"b"]),), [DENIED, DENIED])
    assert not refusals.denied


def test_what_the_profile_disables_stays_refused() -> None:
    refusals = Refusals(CommandNames((("STRLEN", ""),)))
    for _ in range(2):
        (error,) = refusals.of((STRLEN,), None)
        assert error is not None
        assert "disabled" in error.text
        refusals.forget()


def test_what_a_compatible_server_must_not_get_is_refused_with_the_reason() -> None:
    garnet = next(one for one in COMPATIBLE if one.name == "Garnet")
    refusals = Refusals(CommandNames())
    refusals.learn((STRLEN,), [DENIED])
    denied, allowed, unsent = refusals.of((STRLEN, EXISTS, guard.dbsize()), garnet)
    assert denied is DENIED
    assert allowed is None
    assert unsent is not None
    assert unsent.code == NOT_SENT
    assert "DBSIZE is not sent to Garnet" in unsent.text


async def test_errors_stand_among_the_replies_in_order() -> None:
    sent: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
    batch = build_batch(guard.exists, [b"a", b"b"])
    found = with_errors(sent, (STRLEN, batch, STRLEN, EXISTS), (DENIED, None, DENIED, None))
    sent.set_result([1, 0, 7])
    assert await found == [DENIED, 1, 0, DENIED, 7]


async def test_of_a_lost_connection_all_is_lost() -> None:
    sent: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
    found = with_errors(sent, (STRLEN, EXISTS), (DENIED, None))
    given_up = with_errors(sent, (STRLEN, EXISTS), (DENIED, None))
    given_up.cancel()
    sent.set_exception(ConnectionLost("It is gone.", kind=FailureKind.TIMEOUT, last_error=NO_KEY))
    with pytest.raises(ConnectionLost, match="It is gone") as lost:
        await found
    assert (lost.value.kind, lost.value.last_error) == (FailureKind.TIMEOUT, NO_KEY)
    assert given_up.cancelled()
