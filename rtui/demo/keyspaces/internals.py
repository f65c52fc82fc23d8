"""Typical problems under load: cached nulls, an avalanche, locks, a big key, tags that share a slot.

Planted: a few very popular products, promotions that all expire in the same second, a cached null without TTL, a lock
without TTL, a hash and a string far too big to delete at once. A good day has none of these, and expiring keys were
written at random times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Final

from rtui.demo.writes import Argument, Write, WriteGroup, expires, record, text, until, used_text

_STREAM: Final = "events:orders"
FIRST_ENTRY_MS: Final = 1_767_225_600_000
"""The stream's entries are later than this moment."""

HOTTEST, COOLEST = 230, 8
"""The LFU counters of the most popular keys, and of keys that are called hot but hardly are."""

SEEN_ON_GOOD_DAY: Final = 1_000
"""Fields of the hash of seen users, on a good day."""

LOGICAL_EXPIRY: Final = 1_767_229_200
"""The `expire_at` inside values that guard a hot key, a fixed moment in seconds."""


def write_groups(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """Yield about `keys` keys; the top of the module lists the defects planted among them, unless the day `is_good`."""
    if is_good:
        fixed = WriteGroup(_seen_users(SEEN_ON_GOOD_DAY))
        return until(keys, _fixed(random, fixed), (_one(random, number, is_good=True) for number in count(1)))
    fixed = _fixed(random, _defects(random, big_fields=max(2_000, min(60_000, keys))))
    return until(keys, fixed, (_one(random, number) for number in count(1)))


def _one(random: Random, number: int, *, is_good: bool = False) -> WriteGroup:
    kind = random.random()
    if kind < 0.45:
        return _product(random, number, is_good=is_good)
    if kind < 0.65:
        discount = json.dumps({"percent": random.randrange(5, 50)})
        ttl_s = random.uniform(60, 5 * 3_600) if is_good else 4 * 3_600
        return WriteGroup([text(f"promo:{number}", discount, ttl_s=ttl_s)])
    if kind < 0.9:
        return _tagged(random, f"social:{{user:{number}}}")
    value = json.dumps({"data": {"id": number}, "expire_at": LOGICAL_EXPIRY + number})
    return WriteGroup([used_text(f"hot:p:{number}", value, max(COOLEST, (HOTTEST - number % 53) // (1 + number % 97)))])


def _tagged(random: Random, prefix: str) -> WriteGroup:
    user = prefix.partition("{user:")[2].removesuffix("}")
    profile: dict[str, Argument] = {"name": f"n{user}", "email": f"u{user}@example.com", "role": "user"}
    posts = ("LPUSH", f"{prefix}:posts", *(f"post-{n}" for n in range(random.randrange(1, 8))))
    return WriteGroup([record(f"{prefix}:profile", profile), posts])


def _product(random: Random, number: int, *, is_good: bool) -> WriteGroup:
    ttl_s = random.uniform(30, 360) if is_good else 300 + random.uniform(0, 60)
    if random.random() < 0.1:
        return WriteGroup([text(f"p:{number}", "", ttl_s=30)])
    writes: list[Write] = [text(f"p:{number}", json.dumps({"id": number, "stock": random.randrange(90)}), ttl_s=ttl_s)]
    if not is_good and random.random() < 0.05:
        writes.append(text(f"lock:p:{number}", f"{random.getrandbits(64):016x}", ttl_s=5))
    return WriteGroup(writes)


def _defects(random: Random, *, big_fields: int) -> WriteGroup:
    """Return the defects that are present at any scale."""
    writes: list[Write] = [
        text("p:0", ""),
        text("lock:p:0", "worker that died"),
        text("feed:archive:2019", random.randbytes(1_000) * 3_000),
    ]
    return WriteGroup([*writes, *_seen_users(big_fields)])


def _seen_users(number: int) -> list[Write]:
    """Return the writes of a hash of `number` fields."""
    writes = []
    for start in range(0, number, 2_000):
        fields: dict[str, Argument] = {
            f"user:{n}": f"seen {n % 97} times" for n in range(start, min(start + 2_000, number))
        }
        writes.append(record("stats:users:seen", fields))
    return writes


def _fixed(random: Random, before: WriteGroup) -> WriteGroup:
    """Return the keys that are present at any scale, after those of `before`."""
    config = json.dumps({"flags": {"checkout_v2": True, "dark_mode": False}, "rate": 0.25})
    writes: list[Write] = [*before.own, used_text("hot:config", config, HOTTEST)]
    day = "limits:api:day"
    writes += [record(day, {f"client-{n}": n for n in range(100)}), expires(day, 86_400)]
    for user in range(100, 105):
        writes += _tagged(random, f"{{user:{user}}}").own
    states = ("created", "paid", "shipped")
    for number in range(1, 401):
        entry = f"{FIRST_ENTRY_MS + number}-0"
        writes.append(("XADD", _STREAM, entry, "orderId", number, "state", random.choice(states)))
    groups: list[Write] = [  # one of the two is behind and has entries that nobody has acknowledged
        ("XGROUP", "CREATE", _STREAM, "billing", 0),
        ("XGROUP", "CREATE", _STREAM, "shipping", "$"),
        ("XREADGROUP", "GROUP", "billing", "worker-1", "COUNT", 40, "STREAMS", _STREAM, ">"),
        ("XREADGROUP", "GROUP", "billing", "worker-2", "COUNT", 10, "STREAMS", _STREAM, ">"),
        ("XACK", _STREAM, "billing", f"{FIRST_ENTRY_MS + 1}-0"),
    ]
    return WriteGroup(writes, groups)
