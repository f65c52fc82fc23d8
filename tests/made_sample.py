"""Samples of a server made by hand: one that is in use and healthy, and whatever a test changes of it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from rtui.analysis.health.sample import CommandStats, Database, Sample, Source
from tests.made_report import MADE_AT_S

MIB = 1 << 20
GIB = 1 << 30

ONLY_WITH_OTHERS = frozenset({Source.CLUSTER_INFO, Source.CLUSTER_NODES, Source.SENTINELS})
"""What is asked of nodes of a cluster, and of Sentinels, only."""

HEALTHY: dict[str, int | float | str] = {
    "redis_version": "7.4.10",
    "run_id": "b55a8d3e4a8c3cecfb531c01da21a1c8d6ff665a",
    "uptime_in_seconds": 86_400,
    "connected_clients": 40,
    "blocked_clients": 2,
    "maxclients": 10_000,
    "used_memory": 2 * GIB,
    "used_memory_peak": 2 * GIB + 200 * MIB,
    "used_memory_rss": 2 * GIB + 150 * MIB,
    "used_memory_startup": MIB,
    "used_memory_dataset": 1800 * MIB,
    "total_system_memory": 16 * GIB,
    "maxmemory": 4 * GIB,
    "maxmemory_policy": "allkeys-lru",
    "mem_allocator": "jemalloc-5.3.0",
    "mem_fragmentation_ratio": 1.07,
    "allocator_frag_ratio": 1.02,
    "allocator_rss_ratio": 1.03,
    "rss_overhead_ratio": 1.01,
    "mem_clients_normal": 2 * MIB,
    "mem_replication_backlog": MIB,
    "lazyfree_pending_objects": 0,
    "active_defrag_running": 0,
    "total_connections_received": 9_000,
    "total_commands_processed": 1_000_000,
    "total_net_input_bytes": 90_000_000,
    "total_net_output_bytes": 400_000_000,
    "instantaneous_ops_per_sec": 1_200,
    "keyspace_hits": 700_000,
    "keyspace_misses": 70_000,
    "expired_keys": 40_000,
    "evicted_keys": 0,
    "rejected_connections": 0,
    "latest_fork_usec": 9_000,
    "total_forks": 12,
    "used_cpu_sys": 40.0,
    "used_cpu_user": 300.0,
    "loading": 0,
    "rdb_last_save_time": int(MADE_AT_S) - 600,
    "rdb_last_bgsave_status": "ok",
    "rdb_changes_since_last_save": 300,
    "rdb_bgsave_in_progress": 0,
    "aof_enabled": 0,
    "aof_last_bgrewrite_status": "ok",
    "aof_last_write_status": "ok",
    "role": "master",
    "connected_slaves": 0,
    "master_repl_offset": 0,
    "repl_backlog_active": 0,
    "repl_backlog_size": MIB,
    "cluster_enabled": 0,
}
"""Fields of INFO of a primary of 2 GiB that is half full."""


def made_sample(after_s: float = 0.0, **changed: Any) -> Sample:
    """A healthy sample `after_s` seconds after the first; fields of INFO and of the sample by their names."""
    fields = {name: changed.pop(name) for name in Sample.__struct_fields__ if name in changed}
    uptime = int(HEALTHY["uptime_in_seconds"]) + int(after_s)
    info = {**HEALTHY, "uptime_in_seconds": uptime, **changed}
    made = Sample(
        at_ms=round((MADE_AT_S + after_s) * 1000),
        node="10.0.0.5:6379",
        info={name: value for name, value in info.items() if value is not None},
        databases={0: Database(1_000_000, 400_000, 3_600_000)},
        sources=tuple(Source),
        commands={"GET": CommandStats(700_000, 1_400_000), "SET": CommandStats(200_000, 900_000)},
    )
    made = replace(made, **fields)
    if made.missing and "sources" not in fields:
        made = replace(made, sources=tuple(source for source in Source if source not in made.missing))
    return made
