"""One key of every type and encoding that a server has, written by an independent client."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from tests.servers import VERSIONS, Server

LONG = b"x" * 100
"""A value that no compact encoding takes by default."""


def fill(server: Server, client: redis.Redis) -> dict[bytes, bytes]:
    """Write the keys; of each the type that the server has to answer."""
    client.set("string:int", 12345)
    client.set("string:embstr", "short")
    client.set("string:raw", LONG)
    client.set("string:empty", "")
    client.set("string:json", '{"id": 7, "tags": ["a", {"deep": null}], "price": 1.10}')
    client.set("string:binary", bytes(range(256)))
    client.set("string:expires", "soon", px=1_000_000)
    client.setbit("string:bitmap", 7_777, 1)
    client.pfadd("string:hll:sparse", *range(10))
    client.pfadd("string:hll:dense", *range(5_000))
    client.hset("hash:compact", mapping={f"field{i}": i for i in range(5)})
    client.hset("hash:table", mapping={f"field{i}": f"value{i}" for i in range(700)})
    client.hset("hash:long", "field", LONG)
    client.rpush("list:short", *range(5))
    client.rpush("list:long", *(LONG for _ in range(300)))
    client.sadd("set:ints", *range(10))
    client.sadd("set:words", "a", "b", "c")
    client.sadd("set:table", *(f"member{i}" for i in range(700)))
    client.zadd("zset:compact", {"a": 1, "b": 2.5, "c": float("-inf")})
    client.zadd("zset:skiplist", {f"member{i}": i / 7 for i in range(300)})
    client.xadd("stream:plain", {"a": "1", "b": "2"}, id="5-1")
    client.xadd("stream:groups", {"a": "1"}, id="6-1")
    client.xgroup_create("stream:groups", "readers", "0")
    client.xreadgroup("readers", "consumer", {"stream:groups": ">"})
    types = {key: key.partition(b":")[0] for key in _keys(client)}
    return types | _newer(server, client)


def _newer(server: Server, client: redis.Redis) -> dict[bytes, bytes]:
    """Write what only some versions have."""
    types: dict[bytes, bytes] = {}
    if has_field_ttls(server):
        client.hset("hash:expires", mapping={"stays": 1, "goes": 2})
        client.execute_command("HPEXPIRE", "hash:expires", 1_000_000, "FIELDS", 1, "goes")
        types[b"hash:expires"] = b"hash"
    if server.product == "redis" and server.version >= (8, 0):
        client.execute_command("VADD", "vectors", "VALUES", 3, 1, 2, 3, "element")
        types[b"vectors"] = b"vectorset"
    if server.product == "redis" and server.version >= (8, 8):
        client.execute_command("ARSET", "array:sparse", 0, "first", "second")
        client.execute_command("ARSET", "array:sparse", 1_000_000, "far")
        client.execute_command("ARSET", "array:sparse", (1 << 64) - 2, "last")
        client.config_set("hash-max-template-entries", 100)
        client.config_set("hash-min-template-entries", 1)
        client.hset("hash:template", mapping={"name": "n", "role": "r"})
        types |= {b"array:sparse": b"array", b"hash:template": b"hash"}
    return types


UNSTEADY_MEMORY = frozenset({b"hash:template"})
"""Keys whose MEMORY USAGE differs from one question to the next: a share of a template that many hashes have."""

NO_TOUCH = pytest.mark.parametrize("server", VERSIONS[2:], indirect=True)
"""Runs a test on the versions that know CLIENT NO-TOUCH."""

FIELD_TTLS = pytest.mark.parametrize("server", ["redis-8.0", "redis-8.6", "redis-8.10", "valkey-9.1"], indirect=True)
"""Runs a test on the versions in which fields of a hash can expire."""

VECTOR_SETS = pytest.mark.parametrize("server", ["redis-8.0", "redis-8.6", "redis-8.10"], indirect=True)
"""Runs a test on the versions with vector sets."""


def has_field_ttls(server: Server) -> bool:
    return server.version >= ((9, 0) if server.product == "valkey" else (7, 4))


def lists_names(server: Server) -> bool:
    """Whether HSCAN knows NOVALUES."""
    return server.version >= ((8, 0) if server.product == "valkey" else (7, 4))


def has_no_touch(server: Server) -> bool:
    return server.version >= (7, 2)


def _keys(client: redis.Redis) -> list[bytes]:
    found: Any = client.keys("*")
    return sorted(found)


LENGTHS = {
    b"string": "STRLEN", b"hash": "HLEN", b"list": "LLEN", b"set": "SCARD", b"zset": "ZCARD", b"stream": "XLEN",
    b"array": "ARCOUNT", b"vectorset": "VCARD",
}  # fmt: skip
"""The command that an independent client asks for a length."""
