"""Rules about a server's memory: its limit, what can be evicted, fragmentation, swap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Finding
from rtui.analysis.findings.server_finding import ServerFinder, of_server
from rtui.analysis.health.memory_panel import CANNOT_EVICT, FRAGMENTED, NEAR_LIMIT, POLICY, SWAPPED, UNLIMITED, eviction
from rtui.analysis.health.sample import Source
from rtui.analysis.health.view import HealthView

_LOOK: Final = "redis-cli INFO memory"
OUT_OF_MEMORY: Final = "OOM"
"""The error of commands that need more memory than there is."""

_POLICY_LINE: Final = "redis-cli CONFIG GET 'maxmemory*'"


def near_limit(view: HealthView) -> Iterator[Finding]:
    """Find memory that is nearly full, or will be soon, where the policy finds no key to evict."""
    found, used = eviction(view), view.number("used_memory")
    limit, candidates, failed = found.limit_bytes, found.candidates, _failed(view)
    if not limit or used is None or candidates is None or (candidates and found.keys and not failed):
        return
    counted = max(0.0, used - (view.number("mem_not_counted_for_evict") or 0))
    growth = view.trend("used_memory")
    left_s = (limit - counted) / growth if growth and growth > 0 else None
    is_soon = left_s is not None and left_s * 1000 < view.levels.number(NEAR_LIMIT, "left")
    if counted < view.levels.number(NEAR_LIMIT, "share") * limit and not is_soon and not failed:
        return
    evidence = [f"{humanize.size(counted)} of {humanize.size(limit)} used, policy {found.policy}"]
    if left_s is not None:
        evidence.append(f"at the present growth it is full in {humanize.seconds(max(0, round(left_s)))}")
    so_far = view.latest.errors.get(OUT_OF_MEMORY) if view.told(Source.ERROR_STATS) is not None else None
    if so_far:
        evidence.append(f"{humanize.counted(so_far, 'command')} failed with OOM since the statistics began")
    title = f"{humanize.share(counted / limit)} of maxmemory is used, and no key can be evicted"
    if failed:
        title = f"Memory is full: {humanize.counted(failed, 'command')} failed with OOM in this session"
    yield of_server(view, NEAR_LIMIT, title, command=_LOOK, memory=counted, evidence=evidence)


def _failed(view: HealthView) -> int:
    """Return how many commands have failed in the session since memory was full; 0 where that is not known."""
    between = view.between(Source.ERROR_STATS)
    errors = None if between is None else between.errors
    return 0 if errors is None else errors.get(OUT_OF_MEMORY, 0)


def unlimited(view: HealthView) -> Iterator[Finding]:
    """Find a server without maxmemory that takes a large share of its machine's memory."""
    resident, total = view.number("used_memory_rss"), view.number("total_system_memory")
    if view.number("maxmemory") != 0 or not resident or not total:
        return
    if resident >= view.levels.number(UNLIMITED, "share") * total:
        title = f"No maxmemory, and {humanize.share(resident / total)} of the machine's memory is taken"
        evidence = (f"{humanize.size(resident)} resident of {humanize.size(total)}",)
        yield of_server(view, UNLIMITED, title, command=_POLICY_LINE, memory=resident, evidence=evidence)


def _resident_ratio(view: HealthView, rule: str) -> tuple[float, float, float] | None:
    """Return used and resident memory and their ratio; None where that means nothing, by a limit of the rule."""
    used, resident = view.number("used_memory"), view.number("used_memory_rss")
    if not used or resident is None or used < view.levels.number(rule, "least"):
        return None
    return used, resident, resident / used


def fragmented(view: HealthView) -> Iterator[Finding]:
    """Find far more memory resident than used."""
    found = _resident_ratio(view, FRAGMENTED)
    if found is None or found[2] <= view.levels.number(FRAGMENTED, "ratio"):
        return
    used, resident, ratio = found
    evidence = [f"{humanize.size(used)} used, {humanize.size(resident)} resident"]
    tells_more = not view.text("mem_allocator").startswith("libc")  # its parts are made up, or of another kind
    parts = (
        ("allocator_frag_bytes", "free between values in pages that are in use: activedefrag gives it back"),
        ("allocator_rss_bytes", "in free pages that the allocator keeps: MEMORY PURGE returns them"),
        ("rss_overhead_bytes", "taken by the program beside the allocator"),
    )
    evidence += [
        f"{humanize.size(size)} {what}" for name, what in parts if tells_more and (size := view.number(name) or 0) > 0
    ]
    title = f"{humanize.ratio(ratio)} as much memory is resident as is used"
    yield of_server(view, FRAGMENTED, title, command=_LOOK, memory=resident - used, evidence=evidence)


def swapped(view: HealthView) -> Iterator[Finding]:
    """Find less memory resident than used."""
    found = _resident_ratio(view, SWAPPED)
    if found is None or found[2] >= view.levels.number(SWAPPED, "ratio"):
        return
    used, resident, ratio = found
    title = f"Only {humanize.share(ratio)} of the used memory is resident"
    evidence = (f"{humanize.size(used)} used, {humanize.size(resident)} resident",)
    yield of_server(view, SWAPPED, title, command=_LOOK, memory=used - resident, evidence=evidence)


def cannot_evict(view: HealthView) -> Iterator[Finding]:
    """Find a volatile policy where hardly any key has a TTL."""
    found = eviction(view)
    share = found.candidate_share
    if not found.limit_bytes or not found.takes_expiring_only or share is None or found.keys is None:
        return
    if found.keys >= view.levels.number(CANNOT_EVICT, "keys") and share < view.levels.number(CANNOT_EVICT, "share"):
        portion = humanize.share(share)
        title = f"{found.policy} can evict {portion if found.candidates else 'none'} of {humanize.keys(found.keys)}"
        evidence = (f"{humanize.keys(found.candidates or 0)} with a TTL", found.meaning)
        yield of_server(view, CANNOT_EVICT, title, command="redis-cli INFO keyspace", evidence=evidence)


def other_policy(view: HealthView) -> Iterator[Finding]:
    """Find an eviction policy that was not agreed on."""
    policy, agreed = view.text("maxmemory_policy"), view.levels.words(POLICY, "policies")
    if policy not in agreed:
        title = f"The eviction policy is {policy}; agreed is {' or '.join(agreed) or 'none'}"
        yield of_server(view, POLICY, title, command=_POLICY_LINE, evidence=filter(None, (eviction(view).meaning,)))


_MEMORY: Final = Source.INFO_MEMORY
_RESIDENT: Final = ("used_memory", "used_memory_rss")

FINDERS: Final = (
    ServerFinder(NEAR_LIMIT, near_limit, "memory full", ("used_memory", "maxmemory", "maxmemory_policy"), _MEMORY),
    ServerFinder(UNLIMITED, unlimited, "no maxmemory", ("maxmemory", "total_system_memory"), _MEMORY),
    ServerFinder(CANNOT_EVICT, cannot_evict, "cannot evict", ("maxmemory", "maxmemory_policy"), _MEMORY),
    ServerFinder(POLICY, other_policy, "policy", ("maxmemory_policy",), _MEMORY),
    ServerFinder(SWAPPED, swapped, "swapped", _RESIDENT, _MEMORY),
    ServerFinder(FRAGMENTED, fragmented, "fragmented", _RESIDENT, _MEMORY),
)
"""The rules about memory, the worst first."""
