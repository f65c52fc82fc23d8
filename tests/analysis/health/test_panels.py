"""Panels of a server: memory, the logs of what took long, persistence, replication, the nodes side by side."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.durability_panels import needed_sentinels, persistence_panel, quorum_of, replication_panel
from rtui.analysis.health.memory_panel import eviction, first_to_go, memory_panel
from rtui.analysis.health.panel import LEAST_NODES, OUTLIER, Line, nodes_table, value_text
from rtui.analysis.health.sample import (
    Database,
    LatencyEvent,
    LoggedCommand,
    Missing,
    Peer,
    Replica,
    Sample,
    SentinelView,
    Source,
)
from rtui.analysis.health.settings import SETTINGS
from rtui.analysis.health.slow_panel import NameFolding, first_key, grouped, slow_panel
from rtui.analysis.health.view import HealthView
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
    line = replication_lines(made_sample(cluster_enabled=1, peers=peers))["nodes_out_of_reach"]
    assert line.value == 2


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
    table = nodes_table(latest, {SafeText("n3"): SafeText("not saved")})
    assert table.subjects[:2] == ("n3", "n2")


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
