"""A lane on real servers: order, errors as values, pressure, silence, loss."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, cast

import pytest

from rtui.server import guard
from rtui.server.guard.command import build_batch
from rtui.server.wire.errors import ConnectionLost, FailureKind, ServerError
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
