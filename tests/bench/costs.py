"""What every command on the list costs a server: server time on large values, as the slow log has it.

Run `python -m tests.bench.costs [VERSION…]`.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from typing import Any

import redis

from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.spec import CommandGroup, Spec
from tests.server.guard.samples import samples
from tests.servers import Server, binaries, running

ELEMENTS = 300_000
"""Elements of each large collection."""

RUNS = 11
"""How often each command is sent."""

FILLED = {
    CommandGroup.STRING: b"string",
    CommandGroup.HASH: b"hash",
    CommandGroup.LIST: b"list",
    CommandGroup.SET: b"set",
    CommandGroup.ZSET: b"zset",
    CommandGroup.STREAM: b"stream",
    CommandGroup.ARRAY: b"array",
    CommandGroup.VECTORS: b"vectors",
}
"""The key of a large value for each group."""

WIDEST = {
    "HMGET": (b"HMGET", b"hash", *(b"field:%d" % index for index in range(0, 100_000, 1000))),
    "HPTTL": (b"HPTTL", b"hash", b"FIELDS", b"100", *(b"field:%d" % index for index in range(0, 100_000, 1000))),
    "LRANGE": (b"LRANGE", b"list", b"150000", b"150099"),
    "ZRANGE": (b"ZRANGE", b"zset", b"150000", b"150099", b"WITHSCORES"),
    "GETRANGE": (b"GETRANGE", b"string", b"50000000", b"50065535"),
    "ARSCAN": (b"ARSCAN", b"array", b"0", b"18446744073709551614", b"LIMIT", b"100"),
}
"""The widest form of commands whose sample is narrow."""


def fill(server: Server) -> None:
    """Write one large value of each type this version has."""
    admin = server.admin
    admin.execute_command("SETRANGE", "string", 100_000_000, "x")
    pipeline = admin.pipeline(transaction=False)
    for first in range(0, ELEMENTS, 1000):
        numbers = range(first, first + 1000)
        pipeline.rpush("list", *numbers)
        pipeline.sadd("set", *(b"member:%d" % number for number in numbers))
        pipeline.zadd("zset", {f"member:{number}": number for number in numbers})
        pipeline.hset("hash", mapping={f"field:{number}": number for number in numbers})
        pipeline.execute()
    for number in range(20_000):
        pipeline.xadd("stream", {"field": number})
    for number in range(1000):
        pipeline.xgroup_create("stream", f"group:{number}", "0")
    pipeline.xgroup_create("stream", "group", "0")
    for number in range(1000):
        pipeline.xgroup_createconsumer("stream", "group", f"consumer:{number}")
    pipeline.execute()
    for command in extras():
        try:
            admin.execute_command(*command)
        except redis.ResponseError:
            continue


def extras() -> Iterator[tuple[object, ...]]:
    """Commands that fill the types that only new versions have."""
    for first in range(0, 100_000, 1000):
        yield ("ARMSET", "array", *(part for index in range(first, first + 1000) for part in (index, b"x")))
    yield ("ARDELRANGE", "array", 0, 99_990)
    yield ("ARSET", "array", 10**15, b"x")
    for number in range(100):
        yield ("VADD", "vectors", "VALUES", 3, number, 1, 2, f"element:{number}")


def server_us(server: Server, argv: tuple[bytes, ...]) -> float | None:
    """The median server time of a command line in microseconds; None when the server refuses it."""
    admin = server.admin
    taken: list[int] = []
    for _ in range(RUNS):
        admin.execute_command("SLOWLOG", "RESET")
        try:
            admin.execute_command(*argv)
        except redis.ResponseError:
            return None
        log: list[Any] = admin.execute_command("SLOWLOG", "GET", "-1")
        taken += [entry[2] for entry in log if entry[3][0] == argv[0]]
    return statistics.median(taken)


def cost(server: Server, spec: Spec) -> str:
    """The costliest way to use a command, on the large value of its type."""
    if spec.has_secret or spec.name in ("SELECT", "HELLO"):
        return "-"
    widest = WIDEST.get(spec.name)
    lines = [widest] if widest else samples(spec, FILLED.get(spec.group, b"hash"))
    costs = [found for line in lines if (found := server_us(server, line)) is not None]
    return f"{max(costs):.0f}" if costs else "refused"


def main() -> None:
    """Print a table: a row an entry, a column a server."""
    names = sys.argv[1:] or list(binaries())
    rows: dict[str, list[str]] = {spec.usage: [] for spec in TABLE}
    for name in names:
        with running(binaries()[name], "--slowlog-log-slower-than", "0") as server:
            fill(server)
            for spec in TABLE:
                rows[spec.usage].append(f"{cost(server, spec):>10}")
    print(f"{'µs':60}", *(f"{name:>10}" for name in names))
    for usage, costs in rows.items():
        print(f"{usage[:60]:60}", *costs)


if __name__ == "__main__":
    main()
