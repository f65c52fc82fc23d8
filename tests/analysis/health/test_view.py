"""Samples in order: what was told when, and what happened between two of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.sample import ClientFigures, CommandStats, Missing, OwnUse, Sample, Source, with_earlier
from rtui.analysis.health.view import HealthView, SampleSpan
from tests.made_sample import MIB, made_sample


def test_a_session_goes_back_to_the_last_restart_or_reset() -> None:
    counts = (50, 70, 10, 20, 45)
    view = HealthView(tuple(made_sample(at, total_commands_processed=count) for at, count in enumerate(counts)))
    assert view.session is not None
    assert (view.session.change("total_commands_processed"), view.session.seconds) == (35, 2)
    assert HealthView(view.samples[:1]).session is None
    assert HealthView(view.samples[:3]).session is None


def test_why_a_figure_is_not_there() -> None:
    denied = made_sample(missing={Source.INFO_STATS: Missing(Reason.DENIED, "NOPERM")}, keyspace_hits=None)
    assert HealthView((denied,)).cell("keyspace_hits", Source.INFO_STATS) == Unknown(Reason.DENIED, "NOPERM")
    old = HealthView((made_sample(allocator_frag_ratio=None),)).cell("allocator_frag_ratio", Source.INFO_MEMORY)
    assert isinstance(old, Unknown)
    assert old.reason is Reason.UNSUPPORTED
    bare = HealthView((made_sample(sources=()),)).cell("cluster_state", Source.CLUSTER_INFO)
    assert isinstance(bare, Unknown)
    assert bare.reason is Reason.NOT_ASKED


def test_settings_are_those_asked_last() -> None:
    asked = (made_sample(0, settings={"save": "3600 1"}), made_sample(1, settings={"save": ""}))
    view = HealthView((*asked, with_earlier(made_sample(2, sources=()), asked[1])))
    assert view.setting("save") == ""
    assert view.setting("appendonly") is None
    denied = made_sample(3, sources=(), missing={Source.SETTINGS: Missing(Reason.DENIED)})
    assert HealthView((*asked, denied)).setting("save") is None


def test_a_trend_takes_a_minute_and_one_run() -> None:
    growing = tuple(made_sample(20 * at, used_memory=100 * MIB + at * MIB) for at in range(9))
    assert HealthView(growing).trend("used_memory") == pytest.approx(MIB / 20)
    assert HealthView(growing[:3]).trend("used_memory") is None
    restarted = (*growing, made_sample(200, used_memory=MIB, run_id="f" * 40))
    assert HealthView(restarted).trend("used_memory") is None


def test_clients_that_were_listed_before_are_still_told() -> None:
    first = made_sample(0, clients=(ClientFigures(7, b"10.0.0.9:1"),))
    second = with_earlier(made_sample(5, sources=(Source.INFO_MEMORY,)), first)
    told = HealthView((replace(first, clients=()), second)).told(Source.CLIENTS)
    assert told is not None
    assert told.clients == first.clients


COUNTER: Final = "total_commands_processed"


def counted(*counts: int | None) -> list[Sample]:
    """A sample a second with these numbers of commands."""
    return [made_sample(at, total_commands_processed=count) for at, count in enumerate(counts)]


def rates(samples: list[Sample], name: str = COUNTER) -> list[float | None]:
    return [SampleSpan(*pair).rate(name) for pair in pairwise(samples)]


def test_the_example_of_the_module() -> None:
    assert rates(counted(1_000, 1_200, 40, 90)) == [200, None, 50]


def test_a_restart_is_recognised_by_the_run_though_more_has_been_counted_since() -> None:
    before = made_sample(0, total_commands_processed=5)
    after = made_sample(9, total_commands_processed=500, run_id="f" * 40)
    assert SampleSpan(before, after).rate(COUNTER) is None
    assert not SampleSpan(before, after).is_same_run


def test_without_a_run_id_the_uptime_tells() -> None:
    before, after = made_sample(0, run_id=None), made_sample(60, run_id=None, uptime_in_seconds=3)
    assert not SampleSpan(before, after).is_same_run
    assert SampleSpan(before, made_sample(60, run_id=None)).is_same_run


def test_a_reset_of_the_statistics_makes_all_of_them_unknown_but_not_what_it_leaves() -> None:
    before = made_sample(0, used_cpu_user=10.0, keyspace_hits=7)
    after = made_sample(2, used_cpu_user=11.0, keyspace_hits=9, total_commands_processed=3)
    span = SampleSpan(before, after)
    assert (span.rate("keyspace_hits"), span.commands, span.errors) == (None, None, None)
    assert span.rate("used_cpu_user") == pytest.approx(0.5)


def test_own_hits_and_commands_are_taken_out() -> None:
    before = made_sample(
        0, keyspace_hits=100, keyspace_misses=100, total_commands_processed=1_000, own=OwnUse(5, 50, 0)
    )
    after = made_sample(
        10, keyspace_hits=1_130, keyspace_misses=110, total_commands_processed=3_000, own=OwnUse(1_005, 1_050, 0)
    )
    span = SampleSpan(before, after)
    assert (span.change("keyspace_hits"), span.hit_ratio, span.rate(COUNTER)) == (30, 0.75, 100)


def test_a_missing_field_is_not_0() -> None:
    assert rates(counted(10, None, 30)) == [None, None]
    assert SampleSpan(*counted(5, 9)).rate(COUNTER, "no_such_counter") is None


def test_a_clock_that_was_set_back_gives_no_rate() -> None:
    assert (
        SampleSpan(made_sample(10, run_id="a"), made_sample(10, run_id="a", total_commands_processed=2_000_000)).rate(
            COUNTER
        )
        is None
    )


def test_commands_and_errors_of_the_time_between() -> None:
    before = made_sample(0, commands={"GET": CommandStats(10, 100, 0, 1)}, errors={"WRONGTYPE": 2})
    after = made_sample(
        1,
        commands={"GET": CommandStats(15, 180, 2, 1, {"99": 4.0}), "KEYS": CommandStats(1, 9_000)},
        errors={"WRONGTYPE": 2, "OOM": 3},
    )
    span = SampleSpan(before, after)
    assert span.commands == {"GET": CommandStats(5, 80, 2, 0), "KEYS": CommandStats(1, 9_000)}
    assert span.errors == {"WRONGTYPE": 0, "OOM": 3}


COUNTS: Final = st.integers(0, 2**63)


@given(
    st.lists(
        st.tuples(COUNTS, COUNTS | st.none(), st.integers(0, 1_000), st.sampled_from("ab")), min_size=2, max_size=9
    )
)
def test_whatever_comes_no_rate_is_negative(drawn: list[tuple[int, int | None, int, str]]) -> None:
    samples = [
        made_sample(
            at * 5, total_commands_processed=commands, keyspace_hits=hits, own=OwnUse(own, own, own), run_id=run
        )
        for at, (commands, hits, own, run) in enumerate(drawn)
    ]
    for before, after in pairwise(samples):
        span = SampleSpan(before, after)
        figures = [span.rate(COUNTER), span.change("keyspace_hits"), span.hit_ratio, span.rate("used_cpu_user")]
        assert all(one is None or one >= 0 for one in figures)


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_what_happened_in_all_spans_is_what_happened_in_the_whole(start: int, added: list[int]) -> None:
    totals = [start, *(start + sum(added[: at + 1]) for at in range(len(added)))]
    samples = counted(*totals)
    changes = [SampleSpan(*pair).change(COUNTER) for pair in pairwise(samples)]
    assert changes == added
    assert SampleSpan(samples[0], samples[-1]).change(COUNTER) == sum(added)


def test_another_server_at_the_address_is_no_restart() -> None:
    """As after a failover: it ran before the last sample of the one before it."""
    before = made_sample(0)
    restarted, other = (made_sample(60, run_id="f" * 40, uptime_in_seconds=uptime_s) for uptime_s in (61, 62))
    assert not SampleSpan(before, restarted).is_other_server
    assert SampleSpan(before, other).is_other_server
    assert not SampleSpan(before, made_sample(60)).is_other_server
