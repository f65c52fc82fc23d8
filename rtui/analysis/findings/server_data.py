"""Rules about the data of a server: durability, replicas and slots; keys that are evicted, slow, or expire at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Amount, Finding, glob_of, key_line, least, of_server, scan_line, server_rule
from rtui.analysis.findings.keys import HOT as HOT_KEY
from rtui.analysis.findings.keys import is_lock, lock_words, locks
from rtui.analysis.findings.server_load import slow_groups
from rtui.analysis.health.durability_panels import (
    BACKLOG,
    BROKEN,
    CLUSTER,
    FAILING,
    FORK,
    HUGE_PAGES,
    LAGGING,
    LEAST_S,
    MISSING,
    NODES,
    SENTINELS,
    USUAL_FORK_S_A_GIB,
    backlog_s,
    behind,
    fork_s_a_gib,
    is_replica,
    needed_sentinels,
    out_of_reach,
    quorum_of,
)
from rtui.analysis.health.memory_panel import Eviction, eviction
from rtui.analysis.health.sample import Replica, Source
from rtui.analysis.health.slow_panel import BIG_SLOW, first_key, group_name
from rtui.analysis.health.view import HealthView, SampleSpan, number
from rtui.analysis.query.behind import behind_key, cliff_keys, keys_of, label
from rtui.analysis.report.document import CoverageKind, Node, Report
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import display
from rtui.registry.expectations import Breach

_WHAT: Final = {
    "rdb_last_bgsave_status": "the last RDB save",
    "aof_last_bgrewrite_status": "the last AOF rewrite",
    "aof_last_write_status": "the last AOF write",
}
MOST_NODES: Final = 5
_NAME_LIMIT: Final = 60
_REPLICATION_LINE: Final = "redis-cli INFO replication"


def failing(view: HealthView) -> Iterator[Finding]:
    failed = [_WHAT[name] for name in _WHAT if view.text(name) not in ("", "ok")]
    if not failed:
        return
    evidence = []
    changes = view.number("rdb_changes_since_last_save")
    if changes is not None:
        evidence.append(f"{humanize.counted(round(changes), 'change')} since the last RDB save")
    stops, schedule = view.setting("stop-writes-on-bgsave-error"), view.setting("save")
    if stops is not None and view.text("rdb_last_bgsave_status") == "err":
        fail = stops == "yes" and schedule != ""
        why = "save is empty" if stops == "yes" and not fail else f"stop-writes-on-bgsave-error is {stops}"
        evidence.append(f"writes {'fail with MISCONF' if fail else 'continue'}: {why}")
    title = f"{' and '.join(failed)} failed"
    yield of_server(
        view, FAILING, f"{title[:1].upper()}{title[1:]}", command="redis-cli INFO persistence", evidence=evidence
    )


def slow_fork(view: HealthView) -> Iterator[Finding]:
    took_us, each = view.number("latest_fork_usec"), fork_s_a_gib(view.latest)
    if took_us is None or took_us / 1000 <= view.levels.number(FORK, "longest"):
        return
    evidence = []
    if each is not None:
        usual = " to ".join(map(humanize.seconds, USUAL_FORK_S_A_GIB))
        evidence.append(f"{humanize.seconds(each)} per GiB used; {usual} is usual")
    title = f"The last fork took {humanize.seconds(took_us / 1e6)}"
    yield of_server(view, FORK, title, command="redis-cli INFO stats", evidence=evidence)


def huge_pages(view: HealthView) -> Iterator[Finding]:
    if view.setting("disable-thp") == "no":
        yield of_server(view, HUGE_PAGES, "disable-thp is no", command="redis-cli CONFIG GET disable-thp")


def broken(view: HealthView) -> Iterator[Finding]:
    if view.text("master_link_status") == "up":
        return
    down_s = view.number("master_link_down_since_seconds")
    lasts = f" for {humanize.seconds(down_s)}" if down_s is not None and down_s > 0 else ""
    syncing = "a full resynchronisation is running" if view.number("master_sync_in_progress") else ""
    title = f"The link to the primary is down{lasts}"
    yield of_server(view, BROKEN, title, command=_REPLICATION_LINE, evidence=filter(None, (syncing,)))


def lagging(view: HealthView) -> Iterator[Finding]:
    longest_s = view.levels.number(LAGGING, "lag") / 1000
    for one in view.latest.replicas:
        is_late = one.lag_s is not None and one.lag_s > longest_s
        size = behind(view.latest, one)
        is_far = _is_far_behind(view, one)
        if one.state == "online" and not is_late and not is_far:
            continue
        how = f"{humanize.seconds(one.lag_s or 0)} behind" if is_late else f"not online: {one.state}"
        if is_far and not is_late:
            share = humanize.share((size or 0) / (view.number("repl_backlog_size") or 1))
            how = f"{humanize.size(size or 0)} behind, {share} of the backlog"
        evidence = [] if size is None else [f"{humanize.size(size)} of the stream not acknowledged"]
        name = display(one.address, limit=_NAME_LIMIT)
        title = f"Replica {name} is {how}"
        yield of_server(view, LAGGING, title, where=name, command=_REPLICATION_LINE, memory=None, evidence=evidence)


def _is_far_behind(view: HealthView, replica: Replica) -> bool:
    """Whether a replica was further behind than the backlog reaches in two samples: in one it may be a large value."""
    for sample in view.samples[-2:]:
        size = next((behind(sample, one) for one in sample.replicas if one.address == replica.address), None)
        backlog = number(sample, "repl_backlog_size")
        if not backlog or size is None or size <= view.levels.number(LAGGING, "backlog") * backlog:
            return False
    return len(view.samples) > 1


def missing(view: HealthView) -> Iterator[Finding]:
    if view.number("repl_backlog_active") == 1 and view.number("connected_slaves") == 0:
        yield of_server(view, MISSING, "No replica is connected", command=_REPLICATION_LINE)


def short_backlog(view: HealthView) -> Iterator[Finding]:
    lasts_s, size = backlog_s(view), view.number("repl_backlog_size")
    if lasts_s is not None and size is not None and lasts_s * 1000 < view.levels.number(BACKLOG, "least"):
        title = f"The replication backlog holds {humanize.seconds(lasts_s)} of writes at the current rate"
        evidence = (f"{humanize.size(size)}, {humanize.size(size / lasts_s)} written per second",)
        yield of_server(view, BACKLOG, title, command="redis-cli CONFIG GET repl-backlog-size", evidence=evidence)


def failing_cluster(view: HealthView) -> Iterator[Finding]:
    state, assigned = view.text("cluster_state"), view.number("cluster_slots_assigned")
    failed = view.number("cluster_slots_fail") or 0
    if state == "ok" and not failed and assigned in (None, SLOTS):
        return
    evidence = [f"cluster_state is {state}"]
    if assigned is not None and assigned < SLOTS:
        evidence.append(f"{humanize.counted(round(SLOTS - assigned), 'slot')} without a node")
    if failed:
        evidence.append(f"{humanize.counted(round(failed), 'slot')} whose node is down")
    yield of_server(
        view, CLUSTER, "The cluster does not serve all slots", command="redis-cli CLUSTER INFO", evidence=evidence
    )


def nodes_down(view: HealthView) -> Iterator[Finding]:
    told = view.told(Source.CLUSTER_NODES)
    lost = () if told is None else out_of_reach(told)
    if told is None or not lost:
        return
    quorum = quorum_of(told)
    evidence = [
        f"{display(one.address, limit=_NAME_LIMIT)}: {one.state if one.state != 'ok' else 'no connection to it'}"
        for one in lost[:MOST_NODES]
    ]
    evidence.append(quorum.words)
    title = f"{len(lost)} of {humanize.counted(len(told.peers), 'node')} of the cluster unreachable"
    yield of_server(view, NODES, title, command="redis-cli CLUSTER NODES", evidence=evidence)


def failing_sentinels(view: HealthView) -> Iterator[Finding]:
    told = view.told(Source.SENTINELS)
    if told is None or not told.sentinels:
        return
    answering = [one for one in told.sentinels if not one.failure]
    needed, silent = needed_sentinels(told), [one for one in told.sentinels if one.failure]
    named = {one.primary for one in answering}
    doubts = [one for one in answering if "_down" in one.flags]
    lacking = not answering or (needed is not None and len(answering) < needed)
    if lacking:
        takes = f", and a failover needs {needed}" if needed else ""
        title = f"{len(answering)} of {humanize.counted(len(told.sentinels), 'Sentinel')} answer{takes}"
    elif len(named) > 1:
        title = f"The Sentinels name {len(named)} primaries: {' and '.join(sorted(named))}"
    elif doubts:
        title = f"{humanize.counted(len(doubts), 'Sentinel')} of {len(told.sentinels)} can't reach the primary"
    else:
        return
    evidence = [f"{one.address}: {one.failure}" for one in silent[:MOST_NODES]]
    evidence += [f"{one.address}: {one.primary} is {one.flags}" for one in answering[:MOST_NODES]]
    yield of_server(view, SENTINELS, title, command="redis-cli -p 26379 SENTINEL MASTERS", evidence=evidence)


def _is_primary_with_replicas(view: HealthView) -> bool:
    return not is_replica(view) and bool(view.number("connected_slaves"))


def _can_tell_backlog(view: HealthView) -> bool:
    session = view.session
    return _is_primary_with_replicas(view) and session is not None and session.seconds >= LEAST_S


_REPLICATION: Final = Source.INFO_REPLICATION

FINDERS: Final = (
    server_rule(CLUSTER, failing_cluster, "cluster failing", ("cluster_state",), Source.CLUSTER_INFO,
        applies=lambda view: view.number("cluster_enabled") == 1),
    server_rule(NODES, nodes_down, "node down", (), Source.CLUSTER_NODES,
        applies=lambda view: view.number("cluster_enabled") == 1 and view.has_asked(Source.CLUSTER_NODES)),
    server_rule(SENTINELS, failing_sentinels, "Sentinels", (), Source.SENTINELS,
        applies=lambda view: view.has_asked(Source.SENTINELS)),
    server_rule(BROKEN, broken, "replication down", ("master_link_status",), _REPLICATION, applies=is_replica),
    server_rule(FAILING, failing, "persistence failing", ("rdb_last_bgsave_status",), Source.INFO_PERSISTENCE),
    server_rule(MISSING, missing, "no replica", ("connected_slaves",), _REPLICATION,
        applies=lambda view: not is_replica(view)),
    server_rule(LAGGING, lagging, "replica lag", (), _REPLICATION, applies=_is_primary_with_replicas),
    server_rule(BACKLOG, short_backlog, "backlog", ("repl_backlog_size",), _REPLICATION, applies=_can_tell_backlog,
        needs_more=True),
    server_rule(FORK, slow_fork, "slow fork", ("latest_fork_usec",), Source.INFO_STATS),
    server_rule(HUGE_PAGES, huge_pages, "THP enabled", applies=lambda view: view.setting("disable-thp") is not None,
        needs_more=True),
)  # fmt: skip


EVICTS: Final = "eviction-of-lasting"
CLIFF_LOAD: Final = "expiry-cliff-load"
HOT_EXPIRING: Final = "hot-key-expiry-near"

SOONEST_FIRST: Final = "volatile-ttl"
"""The policy that spares keys without TTL and takes locks first: they have the shortest TTLs."""

MOST_PLACES: Final = 5
_KEY_LIMIT: Final = 120


def evicts_lasting(view: HealthView) -> Iterator[Finding]:
    """Find keys that must stay and may be evicted: locks by their names, and keys registered without TTL."""
    found, report = eviction(view), view.report
    is_ttl = found.policy == SOONEST_FIRST
    if report is None or not found.limit_bytes or not (is_ttl or found.policy.startswith("allkeys-")):
        return
    locks_there = locks(report.summary.root, lock_words(view.levels))
    with_keys = ((path, keys) for path in locks_there if (keys := _evictable(found, report, path[-1])) is not None)
    for path, keys in islice(with_keys, MOST_PLACES):
        of_which = " that have a TTL" if is_ttl else ""
        yield of_server(
            view,
            EVICTS,
            f"{found.policy} may evict the {keys.keys('lock')} of {label(path)}{of_which}",
            where=label(path),
            command=scan_line(glob_of(path)),
            keys=keys,
            behind=keys_of(path),
            evidence=(found.meaning,),
        )
    if is_ttl:
        return
    entries = () if report.summary.registry is None else report.summary.registry.entries
    lasting = [
        one
        for one in entries
        if least(one.keys) > 0 and any(each.rule == Breach.TTL_UNEXPECTED.value for each in one.expectations)
    ]
    for one in lasting[:MOST_PLACES]:
        keys = Amount(one.keys)
        yield of_server(
            view,
            EVICTS,
            f"{found.policy} may evict the {keys.keys()} of {display(one.pattern.encode())}, which must have no TTL",
            where=display(one.pattern.encode()),
            command="redis-cli CONFIG GET maxmemory-policy",
            keys=keys,
            memory=None if one.memory_bytes is None else least(one.memory_bytes),
            example_keys=one.examples,
        )


def _evictable(found: Eviction, report: Report, node: Node) -> Amount | None:
    stats = node.stats
    if not found.takes_expiring_only:
        return Amount(stats.keys)
    expiring = 0 if stats.ttl is None else round(sum(map(least, stats.ttl)))
    known = plain(stats.no_ttl_keys or 0) + sum(map(plain, stats.ttl or ()))
    is_exact = report.head.coverage.kind is CoverageKind.EXACT and known >= plain(stats.keys)
    return Amount(expiring, at_least=not is_exact) if expiring else None


def slow_big_keys(view: HealthView) -> Iterator[Finding]:
    if view.report is None:
        return
    found = view.report.summary.big
    lists = (found.by_memory, found.by_length, *found.by_type_memory.values(), *found.by_type_length.values())
    big = {one.key: one for records in lists for one in records}
    told: set[bytes] = set()
    for group, _ in slow_groups(view):
        for entry in group.entries:
            key = first_key(entry)
            record = None if key is None else big.get(key)
            if key is None or record is None or key in told or len(told) >= MOST_PLACES:
                continue
            told.add(key)
            name = display(key, limit=_KEY_LIMIT)
            facts = [humanize.size(record.memory_bytes)] if record.memory_bytes is not None else []
            facts += [humanize.counted(record.length, "element")] if record.length is not None else []
            yield of_server(
                view,
                BIG_SLOW,
                f"{group_name(group)} took {humanize.seconds(entry.amount / 1e6)} on the big key {name}",
                where=name,
                command=key_line("MEMORY USAGE", key),
                keys=Amount(1),
                memory=record.memory_bytes,
                behind=behind_key(key),
                evidence=facts,
                example_keys=(key,),
            )


def cliff_load(view: HealthView) -> Iterator[Finding]:
    if view.report is None:
        return
    for cliff in view.report.summary.expiry.cliffs[:MOST_PLACES]:
        inside = [one for one in view.spans if cliff.meets(one.before.at_ms / 1000, one.after.at_ms / 1000)]
        outside = [one for one in view.spans if one not in inside]
        for counter, what in (("total_commands_processed", "commands"), ("keyspace_misses", "misses")):
            now, usual = _rate(inside, counter), _rate(outside, counter)
            if now is None or not usual or now < view.levels.number(CLIFF_LOAD, "rise") * usual:
                continue
            start = humanize.moment(cliff.start_s)
            title = (
                f"{humanize.decimal(now)} {what} per second while {cliff.label} expires, "
                f"{humanize.decimal(usual)} otherwise"
            )
            yield of_server(
                view,
                CLIFF_LOAD,
                title,
                where=cliff.label,
                command="redis-cli INFO stats",
                keys=Amount(cliff.keys),
                behind=cliff_keys(cliff, view.report.summary.root),
                evidence=(f"from {start} UTC on, {Amount(cliff.keys).keys()} expire",),
            )
            break


def _rate(spans: list[SampleSpan], counter: str) -> float | None:
    known = [(change, one.seconds) for one in spans if (change := one.change(counter)) is not None and one.seconds > 0]
    return sum(change for change, _ in known) / sum(seconds for _, seconds in known) if known else None


def expiring_hot_keys(view: HealthView) -> Iterator[Finding]:
    if view.report is None:
        return
    left_s = view.levels.number(HOT_EXPIRING, "left") / 1000
    counter = view.levels.number(HOT_KEY, "counter")
    words = lock_words(view.levels)
    told: set[bytes] = set()
    for one in (hot.record for found in view.report.hot.lists for hot in found.keys):
        if one.expires_at_s is None or one.key in told or is_lock(one.key, words):
            continue
        remains_s = one.expires_at_s - view.latest.at_ms / 1000
        is_hot = one.frequency is None or one.frequency >= counter
        if is_hot and 0 <= remains_s < left_s and len(told) < MOST_PLACES:
            told.add(one.key)
            name = display(one.key, limit=_KEY_LIMIT)
            rate = None if view.session is None else view.session.rate("total_commands_processed")
            yield of_server(
                view,
                HOT_EXPIRING,
                f"Hot key {name} expires in {humanize.seconds(round(remains_s))}",
                where=name,
                command=key_line("PTTL", one.key),
                keys=Amount(1),
                memory=one.memory_bytes,
                behind=behind_key(one.key),
                evidence=[] if rate is None else [f"the server executes {humanize.decimal(rate)} commands per second"],
                example_keys=(one.key,),
            )


def _ranks_by_use(view: HealthView) -> bool:
    return view.report is not None and view.report.hot.ranks_by_use


def _has_report(view: HealthView) -> bool:
    return view.report is not None


KEY_FINDERS: Final = (
    server_rule(EVICTS, evicts_lasting, "evicts locks", applies=_has_report, needs_more=True),
    server_rule(BIG_SLOW, slow_big_keys, "slow big key", applies=_has_report, needs_more=True),
    server_rule(HOT_EXPIRING, expiring_hot_keys, "hot key expires", applies=_ranks_by_use, needs_more=True),
    server_rule(CLIFF_LOAD, cliff_load, "expiry", applies=lambda view: _has_report(view) and len(view.spans) > 1,
        needs_more=True),
)  # fmt: skip
