"""Rules about a server's memory and its load.

Memory: its limit, what can be evicted, fragmentation, swap. Work: slow commands, hits that fell, processor,
connections, buffers. What counters tell since the start is in `server_counts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Finding, key_line, of_server, server_rule
from rtui.analysis.health.durability_panels import LEAST_S
from rtui.analysis.health.load_panels import (
    BUFFERS,
    CHURN,
    CLIENTS_LIMIT,
    CPU,
    HIT_RATIO,
    MAIN_THREAD,
    QUERIES,
    class_of,
    hits_and_reads,
    limits,
    listed,
    query_limit,
    with_library,
)
from rtui.analysis.health.memory_panel import CANNOT_EVICT, FRAGMENTED, NEAR_LIMIT, POLICY, SWAPPED, UNLIMITED, eviction
from rtui.analysis.health.sample import ClientFigures, LoggedCommand, Source
from rtui.analysis.health.slow_panel import SLOW, LoggedGroup, first_key, folding, group_name, grouped, logged
from rtui.analysis.health.view import HealthView, SampleSpan
from rtui.analysis.query.behind import Behind
from rtui.analysis.query.patterns import PatternSyntaxError, check_pattern_text
from rtui.analysis.query.query import one_of, query_of
from rtui.keyspace.text.display import display

_LOOK: Final = "redis-cli INFO memory"
OUT_OF_MEMORY: Final = "OOM"
_POLICY_LINE: Final = "redis-cli CONFIG GET 'maxmemory*'"


_OTHER_LIMIT: Final = 1.25


class Pressure(NamedTuple):
    """How full a server's memory is, by maxmemory."""

    counted: float
    """Bytes in use that count."""
    share: float
    left_s: float | None
    """Time until it is full at the current growth; None if it does not grow."""
    is_near: bool
    peak: float
    """The highest share since the server's start."""

    @property
    def was_full(self) -> bool:
        """Whether the peak was at the limit; one far above it was under another limit."""
        return 1 <= self.peak <= _OTHER_LIMIT

    def evidence(self, view: HealthView) -> Iterator[str]:
        limit = view.number("maxmemory") or 0
        yield f"{humanize.size(self.counted)} of {humanize.size(limit)} used, policy {eviction(view).policy}"
        if self.left_s is not None:
            yield f"at the current growth it is full in {humanize.seconds(max(0, round(self.left_s)))}"
        peak, at_s = view.number("used_memory_peak"), view.number("used_memory_peak_time")
        if peak is not None and self.was_full:
            yield f"the peak was {humanize.size(peak)}{f' at {humanize.moment(at_s)} UTC' if at_s else ''}"


def pressure(view: HealthView) -> Pressure | None:
    limit, used = view.number("maxmemory"), view.number("used_memory")
    if not limit or used is None:
        return None
    beside = view.number("mem_not_counted_for_evict") or 0
    counted = max(0.0, used - beside)
    growth = view.trend("used_memory")
    left_s = (limit - counted) / growth if growth and growth > 0 else None
    is_soon = left_s is not None and left_s * 1000 < view.levels.number(NEAR_LIMIT, "left")
    is_near = counted >= view.levels.number(NEAR_LIMIT, "share") * limit or is_soon
    peak = (view.number("used_memory_peak") or 0) - beside
    return Pressure(counted, counted / limit, left_s, is_near, max(counted, peak) / limit)


def near_limit(view: HealthView) -> Iterator[Finding]:
    found, memory = eviction(view), pressure(view)
    if memory is None or found.candidates is None or found.takes_expiring_only:
        return
    if (found.candidates and found.keys) or not (memory.is_near or memory.was_full):
        return
    title = f"{humanize.share(memory.share)} of maxmemory is used, and no key can be evicted"
    if not memory.is_near:
        peak, now = humanize.share(memory.peak), humanize.share(memory.share)
        title = f"The peak was {peak} of maxmemory, {now} is used now, and no key can be evicted"
    yield of_server(view, NEAR_LIMIT, title, command=_LOOK, memory=memory.counted, evidence=memory.evidence(view))


def unlimited(view: HealthView) -> Iterator[Finding]:
    resident, total = view.number("used_memory_rss"), view.number("total_system_memory")
    if view.number("maxmemory") != 0 or not resident or not total:
        return
    if resident >= view.levels.number(UNLIMITED, "share") * total:
        title = f"No maxmemory, and {humanize.share(resident / total)} of the machine's memory is in use"
        evidence = (f"{humanize.size(resident)} resident of {humanize.size(total)}",)
        yield of_server(view, UNLIMITED, title, command=_POLICY_LINE, memory=resident, evidence=evidence)


def _resident_ratio(view: HealthView, rule: str) -> tuple[float, float, float] | None:
    """Return used and resident memory and their ratio; None where that means nothing, by a limit of the rule."""
    used, resident = view.number("used_memory"), view.number("used_memory_rss")
    if not used or resident is None or used < view.levels.number(rule, "least"):
        return None
    return used, resident, resident / used


def fragmented(view: HealthView) -> Iterator[Finding]:
    found = _resident_ratio(view, FRAGMENTED)
    if found is None or found[2] <= view.levels.number(FRAGMENTED, "ratio"):
        return
    used, resident, ratio = found
    evidence = [f"{humanize.size(used)} used, {humanize.size(resident)} resident"]
    tells_more = not view.text("mem_allocator").startswith("libc")  # its parts are made up, or of another kind
    parts = (
        ("allocator_frag_bytes", "free within pages in use: activedefrag returns it"),
        ("allocator_rss_bytes", "in free pages of the allocator: MEMORY PURGE returns them"),
        ("rss_overhead_bytes", "used outside the allocator"),
    )
    evidence += [
        f"{humanize.size(size)} {what}" for name, what in parts if tells_more and (size := view.number(name) or 0) > 0
    ]
    title = f"{humanize.ratio(ratio)} fragmentation: RSS over used memory"
    yield of_server(view, FRAGMENTED, title, command=_LOOK, memory=resident - used, evidence=evidence)


def swapped(view: HealthView) -> Iterator[Finding]:
    found = _resident_ratio(view, SWAPPED)
    if found is None or found[2] >= view.levels.number(SWAPPED, "ratio"):
        return
    used, resident, ratio = found
    title = f"Only {humanize.share(ratio)} of the used memory is resident"
    evidence = (f"{humanize.size(used)} used, {humanize.size(resident)} resident",)
    yield of_server(view, SWAPPED, title, command=_LOOK, memory=used - resident, evidence=evidence)


def cannot_evict(view: HealthView) -> Iterator[Finding]:
    found, memory = eviction(view), pressure(view)
    share, keys = found.candidate_share, found.keys
    if memory is None or not found.takes_expiring_only or share is None or keys is None:
        return
    refused = view.latest.errors.get(OUT_OF_MEMORY, 0)
    is_worse = (not found.candidates and (memory.is_near or memory.was_full)) or refused > 0
    if share >= view.levels.number(CANNOT_EVICT, "share") or not (
        is_worse or keys >= view.levels.number(CANNOT_EVICT, "keys")
    ):
        return
    portion = humanize.share(share) if found.candidates else "none"
    full = ""
    if memory.is_near:
        full = f", and {humanize.share(memory.share)} of maxmemory is used"
    elif memory.was_full:
        full = f", and the peak was {humanize.share(memory.peak)} of maxmemory"
    title = f"{found.policy} can evict {portion} of {humanize.keys(keys)}{full}"
    evidence = [f"{humanize.keys(found.candidates or 0)} with a TTL", *memory.evidence(view)]
    evidence += [f"{humanize.counted(refused, 'command')} failed with OOM {view.since.words}"] if refused else []
    yield of_server(view, CANNOT_EVICT, title, command="redis-cli INFO keyspace", evidence=evidence, is_worse=is_worse)


def other_policy(view: HealthView) -> Iterator[Finding]:
    policy, agreed = view.text("maxmemory_policy"), view.levels.words(POLICY, "policies")
    if policy not in agreed:
        title = f"The eviction policy is {policy}; expected is {' or '.join(agreed) or 'none'}"
        yield of_server(view, POLICY, title, command=_POLICY_LINE, evidence=filter(None, (eviction(view).meaning,)))


_MEMORY: Final = Source.INFO_MEMORY
_RESIDENT: Final = ("used_memory", "used_memory_rss")


MOST_EXAMPLES: Final = 3

_SLOWER: Final = 10
"""A single command that takes this many times the threshold is named, too."""

_NAME_LIMIT: Final = 60


def slow_groups(view: HealthView) -> Iterator[tuple[LoggedGroup, float]]:
    """Yield the commands by namespace that are slow by the rule, with the threshold in microseconds."""
    longest_us = view.levels.number(SLOW, "longest") * 1000
    since_s = view.latest.at_ms / 1000 - view.levels.number(SLOW, "within") / 1000
    entries: list[LoggedCommand] = [
        one
        for one in logged(view, Source.SLOW_LOG)
        if one.amount > longest_us and one.at_s >= since_s and not one.is_own
    ]
    for group in grouped(entries, folding(view)):
        if len(group.entries) >= view.levels.number(SLOW, "calls") or group.largest.amount > _SLOWER * longest_us:
            yield group, longest_us


def slow(view: HealthView) -> Iterator[Finding]:
    for group, longest_us in slow_groups(view):
        longest = humanize.seconds(group.largest.amount / 1e6)
        key = first_key(group.largest)
        clients = {one.address: one for one in listed(view) or ()}
        callers = {with_library(one.client_name, one.address, clients.get(one.address)): None for one in group.entries}
        examples = {display(one, limit=_NAME_LIMIT): None for entry in group.entries if (one := first_key(entry))}
        yield of_server(
            view,
            SLOW,
            f"{group_name(group)} took over {humanize.seconds(longest_us / 1e6)} "
            f"{humanize.counted(len(group.entries), 'time')}, {longest} at most",
            where=group_name(group),
            command="redis-cli SLOWLOG GET 25" if key is None else key_line("MEMORY USAGE", key),
            behind=_keys_of(group.pattern),
            evidence=[
                f"{humanize.seconds(group.total / 1e6)} total, last {humanize.moment(group.entries[0].at_s)} UTC",
                *list(examples)[:MOST_EXAMPLES],
                *[f"sent by {who}" for who in list(callers)[:MOST_EXAMPLES] if who],
            ],
            example_keys=() if key is None else (key,),
        )


def _keys_of(pattern: bytes) -> Behind | None:
    try:
        return Behind(query_of(one_of("pattern", [check_pattern_text(pattern)]))) if pattern else None
    except PatternSyntaxError:
        return None


def fell(view: HealthView) -> Iterator[Finding]:
    session = view.session
    total = hits_and_reads(view)
    if session is None or total is None or session.hit_ratio is None:
        return
    hits, all_reads = total
    reads = (session.change("keyspace_hits") or 0) + (session.change("keyspace_misses") or 0)
    before_hits, before = hits - (session.change("keyspace_hits") or 0), all_reads - reads
    if before < 1 or reads < view.levels.number(HIT_RATIO, "reads"):
        return
    ratio = before_hits / before
    if session.hit_ratio <= ratio - view.levels.number(HIT_RATIO, "by"):
        now, was = humanize.share(session.hit_ratio), humanize.share(ratio)
        yield of_server(
            view,
            HIT_RATIO,
            f"{now} of reads hit; before it was {was}",
            command="redis-cli INFO stats",
            evidence=(f"{humanize.counted(round(reads), 'read')} in {humanize.seconds(round(session.seconds))}",),
        )


def saturated(view: HealthView) -> Iterator[Finding]:
    share = None if view.session is None else view.session.rate(*MAIN_THREAD)
    if share is not None and share >= view.levels.number(CPU, "share"):
        told = view.told(Source.COMMAND_STATS)
        top = sorted(() if told is None else told.commands.items(), key=lambda one: -one[1].took_us)[:MOST_EXAMPLES]
        evidence = [f"{display(name.encode())}: {humanize.seconds(one.took_us / 1e6)} so far" for name, one in top]
        title = f"The main thread uses {humanize.share(share)} of a core"
        yield of_server(view, CPU, title, command="redis-cli INFO commandstats", evidence=evidence)


def churn(view: HealthView) -> Iterator[Finding]:
    rate = None if view.session is None else view.session.rate("total_connections_received")
    if rate is not None and rate > view.levels.number(CHURN, "rate"):
        connected = view.number("connected_clients")
        evidence = [] if connected is None else [f"{humanize.decimal(connected)} are connected"]
        title = f"{humanize.decimal(rate)} new connections per second"
        yield of_server(view, CHURN, title, command="redis-cli INFO clients", evidence=evidence)


def near_client_limit(view: HealthView) -> Iterator[Finding]:
    connected, most = view.number("connected_clients"), view.number("maxclients")
    if connected and most and connected >= view.levels.number(CLIENTS_LIMIT, "share") * most:
        title = f"{humanize.share(connected / most)} of maxclients are connected"
        evidence = (f"{humanize.decimal(connected)} connected, maxclients {humanize.decimal(most)}",)
        yield of_server(view, CLIENTS_LIMIT, title, command="redis-cli CLIENT LIST", evidence=evidence)


def unread_output(view: HealthView) -> Iterator[Finding]:
    size, share, bounds = view.levels.number(BUFFERS, "size"), view.levels.number(BUFFERS, "share"), limits(view)
    found = []
    for one in listed(view) or ():
        bound, waits = bounds.get(class_of(one)), one.output_bytes or 0
        if waits >= size or (bound is not None and bound.is_near(waits, share)):
            closed = f", closed {bound.words}" if bound is not None and bound.words else ""
            found.append((one, waits, f", {class_of(one)}{closed}"))
    yield from _with_buffers(view, BUFFERS, found, "of unread output")


def large_requests(view: HealthView) -> Iterator[Finding]:
    limit, share = query_limit(view), view.levels.number(QUERIES, "share")
    sent = [(one, one.query_bytes or 0, "") for one in listed(view) or ()]
    found = [one for one in sent if limit and one[1] >= share * limit]
    found.sort(key=lambda one: -one[1])
    yield from _with_buffers(view, QUERIES, found, "of incomplete requests")


def _with_buffers(
    view: HealthView, rule: str, found: Sequence[tuple[ClientFigures, int, str]], of_what: str
) -> Iterator[Finding]:
    if not found:
        return
    memory = sum(waits for _, waits, _ in found)
    evidence = [
        f"{with_library(one.name, one.address, one)}: {humanize.size(waits)}{more}"
        for one, waits, more in found[:MOST_EXAMPLES]
    ]
    title = f"{humanize.counted(len(found), 'client')} with {humanize.size(memory)} {of_what}"
    yield of_server(view, rule, title, command="redis-cli CLIENT LIST", memory=memory, evidence=evidence)


def _lasts(view: HealthView) -> bool:
    session: SampleSpan | None = view.session
    return session is not None and session.seconds >= LEAST_S


_STATS: Final = Source.INFO_STATS

FINDERS: Final = (
    server_rule(NEAR_LIMIT, near_limit, "memory full", ("used_memory", "maxmemory", "maxmemory_policy"), _MEMORY),
    server_rule(UNLIMITED, unlimited, "no maxmemory", ("maxmemory", "total_system_memory"), _MEMORY),
    server_rule(CANNOT_EVICT, cannot_evict, "cannot evict", ("maxmemory", "maxmemory_policy"), _MEMORY),
    server_rule(POLICY, other_policy, "policy", ("maxmemory_policy",), _MEMORY),
    server_rule(SWAPPED, swapped, "swapped", _RESIDENT, _MEMORY),
    server_rule(FRAGMENTED, fragmented, "fragmented", _RESIDENT, _MEMORY),
    server_rule(CLIENTS_LIMIT, near_client_limit, "clients", ("connected_clients",), Source.INFO_CLIENTS),
    server_rule(CPU, saturated, "CPU", MAIN_THREAD, Source.INFO_CPU, applies=_lasts, needs_more=True),
    server_rule(BUFFERS, unread_output, "buffers", (), Source.CLIENTS),
    server_rule(QUERIES, large_requests, "large requests", (), Source.CLIENTS),
    server_rule(SLOW, slow, "slow", (), Source.SLOW_LOG),
    server_rule(HIT_RATIO, fell, "hit ratio", ("keyspace_hits", "keyspace_misses"), _STATS,
        applies=lambda view: view.session is not None, needs_more=True),
    server_rule(CHURN, churn, "churn", ("total_connections_received",), _STATS, applies=_lasts, needs_more=True),
)  # fmt: skip
