"""What a server's memory is used for, how near it is to its limit, and which keys go when it is full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.health.eviction import Eviction, eviction, first_to_go
from rtui.analysis.health.lines import About, Lines
from rtui.analysis.health.panel import Line, Panel
from rtui.analysis.health.rates import number
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.cells import KEYS
from rtui.analysis.report.tables.table import Column, Table, Unit
from rtui.analysis.report.tables.totals import key_sizes_table, types
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import Severity

FRAGMENTED: Final = "memory-fragmented"
NEAR_LIMIT: Final = "memory-near-limit"
UNLIMITED: Final = "memory-unlimited"
CANNOT_EVICT: Final = "eviction-impossible"
POLICY: Final = "eviction-policy"
SWAPPED: Final = "memory-swapped"

_PARTS: Final = (
    ("used_memory_dataset", "data"),
    ("used_memory_startup", "the server itself, when it was started"),
    ("mem_overhead_db_hashtable_rehashing", "tables of keys that are being resized"),
    ("mem_clients_normal", "buffers of clients"),
    ("mem_clients_slaves", "buffers of replicas"),
    ("mem_replication_backlog", "replication backlog"),
    ("mem_total_replication_buffers", "replication buffers, with the backlog"),
    ("mem_aof_buffer", "AOF buffers"),
    ("mem_cluster_links", "links to other nodes of the cluster"),
    ("used_memory_vm_total", "engines of scripts and functions"),
    ("used_memory_scripts", "scripts and functions"),
)
"""What memory is used for, as INFO memory tells it."""

_DATA: Final = ("used_memory", "used_memory_startup", "used_memory_dataset")

_PART: Final = Column("part", "used for", Unit.TEXT, 0)
_BYTES: Final = Column("bytes", "bytes", Unit.BYTES, 9)
_OF_USED: Final = Column("share_of_used", "share", Unit.SHARE, 5, "Of used memory")

_DATABASE: Final = Column("db", "db", Unit.NUMBER, 4)
_EXPIRING: Final = Column("expiring_keys", "with TTL", Unit.KEYS, 11)
_EXPIRING_SHARE: Final = Column("expiring_share", "share", Unit.SHARE, 5, "Of the keys of the database")
_MEAN_TTL: Final = Column("mean_ttl", "mean TTL", Unit.DURATION, 9, "Estimated by the server from some of the keys")


def memory_panel(view: HealthView) -> Panel:
    """Return the figures of INFO memory and what they mean for these keys."""
    found = eviction(view)
    notes = [SafeText(why)] if (why := found.meaning) else []
    if view.report is not None and found.limit_bytes and (names := first_to_go(found.policy, view.report)):
        notes.append(SafeText(f"by the report of the keys, first would go {names}"))
    return Panel("memory", "Memory", tuple(_lines(view, found)), tuple(_tables(view)), tuple(notes))


def _lines(view: HealthView, found: Eviction) -> Iterator[Line]:
    lines, stats = Lines(view, Source.INFO_MEMORY), Lines(view, Source.INFO_STATS)
    limit, used = found.limit_bytes, view.number("used_memory")
    yield lines.gauge("used_memory", "used", Unit.BYTES, About(_used_of(used, limit), _below(view), NEAR_LIMIT))
    yield lines.gauge("used_memory_peak", "highest so far", Unit.BYTES)
    least = humanize.share(view.levels.number(SWAPPED, "ratio"))
    resident = About("what the operating system has given", f"at least {least} of what is used", SWAPPED)
    yield lines.gauge("used_memory_rss", "resident", Unit.BYTES, resident)
    total = view.number("total_system_memory")
    machine = f"the machine has {humanize.size(total)}" if total else ""
    yield lines.given(
        "maxmemory",
        "limit",
        Unit.BYTES,
        "no limit" if limit == 0 else view.cell("maxmemory", Source.INFO_MEMORY),
        About(machine, "set, where the machine's memory is not far larger than the data", UNLIMITED),
    )
    yield lines.gauge("maxmemory_policy", "eviction policy", Unit.TEXT, About(found.meaning, _policies(view), POLICY))
    yield lines.given(
        "evictable_keys_share",
        "keys that can be evicted",
        Unit.SHARE,
        lines.view.unknown(Source.INFO_KEYSPACE) if found.candidates is None else found.candidate_share,
        About(normal="all keys, or none where that is agreed", rule=CANNOT_EVICT),
    )
    yield lines.computed("dataset_share", "share that is data", Unit.SHARE, _dataset_share, fields=_DATA)
    yield from _fragmentation(view, lines)
    yield stats.rate("evicted_keys", "evicted", Unit.KEYS, "evicted_keys")
    yield stats.rate("expired_keys", "expired", Unit.KEYS, "expired_keys")
    yield lines.gauge(
        "lazyfree_pending_objects",
        "waiting to be freed",
        Unit.COUNT,
        About("values that UNLINK, FLUSHALL ASYNC or eviction have taken out and a thread frees"),
    )


def _fragmentation(view: HealthView, lines: Lines) -> Iterator[Line]:
    ratio, least = view.levels.number(FRAGMENTED, "ratio"), view.levels.number(FRAGMENTED, "least")
    used = view.number("used_memory")
    said = f"means nothing below {humanize.size(least)} used" if used is not None and used < least else ""
    yield lines.gauge(
        "mem_fragmentation_ratio",
        "resident over used",
        Unit.RATIO,
        About(said, f"1.0 to {ratio}; below 1 a part may be swapped out", FRAGMENTED),
    )
    if view.text("mem_allocator").startswith("libc"):
        return
    yield lines.gauge(
        "allocator_frag_ratio",
        "fragmentation of the allocator",
        Unit.RATIO,
        About("free space between values in pages that are in use; activedefrag gives it back", "up to 1.1"),
    )
    yield lines.gauge(
        "allocator_rss_ratio",
        "pages that the allocator keeps",
        Unit.RATIO,
        About("free pages that it has not returned yet; MEMORY PURGE returns them"),
    )
    yield lines.gauge("rss_overhead_ratio", "resident beside the allocator", Unit.RATIO)
    yield lines.gauge("active_defrag_running", "defragmentation, share of CPU in percent", Unit.NUMBER)


def _tables(view: HealthView) -> Iterator[Table]:
    latest = view.latest
    rows = tuple(
        (
            number_of,
            one.keys,
            one.expires,
            one.expires / one.keys if one.keys and one.expires is not None else None,
            one.avg_ttl_ms / 1000 if one.avg_ttl_ms else None,
        )
        for number_of, one in sorted(latest.databases.items())
    )
    if rows:
        yield Table("databases", "Databases", (_DATABASE, KEYS, _EXPIRING, _EXPIRING_SHARE, _MEAN_TTL), rows)
    used = view.number("used_memory")
    parts = [(title, size) for name, title in _PARTS if (size := view.number(name))]
    if used and parts:
        found = tuple(
            (title, size, size / used if size <= used else None)
            for title, size in sorted(parts, key=lambda one: -one[1])
        )
        note = "Parts overlap where one holds another."
        yield Table("memory_parts", "What memory is used for", (_PART, _BYTES, _OF_USED), found, note=note)
    if latest.key_sizes:
        yield key_sizes_table(latest.key_sizes, "of all databases")
    if view.report is not None:
        yield replace(types(view.report), title="Types, by the report of the keys")


def _dataset_share(sample: Sample) -> float | None:
    """Return the share of memory that is data, without what the server had when it was started."""
    used, startup = number(sample, "used_memory"), number(sample, "used_memory_startup")
    data = number(sample, "used_memory_dataset")
    if used is None or startup is None or data is None or used <= startup:
        return None
    return data / (used - startup)


def _used_of(used: float | None, limit: float | None) -> str:
    return f"{humanize.share(used / limit)} of the limit" if used is not None and limit else ""


def _below(view: HealthView) -> str:
    return f"below {humanize.share(view.levels.number(NEAR_LIMIT, 'share'))} of the limit where nothing can be evicted"


def _policies(view: HealthView) -> str:
    """Return which policies are agreed on; empty where the rule about them is off."""
    is_off = view.levels.severity(POLICY) is Severity.OFF
    return "" if is_off else " or ".join(view.levels.words(POLICY, "policies"))
