"""A summary of a table and one of other counters are of the same keys: equal field by field."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.figures import SampledKeyspace
from rtui.analysis.aggregate.table_aggregates import TableAggregates
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.columns import ALL_COLUMNS, SAMPLED_COLUMNS, Columns
from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.registry import Registry
from rtui.table.schema import NEVER
from tests.analysis.aggregate.same import assert_same
from tests.analysis.aggregate.test_aggregates import BATCHES, STARTED_S, Batches, batch_of
from tests.analysis.aggregate.test_registry_counts import REGISTRY, batches_of
from tests.grammar import Grammar
from tests.table.drawn_rows import table_of


def both(
    batches: Batches, scope: Scope, *, as_rows: bool = False, registry: Registry | None = None
) -> tuple[Aggregates, TableAggregates]:
    """These batches in other counters and in a table, to which they may come as rows of known encodings."""
    separators = Separators(scope.separators)
    others = Aggregates(separators, scope=scope, started_at_s=STARTED_S, registry=registry)
    table = TableAggregates(separators, scope=scope, started_at_s=STARTED_S, registry=registry)
    for batch, asked_at_s in batches:
        others.add(batch, asked_at_s)
        if not as_rows:
            table.add(batch, asked_at_s)
            continue
        table.add_rows(partial(table_of, [*rows_of(batch, asked_at_s)]), len(batch.keys), asked_at_s)
        if batch.key_type is not None:
            others.add_encodings(batch.key_type, [b"raw"] * len(batch.keys))
    return others, table


def rows_of(batch: InspectedBatch, asked_at_s: float) -> Iterator[dict[str, object]]:
    """Yield the keys of a batch as rows."""
    now_ms = int(asked_at_s * 1000)
    for at, key in enumerate(batch.keys):
        left = None if batch.ttl_ms is None else batch.ttl_ms[at]
        columns = {"memory_bytes": batch.memory_bytes, "length": batch.lengths, "idle_s": batch.idle_s}
        yield {
            "key": key,
            "type": None if batch.key_type is None else batch.key_type.decode(),
            "encoding": None if batch.key_type is None else "raw",
            "expires_ms": left if left is None else NEVER if left < 0 else now_ms + left,
            "sampled": batch.is_sampled,
            **{name: None if column is None else column[at] for name, column in columns.items()},
        }


@given(
    BATCHES,
    st.sampled_from(((b":",), (b":", b"/"), (b"::",), ())),
    st.sampled_from((None, None, 0, 1, 2)),
    st.booleans(),
    st.sampled_from((None, SampledKeyspace(), SampledKeyspace(1_000, 10**12))),
)
def test_both_say_the_same(
    batches: Batches,
    separators: tuple[bytes, ...],
    depth: int | None,
    as_rows: bool,
    sample: SampledKeyspace | None,
) -> None:
    keys = [key for batch, _ in batches for key in batch.keys]
    if as_rows and len({*keys}) < len(keys):  # of a key that came again, lists have another row
        return
    others, table = both(batches, Scope(separators=separators, depth=depth), as_rows=as_rows)
    assert_same(finish(others.summary(sample)), finish(table.summary(sample)))
    assert (others.keys, others.counted) == (table.keys, table.counted)
    for one, other in zip(others.slots.ttl_counts(), table.slots.ttl_counts(), strict=True):
        assert list(one) == list(other)


@pytest.mark.slow
@pytest.mark.parametrize("as_rows", [False, True], ids=["batches", "rows"])
def test_both_say_the_same_by_a_registry(as_rows: bool) -> None:
    batches = [(batch, STARTED_S) for batch in batches_of(Random(4))]
    others, table = both(batches, Scope(), as_rows=as_rows, registry=REGISTRY)
    one, other = finish(others.summary()), finish(table.summary())
    assert one.registry is not None
    assert one.naming is not None
    assert_same(one.registry, other.registry, "registry")
    assert_same(one.naming, other.naming, "naming")
    assert_same(one.rules, other.rules, "rules")


def drawn(seed: int, keys: int, columns: Columns) -> Batches:
    """Keys of the grammar, as an inspection would find them."""
    random, found = Random(seed), Grammar(seed).drawn(keys)
    batches = []
    moment_s = STARTED_S
    while some := [*islice(found, 300)]:
        moment_s += 0.25
        by_kind: dict[tuple[str, bool], list[tuple[bytes, int, int, int]]] = {}
        for pattern, name in some:
            is_sampled = columns is ALL_COLUMNS or random.random() < 1 / 8
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
@pytest.mark.parametrize("columns", [ALL_COLUMNS, SAMPLED_COLUMNS], ids=["all", "default"])
@pytest.mark.parametrize("seed", [1, 3, 8])
def test_both_say_the_same_of_a_keyspace(seed: int, columns: Columns) -> None:
    others, table = both(drawn(seed, 15_000, columns), Scope(columns=columns))
    for sample in (None, SampledKeyspace(200_000, 10**12)):
        assert_same(finish(others.summary(sample)), finish(table.summary(sample)))


def test_a_summary_is_of_all_that_came_before_and_of_no_more() -> None:
    _, table = both([batch_of([b"a:%d:b%d" % (number, number % 100) for number in range(5_000)])], Scope())
    slices, added = table.summary(), 0
    with pytest.raises(StopIteration) as end:
        while True:
            step = next(slices)
            if step is not None:
                step()
            table.add(*batch_of([b"b:1"]))
            added += 1
    assert end.value.value.root.stats.keys == table.counted.keys <= 5_000 + added
    assert finish(table.summary()).root.stats.keys == table.keys == 5_000 + added


def test_unread_and_vanished_keys() -> None:
    _, table = both([batch_of([b"a:1"])], Scope())
    table.add_unread([b"a:" + b"x" * 100_000])
    table.add_vanished(3)
    stats = finish(table.summary()).root.stats
    assert (stats.keys, stats.memory_known_keys, stats.memory_bytes) == (2, 1, 100)
    assert tuple(table.counted) == (1, 1, 3)


def test_lists_know_of_rows_once_they_are_folded() -> None:
    others, table = both([batch_of([b"a:%d" % number for number in range(300)])], Scope(top=5), as_rows=True)
    finish(table.add_held())
    *_, last = table.big.report().by_memory
    assert (last.memory_bytes, last.key) == (100, b"a:101")
    assert others.big.report().by_memory == table.big.report().by_memory


def test_one_folds_at_a_time_and_what_is_left_loses_nothing() -> None:
    _, table = both([batch_of([b"a:%d" % number for number in range(500)])], Scope())
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
