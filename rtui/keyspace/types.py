"""The Redis types: static facts of each.

A type is declared here by one entry of `TYPES`: the unit of its length, whether the server removes it when it is empty,
the cost of MEMORY USAGE, the colour of its name and the `redis-cli` commands that read it. The commands that rtui
itself sends are its second and last entry, in `rtui.server.facts.answers`. All other modules rely on these two.

A key of an undeclared type is shown with its type, TTL, encoding and idle time, without length, memory and preview.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

NO_TYPE: Final = b"none"
"""TYPE's reply for a key that does not exist."""


UNKNOWN_LENGTH: Final = 1 << 63
"""Stands for the length of a key that may have any; a server can't say so large a number."""

SHORT_LENGTH: Final = 20
"""Up to this length a value may take less memory than its length: a number of 20 digits takes 8 bytes."""


class MemoryUsage(Enum):
    """How MEMORY USAGE, with its default of five samples, finds the size of a value."""

    SAMPLED = "sampled"
    """From a few elements, or from counters: constant time."""
    WALKS_GROUPS = "walks groups"
    """Before Redis 8.4 with an unbounded walk over all consumer groups and their consumers."""
    UNBOUNDED = "unbounded"
    """By code of a module, which may walk the whole value."""


@dataclass(frozen=True, slots=True)
class RedisType:
    """One type; the defaults apply to undeclared types."""

    name: bytes
    """The name that TYPE replies, and that SCAN … TYPE accepts."""
    unit: str = "element"
    units: str = "elements"
    removed_when_empty: bool = False
    """Whether the server deletes the key with its last element, so that a length of 0 means that there is no key."""
    memory_usage: MemoryUsage = MemoryUsage.UNBOUNDED
    colour: str = "other"
    """The theme's colour for its name: `type-<colour>`."""
    redis_cli: tuple[tuple[str, ...], ...] = ()
    """Commands that read the whole value: the words before the key, then the arguments after it."""
    least_element_bytes: int = 0
    """A lower bound of MEMORY USAGE of Redis and Valkey, in bytes for each element of a length over SHORT_LENGTH; 0 if
    unknown.

    In a listpack or ziplist an entry has two bytes or more, in an intset two; a hash whose fields are in a template has
    only its values. Elements of hash tables and skiplists have more, so that a sample of them does not give less. For a
    list or stream only the first nodes are sampled, which may be nearly empty, and inner nodes of a list may be
    compressed.
    """


STRING: Final = RedisType(
    b"string",
    "byte",
    "bytes",
    memory_usage=MemoryUsage.SAMPLED,
    colour="string",
    redis_cli=(("GET",),),
    least_element_bytes=1,
)


def _collection(name: bytes, unit: str, *redis_cli: str, least: int) -> RedisType:
    """Return a type that the server removes when it is empty, and whose elements MEMORY USAGE samples."""
    return RedisType(name, unit, f"{unit}s", True, MemoryUsage.SAMPLED, name.decode(), (redis_cli,), least)


HASH: Final = _collection(b"hash", "field", "HGETALL", least=2)
LIST: Final = _collection(b"list", "item", "LRANGE", "0", "-1", least=0)
SET: Final = _collection(b"set", "member", "SMEMBERS", least=2)
ZSET: Final = _collection(b"zset", "member", "ZRANGE", "0", "-1", "WITHSCORES", least=4)
STREAM: Final = RedisType(
    b"stream",
    "entry",
    "entries",
    memory_usage=MemoryUsage.WALKS_GROUPS,
    colour="stream",
    redis_cli=(("XRANGE", "-", "+"), ("XINFO STREAM", "FULL")),
)
ARRAY: Final = RedisType(
    b"array", memory_usage=MemoryUsage.SAMPLED, redis_cli=(("ARSCAN", "0", "18446744073709551614"),)
)
VECTOR_SET: Final = RedisType(
    b"vectorset",
    "vector",
    "vectors",
    memory_usage=MemoryUsage.SAMPLED,
    redis_cli=(("VRANGE", "-", "+"), ("VRANDMEMBER", "10")),
)
JSON: Final = RedisType(b"ReJSON-RL", colour="json", redis_cli=(("JSON.GET",),))
TIME_SERIES: Final = RedisType(b"TSDB-TYPE", redis_cli=(("TS.RANGE", "-", "+"),))
BLOOM_FILTER: Final = RedisType(b"MBbloom--")
VALKEY_BLOOM_FILTER: Final = RedisType(b"bloomfltr")
CUCKOO_FILTER: Final = RedisType(b"MBbloomCF")
COUNT_MIN_SKETCH: Final = RedisType(b"CMSk-TYPE")
TOP_K: Final = RedisType(b"TopK-TYPE")
T_DIGEST: Final = RedisType(b"TDIS-TYPE")

TYPES: Final[dict[bytes, RedisType]] = {
    declared.name: declared
    for declared in (
        *(STRING, HASH, LIST, SET, ZSET, STREAM, ARRAY, VECTOR_SET),
        *(JSON, TIME_SERIES, BLOOM_FILTER, VALKEY_BLOOM_FILTER, CUCKOO_FILTER, COUNT_MIN_SKETCH, TOP_K, T_DIGEST),
    )
}

UNDECLARED: Final = RedisType(b"")


def type_of(name: bytes | None) -> RedisType:
    """Return the type with the name that TYPE replied; `UNDECLARED` for unknown names and None."""
    return UNDECLARED if name is None else TYPES.get(name, UNDECLARED)
