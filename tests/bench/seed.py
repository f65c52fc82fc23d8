"""A million keys of 28 bytes in a second or two: `python -m tests.bench.seed PORT [KEYS] [SHAPE]`."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers import Server, binaries, running

KEYS = 1_000_000
"""How many keys the measurements want."""

NAME_BYTES = 28
"""The length of every name."""

SHOP = (
    (b"shop:session:%015d", 30),
    (b"shop:user:%010d:profile", 15),
    (b"shop:user:%011d:orders", 10),
    (b"shop:cache:product:%09d", 20),
    (b"lock:order:%017d", 5),
    (b"queue:email:%016d", 10),
    (b"app:rate:api:%015d", 10),
)
"""Names of a shop, and how many of a hundred keys they are."""

FLAT = ((b"flat:%023d", 100),)
"""One namespace with every key directly in it."""

SHAPES = {"shop": SHOP, "flat": FLAT}
"""What a seeded keyspace may look like."""

BATCH = 1_000
"""Keys of one MSET."""


def names(keys: int = KEYS, shape: str = "shop") -> Iterator[list[bytes]]:
    """The names in batches, each of NAME_BYTES bytes."""
    kinds = [name for name, weight in SHAPES[shape] for _ in range(weight)]
    # Neighbours differ in kind, so that any part of the keyspace looks like the whole.
    kinds = [kinds[position * 37 % 100] for position in range(100)]
    for first in range(0, keys, BATCH):
        yield [kinds[number % 100] % number for number in range(first, min(first + BATCH, keys))]


def seed(connection: socket.socket, keys: int = KEYS, shape: str = "shop") -> None:
    """Write them down a connection, with a value of 16 bytes each."""
    replies = connection.makefile("rb")
    batches = 0
    for batch in names(keys, shape):
        pairs = b"".join([b"$28\r\n%s\r\n$16\r\nvalue-0123456789\r\n" % name for name in batch])
        connection.sendall(b"*%d\r\n$4\r\nMSET\r\n%s" % (1 + 2 * len(batch), pairs))
        batches += 1
        if batches > 8:
            _expect_ok(replies.readline())
    for _ in range(min(batches, 8)):
        _expect_ok(replies.readline())


def _expect_ok(line: bytes) -> None:
    if line != b"+OK\r\n":
        raise RuntimeError(f"the server refused a write: {line!r}")


@contextmanager
def seeded(name: str = "valkey-9.1", keys: int = KEYS, shape: str = "shop", *args: str) -> Iterator[Server]:
    """A server of this version that holds the keys."""
    with running(binaries()[name], *args) as server:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(server.socket)
            seed(connection, keys, shape)
        yield server


if __name__ == "__main__":
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as to_seed:
        seed(to_seed, int(sys.argv[2]) if len(sys.argv) > 2 else KEYS, sys.argv[3] if len(sys.argv) > 3 else "shop")
