"""Nodes, slots, hash tags and namespaces in a report, against what the keys themselves add up to."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import NOTHING_KNOWN, Known, Mark, NamespaceFigures
from rtui.analysis.report.document import (
    ClusterNode,
    ClusterReport,
    Coverage,
    CoverageKind,
    Head,
    Report,
    Scope,
    ServerReport,
)
from rtui.analysis.report.namespaces import Fit, ReportedNamespaces
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.keys import big_keys, hot_keys
from rtui.analysis.report.tables.slots import (
    FEW,
    MANY,
    Balance,
    SlotRangeLoad,
    common_tag,
    is_outlier,
    node_loads,
    nodes,
    skew,
    slot_tags,
    slots,
)
from rtui.analysis.report.tables.table import AtLeast
from rtui.keyspace.slices import finish
from rtui.keyspace.slots import SLOTS, find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.conftest import known
from tests.made_report import clustered_report, made_report, unsettled_report
from tests.table.naive import add_batch


def cluster(*keys: int) -> ClusterReport:
    """Nodes with even parts of the slots."""
    bounds = [SLOTS * at // len(keys) for at in range(len(keys) + 1)]
    return ClusterReport(
        tuple(
            ClusterNode(str(at), f"10.0.0.{at}:6379", slots=((bounds[at], bounds[at + 1] - 1),), keys=held)
            for at, held in enumerate(keys)
        )
    )


def test_a_node_that_was_lost_has_at_least_what_was_seen_of_it() -> None:
    table = nodes(clustered_report())
    names = [column.id for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    assert [row["node"] for row in rows] == ["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"]
    assert [row["keys"] for row in rows] == [180_000, AtLeast(620_000), 200_000]
    assert [row["share_of_keys"] for row in rows] == [0.18, 0.62, 0.2]
    assert rows[1]["times_even_keys"] == pytest.approx(0.62 * 3, rel=1e-3)
    assert [row["standing"] for row in rows] == ["", "many keys", ""]
    assert table.note == "Not covered: slots 5461–10922 of 10.0.0.2:6379, the connection was lost."


@pytest.mark.parametrize("held", [1e-101, 0.2, 5e-324])
def test_nodes_with_less_than_a_key_or_with_reversed_slots_do_not_stand_out(held: float) -> None:
    found = cluster(1, 1, 1)
    first, second, third = found.nodes
    found = replace(
        found, nodes=(replace(first, keys=held), replace(second, keys=held), replace(third, keys=held, slots=((9, 3),)))
    )
    assert [Balance(found).standing(node) for node in found.nodes] == ["", "", ""]
    assert Balance(found).times_even(found.nodes[2], lambda one: one.keys) is None


def test_slots_that_move_and_that_nobody_serves_are_named() -> None:
    table = nodes(unsettled_report())
    assert table.note.endswith(
        "Not covered: slots 16201–16383, no node serves them. Being moved: slots 100–101, 4000 to 10.0.0.3:6379."
    )
    assert [is_outlier(table, row) for row in range(3)] == [False, True, False]


def test_load_is_that_of_the_slots_that_a_node_told() -> None:
    table = nodes(unsettled_report())
    at = [column.id for column in table.columns].index("cpu")
    assert [row[at] for row in table.rows] == [AtLeast(95.0), 4.2, None]
    assert "cpu" not in {column.id for column in nodes(clustered_report()).columns}


def test_slots_tags_and_keys_have_their_nodes_in_a_cluster_only() -> None:
    report, alone = unsettled_report(), made_report()
    for make in (slots, slot_tags, big_keys, lambda one: hot_keys(one)[0]):
        table = make(report)
        at = [column.id for column in table.columns].index("node")
        assert "node" not in {column.id for column in make(alone).columns}
        for row, subject in zip(table.rows, table.subjects, strict=True):
            slot = subject if isinstance(subject, int) else key_slot(subject)  # type: ignore[arg-type]
            owner = known(report.cluster).owner_of(slot)
            assert row[at] == (None if owner is None else owner.label)


def test_there_is_none_of_a_server_alone() -> None:
    assert "nodes" in {table.id for table in tables(clustered_report())}
    assert "nodes" not in {table.id for table in tables(made_report())}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((100_000, 100_000, 100_000), ("", "", "")),
        ((200_000, 100_000, 100_000), ("many keys", "", "")),
        ((10_000, 100_000, 100_000), ("few keys", "many keys", "many keys")),
        ((3, 0, 0), ("", "", "")),
        ((0, 0, 0), ("", "", "")),
        ((5_000,), ("",)),
    ],
    ids=["even", "many", "few", "chance", "empty", "one node"],
)
def test_nodes_that_stand_out(keys: tuple[int, ...], expected: tuple[str, ...]) -> None:
    found = cluster(*keys)
    assert tuple(map(Balance(found).standing, found.nodes)) == expected


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_shares_add_up_and_only_what_is_uneven_stands_out(keys: list[int]) -> None:
    found = cluster(*keys)
    table = nodes(replace(made_report(), cluster=found))
    at = [column.id for column in table.columns].index("times_even_keys")
    times = [row[at] for row in table.rows]
    if not any(keys):
        assert times == [None] * len(keys)
        return
    shares = [
        one * node.slot_count / SLOTS for one, node in zip(times, found.nodes, strict=True) if isinstance(one, float)
    ]
    assert sum(shares) == pytest.approx(1.0)
    for node, one in zip(found.nodes, times, strict=True):
        if isinstance(one, float) and FEW < one < MANY:
            assert not Balance(found).standing(node)


FAR: Final = st.sampled_from(["unread", "unread, pending", "half", "whole"])


def read_as(node: ClusterNode, how: str) -> ClusterNode:
    """A node of which so much was read, as reports have it; those of earlier versions have 0 keys of unread ones."""
    if how == "unread":
        return replace(node, keys=0, memory_bytes=0, failure="the connection was lost", fraction=0.0)
    if how == "unread, pending":
        return replace(node, keys=None, memory_bytes=None, fraction=0.0)
    if how == "half":
        return replace(node, failure="it was interrupted", fraction=0.5)
    return replace(node, fraction=1.0)


@given(st.lists(st.tuples(st.integers(0, 10**6), FAR), min_size=2, max_size=12))
def test_nodes_that_were_not_read_are_not_judged_and_change_nothing_for_others(drawn: list[tuple[int, str]]) -> None:
    even = cluster(*(keys for keys, _ in drawn))
    full = tuple(replace(one, memory_bytes=1_000 * plain(one.keys or 0)) for one in even.nodes)
    found = tuple(read_as(one, how) for one, (_, how) in zip(full, drawn, strict=True))
    table = nodes(replace(made_report(), cluster=ClusterReport(found)))
    rows = [dict(zip([column.id for column in table.columns], row, strict=True)) for row in table.rows]
    doubled = (
        one if how == "whole" else replace(one, keys=2 * keys, failure="", fraction=1.0)
        for one, (keys, how) in zip(found, drawn, strict=True)
        if not how.startswith("unread")
    )
    alone = ClusterReport(tuple(doubled))
    by_itself = dict(
        zip([one.label for one in alone.nodes], nodes(replace(made_report(), cluster=alone)).rows, strict=True)
    )
    by_label = {one.label: one for one in alone.nodes}
    at_even = [column.id for column in table.columns].index("times_even_keys")
    for at, (row, (keys, how)) in enumerate(zip(rows, drawn, strict=True)):
        figures = [row[one] for one in ("keys", "share_of_keys", "times_even_keys", "memory", "times_even_memory")]
        if how.startswith("unread"):
            assert figures == [None] * 5
            assert not row.get("standing")
            assert is_outlier(table, at)
        elif how == "half":
            assert row["keys"] == AtLeast(keys)
            assert row.get("standing", "") != "few keys"
        elif len([one for _, one in drawn if not one.startswith("unread")]) > 1:
            assert row["times_even_keys"] == by_itself[str(row["node"])][at_even]
            if "half" in [each for _, each in drawn] and row.get("standing", "") == "":
                continue  # what is left of those may make it one of few keys
            assert row.get("standing", "") == Balance(alone).standing(by_label[str(row["node"])])
        if any(each.startswith("unread") for _, each in drawn):
            assert row["share_of_keys"] is None


def test_three_nodes_are_cut_as_redis_cli_cuts_them() -> None:
    """The borders that every tutorial on `redis-cli --cluster create` shows."""
    assert [(node.first, node.last) for node in node_loads([0] * SLOTS, 3)] == [
        (0, 5460),
        (5461, 10922),
        (10923, 16383),
    ]
    assert [(node.first, node.last) for node in node_loads([0] * SLOTS, 6)] == [
        (0, 2730),
        (2731, 5460),
        (5461, 8191),
        (8192, 10922),
        (10923, 13652),
        (13653, 16383),
    ]


@given(st.integers(1, 1000))
def test_nodes_share_all_slots(nodes: int) -> None:
    cut = node_loads(range(SLOTS), nodes)
    assert [slot for node in cut for slot in range(node.first, node.last + 1)] == list(range(SLOTS))
    assert sum(node.load for node in cut) == sum(range(SLOTS))
    widths = {node.last - node.first for node in cut}
    assert max(widths) - min(widths) <= 1


def test_one_node_has_everything_and_none_is_refused() -> None:
    assert node_loads([1] * SLOTS, 1) == (SlotRangeLoad(0, SLOTS - 1, SLOTS),)
    with pytest.raises(ValueError, match="0 nodes"):
        node_loads([1] * SLOTS, 0)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [300, 20_000, 500_000])
def test_an_even_spread_is_chance(keys: int) -> None:
    rng = random.Random(keys)
    alarms = 0
    for _ in range(60 if keys < 100_000 else 5):
        slots = [0] * SLOTS
        for slot, count in Counter(rng.choices(range(SLOTS), k=keys)).items():
            slots[slot] = count
        alarms += not skew(slots).is_chance
    assert alarms <= 2


def test_a_loaded_slot_is_not_chance() -> None:
    slots = [61] * SLOTS
    slots[7] += 60
    found = skew(slots)
    assert (found.slot, found.keys, found.is_chance) == (7, 121, False)
    assert found.ratio == pytest.approx(121 / 61, rel=1e-3)


def test_only_owned_slots_are_compared() -> None:
    slots = [0] * SLOTS
    for slot in range(100):
        slots[slot] = 10
    assert not skew(slots).is_chance
    assert skew(slots, [(0, 99)]).is_chance
    assert skew(slots, [(200, 300)]).ratio == 0
    assert skew(slots, []).is_chance
    assert skew([5, *slots[1:]], [(0, 0)]).is_chance


SPLIT = Separators()
SEGMENT = st.sampled_from([b"user", b"cart", b"42", b"7", b"", b"{42}", b"{", b"}", b"{}", b"deadbeef1", b"\xff9"])
NAME = st.lists(SEGMENT, min_size=1, max_size=4).map(b":".join) | st.binary(max_size=8)


def test_the_longest_identifier_in_all_names_is_the_tag() -> None:
    found = known(common_tag([b"user:42:profile", b"cart:42"], SPLIT))
    assert (found.tag, found.names) == (b"42", (b"user:{42}:profile", b"cart:{42}"))
    longest = known(common_tag([b"7:shop:1234:a", b"1234:7:b"], SPLIT))
    assert longest.names == (b"7:shop:{1234}:a", b"{1234}:7:b")


def test_a_name_that_has_the_tag_already_stays() -> None:
    found = known(common_tag([b"user:{42}:profile", b"cart:42", b"42"], SPLIT))
    assert found.names == (b"user:{42}:profile", b"cart:{42}", b"42")
    assert known(common_tag([b"{shop}:a", b"shop:b"], SPLIT)).tag == b"shop"


@pytest.mark.parametrize(
    "names",
    [
        [b"user:42", b"cart:43"],
        [b"shop:user", b"shop:cart"],
        [b"{a}:42", b"cart:42"],  # braces before it decide
        [],
    ],
)
def test_without_a_common_identifier_there_is_no_tag(names: list[bytes]) -> None:
    assert common_tag(names, SPLIT) is None


def test_segments_are_those_of_the_separators() -> None:
    names = [b"user/42/profile", b"cart/42"]
    assert common_tag(names, SPLIT) is None
    assert known(common_tag(names, Separators((b"/",)))).names == (b"user/{42}/profile", b"cart/{42}")


@given(st.lists(NAME, min_size=1, max_size=4))
def test_a_tag_puts_all_names_into_one_slot_and_adds_nothing_but_its_braces(names: list[bytes]) -> None:
    found = common_tag(names, SPLIT)
    if found is None:
        return
    assert {key_slot(name) for name in found.names} == {found.slot}
    for name, tagged in zip(names, found.names, strict=True):
        assert hashed_bytes(tagged) == found.tag
        if tagged != name:
            tag = known(find_tag(tagged)[1])
            assert tagged[: tag.start] + found.tag + tagged[tag.end :] == name


NAME_SEGMENT = st.sampled_from([b"a", b"b", b"user", b"1", b"2", b"42", b"", b"{t}", b"deadbeef1", b"x" * 300])
NAMES = st.lists(st.lists(NAME_SEGMENT, min_size=1, max_size=4).map(b":".join), min_size=1, max_size=40, unique=True)


def size_of(key: bytes) -> int:
    return 50 + 7 * len(key) + sum(key) % 11


def reported(
    keys: Sequence[bytes], kind: CoverageKind = CoverageKind.EXACT, *, separators: tuple[bytes, ...] = (b":",)
) -> ReportedNamespaces:
    """The report of these keys, of which those with an even size expire."""
    scope = Scope(separators)
    found = Aggregates(Separators(separators), scope=scope, started_at_s=0.0)
    sizes = [size_of(key) for key in keys]
    lives = [90_000 if size % 2 else -1 for size in sizes]
    add_batch(found, InspectedBatch(b"string", keys, lives, sizes), 1.0)
    coverage = Coverage(kind, len(keys), 1.0, len(keys))
    return ReportedNamespaces(Report(Head(1.0, ServerReport("a:1"), scope, coverage), finish(found.summary())))


def below(keys: Sequence[bytes], prefix: bytes) -> list[bytes]:
    return [key for key in keys if key.startswith(prefix)]


def figures_of(found: ReportedNamespaces, prefix: bytes, keys: int, mark: Mark = Mark.EXACT) -> NamespaceFigures:
    return found.figures(found.find(list(found.separators.segments(prefix))[:-1]), Known(keys, mark))


def prefixes(keys: Sequence[bytes], separators: Separators = SPLIT) -> set[bytes]:
    found = set()
    for key in keys:
        prefix = b""
        for name, separator in separators.segments(key):
            if separator:
                prefix += name + separator
                found.add(prefix)
    return found


@given(NAMES)
def test_a_figure_without_a_mark_is_the_truth(keys: list[bytes]) -> None:
    found = reported(keys)
    for prefix in prefixes(keys):
        here = below(keys, prefix)
        figures, sizes = figures_of(found, prefix, len(here)), [size_of(key) for key in here]
        memory, no_ttl = figures.memory_bytes, figures.no_ttl
        assert memory is not None
        assert no_ttl is not None
        if memory.mark is Mark.EXACT:
            assert memory.value == sum(sizes)
            assert figures.mean_bytes == Known(sum(sizes) / len(sizes))
            assert no_ttl == Known(sum(size % 2 == 0 for size in sizes) / len(sizes))
            assert figures.pattern is None
        else:
            assert memory.mark is Mark.ABOUT
            assert figures.pattern is not None
        assert not figures.has_changed


@given(NAMES)
def test_estimates_of_the_namespaces_of_one_pattern_add_up_to_the_pattern(keys: list[bytes]) -> None:
    found = reported(keys)
    total = 0.0
    for prefix in {key[: key.index(b":") + 1] for key in keys if b":" in key}:
        memory = figures_of(found, prefix, len(below(keys, prefix))).memory_bytes
        total += 0 if memory is None else memory.value
    assert abs(total - sum(size_of(key) for key in keys if b":" in key)) < 1


MERGED = [b"user:n%s:x" % bytes([97 + n // 26, 97 + n % 26]) for n in range(150)] + [
    b"user:bot:%d" % n for n in range(300)
]


def test_a_name_that_others_were_merged_beside_is_a_lower_bound_unless_all_its_keys_were_counted() -> None:
    found = reported(MERGED)
    assert known(found.find(list(SPLIT.segments(b"user:bot:"))[:-1])).fit is Fit.PART
    whole, more = figures_of(found, b"user:bot:", 300), figures_of(found, b"user:bot:", 310)
    assert whole.memory_bytes is not None
    assert more.memory_bytes is not None
    assert (whole.memory_bytes.mark, more.memory_bytes.mark) == (Mark.EXACT, Mark.AT_LEAST)
    assert whole.memory_bytes.value == more.memory_bytes.value


def test_a_merged_name_is_estimated_by_the_mean_of_those_it_was_merged_with() -> None:
    figures = figures_of(reported(MERGED), b"user:nab:", 1)
    assert known(figures.memory_bytes).mark is Mark.ABOUT
    assert figures.pattern == b"user:<*>:"


def test_what_came_after_the_report_has_no_figures() -> None:
    found = reported([b"a:1", b"a:2", b"b:c:1"])
    assert figures_of(found, b"new:", 3) == NOTHING_KNOWN
    assert figures_of(found, b"b:d:", 3) == NOTHING_KNOWN
    assert figures_of(found, b"b:c:new:", 3) == NOTHING_KNOWN


def test_a_namespace_with_other_keys_than_then_says_so() -> None:
    found = reported([b"a:1", b"a:2", b"b:c:1"])
    assert figures_of(found, b"a:", 3).has_changed
    assert figures_of(found, b"a:", 1).has_changed
    assert not figures_of(found, b"a:", 2).has_changed
    assert not figures_of(found, b"a:", 1, Mark.AT_LEAST).has_changed


def test_a_pass_that_was_broken_off_has_lower_bounds() -> None:
    figures = figures_of(reported([b"a:1", b"a:2"], CoverageKind.PARTIAL), b"a:", 2)
    assert known(figures.memory_bytes).mark is Mark.AT_LEAST
    assert known(figures.no_ttl).mark is Mark.ABOUT


def test_figures_of_a_sample_are_estimates() -> None:
    found = reported([b"a:1", b"a:2"], CoverageKind.ESTIMATE)
    node = found.report.summary.root.children[0]
    stats = structs.replace(node.stats, memory_bytes=Estimate(100, 150, 300), no_ttl_share=Estimate(0.1, 0.5, 0.9))
    place = known(found.find(list(SPLIT.segments(b"a:"))[:-1]))
    sampled = type(place)(structs.replace(node, stats=stats), place.fit, place.path)
    figures = found.figures(sampled, Known(4, Mark.ABOUT))
    assert figures.memory_bytes == Known(150, Mark.ABOUT)
    assert figures.no_ttl == Known(0.5, Mark.ABOUT)


def test_bytes_that_were_denied_are_unknown_not_nothing() -> None:
    scope = Scope()
    found = Aggregates(SPLIT, scope=scope, started_at_s=0.0)
    add_batch(found, InspectedBatch(b"string", [b"a:1", b"a:2"], [-1, -1]), 1.0)
    coverage = Coverage(CoverageKind.EXACT, 2, 1.0, 2)
    report = Report(Head(1.0, ServerReport("a:1"), scope, coverage), finish(found.summary()))
    figures = figures_of(ReportedNamespaces(report), b"a:", 2)
    assert figures.memory_bytes is figures.share is figures.mean_bytes is figures.idle is None
    assert figures.no_ttl == Known(1.0)


def test_the_biggest_keys_of_a_namespace_with_the_size_from_which_none_is_missing() -> None:
    keys = [b"a:%d" % n for n in range(300)] + [b"b:" + b"x" * 40]
    found = reported(keys)
    records, least = found.biggest(b"b:", 5)
    assert [one.key for one in records] == [keys[-1]]
    assert least == sorted(map(size_of, keys), reverse=True)[99]
    assert found.biggest(b"c:", 5) == ([], least)
    assert reported(keys[:50]).biggest(b"a:", 5)[1] == 0
    assert reported(keys, CoverageKind.PARTIAL).biggest(b"b:", 5)[1] is None


@given(NAMES)
def test_the_patterns_below_a_namespace_hold_its_keys(keys: list[bytes]) -> None:
    found = reported(keys)
    patterns, more = found.patterns(found.root, 1_000)
    assert not more
    own = [
        plain(nodes[-1].stats.keys) - sum(plain(child.stats.keys) for child in nodes[-1].children) for nodes in patterns
    ]
    assert sum(own) == len(keys)
    few, left_out = found.patterns(found.root, 2)
    assert few == patterns[:2]
    assert left_out == max(0, len(patterns) - 2)
