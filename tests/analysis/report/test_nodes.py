"""The nodes of a cluster in a report, how evenly slots are used, and hash tags that would join keys."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.report.document import ClusterNode, ClusterReport
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
from rtui.keyspace.slots import SLOTS, find_tag, hashed_bytes, key_slot
from rtui.keyspace.text.segments import Separators
from tests.made_report import clustered_report, made_report, unsettled_report


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
    report = unsettled_report()
    table = nodes(report)
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
    assert report.cluster is not None
    for make in (slots, slot_tags, big_keys, lambda one: hot_keys(one)[0]):
        table = make(report)
        at = [column.id for column in table.columns].index("node")
        assert "node" not in {column.id for column in make(alone).columns}
        for row, subject in zip(table.rows, table.subjects, strict=True):
            slot = subject if isinstance(subject, int) else key_slot(subject)  # type: ignore[arg-type]
            owner = report.cluster.owner_of(slot)
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
    found = common_tag([b"user:42:profile", b"cart:42"], SPLIT)
    assert found is not None
    assert (found.tag, found.names) == (b"42", (b"user:{42}:profile", b"cart:{42}"))
    longest = common_tag([b"7:shop:1234:a", b"1234:7:b"], SPLIT)
    assert longest is not None
    assert longest.names == (b"7:shop:{1234}:a", b"{1234}:7:b")


def test_a_name_that_has_the_tag_already_stays() -> None:
    found = common_tag([b"user:{42}:profile", b"cart:42", b"42"], SPLIT)
    assert found is not None
    assert found.names == (b"user:{42}:profile", b"cart:{42}", b"42")
    words = common_tag([b"{shop}:a", b"shop:b"], SPLIT)
    assert words is not None
    assert words.tag == b"shop"


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
    found = common_tag(names, Separators((b"/",)))
    assert found is not None
    assert found.names == (b"user/{42}/profile", b"cart/{42}")


@given(st.lists(NAME, min_size=1, max_size=4))
def test_a_tag_puts_all_names_into_one_slot_and_adds_nothing_but_its_braces(names: list[bytes]) -> None:
    found = common_tag(names, SPLIT)
    if found is None:
        return
    assert {key_slot(name) for name in found.names} == {found.slot}
    for name, tagged in zip(names, found.names, strict=True):
        assert hashed_bytes(tagged) == found.tag
        if tagged != name:
            tag = find_tag(tagged)[1]
            assert tag is not None
            assert tagged[: tag.start] + found.tag + tagged[tag.end :] == name
