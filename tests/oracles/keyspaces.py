"""Keyspaces made up from a seed: names of many shapes, values of every type and encoding, lives of every length.

Of every key it is known where it belongs, since its name was made from a pattern and not the pattern from the name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

import redis

Path = tuple[tuple[bytes, bytes], ...]
"""Segments or the patterns that stand for them, each with the separator that ends it."""

SEPARATOR = b":"

WORDS = (
    *(b"shop", b"app", b"user", b"cart", b"queue", b"cache", b"v2", b"page_7", b"Mail", b"by-date", b"a b", b""),
    *("ключ".encode(), "🛒".encode(), b"\xff\x00raw", b'say "hi"', b"[bold]", b"\x1b[31m", b"*", b"100%"),
)
"""Segments that are names; some are what a careless program stumbles over."""

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

LIVES_MS = (
    *(None, None, None, 40 * SECOND_MS, 5 * MINUTE_MS, 35 * MINUTE_MS, 6 * HOUR_MS),
    *(3 * DAY_MS, 20 * DAY_MS, 100 * DAY_MS, 500 * DAY_MS),
)
"""Times to live, each far from the borders between which a report counts; a quarter of the keys stays."""

MOST_SEGMENTS = 5
"""In a name."""


def _uuid(random: Random) -> bytes:
    return str(UUID(int=random.getrandbits(128), version=4)).encode()


def _hash(random: Random) -> bytes:
    return b"%031x" % random.getrandbits(120) + b"f" if random.random() < 0.5 else b"7f%030x" % random.getrandbits(120)


IDENTIFIERS: tuple[tuple[bytes, Callable[[Random], bytes]], ...] = (
    (b"<id>", lambda random: b"%d" % random.randrange(10 ** random.randrange(1, 10))),
    (b"<id>", lambda random: b"%d" % random.randrange(1_000_000)),
    (b"<uuid>", _uuid),
    (b"<hash>", _hash),
    (b"<date>", lambda random: b"20%02d-%02d-%02d" % tuple(random.randrange(10, top) for top in (30, 13, 29))),
    (b"<ip>", lambda random: b"10.%d.%d.%d" % tuple(random.randrange(256) for _ in range(3))),
    (b"<email>", lambda random: b"u%d@example.com" % random.randrange(100_000)),
)
"""Patterns, and segments that belong to them."""

TAGS: tuple[tuple[bytes, Callable[[Random], bytes]], ...] = (
    (b"{user:<id>}", lambda random: b"{user:%d}" % random.randrange(20)),
    (b"{cart}", lambda random: b"{cart}"),
)
"""The same with a hash tag, in which separators do not count."""

Segment = tuple[bytes, Callable[[Random], bytes]]


@dataclass(frozen=True, slots=True)
class Planted:
    """A key and what was decided about it."""

    key: bytes
    path: Path
    kind: bytes
    ttl_ms: int | None
    """What is left of its life when it is written, None for one that stays."""


def grown(client: redis.Redis, *, keys: int, seed: int) -> dict[bytes, Planted]:
    """Write so many keys, none of which expires soon; by key."""
    random = Random(seed)
    shapes = [_shape(random) for _ in range(24)]
    planted: dict[bytes, Planted] = {}
    pipeline = client.pipeline(transaction=False)
    while len(planted) < keys:
        shape = shapes[int(random.random() ** 2 * len(shapes))]
        key = SEPARATOR.join(make(random) for _, make in shape)
        if key in planted:
            continue
        kind = random.choice(tuple(VALUES))
        VALUES[kind](pipeline, key, random)
        ttl_ms = random.choice(LIVES_MS)
        if ttl_ms is not None:
            pipeline.pexpire(key, ttl_ms)
        planted[key] = Planted(key, path_of(shape), kind.partition(b" ")[0], ttl_ms)
        if len(pipeline) > 1_000:
            pipeline.execute()
    pipeline.execute()
    return planted


def _shape(random: Random) -> tuple[Segment, ...]:
    """A pattern of names, with a hash tag in one place at most."""
    segments = [_segment(random) for _ in range(random.randrange(1, MOST_SEGMENTS))]
    if random.random() < 0.2:
        segments[random.randrange(len(segments))] = random.choice(TAGS)
    return (*segments, random.choice(IDENTIFIERS[1:4]))


def _segment(random: Random) -> Segment:
    if random.random() < 0.3:
        return random.choice(IDENTIFIERS)
    word = random.choice(WORDS)
    return word, lambda random: word


def path_of(shape: tuple[Segment, ...]) -> Path:
    """Where keys of this shape belong."""
    names = [name for name, _ in shape]
    return (*((name, SEPARATOR) for name in names[:-1]), (names[-1], b""))


# values


def _count(random: Random) -> int:
    """A few, and now and then so many that no compact encoding takes them."""
    return random.randrange(1, 12) if random.random() < 0.95 else random.randrange(600, 900)


def _bytes(random: Random) -> bytes:
    """Short, and now and then longer than any compact encoding takes."""
    return b"v" * int(10 ** random.uniform(0, 2 if random.random() < 0.95 else 5))


def _hset(pipeline: Any, key: bytes, random: Random) -> None:
    pipeline.hset(key, mapping={b"field%d" % number: number for number in range(_count(random))})


def _zadd(pipeline: Any, key: bytes, random: Random) -> None:
    pipeline.zadd(key, {b"member%d" % number: number / 7 for number in range(_count(random))})


def _xadd(pipeline: Any, key: bytes, random: Random) -> None:
    for number in range(random.randrange(1, 9)):
        pipeline.xadd(key, {b"what": _bytes(random)[:1_000]}, id=f"{number + 1}-1")
    if random.random() < 0.5:
        pipeline.xgroup_create(key, "readers", "0")


VALUES: dict[bytes, Callable[[Any, bytes, Random], object]] = {
    b"string": lambda pipeline, key, random: pipeline.set(key, _bytes(random)),
    b"string again": lambda pipeline, key, random: pipeline.set(key, _bytes(random)),
    b"string of a number": lambda pipeline, key, random: pipeline.set(key, random.randrange(10**9)),
    b"string that is empty": lambda pipeline, key, random: pipeline.set(key, b""),
    b"hash": _hset,
    b"hash with a long value": lambda pipeline, key, random: pipeline.hset(key, b"field", _bytes(random)),
    b"list": lambda pipeline, key, random: pipeline.rpush(key, *range(_count(random))),
    b"list of long ones": lambda pipeline, key, random: pipeline.rpush(key, *[_bytes(random) for _ in range(5)]),
    b"set of numbers": lambda pipeline, key, random: pipeline.sadd(key, *range(_count(random))),
    b"set of words": lambda pipeline, key, random: pipeline.sadd(key, *[b"m%d" % n for n in range(_count(random))]),
    b"zset": _zadd,
    b"stream": _xadd,
}
"""What writes a value: the type, and which sort of it."""
