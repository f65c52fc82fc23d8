"""A lane on real servers: order, errors as values, pressure, silence, loss."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, cast

import pytest

from rtui.server import guard
from rtui.server.guard.command import CommandNames, build_batch
from rtui.server.guard.compatible import COMPATIBLE
from rtui.server.wire.errors import NOT_SENT, ConnectionLost, FailureKind, Reply, ServerError
from rtui.server.wire.lane import Refusals, with_errors
from rtui.server.wire.opening import open_lane
from rtui.server.wire.target import Target
from tests.proxy import DelayProxy
from tests.server.targets import ask, lane_to, target_of
from tests.servers import Server
from tests.wire import Listener


async def test_replies_come_in_order(server: Server) -> None:
    server.admin.mset({f"k{i}": "x" * i for i in range(50)})
    async with lane_to(target_of(server)) as lane:
        assert await lane.run(*[guard.strlen(b"k%d" % i) for i in range(50)]) == list(range(50))


async def test_runs_overlap_and_keep_their_replies_apart(server: Server) -> None:
    server.admin.mset({f"k{i}": "x" * i for i in range(500)})
    async with lane_to(target_of(server)) as lane:
        runs = [
            lane.run(build_batch(guard.strlen, [b"k%d" % i for i in range(start, start + 5)]))
            for start in range(0, 500, 5)
        ]
        assert lane.traffic.commands == 500
        assert not any(run.done() for run in runs)
        assert await asyncio.gather(*runs) == [list(range(start, start + 5)) for start in range(0, 500, 5)]


async def test_over_a_unix_socket(unix_server: Server) -> None:
    async with lane_to(target_of(unix_server)) as lane:
        assert await ask(lane, guard.ping()) == b"PONG"


async def test_over_tls_with_replies_larger_than_any_buffer(tls_server: Server) -> None:
    tls_server.admin.set("big", b"x" * 60_000)
    async with lane_to(target_of(tls_server)) as lane:
        replies = await lane.run(*[guard.getrange(b"big", 0, 59_999)] * 100)
    assert replies == [b"x" * 60_000] * 100


async def test_an_error_reply_is_a_value_among_others(server: Server) -> None:
    server.admin.rpush("list", 1)
    async with lane_to(target_of(server)) as lane:
        first, error, last = await lane.run(guard.llen(b"list"), guard.strlen(b"list"), guard.llen(b"list"))
        assert (first, last) == (1, 1)
        assert isinstance(error, ServerError)
        assert error.code == "WRONGTYPE"
        with pytest.raises(ServerError, match="WRONGTYPE"):
            await ask(lane, guard.strlen(b"list"))


async def test_nothing_but_guard_commands_can_be_sent(valkey: Server) -> None:
    class Impostor:
        name, packed, replies, redacted = "FLUSHALL", b"*1\r\n$8\r\nFLUSHALL\r\n", 1, False

    valkey.admin.set("k", "v")
    async with lane_to(target_of(valkey)) as lane:
        for wrong in (Impostor(), b"*1\r\n$8\r\nFLUSHALL\r\n", "FLUSHALL"):
            with pytest.raises(TypeError):
                lane.run(cast(Any, wrong))
            with pytest.raises(TypeError):
                lane.run(guard.ping(), cast(Any, wrong))
        assert await ask(lane, guard.exists(b"k")) == 1
        assert lane.traffic.commands == 1


async def test_a_run_of_nothing(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        assert await lane.run() == []


async def test_what_went_through_is_counted(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        await lane.run(guard.ping(), guard.ping())
        assert lane.traffic.commands == 2
        assert lane.traffic.bytes_out == 2 * len(b"*1\r\n$4\r\nPING\r\n")
        assert lane.traffic.bytes_in == 2 * len(b"+PONG\r\n")


async def test_a_cancelled_run_leaves_the_others_alone(valkey: Server) -> None:
    valkey.admin.set("k", "four")
    async with lane_to(target_of(valkey)) as lane:
        given_up = lane.run(*[guard.ping()] * 100)
        kept = lane.run(guard.strlen(b"k"))
        given_up.cancel()
        assert await kept == [4]


async def test_requests_wait_while_the_server_does_not_read(valkey: Server) -> None:
    keys = [b"%d" % i + b"x" * 4_000 for i in range(1_000)]
    async with lane_to(target_of(valkey)) as lane:
        valkey.freeze()
        runs = [lane.run(build_batch(guard.exists, keys)) for _ in range(8)]
        await asyncio.sleep(0)
        assert lane.traffic.bytes_out < 8 * 4_000_000
        assert lane.traffic.commands == 8_000
        assert not any(run.done() for run in runs)
        valkey.thaw()
        for replies in await asyncio.gather(*runs):
            assert replies == [0] * 1_000


async def test_a_silent_server_is_given_up(valkey: Server) -> None:
    async with lane_to(target_of(valkey), reply_timeout_s=0.1) as lane:
        valkey.freeze()
        with pytest.raises(ConnectionLost) as caught:
            await lane.run(guard.ping())
        assert caught.value.kind is FailureKind.TIMEOUT
        assert not lane.is_open


async def test_a_slow_answer_in_pieces_is_not_silence() -> None:
    async def dribbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        for byte in b"+PONG\r\n":
            await asyncio.sleep(0.03)
            writer.write(bytes([byte]))

    async with Listener(dribbling) as server, lane_to(server.target, reply_timeout_s=0.15) as lane:
        assert await ask(lane, guard.ping()) == b"PONG"


async def test_an_idle_lane_is_not_silent(valkey: Server) -> None:
    async with lane_to(target_of(valkey), reply_timeout_s=0.5) as lane:
        await lane.run(guard.ping())
        await asyncio.wait([lane.closed], timeout=0.7)
        assert lane.is_open
        assert await ask(lane, guard.ping()) == b"PONG"


async def test_a_cut_in_the_middle_of_a_reply(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 50_000)
    async with DelayProxy(valkey.port) as proxy, lane_to(Target(port=proxy.port)) as lane:
        await lane.run(guard.ping())
        proxy.cut_after(60_000)
        runs = [lane.run(guard.getrange(b"big", 0, 49_999)) for _ in range(3)]
        assert await runs[0] == [b"x" * 50_000]
        for run in runs[1:]:
            with pytest.raises(ConnectionLost):
                await run
        assert (await lane.closed).kind is FailureKind.CLOSED


async def test_a_dead_server_fails_everything_that_waits_and_everything_after(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        valkey.freeze()
        waiting = [lane.run(guard.ping()) for _ in range(3)]
        valkey.stop()
        for run in waiting:
            with pytest.raises(ConnectionLost):
                await run
        with pytest.raises(ConnectionLost):
            await lane.run(guard.ping())
        with pytest.raises(ConnectionLost):
            await ask(lane, guard.ping())


async def test_closing_fails_what_waits(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        valkey.freeze()
        waiting = lane.run(guard.ping())
        lane.close()
        lane.close()
        with pytest.raises(ConnectionLost, match="closed by rtui"):
            await waiting


async def test_a_failed_run_that_nobody_awaits_makes_no_noise(valkey: Server) -> None:
    noises: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noises.append(context))
    async with lane_to(target_of(valkey)) as lane:
        lane.run(guard.ping())
        lane.close()
        lane.run(guard.ping())
        await lane.closed
    gc.collect()
    assert noises == []


async def test_replies_that_nobody_asked_for() -> None:
    async def babbling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"+OK\r\n")
        await reader.read()

    async with Listener(babbling) as server, lane_to(server.target) as lane:
        assert (await lane.closed).kind is FailureKind.PROTOCOL


async def test_a_second_lane_reaches_the_address_of_the_first(valkey: Server) -> None:
    async with lane_to(target_of(valkey, host="localhost")) as first:
        assert first.peer is not None
        nowhere = Target(host="no-such-host.invalid", port=valkey.port)
        second = await open_lane(nowhere, peer=first.peer)
        assert await ask(second, guard.ping()) == b"PONG"
        second.close()


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
