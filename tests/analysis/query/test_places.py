"""Nodes and shards in queries: the slots that they stand for, and what is said where there is no such place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.query.names import NameFilter
from rtui.analysis.query.parsing import QueryError, parse
from rtui.analysis.query.places import PlaceError, ShardPlace, on_slots, wanted_slots
from rtui.analysis.query.query import Query, Term
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.keyspace.text.display import HOSTILE
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.text.segments import Separators

SHARDS = (
    ShardPlace(("10.0.0.1:6379", "10.0.0.4:6379"), ((0, 5_460), (9_000, 9_000))),
    ShardPlace(("10.0.0.2:6379",), ((5_461, 8_999), (9_001, 10_922))),
    ShardPlace(("[fe80::1]:7000",), ((10_923, 16_000),)),
    ShardPlace(("10.0.0.1:7000",), ()),
)

PLACES = {
    "node:10.0.0.1:6379": {0},
    "node:10.0.0.4:6379": {0},
    "node:10.0.0.4": {0},
    "node:10.0.0.2,[fe80::1]:7000": {1, 2},
    "node:10.0.0.1:7000": set(),
    "shard:1": {0},
    "shard:2-3": {1, 2},
    "shard:3..": {2},
    "shard:4": set(),
}


def passing(line: str, keys: list[bytes]) -> list[bytes]:
    return NameFilter(on_slots(parse(line), SHARDS), Separators()).keep(keys)


@pytest.mark.parametrize("line", PLACES)
@given(keys=st.lists(st.binary(max_size=8), max_size=30))
def test_a_place_has_the_keys_of_its_slots(line: str, keys: list[bytes]) -> None:
    ranges = [pair for at in PLACES[line] for pair in SHARDS[at].slots]
    inside = [key for key in keys if any(first <= key_slot(key) <= last for first, last in ranges)]
    assert passing(line, keys) == inside
    assert passing(f"!{line}", keys) == [key for key in keys if key not in inside]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("node:10.0.0.2:6380", "No node of the cluster is 10.0.0.2:6380: there are 10.0.0.2:6379, "),
        ('node:"\x1b[2J"', "No node of the cluster is ␛[2J: "),
        ("shard:9", "shard:9 is none of the shards, which are numbered 1 to 4 by their first slots."),
    ],
)
def test_a_place_that_is_not_there_is_said_to_be_none(line: str, said: str) -> None:
    with pytest.raises(PlaceError) as raised:
        on_slots(parse(line), SHARDS)
    assert str(raised.value).startswith(said)
    assert not HOSTILE.search(str(raised.value))


def test_on_one_server_it_is_said_that_there_is_one() -> None:
    with pytest.raises(PlaceError, match="there is one server, which has all keys"):
        on_slots(parse("shard:1 user"), ())
    assert on_slots(parse("slot:7 user"), ()) == parse("slot:7 user")


@pytest.mark.parametrize("line", ["shard:0", "shard:x", "shard<3", "shard:16385", "node:"])
def test_what_is_no_place_is_no_term(line: str) -> None:
    with pytest.raises(QueryError):
        parse(line)


RANGES = st.tuples(st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1)).map(sorted).map(lambda pair: Bounds(*pair))
SLOT_TERM = st.builds(
    Term, st.just("slot"), st.lists(RANGES, min_size=1, max_size=3, unique=True).map(tuple), st.booleans()
)


@given(st.lists(SLOT_TERM, min_size=1, max_size=3), st.lists(st.binary(max_size=8), max_size=30))
def test_no_key_in_other_slots_than_are_wanted_passes(terms: list[Term], keys: list[bytes]) -> None:
    query = Query(tuple(terms))
    wanted = wanted_slots(query)
    assert wanted is not None
    assert NameFilter(query, Separators()).keep(keys) == [key for key in keys if key_slot(key) in wanted]


def test_without_a_term_about_slots_all_are_wanted() -> None:
    assert wanted_slots(parse("user ttl:none")) is None
    assert wanted_slots(parse("slot:16000..")) == frozenset(range(16_000, SLOTS))
