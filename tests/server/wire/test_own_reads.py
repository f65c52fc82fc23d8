"""What rtui has read itself, against a plain account of every use."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rtui.server.wire.own_reads import MAX_REMEMBERED_KEYS, RESOLUTION_S, IdleTime, OwnReads

NOW_S = 1_790_000_000.0


@given(st.lists(st.tuples(st.floats(0, 10_000), st.booleans()), max_size=12), st.floats(0, 1_000), st.floats(-1, 1))
def test_the_last_use_by_others_is_told_as_far_as_it_can_be(
    later: list[tuple[float, bool]], asked_after_s: float, lag_s: float
) -> None:
    """Somebody uses the key, and then rtui and others do, in any order; rtui looks before it reads."""
    own_reads, moment_s = OwnReads(), NOW_S
    last_use_s = others_s = NOW_S
    for wait_s, is_own in later:
        moment_s += wait_s
        if is_own:
            found = own_reads.idle(b"key", max(0, int(moment_s - last_use_s + lag_s)), moment_s)
            assert found.seconds is not None
            own_reads.add(b"key", moment_s, used_s=moment_s - found.seconds)
        else:
            others_s = moment_s
        last_use_s = moment_s
    moment_s += asked_after_s
    found = own_reads.idle(b"key", max(0, int(moment_s - last_use_s + lag_s)), moment_s)
    assert found.seconds is not None
    assert found.seconds >= int(moment_s - last_use_s + lag_s)
    if last_use_s - others_s > 2 * RESOLUTION_S:
        assert found.is_own_read
    if not any(is_own for _, is_own in later):
        assert not found.is_own_read
        assert abs(moment_s - found.seconds - others_s) <= RESOLUTION_S


def test_a_single_read_gives_way_to_the_use_before() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S, used_s=NOW_S - 230)
    assert own_reads.idle(b"key", 5, NOW_S + 5) == IdleTime(235, is_own_read=True)
    assert own_reads.idle(b"key", 5, NOW_S + 50) == IdleTime(5)
    assert own_reads.idle(b"other", 5, NOW_S + 5) == IdleTime(5)


def test_what_was_seen_before_the_last_read_is_held_against_the_one_before() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S, used_s=NOW_S - 230)
    own_reads.add(b"key", NOW_S + 100)
    assert own_reads.idle(b"key", 10, NOW_S + 10) == IdleTime(240, is_own_read=True)
    assert own_reads.idle(b"key", 10, NOW_S + 110) == IdleTime(340, is_own_read=True)
    assert own_reads.idle(b"key", 40, NOW_S + 99) == IdleTime(40)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 500), st.booleans()), max_size=30))
def test_many_keys_are_told_as_each_alone(found: list[tuple[int, int, bool]]) -> None:
    own_reads = OwnReads()
    for number, seconds, is_read in found:
        if is_read:
            own_reads.add(b"key:%d" % number, NOW_S - seconds, used_s=NOW_S - seconds - number)
    keys = [b"key:%d" % number for number, _, _ in found]
    idle_s = [seconds for _, seconds, _ in found]
    alone = [own_reads.idle(key, seconds, NOW_S) for key, seconds in zip(keys, idle_s, strict=True)]
    told, count = own_reads.correct_idle_times(keys, idle_s, NOW_S)
    assert list(told) == [one.seconds for one in alone]
    assert count == sum(one.is_own_read for one in alone)


def test_a_read_that_changed_nothing_is_not_taken_for_the_last_use() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S, used_s=NOW_S - 230)
    assert own_reads.idle(b"key", 235, NOW_S + 5) == IdleTime(235)


def test_a_use_that_nobody_knows_is_not_made_up() -> None:
    own_reads = OwnReads()
    own_reads.add(b"key", NOW_S)
    assert own_reads.idle(b"key", 5, NOW_S + 5) == IdleTime(None, is_own_read=True)


def test_the_counter_is_the_one_before_the_first_read() -> None:
    own_reads = OwnReads()
    for counter in (7, 8, 9):
        own_reads.add(b"key", NOW_S, counter=counter)
    found = own_reads.get(b"key")
    assert found is not None
    assert found.counter == 7


def test_no_more_is_remembered_than_the_bound() -> None:
    own_reads = OwnReads()
    for number in range(MAX_REMEMBERED_KEYS + 10):
        own_reads.add(b"key:%d" % number, NOW_S)
    assert len(own_reads) == MAX_REMEMBERED_KEYS
    assert own_reads.get(b"key:0") is None
    assert own_reads.get(b"key:%d" % (MAX_REMEMBERED_KEYS + 9)) is not None
