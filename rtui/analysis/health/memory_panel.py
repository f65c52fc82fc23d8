"""The uses of a server's memory, its distance from the limit, and the keys that go when it is full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.health.panel import About, Line, Lines, Panel
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import HealthView, number
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, Figure
from rtui.analysis.report.tables.cells import KEYS, plain
from rtui.analysis.report.tables.table import Column, Table, Unit
from rtui.analysis.report.tables.totals import key_sizes_table, types
from rtui.keyspace.text.display import SafeText, display
from rtui.registry.rules import Severity

NO_EVICTION: Final = "noeviction"

_ORDERS: Final = {
    "lru": "least recently used first", "lrm": "least recently modified first", "lfu": "least frequently used first",
    "random": "at random", "ttl": "soonest to expire first",
}  # fmt: skip

MOST_NAMESPACES: Final = 3
_NAME_LIMIT: Final = 60


@dataclass(frozen=True)
class Eviction:
    """The effect of a server's policy on its keys."""

    policy: str
    """Safe text; empty where it is not known."""
    limit_bytes: float | None
    """maxmemory: 0 for none, None where it is not known."""
    keys: int | None
    """Of all databases; None where INFO keyspace is not known."""
    expiring_keys: int | None

    @property
    def takes_expiring_only(self) -> bool:
        return self.policy.startswith("volatile-")

    @property
    def candidates(self) -> int | None:
        if not self.policy or self.keys is None:
            return None
        if self.policy == NO_EVICTION:
            return 0
        return self.expiring_keys if self.takes_expiring_only else self.keys

    @property
    def candidate_share(self) -> float | None:
        return None if self.candidates is None or not self.keys else self.candidates / self.keys

    @property
    def meaning(self) -> str:
        if not self.policy:
            return ""
        if self.limit_bytes == 0:
            return "maxmemory is not set, so no key is ever evicted"
        if self.policy == NO_EVICTION:
            return "when memory is full, no key is evicted, and commands that need more memory fail with OOM"
        which, _, order = self.policy.partition("-")
        if which not in ("allkeys", "volatile") or order not in _ORDERS:
            return ""
        keys = "keys are" if which == "allkeys" else "keys with a TTL are"
        return f"when memory is full, {keys} evicted, {_ORDERS[order]}{self._stays}"

    @property
    def _stays(self) -> str:
        if not self.takes_expiring_only or self.keys is None or self.expiring_keys is None or not self.keys:
            return ""
        if not self.expiring_keys:
            return "; no key has a TTL, so nothing can be evicted and writes fail with OOM"
        return f"; {humanize.share(1 - self.expiring_keys / self.keys)} of the keys have no TTL and stay"


def eviction(view: HealthView) -> Eviction:
    databases = view.latest.databases.values()
    knows_expiring = all(one.expires is not None for one in databases)
    knows_keys = bool(databases) or (bool(view.latest.info) and Source.INFO_KEYSPACE not in view.latest.missing)
    return Eviction(
        view.text("maxmemory_policy"),
        view.number("maxmemory"),
        sum(one.keys for one in databases) if knows_keys else None,
        sum(one.expires or 0 for one in databases) if knows_keys and knows_expiring else None,
    )


def first_to_go(policy: str, report: Report) -> SafeText:
    """Return the namespaces that lose keys first, by a report: `shop:cache: (61% unused for 30d)`; may be empty."""
    which, _, order = policy.partition("-")
    nodes = [
        node
        for node in report.summary.root.children
        if node.kind is not NodeKind.OTHER and (which == "allkeys" or plain(node.stats.no_ttl_share or 0) < 1)
    ]
    found = sorted(_weights(nodes, order), key=lambda one: -one[0])[:MOST_NAMESPACES]
    return SafeText(
        ", ".join(f"{display(node.name + node.separator, limit=_NAME_LIMIT)} ({why})" for _, node, why in found)
    )


def _weights(nodes: list[Node], order: str) -> Iterator[tuple[float, Node, str]]:
    """Yield the weight of a namespace among the keys that go first, and the weight in words."""
    if order in ("lru", "lrm"):
        longest = range(len(IDLE_EDGES_S), 0, -1)
        for keys, node, at in _first_bin([(node, node.stats.idle) for node in nodes], longest):
            yield keys, node, f"{humanize.keys(round(keys))} idle for {humanize.seconds(IDLE_EDGES_S[at - 1])}"
    elif order == "lfu":
        lowest = range(len(FREQUENCY_EDGES))
        for keys, node, at in _first_bin([(node, node.stats.frequency) for node in nodes], lowest):
            yield keys, node, f"{humanize.keys(round(keys))} with an LFU counter below {FREQUENCY_EDGES[at]}"
    elif order == "ttl":
        for node in nodes:
            if node.stats.soonest_expiry_s is not None:
                yield (
                    -node.stats.soonest_expiry_s,
                    node,
                    f"expiring from {humanize.moment(node.stats.soonest_expiry_s)} UTC",
                )


def _first_bin(
    histograms: list[tuple[Node, tuple[Figure, ...] | None]], order: range
) -> Iterator[tuple[float, Node, int]]:
    """Yield the keys that namespaces have in the first bin, in this order, in which any has one."""
    for at in order:
        found = [(keys, node, at) for node, bins in histograms if bins and (keys := plain(bins[at])) >= 1]
        if found:
            yield from found
            return


FRAGMENTED: Final = "memory-fragmented"
NEAR_LIMIT: Final = "memory-near-limit"
UNLIMITED: Final = "memory-unlimited"
CANNOT_EVICT: Final = "eviction-impossible"
POLICY: Final = "eviction-policy"
SWAPPED: Final = "memory-swapped"

_PARTS: Final = (
    ("used_memory_dataset", "dataset"),
    ("used_memory_startup", "startup"),
    ("mem_overhead_db_hashtable_rehashing", "hash tables being resized"),
    ("mem_clients_normal", "client buffers"),
    ("mem_clients_slaves", "replica buffers"),
    ("mem_replication_backlog", "replication backlog"),
    ("mem_total_replication_buffers", "replication buffers and backlog"),
    ("mem_aof_buffer", "AOF buffers"),
    ("mem_cluster_links", "cluster bus links"),
    ("used_memory_vm_total", "script engines"),
    ("used_memory_scripts", "scripts and functions"),
)

_DATA: Final = ("used_memory", "used_memory_startup", "used_memory_dataset")
_PART: Final = Column("part", "used for", Unit.TEXT, 0)
_BYTES: Final = Column("bytes", "memory", Unit.BYTES, 9)
_OF_USED: Final = Column("share_of_used", "share", Unit.SHARE, 5, "Of used memory")
_DATABASE: Final = Column("db", "db", Unit.NUMBER, 4)
_EXPIRING: Final = Column("expiring_keys", "with TTL", Unit.KEYS, 11)
_EXPIRING_SHARE: Final = Column("expiring_share", "share", Unit.SHARE, 5, "Of the keys of the database")
_MEAN_TTL: Final = Column("mean_ttl", "mean TTL", Unit.DURATION, 9, "Estimated by the server from some of the keys")


def memory_panel(view: HealthView) -> Panel:
    found = eviction(view)
    notes = [SafeText(why)] if (why := found.meaning) else []
    if view.report is not None and found.limit_bytes and (names := first_to_go(found.policy, view.report)):
        notes.append(SafeText(f"by the report of the keys, the first to be evicted would be {names}"))
    return Panel("memory", "Memory", tuple(_lines(view, found)), tuple(_tables(view)), tuple(notes))


def _lines(view: HealthView, found: Eviction) -> Iterator[Line]:
    lines, stats = Lines(view, Source.INFO_MEMORY), Lines(view, Source.INFO_STATS)
    limit, used = found.limit_bytes, view.number("used_memory")
    of = f"{humanize.share(used / limit)} of maxmemory" if used is not None and limit else ""
    yield lines.gauge("used_memory", "used memory", Unit.BYTES, About(of, _below(view), NEAR_LIMIT))
    least = humanize.share(view.levels.number(SWAPPED, "ratio"))
    resident = About("", f"at least {least} of used_memory", SWAPPED)
    total = view.number("total_system_memory")
    machine = f"the machine has {humanize.size(total)}" if total else ""
    limit_shown = "no limit" if limit == 0 else view.cell("maxmemory", Source.INFO_MEMORY)
    about = About(machine, "a limit, unless RAM is ample", UNLIMITED)
    yield lines.given("maxmemory", "memory limit", Unit.BYTES, limit_shown, about)
    yield lines.gauge("used_memory_peak", "peak memory", Unit.BYTES)
    yield lines.gauge("used_memory_rss", "resident memory (RSS)", Unit.BYTES, resident)
    yield lines.gauge("maxmemory_policy", "eviction policy", Unit.TEXT, About(found.meaning, _policies(view), POLICY))
    evictable = view.unknown(Source.INFO_KEYSPACE) if found.candidates is None else found.candidate_share
    about = About(normal="all keys, or none", rule=CANNOT_EVICT)
    yield lines.given("evictable_keys_share", "evictable keys", Unit.SHARE, evictable, about)
    yield lines.computed("dataset_share", "dataset share", Unit.SHARE, _dataset_share, fields=_DATA)
    yield from _fragmentation(view, lines)
    yield stats.rate("evicted_keys", "evicted keys", Unit.KEYS, "evicted_keys")
    yield stats.rate("expired_keys", "expired keys", Unit.KEYS, "expired_keys")
    yield lines.gauge("lazyfree_pending_objects", "pending lazy frees", Unit.COUNT)


def _fragmentation(view: HealthView, lines: Lines) -> Iterator[Line]:
    ratio, least = view.levels.number(FRAGMENTED, "ratio"), view.levels.number(FRAGMENTED, "least")
    used = view.number("used_memory")
    said = f"not meaningful below {humanize.size(least)} used" if used is not None and used < least else ""
    about = About(said, f"1.0 to {ratio}; below 1: swapped?", FRAGMENTED)
    yield lines.gauge("mem_fragmentation_ratio", "fragmentation ratio", Unit.RATIO, about)
    if view.text("mem_allocator").startswith("libc"):
        return
    within = About("activedefrag returns free space within pages", "up to 1.1")
    yield lines.gauge("allocator_frag_ratio", "allocator fragmentation", Unit.RATIO, within)
    yield lines.gauge(
        "allocator_rss_ratio", "allocator RSS ratio", Unit.RATIO, About("MEMORY PURGE returns free pages")
    )
    yield lines.gauge("rss_overhead_ratio", "RSS overhead ratio", Unit.RATIO)
    yield lines.gauge("active_defrag_running", "active defrag, CPU %", Unit.NUMBER)


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
        note = "Some parts include others."
        yield Table("memory_parts", "What memory is used for", (_PART, _BYTES, _OF_USED), found, note=note)
    if latest.key_sizes:
        yield key_sizes_table(latest.key_sizes, "of all databases")
    if view.report is not None:
        yield replace(types(view.report), title="Types, by the report of the keys")


def _dataset_share(sample: Sample) -> float | None:
    """Return the share of data in the memory used since the start."""
    used, startup = number(sample, "used_memory"), number(sample, "used_memory_startup")
    data = number(sample, "used_memory_dataset")
    if used is None or startup is None or data is None or used <= startup:
        return None
    return data / (used - startup)


def _below(view: HealthView) -> str:
    return f"below {humanize.share(view.levels.number(NEAR_LIMIT, 'share'))} of maxmemory"


def _policies(view: HealthView) -> str:
    is_off = view.levels.severity(POLICY) is Severity.OFF
    return "" if is_off else " or ".join(view.levels.words(POLICY, "policies"))
