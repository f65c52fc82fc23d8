"""The tables of a report; bytes by a sample: what large keys do to them, and how often the intervals hold the truth."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nlargest
from math import inf
from random import Random
from secrets import randbits

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, Reason, Unknown
from rtui.analysis.report.document import EncodingReport, NodeKind, Report, Step
from rtui.analysis.report.figures import (
    ERROR,
    HIGHEST,
    MOST_LARGE,
    SampleBytes,
    SizeSums,
    Sketch,
    cap_of,
    sums_of,
)
from rtui.analysis.report.tables.cells import share_above
from rtui.analysis.report.tables.contents import about, headline, tables
from rtui.analysis.report.tables.keys import about_to_expire, big_keys, cliffs, expiry, hot_keys
from rtui.analysis.report.tables.slots import cluster_of, slot_tags, slots
from rtui.analysis.report.tables.table import (
    AtLeast,
    Cell,
    Column,
    Table,
    Unit,
    cell_interval,
    cell_reason,
    cell_text,
    find,
    label,
    path_of,
)
from rtui.analysis.report.tables.totals import encodings, namespaces, outline, spans, ttl_histogram, types
from rtui.keyspace.slices import Slicer, finish
from rtui.keyspace.text.display import HOSTILE, Display
from rtui.table.sums import size_buckets
from tests.analysis.formats.made import MADE, reports
from tests.conftest import examples, known
from tests.made_report import MADE_AT_S

EXACT = MADE["exact"]


def column(unit: Unit) -> Column:
    return Column("x", "x", unit)


def texts(table: Table, column_id: str) -> list[str]:
    at = table.column(column_id)
    return [cell_text(row[at], table.columns[at]) for row in table.rows]


@pytest.mark.parametrize(
    ("cell", "unit", "text", "ascii_text"),
    [
        (1_204, Unit.KEYS, "1,204", "1,204"),
        (AtLeast(1_204), Unit.KEYS, "≥ 1,204", ">= 1,204"),
        (Estimate(1_100.0, 1_204.0, 1_300.0), Unit.KEYS, "≈ 1.20k (1.10–1.30k)", "~ 1.20k (1.10-1.30k)"),
        (Estimate(1.0, 8.1, 30.4), Unit.KEYS, "≈ 8 (1–30)", "~ 8 (1-30)"),
        (Estimate(900.0, 1_204.0, 1e6), Unit.BYTES, "≈ 1.18 KiB (900 B–977 KiB)", "~ 1.18 KiB (900 B-977 KiB)"),
        (None, Unit.KEYS, "–", "-"),
        (Unknown(Reason.DENIED), Unit.BYTES, "denied", "denied"),
        (Unknown(Reason.UNSUPPORTED), Unit.BYTES, "–", "-"),
        (1_536, Unit.BYTES, "1.50 KiB", "1.50 KiB"),
        (Estimate(0.2, 0.29, 0.4), Unit.SHARE, "≈29% (20–40%)", "~29% (20-40%)"),
        (0.004, Unit.SHARE, "<1%", "<1%"),
        (12.4, Unit.RATIO, "12×", "12x"),
        (0, Unit.DURATION, "0s", "0s"),
        (91.5, Unit.DURATION, "1m 31s", "1m 31s"),
        (NO_TTL, Unit.DURATION, "no TTL", "no TTL"),
        (MADE_AT_S, Unit.TIME, "2026-09-21 14:13:20", "2026-09-21 14:13:20"),
        (1e18, Unit.TIME, "beyond the calendar", "beyond the calendar"),
        (10_778, Unit.NUMBER, "10778", "10778"),
        (0.4, Unit.COUNT, "0.4", "0.4"),
        (b"caf\xc3\xa9\x1b", Unit.NAME, "café␛", r"caf\u00e9\x1b"),
        (b"", Unit.NAME, "(empty)", "(empty)"),
        (((b"hash", 1_500), (b"set", 2)), Unit.MIX, "hash 1.50k, set 2", "hash 1.50k, set 2"),
        (((b"hash", 1_500),), Unit.MIX, "hash", "hash"),
        ((), Unit.MIX, "–", "-"),
        (tuple((b"%d" % at, 1) for at in range(5)), Unit.MIX, "0 1, 1 1, 2 1, 2 more", "0 1, 1 1, 2 1, 2 more"),
    ],
)
def test_a_cell_says_how_far_it_can_be_trusted(cell: Cell, unit: Unit, text: str, ascii_text: str) -> None:
    assert cell_text(cell, column(unit)) == text
    assert cell_text(cell, column(unit), Display(ascii_only=True)) == ascii_text


def test_an_estimate_has_its_interval_at_hand() -> None:
    assert cell_interval(Estimate(1_100.0, 1_204.0, 1_300.0), column(Unit.KEYS)) == "1.10–1.30k"
    assert cell_interval(1_204, column(Unit.KEYS)) is None


def test_a_share_between_bounds_that_round_alike_has_a_decimal() -> None:
    assert cell_interval(Estimate(0.076, 0.08, 0.084), column(Unit.SHARE)) == "7.6–8.4%"
    assert cell_text(Estimate(0.0052, 0.0057, 0.0062), column(Unit.SHARE)) == "≈0.6% (0.5–0.6%)"
    assert cell_text(Estimate(0.0001, 0.0002, 0.0003), column(Unit.SHARE)) == "<1% (<1%)"


def test_an_estimate_without_an_upper_bound_says_so() -> None:
    cell = Estimate(1_000, 1_000, inf)
    assert cell_interval(cell, column(Unit.KEYS)) == "1.00k–∞"
    assert "(1.00k-any)" in cell_text(cell, column(Unit.KEYS), Display(ascii_only=True))
    assert share_above((Estimate(1, 1, inf), Estimate(3, 3, inf)), 1) == Estimate(0.0, 0.75, 1.0)


def test_what_is_unknown_has_its_reason_at_hand() -> None:
    assert cell_reason(Unknown(Reason.DENIED, "NOPERM")) == "denied: NOPERM"
    assert cell_reason(5) == ""


@pytest.mark.parametrize("name", MADE)
def test_every_table_of_every_report_is_whole(name: str) -> None:
    for table in (*tables(MADE[name]), namespaces(MADE[name]), expiry(MADE[name])):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert len(table.subjects) in {0, len(table.rows)}
        assert len({one.id for one in table.columns}) == len(table.columns)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(reports, st.booleans())
def test_every_text_of_any_report_is_safe(report: Report, ascii_only: bool) -> None:
    display = Display(ascii_only=ascii_only)
    for table in (*tables(report), about(report)):
        for row in table.rows:
            for cell, one in zip(row, table.columns, strict=True):
                text = cell_text(cell, one, display)
                assert not HOSTILE.search(text)
                assert text.isascii() or not ascii_only
                assert not HOSTILE.search(cell_interval(cell, one) or "")


def test_a_level_of_namespaces_is_found_by_its_path() -> None:
    assert texts(namespaces(EXACT), "namespace")[:2] == ["shop:", "queue:"]
    assert texts(namespaces(EXACT, (b"shop",)), "namespace") == ["shop:session:", "shop:user:", "shop:cache:"]
    below = namespaces(EXACT, (b"shop", b"user"))
    assert texts(below, "namespace") == ["shop:user:<id>:"]
    subject = below.subjects[0]
    assert isinstance(subject, tuple)
    assert subject[-1] == Step(b"<id>", b":", NodeKind.PATTERN)
    assert texts(namespaces(EXACT, subject), "share_of_memory") == ["17%", "8%"]
    assert namespaces(EXACT, (b"nowhere",)).rows == ()


def test_a_name_alone_means_the_namespace_rather_than_the_key() -> None:
    root = EXACT.summary.root
    shop = root.children[0]
    key = replace(shop, separator=b"", children=())
    both = replace(root, children=(key, shop))
    assert find(both, (b"shop",)) == (both, shop)
    assert find(both, (Step(b"shop", b"", NodeKind.LITERAL),)) == (both, key)
    nodes = known(find(both, (b"shop", b"user")))
    assert label(nodes) == b"shop:user:"
    assert find(both, path_of(nodes)) == nodes


def test_partial_sums_are_at_least_and_shares_are_of_what_was_seen() -> None:
    table = namespaces(MADE["partial"])
    assert texts(table, "keys")[0] == "≥ 750,000"
    assert texts(table, "memory")[0] == "≥ 1.27 GiB"
    assert texts(table, "share_of_memory")[0] == "79%"


def test_memory_that_is_known_of_some_keys_is_at_least() -> None:
    root = EXACT.summary.root
    stats = replace(root.children[0].stats, memory_known_keys=5)
    tree = replace(root, children=(replace(root.children[0], stats=stats),))
    report = replace(EXACT, summary=replace(EXACT.summary, root=tree))
    assert texts(namespaces(report), "memory") == ["≥ 1.27 GiB"]
    assert texts(namespaces(report), "keys") == ["750,000"]


def test_slots_and_what_never_expires_are_at_least_where_some_are_not_known() -> None:
    report = MADE["exact"]
    stats = report.summary.root.stats
    children = tuple(
        replace(one, stats=replace(one.stats, memory_known_keys=0)) for one in report.summary.root.children
    )
    root = replace(report.summary.root, stats=replace(stats, memory_known_keys=stats.memory_known_keys - 1))
    some = replace(report, summary=replace(report.summary, root=replace(root, children=children)))
    assert all(text.startswith("≥ ") for text in texts(expiry(some), "no_ttl_memory"))
    found = report.summary.slots
    left_out = array("Q", bytes(8 * len(found.keys)))
    fullest, second = (slots(report).subject(row) for row in (0, 1))
    assert isinstance(fullest, int)
    assert isinstance(second, int)
    left_out[fullest], left_out[second] = 1, found.keys[second]
    some = replace(report, summary=replace(report.summary, slots=replace(found, unmeasured=left_out)))
    first, *others = texts(slots(some), "memory")
    assert first.startswith("≥ ")
    assert others[0] == "–"
    assert not others[1].startswith("≥")
    assert [text.startswith("≥ ") for text in texts(slot_tags(some), "memory")] == [True, True]
    assert any(text.startswith("≥ ") for text in texts(cluster_of(some, 3), "memory"))


def test_estimates_are_marked_and_the_largest_seen_is_no_maximum() -> None:
    table = types(MADE["estimate"])
    assert texts(table, "keys")[0] == "≈ 710k (674–746k)"
    assert texts(table, "memory_max")[0].startswith("≥ ")


def test_denied_facts_say_so_and_the_rest_is_there() -> None:
    table = namespaces(MADE["denied"])
    assert texts(table, "memory")[0] == "denied"
    assert texts(table, "share_of_keys")[0] == "75%"
    assert "NOPERM" in cell_reason(table.rows[0][table.column("memory")])


def test_the_outline_leaves_out_links_of_a_chain_and_what_is_small() -> None:
    names = texts(outline(EXACT), "namespace")
    assert "shop:session:<uuid>:data" in names
    assert "shop:session:" not in names
    assert not any("red" in name for name in names)


def test_big_keys_name_the_thresholds_in_use() -> None:
    table = big_keys(EXACT, "length", b"hash")
    assert texts(table, "length")[0] == "781,250"
    assert "thresholds of rtui: string 1,204, hash 12, list 1." in table.note
    assert table.subjects[0] == b"shop:hash:0000"


def test_saturated_counters_are_at_least() -> None:
    (table,) = hot_keys(EXACT)
    assert texts(table, "value")[:4] == ["≥ 2,501", "≥ 2,501", "≥ 2,501", "2,421"]
    assert "accesses/min" in [one.title for one in table.columns]


def test_cliffs_have_a_time_and_a_namespace() -> None:
    table = cliffs(EXACT)
    row = [texts(table, one.id)[0] for one in table.columns]
    assert row == ["shop:session", "2026-09-21 14:31:20", "2026-09-21 14:33:20", "114,000", "38%", "250 MiB", "950"]
    subject = table.subjects[0]
    assert isinstance(subject, tuple)
    assert [step.name for step in subject] == [b"shop", b"session"]


def test_keys_about_to_expire_come_soonest_first_and_once() -> None:
    table = about_to_expire(EXACT)
    assert texts(table, "expires_in")[:2] == ["55s", "3m 55s"]
    assert texts(table, "because")[0] == "big, hot"
    assert len(set(table.subjects)) == len(table.subjects)


def test_a_histogram_has_a_row_for_every_bin() -> None:
    assert spans((60, 600)) == ["under 1m", "1m – 10m", "10m and more"]
    table = ttl_histogram(EXACT)
    assert texts(table, "ttl")[-1] == "no TTL"
    assert len(table.rows) == 9


def test_slots_are_named_with_the_tags_that_load_them() -> None:
    table = slots(EXACT, 2)
    assert texts(table, "tags") == ["user:1", "eu"]
    assert "not explained by random spread" in table.note
    assert texts(slot_tags(EXACT), "keys") == ["9,000", "≥ 4,000"]


def test_a_cluster_holds_what_the_slots_hold() -> None:
    table = cluster_of(EXACT, 3)
    at = table.column("keys")
    assert sum(cell for row in table.rows if isinstance(cell := row[at], int)) == sum(EXACT.summary.slots.keys)
    with pytest.raises(ValueError, match="0 nodes"):
        cluster_of(EXACT, 0)


def test_rows_sort_by_any_column_with_the_unknown_last() -> None:
    columns = (column(Unit.NAME), Column("n", "n", Unit.KEYS))
    rows: tuple[tuple[Cell, ...], ...] = ((b"a", None), (b"b", 2), (b"c", Estimate(1.0, 3.0, 4.0)), (b"d", AtLeast(1)))
    table = Table("t", "t", columns, rows, (1, 2, 3, 4))
    assert finish(table.sorted_rows(range(4), 1, Slicer(), descending=True)) == [2, 1, 3, 0]
    up = table.picked(finish(table.sorted_rows(range(4), 1, Slicer(), descending=False)))
    assert [row[0] for row in up.rows] == [b"d", b"b", b"c", b"a"]
    assert up.subjects == (4, 2, 3, 1)


def test_the_share_of_a_histogram_of_estimates_has_an_interval() -> None:
    found = share_above((Estimate(5, 10, 15), Estimate(20, 30, 40)), 1)
    assert isinstance(found, Estimate)
    assert found.value == 0.75
    assert found.low == pytest.approx(20 / 35)
    assert found.high == pytest.approx(40 / 45)
    assert share_above((10, 30), 1) == 0.75
    assert share_above((0, 0), 1) is None
    assert share_above(None, 1) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("exact", "1.62 GiB in 1,000,000 keys · exact"),
        ("partial", "≥ 1.62 GiB in ≥ 1,000,000 keys · partial"),
        ("estimate", "≈ 1.62 GiB (1.54–1.70 GiB) in ≈ 1.00M (950k–1.05M) keys · estimate"),
        ("denied", "1,000,000 keys · exact"),
        ("empty", "0 keys · exact"),
    ],
)
def test_the_headline_says_how_much_and_how_sure(name: str, says: str) -> None:
    assert headline(MADE[name]) == says


def test_the_head_says_what_the_report_rests_on() -> None:
    said = {str(what): str(how) for what, how in about(MADE["denied"]).rows}
    assert said["memory"].startswith("denied: NOPERM")
    assert said["length"] == "not asked: asking would touch the keys"
    assert "4,100,000 commands" in said["cost"]
    partial = {str(what): how for what, how in about(MADE["partial"]).rows}
    assert partial["coverage"] == "partial, 500,000 keys, 50% of the keyspace: it was interrupted"


def test_one_key_is_one_and_bytes_without_those_of_all_keys_are_at_least() -> None:
    exact = MADE["exact"]
    root = exact.summary.root
    stats = replace(root.stats, keys=2, memory_bytes=100, memory_known_keys=1)
    coverage = replace(exact.head.coverage, vanished=1, unread=1)
    report = replace(exact, summary=replace(exact.summary, root=replace(root, stats=stats)))
    report = replace(report, head=replace(exact.head, coverage=coverage))
    assert headline(report) == "≥ 100 B in 2 keys · exact, but the memory of 1 key is not known"
    said = {str(what): str(said) for what, said in about(report).rows}
    assert said["left out"].startswith("1 key expired or deleted before inspection, 1 key could not be read")


def test_encodings_of_hardly_any_key_say_so() -> None:
    report = MADE["exact"]
    told = (EncodingReport(b"zset", b"listpack", Estimate(1, 5, 5), Estimate(0.2, 1, 1)),)
    assert "the sample is too small" in encodings(replace(report, summary=replace(report.summary, encodings=told))).note
    assert "the sample is too small" not in encodings(report).note


some_sizes = st.lists(st.integers(0, 10**9), min_size=1, max_size=80)


def sums(sizes: Sequence[float]) -> SizeSums:
    return SizeSums(float(sum(sizes)), float(sum(size * size for size in sizes)), tuple(nlargest(MOST_LARGE, sizes)))


def is_in_order(estimate: Estimate) -> bool:
    return 0 <= estimate.low <= estimate.value <= estimate.high


@given(some_sizes)
def test_the_cap_is_a_tenth_of_the_capped_sizes_and_few_are_above_it(sizes: list[int]) -> None:
    cap = cap_of(sums(sizes), len(sizes))
    assert sum(size > cap for size in sizes) < MOST_LARGE
    if cap < math.inf:
        part = max(0.1, 4 / len(sizes))
        assert cap == pytest.approx(part * sum(min(size, cap) for size in sizes), rel=1e-6, abs=1)


@given(some_sizes, st.integers(80, 10**8), st.none() | st.integers(0, 10**12), st.data())
def test_every_estimate_lies_within_its_bounds_and_those_of_the_server(
    sizes: list[int], population: int, bound: int | None, data: st.DataObject
) -> None:
    n = len(sizes)
    cut = data.draw(st.integers(0, n))
    bytes_of = SampleBytes(sums(sizes), n, population, bound)
    parts = [sizes[:cut], sizes[cut:]]
    whole = bytes_of.total(sums(sizes))
    assert is_in_order(whole)
    assert whole.low >= sum(sizes) * (1 - 1e-9)
    totals = [bytes_of.total(sums(part)) for part in parts]
    assert sum(total.value for total in totals) == pytest.approx(whole.value, rel=1e-6, abs=1)
    for part, total in zip(parts, totals, strict=True):
        share = bytes_of.share(sums(part))
        assert is_in_order(total)
        assert is_in_order(share)
        assert share.high <= 1
        assert total.low >= sum(part) * (1 - 1e-9)
        if bound is not None:
            assert total.high <= max(bound, sum(sizes)) * (1 + 1e-9)
        if part:
            mean = known(
                bytes_of.mean(sums(part), len(part), Estimate(len(part), population * len(part) / n, population))
            )
            assert is_in_order(mean)


def test_one_large_key_is_counted_as_itself() -> None:
    """One key of 2.9 MB among 2,000 of 20,000 is no reason to think that there are ten."""
    ordinary, large = [200] * 1_999, 2_900_000
    sizes = sums([*ordinary, large])
    bytes_of = SampleBytes(sizes, 2_000, 20_000, 12_000_000)
    of_it, of_all = bytes_of.total(sums([large])), bytes_of.total(sizes)
    assert of_it.low >= large
    assert of_it.value < 1.2 * large
    assert of_all.value < 1.1 * (20_000 * 200 + large)
    assert of_all.high == 12_000_000


@given(st.lists(st.integers(50, 1_000), min_size=200, max_size=400), st.integers(10**6, 10**9))
def test_a_large_key_leaves_the_spread_of_the_others_as_it_was(ordinary: list[int], large: int) -> None:
    """Sketches know sizes to one percent, and one percent of a large key is more than all others have."""
    sketch = sketch_of([*ordinary, large])
    whole = SampleBytes(sums_of(sketch), sketch.count, 100_000, 10**12).total(sums_of(sketch))
    assert whole.low < whole.value


def test_all_keys_are_no_sample() -> None:
    sizes = [100, 5_000_000, 300]
    bytes_of = SampleBytes(sums(sizes), 3, 3, 10**9)
    assert bytes_of.total(sums(sizes)) == Estimate(5_000_400, 5_000_400, 5_000_400)
    assert bytes_of.total(sums([100])) == Estimate(100, 100, 100)


def test_without_a_bound_nobody_knows_the_most() -> None:
    bytes_of = SampleBytes(sums([100] * 50), 50, 5_000, None)
    assert bytes_of.total(sums([100] * 50)).high == math.inf
    assert bytes_of.share(sums([100] * 10)).high == 1.0


def test_a_server_that_tells_less_than_was_extrapolated_bounds_the_value_too() -> None:
    bytes_of = SampleBytes(sums([1_000] * 100), 100, 1_000, 900_000)
    assert bytes_of.total(sums([1_000] * 100)).value == 900_000
    assert bytes_of.total(sums([1_000] * 50)).value == pytest.approx(450_000)


Law = Callable[[Random], float]


def lognormal(sigma: float) -> Law:
    return lambda rng: 50 + rng.lognormvariate(5, sigma)


def pareto(exponent: float) -> Law:
    return lambda rng: min(5e8, 60 * rng.paretovariate(exponent))


def spikes(part: float, size: float) -> Law:
    return lambda rng: size * rng.uniform(0.5, 1.5) if rng.random() < part else rng.uniform(60, 300)


EVEN: dict[str, Law] = {"one size": lambda _: 100, "even": lambda rng: rng.uniform(60, 300), "mild": lognormal(0.5)}
HEAVY: dict[str, Law] = {
    **{f"lognormal {sigma}": lognormal(sigma) for sigma in (1, 1.5, 2, 2.5, 3)},
    **{f"Pareto {exponent}": pareto(exponent) for exponent in (0.8, 1, 1.2, 1.5, 2)},
    **{f"{part:.2%} of {size:,.0f}": spikes(part, size) for part, size in ((0.01, 1e5), (0.001, 1e6), (0.0002, 3e6))},
    "one giant": lambda rng: rng.uniform(60, 300),
}
SLACK = 1.15
"""How much more memory the server uses than its keys have."""
KEYS, KEYSPACES, SAMPLES = 8_000, 12, 5
WEIGHTS = (50, 30, 15, 5)
"""Of the namespaces, by keys."""


def coverage(name: str, law: Law, n: int, rng: Random) -> tuple[Counter[str], float]:
    """How many of the intervals of 60 samples hold the truth, and how wide those of totals are, by the truth."""
    hits, width = Counter[str](), 0.0
    for _ in range(KEYSPACES):
        sizes = [law(rng) for _ in range(KEYS)]
        if name == "one giant":
            sizes[rng.randrange(KEYS)] = 3e6
        whose = rng.choices(range(len(WEIGHTS)), WEIGHTS, k=KEYS)
        whole = sum(sizes)
        parts = [sum(size for size, of in zip(sizes, whose, strict=True) if of == at) for at in range(len(WEIGHTS))]
        for _ in range(SAMPLES):
            drawn = rng.sample(range(KEYS), n)
            seen = sums([sizes[one] for one in drawn])
            bytes_of = SampleBytes(seen, n, KEYS, SLACK * whole)
            found = bytes_of.total(seen)
            hits["whole"] += whole in found
            width += (found.high - found.low) / whole
            for at, truth in enumerate(parts):
                part = sums([sizes[one] for one in drawn if whose[one] == at])
                hits[f"part {at}"] += truth in bytes_of.total(part)
                hits[f"share {at}"] += truth / whole in bytes_of.share(part)
    return hits, width / (KEYSPACES * SAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 3_000])
@pytest.mark.parametrize("name", [*EVEN, *HEAVY])
def test_intervals_hold_the_truth_of_keyspaces_never_seen_before(name: str, n: int) -> None:
    """Of 60 samples with a 95 % interval, fewer than 50 hold the truth once in 10,000 runs; there are 9 intervals."""
    seed = randbits(64)
    hits, width = coverage(name, {**EVEN, **HEAVY}[name], n, Random(seed))
    assert len(hits) == 1 + 2 * len(WEIGHTS)
    assert min(hits.values()) >= 48, f"{hits} by seed {seed}"
    assert sum(hits.values()) >= 0.93 * len(hits) * KEYSPACES * SAMPLES, f"{hits} by seed {seed}"
    if name in EVEN:
        assert width < SLACK - 1 + 0.15, "an interval of even sizes is hardly wider than what the server leaves open"


SIZES = st.integers(0, 300) | st.integers(0, 2**40) | st.integers(HIGHEST - 2, HIGHEST)
"""Small, middling and the largest sizes."""

MANY = st.lists(SIZES, max_size=200)


def sketch_of(sizes: list[int]) -> Sketch:
    buckets = Counter(size_buckets(np.array(sizes, np.int64)).tolist())
    return Sketch.of(buckets, sum(sizes), min(sizes, default=0), max(sizes, default=0))


@given(st.lists(SIZES, min_size=1, max_size=200), st.lists(st.floats(0, 1), max_size=5))
def test_quantiles_are_within_the_error(sizes: list[int], shares: list[float]) -> None:
    ordered = sorted(sizes)
    for share, found in zip(shares, sketch_of(sizes).quantiles(shares), strict=True):
        true = ordered[max(0, math.ceil(share * len(sizes)) - 1)]
        assert abs(found - true) <= ERROR * true


@given(st.lists(st.integers(0, 99), min_size=1), st.floats(0, 1))
def test_small_sizes_are_exact(sizes: list[int], share: float) -> None:
    assert sketch_of(sizes).quantiles([share]) == [sorted(sizes)[max(0, math.ceil(share * len(sizes)) - 1)]]


@given(MANY)
def test_counts_and_sums_are_exact(sizes: list[int]) -> None:
    sketch = sketch_of(sizes)
    assert (sketch.count, sketch.sum, sketch.max) == (len(sizes), sum(sizes), max(sizes, default=0))
    assert sketch.mean == (sum(sizes) / len(sizes) if sizes else 0)
    assert sketch.sum_of_squares() == pytest.approx(sum(size * size for size in sizes), rel=0.0202)


@given(MANY, MANY)
def test_two_sketches_add_up(some: list[int], others: list[int]) -> None:
    merged = sketch_of(some)
    merged.merge(sketch_of(others))
    together = sketch_of(some + others)
    shares = [rank / 20 for rank in range(21)]
    assert merged.quantiles(shares) == together.quantiles(shares)
    assert (merged.count, merged.sum, merged.max) == (together.count, together.sum, together.max)
    assert merged.sum_of_squares() == together.sum_of_squares()


def test_an_empty_sketch_says_nothing() -> None:
    assert Sketch().quantiles([0.5, 1.0]) == [0, 0]


def test_the_ends_are_exact_and_nothing_lies_beyond_them() -> None:
    sketch = sketch_of([3_000_048])
    assert sketch.quantiles((0.5, 0.9, 0.99)) == [3_000_048] * 3
    sketch.merge(sketch_of([2_999_000] * 9))
    assert (sketch.min, sketch.max) == (2_999_000, 3_000_048)
    assert sketch.quantiles((0.0, 0.5, 1.0)) == [2_999_000, 2_999_000, 3_000_048]
    sketch.merge(Sketch())
    assert (sketch.min, Sketch().min) == (2_999_000, 0)
