"""A team's rule set: `PROJECT:TABLE:COLUMN:value`, life times that differ, hash tags used sparingly.

Planted: values over 10 KB, one hash of thousands of fields, a table that expires all at once, three ways of writing
words in one project, and one tag that puts a tenth of the keys into one slot. A good day has none of these, and every
row has a life time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Final

from rtui.demo.writes import Argument, Write, WriteGroup, expires, record, text, until

HOT_TAG: Final = "campaign42"

TAG_RULES: Final = ("foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "{}:empty", "open{brace", "close}brace{later")
"""A name for each rule about tags."""

CITIES: Final = ("Porto", "Lviv", "Nairobi", "Osaka", "Lima", "Graz")


def write_groups(random: Random, keys: int, *, is_good: bool = False) -> Iterator[WriteGroup]:
    """Yield about `keys` keys; the top of the module lists the defects planted among them, unless the day `is_good`."""
    if is_good:
        return until(keys, _fixed_on_good_day(random), (_user(random, number, is_good=True) for number in count(1)))
    return until(keys, _fixed(random), (_user(random, number) for number in count(1)))


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


def _fixed(random: Random) -> WriteGroup:
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


def _fixed_on_good_day(random: Random) -> WriteGroup:
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
