"""The Memory panel: what a policy means for the keys that there are, and figures that mean nothing said as such."""

from __future__ import annotations

from typing import Any

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.memory_panel import eviction, first_to_go, memory_panel
from rtui.analysis.health.panel import Line, value_text
from rtui.analysis.health.sample import Database, Missing, Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import KeySizes
from tests.made_report import made_report
from tests.made_sample import MIB, made_sample


def lines(*samples: Sample) -> dict[str, Line]:
    return {line.id: line for line in memory_panel(HealthView(samples)).lines}


@pytest.mark.parametrize(
    ("changed", "meaning", "candidates"),
    [
        ({}, "when memory is full keys go, those that nobody has used for longest first", 1_000_000),
        ({"maxmemory": 0}, "there is no maxmemory, so no key is ever evicted", 1_000_000),
        ({"maxmemory_policy": "noeviction"}, "commands that need more memory fail with OOM", 0),
        ({"maxmemory_policy": "volatile-ttl"}, "those that expire soonest first; 60% of the keys have none", 400_000),
        (
            {"maxmemory_policy": "volatile-lfu", "databases": {0: Database(70, 0)}},
            "no key has one, so nothing can be evicted and writes fail with OOM",
            0,
        ),
        ({"maxmemory_policy": None}, "", None),
        ({"maxmemory_policy": "allkeys-newest"}, "", 1_000_000),
    ],
)
def test_what_a_policy_means(changed: dict[str, Any], meaning: str, candidates: int | None) -> None:
    found = eviction(HealthView((made_sample(**changed),)))
    assert meaning in found.meaning
    assert bool(meaning) == bool(found.meaning)
    assert found.candidates == candidates


def test_which_namespaces_go_first_by_a_report() -> None:
    report = made_report()
    assert "not used for 90d" in first_to_go("allkeys-lru", report)
    assert "UTC on" in first_to_go("volatile-ttl", report)
    assert not first_to_go("allkeys-random", report)
    panel = memory_panel(HealthView((made_sample(),), report))
    assert any("first would go" in note for note in panel.notes)
    assert not any(
        "first would go" in note for note in memory_panel(HealthView((made_sample(maxmemory=0),), report)).notes
    )


def test_keys_that_are_not_told_are_not_none() -> None:
    missing = {Source.INFO_KEYSPACE: Missing(Reason.DENIED)}
    line = lines(made_sample(databases={}, missing=missing))["evictable_keys_share"]
    assert line.value == Unknown(Reason.DENIED)
    assert lines(made_sample(databases={}))["evictable_keys_share"].value is None


def test_fragmentation_of_a_small_dataset_is_said_to_mean_nothing() -> None:
    small = lines(made_sample(used_memory=800_000, mem_fragmentation_ratio=7.3))["mem_fragmentation_ratio"]
    assert small.said == "means nothing below 100 MiB used"
    assert not lines(made_sample())["mem_fragmentation_ratio"].said


def test_figures_of_an_allocator_that_tells_none_are_left_out() -> None:
    assert "allocator_frag_ratio" not in lines(made_sample(mem_allocator="libc"))
    assert "allocator_frag_ratio" in lines(made_sample())


def test_rates_and_histories_of_a_session() -> None:
    found = lines(*(made_sample(at * 2, evicted_keys=at * 10, used_memory=MIB * (at + 1)) for at in range(4)))
    assert (value_text(found["evicted_keys"]), found["evicted_keys"].history) == ("5/s", (5, 5, 5))
    assert found["used_memory"].history == tuple(MIB * (at + 1) for at in range(4))
    assert isinstance(lines(made_sample())["evicted_keys"].value, Unknown)


def test_tables_of_databases_parts_and_sizes() -> None:
    sizes = (KeySizes("distrib_strings_sizes", ((1, 7), (1024, 2))),)
    tables = {table.id: table for table in memory_panel(HealthView((made_sample(key_sizes=sizes),))).tables}
    assert tables["databases"].rows == ((0, 1_000_000, 400_000, 0.4, 3_600.0),)
    assert tables["memory_parts"].rows[0][0] == "data"
    assert len(tables["keysizes"].rows) == 2


def test_a_sample_without_anything_gives_a_panel_without_figures() -> None:
    panel = memory_panel(HealthView((Sample(0, "x"),)))
    assert all(line.value is None or isinstance(line.value, Unknown) for line in panel.lines)
    assert not panel.tables
