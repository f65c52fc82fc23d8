"""What a pass adds up to equals a brute-force count, whatever comes in which order."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import Node, NodeKind, Scope, Summary
from rtui.analysis.report.figures import SampledKeyspace
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.registry import Registry
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from rtui.table.pattern_nodes import MOST_CHILDREN
from tests.conftest import examples
from tests.grammar import Grammar
from tests.table.naive import add_batch, assert_same, by_path, check, nodes, records
from tests.table.test_registry_counts import REGISTRY, batches_of

STARTED_S = 1_790_000_000.0

Batches = Sequence[tuple[InspectedBatch, float]]

NAMES = st.sampled_from(
    b"user cart v2 42 7 10.0.0.1 2026-02-01 {a:1} {9} \xff { \1 \0 ab12cd34 d41d8cd98f00b204e9800998ecf8427e "
    b"550e8400-e29b-41d4-a716-446655440000".split(b" ")
) | st.just(b"")
KEYS = st.lists(NAMES, min_size=1, max_size=4).map(b":".join) | st.binary(max_size=12)


@st.composite
def a_batch(draw: st.DrawFn) -> tuple[InspectedBatch, float]:
    """Keys of one type, of which some facts are known."""
    keys = draw(st.lists(KEYS, min_size=1, max_size=20))

    def column(values: st.SearchStrategy[int]) -> list[int] | None:
        values_of_all = st.lists(values, min_size=len(keys), max_size=len(keys))
        return draw(st.none() | values_of_all)

    batch = InspectedBatch(
        draw(st.sampled_from((b"string", b"hash", None))),
        keys,
        ttl_ms=column(st.just(-1) | st.integers(0, 10**11)),
        memory_bytes=column(st.integers(1, 10**9)),
        idle_s=column(st.integers(0, 10**8)),
        lengths=column(st.integers(0, 10**6)),
    )
    return batch, STARTED_S + draw(st.integers(0, 1000))


BATCHES = st.lists(a_batch(), min_size=1, max_size=6)


def fresh(scope: Scope | None = None, node_budget: int = 4096) -> Aggregates:
    """Aggregates of nothing yet."""
    scope = scope or Scope()
    return Aggregates(Separators(scope.separators), scope=scope, started_at_s=STARTED_S, node_budget=node_budget)


def aggregates_of(batches: Batches, scope: Scope | None = None, node_budget: int = 4096) -> Aggregates:
    aggregates = fresh(scope, node_budget)
    for batch, asked_at_s in batches:
        add_batch(aggregates, batch, asked_at_s)
    return aggregates


def summary_of(aggregates: Aggregates, sample: SampledKeyspace | None = None) -> Summary:
    return finish(aggregates.summary(sample))


def batch_of(keys: Sequence[bytes], memory_bytes: int = 100) -> tuple[InspectedBatch, float]:
    """Strings that last, of one size."""
    sizes = [memory_bytes] * len(keys)
    return InspectedBatch(b"string", keys, ttl_ms=[-1] * len(keys), memory_bytes=sizes), STARTED_S


@settings(deadline=None)
@given(BATCHES, st.sampled_from(((b":",), (b":", b"/"), (b"::",), ())), st.sampled_from((None, None, 0, 1, 2)))
def test_every_level_equals_a_brute_force_count(
    batches: Batches, separators: tuple[bytes, ...], depth: int | None
) -> None:
    summary = summary_of(aggregates_of(batches, Scope(separators=separators, depth=depth)))
    everything = list(records(batches))
    expected = by_path(everything, Separators(separators), depth)
    found = nodes(summary.root)
    assert found.keys() == expected.keys()
    for path, keys in expected.items():
        check(found[path], keys, everything)
    assert sum(summary.slots.keys) == len(everything)


@settings(deadline=None)
@given(BATCHES)
def test_types_equal_a_brute_force_count(batches: Batches) -> None:
    summary = summary_of(aggregates_of(batches))
    everything = list(records(batches))
    assert {one.name for one in summary.types} == {one.kind for one in everything} - {None}
    for kind in summary.types:
        keys = [one for one in everything if one.kind == kind.name]
        check(kind.stats, keys, everything)
        lengths = [one.length for one in keys if one.length is not None]
        assert (kind.length is None) == (not lengths)
        if kind.length is not None:
            assert (kind.length.max, kind.length.mean) == (max(lengths), sum(lengths) / len(lengths))


@settings(max_examples=examples(30), deadline=None)
@given(BATCHES, st.randoms(use_true_random=False))
def test_the_order_of_batches_says_nothing(batches: Batches, random: Random) -> None:
    shuffled = list(batches)
    random.shuffle(shuffled)
    first, second = summary_of(aggregates_of(batches)), summary_of(aggregates_of(shuffled))
    assert (first.root, first.types, first.expiry) == (second.root, second.types, second.expiry)


NUMEROUS = st.lists(
    st.tuples(
        st.sampled_from((b"session", b"n%d", b"n%d")),
        st.sampled_from((b"", b":a", b":%d", b":x%d:b", b":x%d", b":{%d}:z:1")),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(NUMEROUS, st.sampled_from((1, 5, 40, 4096)), st.integers(0, 3))
def test_nothing_is_lost_in_folds_and_beyond_the_budget(
    forms: list[tuple[bytes, bytes]], budget: int, seed: int
) -> None:
    random = Random(seed)
    keys = [(first + rest).replace(b"%d", b"%d" % random.randrange(400)) for first, rest in forms for _ in range(100)]
    random.shuffle(keys)
    batches = [batch_of(keys[start : start + 50], 64 + start) for start in range(0, len(keys), 50)]
    aggregates = aggregates_of(batches, node_budget=budget)
    summary = summary_of(aggregates)
    assert (summary.root.stats.keys, aggregates.keys) == (len(keys), len(keys))
    assert summary.root.stats.memory_bytes == sum(size for batch, _ in batches for size in batch.memory_bytes or ())
    beyond = 0
    for *_, node in summary.root.walk():
        assert sum(map(_keys, node.children)) <= _keys(node)
        beyond += _keys(node) if node.kind is NodeKind.OTHER else 0
        assert len(node.children) <= 2 * MOST_CHILDREN + 6
    assert summary.folded == beyond
    assert sum(1 for _ in summary.root.walk()) <= 3 * budget + 3


def _keys(node: Node) -> int:
    assert isinstance(node.stats.keys, int)
    return node.stats.keys


def test_too_many_names_fold_and_those_that_matter_stay() -> None:
    keys = [b"session:s%d" % number for number in range(600)] + [b"name%d:x" % number for number in range(400)]
    Random(1).shuffle(keys)
    root = summary_of(aggregates_of([batch_of(keys)])).root
    assert [(child.name, child.stats.keys) for child in root.children] == [(b"session", 600), (b"name<n>", 400)]
    assert root.children[1].kind is NodeKind.PATTERN
    assert [child.name for child in root.children[0].children] == [b"s<n>"]


def test_a_key_and_a_namespace_of_one_name_are_two_things() -> None:
    root = summary_of(aggregates_of([batch_of([b"user", b"user:1", b"user:2"])])).root
    assert {(child.name, child.separator, child.stats.keys) for child in root.children} == {
        (b"user", b"", 1),
        (b"user", b":", 2),
    }


def test_a_pattern_tells_how_many_names_it_has() -> None:
    keys = [b"user:%d:cart" % number for number in range(30)] + [b"user:%d:mail" % number for number in range(50)]
    (user,) = summary_of(aggregates_of([batch_of(keys)])).root.children
    assert [(child.name, child.distinct) for child in user.children] == [(b"<id>", 50)]


def test_hostile_names_take_no_room() -> None:
    keys = [b"%d" % number + b"x" * 5_000 for number in range(50)] + [b"a:" * 20_000, b":" * 5_000]
    paths = list(summary_of(aggregates_of([batch_of(keys)])).root.walk())
    assert max(map(len, paths)) <= 33
    assert max(len(path[-1].name) for path in paths) <= 256
    assert len(paths) < 100


def test_encodings_are_estimates_unless_every_key_was_asked() -> None:
    aggregates = aggregates_of([batch_of([b"a:%d" % number for number in range(60)])])
    for first, encoding, many in ((60, b"int", 30), (90, b"raw", 10)):
        batch, asked_at_s = batch_of([b"a:%d" % number for number in range(first, first + many)])
        add_batch(aggregates, replace(batch, encodings=[encoding] * many), asked_at_s)
    integers, raw = summary_of(aggregates).encodings
    assert isinstance(integers.share, Estimate)
    assert isinstance(integers.keys, Estimate)
    assert 75 in integers.keys
    assert integers.share.low < 0.75 < integers.share.high
    aggregates = fresh()
    for first, encoding, many in ((0, b"int", 90), (90, b"raw", 10)):
        batch, asked_at_s = batch_of([b"a:%d" % number for number in range(first, first + many)])
        add_batch(aggregates, replace(batch, encodings=[encoding] * many), asked_at_s)
    integers, raw = summary_of(aggregates).encodings
    assert (integers.keys, integers.share, raw.keys) == (90, 0.9, 10)


def test_a_sample_gives_estimates_that_hold_the_truth() -> None:
    random = Random(5)
    population = [(b"user:%d" % number, 100) for number in range(30_000)]
    population += [(b"cart:%d" % number, 100 + number % 900) for number in range(10_000)]
    drawn = random.sample(population, 4_000)
    aggregates = fresh()
    add_batch(
        aggregates,
        InspectedBatch(b"string", [key for key, _ in drawn], [-1] * 4_000, [size for _, size in drawn]),
        STARTED_S,
    )
    root = summary_of(aggregates, SampledKeyspace(len(population))).root
    carts = next(child for child in root.children if child.name == b"cart").stats
    truth = sum(size for key, size in population if key.startswith(b"cart"))
    for figure, true in (
        (carts.keys, 10_000),
        (carts.share_keys, 0.25),
        (carts.memory_bytes, truth),
        (carts.share_memory, truth / (truth + 3_000_000)),
        (carts.no_ttl_keys, 10_000),
    ):
        assert isinstance(figure, Estimate)
        assert true in figure
    assert carts.memory is not None
    assert isinstance(carts.memory.p50, Estimate)
    assert 549.5 in carts.memory.p50
    assert (root.stats.keys, root.stats.share_keys, root.stats.share_memory) == (40_000, 1.0, 1.0)


def test_coming_expiries_of_a_sample_are_estimates_that_hold_the_truth() -> None:
    random = Random(7)
    soon = [(b"login:%d" % number, 3_600_000, random.randrange(50, 500)) for number in range(8_000)]
    spread = [
        (b"login:%d" % number, random.randrange(86_400_000), random.randrange(50, 500))
        for number in range(8_000, 20_000)
    ]
    population = soon + spread + [(b"user:%d" % number, -1, 100) for number in range(20_000)]
    drawn = random.sample(population, 4_000)
    batch = InspectedBatch(
        b"string", [key for key, _, _ in drawn], [ttl for _, ttl, _ in drawn], [s for _, _, s in drawn]
    )
    aggregates = fresh()
    add_batch(aggregates, batch, STARTED_S)
    whole_bytes = sum(size for _, _, size in population)
    expiry = summary_of(aggregates, SampledKeyspace(len(population), round(1.05 * whole_bytes))).expiry
    (cliff,) = expiry.cliffs
    inside = [(ttl, size) for _, ttl, size in soon + spread if cliff.start_s <= STARTED_S + ttl // 1000 < cliff.end_s]
    whole = expiry.timelines[0].bins
    for figure, true in (
        (cliff.keys, len(inside)),
        (cliff.share, len(inside) / 40_000),
        (cliff.memory_bytes, sum(size for _, size in inside)),
    ):
        assert isinstance(figure, Estimate)
        assert true in figure
        assert figure.low < figure.value < figure.high < 2 * figure.value
    assert isinstance(cliff.expected_keys, Estimate)
    assert all(isinstance(one.keys, Estimate) and isinstance(one.memory_bytes, Estimate) for one in whole)
    assert 0.9 * 20_000 < sum(one.keys.value for one in whole if isinstance(one.keys, Estimate)) < 1.1 * 20_000


def test_of_a_sample_of_nobody_knows_how_many_there_are_at_least_those_seen() -> None:
    aggregates = aggregates_of([batch_of([b"a:%d" % number for number in range(90)] + [b"b"] * 10)])
    root = summary_of(aggregates, SampledKeyspace()).root
    assert root.stats.keys == Estimate(100, 100, inf)
    assert root.stats.memory_bytes == Estimate(10_000, 10_000, inf)
    share = root.children[0].stats.share_keys
    assert isinstance(share, Estimate)
    assert share.low < 0.9 < share.high


def test_keys_over_the_thresholds_of_a_sample_are_estimates() -> None:
    aggregates = aggregates_of([batch_of([b"a:%d" % number for number in range(100)], 100_000_000)])
    (over,) = summary_of(aggregates, SampledKeyspace(1_000)).big.over.values()
    assert isinstance(over, Estimate)
    assert over.value == 1_000


def test_nothing_adds_up_to_nothing() -> None:
    summary = summary_of(fresh())
    assert (summary.root.stats.keys, summary.root.children, summary.types) == (0, (), ())
    assert summary.root.stats.memory_bytes is None
    assert summary_of(fresh(), SampledKeyspace(0)).root.stats.keys == 0


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
