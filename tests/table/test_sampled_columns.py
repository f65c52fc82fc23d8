"""Facts that one key in eight was asked: estimates that hold the truth, and lists that say what they may lack."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.columns import ALL_COLUMNS, SAMPLED_COLUMNS, Columns
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.report.document import Scope, Stats, Summary
from rtui.analysis.report.members import IDLE_EDGES_S
from rtui.analysis.report.thresholds import preset, preset_names
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import UNKNOWN_LENGTH
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.table.drawn_rows import add_batch

LAWS: dict[str, Callable[[Random], int]] = {
    "even": lambda rng: rng.randrange(100 * 86_400),
    "lognormal": lambda rng: round(rng.lognormvariate(8, 3)),
    "two heaps": lambda rng: rng.choice((5, 40 * 86_400)),
    "rare": lambda rng: 90 * 86_400 if rng.random() < 0.002 else 30,
    "pareto": lambda rng: round(rng.paretovariate(0.4)),
}
NAMES = [(f"n{number}", count) for number, count in enumerate((2_000, 400, 80, 40, 24, 9, 8, 3))]
KEYSPACES = 12
STARTED_S = 1_790_000_000.0


def summary_of(aggregates: Aggregates) -> Summary:
    return finish(aggregates.summary())


def aggregates_for(columns: Columns, top: int = 100) -> Aggregates:
    return Aggregates(Separators(), scope=Scope(columns=columns, top=top), started_at_s=1_790_000_000.0)


def passed(rng: Random, values: dict[bytes, int]) -> Summary:
    """A pass over keys in a random order that asks one in eight for a value, as its idle time and as its length."""
    keys = list(values)
    rng.shuffle(keys)
    start = rng.randrange(8)
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    for is_sampled in (True, False):
        some = [key for index, key in enumerate(keys) if (index % 8 == start) is is_sampled]
        facts = [values[key] for key in some]
        batch = InspectedBatch(b"hash", some, [-1] * len(some), [size + 100 for size in facts], is_sampled=is_sampled)
        if is_sampled:
            batch = InspectedBatch(
                b"hash", some, batch.ttl_ms, batch.memory_bytes, idle_s=facts, lengths=facts, is_sampled=True
            )
        if some:
            add_batch(aggregates, batch, 1_790_000_000.0)
    return summary_of(aggregates)


def held(stats: Stats, truth: list[int]) -> list[bool]:
    """Whether each bin of idle times holds the true number of keys."""
    assert stats.idle is not None
    binned = Counter(bisect_right(IDLE_EDGES_S, value) for value in truth)
    counts = [binned[at] for at in range(len(IDLE_EDGES_S) + 1)]
    return [count in as_estimate(figure) for figure, count in zip(stats.idle, counts, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_the_truth(law: str) -> None:
    rng = Random(law)
    hits: Counter[str] = Counter()
    tries: Counter[str] = Counter()
    for _ in range(KEYSPACES):
        values = {f"{name}:k{number}x".encode(): LAWS[law](rng) for name, count in NAMES for number in range(count)}
        summary = passed(rng, values)
        found = {node.name: node.stats for node in summary.root.children}
        everything = sorted(values.values())
        seen = {"all": held(summary.root.stats, everything)}
        for name, _ in NAMES:
            of_name = [value for key, value in values.items() if key.startswith(f"{name}:".encode())]
            if found[name.encode()].idle is not None:
                seen[name] = held(found[name.encode()], of_name)
        for name, bins in seen.items():
            what = "all" if name == "all" else "part"
            hits[what] += sum(bins)
            tries[what] += len(bins)
        (kind,) = summary.types
        assert kind.length is not None
        for share, figure in ((0.5, kind.length.p50), (0.9, kind.length.p90)):
            assert isinstance(figure, Estimate)
            true = everything[int(share * len(everything))]
            hits["quantile"] += figure.low * 0.98 <= true <= figure.high * 1.02
            tries["quantile"] += 1
        assert isinstance(kind.length.mean, Estimate)
    for what, count in tries.items():
        assert hits[what] / count >= (0.95 if what != "quantile" else 0.9), (what, hits[what], count)


def test_facts_of_all_keys_stay_exact() -> None:
    summary = passed(Random(3), {b"a:%d" % number: number for number in range(1_000)})
    root = summary.root.stats
    assert (root.keys, root.memory_bytes, root.no_ttl_keys) == (1_000, 1_000 * 100 + 999 * 500, 1_000)
    assert root.idle is not None
    assert all(isinstance(figure, Estimate) for figure in root.idle)
    assert sum(figure.value for figure in map(as_estimate, root.idle)) == pytest.approx(1_000)


def test_what_every_key_was_asked_is_exact() -> None:
    aggregates = aggregates_for(ALL_COLUMNS)
    keys = [b"a:%d" % number for number in range(100)]
    add_batch(aggregates, InspectedBatch(b"hash", keys[:40], idle_s=[5] * 40, lengths=[7] * 40), 1_790_000_000.0)
    add_batch(aggregates, InspectedBatch(b"hash", keys[40:]), 1_790_000_000.0)  # refused
    summary = summary_of(aggregates)
    assert summary.root.stats.idle is not None
    assert summary.root.stats.idle[0] == 40
    assert summary.types[0].length is not None
    assert summary.types[0].length.p50 == 7


def test_lengths_of_all_keys_of_a_type_are_exact_however_they_came() -> None:
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    add_batch(aggregates, InspectedBatch(b"list", [b"a"], lengths=[10]), 1_790_000_000.0)
    add_batch(aggregates, InspectedBatch(b"list", [b"b", b"c"], lengths=[20, 30], is_sampled=False), 1_790_000_000.0)
    length = summary_of(aggregates).types[0].length
    assert length is not None
    assert (length.mean, length.p50, length.max) == (20, 20, 30)
    add_batch(aggregates, InspectedBatch(b"list", [b"d"], is_sampled=False), 1_790_000_000.0)
    length = summary_of(aggregates).types[0].length
    assert length is not None
    assert isinstance(length.mean, Estimate)
    assert (length.mean.value, length.max) == (10, 30)


KEYSPACES_OF_LENGTHS = st.dictionaries(
    st.binary(min_size=1, max_size=3), st.tuples(st.integers(0, 12), st.sampled_from(["sampled", "late", "left"])),
    min_size=1, max_size=60,
)  # fmt: skip


@given(KEYSPACES_OF_LENGTHS, st.integers(1, 8), st.integers(0, 3))
def test_a_list_that_lacks_nothing_is_that_of_sorting_all(
    keyspace: dict[bytes, tuple[int, str]], top: int, slack: int
) -> None:
    table = aggregates_for(ALL_COLUMNS, top)
    for how in ("sampled", "late", "left"):
        keys = [key for key, (_, asked) in keyspace.items() if asked == how]
        lengths = [keyspace[key][0] for key in keys]
        if how == "left" and keys:
            table.big.leave_out(b"hash", max(lengths) + slack)
        is_sampled = how == "sampled"
        memory = [length + 100 for length in lengths]
        asked = None if how == "left" else lengths
        add_batch(
            table, InspectedBatch(b"hash", keys, memory_bytes=memory, lengths=asked, is_sampled=is_sampled), STARTED_S
        )
    finish(table.add_held())
    report = table.big.report()
    true = sorted(((length, key) for key, (length, _) in keyspace.items()), key=lambda one: (-one[0], one[1]))[:top]
    listed = [(record.length, record.key) for record in report.by_type_length.get(b"hash", ())]
    if b"hash" not in report.length_not_asked and listed:
        assert listed == true
    else:
        assert any(asked == "left" for _, asked in keyspace.values())


def test_keys_learnt_at_the_end_enter_the_list_and_prove_it() -> None:
    table = aggregates_for(ALL_COLUMNS, 2)
    asked = InspectedBatch(b"hash", [b"a", b"b", b"c"], memory_bytes=[10, 11, 12], lengths=[5, 6, 4])
    add_batch(table, asked, STARTED_S)
    table.big.leave_out(b"hash", 40)
    left_out = InspectedBatch(b"hash", [b"d", b"e"], memory_bytes=[80, 60], is_sampled=False)
    add_batch(table, left_out, STARTED_S)
    finish(table.add_held())
    found = table.big
    assert found.report().length_not_asked == {b"hash": 40}
    found.learn(b"d", length=9)
    found.learn(b"e", length=1)
    found.bound_left_out(b"hash", 5)
    report = found.report()
    assert [record.key for record in report.by_type_length[b"hash"]] == [b"d", b"b"]
    assert report.length_not_asked == {}


def test_what_nobody_knows_may_be_longer() -> None:
    table = aggregates_for(ALL_COLUMNS, 1)
    add_batch(table, InspectedBatch(b"list", [b"a"], lengths=[1_000]), STARTED_S)
    table.big.leave_out(b"list", UNKNOWN_LENGTH)
    finish(table.add_held())
    assert table.big.report().length_not_asked == {b"list": None}


def test_counts_over_the_thresholds_are_exact_where_no_key_that_may_be_was_left_out() -> None:
    limit = preset("rtui").elements or 0
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    others = [b"c%d" % number for number in range(13)]
    for batch in (
        InspectedBatch(b"hash", [b"a", b"b"], lengths=[limit + 1, 3]),
        InspectedBatch(b"hash", others, memory_bytes=[200] * 13, is_sampled=False),
        InspectedBatch(b"hash", [b"d"], lengths=[limit + 9], is_sampled=False),
    ):
        add_batch(aggregates, batch, 1_790_000_000.0)
    aggregates.big.leave_out(b"hash", limit)
    assert summary_of(aggregates).big.over == {b"hash": 2}
    aggregates.big.leave_out(b"hash", limit + 1)
    over = summary_of(aggregates).big.over[b"hash"]
    assert isinstance(over, Estimate)
    assert (over.low, over.value) == (2, 8)
    assert 8 < over.high <= 16


def test_a_string_that_was_left_out_is_not_judged_by_its_memory() -> None:
    limit, now_s = preset("rtui").string_bytes, 1_790_000_000.0
    aggregates = aggregates_for(SAMPLED_COLUMNS)
    aggregates.big.leave_out(b"string", limit + 100)
    add_batch(aggregates, InspectedBatch(b"string", [b"a"], memory_bytes=[limit + 100], lengths=[limit]), now_s)
    others = InspectedBatch(
        b"string", [b"b%d" % number for number in range(7)], memory_bytes=[limit + 100] * 7, is_sampled=False
    )
    add_batch(aggregates, others, now_s)
    over = summary_of(aggregates).big.over[b"string"]
    assert isinstance(over, Estimate)
    assert over.low == 0


@pytest.mark.parametrize("name", preset_names())
@pytest.mark.parametrize("without", ["nothing", "lengths", "memory"])
def test_counts_over_the_thresholds_are_exact(name: str, without: str) -> None:
    rng, thresholds = Random(5), preset(name)
    found = Aggregates(Separators(), scope=Scope(columns=ALL_COLUMNS, preset=name), started_at_s=0.0)
    expected: Counter[bytes] = Counter()
    for first in range(0, 2_400, 40):
        kind = rng.choice((b"string", b"hash", b"set", b"made-up"))
        keys = [b"%d" % number for number in range(first, first + 40)]
        memory = None if without == "memory" else [int(rng.lognormvariate(11, 4)) for _ in keys]
        lengths = None if without == "lengths" else [int(rng.lognormvariate(8, 4)) for _ in keys]
        add_batch(found, InspectedBatch(kind, keys, memory_bytes=memory, lengths=lengths), 0.0)
        for at in range(40):
            is_big = thresholds.is_big(kind, memory[at] if memory else None, lengths[at] if lengths else None)
            expected[kind] += is_big
    over = summary_of(found).big.over
    assert {kind: over.get(kind, 0) for kind in expected} == expected
    assert expected.total() > 0
