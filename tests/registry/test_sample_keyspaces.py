"""The five conventions on the sample keyspaces of the demo, which keep them but for the defects planted in each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import NamedTuple

import pytest

from rtui.demo.keyspaces import KEYSPACES
from rtui.demo.writes import Argument, WriteGroup
from rtui.registry.expectations import NO_TTL, FoundKey, breaches_of
from rtui.registry.load import load_registry
from rtui.registry.naming import rule_ids
from rtui.registry.registry import SHIPPED

KEYS = 2_000

TYPES = {
    "SET": b"string",
    "HSET": b"hash",
    "SADD": b"set",
    "LPUSH": b"list",
    "RPUSH": b"list",
    "ZADD": b"zset",
    "XADD": b"stream",
    "PFADD": b"string",
    "RESTORE": b"string",
}
"""What the commands that create sample keys make."""


class Judged(NamedTuple):
    """What a registry says of a keyspace."""

    keys: int
    unregistered: set[bytes]
    names: dict[str, set[bytes]]
    """The keys that break each rule about names."""
    broken: set[tuple[str, str]]
    """Patterns and what of their expectations is broken."""


def raw(argument: Argument) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()


def found_in(groups: Iterator[WriteGroup]) -> dict[bytes, FoundKey]:
    """The keys that writes create, with type, TTL and the length of a string."""
    found: dict[bytes, FoundKey] = {}
    for group in groups:
        for write in (*group.own, *group.shared):
            command, key = str(write[0]), raw(write[1])
            if command == "PEXPIRE":
                found[key] = found[key]._replace(ttl_ms=int(write[2]))
            elif command in TYPES and (command == "SET" or key not in found):
                length = len(raw(write[2])) if command == "SET" else None
                ttl_ms = int(write[4]) if "PX" in write[3:4] else NO_TTL
                found[key] = FoundKey(TYPES[command], ttl_ms, None, length)
    return found


@cache
def judged(name: str, *, is_good: bool = False) -> Judged:
    registry = load_registry(SHIPPED / f"{name}.toml")
    write_groups, _ = KEYSPACES[name]
    found = found_in(write_groups(Random(1), KEYS, is_good=is_good))
    keys = sorted(found)
    indices = registry.matcher.match_page(keys)
    unregistered, names, broken = set[bytes](), dict[str, set[bytes]](), set[tuple[str, str]]()
    for key, index, mask in zip(keys, indices, registry.naming.of_page(keys, indices), strict=True):
        for rule in rule_ids(mask):
            names.setdefault(rule, set()).add(key)
        if index < 0:
            unregistered.add(key)
            continue
        entry = registry.entries[index]
        for breach in breaches_of(entry.expectations.broken(found[key])):
            broken.add((entry.pattern.text, breach.value))
    return Judged(len(keys), unregistered, names, broken)


UPPER = {b"App:Session:9f8e", b"MYAPP:USER:PROFILE:12345", b"MyApp_User_Profile_12345"}

NAMES: dict[str, dict[str, set[bytes]]] = {
    "app-conventions": {
        "name-case": UPPER,
        "name-characters": UPPER,
        "name-separator": {b"MyApp_User_Profile_12345"},
        "name-short": {b"a:b:c:d:1"},
        "name-long": {b"app:cache:product-recommendations-for-returning-customers:detail:81234"},
        "name-whitespace": {b"user profile 12345"},
    },
    "project-table-id": {
        "tag-unbalanced": {b"close}brace{later", b"foo{{bar}}zap", b"open{brace"},
        "tag-empty": {b"foo{}{bar}", b"{}:empty"},
        "name-quotes": {b'PRO:NOTE:UID:"7"'},
        "name-whitespace": {b"PRO:NOTE:UID:7 8"},
    },
    "restaurant": {},
    "ecm": {
        "name-whitespace": {b"ecm:product:line\nbreak:1", b"ecm:product:two words:1"},
        "name-characters": {b"comment:1234:reply.to"},
        "name-long": {b"ecm:archive:".ljust(1_024, b"x")},
        "name-huge": {b"ecm:archive:".ljust(1_024, b"x")},
        "name-quotes": {b'ecm:product:a"quote:1'},
        "name-case": {b"object-type:1000"},
        "name-separator": {b"tmp_fix_2019"},
        "name-short": {b"u1000flw"},
    },
    "internals": {},
}

BROKEN: dict[str, set[tuple[str, str]]] = {
    "app-conventions": {("app:cache:<entity>:detail:<id>", "ttl-missing"), ("app:lock:<resource>:<id>", "ttl-missing")},
    "project-table-id": {
        ("<project>:<table>:<column>:<value>", "ttl-missing"),
        ("PRO:REPORT:UID:<number>", "length-out-of-range"),
    },
    "restaurant": {("cache:cart:<userId>", "ttl-missing")},
    "ecm": {("lock:redis:create_pre_loan_stage_handler:<productSerialNid>", "ttl-missing")},
    "internals": {("p:<id>", "ttl-missing"), ("lock:p:<id>", "ttl-missing")},
}


@pytest.mark.parametrize("name", NAMES)
def test_only_the_names_that_were_planted_break_a_rule(name: str) -> None:
    assert judged(name).keys >= KEYS
    assert judged(name).names == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
def test_only_what_was_planted_is_not_as_expected(name: str) -> None:
    assert judged(name).broken == BROKEN[name]


def test_keys_that_nobody_entered_are_unregistered() -> None:
    assert judged("restaurant").unregistered == set()
    assert {b"u1000flw", b"tmp_fix_2019", b"ecm:migration:cursor"} <= judged("ecm").unregistered
    assert len(judged("ecm").unregistered) == 10


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wrong_on_a_good_day(name: str) -> None:
    good = judged(name, is_good=True)
    assert good.keys >= KEYS
    assert good.unregistered <= {b"events:orders", b"hot:config", b"limits:api:day", b"stats:users:seen"}
    assert (good.names, good.broken) == ({}, set())
