"""Servers that are driven into states on purpose, and what samples say of them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import redis

from rtui.analysis.facts import Reason
from rtui.analysis.health.sample import Sample, Source
from rtui.keyspace.text.display import SafeText
from rtui.server.health.probe import HealthProbe
from tests.server.targets import connected, eventually, target_of
from tests.servers import Server

MANY = 5_000
"""Connections, more than are listed."""


@asynccontextmanager
async def probing(server: Server) -> AsyncIterator[HealthProbe]:
    async with connected(target_of(server)) as connection:
        yield HealthProbe(connection, SafeText("server"), monotonic=lambda: 0.0)


async def sample_of(server: Server) -> Sample:
    async with probing(server) as probe:
        return await probe.sample()


def number(sample: Sample, name: str) -> float:
    found = sample.info[name]
    assert not isinstance(found, str)
    return found


@contextlib.contextmanager
def raw_clients(server: Server, count: int, sends: bytes = b"PING\r\n") -> Iterator[list[socket.socket]]:
    """So many connections without a library, which have sent something and read nothing."""
    sockets = []
    for _ in range(count):
        one = socket.socket(socket.AF_UNIX)
        one.connect(server.socket)
        with contextlib.suppress(BrokenPipeError):  # it was refused already
            one.sendall(sends)
        sockets.append(one)
    try:
        yield sockets
    finally:
        for one in sockets:
            one.close()


async def test_blocked_clients(server: Server) -> None:
    with raw_clients(server, 1, b"CLIENT SETNAME worker\r\nBLPOP jobs 0\r\n"):
        await eventually(lambda: server.admin.info("clients")["blocked_clients"] == 1)
        sample = await sample_of(server)
    assert sample.info["blocked_clients"] == 1
    (blocked,) = [one for one in sample.clients if "b" in one.flags]
    assert (blocked.name, blocked.last_command) == (b"worker", "BLPOP")


async def test_subscribed_clients(server: Server) -> None:
    with raw_clients(server, 1, b"SUBSCRIBE a b\r\n") as (client,):
        client.recv(1)
        sample = await sample_of(server)
    (subscribed,) = [one for one in sample.clients if one.subscriptions]
    assert subscribed.subscriptions == 2
    assert "P" in subscribed.flags
    assert sample.info["pubsub_channels"] == 2


async def test_rejected_clients(server: Server) -> None:
    async with probing(server) as probe:
        server.admin.config_set("maxclients", int(server.admin.info("clients")["connected_clients"]))
        with raw_clients(server, 3) as clients:
            assert all(client.recv(64).startswith(b"-ERR max") for client in clients)
        sample = await probe.sample()
    assert sample.info["rejected_connections"] == 3
    assert sample.settings["maxclients"] == str(number(sample, "maxclients"))


async def test_replies_that_a_client_does_not_read(server: Server) -> None:
    """Of values that are not large: Redis 8.6 keeps no copy of large ones for a reply, and does not count them."""
    server.admin.set("text", "x" * 1_000)
    with raw_clients(server, 1, b"CLIENT SETNAME lazy\r\n" + b"GET text\r\n" * 12_000):
        await eventually(lambda: server.admin.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"] == 12_000)
        sample = await sample_of(server)
    (lazy,) = [one for one in sample.clients if one.name == b"lazy"]
    assert lazy.output_bytes is not None
    assert lazy.output_bytes > 10 << 20


async def test_a_slow_script(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 1_000)
    client = server.client()
    client.client_setname("batch")
    client.eval("local n = 0 for i = 1, 3000000 do n = n + i end return n", 1, "shop:\x1b[31m")
    sample = await sample_of(server)
    (slow,) = [one for one in sample.slow if one.name == "EVAL"]
    assert (slow.client_name, slow.argv[-1], slow.is_own) == (b"batch", b"shop:\x1b[31m", False)
    assert slow.amount >= 1_000
    assert sample.commands["EVAL"].took_us >= slow.amount
    client.close()


async def test_nothing_of_rtui_is_slow(server: Server) -> None:
    async with probing(server) as probe:
        for _ in range(3):
            probe.ask_everything()
            sample = await probe.sample()
    assert not [one for one in sample.slow if one.is_own]
    assert server.admin.config_get("slowlog-log-slower-than") == {"slowlog-log-slower-than": "10000"}


async def test_passwords_are_not_in_the_log(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    with raw_clients(server, 1, b"AUTH somebody word-of-a-test\r\n") as (client,):
        assert client.recv(64).startswith(b"-WRONGPASS")
    server.admin.execute_command("ACL", "SETUSER", "somebody", ">word-of-a-test")
    server.admin.config_set("masterauth", "word-of-a-test")
    sample = await sample_of(server)
    assert {"ACL", "CONFIG"} <= {one.name for one in sample.slow}
    assert "word-of-a-test" not in repr(sample)


async def test_errors_are_counted_by_code(server: Server) -> None:
    client = server.client()
    client.lpush("list", 1)
    for _ in range(3):
        with pytest.raises(redis.ResponseError):
            client.get("list")
    sample = await sample_of(server)
    assert sample.errors["WRONGTYPE"] == 3
    assert sample.commands["GET"].failed == 3
    client.close()


async def test_evictions(server: Server) -> None:
    server.admin.config_set("maxmemory-policy", "allkeys-lru")
    server.admin.config_set("maxmemory", int(server.admin.info("memory")["used_memory"]) + 500_000)
    client = server.client()
    for number_ in range(40):
        client.set(f"key:{number_}", "x" * 50_000)
    sample = await sample_of(server)
    assert number(sample, "evicted_keys") > 0
    assert sample.info["maxmemory_policy"] == sample.settings["maxmemory-policy"] == "allkeys-lru"
    assert sample.databases[0].keys < 40
    client.close()


@pytest.mark.slow
async def test_thousands_of_clients(valkey: Server) -> None:
    with raw_clients(valkey, MANY):
        sample = await sample_of(valkey)
        assert "cmdstat_client|list" not in valkey.admin.info("commandstats")
    missing = sample.missing[Source.CLIENTS]
    assert missing.reason is Reason.TOO_LARGE
    assert "5,00" in missing.detail
    assert number(sample, "connected_clients") > MANY


async def test_a_failed_save(server: Server) -> None:
    server.admin.set("a", "b")
    before = server.admin.info("persistence")["rdb_last_save_time"]
    (server.folder / "dump.rdb").mkdir()
    with contextlib.suppress(redis.ResponseError):
        server.admin.bgsave()
    await eventually(lambda: not server.admin.info("persistence")["rdb_bgsave_in_progress"])
    sample = await sample_of(server)
    (server.folder / "dump.rdb").rmdir()
    assert sample.info["rdb_last_bgsave_status"] == "err"
    assert sample.info["rdb_last_save_time"] == before
    server.admin.bgsave()
    await eventually(lambda: server.admin.info("persistence")["rdb_last_bgsave_status"] == "ok")
