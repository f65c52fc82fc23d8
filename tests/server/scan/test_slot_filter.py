"""Which listed keys of a cluster's node are delivered."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.engine._slot_filter import SlotFilter
from rtui.server.scan.slot_ledger import ACCEPT, ACCEPT_NEW, DROP, HASH_BITS, fingerprint
from tests.conftest import examples

NAMES = [b"", b"{", b"{}", b"a{b}c", b"{a}{b}", b"x" * 70_000, bytes(range(256)), *(b"k%d" % at for at in range(300))]


@given(st.integers(0, 2**64), st.integers(0, 600))
@settings(max_examples=examples(100))
def test_keys_are_delivered_by_their_slot_and_once_where_they_are_known(seed: int, most: int) -> None:
    rng = Random(seed)
    made = SlotFilter(most)
    slots = sorted({key_slot(name) for name in NAMES})
    states = dict.fromkeys(slots, DROP)
    kept: dict[int, list[int]] = {slot: [] for slot in slots}
    unknown: Counter[int] = Counter()
    for _ in range(rng.randrange(30)):
        some = rng.sample(slots, rng.randrange(len(slots)))
        match rng.randrange(6):
            case 0:
                what = rng.choice((DROP, ACCEPT, ACCEPT_NEW))
                taken = made.take(some)
                assert sorted(taken) == sorted(one for slot in some for one in kept[slot])
                made.set_slots(some, what)
                made.know(taken)
                for slot in some:
                    states[slot] = what
                    kept[slot] = sorted({*kept[slot]}) if what == ACCEPT_NEW else []
            case 1:
                made.forget(some)
                for slot in some:
                    kept[slot] = []
                    del unknown[slot]
            case _:
                page, expected = rng.choices(NAMES, k=rng.randrange(60)), []
                for name in page:
                    slot, found = key_slot(name), fingerprint(name)
                    if states[slot] == DROP or (states[slot] == ACCEPT_NEW and found in kept[slot]):
                        continue
                    expected.append(name)
                    if sum(map(len, kept.values())) < most:
                        kept[slot].append(found)
                    else:
                        unknown[slot] += 1
                assert made.accept(page) == expected
        assert made.unknown(slots) == unknown.total()


def test_fingerprints_go_from_one_node_to_another() -> None:
    one, other = SlotFilter(10_000), SlotFilter(10_000)
    keys = [b"{t}%d" % at for at in range(2_000)]
    slot = key_slot(keys[0])
    one.set_slots([slot], ACCEPT)
    assert one.accept([*keys[:1_500], b"elsewhere"]) == keys[:1_500]
    other.set_slots([slot], ACCEPT_NEW)
    one.set_slots([slot], DROP)
    taken = one.take([slot])
    assert set(taken) == set(map(fingerprint, keys[:1_500]))
    assert {found >> HASH_BITS for found in taken} == {slot}
    other.know(taken)
    assert other.accept(keys) == keys[1_500:]
    assert other.accept(keys) == []
    assert one.accept(keys) == []
    assert sorted(other.take(range(SLOTS))) == sorted(map(fingerprint, keys))


def test_no_more_fingerprints_are_kept_than_are_allowed() -> None:
    one = SlotFilter(100)
    one.set_slots(range(SLOTS), ACCEPT)
    keys = [b"%d" % at for at in range(250)]
    assert one.accept(keys) == keys
    assert one.unknown(range(SLOTS)) == 150
    first = {key_slot(key) for key in keys[:100]}
    one.forget(first)
    assert one.unknown(first) == 0
    assert one.accept(keys[:50]) == keys[:50]
    assert len(one.take(range(SLOTS))) == 50


def test_what_is_no_slot() -> None:
    one = SlotFilter(100)
    with pytest.raises((ValueError, IndexError, OverflowError)):
        one.set_slots([SLOTS], ACCEPT)
