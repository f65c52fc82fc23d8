"""A million keys of all common types: `python -m tests.bench.mixed PORT [KEYS]`.

Most are small, as in practice. Six of ten are strings; the rest are hashes, lists, sets, sorted sets and streams. A
third of all keys expires.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rtui.demo.load import send
from tests.servers import Server, binaries, running

KEYS: Final = 1_000_000

HOUR_S: Final = 3600

Command = tuple[bytes, ...]


def _size(number: int) -> int:
    """Most are small, one in a thousand is large: 20 … 20,000."""
    return 20 * (1 + number * 7919 % 10) * (100 if number % 1000 == 7 else 1)


def command(number: int) -> Command:
    """What writes the key of this number."""
    return _string(number) if number % 20 < 12 else _collection(number)


def _string(number: int) -> Command:
    kind, value = number % 20, b"v" * _size(number)
    ttl = b"%d" % (HOUR_S + number * 31 % (12 * HOUR_S))
    if kind < 6:
        return (b"SET", b"shop:session:%015d" % number, value, b"EX", ttl)
    if kind < 9:
        return (b"SET", b"shop:cache:product:%09d" % number, value)
    if kind < 10:
        return (b"SET", b"lock:order:%017d" % number, value[:16], b"EX", b"%d" % (60 + number % 600))
    return (b"SET", b"app:rate:api:%015d" % number, b"%d" % number)


def _collection(number: int) -> Command:
    kind, value = number % 20, b"v" * _size(number)
    if kind < 15:
        fields = (b"name", b"n%d" % number, b"mail", b"u%d@x.com" % number, b"note", value[:60])
        return (b"HSET", b"shop:user:%010d:profile" % number, *fields)
    members = [b"m%d" % (number + step) for step in range(2 + number % 9 * (50 if number % 1000 == 15 else 1))]
    if kind < 16:
        return (b"SADD", b"shop:user:%011d:orders" % number, *members)
    if kind < 17:
        return (b"RPUSH", b"queue:email:%016d" % number, *members)
    if kind < 19:
        pairs = [part for rank, member in enumerate(members) for part in (b"%d" % rank, member)]
        return (b"ZADD", b"rank:board:%017d" % number, *pairs)
    return (b"XADD", b"stream:events:%014d" % number, b"*", b"what", value[:40])


def seed(connection: socket.socket, keys: int = KEYS) -> None:
    """Write them down a connection; raises RuntimeError when a write is refused."""
    errors = send(connection, map(command, range(keys)))
    if errors:
        raise RuntimeError(f"the server refused writes: {errors[:3]}")


@contextmanager
def seeded(name: str = "valkey-9.1", keys: int = KEYS, *args: str) -> Iterator[Server]:
    """A server of this version that holds the keys."""
    with running(binaries()[name], *args) as server:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server.socket)
            seed(connection, keys)
        yield server


if __name__ == "__main__":
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as to_seed:
        seed(to_seed, int(sys.argv[2]) if len(sys.argv) > 2 else KEYS)
