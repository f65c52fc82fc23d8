"""Nine entities of a restaurant as JSON strings, with indexes that the application maintains itself.

Planted: indexes that name an entity which is gone, sets that hold such ids, copies of one index that disagree, and no
TTL anywhere: orders of months ago are still there, unused. On a good day every index and every copy is right, and
cached values expire.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Final

from rtui.demo.writes import Write, WriteGroup, text, until, used_text

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


def write_groups(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """Yield about `keys` keys; the top of the module lists the defects planted among them, unless the day `is_good`."""
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
