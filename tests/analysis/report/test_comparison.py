"""Two reports compared: what grew, shrank, came and went, and what can't be told apart."""

from __future__ import annotations

import math
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_EXPIRY
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
    Summary,
)
from rtui.analysis.report.readings import Direction, FigureChange, Reading, reading
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.made_report import (
    clustered_report,
    denied_report,
    empty_report,
    estimate_report,
    estimate_stats,
    made_report,
    node,
    partial_report,
    sampled_report,
)
from tests.table.drawn_rows import add_batch


def report(*children: Node, kind: CoverageKind = CoverageKind.EXACT, sampled: int = 0) -> Report:
    """A report of these namespaces."""
    keys = sum(child.stats.keys for child in children if isinstance(child.stats.keys, int))
    memory = sum(child.stats.memory_bytes for child in children if isinstance(child.stats.memory_bytes, int))
    root = node(b"", (keys, memory, 0), *children)
    made = made_report()
    coverage = Coverage(kind, sampled or keys, 1.0 if kind is CoverageKind.EXACT else 0.5, keys)
    return replace(made, head=replace(made.head, coverage=coverage), summary=Summary(root=root))


def fates(diff: Comparison) -> dict[str, Fate]:
    return {change.label.removesuffix(":"): change.fate for change in diff.root.walk()}


def found(diff: Comparison, name: str) -> NamespaceChange:
    change = diff.find(name)
    assert change is not None
    return change


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
    after = report(node(b"user", (1, 60, 1), last=True), node(b"user", (7, 700, 0)))
    diff = compare(before, after)
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
    slashed = replace(made, head=replace(made.head, scope=Scope(separators=(b"/",))))
    diff = compare(made, slashed)
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
    diff = compare(report(*first), report(*second))
    there = {change.raw: change for change in diff.root.walk()}
    for side, tops in (("before", first), ("after", second)):
        for top in tops:
            for path in top.walk():
                name = b"".join(one.name + one.separator for one in path)
                read = getattr(there[name].keys, side)
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
    grown = FigureChange(reading(0), reading(5)).growth()
    assert grown is not None
    assert grown.low == math.inf
    still = FigureChange(reading(0), reading(0)).growth()
    assert still is not None
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
    assert before.cluster is not None
    first, second, third = before.cluster.nodes
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
    alone = compare(made_report(), before).notes
    assert "Only the second report is of all nodes of a cluster." in alone


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
    """An exact report of these keys, seen in this order."""
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
