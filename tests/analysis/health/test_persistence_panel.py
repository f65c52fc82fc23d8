"""The Persistence panel: what a fork costs or would cost, and how far the child is that writes just now."""

from __future__ import annotations

from rtui.analysis.health.durability_panels import persistence_panel
from rtui.analysis.health.panel import Line
from rtui.analysis.health.sample import Sample
from rtui.analysis.health.view import HealthView
from tests.made_sample import GIB, MIB, made_sample


def lines(sample: Sample) -> dict[str, Line]:
    return {line.id: line for line in persistence_panel(HealthView((sample,))).lines}


def test_what_a_stall_would_look_like_here() -> None:
    none_yet = lines(made_sample(latest_fork_usec=0, used_memory=20 * GIB))["latest_fork"]
    assert none_yet.said == "none so far; with 20.0 GiB used it would usually be 180ms to 260ms"
    was = lines(made_sample(latest_fork_usec=40_000, used_memory=2 * GIB))
    assert was["latest_fork"].said == "with 2.00 GiB used; nobody is answered meanwhile"
    assert was["fork_per_gib"].value == 0.02


def test_a_child_that_writes_just_now() -> None:
    at_work = {"rdb_bgsave_in_progress": 1, "current_fork_perc": 42.5, "current_cow_size": 3 * MIB}
    said = lines(made_sample(**at_work))["rdb_bgsave_in_progress"].said
    assert said == "the child is 42% through, 3.00 MiB copied on write so far"
    assert lines(made_sample())["rdb_bgsave_in_progress"].said == ""
    assert lines(made_sample(rdb_bgsave_in_progress=1))["rdb_bgsave_in_progress"].said == ""


def test_nothing_that_is_saved_is_said() -> None:
    panel = persistence_panel(HealthView((made_sample(settings={"save": ""}, aof_enabled=0),)))
    assert panel.notes == ("nothing is saved: there is neither a schedule for RDB nor an AOF",)
