"""The sample keyspaces as data: the same for a seed, of the wanted size, named as the conventions say."""

from __future__ import annotations

import re
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.demo.keyspaces import KEYSPACES, write_groups
from rtui.demo.load import pack
from rtui.demo.writes import Argument, Write, WriteGroup, crc64
from rtui.keyspace.slots import explain
from rtui.server.options import DEFAULT_DEMO_KEYS

PATTERNS = {
    "app-conventions": r"app:(session|token|temp|rate|cache|tags|lock|queue|counter|rank|analytics):",
    "project-table-id": r"PRO:[A-Z]+:",
    "restaurant": r"(user|role|permission|category|dish|cart|cartDetail|order|orderDetail|cache):",
    "ecm": r"(ecm|lock):[^:]+:",
    "internals": r"(p|lock:p|promo|hot:p):\d+$|social:\{user:\d+\}:(profile|posts)$",
}
"""What nearly all names of a keyspace look like; the rest are planted."""


def key_of(write: Write) -> bytes:
    return raw(write[1])


def raw(part: Argument) -> bytes:
    return part if isinstance(part, bytes) else str(part).encode()


def names(made: list[WriteGroup]) -> list[bytes]:
    return list(dict.fromkeys(key_of(write) for group in made for write in group.own))


def test_a_seed_decides_everything() -> None:
    def stream(seed: int) -> bytes:
        return b"".join(pack(write) for group in write_groups(3_000, seed) for write in (*group.own, *group.shared))

    assert stream(1) == stream(1)
    assert stream(1) != stream(2)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [10_000, DEFAULT_DEMO_KEYS, 200_000])
def test_the_number_of_keys_is_about_what_was_asked(keys: int) -> None:
    made = sum(group.keys for group in write_groups(keys))
    assert keys <= made <= keys * 1.02 + 300


@given(st.integers(0, 3_000), st.integers())
@settings(max_examples=15, deadline=None)
def test_any_number_of_keys_has_everything_that_was_planted(keys: int, seed: int) -> None:
    planted = {b"", b"MyApp_User_Profile_12345", b"u1000flw", b"lock:p:0", b"user:index:email:nobody@example.com"}
    assert planted <= set(names(list(write_groups(keys, seed))))


@pytest.mark.parametrize("name", KEYSPACES)
def test_no_key_is_made_twice(name: str) -> None:
    made = list(KEYSPACES[name][0](Random(1), 5_000))
    assert len(names(made)) == sum(group.keys for group in made)


@pytest.mark.parametrize("name", KEYSPACES)
def test_names_follow_their_convention(name: str) -> None:
    keyspace, _ = KEYSPACES[name]
    found = names(list(keyspace(Random(1), 5_000)))
    following = [key for key in found if re.match(PATTERNS[name].encode(), key)]
    assert len(found) * 0.97 < len(following)


def test_all_five_grow_from_the_start() -> None:
    first = names(list(islice(write_groups(50_000), 200)))
    for pattern in PATTERNS.values():
        assert any(re.match(pattern.encode(), key) for key in first)


def test_the_top_of_the_tree_can_be_overlooked() -> None:
    """Every key at the top, or namespace there, is one that was put there on purpose."""
    tops = {key.partition(b":")[0] for key in names(list(write_groups(20_000))) if not key.startswith(b"{")}
    assert len(tops) < 70


def test_one_tag_holds_far_more_than_its_share() -> None:
    keyspace, _ = KEYSPACES["project-table-id"]
    found = names(list(keyspace(Random(1), 8_000)))
    hot = [key for key in found if b"{campaign42}" in key]
    assert len({explain(key).slot for key in hot}) == 1
    assert len(hot) > len(found) / 10


def test_many_sessions_expire_within_two_minutes() -> None:
    keyspace, _ = KEYSPACES["app-conventions"]
    ttls = [
        int(write[2]) / 60_000
        for group in keyspace(Random(1), 10_000)
        for write in group.own
        if write[0] == "PEXPIRE" and b"app:session:" in key_of(write)
    ]
    cliff = [ttl for ttl in ttls if 31 <= ttl <= 33]
    assert 0.35 < len(cliff) / len(ttls) < 0.45


def test_the_checksum_is_the_one_of_redis() -> None:
    assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA
