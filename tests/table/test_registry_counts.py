"""What is counted by a registry is what looking at key after key finds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random

import pytest

from rtui.analysis.columns import ALL_COLUMNS, SAMPLED_COLUMNS
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.report.document import Scope, Summary
from rtui.analysis.report.figures import SampledKeyspace
from rtui.analysis.report.members import ExpectationReport, NamingReport, RegistryReport
from rtui.keyspace.slices import Slicer, finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.expectations import NO_TTL, FoundKey, breaches_of
from rtui.registry.load import read_registry
from rtui.registry.naming import rule_ids
from rtui.registry.registry import Registry
from rtui.server.inspection.tables import InspectedBatch
from rtui.table import naming_counts
from rtui.table.aggregates import Aggregates
from tests.table.naive import add_batch

STARTED_S = 1_790_000_000.0

REGISTRY = read_registry("""
title = "Shop"
placeholders = { id = "int" }
[naming]
case = ["lower", "camel"]
longest = 40
[glossary]
usr = "user"
[[pattern]]
pattern = "shop:session:<id>"
type = "hash"
ttl = "30m..2h"
size = "<=1K"
length = "1..10"
owner = "accounts"
[[pattern]]
pattern = "shop:user:<id>:name"
type = "string"
ttl = "none"
[[pattern]]
pattern = "shop:lock:<what>"
ttl = "<=10m|none"
deprecated = "use lock:<what>"
[[pattern]]
pattern = "tag:<name>"
placeholders = { name = "word" }
[[pattern]]
pattern = "never:<id>"
""")

NAMES = (
    *(
        b"shop:session:%d", b"shop:user:%d:name", b"shop:lock:item%d", b"tag:word", b"tag:snake_case",
        b"shop:userName:%d",
    ),
    *(b"shop:user_name:%d", b"SHOP:%d", b"plain", b"a b:%d", b"prd:cfg:%d", b"x:%d", b"shop:lock:\xff%d", b"{}:tag:%d"),
    *(b"shop:session:far-too-long-for-any-name-in-this-registry-%d", b"never:word", b"other/thing|%d", b":%d::"),
)  # fmt: skip

TYPES = (b"hash", b"string", None)


def batches_of(rng: Random, count: int = 1_500, *, names: Sequence[bytes] = NAMES) -> list[InspectedBatch]:
    """Batches of which different facts are known."""
    keys = list(
        dict.fromkeys(name % rng.randrange(10_000) if b"%d" in name else name for name in rng.choices(names, k=count))
    )
    found = []
    while keys:
        some, keys = keys[: rng.randint(1, 60)], keys[60:]
        found.append(
            InspectedBatch(
                rng.choice(TYPES),
                some,
                ttl_ms=[rng.choice((NO_TTL, rng.randrange(10_000_000))) for _ in some] if rng.random() < 0.8 else None,
                memory_bytes=[rng.randrange(50, 1_200) for _ in some] if rng.random() < 0.8 else None,
                lengths=[rng.randrange(12) for _ in some] if rng.random() < 0.5 else None,
            )
        )
    return found


def counted(batches: Sequence[InspectedBatch], registry: Registry = REGISTRY) -> Aggregates:
    made = Aggregates(Separators(), scope=Scope(columns=ALL_COLUMNS), started_at_s=STARTED_S, registry=registry)
    for batch in batches:
        add_batch(made, batch, STARTED_S)
    return made


def parts_of(aggregates: Aggregates, sample: SampledKeyspace | None = None) -> tuple[RegistryReport, NamingReport]:
    summary: Summary = finish(aggregates.summary(sample))
    assert summary.registry is not None
    assert summary.naming is not None
    return summary.registry, summary.naming


def facts_of(batch: InspectedBatch, at: int) -> FoundKey:
    ttl_ms, sizes, lengths = (
        None if column is None else column[at] for column in (batch.ttl_ms, batch.memory_bytes, batch.lengths)
    )
    return FoundKey(batch.key_type, ttl_ms, sizes, lengths)


def expectation(report: RegistryReport, pattern: str, rule: str) -> ExpectationReport:
    (entry,) = [one for one in report.entries if one.pattern == pattern]
    (found,) = [one for one in entry.expectations if one.rule == rule]
    return found


@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_looking_at_each_key(seed: int) -> None:
    batches = batches_of(Random(seed))
    keys, memory, broken = Counter[int](), Counter[int](), Counter[tuple[int, str]]()
    names, bytes_of_names = Counter[str](), Counter[str]()
    for batch in batches:
        for at, key in enumerate(batch.keys):
            index, facts = REGISTRY.matcher.match(key), facts_of(batch, at)
            entry = -1 if index is None else index
            keys[entry] += 1
            memory[entry] += facts.memory_bytes or 0
            for rule in rule_ids(REGISTRY.naming.broken(key, entry)):
                names[rule] += 1
                bytes_of_names[rule] += facts.memory_bytes or 0
            if index is not None:
                for breach in breaches_of(REGISTRY.entries[index].expectations.broken(facts)):
                    broken[index, breach.value] += 1
    report, naming = parts_of(counted(batches))
    assert [one.keys for one in report.entries] == [keys[at] for at in range(len(REGISTRY.entries))]
    assert [one.memory_bytes or 0 for one in report.entries] == [memory[at] for at in range(len(REGISTRY.entries))]
    assert (report.unregistered_keys, report.unregistered_memory_bytes) == (keys[-1], memory[-1])
    assert report.registered_keys == sum(keys.values()) - keys[-1]
    told = {
        (at, one.rule): one.keys
        for at, entry in enumerate(report.entries)
        for one in entry.expectations
        if one.keys and one.rule != "ttl-too-short"
    }
    assert told == broken
    assert broken
    said = {one.rule: one.keys for one in naming.rules if one.keys and one.rule != "name-mixed-case"}
    assert said == names
    assert {one.rule: one.memory_bytes for one in naming.rules if one.rule in names} == bytes_of_names
    for one in naming.rules:
        assert sum(as_estimate(place.keys).value for place in one.places) == as_estimate(one.keys).value


@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(3))
def test_order_changes_nothing(seed: int) -> None:
    rng = Random(seed)
    batches = batches_of(rng)
    wanted = parts_of(counted(batches))
    rng.shuffle(batches)
    assert parts_of(counted(batches)) == wanted


def test_examples_are_keys_that_break_what_they_are_examples_of() -> None:
    report, naming = parts_of(counted(batches_of(Random(7))))
    for rule in naming.rules:
        assert len(rule.examples) == min(3, int(as_estimate(rule.keys).value))
        for place in rule.places if rule.rule != "name-mixed-case" else ():
            for key in place.examples:
                assert rule.rule in rule_ids(REGISTRY.naming.broken(key, REGISTRY.matcher.match_page([key])[0]))
                assert key.startswith(place.namespace)
    for at, entry in enumerate(report.entries):
        examples = [entry.examples, *(one.examples for one in entry.expectations)]
        assert all(REGISTRY.matcher.match(key) == at for some in examples for key in some)
    assert all(REGISTRY.matcher.match(key) is None for one in report.unregistered for key in one.examples)


LONG = (*NAMES, b"shop:session:" + b"x" * 400 + b"%d", b"y" * 300 + b":%d", b"tag:" + b"t" * 70_000, b"%d", b"q%d:a")


@pytest.mark.sampled("seed")
@pytest.mark.parametrize("seed", range(4))
def test_keys_without_pattern_sum_up(seed: int) -> None:
    batches = batches_of(Random(seed), names=LONG)
    report, naming = parts_of(counted(batches))
    listed = report.unregistered
    assert sum(as_estimate(one.keys).value for one in listed) == pytest.approx(
        as_estimate(report.unregistered_keys).value
    )
    (rest,) = [one for one in listed if not one.place]
    assert rest is listed[-1]
    everything = [key for batch in batches for key in batch.keys]
    long_names = [one for rule in naming.rules for place in rule.places for one in place.long_names]
    for one in (*rest.long_names, *long_names):
        assert any(key.startswith(one.beginning) and len(key) == one.length for key in everything)
    assert {one.beginning[:1] for one in rest.long_names} <= {b"y", b"t", b"s"}
    huge = next(one for one in naming.rules if one.rule == "name-huge")
    assert {place.namespace: [one.length for one in place.long_names] for place in huge.places}[b"tag:"] == [70_004]


def test_what_is_not_known_is_not_zero() -> None:
    keys = [b"shop:session:%d" % at for at in range(100)]
    report, _ = parts_of(counted([InspectedBatch(b"hash", keys)]))
    assert expectation(report, "shop:session:<id>", "type-wrong").keys == 0
    for rule in ("ttl-missing", "ttl-too-long", "ttl-too-short", "size-out-of-range", "length-out-of-range"):
        found = expectation(report, "shop:session:<id>", rule)
        assert (found.keys, found.memory_bytes, found.known_keys) == (None, None, 0)
    assert report.entries[0].memory_bytes is None
    assert report.registered_memory_bytes is None
    report, _ = parts_of(counted([InspectedBatch(None, keys, ttl_ms=[NO_TTL] * 100)]))
    assert expectation(report, "shop:session:<id>", "type-wrong").keys is None
    assert expectation(report, "shop:session:<id>", "ttl-missing").keys == 100


def test_a_fact_that_is_known_of_some_keys_says_of_how_many() -> None:
    first, second = ([b"shop:session:%d" % at for at in range(start, start + 50)] for start in (0, 50))
    batches = [InspectedBatch(b"hash", first, ttl_ms=[NO_TTL] * 50), InspectedBatch(b"hash", second)]
    found = expectation(parts_of(counted(batches))[0], "shop:session:<id>", "ttl-missing")
    assert (found.keys, found.known_keys) == (50, 50)


def test_lengths_of_some_keys_are_an_estimate_that_knows_of_all_that_were_seen() -> None:
    keys = [b"shop:session:%d" % at for at in range(800)]
    made = Aggregates(Separators(), scope=Scope(columns=SAMPLED_COLUMNS), started_at_s=STARTED_S, registry=REGISTRY)
    add_batch(made, InspectedBatch(b"hash", keys[:100], lengths=[50] * 30 + [5] * 70), STARTED_S)
    add_batch(made, InspectedBatch(b"hash", keys[100:110], lengths=[99] * 10, is_sampled=False), STARTED_S)
    add_batch(made, InspectedBatch(b"hash", keys[110:], is_sampled=False), STARTED_S)
    found = expectation(parts_of(made)[0], "shop:session:<id>", "length-out-of-range")
    assert isinstance(found.keys, Estimate)
    assert 40 <= found.keys.low < 240 < found.keys.high
    assert found.known_keys == 110


def test_a_sample_gives_estimates() -> None:
    keys = [b"shop:session:%d" % at for at in range(300)] + [b"other:%d" % at for at in range(100)]
    made = Aggregates(Separators(), scope=Scope(), started_at_s=STARTED_S, registry=REGISTRY, is_sample=True)
    add_batch(made, InspectedBatch(b"string", keys, ttl_ms=[NO_TTL] * 400, memory_bytes=[100] * 400), STARTED_S)
    report, naming = parts_of(made, SampledKeyspace(40_000, 40_000_000))
    assert isinstance(report.registered_share, Estimate)
    assert 0.75 in report.registered_share
    assert 30_000 in as_estimate(report.registered_keys)
    assert 3_000_000 in as_estimate(report.registered_memory_bytes or 0)
    assert 30_000 in as_estimate(expectation(report, "shop:session:<id>", "type-wrong").keys or 0)
    assert all(isinstance(one.keys, Estimate) for one in naming.rules)


def test_times_to_live_of_many_keys_are_too_short() -> None:
    keys = [b"shop:session:%d" % at for at in range(200)]
    for longest_ms, is_short in ((10 * 60_000, True), (35 * 60_000, False)):
        lives = [longest_ms * at // 200 for at in range(200)]
        report, _ = parts_of(counted([InspectedBatch(b"hash", keys, ttl_ms=lives)]))
        found = expectation(report, "shop:session:<id>", "ttl-too-short")
        assert found.keys == (200 if is_short else 0)
        assert bool(found.examples) == is_short


def test_namespaces_with_keys_without_pattern_are_found_biggest_first() -> None:
    sizes = {b"cart:%d:items": 300, b"shop:session:%d": 100, b"mail:queue": 5_000, b"shop:session:%d:old": 10}
    batches = [
        InspectedBatch(b"list", keys, memory_bytes=[size] * len(keys))
        for name, size in sizes.items()
        for keys in ([name % at for at in range(50)] if b"%d" in name else [name],)
    ]
    summary = finish(counted(batches).summary())
    assert summary.registry is not None
    assert [(one.namespace, one.keys) for one in summary.registry.unregistered] == [
        (b"cart:<id>:items", 50),
        (b"mail:queue", 1),
        (b"shop:session:<id>:old", 50),
    ]
    nodes = [path[-1] for path in summary.root.walk()]
    assert [nodes[one.place].stats.keys for one in summary.registry.unregistered] == [50, 1, 50]


def test_a_namespace_of_which_a_part_is_registered_is_an_estimate() -> None:
    registry = read_registry(
        '[[pattern]]\npattern = "k:<n>"\nplaceholders = { n = { type = "int", length = "<=2" } }\n'
    )
    report = finish(counted([InspectedBatch(b"set", [b"k:%d" % at for at in range(130)])], registry).summary()).registry
    assert report is not None
    assert (report.registered_keys, report.unregistered_keys) == (100, 30)
    for one in report.unregistered:
        assert isinstance(one.keys, Estimate)
        assert 30 in one.keys


def test_keys_of_several_styles_are_those_that_are_not_in_the_most_common_one() -> None:
    registry = read_registry("[naming]\nlongest = 60\n")
    keys = [b"a:userName:%d" % at for at in range(60)] + [b"a:user_name:%d" % at for at in range(40)]
    keys += [b"b:user-name:%d" % at for at in range(200)] + [b"b:userName:1"]
    (mixed,) = [one for one in parts_of_names(keys, registry).rules if one.rule == "name-mixed-case"]
    assert [(one.namespace, one.keys) for one in mixed.places] == [(b"a:", 40)]
    keys = [b"c:firstWord:x%d" % at for at in range(60)] + [b"c:firstWord:second_word:%d" % at for at in range(40)]
    (mixed,) = [one for one in parts_of_names(keys, registry).rules if one.rule == "name-mixed-case"]
    assert [(one.namespace, one.keys) for one in mixed.places] == [(b"c:", 40)]


def parts_of_names(keys: Sequence[bytes], registry: Registry) -> NamingReport:
    summary = finish(counted([InspectedBatch(b"string", keys)], registry).summary())
    assert summary.registry is None
    assert summary.naming is not None
    return summary.naming


def test_many_names_below_one_segment_are_counted_under_that_whatever_their_order() -> None:
    registry, rng = read_registry(""), Random(3)
    words = [bytes([97 + at // 26, 97 + at % 26]) * 3 for at in range(200)]
    keys = [b"flood:%s:a b" % word for word in words] + [b"calm:%s:a b" % word for word in words[:20]]
    for _ in range(3):
        rng.shuffle(keys)
        (rule,) = [one for one in parts_of_names(keys, registry).rules if one.rule == "name-whitespace"]
        places = {one.namespace: one.keys for one in rule.places}
        assert places == {b"flood:": 200} | {b"calm:%s:" % word: 1 for word in words[:20]}


def test_memory_is_bounded_and_rules_count_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming_counts, "MOST_COUNTS", 60)
    monkeypatch.setattr(naming_counts, "KEPT_COUNTS", 20)
    registry = read_registry("")
    words = [bytes([97 + at // 676 % 26, 97 + at // 26 % 26, 97 + at % 26]) * 2 for at in range(2_000)]
    batches = [InspectedBatch(b"string", [b"%s:a b" % word, b"big:one two"]) for word in words]
    made = counted(batches, registry)
    assert made.registered is not None
    assert len(made.registered.naming._counts) <= 60 + 16
    summary = finish(made.summary())
    assert summary.naming is not None
    (rule,) = [one for one in summary.naming.rules if one.rule == "name-whitespace"]
    assert rule.keys == 4_000
    assert rule.places[0].namespace == b"big:"
    assert rule.places[0].keys == 2_000


def test_rules_that_are_off_are_not_counted() -> None:
    registry = read_registry('[rules]\nname-whitespace = "off"\nname-mixed-case = "off"\n')
    rules = {one.rule for one in parts_of_names([b"a b:c", b"A:b c"], registry).rules}
    assert not rules & {"name-whitespace", "name-mixed-case"}
    assert "name-quotes" in rules


def test_keys_of_a_library_are_not_judged_by_name() -> None:
    registry = read_registry('[[pattern]]\npattern = "LIB <id>"\nnaming = false\n')
    summary = finish(counted([InspectedBatch(b"string", [b"LIB 1", b"LIB 2"])], registry).summary())
    assert summary.naming is not None
    assert [one.keys for one in summary.naming.rules if one.keys] == []


def test_without_a_registry_there_is_neither_part() -> None:
    made = Aggregates(Separators(), scope=Scope(), started_at_s=STARTED_S)
    add_batch(made, InspectedBatch(b"string", [b"a b"]), STARTED_S)
    summary = finish(made.summary())
    assert (summary.registry, summary.naming) == (None, None)


def test_a_copy_is_of_one_moment() -> None:
    batches = batches_of(Random(5), 300)
    made, again, whole = counted(batches[:3]), counted(batches[:3]), counted(batches)
    assert made.registered is not None
    before = parts_of(made)
    again.registered = finish(made.registered.copy(Slicer(slice_s=0)))
    for batch in batches[3:]:
        add_batch(made, batch, STARTED_S)
    assert parts_of(made) == parts_of(whole)
    assert parts_of(again) == before


def groups_of(names: Sequence[bytes]) -> dict[bytes, int]:
    found: defaultdict[bytes, int] = defaultdict(int)
    split = naming_counts.namespaces((b":", b"."))
    for name in names:
        found[split(name)[1]] += 1
    return dict(found)


def test_namespaces_are_words_before_separators() -> None:
    names = [b"a:b:c", b"a.b:1", b"a:7:c", b"7:a:b", b"plain", b":x", b"a:b", b"a::b", b"long" * 9 + b":x"]
    assert groups_of(names) == {b"a:b:": 1, b"a.b:": 1, b"a:": 3, b"": 4}


def test_unread_names_count_as_keys_without_pattern() -> None:
    made = counted([])
    made.add_unread([b"shop:session:" + b"7" * 70_000])
    report, naming = parts_of(made)
    assert report.unregistered_keys == 1
    assert {one.rule: one.keys for one in naming.rules}["name-huge"] == 1
