"""The queries behind numbers of a report; nodes and shards in queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import as_estimate
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query import behind
from rtui.analysis.query.behind import Behind, cliff_keys, keys_of
from rtui.analysis.query.deciding import NameFilter, fact_tests
from rtui.analysis.query.parsing import QueryError, parse
from rtui.analysis.query.plan import PlaceError, ShardPlace, on_slots, wanted_slots
from rtui.analysis.query.query import EVERYTHING, Query, Term
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import NodeKind, Scope, Summary
from rtui.keyspace.slices import finish
from rtui.keyspace.slots import SLOTS, key_slot
from rtui.keyspace.text.display import HOSTILE
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.conftest import known
from tests.grammar import Grammar
from tests.made_report import made_report
from tests.table.naive import add_batch

NOW_S = 1_790_000_040.0
"""When all keys were asked: at the start of a minute."""

COLON = Separators()

Facts = tuple[bytes, int]
"""Type, and TTL in milliseconds."""


def keyspace(seed: int, keys: int) -> dict[bytes, Facts]:
    """Names of the grammar with types and TTLs, some of which expire together."""
    rng, found = Random(seed), dict[bytes, Facts]()
    for what, name, *rest in Grammar(seed).writes(keys):
        assert isinstance(name, bytes)
        if what == "PEXPIRE":
            (ttl_ms,) = rest
            assert isinstance(ttl_ms, int)
            found[name] = found[name][0], ttl_ms
        else:
            found[name] = str(what).encode(), NO_EXPIRY
    for name in list(found)[:: 2 + seed % 3]:
        if rng.random() < 0.5:
            found[name] = found[name][0], 3_600_000 + rng.randrange(60_000)
    return found


def summed(keys: dict[bytes, Facts], separators: Separators, budget: int) -> Summary:
    scope = Scope(separators=separators.values)
    aggregates = Aggregates(separators, scope=scope, started_at_s=NOW_S, node_budget=budget)
    by_type = defaultdict[bytes, list[bytes]](list)
    for name, (key_type, _) in keys.items():
        by_type[key_type].append(name)
    for key_type, names in by_type.items():
        for start in range(0, len(names), 500):
            some = names[start : start + 500]
            ttl_ms = [keys[name][1] for name in some]
            add_batch(aggregates, InspectedBatch(key_type, some, ttl_ms=ttl_ms, memory_bytes=[64] * len(some)), NOW_S)
    return finish(aggregates.summary())


def found(of: Behind, keys: dict[bytes, Facts], separators: Separators) -> int:
    """How many keys the query finds, as it is written."""
    query = parse(str(of.query))
    assert query == of.query
    passes, tests = NameFilter(query, separators), fact_tests(query)
    values = {Fact.TYPE: 0, Fact.TTL: 1}
    return sum(
        passes(name) and all(test(facts[values[fact]], NOW_S) for fact, test in tests.items())
        for name, facts in keys.items()
    )


@pytest.mark.slow
@pytest.mark.sampled("seed", "separators", "budget")
@pytest.mark.parametrize(
    ("seed", "separators", "budget"),
    [(1, (b":",), 4096), (2, (b":", b"."), 4096), (3, (b":",), 40), (4, (b":", b"-"), 200), (5, (b":",), 4096)],
)
def test_numbers_of_a_report(seed: int, separators: tuple[bytes, ...], budget: int) -> None:
    splits = Separators(separators)
    keys = keyspace(seed, 3_000)
    summary = summed(keys, splits, budget)
    paths = list(summary.root.walk())
    kinds: Counter[tuple[NodeKind, bool]] = Counter()
    for path in paths[:: max(1, len(paths) // 40)]:
        of = keys_of(path)
        kinds[path[-1].kind, of.is_exact] += 1
        if of.is_exact:
            assert found(of, keys, splits) == path[-1].stats.keys, (str(of.query), [node.step for node in path])
            assert found(behind.without_ttl(of), keys, splits) == path[-1].stats.no_ttl_keys
        else:
            assert found(of, keys, splits) >= as_estimate(path[-1].stats.keys).value
    assert kinds[NodeKind.LITERAL, True] > 0
    assert kinds[NodeKind.PATTERN, True] > 0
    for cliff in summary.expiry.cliffs:
        of_cliff = known(cliff_keys(cliff, summary.root))
        if of_cliff.is_exact:
            assert found(of_cliff, keys, splits) == cliff.keys
    for one in summary.types:
        assert found(behind.type_keys(one.name), keys, splits) == one.stats.keys
    for tag in summary.slots.tags:
        assert found(behind.tag_keys(tag), keys, splits) == tag.keys
    for slot, count in enumerate(summary.slots.keys):
        if count and slot % 200 == 0:
            assert found(behind.slot_keys(slot), keys, splits) == count
    assert found(behind.slot_keys(0, 5460), keys, splits) == sum(summary.slots.keys[:5461])


def test_bins_of_ttls() -> None:
    keys = keyspace(7, 700)
    summary = summed(keys, COLON, 4096)
    ttl = known(summary.root.stats.ttl)
    assert [found(behind.ttl_bin(index, NOW_S), keys, COLON) for index in range(len(ttl))] == list(ttl)
    for timeline in summary.expiry.timelines:
        of = known(behind.timeline_keys(timeline, summary.root))
        if of.is_exact:
            for one in timeline.bins:
                query = behind.expiring(one.start_s, one.start_s + one.width_s, of)
                assert found(query, keys, COLON) == one.keys


def test_names_that_were_merged_are_found_without_those_that_were_not() -> None:
    keys: dict[bytes, Facts] = {b"shop:n%s:x" % bytes([97 + n % 26, 97 + n // 26]): (b"SET", -1) for n in range(300)}
    keys |= {b"shop:heavy:%d" % n: (b"SET", -1) for n in range(200)}
    keys |= {b"shop:%d:x" % n: (b"SET", -1) for n in range(50)}
    (path,) = [path for path in summed(keys, COLON, 4096).root.walk() if path[-1].name == b"<*>"]
    of = keys_of(path)
    assert path[-1].stats.keys == 300
    assert found(of, keys, COLON) == 300
    assert str(of.query) == "pattern:shop:<*>: !pattern:shop:heavy:"


def test_names_whose_hash_tag_holds_a_separator_are_found_without_others() -> None:
    names = [bytes([97 + n % 26, 97 + n // 26]) for n in range(300)]
    forms = (b"shop:n%s:x", b"{shop:%s}:x", b"{shop:%s}-y:x", b"{%s}:x")
    keys: dict[bytes, Facts] = {form % name: (b"SET", -1) for form in forms for name in names}
    keys[b":x"] = (b"SET", -1)
    summary = summed(keys, COLON, 4096)
    counts = {}
    for path in summary.root.walk():
        of = keys_of(path)
        assert of.is_exact
        assert found(of, keys, COLON) == path[-1].stats.keys
        counts[b"".join(node.name + node.separator for node in path)] = path[-1].stats.keys
    assert counts[b"{<**>}:"] == counts[b"<**>:"] == counts[b"<*>:"] == 300
    assert counts[b":x"] == 1


def test_queries_are_as_they_would_be_typed() -> None:
    root = made_report().summary.root
    texts = {str(keys_of(path).query) for path in root.walk()}
    assert "in:shop:" in texts
    assert any("<id>" in text for text in texts)
    assert str(keys_of((root,)).query) == ""
    assert str(behind.encoding_keys(b"hash", b"listpack").query) == "type:hash enc:listpack"
    assert str(behind.slot_keys(7).query) == "slot:7"
    assert str(behind.slot_keys(0, 5460).query) == "slot:0-5460"
    assert str(behind.without_ttl().query) == "ttl:none"
    assert str(behind.idle_bin(6).query) == "idle>=90d"
    assert str(behind.idle_bin(1).query) == "idle:1m..1h"
    assert str(behind.frequency_bin(3).query) == "freq:10..19"
    assert str(behind.ttl_bin(1, 1_790_000_040).query) == "expires:2026-09-21T14:15..14:24"
    assert behind.scope_of(made_report().head.scope) == EVERYTHING


def test_a_pass_over_some_keys_has_its_own_query() -> None:
    report = made_report()
    report = replace(report, head=replace(report.head, scope=Scope(match=b"shop:*", key_type=b"hash")))
    assert str(behind.scope_of(report.head.scope)) == "shop:* type:hash"


SHARDS = (
    ShardPlace(("10.0.0.1:6379", "10.0.0.4:6379"), ((0, 5_460), (9_000, 9_000))),
    ShardPlace(("10.0.0.2:6379",), ((5_461, 8_999), (9_001, 10_922))),
    ShardPlace(("[fe80::1]:7000",), ((10_923, 16_000),)),
    ShardPlace(("10.0.0.1:7000",), ()),
)

PLACES = {
    "node:10.0.0.1:6379": {0}, "node:10.0.0.4:6379": {0}, "node:10.0.0.4": {0},
    "node:10.0.0.2,[fe80::1]:7000": {1, 2}, "node:10.0.0.1:7000": set(), "shard:1": {0}, "shard:2-3": {1, 2},
    "shard:3..": {2}, "shard:4": set(),
}  # fmt: skip


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
        ("node:10.0.0.2:6380", "No node of the cluster is 10.0.0.2:6380: nodes are 10.0.0.2:6379, "),
        ('node:"\x1b[2J"', "No node of the cluster is ␛[2J: "),
        ("shard:9", "shard:9 does not exist: shards are numbered 1 to 4, by first slot."),
    ],
)
def test_a_place_that_is_not_there_is_said_to_be_none(line: str, said: str) -> None:
    with pytest.raises(PlaceError) as raised:
        on_slots(parse(line), SHARDS)
    assert str(raised.value).startswith(said)
    assert not HOSTILE.search(str(raised.value))


def test_on_one_server_it_is_said_that_there_is_one() -> None:
    with pytest.raises(PlaceError, match="this is a single server with all keys"):
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
    wanted = known(wanted_slots(query))
    assert NameFilter(query, Separators()).keep(keys) == [key for key in keys if key_slot(key) in wanted]


def test_without_a_term_about_slots_all_are_wanted() -> None:
    assert wanted_slots(parse("user ttl:none")) is None
    assert wanted_slots(parse("slot:16000..")) == frozenset(range(16_000, SLOTS))
