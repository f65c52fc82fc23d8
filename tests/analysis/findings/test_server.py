"""Rules about a server: each with samples that break it and samples that do not, and one that breaks none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.findings.finding import Finding, Found
from rtui.analysis.findings.server import FINDERS, headline, server_findings, server_health
from rtui.analysis.findings.server_data import CLIFF_LOAD, EVICTS, HOT_EXPIRING
from rtui.analysis.health.panel import Line, State
from rtui.analysis.health.sample import (
    ClientFigures,
    CommandStats,
    Database,
    LoggedCommand,
    Missing,
    OwnUse,
    Peer,
    Replica,
    Sample,
    SentinelView,
    Source,
)
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import HotKey, HotList, HotReport, HotSource, KeyRecord, Report
from rtui.registry.rules import RULES, Family, RuleLevels, Severity
from tests.made_report import MADE_AT_S, made_report
from tests.made_sample import GIB, MIB, made_sample

HOSTILE: Final = b"\x1b]0;x\x07[bold]\xff\xe2\x80\xae"
CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202e]")


def session(*changes: dict[str, Any], every_s: float = 30.0) -> tuple[Sample, ...]:
    return tuple(made_sample(every_s * at, **changed) for at, changed in enumerate(changes))


def found(*samples: Sample, report: Report | None = None, **levels: Severity) -> Found:
    levels_of = RuleLevels({name.replace("_", "-"): severity for name, severity in levels.items()})
    return server_findings(HealthView(samples, report, levels=levels_of))


def rules(*samples: Sample, report: Report | None = None) -> list[str]:
    return [one.rule for one in found(*samples, report=report).findings]


def slow(argv: tuple[bytes, ...], took_ms: int = 20, ago_s: int = 60, *, number: int = 1, own: bool = False) -> Sample:
    """A sample whose slow log has so many entries of one command."""
    at_s = int(MADE_AT_S) - ago_s
    entries = (LoggedCommand(at, at_s, took_ms * 1000, argv, b"10.0.0.9:7", b"nightly", own) for at in range(number))
    return made_sample(slow=tuple(entries))


def test_a_healthy_server_breaks_no_rule_and_nothing_is_left_unjudged() -> None:
    healthy = found(*session(*[{"used_cpu_user_main_thread": 1, "used_cpu_sys_main_thread": 1}] * 4))
    assert not healthy.findings
    assert not healthy.unjudged
    assert not headline(healthy)
    assert {"memory-fragmented", "cpu-saturated", "connection-churn", "command-slow"} <= set(healthy.checked)


def test_every_rule_of_the_family_is_looked_for() -> None:
    declared = {rule.id for rule in RULES.values() if rule.family is Family.SERVER}
    assert {finder.rule for finder in FINDERS.values()} == declared
    assert len(FINDERS) == len(declared)
    assert all(rule.basis for rule in RULES.values() if rule.family is Family.SERVER), "each threshold has a source"


FULL: Final = {"maxmemory_policy": "noeviction", "maxmemory": 2 * GIB + 100 * MIB}
PRIMARY: Final = {"connected_slaves": 1, "repl_backlog_active": 1}
CLUSTER: Final = {"cluster_enabled": 1, "cluster_state": "ok", "cluster_slots_assigned": 16_384}
SELF: Final = Peer(b"10.0.0.5:6379", slots=16_384, is_self=True)
WELL: Final = SentinelView("a", "10.0.0.5:6379", "master", quorum=2, sentinels=3, replicas=1)
FAR: Final = (Replica(b"10.0.0.6:6379", "online", MIB, 0),)
ELSEWHERE: Final = ClientFigures(7, b"10.0.0.9:4711", user=b"default")
QUERIES: Final = {"client-query-buffer-limit": str(GIB)}
REPLICA: Final = {"role": "slave", "master_link_status": "up"}
BROKEN: Final[dict[str, list[tuple[Sample, ...]]]] = {
    "memory-near-limit": [
        session(FULL),
        session({"maxmemory_policy": "noeviction", "used_memory_peak": 4 * GIB + MIB}),
        session(
            *(
                {"maxmemory_policy": "noeviction", "used_memory": 2 * GIB + at * 100 * MIB, "used_memory_rss": 3 * GIB}
                for at in range(9)
            )
        ),
    ],
    "memory-unlimited": [session({"maxmemory": 0, "total_system_memory": 3 * GIB})],
    "memory-fragmented": [session({"used_memory_rss": 4 * GIB, "allocator_frag_bytes": GIB})],
    "memory-swapped": [session({"used_memory_rss": GIB})],
    "eviction-impossible": [
        session({"maxmemory_policy": "volatile-lru", "databases": {0: Database(5_000, 100)}}),
        session({"maxmemory_policy": "volatile-ttl", "databases": {0: Database(100, 0)}}),
    ],
    "writes-refused": [
        session({"errors": {"OOM": 166}}),
        session({"errors": {"READONLY": 8, "CLUSTERDOWN": 5, "NOSCRIPT": 900}}),
        session({"errors": {"MISCONF": 3}}, {"errors": {"MISCONF": 4}}),
    ],
    "connections-refused": [session({"rejected_connections": 24}), session({}, {"rejected_connections": 3})],
    "monitor-attached": [session({"clients": (ClientFigures(7, b"10.0.0.9:1", flags="O"),)})],
    "logins-failed": [session({"errors": {"WRONGPASS": 50}})],
    "acl-denied": [session({"errors": {"NOPERM": 40}, "commands": {"INFO": CommandStats(9, 9, 20, 0)}})],
    "calls-failed": [
        session({"errors": {"WRONGTYPE": 300}, "commands": {"LPUSH": CommandStats(400, 9, 0, 300)}}),
        session({"errors": {"READONLY": 7, "ERR": 500}, "commands": {"SET": CommandStats(900, 9, 300, 0)}}),
        session(*({"commands": {"LPUSH": CommandStats(400 + at, 9, 0, at)}} for at in (0, 100)), every_s=5),
    ],
    "expire-cycles-late": [session({"expired_time_cap_reached_count": 5_000, "expired_stale_perc": 12.5})],
    "eviction-fast": [session({"evicted_keys": 900_000_000}), session({}, {"evicted_keys": 30_000_000}, every_s=700)],
    "aof-fsync-delayed": [session({"aof_delayed_fsync": 20}), session(*({"aof_delayed_fsync": n} for n in (0, 1)))],
    "replication-flapping": [session({**PRIMARY, "sync_full": 7, "sync_partial_ok": 1, "sync_partial_err": 6})],
    "default-user-open": [session({"own": OwnUse(is_let_in_freely=True), "clients": (ELSEWHERE,)})],
    "version-outdated": [
        session({"clients": (ELSEWHERE,), "redis_version": version, "valkey_version": valkey})
        for version, valkey in (("7.0.15", None), ("7.4.9", None), ("8.0.6", None), ("7.2.4", "9.1.0"))
    ],
    "hit-ratio-low": [session({"keyspace_hits": 9, "keyspace_misses": 5_000})],
    "clients-closed": [
        session({"client_output_buffer_limit_disconnections": 1}, {"client_output_buffer_limit_disconnections": 3}),
        session({"client_query_buffer_limit_disconnections": 2, "evicted_clients": 2}),
    ],
    "persistence-failing": [
        session({"rdb_last_bgsave_status": "err"}),
        session({"aof_last_write_status": "err", "aof_enabled": 1}),
        session({"aof_last_bgrewrite_status": "err"}),
    ],
    "fork-slow": [session({"latest_fork_usec": 700_000})],
    "huge-pages": [session({"settings": {"disable-thp": "no"}})],
    "replication-broken": [session({**REPLICA, "master_link_status": "down", "master_link_down_since_seconds": 70})],
    "replica-lagging": [
        session({**PRIMARY, "replicas": (Replica(b"10.0.0.6:6379", "online", 0, 40),)}),
        session({**PRIMARY, "replicas": (Replica(b"10.0.0.6:6379", "wait_bgsave"),)}),
        session(*[{**PRIMARY, "replicas": FAR, "master_repl_offset": 9 * MIB}] * 2, every_s=1),
    ],
    "replica-missing": [session({"repl_backlog_active": 1})],
    "cluster-node-down": [
        session({**CLUSTER, "peers": (SELF, Peer(HOSTILE, state="down"))}),
        session({**CLUSTER, "peers": (SELF, Peer(b"10.0.0.7:6379", is_linked=False))}),
    ],
    "sentinels-failing": [
        session({"sentinels": (WELL, SentinelView("c", failure="refused"), SentinelView("d", failure="refused"))}),
        session({"sentinels": (SentinelView("c", failure="refused"),)}),
        session({"sentinels": (WELL, WELL, replace(WELL, primary="10.0.0.9:6379"))}),
        session({"sentinels": (WELL, WELL, replace(WELL, flags="master,s_down"))}),
    ],
    "query-buffers": [
        session({"clients": (ClientFigures(7, b"10.0.0.9:1", query_bytes=600 * MIB),), "settings": QUERIES})
    ],
    "backlog-short": [session({**PRIMARY}, {**PRIMARY, "master_repl_offset": 10 * MIB})],
    "cluster-failing": [
        session({"cluster_enabled": 1, "cluster_state": "fail", "cluster_slots_assigned": 16_384}),
        session({"cluster_enabled": 1, "cluster_state": "ok", "cluster_slots_assigned": 16_000}),
        session({"cluster_enabled": 1, "cluster_state": "ok", "cluster_slots_fail": 5}),
    ],
    "command-banned": [session({"commands": {"KEYS": CommandStats(12, 900_000)}})],
    "command-slow": [
        (slow((b"SMEMBERS", b"shop:tags:42"), number=3),),
        (slow((b"EVALSHA", b"abc", b"0"), took_ms=150),),
    ],
    "hit-ratio-fell": [session({}, {"keyspace_hits": 700_500, "keyspace_misses": 79_500})],
    "cpu-saturated": [
        session(*({"used_cpu_user_main_thread": 29.0 * at, "used_cpu_sys_main_thread": 0.0} for at in range(2)))
    ],
    "connection-churn": [session({}, {"total_connections_received": 12_000})],
    "clients-limit": [session({"connected_clients": 9_000})],
    "output-buffers": [
        session({"clients": (ClientFigures(7, b"10.0.0.9:1", flags="N", output_bytes=40 * MIB),)}),
        session(
            {
                "clients": (ClientFigures(7, b"10.0.0.9:1", flags="P", output_bytes=9 * MIB),),
                "settings": {"client-output-buffer-limit": "normal 0 0 0 pubsub 10485760 0 0"},
            }
        ),
        session(
            {
                "clients": (ClientFigures(7, b"10.0.0.9:1", flags="P", output_bytes=9 * MIB),),
                "settings": {"client-output-buffer-limit": "normal 0 0 0 pubsub 33554432 8388608 60"},
            }
        ),
    ],
}
"""Samples that break a rule and no other one."""

KEPT: Final[dict[str, list[tuple[Sample, ...]]]] = {
    "memory-near-limit": [
        session({**FULL, "maxmemory_policy": "allkeys-lru"}),
        session({**FULL, "mem_not_counted_for_evict": 300 * MIB}),
        session({"maxmemory_policy": "noeviction"}),
        session({"maxmemory_policy": "allkeys-lru", "used_memory_peak": 4 * GIB + MIB}),
        session({"maxmemory_policy": "noeviction", "used_memory_peak": 12 * GIB}),
    ],
    "writes-refused": [
        session({"errors": {"OOM": 3}}, {"errors": {"OOM": 3}}),
        session({"errors": {"OOM": 40}, "uptime_in_seconds": 86_400 * 30}),
        session({"errors": {"WRONGTYPE": 90, "MOVED": 5_000, "NOSCRIPT": 700}}),
    ],
    "connections-refused": [session({"rejected_connections": 3}, {"rejected_connections": 3})],
    "monitor-attached": [session({"clients": (ClientFigures(7, b"10.0.0.9:1", flags="S"),)})],
    "logins-failed": [session({"errors": {"WRONGPASS": 9}})],
    "acl-denied": [
        session({"errors": {"NOPERM": 900}, "commands": {"SLOWLOG|GET": CommandStats(0, 0, 890, 0)}}),
        session({"errors": {"NOPERM": 19}}),
    ],
    "calls-failed": [
        session({"commands": {"GET": CommandStats(700_000, 9, 0, 900)}}),
        session({"commands": {"LPUSH": CommandStats(99, 9, 0, 99)}}),
        session(
            {"errors": {"OOM": 800}, "uptime_in_seconds": 86_400 * 300, "commands": {"SET": CommandStats(9, 9, 800)}}
        ),
        session({"commands": {"EVALSHA": CommandStats(900, 9, 0, 300), "CLIENT": CommandStats(900, 9, 0, 900)}}),
    ],
    "expire-cycles-late": [session({"expired_time_cap_reached_count": 900})],
    "eviction-fast": [
        session({"evicted_keys": 9_000_000}),
        session({"evicted_keys": 900_000, "uptime_in_seconds": 30}),
        session({"evicted_keys": 900_000_000, "maxmemory": 0}),
    ],
    "replication-flapping": [session({"connected_slaves": 4, "repl_backlog_active": 1, "sync_full": 5})],
    "default-user-open": [
        session({"clients": (ELSEWHERE,)}),
        session({"own": OwnUse(is_let_in_freely=True), "clients": (replace(ELSEWHERE, user=b"shop"),)}),
        *(
            session({"own": OwnUse(is_let_in_freely=True), "clients": (replace(ELSEWHERE, address=address),)})
            for address in (b"127.0.0.1:7", b"[::1]:7", b"/run/redis/s.sock:0", b"?:0", b"")
        ),
    ],
    "version-outdated": [
        session({"redis_version": "7.0.15"}),
        *(
            session({"clients": (ELSEWHERE,), "redis_version": version, "valkey_version": valkey})
            for version, valkey in (("7.4.10", None), ("8.10.2", None), ("7.2.4", "9.1.2"))
        ),
    ],
    "hit-ratio-low": [session({"keyspace_hits": 0, "keyspace_misses": 10})],
    "clients-closed": [session(*[{"client_output_buffer_limit_disconnections": 2}] * 2)],
    "memory-unlimited": [session({"maxmemory": 0})],
    "memory-fragmented": [session({"used_memory": 3 * MIB, "used_memory_rss": 12 * MIB})],
    "memory-swapped": [session({"used_memory": 3 * MIB, "used_memory_rss": 2 * MIB})],
    "eviction-impossible": [
        session({"maxmemory_policy": "volatile-lru", "databases": {0: Database(99, 0)}}),
        session({"maxmemory_policy": "volatile-lru"}),
        session({"maxmemory_policy": "volatile-lru", "maxmemory": 0, "databases": {0: Database(5_000, 0)}}),
    ],
    "fork-slow": [session({"latest_fork_usec": 500_000})],
    "huge-pages": [session({"settings": {"disable-thp": "yes"}})],
    "replication-broken": [session(REPLICA)],
    "replica-lagging": [
        session({**PRIMARY, "replicas": (Replica(b"10.0.0.6:6379", "online", 0, 1),)}),
        session({**PRIMARY, "replicas": FAR, "master_repl_offset": 9 * MIB}),
        session({**PRIMARY, "replicas": FAR}, {**PRIMARY, "replicas": FAR, "master_repl_offset": 9 * MIB}, every_s=1),
    ],
    "query-buffers": [
        session({"clients": (ClientFigures(7, b"10.0.0.9:1", query_bytes=400 * MIB),), "settings": QUERIES}),
        session({"clients": (ClientFigures(7, b"10.0.0.9:1", query_bytes=900 * MIB),)}),
    ],
    "replica-missing": [session(PRIMARY), session({**REPLICA, "repl_backlog_active": 1})],
    "backlog-short": [session(PRIMARY, PRIMARY), session(PRIMARY, {**PRIMARY, "master_repl_offset": 10_000})],
    "cluster-failing": [session(CLUSTER)],
    "cluster-node-down": [session({**CLUSTER, "peers": (SELF, Peer(b"10.0.0.7:6379"))}), session(CLUSTER)],
    "sentinels-failing": [
        session({"sentinels": (WELL, WELL, WELL)}),
        session({"sentinels": (WELL, WELL, SentinelView("c", failure="refused"))}),
        session({}),
    ],
    "command-banned": [
        session({"commands": {"KEYS": CommandStats(2, 900_000)}}),
        session({"commands": {"KEYS": CommandStats(20, 900_000)}, "uptime_in_seconds": 86_400 * 30}),
    ],
    "command-slow": [
        (slow((b"SMEMBERS", b"shop:tags:42"), number=2),),
        (slow((b"GET", b"a"), number=9, own=True),),
        (slow((b"GET", b"a"), number=9, ago_s=3_700),),
        (slow((b"GET", b"a"), number=9, took_ms=10),),
    ],
    "hit-ratio-fell": [
        session({}, {"keyspace_hits": 700_050, "keyspace_misses": 70_900}),
        session({}, {"keyspace_hits": 709_000, "keyspace_misses": 71_000}),
    ],
    "connection-churn": [session({}, {"total_connections_received": 10_000})],
    "clients-limit": [session({"connected_clients": 7_900})],
    "output-buffers": [session({"clients": (ClientFigures(7, b"10.0.0.9:1", flags="N", output_bytes=31 * MIB),)})],
}
"""Samples that come near a rule and break none."""


def pairs(cases: dict[str, list[tuple[Sample, ...]]]) -> Iterator[Any]:
    return (
        pytest.param(rule, samples, id=f"{rule} {at}")
        for rule, some in cases.items()
        for at, samples in enumerate(some)
    )


@pytest.mark.parametrize(("rule", "samples"), pairs(BROKEN))
def test_broken(rule: str, samples: tuple[Sample, ...]) -> None:
    (one,) = found(*samples).findings
    assert (one.rule, one.severity) == (rule, RULES[rule].severity)
    assert one.title
    assert not one.title.endswith(".")
    assert one.command.startswith("redis-cli ")
    assert headline(found(*samples))


@pytest.mark.parametrize(("rule", "samples"), pairs(KEPT))
def test_kept(rule: str, samples: tuple[Sample, ...]) -> None:
    assert not found(*samples).findings
    of_others = samples[0].info["role"] == "slave" or rule in ("eviction-fast", "default-user-open")
    assert rule in found(*samples).checked or of_others


@pytest.mark.parametrize("info", [{"redis_version": "9.9.9"}, {"redis_version": "7.0"}, {"dragonfly_version": "1.0"}])
def test_versions_that_the_table_does_not_have_are_not_judged(info: dict[str, str]) -> None:
    told = found(*session({"clients": (ELSEWHERE,), "redis_version": "7.0.15", **info}))
    assert not told.findings
    assert "version-outdated" not in told.checked


def test_where_keys_can_not_be_evicted_it_is_worse_when_memory_is_or_was_full() -> None:
    volatile: dict[str, Any] = {"maxmemory_policy": "volatile-lru", "databases": {0: Database(9, 0)}}
    full: dict[str, Any]
    for full in ({"maxmemory": 2 * GIB + MIB}, {"used_memory_peak": 4 * GIB + MIB}):
        (one,) = found(made_sample(**volatile, **full)).findings
        assert (one.rule, one.severity) == ("eviction-impossible", Severity.ERROR)
        (set_here,) = found(made_sample(**volatile, **full), eviction_impossible=Severity.WARN).findings
        assert set_here.severity is Severity.WARN
    refused = found(made_sample(**volatile, errors={"OOM": 1})).findings
    assert [(one.rule, one.severity) for one in refused] == [("eviction-impossible", Severity.ERROR)]


def test_counters_are_of_the_time_since_the_start_or_the_last_reset() -> None:
    def title(*samples: Sample) -> str:
        return found(*samples).findings[0].title

    calls, errors = {"CONFIG|GET": CommandStats(9, 9)}, {"OOM": 40}
    assert (
        title(made_sample(errors=errors, commands=calls)) == "40 writes refused (OOM) since the server started 1d ago"
    )
    reset = {**calls, "CONFIG|RESETSTAT": CommandStats(1, 9)}
    assert title(made_sample(errors=errors, commands=reset)) == "40 writes refused (OOM) since CONFIG RESETSTAT"
    old: dict[str, Any] = {"errors": errors, "uptime_in_seconds": 86_400 * 30}
    assert not found(made_sample(**old)).findings
    assert found(made_sample(**old, commands=reset)).findings, "it may have been a moment ago"
    seen = session({}, {"total_commands_processed": 3}, {"errors": {"OOM": 7, "READONLY": 5}})
    assert title(*seen).endswith("(OOM 7, READONLY 5) since CONFIG RESETSTAT 30s ago, 12 in the last 30s")


def test_every_rule_that_needs_no_report_has_samples_that_break_it() -> None:
    of_reports = {"eviction-of-lasting", "key-big-slow", "expiry-cliff-load", "hot-key-expiry-near"}
    assert set(BROKEN) == {finder.rule for finder in FINDERS.values()} - of_reports - {"eviction-policy"}


def test_a_policy_that_was_not_agreed_on() -> None:
    (one,) = found(made_sample(maxmemory_policy="volatile-random"), eviction_policy=Severity.WARN).findings
    assert one.title == "The eviction policy is volatile-random; expected is allkeys-lru or allkeys-lfu"
    assert not found(made_sample(), eviction_policy=Severity.WARN).findings
    assert not found(made_sample(maxmemory_policy="volatile-random")).findings


def test_locks_and_keys_that_must_stay_under_a_policy_that_evicts_them() -> None:
    report = made_report()
    names = [one.where for one in found(made_sample(), report=report).findings if one.rule == EVICTS]
    assert any("lock" in name for name in names)
    volatile = found(made_sample(maxmemory_policy="volatile-ttl"), report=report).findings
    of_locks = [one for one in volatile if one.rule == EVICTS]
    assert of_locks
    assert all(one.title.endswith("that have a TTL") for one in of_locks)
    assert EVICTS not in rules(made_sample(maxmemory_policy="volatile-lru"), report=report)
    assert EVICTS not in rules(made_sample(maxmemory_policy="noeviction"), report=report)
    assert EVICTS not in rules(made_sample(maxmemory=0), report=report)
    assert EVICTS not in rules(made_sample())


def test_a_big_key_with_slow_commands() -> None:
    report = made_report()
    big = next(iter(report.summary.big.by_memory)).key
    assert "key-big-slow" in rules(slow((b"HGETALL", big), number=3), report=report)
    assert "key-big-slow" not in rules(slow((b"HGETALL", b"nothing:like:it"), number=3), report=report)


def test_load_that_rises_while_keys_expire() -> None:
    report = made_report()
    (cliff, *_) = report.summary.expiry.cliffs
    start_s = cliff.start_s - MADE_AT_S

    def rising_to(*counts: int) -> tuple[Sample, ...]:
        return tuple(
            made_sample(start_s + at, total_commands_processed=count)
            for at, count in zip((-120, -60, 0, 60), counts, strict=True)
        )

    assert CLIFF_LOAD in rules(*rising_to(0, 1_000, 2_000, 5_000), report=report)
    assert CLIFF_LOAD not in rules(*rising_to(0, 1_000, 2_000, 3_000), report=report)


def test_what_is_denied_is_not_judged_and_says_why() -> None:
    denied = made_sample(missing={Source.SLOW_LOG: Missing(Reason.DENIED), Source.CLIENTS: Missing(Reason.TOO_LARGE)})
    unjudged = {one.rule: one.why for one in found(denied).unjudged}
    assert unjudged["command-slow"] == "SLOWLOG GET is denied"
    assert unjudged["output-buffers"] == "CLIENT LIST is too large"
    bare = {one.rule for one in found(Sample(0, "x")).unjudged}
    assert {"memory-fragmented", "persistence-failing", "clients-limit"} <= bare
    assert not found(Sample(0, "x")).findings


def test_the_worst_is_the_headline() -> None:
    both = made_sample(used_memory_rss=4 * GIB, rdb_last_bgsave_status="err")
    assert headline(found(both)) == "persistence failing"
    assert headline(found(made_sample(used_memory_rss=4 * GIB))) == "fragmented"
    assert headline(found(made_sample(repl_backlog_active=1))) == "no replica"


def test_a_hot_key_that_expires_by_the_time_of_the_last_sample() -> None:
    record = KeyRecord(b"shop:home", ttl_ms=600_000, frequency=200, asked_at_s=MADE_AT_S)
    hot = HotReport(HotSource.FREQUENCY, lists=(HotList("frequency", "accesses/min", (HotKey(record, 200),)),))
    report = replace(made_report(), hot=hot)
    soon = found(made_sample(570), report=report).findings
    assert [one.title for one in soon if one.rule == HOT_EXPIRING] == ["Hot key shop:home expires in 30s"]
    assert HOT_EXPIRING not in rules(made_sample(500), report=report)
    assert HOT_EXPIRING not in rules(made_sample(601), report=report)


def test_parts_of_fragmentation_are_told_where_the_allocator_tells_them() -> None:
    def evidence(**changed: Any) -> str:
        (one,) = found(made_sample(used_memory_rss=4 * GIB, allocator_frag_bytes=GIB, **changed)).findings
        return "; ".join(one.evidence)

    assert "activedefrag" in evidence()
    assert "activedefrag" not in evidence(mem_allocator="libc")


def texts(one: Finding) -> Iterator[str]:
    yield from (one.title, one.where, one.command, one.query, *one.evidence)


def test_names_of_others_are_shown_safely() -> None:
    entries = tuple(LoggedCommand(at, int(MADE_AT_S), 90_000, (b"GET", HOSTILE), HOSTILE, HOSTILE) for at in range(3))
    sample = made_sample(
        slow=entries,
        connected_slaves=1,
        replicas=(Replica(HOSTILE, "send_bulk"),),
        clients=(ClientFigures(1, HOSTILE, HOSTILE, HOSTILE, HOSTILE, output_bytes=GIB, last_command="KEYS"),),
    )
    broken = found(sample).findings
    assert {one.rule for one in broken} == {"command-slow", "replica-lagging", "output-buffers"}
    assert not [text for one in broken for text in texts(one) if CONTROL.search(text)]


NUMBERS: Final = st.one_of(st.none(), st.integers(-1, 2**63), st.floats(0, 1e9), st.just("ok"), st.just(""))
FIELDS: Final = ("used_memory", "used_memory_rss", "maxmemory", "keyspace_hits", "keyspace_misses", "maxclients",
                 "connected_slaves", "master_repl_offset", "repl_backlog_size", "latest_fork_usec", "maxmemory_policy",
                 "total_system_memory", "cluster_enabled", "role", "rdb_last_save_time")  # fmt: skip


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(FIELDS, NUMBERS)), min_size=1, max_size=4))
def test_any_figures_are_judged(changes: list[dict[str, Any]]) -> None:
    health = server_health(HealthView(session(*changes), made_report()))
    assert len(health.panels) == 7
    assert all(one.rule in health.found.checked for one in health.found.findings)


def test_lines_of_panels_have_the_state_of_their_rule() -> None:
    def states(*samples: Sample) -> dict[str, State]:
        return {line.id: line.state for panel in server_health(HealthView(samples)).panels for line in panel.lines}

    assert states(made_sample())["mem_fragmentation_ratio"] is State.NORMAL
    assert states(made_sample(used_memory_rss=4 * GIB))["mem_fragmentation_ratio"] is State.WARN
    assert states(made_sample(rdb_last_bgsave_status="err"))["rdb_last_bgsave_status"] is State.BAD
    assert states(made_sample(total_system_memory=None))["maxmemory"] is State.UNKNOWN
    assert states(made_sample())["used_memory_rss"] is State.NORMAL
    assert states(made_sample(used_memory_rss=GIB))["used_memory_rss"] is State.WARN
    assert states(made_sample())["used_memory_peak"] is State.PLAIN
    assert states(made_sample(mem_fragmentation_ratio=None))["mem_fragmentation_ratio"] is State.UNKNOWN


def test_a_figure_that_is_as_it_should_be_is_not_blamed_for_another_one_of_its_rule() -> None:
    states = {
        line.id: line.state
        for panel in server_health(HealthView((made_sample(aof_last_write_status="err", aof_enabled=1),))).panels
        for line in panel.lines
    }
    assert states["aof_last_write_status"] is State.BAD
    assert states["rdb_last_bgsave_status"] is State.NORMAL


def shown(*samples: Sample, report: Report | None = None) -> set[str]:
    """The rules that lines of panels are about."""
    health = server_health(HealthView(samples, report))
    return {line.rule for panel in health.panels for line in panel.lines}


def test_every_rule_has_a_line_that_shows_what_it_has_found() -> None:
    """Else a title would say what is wrong, and no panel which figure that is."""
    report = replace(made_report(), hot=HotReport(HotSource.SERVER))
    processor = {"used_cpu_user_main_thread": 1, "used_cpu_sys_main_thread": 1}
    primary = {"connected_slaves": 1, "repl_backlog_active": 1, "cluster_enabled": 1, **processor}
    others: dict[str, Any] = {"settings": {"disable-thp": "yes"}, "sentinels": (SentinelView("a"),)}
    others |= dict.fromkeys(("evicted_clients", "expired_time_cap_reached_count", "aof_delayed_fsync", "sync_full"), 0)
    others |= {"own": OwnUse(is_let_in_freely=True)}
    known = shown(*(made_sample(30 * at, **primary, **others) for at in range(3)), report=report)
    known |= shown(made_sample(role="slave", master_link_status="up"))
    assert known >= {finder.rule for finder in FINDERS.values()}


def test_a_line_counts_what_its_rule_has_found() -> None:
    commands = {"KEYS": CommandStats(12, 900_000), "FLUSHALL": CommandStats(10, 900)}

    def banned(sample: Sample) -> Line:
        panels = server_health(HealthView((sample,))).panels
        return next(line for panel in panels for line in panel.lines if line.id == "banned_commands")

    assert (banned(made_sample()).value, banned(made_sample()).state) == (0, State.NORMAL)
    two = banned(made_sample(commands=commands))
    assert (two.value, two.state) == (2, State.WARN)
    since = "since the server started 1d ago, or CONFIG RESETSTAT"
    assert two.said == f"KEYS was called 12 times {since}; FLUSHALL was called 10 times {since}"
    denied = banned(made_sample(commands={}, missing={Source.COMMAND_STATS: Missing(Reason.DENIED)}))
    assert (denied.value, denied.state) == (Unknown(Reason.DENIED), State.UNKNOWN)
