"""The samples of one server together: how far back counters go on, what is missing and why, where memory is heading."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.sample import ClientFigures, Missing, Source, with_earlier
from rtui.analysis.health.view import HealthView
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
