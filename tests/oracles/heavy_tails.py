"""Keyspaces made up from a seed whose sizes have heavy tails: a few keys can hold most of the bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import redis

Law = Callable[[Random], float]
"""Draws the size of a key in bytes."""

LARGEST_BYTES = 4_000_000
"""No key is larger."""

NAMES = ("app", "feed", "session", "cart", "queue", "cache", "lock", "user")


def _even(random: Random) -> tuple[str, Law]:
    high = random.randrange(50, 2_000)
    return f"even to {high}", lambda rng: rng.uniform(1, high)


def _lognormal(random: Random) -> tuple[str, Law]:
    sigma = random.uniform(0.5, 3)
    return f"lognormal {sigma:.1f}", lambda rng: rng.lognormvariate(4, sigma)


def _pareto(random: Random) -> tuple[str, Law]:
    exponent = random.uniform(0.8, 2)
    return f"Pareto {exponent:.1f}", lambda rng: 30 * rng.paretovariate(exponent)


def _spikes(random: Random) -> tuple[str, Law]:
    part, size = 10 ** random.uniform(-4, -2), 10 ** random.uniform(4, 6.5)
    return f"{part:.2%} of {size:,.0f}", lambda rng: size if rng.random() < part else rng.uniform(1, 200)


LAWS = (_even, _lognormal, _pareto, _spikes)


@dataclass(frozen=True)
class Part:
    """A namespace."""

    name: str
    keys: int
    says: str
    """By what law its sizes are drawn."""
    size: Law
    write: Callable[[Any, bytes, int], None]


def parts(random: Random, keys: int) -> list[Part]:
    """Draw the namespaces of a keyspace of about so many keys."""
    names = random.sample(NAMES, random.randint(2, 6))
    weights = [random.paretovariate(1) for _ in names]
    found = []
    for name, weight in zip(names, weights, strict=True):
        says, law = random.choice(LAWS)(random)
        count = max(20, round(keys * weight / sum(weights)))
        found.append(Part(name, count, says, law, random.choice((_string, _hash, _list))))
    return found


def plant(client: redis.Redis, random: Random, keys: int) -> list[str]:
    """Write such a keyspace, sometimes with one giant; returns what is in it."""
    pipeline = client.pipeline(transaction=False)
    told, waiting = [], 0
    for part in parts(random, keys):
        told.append(f"{part.keys} {part.name} {part.says}")
        for number in range(part.keys):
            size = max(1, min(LARGEST_BYTES, int(part.size(random))))
            key = b"%s:%d" % (part.name.encode(), number)
            part.write(pipeline, key, size)
            if random.random() < 0.3:
                pipeline.expire(key, random.randrange(60, 1_000_000))
            waiting += size + 100
            if waiting > LARGEST_BYTES:
                pipeline.execute()
                waiting = 0
    if random.random() < 0.5:
        told.append("one giant")
        pipeline.set(b"giant:1", b"v" * LARGEST_BYTES)
    pipeline.execute()
    return told


def _string(pipeline: Any, key: bytes, size: int) -> None:
    pipeline.set(key, b"v" * size)


def _hash(pipeline: Any, key: bytes, size: int) -> None:
    pipeline.hset(key, mapping={b"name": b"n" * 10, b"value": b"v" * size})


def _list(pipeline: Any, key: bytes, size: int) -> None:
    pipeline.rpush(key, *([b"v" * 64] * max(1, min(size // 64, 2_000))))
