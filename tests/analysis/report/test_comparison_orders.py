"""The same keys in another order fold into other patterns: that is no change."""

from __future__ import annotations

import time
from random import Random

import pytest
from msgspec.structs import replace

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.report.comparison import Fate, compare
from rtui.analysis.report.document import Coverage, CoverageKind, Report, Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from tests.analysis.report.test_comparison import report
from tests.made_report import made_report, node

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
        found.add(InspectedBatch(b"string", some, ttl_ms, [len(key) * 10 for key in some]), 1.0)
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
