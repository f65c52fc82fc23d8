"""Two reports compared: what grew, shrank, came and went, and what can't be told apart."""

from __future__ import annotations

import math
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.formats import TABLE_FORMATS
from rtui.analysis.report.comparison import Comparison, Fate, NamespaceChange, compare
from rtui.analysis.report.document import (
    ClusterNode,
    ClusterReport,
    Coverage,
    CoverageKind,
    Node,
    NodeKind,
    Report,
    Scope,
    Step,
    Summary,
)
from rtui.analysis.report.readings import Direction, FigureChange, Reading, reading
from rtui.analysis.report.tables.changes import COMPARED, LISTED, ComparedReports, change_cell, differences, fate_of
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.table import UNCLEAR, AtLeast, Cell, Column, Paths, Table, Unit, cell_text
from rtui.analysis.report.tables.totals import namespaces
from rtui.keyspace.slices import finish
from rtui.keyspace.text.display import Display
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.conftest import known
from tests.made_report import (
    clustered_report,
    denied_report,
    earlier_report,
    empty_report,
    estimate_report,
    estimate_stats,
    made_report,
    node,
    partial_report,
    sampled_report,
    stats,
)
from tests.table.naive import add_batch


def report(*children: Node, kind: CoverageKind = CoverageKind.EXACT, sampled: int = 0) -> Report:
    keys = sum(child.stats.keys for child in children if isinstance(child.stats.keys, int))
    memory = sum(child.stats.memory_bytes for child in children if isinstance(child.stats.memory_bytes, int))
    root = node(b"", (keys, memory, 0), *children)
    made = made_report()
    coverage = Coverage(kind, sampled or keys, 1.0 if kind is CoverageKind.EXACT else 0.5, keys)
    return replace(made, head=replace(made.head, coverage=coverage), summary=Summary(root=root))


def fates(diff: Comparison) -> dict[str, Fate]:
    return {change.label.removesuffix(":"): change.fate for change in diff.root.walk()}


def found(diff: Comparison, name: str) -> NamespaceChange:
    return known(diff.find(name))


def test_a_report_and_itself_are_the_same() -> None:
    assert set(fates(compare(made_report(), made_report())).values()) == {Fate.SAME}


def test_what_was_asked_of_some_keys_changes_nothing_that_is_compared() -> None:
    assert set(fates(compare(made_report(), sampled_report())).values()) == {Fate.SAME}


def test_what_became_of_each_namespace() -> None:
    before = report(
        node(b"grew", (10, 1000, 0)),
        node(b"shrank", (10, 1000, 0)),
        node(b"fewer", (10, 1000, 0)),
        node(b"kept", (10, 1000, 5)),
        node(b"ttl", (10, 1000, 0)),
        node(b"went", (10, 1000, 0)),
    )
    after = report(
        node(b"grew", (11, 1200, 0)),
        node(b"shrank", (12, 900, 0)),
        node(b"fewer", (9, 1000, 0)),
        node(b"kept", (10, 1000, 5)),
        node(b"ttl", (10, 1000, 9)),
        node(b"came", (1, 90, 0)),
    )
    assert fates(compare(before, after)) == {
        "all keys": Fate.SHRANK,
        "grew": Fate.GREW,
        "shrank": Fate.SHRANK,
        "fewer": Fate.SHRANK,
        "kept": Fate.SAME,
        "ttl": Fate.SHIFTED,
        "went": Fate.WENT,
        "came": Fate.CAME,
    }


def test_what_came_is_told_once_and_with_all_of_it() -> None:
    inner = node(b"b", (5, 500, 0), node(b"c", (5, 500, 0), last=True))
    diff = compare(report(), report(node(b"a", (5, 500, 0), inner)))
    assert [change.label for change in diff.root.outlined()] == ["all keys", "a:"]
    assert [change.label for change in diff.root.walk()] == ["all keys", "a:", "a:b:", "a:b:c"]


def test_of_a_line_of_namespaces_with_the_same_keys_the_last_is_told() -> None:
    def line(keys: int) -> Node:
        return node(b"a", (keys, 500, 0), node(b"b", (keys, 500, 0), node(b"c", (keys, 500, 0), last=True)))

    diff = compare(report(line(5)), report(line(6)))
    assert [change.label for change in diff.root.outlined()] == ["all keys", "a:b:c"]
    assert [change.label for change in diff.root.outlined(2)] == ["all keys", "a:b:"]


def test_a_key_and_a_namespace_of_one_name_are_two() -> None:
    before = report(node(b"user", (1, 60, 1), last=True), node(b"user", (5, 500, 0)))
    diff = compare(before, report(node(b"user", (1, 60, 1), last=True), node(b"user", (7, 700, 0))))
    assert [change.fate for change in diff.root.children] == [Fate.SAME, Fate.GREW]
    assert found(diff, "user").fate is Fate.GREW
    assert found(diff, "user:").fate is Fate.GREW


def test_names_are_found_as_bytes_and_as_shown() -> None:
    diff = compare(made_report(), made_report())
    assert found(diff, "\x1b[31mred\udcff") is found(diff, "␛[31mred\\xff")
    assert len(found(diff, "shop:user:<id>").path) == 3
    assert diff.find("shop:nobody") is None


@pytest.mark.parametrize(("spread", "fate"), [(0.05, Fate.UNCLEAR), (0.01, Fate.GREW)])
def test_an_estimate_changed_only_where_intervals_do_not_overlap(spread: float, fate: Fate) -> None:
    def about(keys: int) -> Node:
        made = node(b"a", (keys, keys * 100, 0))
        figure = Estimate(keys * (1 - spread), float(keys), keys * (1 + spread))
        memory = figure.scaled(100)
        return replace(made, stats=replace(estimate_stats(made.stats), keys=figure, memory_bytes=memory))

    estimate = CoverageKind.ESTIMATE
    diff = compare(report(about(1000), kind=estimate, sampled=500), report(about(1080), kind=estimate, sampled=500))
    assert found(diff, "a").fate is fate


def test_the_same_keyspace_estimated_and_counted_is_not_distinguishable() -> None:
    diff = compare(estimate_report(), made_report())
    assert set(fates(diff).values()) == {Fate.UNCLEAR}
    assert any("estimate from 20,000 keys" in note for note in diff.notes)


def test_a_small_namespace_that_a_sample_lacks_may_have_been_missed() -> None:
    sampled = report(node(b"a", (100_000, 1, 0)), kind=CoverageKind.ESTIMATE, sampled=1000)
    after = report(node(b"a", (100_000, 1, 0)), node(b"rare", (10, 1, 0)), node(b"large", (20_000, 1, 0)))
    diff = compare(sampled, after)
    assert found(diff, "rare").fate is Fate.UNCLEAR
    assert found(diff, "rare").is_new is None
    assert found(diff, "large").keys.direction is Direction.GREW


def test_a_partial_report_says_at_least() -> None:
    full, half = made_report(), partial_report()
    assert set(fates(compare(full, half)).values()) == {Fate.UNCLEAR}
    grown = report(node(b"a", (20, 900, 0)), kind=CoverageKind.PARTIAL)
    diff = compare(report(node(b"a", (10, 400, 0)), node(b"b", (1, 1, 0))), grown)
    assert found(diff, "a").fate is Fate.GREW
    assert found(diff, "b").fate is Fate.UNCLEAR
    assert found(diff, "b").is_gone is None
    assert found(diff, "a").no_ttl.direction is Direction.UNCLEAR
    assert any("partial" in note for note in diff.notes)


def test_what_was_denied_is_unknown_and_the_rest_compares() -> None:
    diff = compare(made_report(), denied_report())
    assert diff.root.memory.direction is Direction.UNKNOWN
    assert diff.root.keys.direction is Direction.SAME
    assert any("memory is denied, NOPERM" in note for note in diff.notes)


def test_memory_that_leaves_out_keys_is_at_least_so_much() -> None:
    def gappy(memory: int) -> Node:
        made = node(b"a", (10, memory, 0))
        return replace(made, stats=replace(made.stats, memory_known_keys=9))

    diff = compare(report(gappy(100)), report(gappy(90)))
    assert found(diff, "a").memory.direction is Direction.UNCLEAR


def test_names_beyond_the_budget_may_be_among_the_others() -> None:
    other = Node(b"", b"", NodeKind.OTHER, node(b"x", (50, 500, 0)).stats)
    many = node(b"<*>", (50, 500, 0), kind="PATTERN")
    for folded in (other, many):
        diff = compare(report(node(b"a", (30, 300, 0)), node(b"big", (60, 900, 0))), report(folded))
        assert found(diff, "a").fate is Fate.UNCLEAR
        assert found(diff, "big").fate is Fate.SHRANK
        assert found(diff, "big").is_gone is None
        assert diff.root.children[-1].is_new is None


def test_what_stands_for_many_names_did_not_grow_by_a_name_that_one_report_tells_apart() -> None:
    def many(keys: int) -> Node:
        return node(b"<*>", (keys, keys * 10, 0), kind="PATTERN")

    diff = compare(report(many(100), node(b"a", (20, 200, 0))), report(many(121)))
    assert found(diff, "a").fate is Fate.UNCLEAR
    assert found(diff, "<*>").keys.direction is Direction.GREW
    diff = compare(report(many(100), node(b"a", (20, 200, 0))), report(many(120)))
    assert found(diff, "<*>").fate is Fate.UNCLEAR
    diff = compare(report(many(100), node(b"a", (20, 200, 0))), report(many(120), node(b"a", (20, 200, 0))))
    assert found(diff, "<*>").fate is Fate.GREW


def test_other_separators_leave_only_the_totals() -> None:
    made = made_report()
    diff = compare(made, replace(made, head=replace(made.head, scope=Scope(separators=(b"/",)))))
    assert diff.root.children == ()
    assert any("separators differ" in note for note in diff.notes)


def test_namespaces_are_compared_as_far_down_as_both_reports_go() -> None:
    made = made_report()
    diff = compare(made, replace(made, head=replace(made.head, scope=Scope(depth=1))))
    assert max(len(change.path) for change in diff.root.walk()) == 1


def test_notes_say_what_differs_beside_the_keys() -> None:
    made = made_report()
    other = replace(
        made,
        head=replace(
            made.head,
            made_at_s=made.head.made_at_s - 60,
            server=replace(made.head.server, label="evil\x1b[31m", version="8.0", db=3, role="replica"),
            scope=Scope(match=b"user:\x07*", key_type=b"hash", depth=3),
        ),
    )
    said = "\n".join(compare(made, other).notes)
    for word in ("later one", "servers differ", "databases", "roles", "versions", "patterns", "types", "depths"):
        assert word in said
    assert "\x1b" not in said
    assert "\x07" not in said


def test_nothing_at_all_compares() -> None:
    diff = compare(empty_report(), made_report())
    assert diff.root.fate is Fate.GREW
    assert {change.fate for change in diff.root.children} == {Fate.CAME}
    assert set(fates(compare(empty_report(), empty_report())).values()) == {Fate.SAME}


counts = st.integers(0, 1000)
names = st.sampled_from([b"a", b"b", b"c"])
leaves = st.builds(lambda name, keys: node(name, (keys, keys * 7, keys // 2), last=True), names, counts)


def unique(nodes: list[Node]) -> list[Node]:
    return list({one.name: one for one in nodes}.values())


def grouped(name: bytes, below: list[Node]) -> Node:
    keys = sum(one.stats.keys for one in unique(below) if isinstance(one.stats.keys, int))
    return node(name, (keys, keys * 7, 0), *unique(below))


trees = st.lists(st.builds(grouped, names, st.lists(leaves, min_size=1, max_size=3)), max_size=3).map(unique)


@given(trees, trees)
def test_a_comparison_the_other_way_round_says_the_opposite(first: list[Node], second: list[Node]) -> None:
    ahead, back = fates(compare(report(*first), report(*second))), fates(compare(report(*second), report(*first)))
    opposite = {Fate.GREW: Fate.SHRANK, Fate.SHRANK: Fate.GREW, Fate.CAME: Fate.WENT, Fate.WENT: Fate.CAME}
    assert ahead.keys() == back.keys()
    for label, fate in ahead.items():
        assert back[label] is opposite.get(fate, fate)


@settings(deadline=None)
@given(trees, trees)
def test_every_namespace_of_both_is_there_with_its_figures(first: list[Node], second: list[Node]) -> None:
    there = {change.raw: change for change in compare(report(*first), report(*second)).root.walk()}
    for side, tops in (("before", first), ("after", second)):
        for top in tops:
            for path in top.walk():
                read = getattr(there[b"".join(one.name + one.separator for one in path)].keys, side)
                assert read == reading(path[-1].stats.keys)


bounds = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)).map(sorted)


@given(bounds, bounds)
def test_whatever_the_truth_is_the_intervals_hold_it(first: list[int], second: list[int]) -> None:
    before, after = (Reading(low, float(low), float(high)) for low, high in (first, second))
    change = FigureChange(before, after)
    for truth_before in (*first, sum(first) // 2):
        for truth_after in (*second, sum(second) // 2):
            more = change.difference()
            growth = change.growth()
            assert more is not None
            assert growth is not None
            assert more.low <= truth_after - truth_before <= more.high
            if truth_before:
                assert growth.low <= truth_after / truth_before - 1 + 1e-9
                assert truth_after / truth_before - 1 - 1e-9 <= growth.high
            if change.direction is Direction.GREW:
                assert truth_after > truth_before
            if change.direction is Direction.SHRANK:
                assert truth_after < truth_before


def test_growth_from_nothing_is_infinite_and_of_nothing_none() -> None:
    assert known(FigureChange(reading(0), reading(5)).growth()).low == math.inf
    still = known(FigureChange(reading(0), reading(0)).growth())
    assert (still.low, still.high) == (0, 0)


@pytest.mark.parametrize(
    ("keys", "fate"),
    [(10_000, Fate.SAME), (9_990, Fate.LITTLE), (10_010, Fate.LITTLE), (9_900, Fate.SHRANK), (10_102, Fate.GREW)],
)
def test_a_change_of_less_than_a_hundredth_is_counted_but_not_listed(keys: int, fate: Fate) -> None:
    diff = compare(report(node(b"a", (10_000, 10_000, 0))), report(node(b"a", (keys, keys, 0))))
    assert found(diff, "a").fate is fate
    assert found(diff, "a").memory.direction is not Direction.UNCLEAR


def test_nodes_that_came_and_went_and_slots_that_moved() -> None:
    before = clustered_report()
    first, second, third = known(before.cluster).nodes
    took_over = replace(first, slots=((0, 5_461),)), replace(second, slots=((5_462, 10_922),))
    replacing = replace(third, id="f" * 40, label="10.0.0.9:6379")

    def said(*nodes: ClusterNode) -> list[str]:
        return [*compare(before, replace(before, cluster=ClusterReport(nodes))).notes][:-2]

    assert said(first, second, third) == []
    assert said(*took_over, third) == ["1 slot is served by another node."]
    assert said(first, second, replacing) == [
        "Node 10.0.0.9:6379 is new.",
        "Node 10.0.0.3:6379 is gone.",
        "5,461 slots are served by another node.",
    ]
    assert said(first)[0] == "2 nodes are gone: 10.0.0.2:6379, 10.0.0.3:6379."
    assert "Only the second report is of all nodes of a cluster." in compare(made_report(), before).notes


BATCH = 500


def word(chance: Random) -> bytes:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randrange(2, 6))).encode()


def keyspace(seed: int) -> list[bytes]:
    """Some thousand keys with more names on each level than a report tells apart."""
    chance = Random(seed)
    firsts = [word(chance) for _ in range(chance.choice([3, 100, 400]))]
    seconds = [word(chance) for _ in range(chance.choice([3, 150, 500]))]
    weights = [1 / (rank + 1) for rank in range(len(firsts))]
    found = set()
    for _ in range(4000):
        parts = [chance.choices(firsts, weights)[0], chance.choice(seconds), b"%d" % chance.randrange(10**5)]
        found.add(b":".join([*parts, word(chance)] if chance.random() < 0.5 else parts))
    return sorted(found)


def inspected(keys: list[bytes], budget: int) -> Report:
    found = Aggregates(Separators((b":",)), scope=Scope(), started_at_s=0.0, node_budget=budget)
    for first in range(0, len(keys), BATCH):
        some = keys[first : first + BATCH]
        ttl_ms = [NO_EXPIRY if len(key) % 2 else 5000 for key in some]
        add_batch(found, InspectedBatch(b"string", some, ttl_ms, [len(key) * 10 for key in some]), 1.0)
    summary = finish(found.summary())
    made = made_report()
    coverage = Coverage(CoverageKind.EXACT, len(keys), 1.0, len(keys))
    return replace(made, head=replace(made.head, coverage=coverage), summary=summary)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "budget"), [(1, 4096), (2, 4096), (2, 600), (3, 600), (3, 60)])
def test_the_order_of_keys_is_no_change(seed: int, budget: int) -> None:
    keys = keyspace(seed)
    another = keys.copy()
    Random(seed).shuffle(another)
    diff = compare(inspected(keys, budget), inspected(another, budget))
    assert diff.root.fate is Fate.SAME
    wrong = [change.label for change in diff.root.walk() if change.fate not in {Fate.SAME, Fate.UNCLEAR}]
    assert wrong == []


@pytest.mark.slow
def test_thousands_of_namespaces_side_by_side_compare_in_no_time() -> None:
    before = report(*(node(b"n%d" % number, (2, 200, 0)) for number in range(5000)))
    after = report(*(node(b"n%d" % number, (3, 200, 0)) for number in range(100, 5100)))
    began = time.process_time()
    diff = compare(before, after)
    assert time.process_time() - began < 2
    assert len(diff.root.children) == 5100


def report_of(*children: Node, kind: CoverageKind = CoverageKind.EXACT) -> Report:
    report = made_report()
    keys, memory = (sum(getattr(one.stats, name) or 0 for one in children) for name in ("keys", "memory_bytes"))
    top = Node(b"", b"", NodeKind.LITERAL, stats(keys, memory, 0, (b"string", keys)), children)
    coverage = replace(report.head.coverage, kind=kind, keys=keys)
    return replace(report, head=replace(report.head, coverage=coverage), summary=replace(report.summary, root=top))


def leaf(name: bytes, keys: int, kind: NodeKind = NodeKind.LITERAL) -> Node:
    return Node(name, b":", kind, stats(keys, keys * 100, keys // 2, (b"string", keys)))


def changes_of(before: Report, after: Report, column: str = "keys") -> dict[Cell, Cell]:
    """The changes of a column by the first cell of the row."""
    made = ComparedReports(before, after).table(namespaces(after), namespaces(before))
    at = made.column(f"{column}_change")
    return {row[0]: row[at] for row in made.rows}


def test_namespaces_grow_shrink_and_come() -> None:
    before = report_of(leaf(b"a", 10), leaf(b"b", 10), leaf(b"c", 10))
    after = report_of(leaf(b"a", 15), leaf(b"b", 7), leaf(b"c", 10), leaf(b"d", 4))
    assert changes_of(before, after) == {b"a:": 5, b"b:": -3, b"c:": 0, b"d:": 4}
    assert changes_of(before, after, "memory") == {b"a:": 500, b"b:": -300, b"c:": 0, b"d:": 400}


def test_what_may_have_been_counted_elsewhere_is_not_new() -> None:
    many = leaf(b"<*>", 100, NodeKind.PATTERN)
    assert changes_of(report_of(many), report_of(leaf(b"a", 15), many))[b"a:"] == UNCLEAR


def test_a_partial_report_has_at_least_so_much() -> None:
    before, after = report_of(leaf(b"a", 10)), report_of(leaf(b"a", 30), kind=CoverageKind.PARTIAL)
    assert changes_of(before, after) == {b"a:": AtLeast(20)}
    assert changes_of(before, after, "share_of_memory") == {b"a:": UNCLEAR}
    assert changes_of(after, before) == {b"a:": AtLeast(-20)}


def test_what_was_denied_is_unknown() -> None:
    without = leaf(b"a", 10)
    without = replace(without, stats=replace(without.stats, memory_bytes=None, share_memory=None))
    assert changes_of(report_of(without), report_of(leaf(b"a", 12)), "memory") == {b"a:": None}


@given(*[st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000)) for _ in range(2)])
def test_a_change_is_one_only_where_intervals_do_not_overlap(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    before, after = (Estimate(*map(float, sorted(bounds))) for bounds in (one, other))
    cell = change_cell(FigureChange(reading(before), reading(after)))
    if before.low == before.high == after.low == after.high:
        assert cell == 0
    elif before.high < after.low or after.high < before.low:
        sign = 1 if before.high < after.low else -1
        value = cell.value if isinstance(cell, Estimate) else cell
        assert isinstance(value, int | float)
        assert value * sign > 0
        assert not isinstance(cell, Estimate) or cell.low <= cell.value <= cell.high
    else:
        assert cell == UNCLEAR


@pytest.mark.parametrize(
    ("cell", "unit", "expected"),
    [
        (1204, Unit.KEYS, "▲ 1,204"),
        (-3 << 20, Unit.BYTES, "▼ 3.00 MiB"),
        (0, Unit.KEYS, "="),
        (0.025, Unit.SHARE, "▲ 2.5 pt"),
        (-0.25, Unit.SHARE, "▼ 25 pt"),
        (0.0001, Unit.SHARE, "▲ <0.1 pt"),
        (AtLeast(20), Unit.KEYS, "▲ ≥ 20"),
        (AtLeast(-20), Unit.KEYS, "▼ ≥ 20"),
        (Estimate(-30.0, -20.0, -10.0), Unit.KEYS, "▼ ≈ 20"),
        (UNCLEAR, Unit.KEYS, "≈"),
        (None, Unit.KEYS, "–"),
    ],
)
def test_the_text_of_a_change(cell: Cell, unit: Unit, expected: str) -> None:
    column = Column("keys_change", "▲▼", unit, is_change=True)
    assert cell_text(cell, column) == expected
    assert cell_text(cell, column, Display(ascii_only=True)).isascii()


def test_changes_stand_beside_every_figure_that_can_be_compared() -> None:
    report = made_report()
    changes = ComparedReports(report, report)
    compared = 0
    for now, before in zip(tables(report), tables(report), strict=True):
        made = changes.table(now, before)
        names = [column.id for column in made.columns]
        if now.id == "cliffs":
            assert made is now
        for column in () if made is now else now.columns:
            assert (f"{column.id}_change" in names) is (column.id in COMPARED)
        is_change = [column.is_change for column in made.columns]
        found = [cell for row in made.rows for cell, is_one in zip(row, is_change, strict=True) if is_one]
        assert set(found) <= {0, None, UNCLEAR}
        compared += found.count(0)
        for ending, write in TABLE_FORMATS.items():
            assert bool(write(made)) is (bool(made.rows) or ending != ".jsonl")  # else a line for each row, so none
    assert compared > 50


@pytest.mark.parametrize("other", [estimate_report(), partial_report()], ids=["estimate", "partial"])
def test_the_same_keyspace_seen_less_well_has_no_changes(other: Report) -> None:
    for before, after in ((made_report(), other), (other, made_report())):
        found = changes_of(before, after) | changes_of(before, after, "memory")
        assert set(found.values()) == {UNCLEAR}


def test_other_separators_and_depths_compare_as_far_as_both_go() -> None:
    before, after = report_of(leaf(b"a", 10)), report_of(leaf(b"a", 15))
    for scope in ({"separators": (b"/",)}, {"depth": 0}):
        other = replace(before, head=replace(before.head, scope=replace(before.head.scope, **scope)))
        found = ComparedReports(other, after)
        assert found.namespace((Step(b"a", b":", NodeKind.LITERAL),)) is None
        assert found.namespace(()) is not None
        assert isinstance(found.table(namespaces(after), namespaces(other)), Table)


@given(st.permutations([b"a", b"b", b"c", b"d", b"e"]), st.integers(0, 5))
def test_rows_of_namespaces_are_found_by_their_paths(names: list[bytes], count: int) -> None:
    now = namespaces(report_of(*(leaf(name, at + 1) for at, name in enumerate(names))))
    before = namespaces(report_of(*(leaf(name, 9) for name in names[:count])))
    assert isinstance(before.subjects, Paths)
    for at in range(len(now.rows)):
        subject = now.subject(at)
        assert isinstance(subject, tuple)
        line = before.subjects.line(subject)
        expected = [row for row in range(len(before.rows)) if before.subject(row) == subject]
        assert line == (expected[0] if expected else None)
        assert before.subjects.line((*subject, *subject)) is None


def test_only_the_rows_that_are_shown_are_made_of_an_earlier_report(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(*(leaf(b"%d" % at, 10) for at in range(1000)))
    now, before = namespaces(report), namespaces(report)
    asked: list[int] = []
    path_at = Paths.__getitem__

    def noting(self: Paths, index: int) -> object:
        asked.append(index)
        return path_at(self, index)

    monkeypatch.setattr(Paths, "__getitem__", noting)
    made = ComparedReports(report, report).table(now, before)
    assert not asked
    assert made.rows[700][made.column("keys_change")] == 0
    assert set(asked) == {700}


def test_it_lists_what_the_comparison_has_the_largest_first() -> None:
    before, after = earlier_report(), made_report()
    table = differences(before, after)
    wanted = {one.raw: one.fate for one in compare(before, after).root.outlined() if one.path and one.fate in LISTED}
    assert {row[0]: fate_of(row) for row in table.rows} == wanted
    assert {Fate.CAME, Fate.WENT, Fate.GREW} <= set(wanted.values())
    changes = [row[table.column("memory_change")] for row in table.rows]
    sizes = [abs(change) for change in changes if isinstance(change, int | float)]
    assert sizes == sorted(sizes, reverse=True)


def test_what_went_is_gone_and_what_came_was_not_there() -> None:
    table = differences(earlier_report(), made_report())
    rows = {fate_of(row): dict(zip([column.id for column in table.columns], row, strict=True)) for row in table.rows}
    assert rows[Fate.WENT]["keys"] == 0
    assert rows[Fate.WENT]["keys_change"] == -675_000
    assert rows[Fate.CAME]["keys"] == rows[Fate.CAME]["keys_change"] == 750_000


def test_nothing_differs_from_itself() -> None:
    table = differences(made_report(), made_report())
    assert len(table.rows) == 0
    assert "same" in table.note


def test_what_a_partial_report_has_is_at_least_so_much() -> None:
    table = differences(earlier_report(), partial_report())
    keys = [row[table.column("keys")] for row in table.rows]
    assert all(isinstance(cell, AtLeast) or cell is None for cell in keys)
    assert "partial" in table.note
    for row in table.rows:
        assert all(cell_text(cell, column) for cell, column in zip(row, table.columns, strict=True))


def test_an_empty_report_has_lost_everything() -> None:
    report = made_report()
    root = structs.replace(report.summary.root, children=())
    empty = structs.replace(report, summary=structs.replace(report.summary, root=root))
    assert {fate_of(row) for row in differences(report, empty).rows} == {Fate.WENT}
