"""Which listed keys of a cluster's node are delivered: the same by the compiled filter as by the pure one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.scan.slot_filter import ACCEPT, ACCEPT_NEW, DROP, HASH_BITS, KeyFilter, SlotFilter, fingerprint

NewFilter = Callable[[int], KeyFilter]


each_filter = pytest.mark.parametrize("new_filter", [pytest.param(SlotFilter, id="pure")])

NAMES = [b"", b"{", b"{}", b"a{b}c", b"{a}{b}", b"x" * 70_000, bytes(range(256)), *(b"k%d" % at for at in range(300))]


@each_filter
def test_fingerprints_go_from_one_node_to_another(new_filter: NewFilter) -> None:
    one, other = new_filter(10_000), new_filter(10_000)
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


@each_filter
def test_no_more_fingerprints_are_kept_than_are_allowed(new_filter: NewFilter) -> None:
    one = new_filter(100)
    one.set_slots(range(SLOTS), ACCEPT)
    keys = [b"%d" % at for at in range(250)]
    assert one.accept(keys) == keys
    assert one.unknown(range(SLOTS)) == 150
    first = {key_slot(key) for key in keys[:100]}
    one.forget(first)
    assert one.unknown(first) == 0
    assert one.accept(keys[:50]) == keys[:50]
    assert len(one.take(range(SLOTS))) == 50


@each_filter
def test_what_is_no_slot(new_filter: NewFilter) -> None:
    one = new_filter(100)
    with pytest.raises((ValueError, IndexError, OverflowError)):
        one.set_slots([SLOTS], ACCEPT)
