"""The pure parts of an inspection: columns without holes, keys that wait, the limits on costly queries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.facts.answers import expected
from rtui.server.guard.evidence import MAX_WATCHED as MOST
from rtui.server.guard.evidence import MemoryUsagePolicy, TypeEvidence
from rtui.server.inspection.queries import (
    MOMENT_S,
    WaitingKeys,
    moment,
    read_answers,
)
from rtui.server.inspection.tables import InspectedBatch
from rtui.server.scan.server_time import CHEAP_S, COSTLY_S, MAX_COSTLY, CostWatch
from rtui.server.wire.errors import Reply, ServerBusyError, ServerError
from rtui.server.wire.identity import Product

REFUSED = ServerError("NOPERM User x has no permissions to run the 'pttl' command")
KEY_REFUSED = ServerError("NOPERM No permissions to access a key")
WRONG = ServerError("WRONGTYPE Operation against a key holding the wrong kind of value")

TYPE, PTTL, MEMORY = expected("TYPE"), expected("PTTL"), expected("MEMORY USAGE")

TYPES: st.SearchStrategy[Reply] = st.sampled_from([b"string", b"hash", b"none", KEY_REFUSED, REFUSED])
NUMBERS: st.SearchStrategy[Reply] = st.one_of(st.sampled_from([-2, KEY_REFUSED, WRONG]), st.integers(-1, 9))


def is_gone(reply: Reply) -> bool:
    return reply in (-2, b"none") or reply is WRONG


@given(st.lists(st.tuples(TYPES, NUMBERS)))
def test_replies_become_columns_without_holes(rows: list[tuple[Reply, Reply]]) -> None:
    keys = [b"%d" % index for index in range(len(rows))]
    found = read_answers(keys, [reply for row in rows for reply in row], (TYPE, PTTL))
    there = {key: row for key, row in zip(keys, rows, strict=True) if not any(map(is_gone, row))}
    assert len(found.gone) == len(rows) - len(there)
    seen: dict[bytes, tuple[Reply, Reply]] = {}
    for part in found.parts:
        types, numbers = part.answers
        for index, key in enumerate(part.keys):
            seen[key] = (None if types is None else types[index], None if numbers is None else numbers[index])
    assert seen == {
        key: tuple(None if isinstance(reply, ServerError) else reply for reply in row) for key, row in there.items()
    }
    assert all(error is REFUSED for error in found.errors.values())


def test_a_page_on_which_all_is_well_is_not_looked_at_key_by_key() -> None:
    keys = [b"a", b"b"]
    (part,) = read_answers(keys, [b"string", 5, b"hash", -1], (TYPE, PTTL)).parts
    assert part.keys is keys
    assert part.answers == ([b"string", b"hash"], [5, -1])


GARBAGE: list[Reply] = [None, b"7", -3, 1 << 70, [], [[1]], b"", b"x" * 1000]


@pytest.mark.parametrize("reply", GARBAGE, ids=lambda reply: repr(reply)[:12])
def test_an_answer_that_makes_no_sense_costs_that_fact(reply: Reply) -> None:
    found = read_answers([b"a", b"b"], [b"string", reply, b"hash", 5], (TYPE, PTTL))
    assert {key: part.answers for part in found.parts for key in part.keys} == {
        b"a": ([b"string"], None),
        b"b": ([b"hash"], [5]),
    }
    assert not found.gone
    assert found.unread == {1: 1}
    assert not found.errors


@pytest.mark.parametrize("reply", [None, 7, [b"string"], b"", b"x" * 1000], ids=lambda reply: repr(reply)[:12])
def test_a_type_that_makes_no_sense_is_unknown(reply: Reply) -> None:
    (part,) = read_answers([b"a"], [reply, 5], (TYPE, PTTL)).parts
    assert part.answers == (None, [5])


def test_memory_means_gone_by_nil_and_nothing_below_zero() -> None:
    found = read_answers([b"a", b"b", b"c"], [None, -2, 7], (MEMORY,))
    assert found.gone == [b"a"]
    assert found.unread == {0: 1}
    assert {key: part.answers for part in found.parts for key in part.keys} == {b"b": (None,), b"c": ([7],)}


@pytest.mark.parametrize("error", ["BUSY Redis is busy", "LOADING Redis is loading", "MASTERDOWN Link down"])
def test_a_server_that_becomes_busy_in_the_middle_is_asked_again(error: str) -> None:
    with pytest.raises(ServerBusyError):
        read_answers([b"a", b"b"], [b"string", 5, ServerError(error), ServerError(error)], (TYPE, PTTL))


BATCHES = st.lists(
    st.tuples(
        st.sampled_from([b"string", b"hash", None]), st.integers(1, 20), st.booleans(), st.sampled_from(["", "n"])
    )
)


@given(BATCHES, st.lists(st.integers(1, 30), min_size=1))
def test_keys_that_wait_are_given_back_as_they_were(
    batches: list[tuple[bytes | None, int, bool, str]], portions: list[int]
) -> None:
    waiting = WaitingKeys()
    given_in: set[tuple[bytes, bytes | None, int | None, str]] = set()
    number = 0
    for kind, count, has_ttl, note in batches:
        keys = [b"%d" % (number + step) for step in range(count)]
        ttl = [number + step for step in range(count)] if has_ttl else None
        number += count
        waiting.add(InspectedBatch(kind, keys, ttl_ms=ttl, note=note))
        given_in |= {(key, kind, int(key) if has_ttl else None, note) for key in keys}
    assert waiting.keys == number
    taken: set[tuple[bytes, bytes | None, int | None, str]] = set()
    turn = 0
    while waiting.keys:
        most, before = portions[turn % len(portions)], waiting.keys
        for batch in waiting.take(most):
            columns = [None] * len(batch.keys) if batch.ttl_ms is None else batch.ttl_ms
            taken |= {(key, batch.key_type, ttl, batch.note) for key, ttl in zip(batch.keys, columns, strict=True)}
        assert before - waiting.keys == min(most, before)
        turn += 1
    assert taken == given_in


def test_keys_that_were_asked_at_different_times_are_not_joined() -> None:
    waiting = WaitingKeys()
    for number in range(10):
        waiting.add(InspectedBatch(b"string", [b"%d" % number], ttl_ms=[9], asked_at_s=float(number // 5)))
    assert {(len(batch.keys), batch.asked_at_s) for batch in waiting.take(99)} == {(5, 0.0), (5, 1.0)}


@given(st.floats(1e9, 2e9))
def test_a_moment_is_over_and_no_more_than_its_length_ago(now_s: float) -> None:
    assert 0 <= moment(now_s) - now_s < MOMENT_S


def test_what_proves_cheap_is_asked_in_larger_portions() -> None:
    watch = CostWatch()
    asked = []
    for _ in range(10):
        asked.append(watch.most)
        watch.observe(watch.most, CHEAP_S / 2)
    assert asked == [1, 2, 4, 8, 16, 32, 64, MOST, MOST, MOST]
    watch.observe(MOST, CHEAP_S * 2)
    assert watch.most == 1
    assert not watch.is_over


def test_single_dear_questions_end_it() -> None:
    watch = CostWatch()
    for _ in range(MAX_COSTLY):
        assert not watch.is_over
        watch.observe(1, COSTLY_S * 2)
    assert watch.is_over


def test_what_was_not_timed_says_nothing() -> None:
    watch = CostWatch()
    watch.observe(1, None)
    assert watch.most == 1
    assert not watch.is_over


@pytest.mark.parametrize(
    ("product", "version", "kind", "manner"),
    [
        ("redis", (8, 4, 0), b"stream", MemoryUsagePolicy.FREE),
        ("redis", (8, 2, 9), b"stream", MemoryUsagePolicy.WATCHED),
        ("redis", (6, 2, 14), b"stream", MemoryUsagePolicy.WATCHED),
        ("valkey", (8, 0, 1), b"stream", MemoryUsagePolicy.FREE),
        (None, None, b"stream", MemoryUsagePolicy.WATCHED),
        (None, None, b"hash", MemoryUsagePolicy.FREE),
        ("redis", (8, 6, 3), b"ReJSON-RL", MemoryUsagePolicy.NEVER),
        ("redis", (8, 6, 3), None, MemoryUsagePolicy.NEVER),
    ],
)
def test_what_memory_usage_costs(
    product: Product | None, version: tuple[int, ...] | None, kind: bytes | None, manner: MemoryUsagePolicy
) -> None:
    cost = TypeEvidence(kind, product, version).memory_cost
    assert cost.policy is manner
    assert bool(cost.why) is (manner is not MemoryUsagePolicy.FREE)


def test_the_clock_of_the_server_tells_what_was_dear() -> None:
    watch = CostWatch()
    before = b"cmdstat_memory|usage:calls=10,usec=100,usec_per_call=10.00\r\n"
    after = b"cmdstat_memory|usage:calls=12,usec=5100,usec_per_call=425.00\r\n"
    assert watch.server_s(before, after, 2) == 0.005
    assert watch.server_s(b"cmdstat_get:calls=1,usec=2,usec_per_call=2.00\r\n", b"", 2) is None
    assert watch.asks_clock
    assert watch.server_s(ServerError("NOPERM no"), b"", 2) is None
    assert not watch.asks_clock
