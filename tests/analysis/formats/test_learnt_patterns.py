"""The draft of a registry: it loads without a word, and every key that it was drawn from has one of its patterns."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.formats.learnt_patterns import (
    LearntPatterns,
    learnt_patterns,
    patterns_table,
    write_patterns_json,
    write_registry,
)
from rtui.analysis.formats.text import table_text
from rtui.analysis.report.document import Coverage, CoverageKind, Head, Report, Scope, ServerReport
from rtui.demo.keyspaces import write_groups
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.registry.expectations import NO_TTL, FoundKey, breaches_of
from rtui.registry.load import read_registry
from rtui.registry.registry import Registry
from rtui.server.inspection.tables import InspectedBatch
from rtui.table.aggregates import Aggregates
from tests.grammar import Grammar
from tests.registry.test_shipped import found_in
from tests.table.naive import add_batch

Keys = Mapping[bytes, FoundKey]


def report_of(keys: Keys, separators: Sequence[bytes] = (b":",), budget: int = 4096) -> Report:
    scope = Scope(separators=tuple(separators))
    found = Aggregates(Separators(separators), scope=scope, started_at_s=0.0, node_budget=budget)
    by_type = defaultdict[bytes, list[bytes]](list)
    for key, facts in keys.items():
        by_type[facts.type or b"string"].append(key)
    for key_type, names in by_type.items():
        for start in range(0, len(names), 500):
            some = names[start : start + 500]
            ttl_ms = [NO_TTL if keys[one].ttl_ms is None else keys[one].ttl_ms or 0 for one in some]
            add_batch(
                found, InspectedBatch(key_type, some, ttl_ms, [keys[one].memory_bytes or 64 for one in some]), 1.0
            )
    head = Head(1.0, ServerReport("test:6379"), scope, Coverage(CoverageKind.EXACT, len(keys), fraction=1.0))
    return Report(head, finish(found.summary()))


def drafted(report: Report, most_names: int = 32) -> tuple[LearntPatterns, Registry]:
    """What is learnt, and the registry that is read of its draft, which has nothing wrong with it."""
    learnt = learnt_patterns(report.summary.root, report.head.scope.separators, most_names)
    registry = read_registry(write_registry(report.head, learnt))
    assert [str(one) for one in registry.warnings] == []
    assert [entry.pattern.text for entry in registry.entries] == [one.pattern.text for one in learnt.patterns]
    assert sum(one.keys for one in learnt.patterns) + learnt.without == learnt.keys
    return learnt, registry


def strings(*names: bytes) -> dict[bytes, FoundKey]:
    return {name: FoundKey(b"string", NO_TTL) for name in names}


def texts(keys: Keys, separators: Sequence[bytes] = (b":",)) -> list[str]:
    learnt, registry = drafted(report_of(keys, separators))
    assert -1 not in registry.matcher.match_page(list(keys))
    return [one.pattern.text for one in learnt.patterns]


def names_of(seed: int, count: int) -> dict[bytes, FoundKey]:
    """So many keys of real naming, most of them of few patterns."""
    patterns = Grammar(seed, 40).patterns
    rng = Random(seed)
    drawn = rng.choices(patterns, [1 / rank for rank in range(1, len(patterns) + 1)], k=count)
    return {
        one.name(rng): FoundKey(one.key_type.encode(), rng.choice((NO_TTL, 5_000)), rng.randrange(40, 9_000))
        for one in drawn
    }


@settings(deadline=None, max_examples=3)
@given(
    st.integers(0, 2**32),
    st.sampled_from([(b":",), (b":", b"/"), (b"-",), (b".", b":", b"_")]),
    st.sampled_from([(4096, 32), (30, 4)]),
    st.just(400),
)
@example(0, (b"-",), (4096, 32), 600)
def test_every_key_of_a_keyspace_has_a_pattern_of_its_draft(
    seed: int, separators: Sequence[bytes], limits: tuple[int, int], count: int
) -> None:
    budget, most_names = limits
    keys = names_of(seed, count)
    _, registry = drafted(report_of(keys, separators, budget), most_names)
    assert [key for key in keys if registry.matcher.match(key) is None] == []


CROWD: Final = [bytes([97 + at % 26, 97 + at // 26]) for at in range(200)]


@pytest.mark.parametrize(
    ("form", "separators", "pattern"),
    [
        (b"catalog:inbox:182:upload:{%s-27ef-4967-a6bf}", (b"-",), "<**>"),
        (b"{user-%s}-cart", (b"-",), "{<**>}-cart"),
        (b"catalog|cardRate|{7lu_CFbdPcJ8wWqbXR%s}", (b".", b":", b"_"), "<**>"),
        (b"batch:{2020-08-%s}", (b"-",), "<**>"),
        (b"batch-order:{2020-%s}-x", (b"-",), "batch-<**>-x"),
        (b"{%s}:x", (b":",), "<name>:x"),
    ],
)
def test_a_hash_tag_may_hold_separators(form: bytes, separators: Sequence[bytes], pattern: str) -> None:
    assert texts(strings(*(form % name for name in CROWD)), separators) == [pattern]


def test_single_keys_may_have_hash_tags_that_hold_separators() -> None:
    some = CROWD[:100]
    keys = strings(*(b"queue:{jobs:%s}" % name for name in some), *(b"lock:x{jobs:%s}" % name for name in some))
    assert texts(keys) == ["lock:<**>", "queue:{<**>}"]


def test_empty_segments_are_not_among_names() -> None:
    """Whether names beside them are merged since they are light, by the budget, or as single keys of a draft."""
    separators = (b".", b":", b"_")
    keys = strings(*(b"%s:1:%s_28" % (name, name) for name in CROWD), b":1:state_28", b":1:app_663662403")
    for budget, most_names in ((4096, 32), (30, 4), (2, 4)):
        learnt, registry = drafted(report_of(keys, separators, budget), most_names)
        assert -1 not in registry.matcher.match_page(list(keys))
    keys = strings(b"app:", b"app::x", *(b"app:%s" % name for name in CROWD), *(b"app:%s:x" % name for name in CROWD))
    for budget in (4096, 30, 2):
        learnt, registry = drafted(report_of(keys, budget=budget), 4)
        assert -1 not in registry.matcher.match_page(list(keys))
        assert learnt.without == 0


@pytest.mark.slow
def test_the_draft_of_the_sample_keyspaces_is_kept_by_all_of_their_keys() -> None:
    keys = found_in(write_groups(6_000, 1))
    keys = {key: facts._replace(memory_bytes=64 + (facts.length or 0), length=None) for key, facts in keys.items()}
    learnt, registry = drafted(report_of(keys))
    broken = {}
    for key, index in zip(keys, registry.matcher.match_page(list(keys)), strict=True):
        if index < 0:
            broken[key] = "no pattern"
        elif mask := registry.entries[index].expectations.broken(keys[key]):
            broken[key] = str(breaches_of(mask))
    assert all(not 0 < len(key) <= 4_096 for key in broken), broken
    assert learnt.without >= 1


def test_placeholders_have_the_form_of_what_they_stand_for() -> None:
    uuid = b"7c9e6679-7425-40de-944b-e07fc1f90ae7"
    digest = b"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    keys = strings(
        *(b"user:%d:orders:%d" % (number, number) for number in range(60)),
        *(b"job:%s:task:%s" % (uuid, b"%d" % number + uuid[2:]) for number in range(10, 20)),
        *(b"page:%d%s" % (number, digest[2:]) for number in range(10, 20)),
        *(b"rate:2001:db8::%d:login" % number for number in range(10)),
        *(b"rank_daily_%d" % number for number in range(300)),
        *(b"{tag%d}:x" % (10**6 + number) for number in range(20)),
        *(b"mail:ann%d@example.com" % number for number in range(10)),
    )
    assert texts(keys) == [
        "job:<uuid>:task:<uuid2>", "mail:<email>", "page:<hex>", "rank_daily_<n>", "rate:<ip>:login",
        "user:<id>:orders:<id2>", "{<id>}:x",
    ]  # fmt: skip
    assert texts(strings(b"ip:999.1.1.1", b"ip:10.0.0.1", b"at:x@y_z.com")) == ["at:<address>", "ip:<address>"]


def test_a_version_that_all_keys_have_is_a_word() -> None:
    names = [b":1:product:%d" % number for number in range(30)]
    assert texts(strings(*names)) == [":1:product:<id>"]
    assert texts(strings(*names, b":2:product:7")) == [":<id>:product:<id2>"]
    assert texts(strings(*(b"7:cart:%d" % number for number in range(30)))) == ["7:cart:<id>"]
    assert texts(strings(*(b"user:7:cart:%d" % number for number in range(30)))) == ["user:<id>:cart:<id2>"]


def test_what_is_equally_specific_is_told_apart() -> None:
    keys = strings(
        *(b"user:%d:cart" % number for number in range(20)), *(b"user:index:%d" % number for number in range(20))
    )
    _, registry = drafted(report_of(keys))
    assert [entry.pattern.text for entry in registry.entries] == ["user:<id>:cart", "user:index:<id>"]
    assert registry.matcher.match(b"user:index:cart") == 1


def test_names_that_are_hard_to_write_are_as_they_were() -> None:
    names = (
        b"a b",
        b'say "x"',
        b"it's\\n",
        b"\x1b[31m\xff",
        b"x:",
        b":x",
        b"<id>",
        b"{a:<id>}:7",
        "é☕".encode(),
        b'"q"',
    )
    assert len(texts(strings(*names))) == len(names)
    learnt, _ = drafted(report_of(strings(b"", b"a" * 20)))
    assert learnt.without == 1


def test_names_too_long_to_be_asked_about_get_no_pattern() -> None:
    scope = Scope(separators=(b":",))
    found = Aggregates(Separators((b":",)), scope=scope, started_at_s=0.0)
    add_batch(found, InspectedBatch(b"string", [b"page:home"], [NO_TTL], [64]), 1.0)
    add_batch(found, InspectedBatch(None, [b"page:denied:10001"]), 1.0)
    found.add_unread([b"page:".ljust(100_000, b"n")])
    head = Head(1.0, ServerReport("test:6379"), scope, Coverage(CoverageKind.EXACT, 2, fraction=1.0, unread=1))
    learnt, _ = drafted(Report(head, finish(found.summary())))
    assert [one.pattern.text for one in learnt.patterns] == ["page:denied:<id>", "page:home"]
    assert learnt.without == 1


def test_many_single_keys_are_one_pattern() -> None:
    keys = strings(*(b"config:" + bytes([97 + at // 26, 97 + at % 26]) for at in range(40)), b"app:on", b"app:off")
    assert texts(keys) == ["app:off", "app:on", "config:<name>"]


@pytest.mark.parametrize(
    ("ttl_s", "keys", "expected"),
    [
        ([], 5, "none"),
        ([1_799] * 30, 0, "<=30m"),
        ([1_800] * 30, 3, "none|<=30m"),
        ([100], 0, "<=5m"),
        ([3 * 365 * 86_400 - 5] * 30, 0, "<=1095d"),
    ],
)
def test_times_to_live_have_room_to_grow(ttl_s: list[int], keys: int, expected: str) -> None:
    facts = [FoundKey(b"hash", 1_000 * one, 100) for one in ttl_s] + [FoundKey(b"hash", NO_TTL, 100)] * keys
    _, registry = drafted(report_of({b"k:%d" % at: one for at, one in enumerate(facts)}))
    (entry,) = registry.entries
    expectations = entry.expectations
    assert (expectations.types, expectations.size_text) == ((b"hash",), "<=256")
    assert expectations.ttl is not None
    assert expectations.ttl.text == expected


def test_as_a_table_and_as_data() -> None:
    keys = names_of(3, 300)
    report = report_of(keys)
    learnt, _ = drafted(report)
    data = json.loads(write_patterns_json(report.head, learnt))
    assert sum(one["keys"] for one in data["patterns"]) == data["keys"] == len(keys)
    text = table_text(patterns_table(report.head, learnt), width=80)
    assert all(one["pattern"][:10] in text for one in data["patterns"][:5])
    assert max(map(len, text.splitlines())) <= 80
