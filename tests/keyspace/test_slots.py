from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot as redis_key_slot

from rtui.keyspace.slots import SLOTS, HashTag, TagRule, crc16, explain, find_tag, hashed_bytes, key_slot
from tests.servers import Server

KEYS = st.one_of(
    st.binary(max_size=40), st.lists(st.sampled_from([b"{", b"}", b"a", b":", b"\xff", b"\x00"])).map(b"".join)
)


def bitwise_crc16(data: bytes) -> int:
    """Compute CRC-16/XMODEM bit by bit: polynomial 0x1021, initial 0, nothing reflected, no xor at the end."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def test_check_value() -> None:
    assert crc16(b"123456789") == 0x31C3


@given(st.binary())
def test_crc_is_xmodem(data: bytes) -> None:
    assert crc16(data) == bitwise_crc16(data)


@pytest.mark.parametrize(
    ("key", "hashed", "rule", "tag"),
    [
        (b"{user1000}.following", b"user1000", TagRule.TAG, HashTag(0, 10)),
        (b"{user1000}.followers", b"user1000", TagRule.TAG, HashTag(0, 10)),
        (b"foo{}{bar}", b"foo{}{bar}", TagRule.EMPTY_TAG, None),
        (b"foo{{bar}}zap", b"{bar", TagRule.TAG, HashTag(3, 9)),
        (b"foo{bar}{zap}", b"bar", TagRule.TAG, HashTag(3, 8)),
        (b"foo{bar", b"foo{bar", TagRule.NO_CLOSING_BRACE, None),
        (b"foo}bar{", b"foo}bar{", TagRule.NO_CLOSING_BRACE, None),
        (b"foo}bar", b"foo}bar", TagRule.NO_BRACE, None),
        (b"", b"", TagRule.NO_BRACE, None),
        (b"a{\xff\x00}", b"\xff\x00", TagRule.TAG, HashTag(1, 5)),
        (b"{user:100}:profile", b"user:100", TagRule.TAG, HashTag(0, 10)),
    ],
)
def test_what_is_hashed_and_why(key: bytes, hashed: bytes, rule: TagRule, tag: HashTag | None) -> None:
    explanation = explain(key)
    assert find_tag(key) == (rule, tag)
    assert explanation.rule is rule
    assert explanation.hashed == hashed_bytes(key) == hashed
    assert explanation.tag == tag
    assert explanation.crc == bitwise_crc16(hashed)
    assert explanation.slot == key_slot(key) == bitwise_crc16(hashed) % 16384


def test_tagged_keys_share_a_slot() -> None:
    assert key_slot(b"{user1000}.following") == key_slot(b"{user1000}.followers")
    assert key_slot(b"{user:100}:profile") == key_slot(b"{user:100}:posts") == key_slot(b"user:100")
    assert key_slot(b"user:100:profile") != key_slot(b"user:100:posts")


@given(KEYS)
def test_agrees_with_redis_py(key: bytes) -> None:
    assert key_slot(key) == redis_key_slot(key, SLOTS)


@given(KEYS)
def test_explanation_holds_together(key: bytes) -> None:
    explanation = explain(key)
    assert 0 <= explanation.slot < SLOTS
    assert explanation.slot == explanation.crc % SLOTS
    assert (explanation.rule is TagRule.TAG) is (explanation.tag is not None)
    if explanation.tag is not None:
        assert key[explanation.tag.start : explanation.tag.end] == b"{" + explanation.hashed + b"}"
    else:
        assert explanation.hashed == key


@pytest.fixture(params=["redis70", "valkey"])
def cluster_of_one(request: pytest.FixtureRequest) -> Server:
    """A node that has every slot, of either product."""
    name = "cluster_node_redis70" if request.param == "redis70" else "cluster_node"
    node: Server = request.getfixturevalue(name)
    return node


@pytest.fixture
def cluster_node_redis70(request: pytest.FixtureRequest) -> Server:
    pool = request.getfixturevalue("pool")
    node: Server = pool.take("cluster-redis-7.0", "redis-7.0", cluster=True)
    return node


def test_agrees_with_cluster_keyslot_on_random_bytes(cluster_of_one: Server) -> None:
    rng = random.Random(20_000)
    keys = [rng.randbytes(rng.randrange(1, 40)) for _ in range(2_000)]
    keys += [bytes(rng.choices(b"{}a:\x00\xff", k=rng.randrange(0, 12))) for _ in range(4_000)]
    with cluster_of_one.client() as client, client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.execute_command("CLUSTER KEYSLOT", key)
        assert pipeline.execute() == [key_slot(key) for key in keys]
