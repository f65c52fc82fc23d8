"""Rules that join a server and its keys: evictable keys, slow big keys, cliffs, hot keys that expire soon."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.expiring import is_lock, lock_words, locks
from rtui.analysis.findings.finding import Amount, Finding, glob_of, key_line, least, of_server, scan_line, server_rule
from rtui.analysis.findings.keys import HOT as HOT_KEY
from rtui.analysis.findings.server_load import slow_groups
from rtui.analysis.health.memory_panel import Eviction, eviction
from rtui.analysis.health.slow_panel import BIG_SLOW, first_key, group_name
from rtui.analysis.health.view import HealthView, Span
from rtui.analysis.query.behind import behind_key, cliff_keys, keys_of, label
from rtui.analysis.report.document import CoverageKind, Node, Report
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.text.display import display
from rtui.registry.expectations import Breach

EVICTS: Final = "eviction-of-lasting"
CLIFF_LOAD: Final = "expiry-cliff-load"
HOT_EXPIRING: Final = "hot-key-expiry-near"

SOONEST_FIRST: Final = "volatile-ttl"
"""The policy that spares keys without TTL and takes locks first: they have the shortest TTLs."""

MOST_PLACES: Final = 5
"""Namespaces and keys of one rule that are listed, the first ones."""

_NAME_LIMIT: Final = 120


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
    """Return how many keys of a namespace the policy may evict; None for none, or if unknown."""
    stats = node.stats
    if not found.takes_expiring_only:
        return Amount(stats.keys)
    expiring = 0 if stats.ttl is None else round(sum(map(least, stats.ttl)))
    known = plain(stats.no_ttl_keys or 0) + sum(map(plain, stats.ttl or ()))
    is_exact = report.head.coverage.kind is CoverageKind.EXACT and known >= plain(stats.keys)
    return Amount(expiring, at_least=not is_exact) if expiring else None


def slow_big_keys(view: HealthView) -> Iterator[Finding]:
    """Find keys of the slow log that are among the biggest of the report."""
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
            name = display(key, limit=_NAME_LIMIT)
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
    """Find cliffs of the report during which more is asked, or less found, than in the rest of the session."""
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
                f"{humanize.decimal(now)} {what} a second while {cliff.label} expires, {humanize.decimal(usual)} else"
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


def _rate(spans: list[Span], counter: str) -> float | None:
    """Return the rate over several spans together; None if it is unknown of all."""
    known = [(change, one.seconds) for one in spans if (change := one.change(counter)) is not None and one.seconds > 0]
    return sum(change for change, _ in known) / sum(seconds for _, seconds in known) if known else None


def expiring_hot_keys(view: HealthView) -> Iterator[Finding]:
    """Find the hot keys of the report that expire soon as of the last sample, or should have by then."""
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
            name = display(one.key, limit=_NAME_LIMIT)
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
                evidence=[] if rate is None else [f"the server carries out {humanize.decimal(rate)} commands a second"],
                example_keys=(one.key,),
            )


def _ranks_by_use(view: HealthView) -> bool:
    return view.report is not None and view.report.hot.ranks_by_use


def _has_report(view: HealthView) -> bool:
    return view.report is not None


FINDERS: Final = (
    server_rule(EVICTS, evicts_lasting, "evicts locks", applies=_has_report, needs_more=True),
    server_rule(BIG_SLOW, slow_big_keys, "slow big key", applies=_has_report, needs_more=True),
    server_rule(
        HOT_EXPIRING,
        expiring_hot_keys,
        "hot key expires",
        applies=_ranks_by_use,
        needs_more=True,
    ),
    server_rule(
        CLIFF_LOAD,
        cliff_load,
        "expiry",
        applies=lambda view: _has_report(view) and len(view.spans) > 1,
        needs_more=True,
    ),
)
"""The rules about a server and its keys, the worst first."""
