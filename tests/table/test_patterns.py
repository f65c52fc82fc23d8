"""The patterns of a column of names: exact counts, bounded, the same in any order and grouping of the keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.keyspace.text.identifiers import Identifiers, NodeKind
from rtui.keyspace.text.segments import Separators
from rtui.table.pattern_nodes import MOST_HASHES, MOST_NAMES, MOST_NUMBERED_KEYS, NodeIndex, PatternNodes
from rtui.table.patterns import Patterns
from rtui.table.schema import names_of
from tests.grammar import WORDS, Grammar

COLON = Separators()

PART = st.one_of(
    st.sampled_from(
        ["", "a", "b", "user", "page_7", "page_8", "7", "123456", "{a:b}", "{1}", "2001:db8::1", "10.0.0.1"]
    ),
    st.sampled_from(["550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204", "2024-01-02", "x@example.com", "é"]),
    st.text("ab01:{}-./", max_size=5),
)
KEY = st.one_of(
    st.lists(PART, min_size=1, max_size=4).map(lambda parts: ":".join(parts).encode()), st.binary(max_size=12)
)
KEYS = st.lists(KEY, max_size=40)
SEPARATORS = st.sampled_from([(b":",), (b":", b"/"), (b"-",), (b".", b"-"), (b"::", b":"), (), (b"ab", b"ba"), (b"{",)])


def table(keys: Iterable[bytes]) -> pl.DataFrame:
    return pl.DataFrame(list(names_of(list(keys))))


def placed(keys: Sequence[bytes], separators: Separators = COLON, chunk: int = 1_000, **more: int) -> Patterns:
    patterns = Patterns(separators, **more)
    for first in range(0, len(keys), chunk):
        patterns.place(table(keys[first : first + chunk]))
    return patterns


def path(tree: PatternNodes, node: int) -> tuple[tuple[bytes, bytes, NodeKind], ...]:
    return () if node == 0 else (*path(tree, tree.parents[node]), tree.name(node))


def counts(tree: PatternNodes) -> dict[bytes, int]:
    """Keys that end at each node, by its whole pattern."""
    return {
        b"".join(segment + separator for segment, separator, _ in path(tree, node)): int(tree.keys[node])
        for node in tree.live()
        if tree.keys[node]
    }


def contents(tree: PatternNodes) -> dict[object, object]:
    """All that is known of a tree but the numbers of its nodes."""
    return {
        path(tree, node): (int(tree.keys[node]), int(tree.memory[node]), sorted(tree.distinct.of(node).tolist()))
        for node in tree.live()
    }


@settings(deadline=None)
@given(KEYS, SEPARATORS, st.randoms(), st.integers(1, 40), st.sampled_from([None, 0, 1, 2]))
def test_the_order_and_the_chunks_have_no_say(
    keys: list[bytes], separators: tuple[bytes, ...], rng: Random, chunk: int, depth: int | None
) -> None:
    splits = Separators(separators)
    whole = Patterns(splits, depth)
    whole.place(table(keys))
    other = Patterns(splits, depth)
    shuffled = rng.sample(keys, len(keys))
    for first in range(0, len(keys), chunk):
        other.place(table(shuffled[first : first + chunk]))
    assert contents(whole) == contents(other)
    assert whole.keys.sum() == len(keys)


@settings(deadline=None)
@given(st.tuples(KEYS, KEYS, KEYS), SEPARATORS)
def test_trees_merge_in_any_order_to_what_all_keys_together_are(
    parts: tuple[list[bytes], ...], separators: tuple[bytes, ...]
) -> None:
    splits = Separators(separators)

    def of(*which: int) -> Patterns:
        return placed([key for one in which for key in parts[one]], splits)

    left, right, crossed = of(0), of(2), of(1)
    left.merge(of(1))
    left.merge(of(2))
    right.merge(of(1))
    crossed.merge(right)  # holds part 1 twice
    assert contents(left) == contents(of(0, 1, 2))
    assert contents(crossed) == contents(of(1, 1, 2))


@settings(deadline=None)
@given(KEYS, KEYS, SEPARATORS)
def test_ids_stay_and_merged_ones_lead_to_where_their_keys_are(
    first: list[bytes], second: list[bytes], separators: tuple[bytes, ...]
) -> None:
    patterns = Patterns(Separators(separators))
    summed = np.zeros(0, np.int64)
    for keys in (first, second, first):
        nodes = patterns.place(table(keys))
        more = np.bincount(nodes, minlength=len(patterns))
        summed = more + np.pad(summed, (0, len(more) - len(summed)))
        if keys is second:
            new = patterns.fold()
            summed = np.bincount(new, summed, len(patterns)).astype(np.int64)
    moved = np.bincount(patterns.own(), summed, len(patterns)).astype(np.int64)
    assert moved.tolist() == patterns.keys.tolist()


def test_names_that_differ_in_a_number_become_one_where_they_are_many() -> None:
    for many in (MOST_NUMBERED_KEYS, MOST_NUMBERED_KEYS + 1):
        keys = [b"page_%d" % number for number in range(many)] + [b"x:page_%d:y" % number for number in range(many)]
        found = counts(placed(Random(1).sample(keys, len(keys)), chunk=7))
        assert len(found) == (2 * many if many == MOST_NUMBERED_KEYS else 1 + many)
    assert found[b"page_<n>"] == many


def test_a_pattern_stands_for_all_names_that_were_merged_into_it() -> None:
    patterns = placed([b"page_%d" % number for number in range(200)] * 2, chunk=9)
    (pattern,) = (node for node in patterns.live() if patterns.segments[node] == b"page_<n>")
    assert len(patterns.distinct.of(pattern)) == 200
    patterns.place(table(b"page_%d" % number for number in range(5_000)))
    assert len(patterns.distinct.of(pattern)) == MOST_HASHES


@pytest.mark.parametrize("below", [b"", b":cart"])
def test_heavy_names_stay_and_light_ones_are_bounded(below: bytes) -> None:
    rng = Random(2)
    flood = ["".join(rng.choices("abcdefghijklmnop", k=9)).encode() + below for _ in range(20_000)]
    heavy = [b"giant:%d" % number for number in range(1_000)] + [b"large%s" % below] * 300
    for keys in (flood + heavy, heavy + flood, rng.sample(flood + heavy, len(flood + heavy))):
        patterns = placed(keys, chunk=3_000)
        assert patterns.size <= 2 * MOST_NAMES + 10
        assert int(patterns.keys.sum()) == len(keys)
        found = counts(patterns)
        assert found[b"giant:<id>"] == 1_000
        assert found[b"large%s" % below] >= 300 - len(keys) // 500
        assert found[b"<*>%s" % below] >= 17_000


@pytest.mark.parametrize("chunk", [7, 10_000])
def test_the_empty_name_is_never_lost(chunk: int) -> None:
    rng = Random(5)
    flood = [
        "".join(rng.choices("abcdefghijklmnop", k=9)).encode() + below for below in (b"", b":x") for _ in range(3_000)
    ]
    found = counts(placed(rng.sample([*flood, b":x", b":y:", b""], len(flood) + 3), chunk=chunk))
    assert {name: found.get(name) for name in (b":x", b":y:", b"")} == {b":x": 1, b":y:": 1, b"": 1}


def test_so_many_nodes_at_most() -> None:
    rng = Random(3)
    keys = [":".join(rng.choices(WORDS, k=4)).encode() for _ in range(20_000)]
    patterns = placed(keys, most=1_000)
    assert patterns.size <= 2 * 1_000
    assert patterns.keys.sum() == len(keys)
    assert len(patterns.fold()) >= len(patterns) == patterns.size
    assert patterns.keys.sum() == len(keys)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_segments_have_the_pattern_of_their_form(seed: int) -> None:
    keys = [name for _, name in Grammar(seed, 200).drawn(4_000)]
    patterns, identifiers = Patterns(COLON), Identifiers(COLON.values)
    nodes = patterns.place(table(keys))
    seen = Counter[bool]()
    for key, node in zip(keys, nodes, strict=True):
        first = path(patterns, node)[0]
        form = identifiers.form(next(COLON.segments(key)).name)
        if form.pattern is not None and b"::" not in key and key.count(b":") < 7:
            assert first[0] == form.pattern
        seen[form.pattern is not None] += 1
    assert len(seen) == 2


HIGHEST = (1 << 64) - 1

HASHES = st.lists(
    st.lists(st.one_of(st.integers(HIGHEST - 600, HIGHEST), st.integers(1, HIGHEST)), max_size=300), max_size=4
)


@given(HASHES)
def test_each_node_is_found_and_no_other(added: list[list[int]]) -> None:
    index, known = NodeIndex(), dict[int, int]()
    index.rebuild(np.empty(0, np.uint64), np.empty(0, np.int32))
    for some in added:
        new = {one: len(known) + at for at, one in enumerate(one for one in dict.fromkeys(some) if one not in known)}
        index.add(np.array([*new], np.uint64), np.array([*new.values()], np.int32))
        known |= new
        asked = [*known, *(one ^ 1 << 60 for one in known), HIGHEST - 700]
        found = index.find(np.array(asked, np.uint64)).tolist()
        assert found == [known.get(one, -1) for one in asked]
