"""What a query asks, in which order, and what that costs."""

from __future__ import annotations

import pytest
from hypothesis import given

from rtui.analysis.estimates import Estimate
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.plan import plan_of
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.keyspace.text.segments import Separators
from tests.analysis.query.oracle import QUERY

COLON = Separators()


@pytest.mark.parametrize(
    ("line", "stages"),
    [
        ("cart", []),
        ("ttl:none", ["ttl"]),
        ("size>1M", ["type", "size"]),
        ("size>1M ttl:none", ["ttl", "type", "size"]),
        ("size>1M type:hash", ["size"]),
        ("size>1M type:hash,set", ["type", "size"]),
        ("!type:hash len>1", ["type", "len"]),
        ("len>10 idle>30d size>1 ttl<1m", ["ttl", "idle", "type", "size", "len"]),
        ("type:hash type:set ttl:none", ["type", "ttl"]),
    ],
)
def test_facts_are_asked_in_the_order_that_needs_least(line: str, stages: list[str]) -> None:
    assert [fact.value for fact in plan_of(parse(line), COLON).stages] == stages


@given(QUERY)
def test_everything_needed_is_asked_once(query: Query) -> None:
    plan = plan_of(query, COLON, columns=tuple(Fact))
    known = {*plan.stages, *plan.columns, Fact.NAME, *([Fact.TYPE] if plan.server.key_type else [])}
    assert known == set(Fact)
    assert len(plan.stages) + len(plan.columns) == len({*plan.stages, *plan.columns})
    assert set(query.facts) - {Fact.TYPE} <= set(plan.stages)
    if Fact.LENGTH in plan.stages:
        assert plan.stages[-1] is Fact.LENGTH


def test_names_that_are_known_are_not_filtered_by_the_server() -> None:
    plan = plan_of(parse("in:shop type:hash"), COLON, is_listed=True)
    assert plan.server.match is plan.server.key_type is None
    assert plan.stages == (Fact.TYPE,)
    assert plan_of(parse("type:hash"), COLON, scans_types=False).stages == (Fact.TYPE,)


def test_later_facts_are_thought_to_be_asked_of_fewer_keys() -> None:
    one, two = (plan_of(parse(line), COLON).cost(1_000_000).seconds for line in ("ttl:none", "ttl:none enc:raw"))
    assert one is not None
    assert two is not None
    listing = plan_of(parse("cart"), COLON).cost(1_000_000).seconds or 0
    assert one < two < one + (one - listing)


def test_what_it_costs_at_most() -> None:
    plan = plan_of(parse("in:shop ttl:none size>1K"), COLON, columns=(Fact.TTL, Fact.LENGTH))
    assert plan.columns == (Fact.LENGTH,)
    cost = plan.cost(1_000, matching=100, matches=10)
    assert (cost.scanned, cost.asked, cost.commands) == (1_000, 100, 310)
    assert plan.cost(None).commands is None
    assert plan_of(parse("cart"), COLON).cost(1_000_000).commands == 0


@pytest.mark.parametrize(
    ("line", "keys", "sentence"),
    [
        ("cart", 2_000_000, "scans 2,000,000 keys; about 20s at gentle pace"),
        ("cart", None, "scans all keys"),
        ("ttl:none", 1_000, "scans 1,000 keys, then reads PTTL of up to 1,000 keys"),
        ("size>1M", None, "scans all keys, then reads TYPE and MEMORY USAGE of keys that may match"),
        ("size>1 ttl:none", 9, "scans 9 keys, then reads PTTL, TYPE and MEMORY USAGE of up to 9 keys"),
    ],
)
def test_what_it_says(line: str, keys: int | None, sentence: str) -> None:
    plan = plan_of(parse(line), COLON)
    assert plan.sentence(plan.cost(keys)) == sentence


def test_an_estimate_of_the_keys_that_match_is_said_with_its_interval() -> None:
    plan = plan_of(parse("in:shop ttl:none"), COLON, is_listed=True)
    cost = plan.cost(1_000_000, matching=Estimate(11_000, 12_000, 13_000), is_listed=True)
    assert plan.sentence(cost) == "reads PTTL of ≈ 12.0k (11.0–13.0k) keys"
