"""The recorders of the tests: MONITOR at the server, the proxy before it, the reader of the wire."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from tests.monitor import Recorder, escapes_quotes, parse
from tests.proxy import DelayProxy
from tests.servers import Server
from tests.wire import NotACommandError, Requests

ARGV = st.lists(st.binary(max_size=40), min_size=1, max_size=6)


def packed(argv: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(argv) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in argv)


@given(st.lists(ARGV, max_size=5), st.integers(1, 20))
def test_the_wire_is_read_back_whatever_the_chunks(commands: list[list[bytes]], step: int) -> None:
    data = b"".join(map(packed, commands))
    requests = Requests()
    for start in range(0, len(data), step):
        requests.feed(data[start : start + step])
    assert requests.commands == commands
    assert requests.incomplete == b""


def test_an_inline_command_is_refused() -> None:
    with pytest.raises(NotACommandError):
        Requests().feed(b"PING\r\n")


def test_a_recorded_command_has_its_exact_bytes(server: Server) -> None:
    every_byte = bytes(range(256))
    hostile = [every_byte, b'" [0 1.2.3.4:5] "GET"', b"\\x00\\", b"", os.urandom(200)]
    if not escapes_quotes(server):
        hostile = [every_byte.replace(b"\\", b""), b"", os.urandom(200).replace(b"\\", b"").replace(b'"', b"")]
    with server.client() as client, Recorder(server) as recorder:
        client.client_setname("somebody")
        for key in hostile:
            client.execute_command("GET", key)
    assert [list(one.argv) for one in recorder.commands if one.name == "GET"] == [[b"GET", key] for key in hostile]


def test_commands_are_told_apart_by_client(valkey: Server) -> None:
    with redis.Redis(port=valkey.port) as one, redis.Redis(port=valkey.port) as other:
        one.client_setname("one")
        other.ping()
        with Recorder(valkey) as recorder:
            one.get("a")
            other.client_setname("other")
            other.get("b")
    assert [one.argv for one in recorder.named("one")] == [(b"GET", b"a")]
    assert [one.argv for one in recorder.named("other")] == [(b"CLIENT", b"SETNAME", b"other"), (b"GET", b"b")]
    assert len(recorder.by_client()) == 2


def test_a_line_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a line"):
        parse(b"+OK")


async def connect(proxy: DelayProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", proxy.port, limit=1 << 24)


async def test_a_delay_is_per_direction_and_costs_no_throughput(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 4_000_000)
    async with DelayProxy(valkey.port, 0.05) as proxy:
        reader, writer = await connect(proxy)
        loop = asyncio.get_running_loop()
        start = loop.time()
        writer.write(packed([b"PING"]))
        assert await reader.readline() == b"+PONG\r\n"
        assert loop.time() - start >= 0.1
        writer.write(packed([b"GET", b"big"]) * 10)
        await reader.readexactly(10 * 4_000_000)
        assert proxy.commands() == [[b"PING"], *[[b"GET", b"big"]] * 10]
        writer.close()


async def test_a_cut_in_the_middle_of_a_reply(valkey: Server) -> None:
    valkey.admin.set("key", b"x" * 100)
    async with DelayProxy(valkey.port) as proxy:
        reader, writer = await connect(proxy)
        proxy.cut_after(50)
        writer.write(packed([b"GET", b"key"]))
        got = b""
        with contextlib.suppress(ConnectionError):
            got = await reader.read()
        assert len(got) == 50
        await proxy.wait_connections(0)
        reader, writer = await connect(proxy)
        writer.write(packed([b"PING"]))
        assert await reader.readline() == b"+PONG\r\n"
        writer.close()


async def test_cut_refuse_and_resume(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy:
        reader, writer = await connect(proxy)
        await proxy.wait_connections(1)
        await proxy.refuse()
        proxy.cut()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await connect(proxy)
        await proxy.resume()
        reader, writer = await connect(proxy)
        await proxy.wait_accepted(2)
        writer.write(packed([b"PING"]))
        assert await reader.readline() == b"+PONG\r\n"
        writer.close()


async def test_held_replies_come_when_released(valkey: Server) -> None:
    async with DelayProxy(valkey.port) as proxy:
        reader, writer = await connect(proxy)
        proxy.hold_replies()
        writer.write(packed([b"INCR", b"counter"]))
        answer = asyncio.ensure_future(reader.readline())
        await proxy.wait_held(1)
        assert valkey.admin.get("counter") == b"1"
        assert not answer.done()
        proxy.release_replies()
        assert await answer == b":1\r\n"
        writer.close()
