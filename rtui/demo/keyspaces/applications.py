"""Two applications: one that keeps its own indexes, and one under load."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Final

from rtui.demo.writes import Argument, Write, WriteGroup, expires, record, text, until, used_text

_ROLES: Final = ("admin", "waiter", "cook", "customer")
_CATEGORIES: Final = ("starters", "soups", "pasta", "grill", "desserts", "drinks", "wine", "kids")
_DISHES: Final = (
    "Ravioli", "Gazpacho", "Entrecôte", "Tiramisù", "Pão de queijo", "Ramen", "Lentil soup", "Crème brûlée",
)  # fmt: skip
_STATES: Final = ("paid", "cooking", "served", "cancelled")
MENU: Final = 64

GONE_EVERY: Final = 60
"""One in this many users was deleted, but is still in the index by email."""

STALE_EVERY: Final = 45
"""For one in this many users the two sets of orders differ."""


Counters = defaultdict[str, Iterator[int]]
"""The ids of each entity, as returned by INCR on its counter."""


def restaurant(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """Nine entities of a restaurant as JSON strings, with indexes that the application maintains itself.

    Planted: indexes that name an entity which is gone, sets that hold such ids, copies of one index that disagree, and
    no TTL anywhere: orders of months ago are still there, unused. On a good day every index and every copy is right,
    and cached values expire.
    """
    counters: Counters = defaultdict(lambda: count(1))
    users = (_user(random, user, counters, is_good=is_good) for user in count(1))
    return until(keys, _menu(random, is_good=is_good), users)


def _entity(group: WriteGroup, entity: str, number: int, body: dict[str, object], *, is_old: bool = False) -> None:
    """Add the writes of an entity's key, of the list of all ids and of the counter to a group."""
    value = json.dumps({"id": number, **body}, ensure_ascii=False)
    key = f"{entity}:{number}"
    group.own.append(used_text(key, value, 0) if is_old else text(key, value))
    group.shared += [("SADD", f"{entity}:list", number), text(f"{entity}:counter", number)]


def _menu(random: Random, *, is_good: bool) -> WriteGroup:
    """Return the writes of roles, permissions, categories and dishes."""
    group = WriteGroup()
    for number, role in enumerate(_ROLES, 1):
        _entity(group, "role", number, {"name": role})
        group.own.append(text(f"role:index:name:{role}", number))
        group.own.append(("SADD", f"role:{number}:permissions", *range(number, 12 if is_good else 13)))
    for number in range(1, 12):
        _entity(group, "permission", number, {"name": f"orders.{number}"})
    for number, name in enumerate(_CATEGORIES, 1):
        _entity(group, "category", number, {"name": name})
    for number in range(1, MENU + 1):
        category = 1 + number % len(_CATEGORIES)
        dish: dict[str, object] = {
            "name": _DISHES[number % len(_DISHES)],
            "categoryId": category,
            "price": random.randrange(300, 4_800) / 100,
        }
        _entity(group, "dish", number, dish)
        group.own += [
            ("SADD", f"category:{category}:dishes", number),
            ("SADD", f"dish:index:category:{category}", number),
        ]
    if not is_good:
        group.own += [("SADD", "category:1:dishes", 9_001), text("user:index:email:nobody@example.com", 999_999_999)]
        group.own += [text("order:index:paymentRef:PAY-LOST", 999_999_999)]
    return group


def _user(random: Random, user: int, ids: Counters, *, is_good: bool) -> WriteGroup:
    """Return the writes of a user with a cart and some orders, and all their indexes."""
    group = WriteGroup()
    email = f"guest{user}@example.com"
    if is_good or user % GONE_EVERY:
        _entity(group, "user", user, {"email": email, "roleId": 4, "name": f"Guest {user}"})
    group.own.append(text(f"user:index:email:{email}", user))
    cart = next(ids["cart"])
    _entity(group, "cart", cart, {"userId": user})
    other = cart + 1 if user % STALE_EVERY == 1 and not is_good else cart
    group.own += [text(f"user:{user}:cart", cart), text(f"cart:index:user:{user}", other)]
    for _ in range(random.randrange(1, 3)):
        detail = next(ids["cartDetail"])
        dish = random.randrange(1, MENU + 1)
        _entity(group, "cartDetail", detail, {"cartId": cart, "dishId": dish, "quantity": random.randrange(1, 4)})
        group.own += [("SADD", f"cart:{cart}:items", detail), ("SADD", f"cartDetail:index:cart:{cart}", detail)]
    cached = json.dumps({"items": random.randrange(1, 5)})
    group.own.append(text(f"cache:cart:{user}", cached, ttl_s=random.uniform(60, 86_400) if is_good else None))
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        _order(random, group, user, ids)
    if user % STALE_EVERY == 0 and not is_good:
        group.own.append(("SADD", f"user:{user}:orders", 888_000_000 + user))
    return group


def _order(random: Random, group: WriteGroup, user: int, ids: Counters) -> None:
    order = next(ids["order"])
    reference = f"PAY-{random.getrandbits(40):010X}"
    is_old = random.random() < 0.5
    body: dict[str, object] = {"userId": user, "paymentRef": reference, "state": random.choice(_STATES)}
    _entity(group, "order", order, body, is_old=is_old)
    indexes: list[Write] = [("SADD", f"user:{user}:orders", order), ("SADD", f"order:index:user:{user}", order)]
    group.own += [*indexes, text(f"order:index:paymentRef:{reference}", order)]
    for _ in range(random.randrange(1, 4)):
        detail = next(ids["orderDetail"])
        dish = random.randrange(1, MENU + 1)
        row: dict[str, object] = {"orderId": order, "dishId": dish, "quantity": random.randrange(1, 4)}
        _entity(group, "orderDetail", detail, row, is_old=is_old)
        group.own += [("SADD", f"order:{order}:details", detail), ("SADD", f"orderDetail:index:order:{order}", detail)]


_STREAM: Final = "events:orders"
FIRST_ENTRY_MS: Final = 1_767_225_600_000
"""The stream's entries are later than this moment."""

HOTTEST, COOLEST = 230, 8
"""The LFU counters of the most popular keys, and of keys that are called hot but hardly are."""

SEEN_ON_GOOD_DAY: Final = 1_000
"""Fields of the hash of seen users, on a good day."""

LOGICAL_EXPIRY: Final = 1_767_229_200
"""The `expire_at` inside values that guard a hot key, a fixed moment in seconds."""


def internals(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """Typical problems under load: cached nulls, an avalanche, locks, a big key, tags that share a slot.

    Planted: a few very popular products, promotions that all expire in the same second, a cached null without TTL, a
    lock without TTL, a hash and a string far too big to delete at once. A good day has none of these, and expiring keys
    were written at random times.
    """
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
