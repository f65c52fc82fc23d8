"""Three teams that have written down how keys are named; on a good day every key keeps to that."""

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


def app_conventions(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """An application's guide: `{app}:{layer}:{entity}:{action}:{id}`, lowercase, short, a TTL on every cache key.

    Planted: names that break the guide, cache keys and locks without TTL, tags that name cached keys which are gone,
    and a cliff: everybody who logged in after the last release loses the session within the same two minutes. A good
    day has none of these, and every session has its refresh token.
    """
    if is_good:
        return until(
            keys, _fixed_app_keys_on_good_day(random), (_app_keys_on_good_day(random, serial) for serial in count(1))
        )
    return until(keys, _fixed_app_keys(random), (_app_keys(random, serial) for serial in count(1)))


def _app_keys(random: Random, serial: int) -> WriteGroup:
    kind = random.choice(_KINDS)
    if kind == "session":
        return _session(random, serial)
    return _detail(random, serial) if kind == "detail" else WriteGroup([_string(random, serial, kind)])


def _app_keys_on_good_day(random: Random, serial: int) -> WriteGroup:
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


def _fixed_app_keys(random: Random) -> WriteGroup:
    """Return the keys that are present at any scale, with their defects."""
    writes: list[Write] = [text(name, "left by an older version") for name in BAD_NAMES]
    for entity in _ENTITIES:
        tags = f"app:tags:{entity}"
        writes += [("SADD", tags, *(f"app:cache:{entity}:detail:gone-{number}" for number in range(1, 6)))]
    writes.append(text("app:lock:order:81123", "worker-7"))
    return WriteGroup([*writes, *_fixed_app_keys_on_good_day(random).own])


def _fixed_app_keys_on_good_day(random: Random) -> WriteGroup:
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


HOT_TAG: Final = "campaign42"

TAG_RULES: Final = ("foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "{}:empty", "open{brace", "close}brace{later")
"""A name for each rule about tags."""

CITIES: Final = ("Porto", "Lviv", "Nairobi", "Osaka", "Lima", "Graz")


def project_table_id(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """A team's rule set: `PROJECT:TABLE:COLUMN:value`, life times that differ, hash tags used sparingly.

    Planted: values over 10 KB, one hash of thousands of fields, a table that expires all at once, three ways of writing
    words in one project, and one tag that puts a tenth of the keys into one slot. A good day has none of these, and
    every row has a life time.
    """
    if is_good:
        return until(
            keys, _fixed_tables_on_good_day(random), (_user(random, number, is_good=True) for number in count(1))
        )
    return until(keys, _fixed_tables(random), (_user(random, number) for number in count(1)))


def _user(random: Random, number: int, *, is_good: bool = False) -> WriteGroup:
    row: dict[str, Argument] = {
        "uid": number,
        "name": f"user{number}",
        "city": random.choice(CITIES),
        "score": random.randrange(1_000),
    }
    user, login = f"PRO:USER:UID:{number}", f"PRO:LOGIN:UID:{number}"
    writes: list[Write] = [
        record(user, row),
        text(login, random.randrange(1, 5_000), ttl_s=random.uniform(60, 3_600) if is_good else 3_600),
        text(f"PRO:USER:NAME:user{number}", number, ttl_s=random.uniform(3_600, 604_800)),
    ]
    if is_good:
        writes.append(expires(user, random.uniform(86_400, 2_592_000)))
    if number % 2 == 0:
        orders = f"PRO:ORDER:UID:{number}"
        writes += [("RPUSH", orders, *(random.randrange(100_000) for _ in range(random.randrange(1, 12))))]
        writes += [expires(orders, random.uniform(86_400, 2_592_000))]
    if number % 3 == 0:
        friends = [random.randrange(1, 9_999) for _ in range(random.randrange(2, 20))]
        writes += [("SADD", f"PRO:FRIEND:{{user{number}}}.following", *friends)]
        writes += [("SADD", f"PRO:FRIEND:{{user{number}}}.followers", *friends[:5])]
    if number % 2 == 1:
        cart = f"PRO:CART:{{{f'campaign{number}' if is_good else HOT_TAG}}}:UID:{number}"
        writes += [text(cart, random.randrange(1, 30), ttl_s=random.uniform(600, 86_400))]
    if number % 40 == 0:
        lines = random.randrange(1_000, 9_000) // 12 if is_good else random.randrange(10_241, 64_000) // 12
        writes.append(text(f"PRO:REPORT:UID:{number}", "report line\n" * lines, ttl_s=90_000 + number))
    return WriteGroup(writes)


def _fixed_tables(random: Random) -> WriteGroup:
    """Return the keys that are present at any scale."""
    writes: list[Write] = [text(name, f"tag rule {number}") for number, name in enumerate(TAG_RULES)]
    writes += [text(f"pro:userProfile:uid:{number}", "lower camel") for number in range(1, 9)]
    writes += [text(f"Pro:UserProfile:Uid:{number}", "upper camel") for number in range(1, 9)]
    writes += [text(f"pro:user_profile:uid:{number}", "snake") for number in range(1, 9)]
    writes += [("SADD", "{user1000}.following", 1, 2, 3), ("SADD", "{user1000}.followers", 2, 3)]
    writes += [
        text("PRO:COUNTER:UID", 41_209),
        text("PRO:CONFIG:NAME:motd", "short"),
        text("PRO:CONFIG:NAME:tos", "x" * 60),
    ]
    for start in range(0, 12_000, 2_000):
        fields: dict[str, Argument] = {f"sku-{n:06d}": random.randrange(500) for n in range(start, start + 2_000)}
        writes.append(record("PRO:STOCK:ALL", fields))
    board = [part for member in range(2_000) for part in (random.randrange(1_000_000), f"uid-{member}")]
    writes.append(("ZADD", "PRO:RANK:WEEK:7", *board))
    writes.append(("PFADD", "PRO:VISITORS:DAY:2026-02-01", *(f"visitor-{n}" for n in range(5_000))))
    writes += [text('PRO:NOTE:UID:"7"', "quotes in a name"), text("PRO:NOTE:UID:7 8", "a space in a name")]
    return WriteGroup(writes)


def _fixed_tables_on_good_day(random: Random) -> WriteGroup:
    """Return the keys that are present at any scale on a good day."""
    stock, rank, visitors = "PRO:STOCK:DEPOT:1", "PRO:RANK:WEEK:7", "PRO:VISITORS:DAY:20260201"
    fields: dict[str, Argument] = {f"sku-{n:06d}": random.randrange(500) for n in range(900)}
    board = [part for member in range(2_000) for part in (random.randrange(1_000_000), f"uid-{member}")]
    writes: list[Write] = [
        text("PRO:CONFIG:NAME:motd", "short", ttl_s=86_400),
        text("PRO:CONFIG:NAME:terms", "x" * 60, ttl_s=86_400),
        record(stock, fields),
        ("ZADD", rank, *board),
        ("PFADD", visitors, *(f"visitor-{n}" for n in range(5_000))),
    ]
    return WriteGroup([*writes, *(expires(key, 604_800) for key in (stock, rank, visitors))])


UNKNOWN: Final = (
    "u1000flw",
    "tmp_fix_2019",
    "ecm:migration:cursor",
    "object-type:1000",
    "ecm:report:export_job:17",
    "comment:1234:reply.to",
)


def ecm(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """A company's usage rules with a table of all keys: `business:sub-business:id`, underscores inside a part.

    Planted: keys missing from the table, locks that never expire, a name of 1,024 bytes, one too short to read, quotes,
    spaces and line breaks in names, and the old version of a key that was to be retired. A good day has none of these.
    """
    if is_good:
        return until(keys, WriteGroup(), (WriteGroup([_ecm_key_on_good_day(random, serial)]) for serial in count(1)))
    writes: list[Write] = [text(name, "nobody knows") for name in UNKNOWN]
    writes += [text("ecm:archive:".ljust(1_024, "x"), "a name of 1,024 bytes")]
    bad_names = ("two words", 'a"quote', "line\nbreak")
    writes += [text(f"ecm:product:{bad}:1", "a name that breaks the rules") for bad in bad_names]
    return until(keys, WriteGroup(writes), (WriteGroup([_ecm_key(random, serial)]) for serial in count(1)))


def _ecm_key(random: Random, serial: int) -> Write:
    product = f"P{random.getrandbits(36):011d}"
    kind = random.random()
    if kind < 0.62:
        request = f"R2026{serial:010d}"
        ttl_s = random.uniform(MINUTE_S, 30 * MINUTE_S)
        return text(f"ecm:handholdIdCardInfo:retry:{request}", random.randrange(1, 6), ttl_s=ttl_s)
    if kind < 0.66:
        return text(f"ecm:product:create:{serial}", 1, ttl_s=5)
    if kind < 0.80:
        return text(
            f"lock:product:verify:{product}", f"reviewer-{serial % 40}", ttl_s=random.uniform(30, 10 * MINUTE_S)
        )
    if kind < 0.90:
        is_stuck = random.random() < 0.25
        key = f"lock:redis:create_pre_loan_stage_handler:{product}"
        return text(key, f"node-{serial % 6}", ttl_s=None if is_stuck else 30)
    return text(f"ecm:product:lock:verify:{product}", f"reviewer-{serial % 40}")


def _ecm_key_on_good_day(random: Random, serial: int) -> Write:
    product = f"P{random.getrandbits(36):011d}"
    kind = random.random()
    if kind < 0.7:
        key, ttl_s = f"ecm:handholdIdCardInfo:retry:R2026{serial:010d}", random.uniform(MINUTE_S, 30 * MINUTE_S)
        return text(key, random.randrange(1, 6), ttl_s=ttl_s)
    if kind < 0.8:
        return text(f"lock:redis:create_pre_loan_stage_handler:{product}", f"node-{serial % 6}", ttl_s=30)
    key = f"lock:product:verify:{product}" if kind < 0.9 else f"ecm:product:lock:verify:{product}"
    return text(key, f"reviewer-{serial % 40}", ttl_s=random.uniform(30, 10 * MINUTE_S))
