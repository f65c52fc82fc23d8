"""What was added up and saved halfway adds up to the same as without a break, whichever engine saves and goes on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack, structs

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.pattern_tree import Limits
from rtui.analysis.aggregate.saved import NotSavedError, SavedAggregates, SavedNode, packed, unpacked
from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.engine import is_built
from tests.analysis.aggregate.test_registry_counts import NAMES, REGISTRY
from tests.grammar import Grammar
from tests.server.engine.comparing import STARTED_S, Batches, batches_of, lines, new_compiled, new_pure, summary_of

if os.environ.get("RTUI_REQUIRE_ENGINE") == "1":
    assert is_built(), "the compiled engine was not built"
elif not is_built():
    pytest.skip("the compiled engine was not built", allow_module_level=True)

SMALL = Limits(
    children=5, names=12, numbered_keys=3, numbered=8, nodes=60, expiry_bins=150, keys_between_coarsening=100
)
ENGINES = (new_pure, new_compiled)
PAIRS = [(one, other) for one in ENGINES for other in ENGINES]
SCOPE = Scope(top=5)


def new(counters: Any, limits: Limits | None, *, has_registry: bool = False) -> Aggregates:
    return Aggregates(
        Separators((b":",)),
        scope=SCOPE,
        started_at_s=STARTED_S,
        new_counters=partial(counters, limits),
        registry=REGISTRY if has_registry else None,
    )


def through_a_file(aggregates: Aggregates) -> SavedAggregates:
    """What is saved, as it is read again."""
    return msgpack.decode(msgpack.encode(finish(aggregates.saved())), type=SavedAggregates)


def add(aggregates: Aggregates, batches: Batches) -> None:
    for index, (batch, asked_at_s) in enumerate(batches):
        aggregates.add(replace(batch, is_sampled=index % 3 > 0), asked_at_s)
        if batch.key_type is not None:
            aggregates.add_encodings(batch.key_type, [b"raw", b"int"][: index % 3])
    aggregates.add_vanished(3)
    aggregates.add_unread([b"{long}" * 10, b"x" * 50])


def check(
    batches: list[Any], at: int, limits: Limits | None, pairs: Sequence[Any] = PAIRS, *, has_registry: bool = False
) -> None:
    whole = new(new_pure, limits, has_registry=has_registry)
    add(whole, batches[:at])
    add(whole, batches[at:])
    wanted, tree = summary_of(whole, None), list(lines(whole.patterns, 4096))
    for before, after in pairs:
        first, second = (new(one, limits, has_registry=has_registry) for one in (before, after))
        add(first, batches[:at])
        saved = through_a_file(first)
        assert summary_of(first, None)  # saving changes nothing
        finish(second.restore(saved))
        assert (second.keys, second.vanished_keys, second.unread_keys) == (first.keys, 3, 2)
        assert summary_of(second, None) == summary_of(first, None)
        add(second, batches[at:])
        assert summary_of(second, None) == wanted
        assert list(lines(second.patterns, 4096)) == tree


@settings(max_examples=10)
@given(st.integers(0, 1 << 30), st.integers(1, 200), st.sampled_from((None, SMALL)), st.sampled_from(PAIRS))
def test_it_goes_on_as_if_nothing_had_been_in_between(seed: int, count: int, limits: Limits | None, pair: Any) -> None:
    rng = Random(seed)
    names = [write[1] for write in Grammar(seed, 20).writes(count) if isinstance(write[1], bytes)]
    batches = list(batches_of(names, rng))
    check(batches, rng.randrange(len(batches) + 1), limits, [pair])


def test_what_a_registry_says_goes_on_too() -> None:
    rng = Random(7)
    names = [name % rng.randrange(1 << 20) if b"%" in name else name for name in NAMES for _ in range(9)]
    batches = list(batches_of(names, rng, longest_batch=60))
    check(batches, len(batches) // 2, None, has_registry=True)


def test_nothing_is_saved_and_restored() -> None:
    for before, after in PAIRS:
        first, second = new(before, None), new(after, None)
        finish(second.restore(through_a_file(first)))
        assert summary_of(second, None) == summary_of(first, None)


@given(st.integers())
def test_any_number_can_be_packed(number: int) -> None:
    assert unpacked(packed(number)) == number


def some_state() -> SavedAggregates:
    first = new(new_pure, None)
    add(first, batches_of([b"user:%d:cart" % index for index in range(99)] + [b"a:b", b"a:c"], Random(3)))
    return finish(first.saved())


def nodes_of(saved: SavedAggregates) -> list[SavedNode]:
    return msgpack.decode(saved.nodes[0], type=list[SavedNode])


def with_node(saved: SavedAggregates, at: int, **changes: Any) -> SavedAggregates:
    nodes = nodes_of(saved)
    nodes[at] = structs.replace(nodes[at], **changes)
    return structs.replace(saved, nodes=(msgpack.encode(nodes),))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_no_pass_has_saved_is_refused(engine: Any) -> None:
    saved = some_state()
    at = next(at for at, node in enumerate(nodes_of(saved)) if node.tallies and node.tallies[0][1].memory)
    key_type, tally = nodes_of(saved)[at].tallies[0]
    assert tally.memory is not None
    odd_bucket = structs.replace(tally.memory, buckets=((1 << 20, 1),))
    odd_tallies = [
        structs.replace(tally, memory=odd_bucket),
        structs.replace(tally, memory=structs.replace(tally.memory, buckets=((-1, 1),))),
        structs.replace(tally, idle=(1, 2)),
        structs.replace(tally, frequency=(1,) * 50),
    ]
    odd = [
        *(with_node(saved, at, tallies=((key_type, one),)) for one in odd_tallies),
        with_node(saved, 0, depth=1),
        with_node(saved, 1, depth=7),
        with_node(saved, 1, depth=-1),
        with_node(saved, 1, examples=((1, b"x"),) * 4),
        with_node(saved, 1, hashes=tuple(range(300))),
        structs.replace(saved, origin_min=5),
        structs.replace(saved, slots=structs.replace(saved.slots, keys=b"\0" * 8)),
        structs.replace(saved, nodes=(saved.nodes[0], saved.nodes[0])),
        structs.replace(saved, nodes=(saved.nodes[0][:-9],)),
    ]
    for one in odd:
        with pytest.raises((NotSavedError, msgspec.MsgspecError, OverflowError)):
            finish(new(engine, None).restore(one))
