"""The servers and recorders of the tests themselves: MONITOR, the proxy, the reader of the wire, and a reset."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.conftest import known
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


def test_every_version_answers_as_itself(server: Server) -> None:
    product, _, version = server.name.partition("-")
    assert ".".join(map(str, server.version[:2])) == version
    with server.client() as client:
        assert client.ping()
        assert ("valkey_version" in client.info("server")) is (product == "valkey")


def test_a_reset_undoes_data_settings_users_and_pauses(valkey: Server) -> None:
    with valkey.client() as client:
        client.set("key", "value")
        client.config_set("hash-max-listpack-entries", "7")
        client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "+@read", "~*")
        client.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
        client.execute_command("ACL", "SETUSER", "default", "off", "-@all")
    valkey.reset()
    with valkey.client() as client:
        assert client.dbsize() == 0
        assert client.config_get("hash-max-listpack-entries") != {"hash-max-listpack-entries": "7"}
        assert sorted(map(str, client.acl_users())) == ["default", "tests-admin"]
        assert client.set("key", "value")


def test_a_stopped_or_frozen_server_is_revived_by_a_reset(redis62: Server) -> None:
    port = redis62.port
    redis62.stop()
    redis62.reset()
    redis62.freeze()
    redis62.reset()
    with redis.Redis(port=port) as client:
        assert client.ping()


def test_tls(tls_server: Server) -> None:
    with redis.Redis(port=tls_server.port, ssl=True, ssl_ca_certs=str(known(tls_server.tls).ca)) as client:
        assert client.ping()
    with redis.Redis(port=tls_server.port, retry=Retry(NoBackoff(), 0)) as plain, pytest.raises(redis.ConnectionError):
        plain.ping()


def test_a_unix_server_has_no_port(unix_server: Server) -> None:
    assert unix_server.url == f"unix://{unix_server.socket}"
    assert unix_server.admin.config_get("port") == {"port": "0"}


def test_a_cluster_node_owns_every_slot(cluster_node: Server) -> None:
    with cluster_node.client() as client:
        assert client.execute_command("CLUSTER", "KEYSLOT", "123456789") == 0x31C3
        assert client.set("key", "value")


def test_a_server_ends_with_the_process_that_started_it() -> None:
    program = (
        "import sys; from tests.servers import binaries, start; "
        "server = start(next(iter(binaries().values()))); "
        "print(server.pid, server.folder, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        pid, folder = known(parent.stdout).readline().split()
        watch = os.pidfd_open(int(pid))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert select.select([watch], [], [], 20)[0], "the server outlived its parent"
        os.close(watch)
        shutil.rmtree(folder)
