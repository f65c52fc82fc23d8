"""Which listed keys of a cluster's node are delivered: the same by the compiled filter as by the pure one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.scan.slot_filter import ACCEPT, ACCEPT_NEW, DROP, HASH_BITS, KeyFilter, SlotFilter, fingerprint
from tests.examples import examples
from tests.server.scan.kinds import IS_BUILT

NewFilter = Callable[[int], KeyFilter]


def compiled(most: int) -> KeyFilter:
    from rtui.server.engine._slot_filter import SlotFilter as CompiledSlotFilter

    return CompiledSlotFilter(most)


_NOT_BUILT = pytest.mark.skipif(not IS_BUILT, reason="the compiled engine was not built")
each_filter = pytest.mark.parametrize(
    "new_filter", [pytest.param(SlotFilter, id="pure"), pytest.param(compiled, id="compiled", marks=_NOT_BUILT)]
)

NAMES = [b"", b"{", b"{}", b"a{b}c", b"{a}{b}", b"x" * 70_000, bytes(range(256)), *(b"k%d" % at for at in range(300))]


@_NOT_BUILT
@given(st.integers(0, 2**64), st.integers(0, 60))
@settings(max_examples=examples(100))
def test_the_compiled_filter_does_what_the_pure_one_does(seed: int, most: int) -> None:
    rng = Random(seed)
    most *= 10
    pair = SlotFilter(most), compiled(most)
    slots = sorted({key_slot(name) for name in NAMES})
    for _ in range(rng.randrange(30)):
        some = set(rng.sample(slots, rng.randrange(len(slots))))
        match rng.randrange(6):
            case 0:
                what = rng.choice((DROP, ACCEPT, ACCEPT_NEW))
                for one in pair:
                    one.know(one.take(some))
                    one.set_slots(some, what)
            case 1:
                for one in pair:
                    one.forget(some)
            case 2:
                pure, made = (sorted(one.take(some)) for one in pair)
                assert pure == made
                for one in pair:
                    one.know(SlotFilter(0).take(()))
            case _:
                page = rng.choices(NAMES, k=rng.randrange(60))
                pure_page, made_page = (one.accept(page) for one in pair)
                assert pure_page == made_page
        pure_count, made_count = (one.unknown(slots) for one in pair)
        assert pure_count == made_count


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
