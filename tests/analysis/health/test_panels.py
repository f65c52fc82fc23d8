"""Panels of a server, and samples in order: what was told when, and what happened between two of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.durability_panels import needed_sentinels, persistence_panel, quorum_of, replication_panel
from rtui.analysis.health.memory_panel import eviction, first_to_go, memory_panel
from rtui.analysis.health.panel import LEAST_NODES, OUTLIER, Line, nodes_table, value_text
from rtui.analysis.health.sample import (
    ClientFigures,
    CommandStats,
    Database,
    LatencyEvent,
    LoggedCommand,
    Missing,
    OwnUse,
    Peer,
    Replica,
    Sample,
    SentinelView,
    Source,
    with_earlier,
)
from rtui.analysis.health.settings import SETTINGS
from rtui.analysis.health.slow_panel import NameFolding, first_key, grouped, slow_panel
from rtui.analysis.health.view import HealthView, SampleSpan
from rtui.analysis.report.document import KeySizes
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.server.guard.closed_list import SETTINGS as ASKED
from tests.made_report import MADE_AT_S, made_report
from tests.made_sample import GIB, MIB, made_sample


def lines(*samples: Sample) -> dict[str, Line]:
    return {line.id: line for line in memory_panel(HealthView(samples)).lines}


@pytest.mark.parametrize(
    ("changed", "meaning", "candidates"),
    [
        ({}, "when memory is full, keys are evicted, least recently used first", 1_000_000),
        ({"maxmemory": 0}, "maxmemory is not set, so no key is ever evicted", 1_000_000),
        ({"maxmemory_policy": "noeviction"}, "commands that need more memory fail with OOM", 0),
        ({"maxmemory_policy": "volatile-ttl"}, "soonest to expire first; 60% of the keys have no TTL", 400_000),
        (
            {"maxmemory_policy": "volatile-lfu", "databases": {0: Database(70, 0)}},
            "no key has a TTL, so nothing can be evicted and writes fail with OOM",
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
    assert "idle for 90d" in first_to_go("allkeys-lru", report)
    assert "expiring from" in first_to_go("volatile-ttl", report)
    assert not first_to_go("allkeys-random", report)
    panel = memory_panel(HealthView((made_sample(),), report))
    assert any("first to be evicted" in note for note in panel.notes)
    assert not any(
        "first to be evicted" in note for note in memory_panel(HealthView((made_sample(maxmemory=0),), report)).notes
    )


def test_keys_that_are_not_told_are_not_none() -> None:
    missing = {Source.INFO_KEYSPACE: Missing(Reason.DENIED)}
    line = lines(made_sample(databases={}, missing=missing))["evictable_keys_share"]
    assert line.value == Unknown(Reason.DENIED)
    assert lines(made_sample(databases={}))["evictable_keys_share"].value is None


def test_fragmentation_of_a_small_dataset_is_said_to_mean_nothing() -> None:
    small = lines(made_sample(used_memory=800_000, mem_fragmentation_ratio=7.3))["mem_fragmentation_ratio"]
    assert small.said == "not meaningful below 100 MiB used"
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
    assert tables["memory_parts"].rows[0][0] == "dataset"
    assert len(tables["keysizes"].rows) == 2


def test_a_sample_without_anything_gives_a_panel_without_figures() -> None:
    panel = memory_panel(HealthView((Sample(0, "x"),)))
    assert all(line.value is None or isinstance(line.value, Unknown) for line in panel.lines)
    assert not panel.tables


AT_S = int(MADE_AT_S)
HOSTILE = b"\x1b]0;x\x07[bold]\xff"


def tables(sample: Sample) -> dict[str, Table]:
    return {table.id: table for table in slow_panel(HealthView((sample,))).tables}


def test_entries_one_by_one() -> None:
    entries = (
        LoggedCommand(9, AT_S, 20_000, (b"SADD", b"tags", b"a", b"... (497 more arguments)"), argument_count=500),
        LoggedCommand(8, AT_S - 5, 11_000, (b"SET", HOSTILE, b""), b"10.0.0.9:7", b"shop"),
    )
    found = tables(made_sample(slow=entries))["slow_entries"]
    first, second = found.rows
    assert first == (AT_S, 0.02, "SADD tags a ... (497 more arguments)", 500, "", 9)
    assert (second[0], second[3], second[5]) == (AT_S - 5, None, 8)
    assert "\x1b" not in str(second[2])
    assert str(second[2]).endswith('""')
    assert str(second[4]).startswith("shop 10.0.0.9:7")
    assert found.subjects == (b"tags", HOSTILE)


def test_sizes_of_large_replies() -> None:
    entries = (LoggedCommand(1, AT_S, 5_000_000, (b"GET", b"page")),)
    found = tables(made_sample(large_replies=entries))["large_replies_entries"]
    assert found.rows[0][found.column("amount")] == 5_000_000


def test_events_one_by_one_and_those_whose_history_is_not_known() -> None:
    events = (
        LatencyEvent("command", AT_S, 12, 40, ((AT_S - 60, 40), (AT_S, 12))),
        LatencyEvent("fork", AT_S - 30, 9, 9),
    )
    found = tables(made_sample(latency=events))
    assert found["latency"].rows == (("command", 0.012, 0.04, 2, AT_S), ("fork", 0.009, 0.009, None, AT_S - 30))
    assert found["latency_history"].rows == ((AT_S, "command", 0.012), (AT_S - 60, "command", 0.04))


def test_many_events_are_not_all_listed() -> None:
    history = tuple((AT_S - 300 + at, 1) for at in range(250))
    found = tables(made_sample(latency=(LatencyEvent("command", AT_S, 1, 1, history),)))["latency_history"]
    assert (len(found.rows), found.note) == (200, "The latest 200 of 250.")


def entry(*argv: bytes, amount: int = 10, own: bool = False) -> LoggedCommand:
    return LoggedCommand(1, 1, amount, argv, is_own=own)


@pytest.mark.parametrize(
    ("argv", "key"),
    [
        ((b"get", b"a"), b"a"),
        ((b"MSET", b"a", b"1", b"b", b"2"), b"a"),
        ((b"EVALSHA", b"abc", b"2", b"a", b"b"), b"a"),
        ((b"EVAL", b"return 1", b"0"), None),
        ((b"FCALL", b"f"), None),
        ((b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", b"a", b">"), b"a"),
        ((b"XREAD", b"COUNT", b"2"), None),
        ((b"MEMORY", b"USAGE", b"a"), b"a"),
        ((b"ZUNION", b"2", b"a", b"b"), b"a"),
        ((b"BITOP", b"AND", b"to", b"a"), b"to"),
        ((b"KEYS", b"shop:*"), None),
        ((b"FT.SEARCH", b"index"), None),
        ((b"JSON.GET", b"a"), b"a"),
        ((b"GET",), None),
        ((), None),
    ],
)
def test_the_first_key(argv: tuple[bytes, ...], key: bytes | None) -> None:
    assert first_key(entry(*argv)) == key


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        (b"shop:user:42:cart", b"shop:user:<id>:cart"),
        (b"shop:user:" + b"x" * 99 + b"... (30 more bytes)", b"shop:user:"),
        (b"plain", b"plain"),
        (b"", b"<>"),
    ],
)
def test_names_fold_as_in_a_report(key: bytes, pattern: bytes) -> None:
    assert NameFolding().pattern(key) == pattern


def test_groups_are_ordered_by_all_that_they_took_and_ours_stand_apart() -> None:
    entries = [entry(b"GET", b"a:1", amount=30), entry(b"SET", b"a:1"), entry(b"get", b"a:2", amount=5)]
    first, second, third = grouped([*entries, entry(b"GET", b"a:3", amount=9, own=True)], NameFolding())
    assert (first.command, first.pattern, first.total, len(first.entries)) == ("GET", b"a:<id>", 35, 2)
    assert first.largest is entries[0]
    assert [(one.command, one.is_own) for one in (second, third)] == [("SET", False), ("GET", True)]


@given(
    st.lists(
        st.lists(st.binary(max_size=12) | st.sampled_from([b"EVAL", b"XREAD", b"GET", b"9"]), max_size=5), max_size=5
    )
)
def test_any_entries_are_grouped(argvs: list[list[bytes]]) -> None:
    entries = [entry(*argv) for argv in argvs]
    assert sum(len(group.entries) for group in grouped(entries, NameFolding())) == len(entries)


def test_every_setting_that_is_asked_is_explained() -> None:
    assert set(SETTINGS) == set(ASKED)


def test_defaults_are_those_of_the_version() -> None:
    valkey = Sample(0, "x", info={"redis_version": "7.2.4", "valkey_version": "9.1.2"})
    redis, old = (Sample(0, "x", info={"redis_version": version}) for version in ("8.0.2", "6.2.14"))
    backlog, diskless = SETTINGS["repl-backlog-size"], SETTINGS["repl-diskless-sync"]
    assert [backlog.default_of(one) for one in (valkey, redis, old)] == ["10485760", "1048576", "1048576"]
    assert [diskless.default_of(one) for one in (valkey, redis, old)] == ["yes", "yes", "no"]


def persistence_lines(sample: Sample) -> dict[str, Line]:
    return {line.id: line for line in persistence_panel(HealthView((sample,))).lines}


def test_what_a_stall_would_look_like_here() -> None:
    none_yet = persistence_lines(made_sample(latest_fork_usec=0, used_memory=20 * GIB))["latest_fork"]
    assert none_yet.said == "none so far; with 20.0 GiB used, expect 180ms to 260ms"
    was = persistence_lines(made_sample(latest_fork_usec=40_000, used_memory=2 * GIB))
    assert was["latest_fork"].said == "with 2.00 GiB used; all clients wait during a fork"
    assert was["fork_per_gib"].value == 0.02


def test_a_child_that_writes_just_now() -> None:
    at_work = {"rdb_bgsave_in_progress": 1, "current_fork_perc": 42.5, "current_cow_size": 3 * MIB}
    said = persistence_lines(made_sample(**at_work))["rdb_bgsave_in_progress"].said
    assert said == "42% done, 3.00 MiB of copy-on-write so far"
    assert persistence_lines(made_sample())["rdb_bgsave_in_progress"].said == ""
    assert persistence_lines(made_sample(rdb_bgsave_in_progress=1))["rdb_bgsave_in_progress"].said == ""


def test_nothing_that_is_saved_is_said() -> None:
    panel = persistence_panel(HealthView((made_sample(settings={"save": ""}, aof_enabled=0),)))
    assert panel.notes == ("Persistence is off: no RDB schedule (save) and no AOF (appendonly)",)


OTHER = "f" * 40


def replication_lines(*samples: Sample) -> dict[str, Line]:
    return {line.id: line for line in replication_panel(HealthView(samples)).lines}


def role(*changes: dict[str, Any]) -> str:
    """What is said of the role after samples with these changes."""
    return str(replication_lines(*(made_sample(30 * at, **changed) for at, changed in enumerate(changes)))["role"].said)


def test_what_has_changed() -> None:
    primary: dict[str, Any] = {"role": "master"}
    replica: dict[str, Any] = {"role": "slave", "master_host": "10.0.0.7", "master_port": 6379}
    assert role(primary, primary) == ""
    assert role(primary, replica).startswith("primary until 2")
    assert role(replica, primary).startswith("replica until 2")
    assert role(replica, {**replica, "master_host": "10.0.0.8"}).startswith("followed 10.0.0.7:6379 until 2")
    assert role(primary, {**primary, "run_id": OTHER}).startswith("a different server since 2")
    assert role(primary, {**primary, "run_id": OTHER, "uptime_in_seconds": 9}) == ""
    assert role(primary, replica, primary).count(" until ") == 2
    assert role({"role": None}, primary) == ""


def test_bytes_that_are_not_acknowledged() -> None:
    behind: dict[str, Any] = {
        "connected_slaves": 2,
        "replicas": (Replica(b"a", "online", MIB, 0), Replica(b"b", "online", 3 * MIB, 1)),
    }
    first, last = (made_sample(30 * at, master_repl_offset=(1 + 3 * at) * MIB, **behind) for at in range(2))
    assert "replica_behind" not in replication_lines(made_sample())
    line = replication_lines(first, last)["replica_behind"]
    assert (line.value, line.said) == (3 * MIB, "30s at the current write rate")
    assert list(line.history) == [0, 3 * MIB]


def test_a_replica_whose_offset_is_not_told() -> None:
    sample = made_sample(connected_slaves=1, replicas=(Replica(b"a", "wait_bgsave"),))
    assert isinstance(replication_lines(sample)["replica_behind"].value, Unknown)


def test_primaries_that_have_a_say() -> None:
    peers = (
        Peer(b"a", slots=5_000, is_self=True),
        Peer(b"b", slots=5_000),
        Peer(b"c", slots=6_384, state="down"),
        Peer(b"d", is_replica=True, is_linked=False),
        Peer(b"e"),
    )
    found = quorum_of(made_sample(peers=peers))
    assert (found.reached, found.primaries) == (2, 3)
    assert found.words == "2 of 3 primaries with slots are reachable; a failover needs 2 of them"
    assert replication_lines(made_sample(cluster_enabled=1, peers=peers))["nodes_out_of_reach"].value == 2


def test_nodes_that_may_not_be_listed_are_unknown() -> None:
    missing = {Source.CLUSTER_NODES: Missing(Reason.DENIED)}
    line = replication_lines(made_sample(cluster_enabled=1, missing=missing))["nodes_out_of_reach"]
    assert line.value == Unknown(Reason.DENIED)


def test_how_many_sentinels_a_failover_takes() -> None:
    def needed(*views: SentinelView) -> int | None:
        return needed_sentinels(made_sample(sentinels=views))

    assert needed(SentinelView("a", quorum=2, sentinels=5)) == 3
    assert needed(SentinelView("a", quorum=4, sentinels=5)) == 4
    assert needed(SentinelView("a", failure="refused")) is None
    assert "sentinels_answering" not in replication_lines(made_sample())


def sample(node: str, **info: int | float | str) -> Sample:
    return Sample(at_ms=0, node=node, info={"role": "master", **info})


def table_of(memory: list[int | None]) -> dict[str, str]:
    """What is said to differ, by node."""
    latest = {
        SafeText(f"n{at}"): sample(f"n{at}") if value is None else sample(f"n{at}", used_memory=value)
        for at, value in enumerate(memory)
    }
    table = nodes_table(latest, {})
    at = table.column("differs")
    return {str(subject): str(row[at]) for subject, row in zip(table.subjects, table.rows, strict=True)}


def test_the_node_that_stands_out_comes_first() -> None:
    found = table_of([100, 100, 410])
    assert next(iter(found.items())) == ("n2", "memory 4.1×")
    assert [found["n0"], found["n1"]] == ["", ""]


def test_what_is_wrong_comes_before_what_differs() -> None:
    latest = {SafeText(f"n{at}"): sample(f"n{at}", used_memory=memory) for at, memory in enumerate([100, 100, 400, 90])}
    assert nodes_table(latest, {SafeText("n3"): SafeText("not saved")}).subjects[:2] == ("n3", "n2")


def test_replicas_are_compared_with_replicas() -> None:
    latest = {SafeText(f"n{at}"): sample(f"n{at}", connected_clients=500) for at in range(3)}
    latest |= {
        SafeText(f"r{at}"): Sample(at_ms=0, node=f"r{at}", info={"role": "slave", "connected_clients": 3})
        for at in range(3)
    }
    table = nodes_table(latest, {})
    assert {row[table.column("differs")] for row in table.rows} == {""}


@given(st.lists(st.none() | st.integers(0, 1 << 50), min_size=1, max_size=20))
def test_few_or_unknown_figures_make_no_outlier(memory: list[int | None]) -> None:
    found = table_of(memory)
    known = sorted(value for value in memory if value is not None)
    assert len(found) == len(memory)
    for at, value in enumerate(memory):
        is_far = value is not None and known[-1] > 0 and value * 2 > known[len(known) // 2]
        if len(known) < LEAST_NODES or value is None or not is_far or value <= OUTLIER * known[(len(known) - 1) // 2]:
            assert found[f"n{at}"] == ""


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
    samples = counted(*[start, *(start + sum(added[: at + 1]) for at in range(len(added)))])
    assert [SampleSpan(*pair).change(COUNTER) for pair in pairwise(samples)] == added
    assert SampleSpan(samples[0], samples[-1]).change(COUNTER) == sum(added)


def test_another_server_at_the_address_is_no_restart() -> None:
    """As after a failover: it ran before the last sample of the one before it."""
    before = made_sample(0)
    restarted, other = (made_sample(60, run_id="f" * 40, uptime_in_seconds=uptime_s) for uptime_s in (61, 62))
    assert not SampleSpan(before, restarted).is_other_server
    assert SampleSpan(before, other).is_other_server
    assert not SampleSpan(before, made_sample(60)).is_other_server
