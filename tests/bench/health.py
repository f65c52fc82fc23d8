"""What watching a server's health costs it: server time a second by commandstats, with few and with many clients.

The server has used all of its commands that can be used, and is sampled every second, the least interval there is.

Run `python -m tests.bench.health [VERSION…]`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import Iterator

import redis

from rtui.keyspace.text.display import SafeText
from rtui.server.health.probe import HealthProbe
from rtui.server.wire.connection import Connection
from tests.server.targets import target_of
from tests.servers import Server, binaries, running

SECONDS = 30
"""How long each server is watched."""

CLIENTS = (0, 1_000 - 10, 5_000)
"""Idle clients beside: none, as many as are listed, and more."""

BLOCKING = {
    *("shutdown", "debug", "monitor", "sync", "psync", "replicaof", "slaveof", "failover", "quit", "reset", "hello"),
    *("auth", "multi", "exec", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"),
    *("client", "acl", "config", "wait", "waitaof", "swapdb", "flushall", "replconf", "bgsave", "save", "module"),
    *("bgrewriteaof", "cluster", "post", "host:", "blpop", "brpop", "blmove", "brpoplpush", "blmpop", "bzmpop"),
    *("bzpopmin", "bzpopmax", "xread", "xreadgroup", "migrate", "pfdebug", "restore-asking"),
}
"""Commands that are not used: they would hold the connection, or change what is measured."""


def use_commands(server: Server) -> int:
    """Use each command once, most of them with an error, and return how many there are statistics of."""
    client = server.client()
    for entry in client.execute_command("COMMAND").values():
        name = str(entry["name"]).lower()
        if name not in BLOCKING:
            with contextlib.suppress(redis.RedisError):
                client.execute_command(name, *["1"] * (abs(int(entry["arity"])) - 1))
    client.close()
    return len(server.admin.info("commandstats"))


@contextlib.contextmanager
def idle_clients(server: Server, count: int) -> Iterator[None]:
    """Have so many clients that do nothing."""
    sockets = []
    for _ in range(count):
        one = socket.socket(socket.AF_UNIX)
        one.connect(server.socket)
        one.sendall(b"PING\r\n")
        one.recv(16)
        sockets.append(one)
    try:
        yield
    finally:
        for one in sockets:
            one.close()


def took_us(server: Server) -> dict[str, float]:
    """The server's time by command so far."""
    stats = server.admin.info("commandstats")
    return {name.removeprefix("cmdstat_"): float(one["usec"]) for name, one in stats.items()}


async def watched_ms_per_s(server: Server) -> tuple[float, float, int]:
    """Milliseconds of commands, and of the processor, that a second of watching takes; and the samples' bytes."""
    connection = Connection(target_of(server))
    await connection.open()
    probe = HealthProbe(connection, SafeText("server"))
    await probe.sample()
    bytes_in = connection.log.bytes_in
    before, began_s = took_us(server), time.monotonic()
    cpu_s = cpu_of(server)
    for turn in range(1, SECONDS + 1):
        await asyncio.sleep(max(0.0, began_s + turn - time.monotonic()))
        await probe.sample()
    cpu_s = cpu_of(server) - cpu_s
    after = took_us(server)
    received = (connection.log.bytes_in - bytes_in) // SECONDS
    await connection.close()
    watched = sum(after[name] - before.get(name, 0.0) for name in after)
    return watched / 1000 / SECONDS, 1000 * cpu_s / SECONDS, received


def cpu_of(server: Server) -> float:
    """Seconds of the processor that the server has used."""
    info = server.admin.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def main() -> None:
    """Print a row a server and number of clients."""
    print(f"{'':12}{'clients':>9}{'used':>7}{'ms/s':>9}{'cpu ms/s':>10}{'idle':>7}{'B/sample':>10}{'own slow':>10}")
    for name in sys.argv[1:] or binaries():
        for count in CLIENTS:
            with running(binaries()[name], "--maxclients", "10000") as server:
                used = use_commands(server)
                with idle_clients(server, count):
                    idle_s = cpu_of(server)
                    time.sleep(5)
                    idle = 200 * (cpu_of(server) - idle_s)
                    ms, cpu_ms, size = asyncio.run(watched_ms_per_s(server))
                    own = sum(entry["client_name"] == b"rtui" for entry in server.admin.slowlog_get(128))
                row = f"{name:12}{count:>9,}{used:>7}{ms:>9.3f}{cpu_ms:>10.2f}{idle:>7.2f}{size:>10,}{own:>10}"
                print(row, flush=True)


if __name__ == "__main__":
    main()
