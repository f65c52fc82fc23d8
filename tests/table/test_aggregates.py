"""A summary of keys that came as rows is of all of them, whenever they are folded."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.registry import Registry
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.grammar import Grammar
from tests.table.drawn_rows import add_batch
from tests.table.naive import assert_same, check, records
from tests.table.test_registry_counts import REGISTRY, batches_of
from tests.table.test_summary import BATCHES, STARTED_S, Batches, batch_of


def table_of_batches(batches: Batches, scope: Scope | None = None, registry: Registry | None = None) -> Aggregates:
    """What these batches add up to."""
    scope = scope or Scope()
    found = Aggregates(Separators(scope.separators), scope=scope, started_at_s=STARTED_S, registry=registry)
    for batch, asked_at_s in batches:
        add_batch(found, batch, asked_at_s)
    return found


def drawn(seed: int, keys: int) -> Batches:
    """Keys of the grammar, as an inspection would find them."""
    random, found = Random(seed), Grammar(seed).drawn(keys)
    batches = []
    moment_s = STARTED_S
    while some := [*islice(found, 300)]:
        moment_s += 0.25
        by_kind: dict[tuple[str, bool], list[tuple[bytes, int, int, int]]] = {}
        for pattern, name in some:
            is_sampled = random.random() < 1 / 8
            size = max(1, min(200_000, int(pattern.size())))
            left = -1 if pattern.ttl_s is None else int(pattern.ttl_s() * 1000)
            rows = by_kind.setdefault((pattern.key_type, is_sampled), [])
            rows.append((name, left, size + 56, size if pattern.key_type == "string" else 1 + size // 20))
        for (key_type, is_sampled), rows in by_kind.items():
            names, lives, sizes, lengths = (list(column) for column in zip(*rows, strict=True))
            idle = [random.randrange(10**7) for _ in rows] if is_sampled else None
            batch = InspectedBatch(
                *(key_type.encode(), names, lives, sizes, idle),
                lengths=lengths if is_sampled else None,
                is_sampled=is_sampled,
            )
            batches.append((batch, moment_s))
    return batches


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3, 8])
def test_a_keyspace_equals_a_brute_force_count(seed: int) -> None:
    batches = drawn(seed, 15_000)
    summary, everything = finish(table_of_batches(batches).summary()), list(records(batches))
    for stats, kinds in ((summary.root.stats, None), *((one.stats, one.name) for one in summary.types)):
        check(stats, [one for one in everything if kinds is None or one.kind == kinds], everything)


def assert_parts_add_up(batches: Batches, places: Sequence[int], registry: Registry | None = None) -> None:
    """Compare the summary of all batches with that of parts of them, of as many places, that other processes found."""
    whole, joined = table_of_batches(batches, registry=registry), table_of_batches([], registry=registry)
    for place in {*places}:
        some = [one for one, at in zip(batches, places, strict=True) if at == place]
        part = table_of_batches(some, registry=registry)
        for table in (part, whole):
            table.add_unread([b"long"])
            table.add_vanished(2)
        finish(part.add_held())
        finish(joined.merge(pickle.loads(pickle.dumps(part.collected()))))  # noqa: S301 - its own
    one, other = finish(whole.summary()), finish(joined.summary())
    assert_same(one, other)
    assert (one.naming is not None) == (registry is not None)
    assert (whole.keys, whole.counted) == (joined.keys, joined.counted)


@given(BATCHES, st.data())
def test_parts_that_other_processes_found_add_up(batches: Batches, data: st.DataObject) -> None:
    keys = [key for batch, _ in batches for key in batch.keys]
    if len({*keys}) == len(keys):  # a key is in one slot, and so in one part
        assert_parts_add_up(
            batches, data.draw(st.lists(st.integers(0, 2), min_size=len(batches), max_size=len(batches)))
        )


def test_parts_wait_for_a_summary_that_is_being_made() -> None:
    batches = drawn(5, 900)
    joined, part = table_of_batches(batches[:2]), table_of_batches(batches[2:])
    finish(part.add_held())
    making, merging = joined.summary(), joined.merge(part.collected())
    make = next(making)
    assert make is not None
    assert next(merging) is None  # it waits
    make()
    assert finish(making).root.stats.keys == sum(len(batch.keys) for batch, _ in batches[:2])
    finish(merging)
    assert finish(joined.summary()).root.stats.keys == 900


@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", [4, 9])
def test_parts_add_up_by_a_registry(seed: int) -> None:
    random = Random(seed)
    batches = [(batch, STARTED_S) for batch in batches_of(random)]
    assert_parts_add_up(batches, random.choices((0, 1, 2), k=len(batches)), REGISTRY)


@pytest.mark.slow
def test_parts_of_a_keyspace_add_up() -> None:
    batches, random = drawn(5, 6_000), Random(5)
    assert_parts_add_up(batches, random.choices((0, 1, 2), k=len(batches)))


def test_a_summary_is_of_all_that_came_before_and_of_no_more() -> None:
    table = table_of_batches([batch_of([b"a:%d:b%d" % (number, number % 100) for number in range(5_000)])])
    slices, added = table.summary(), 0
    with pytest.raises(StopIteration) as end:
        while True:
            step = next(slices)
            if step is not None:
                step()
            add_batch(table, *batch_of([b"b:1"]))
            added += 1
    assert end.value.value.root.stats.keys == table.counted.keys <= 5_000 + added
    assert finish(table.summary()).root.stats.keys == table.keys == 5_000 + added


def test_unread_and_vanished_keys() -> None:
    table = table_of_batches([batch_of([b"a:1"])])
    table.add_unread([b"a:" + b"x" * 100_000])
    table.add_vanished(3)
    stats = finish(table.summary()).root.stats
    assert (stats.keys, stats.memory_known_keys, stats.memory_bytes) == (2, 1, 100)
    assert tuple(table.counted) == (1, 1, 3)


def test_lists_know_of_rows_once_they_are_folded() -> None:
    table = table_of_batches([batch_of([b"a:%d" % number for number in range(300)])], Scope(top=5))
    finish(table.add_held())
    listed = table.big.report().by_memory
    assert [(one.memory_bytes, one.key) for one in listed] == [
        (100, b"a:%d" % number) for number in (0, 1, 10, 100, 101)
    ]


def test_one_folds_at_a_time_and_what_is_left_loses_nothing() -> None:
    table = table_of_batches([batch_of([b"a:%d" % number for number in range(500)])])
    left, first, second = table.summary(), table.summary(), table.add_held()
    assert next(left) is not None
    left.close()
    work = next(first)
    assert work is not None
    assert [next(second), next(second)] == [None, None]
    work()
    waiting = next(second)
    assert waiting is not None
    first.close()
    waiting()
    with pytest.raises(StopIteration):
        next(second)
    assert finish(table.summary()).root.stats.keys == 500
