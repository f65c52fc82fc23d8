"""An application's naming guide: `{app}:{layer}:{entity}:{action}:{id}`, lowercase, short, a TTL on every cache key.

Planted: names that break the guide, cache keys and locks without TTL, tags that name cached keys which are gone, and a
cliff: everybody who logged in after the last release loses the session within the same two minutes. A good day has none
of these, and every session has its refresh token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from hashlib import md5, sha256
from itertools import count
from random import Random
from typing import Final

from rtui.analysis.report.members import DAY_S, HOUR_S, MINUTE_S
from rtui.demo.writes import Argument, Write, WriteGroup, expires, record, text, until

CLIFF_SHARE: Final = 0.38
"""The share of the sessions that expire together."""

CLIFF_S: Final = (31 * MINUTE_S, 33 * MINUTE_S)
"""The range of their expiry, in seconds from the start of the demo."""

LOGIN_AT: Final = 1_767_225_600
"""A fixed moment, 2026-01-01 UTC, in seconds: values do not depend on when the demo runs."""

_ROLES: Final = ("admin", "editor", "viewer", "support")
_ENTITIES: Final = ("usr", "prod", "ord", "inv", "cfg")
_NOTES: Final = ("in stock", "back in March", "limited", "price on request", "new", "last pieces")

BAD_NAMES: Final = (
    "MyApp_User_Profile_12345",
    "user profile 12345",
    "MYAPP:USER:PROFILE:12345",
    "a:b:c:d:1",
    "app:cache:product-recommendations-for-returning-customers:detail:81234",
    "App:Session:9f8e",
)


_SHARES: Final = {"session": 44, "detail": 22, "rate": 9, "refresh": 9, "list": 7, "blacklist": 5, "otp": 3, "lock": 1}
"""The percentage of keys of each kind."""

_KINDS: Final = [kind for kind, share in _SHARES.items() for _ in range(share)]


def write_groups(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """Yield about `keys` keys; the top of the module lists the defects planted among them, unless the day `is_good`."""
    if is_good:
        return until(keys, _fixed_on_good_day(random), (_one_on_good_day(random, serial) for serial in count(1)))
    return until(keys, _fixed(random), (_one(random, serial) for serial in count(1)))


def _one(random: Random, serial: int) -> WriteGroup:
    kind = random.choice(_KINDS)
    if kind == "session":
        return _session(random, serial)
    return _detail(random, serial) if kind == "detail" else WriteGroup([_string(random, serial, kind)])


def _one_on_good_day(random: Random, serial: int) -> WriteGroup:
    kind = random.choice(_KINDS)
    if kind == "session":
        user, role, ip = serial, random.choice(_ROLES), _ipv4(random)
        fields: dict[str, Argument] = {"userId": user, "role": role, "loginAt": LOGIN_AT + serial, "ip": ip}
        key = f"app:session:{random.getrandbits(128):032x}"
        token = _string(random, serial, "refresh")
        return WriteGroup([record(key, fields), expires(key, random.uniform(MINUTE_S, 2 * HOUR_S)), token])
    if kind == "detail":
        entity = random.choice(_ENTITIES)
        key = f"app:cache:{entity}:detail:{serial}"
        value = json.dumps({"id": serial, "name": f"{entity} {serial}", "note": random.choice(_NOTES)})
        tagged: list[Write] = [("SADD", f"app:tags:{entity}", key)] if random.random() < 0.1 else []
        written = text(key, value, ttl_s=random.uniform(5 * MINUTE_S, 15 * MINUTE_S))
        return WriteGroup([written], [*tagged, ("SADD", f"app:cache:{entity}:ids:all", serial)])
    if kind == "lock":
        return WriteGroup([text(f"app:lock:txn:{serial}", "worker-7", ttl_s=random.uniform(10, MINUTE_S))])
    return WriteGroup([_string(random, serial, kind)])


def _session(random: Random, serial: int) -> WriteGroup:
    key = f"app:session:{random.getrandbits(128):032x}"
    fields: dict[str, Argument] = {
        "userId": random.randrange(1, 40_000),
        "role": random.choice(_ROLES),
        "loginAt": LOGIN_AT + serial,
        "ip": _ipv4(random),
    }
    ttl_s = random.uniform(*CLIFF_S) if random.random() < CLIFF_SHARE else random.uniform(MINUTE_S, 2 * HOUR_S)
    return WriteGroup([record(key, fields), expires(key, ttl_s)])


def _detail(random: Random, serial: int) -> WriteGroup:
    entity = random.choice(_ENTITIES)
    key = f"app:cache:{entity}:detail:{serial}"
    ttl_s = random.uniform(MINUTE_S, 15 * MINUTE_S)
    if random.random() < 0.5:
        fields: dict[str, Argument] = {
            "id": serial,
            "name": f"{entity} {serial}",
            "price": random.randrange(100, 99_900),
            "note": random.choice(_NOTES),
        }
        writes: list[Write] = [record(key, fields), expires(key, ttl_s)]
    else:
        value = json.dumps({"id": serial, "name": f"{entity} {serial}", "note": random.choice(_NOTES)})
        writes = [text(key, value, ttl_s=ttl_s)]
    if random.random() < 0.03:
        writes = [write[:3] if write[0] == "SET" else write for write in writes if write[0] != "PEXPIRE"]
    tagged: list[Write] = [("SADD", f"app:tags:{entity}", key)] if random.random() < 0.1 else []
    return WriteGroup(writes, [*tagged, ("SADD", f"app:cache:{entity}:ids:all", serial)])


def _string(random: Random, serial: int, kind: str) -> Write:
    match kind:
        case "rate":
            address = _ipv4(random) if random.random() < 0.8 else _ipv6(random)
            key, value = f"app:rate:login:{address}", str(random.randrange(1, 9))
            return text(key, value, ttl_s=random.uniform(5, 15 * MINUTE_S))
        case "refresh":
            ttl_s = random.uniform(HOUR_S, 30 * DAY_S)
            return text(f"app:token:refresh:{serial}", f"{random.getrandbits(256):064x}", ttl_s=ttl_s)
        case "blacklist":
            return text(f"app:token:blacklist:{random.getrandbits(96):024x}", "1", ttl_s=random.uniform(5, HOUR_S))
        case "otp":
            code = f"{random.randrange(1_000_000):06d}"
            return text(f"app:temp:otp:{serial}", code, ttl_s=random.uniform(30, 10 * MINUTE_S))
        case "lock":
            owner = f"{random.getrandbits(64):016x}"
            is_stuck = random.random() < 0.1
            return text(f"app:lock:txn:{serial}", owner, ttl_s=None if is_stuck else random.uniform(10, MINUTE_S))
    query = f"page={serial}&sort=price".encode()
    digest = sha256(query).hexdigest() if random.random() < 0.1 else md5(query, usedforsecurity=False).hexdigest()
    value = json.dumps([{"id": serial + row, "name": f"prod {serial + row}"} for row in range(random.randrange(2, 21))])
    key = f"app:cache:{random.choice(_ENTITIES)}:list:{digest}"
    return text(key, value, ttl_s=random.uniform(10, 5 * MINUTE_S))


def _fixed(random: Random) -> WriteGroup:
    """Return the keys that are present at any scale, with their defects."""
    writes: list[Write] = [text(name, "left by an older version") for name in BAD_NAMES]
    for entity in _ENTITIES:
        tags = f"app:tags:{entity}"
        writes += [("SADD", tags, *(f"app:cache:{entity}:detail:gone-{number}" for number in range(1, 6)))]
    writes.append(text("app:lock:order:81123", "worker-7"))
    return WriteGroup([*writes, *_fixed_on_good_day(random).own])


def _fixed_on_good_day(random: Random) -> WriteGroup:
    """Return the keys that are present at any scale on any day."""
    writes: list[Write] = []
    for entity in _ENTITIES:
        counter, ids = f"app:cache:{entity}:count", f"app:cache:{entity}:ids:all"
        writes += [text(counter, random.randrange(100, 50_000), ttl_s=5 * MINUTE_S)]
        writes += [("SADD", ids, *range(1, 40)), expires(ids, 10 * MINUTE_S)]
    mails = (
        json.dumps({"to": f"user{random.randrange(10_000)}@example.com", "template": "welcome", "number": number})
        for number in range(250)
    )
    writes += [("RPUSH", "app:queue:email:pending", *mails)]
    writes += [text("app:counter:online:users", 1_204), text("app:counter:page:views", 9_120_334, ttl_s=DAY_S)]
    for game in ("chess", "go", "tetris"):
        scores = [part for player in range(300) for part in (random.randrange(100_000), f"player-{player}")]
        writes.append(("ZADD", f"app:rank:score:board:{game}", *scores))
    for day in range(60):
        key = f"app:analytics:daily:login:{date(2026, 1, 1) + timedelta(days=day)}"
        writes.append(text(key, random.randbytes(random.randrange(500, 4_000))))
    return WriteGroup(writes)


def _ipv4(random: Random) -> str:
    return f"10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(1, 255)}"


def _ipv6(random: Random) -> str:
    return f"2001:db8:{random.randrange(65_536):x}::{random.randrange(1, 65_536):x}"
