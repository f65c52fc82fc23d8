"""Figures that can't be: whatever a server says in whatever field, no output shows it as a figure."""

from __future__ import annotations

import json
import re
from typing import Any, Final, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.findings.server import server_health
from rtui.analysis.formats import written
from rtui.analysis.formats.health import health_json, health_page
from rtui.analysis.formats.openmetrics import health_metrics
from rtui.analysis.formats.samples import SamplesHeader, header_line, read_samples, sample_line
from rtui.analysis.health.fields import FIELDS, FieldUnit, InfoField
from rtui.analysis.health.panel import State
from rtui.analysis.health.possible import _OF_LISTS, _WORDS, range_of, with_possible
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import AtLeast, Unit
from rtui.server.health import info
from rtui.server.health.lists import parse_clients, parse_latency_latest, parse_slow_log, too_many
from tests.conftest import examples

NOW_MS: Final = 1_700_000_000_000
HOSTILE: Final = (
    *("-5", "-1", "-9223372036854775808", "18446744073709551615", "nan", "-nan", "inf", "1e400", "abc", "-0.5"),
    *("170.00", "250.5%", "99999999999999.99"),
)
FIGURES: Final = [one for one in FIELDS.values() if one.unit is not FieldUnit.TEXT]

USUAL: Final = """
used_memory=1000000 used_memory_startup=400000 used_memory_dataset=500000 maxmemory=4000000 role=master
connected_clients=3 maxclients=100 connected_slaves=1 repl_backlog_active=1 master_repl_offset=500
repl_backlog_size=1048576 latest_fork_usec=300 aof_enabled=1 rdb_last_save_time=1699999000 keyspace_hits=10
keyspace_misses=2 cluster_enabled=1 server_time_usec=1700000000000000 uptime_in_seconds=1000
total_commands_processed=700 used_cpu_user_main_thread=1.5 used_cpu_sys_main_thread=0.5 used_cpu_user=2.5
used_cpu_sys=1.0 total_reads_processed=10 io_threaded_reads_processed=5
"""
PLAIN: Final = {name: text for name, _, text in (one.partition("=") for one in USUAL.split())}


def parsed(at_ms: int, said: dict[str, str], **lists: Any) -> Sample:
    """A sample as the probe makes it of what a server says."""
    told: dict[str, Any] = {}
    impossible: dict[Source, dict[str, str]] = {}
    for source in (one for one in Source if one.startswith("INFO") or one is Source.CLUSTER_INFO):
        reply = "".join(f"{name}:{text}\r\n" for name, text in said.items() if FIELDS[name].source is source).encode()
        told |= info.parse_fields(source, reply)
        if unreadable := info.unreadable_fields(source, reply):
            impossible[source] = unreadable
    return with_possible(
        Sample(at_ms=at_ms, node="a:1", info=told, impossible=impossible, sources=tuple(Source), **lists)
    )


def outputs(view: HealthView) -> tuple[str, ...]:
    """All files of a server."""
    pages = (written(health_page([view]), form) for form in ("text", "md", "html"))
    return *pages, health_json([view]), health_metrics([view])


def check(view: HealthView) -> None:
    """No figure of any panel, table or file can't be."""
    for panel in server_health(view).panels:
        for line in panel.lines:
            assert not isinstance(line.value, float | int) or 0 <= line.value < 10**19, line
            assert all(one is None or one >= 0 for one in line.history), line
            if line.unit is Unit.SHARE and isinstance(line.value, float | int) and line.id != "cpu":
                assert line.value <= 1, line
        for table in panel.tables:
            for row in table.rows:
                for cell, column in zip(row, table.columns, strict=True):
                    number = cell.value if isinstance(cell, AtLeast) else cell
                    if isinstance(number, int | float):
                        assert 0 <= number < 10**19, (table.id, column.id, cell)
                        assert column.unit is not Unit.SHARE or number <= 1, (table.id, column.id, cell)
    text, *_, written, metrics = outputs(view)
    assert not re.search(r"(?<![\w.(])-\d|\b(?:nan|inf)\b", re.sub(r"says\s+\S+", "", figures_of(text)))
    for node in json.loads(written)["nodes"]:
        for figure in (one for panel in node["panels"] for one in panel["figures"]):
            assert not isinstance(figure["value"], int | float) or figure["value"] >= 0
    for metric in metrics.splitlines():
        name, _, value = metric.rpartition(" ")
        assert metric.startswith("#") or 0 <= float(value) < 10**19 or name.split("{")[0] in DIFFERENCES, metric


DIFFERENCES: Final = frozenset(
    {
        "redis_allocator_frag_bytes",
        "redis_allocator_rss_bytes",
        "rtui_rss_overhead_bytes",
        "redis_mem_fragmentation_bytes",
    }
)
"""Metrics that may be below 0."""


def figures_of(text: str) -> str:
    """What a text says of figures, without what is normal and what it means."""
    return "\n".join(
        line.partition("normal:")[0][:58] for line in text.splitlines() if re.match(r"  \S.*\S {2,}\S", line)
    )


def views(said: dict[str, str], **lists: Any) -> HealthView:
    """A server that says something else than a second before."""
    return HealthView((parsed(NOW_MS - 1_000, dict(PLAIN)), parsed(NOW_MS, {**PLAIN, **said}, **lists)))


@pytest.mark.parametrize("said", HOSTILE)
def test_no_field_of_info_is_shown_where_it_can_not_be(said: str) -> None:
    for field in FIGURES:
        view = views({field.name: said})
        value = view.number(field.name)
        if value is not None:
            assert value in range_of(field)
            continue
        why = view.cell(field.name, field.source)
        assert isinstance(why, Unknown)
        assert why.reason is Reason.IMPOSSIBLE
        heard = why.detail.removeprefix("the server says ")
        assert heard == said or float(heard) == float(said.rstrip("%"))
    check(views({one.name: said for one in FIGURES}))


@settings(max_examples=examples(40), deadline=None)
@given(st.dictionaries(st.sampled_from([one.name for one in FIGURES]), st.sampled_from(HOSTILE), max_size=12))
def test_several_at_once(said: dict[str, str]) -> None:
    check(views(said))


@pytest.mark.parametrize("ahead_s", [60, 86_400, 10**9])
@pytest.mark.parametrize("field", [one for one in FIGURES if one.unit is FieldUnit.TIME], ids=lambda one: one.name)
def test_a_moment_that_is_to_come_by_the_servers_own_clock(field: InfoField, ahead_s: int) -> None:
    view = views({field.name: str(NOW_MS // 1000 + ahead_s)})
    assert view.number(field.name) is None
    assert "the server says" in str(view.cell(field.name, field.source))
    moment_s = NOW_MS // 1000 + ahead_s
    skewed = views({field.name: str(moment_s), "server_time_usec": f"{moment_s + 9}000000"})
    assert skewed.number(field.name) == moment_s or ahead_s == 10**9
    check(skewed)


def test_every_number_of_every_list_has_a_range() -> None:
    for kind, ranges in _OF_LISTS.items():
        numbers = {one.name for one in fields(kind) if {int, float} & {one.type, *get_args(one.type)}}
        assert numbers - ranges.keys() == set(), kind


NUMBERS: Final = st.sampled_from([-(2**63), -5, -1, 0, 3, 10**6, 2**64 - 1, 10**29])


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_no_list_shows_what_can_not_be(data: st.DataObject) -> None:
    def n() -> int:
        return data.draw(NUMBERS)

    def number() -> str:
        return str(n())

    clients = "".join(
        f"id={number()} addr=1.1.1.1:{at} age={number()} idle={number()} db={number()} sub={number()} qbuf={number()} "
        f"omem={number()} tot-mem={number()} cmd=keys flags=N\n"
        for at in range(3)
    )
    replication = f"slave0:ip=a,port=1,state=online,offset={number()},lag={number()}\r\n".encode()
    lists = {
        "databases": info.parse_databases(f"db0:keys={number()},expires={number()},avg_ttl={number()}".encode()),
        "commands": info.parse_commands(
            f"cmdstat_get:calls={number()},usec={number()},rejected_calls={number()},failed_calls={number()}".encode()
        ),
        "errors": info.parse_errors(f"errorstat_ERR:count={number()}".encode()),
        "replicas": info.parse_replicas(replication),
        "clients": parse_clients(clients.encode()),
        "slow": parse_slow_log([[n(), n(), n(), [b"GET", b"k"], b"1.1.1.1:1", b"", n()]]),
        "latency": parse_latency_latest([[b"fork", n(), n(), n()]]),
    }
    view = views({}, **lists)
    check(view)
    header = SamplesHeader(began_ms=NOW_MS, server="a:1")
    lines = [header_line(header).encode(), sample_line(view.latest, header).encode()]
    (again,) = read_samples(lines).nodes.values()
    assert again[-1].databases == view.latest.databases
    assert again[-1].impossible == view.latest.impossible


def test_what_is_left_out_of_tables_is_said() -> None:
    view = views({}, databases=info.parse_databases(b"db0:keys=-7,expires=0\r\ndb1:keys=5,expires=9"))
    (note,) = next(one for one in server_health(view).panels if one.id == "memory").notes[-1:]
    assert note == "INFO keyspace: db0 keys is unknown (the server says -7), db1 expires is unknown (the server says 9)"


def test_what_means_never_is_no_nonsense() -> None:
    view = views({"role": "slave", "master_last_io_seconds_ago": "-1", "master_link_down_since_seconds": "-1"})
    assert re.search(r"last contact with primary +never", written(health_page([view]), "text"))
    assert "-1" not in health_metrics([view])


@pytest.mark.parametrize("said", [*HOSTILE, "OK", "okay", "\x1b[2J"])
@pytest.mark.parametrize("name", _WORDS)
def test_a_status_that_is_no_known_word_is_neither_good_nor_bad(name: str, said: str) -> None:
    role = {"role": "slave"} if name.startswith("master") else {"cluster_enabled": "1"}
    view = views({**role, name: said})
    assert view.text(name) == ""
    assert isinstance(view.cell(name, FIELDS[name].source), Unknown)
    health = server_health(view)
    rules = {"master_link_status": "replication-broken", "cluster_state": "cluster-failing"}
    rule = rules.get(name, "persistence-failing")
    assert rule not in [one.rule for one in health.found.findings]
    assert name.startswith("aof") or rule in [one.rule for one in health.found.unjudged]


def test_a_lag_of_replicas_that_are_not_listed_is_not_normal() -> None:
    (replication,) = (
        one for one in server_health(views({"connected_slaves": "250"})).panels if one.id == "replication"
    )
    (lag,) = (line for line in replication.lines if line.id == "replica_lag")
    assert isinstance(lag.value, Unknown)
    assert lag.state is State.UNKNOWN


def test_a_number_of_clients_that_can_not_be_is_not_told() -> None:
    for connected in (-3, 10**29, None):
        assert too_many(connected).detail == "INFO does not say how many clients are connected"
    assert "1,500 clients are connected" in too_many(1_500).detail


def test_a_text_says_what_the_server_says() -> None:
    view = views({"used_memory": "-5", "latest_fork_usec": "nan", "mem_fragmentation_ratio": "inf"})
    text = written(health_page([view]), "text")
    for said in ("-5", "nan", "inf"):
        assert f"the server says {said}" in text
