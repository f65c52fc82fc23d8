"""Noticing from cursors that a table became smaller."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.server.scan.cursor import POSITION_END, Dialect, bitreverse64
from rtui.server.scan.ranges import PATIENCE, Ranges


def cursors(rng: Random, bits: int, count: int) -> list[int]:
    """Cursors of a table of 2^bits buckets, from random places."""
    width = POSITION_END >> bits
    return [bitreverse64(rng.randrange(1 << bits) * width) for _ in range(count)]


@given(st.integers(0, 1 << 32).map(Random), st.integers(2, 30))
def test_a_table_that_keeps_its_size_did_not_shrink(rng: Random, bits: int) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    for cursor in cursors(rng, bits, 300):
        watch.observe(cursor)
    assert not watch.has_shrunk
    assert watch.bits == bits


@given(st.integers(0, 1 << 32).map(Random), st.integers(2, 20), st.integers(1, 8))
def test_growth_is_no_shrinking(rng: Random, bits: int, more: int) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    for cursor in cursors(rng, bits, 50) + cursors(rng, bits + more, 50):
        watch.observe(cursor)
    assert not watch.has_shrunk


@given(st.integers(0, 1 << 32).map(Random), st.integers(3, 20), st.integers(1, 8))
def test_a_smaller_table_is_noticed(rng: Random, bits: int, less: int) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    for cursor in cursors(rng, bits + less, 50) + cursors(rng, bits, PATIENCE + 60):
        watch.observe(cursor)
    assert watch.has_shrunk
    assert watch.bits == bits


@pytest.mark.parametrize(("now", "shrunk"), [([1, 2, 3], True), ([1, 9], False), ([], False)])
def test_a_last_look_at_the_table_settles_it(now: list[int], shrunk: bool) -> None:
    watch = Ranges(Dialect.STANDALONE).table
    watch.observe(8)
    watch.observe(2)
    assert not watch.is_sure
    watch.observe_random(now)
    assert watch.has_shrunk is shrunk


def test_the_end_of_a_scan_says_nothing() -> None:
    watch = Ranges(Dialect.STANDALONE).table
    watch.observe(8)
    for _ in range(2 * PATIENCE):
        watch.observe(0)
    assert watch.is_sure
    assert not watch.has_shrunk
