"""The fields of INFO and CLUSTER INFO that samples keep: a closed list, with unit and meaning.

Values stay as the server gives them, in its unit. Fields that a version does not have are absent. Databases, commands,
errors and replicas are fields of their own names, which `Sample` has as lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rtui.analysis.health.sample import Source


class FieldUnit(StrEnum):
    """The unit of a value, as the server gives it."""

    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    KIB_PER_S = "KiB/s"
    PER_S = "per second"
    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "µs"
    PERCENT = "%"
    RATIO = "ratio"
    TIME = "seconds since the epoch"
    YES = "0 or 1"


@dataclass(frozen=True, slots=True)
class InfoField:
    """One field."""

    name: str
    source: Source
    unit: FieldUnit
    about: str
    is_counter: bool
    """Whether it only grows, until the server is restarted or its statistics are reset."""


_Row = tuple[str, FieldUnit, str]
_TEXT, _COUNT, _BYTES, _KIB_PER_S, _PER_S, _S, _MS, _US, _PERCENT, _RATIO, _TIME, _YES = FieldUnit


def _gauges(source: Source, *rows: _Row) -> tuple[InfoField, ...]:
    return tuple(InfoField(name, source, unit, about, is_counter=False) for name, unit, about in rows)


def _counters(source: Source, *rows: _Row) -> tuple[InfoField, ...]:
    return tuple(InfoField(name, source, unit, about, is_counter=True) for name, unit, about in rows)


_FIELDS: Final = (
    *_gauges(
        Source.INFO_SERVER,
        ("redis_version", _TEXT, "version of Redis, or the one that another server claims compatibility with"),
        ("valkey_version", _TEXT, "version of Valkey"),
        ("server_name", _TEXT, "name of the server program"),
        ("dragonfly_version", _TEXT, "the version of Dragonfly"),
        ("garnet_version", _TEXT, "the version of Garnet"),
        ("kvrocks_version", _TEXT, "the version of Kvrocks"),
        ("pika_version", _TEXT, "the version of Pika"),
        ("upstash_version", _TEXT, "the version of Upstash"),
        ("rlec_version", _TEXT, "the version of Redis Enterprise"),
        ("redis_mode", _TEXT, "standalone, cluster or sentinel"),
        ("server_mode", _TEXT, "the same, in Valkey"),
        ("os", _TEXT, "operating system and kernel"),
        ("run_id", _TEXT, "random id of this start of the server"),
        ("tcp_port", _COUNT, "TCP port"),
        ("server_time_usec", _US, "clock of the server, since the epoch"),
        ("uptime_in_seconds", _S, "time since the server started"),
        ("hz", _COUNT, "current frequency of background tasks per second"),
        ("configured_hz", _COUNT, "configured frequency of background tasks per second"),
        ("io_threads_active", _COUNT, "whether I/O threads are active; in Valkey, how many"),
        ("availability_zone", _TEXT, "configured availability zone"),
    ),
    *_gauges(
        Source.INFO_CLIENTS,
        ("connected_clients", _COUNT, "client connections, without replicas"),
        ("cluster_connections", _COUNT, "sockets of the cluster bus"),
        ("maxclients", _COUNT, "maximum number of client connections"),
        ("client_recent_max_input_buffer", _BYTES, "largest query buffer of a client in recent seconds"),
        ("client_recent_max_output_buffer", _BYTES, "largest output buffer of a client in recent seconds"),
        ("blocked_clients", _COUNT, "clients waiting in a blocking command, such as BLPOP or XREAD BLOCK"),
        ("tracking_clients", _COUNT, "clients using client-side caching (CLIENT TRACKING)"),
        ("pubsub_clients", _COUNT, "clients in Pub/Sub mode"),
        ("watching_clients", _COUNT, "clients that WATCH keys"),
        ("clients_in_timeout_table", _COUNT, "clients blocked with a timeout"),
        ("total_watched_keys", _COUNT, "keys that are watched (WATCH)"),
        ("total_blocking_keys", _COUNT, "keys that clients are blocked on"),
        ("active_clients", _COUNT, "recently active clients"),
        ("paused_reason", _TEXT, "why clients are paused"),
        ("paused_actions", _TEXT, "what is paused"),
        ("paused_timeout_milliseconds", _MS, "how long clients remain paused"),
    ),
    *_gauges(
        Source.INFO_MEMORY,
        ("used_memory", _BYTES, "memory allocated by the server"),
        ("used_memory_rss", _BYTES, "resident memory of the process, as seen by the operating system"),
        ("used_memory_peak", _BYTES, "highest used_memory since the server started"),
        ("used_memory_peak_time", _TIME, "time of the peak"),
        ("used_memory_overhead", _BYTES, "memory that is not data: hash tables, buffers, backlog"),
        ("used_memory_startup", _BYTES, "memory allocated at startup"),
        ("used_memory_dataset", _BYTES, "memory of the data: used_memory minus overhead"),
        ("total_system_memory", _BYTES, "memory of the machine"),
        ("used_memory_lua", _BYTES, "memory of the Lua interpreter, before Redis 7.0"),
        ("used_memory_vm_total", _BYTES, "memory of the script engines"),
        ("used_memory_scripts", _BYTES, "memory of scripts and functions"),
        ("number_of_cached_scripts", _COUNT, "cached scripts"),
        ("maxmemory", _BYTES, "memory limit; 0 for no limit"),
        ("maxmemory_policy", _TEXT, "which keys are evicted at maxmemory"),
        ("allocator_allocated", _BYTES, "memory allocated, as counted by the allocator"),
        ("allocator_active", _BYTES, "memory of pages in use"),
        ("allocator_resident", _BYTES, "memory of all pages held by the allocator"),
        ("allocator_frag_ratio", _RATIO, "allocator_active over allocator_allocated: what activedefrag could return"),
        ("allocator_frag_bytes", _BYTES, "the difference in bytes"),
        ("allocator_rss_ratio", _RATIO, "allocator_resident over allocator_active: what MEMORY PURGE could return"),
        ("allocator_rss_bytes", _BYTES, "the difference in bytes"),
        ("rss_overhead_ratio", _RATIO, "used_memory_rss over allocator_resident: memory beside the allocator"),
        ("rss_overhead_bytes", _BYTES, "the difference in bytes"),
        ("mem_fragmentation_ratio", _RATIO, "used_memory_rss over used_memory"),
        ("mem_fragmentation_bytes", _BYTES, "the difference in bytes"),
        ("mem_not_counted_for_evict", _BYTES, "buffers that do not count towards maxmemory"),
        ("mem_replication_backlog", _BYTES, "memory of the replication backlog"),
        ("mem_total_replication_buffers", _BYTES, "memory of the backlog and of replica buffers"),
        ("mem_clients_slaves", _BYTES, "memory of replica connections"),
        ("mem_clients_normal", _BYTES, "memory of client connections"),
        ("mem_cluster_links", _BYTES, "memory of cluster bus links"),
        ("mem_aof_buffer", _BYTES, "memory of AOF buffers"),
        ("mem_overhead_db_hashtable_rehashing", _BYTES, "memory of hash tables being resized"),
        ("mem_allocator", _TEXT, "name of the allocator"),
        ("active_defrag_running", _PERCENT, "share of CPU used by active defragmentation"),
        (
            "lazyfree_pending_objects",
            _COUNT,
            "objects waiting to be freed in the background (UNLINK, FLUSHALL ASYNC, eviction)",
        ),
    ),
    *_counters(Source.INFO_MEMORY, ("lazyfreed_objects", _COUNT, "objects freed in the background")),
    *_gauges(
        Source.INFO_PERSISTENCE,
        ("loading", _YES, "whether a dump is being loaded"),
        ("async_loading", _YES, "whether a new dataset is being loaded while the old one is served"),
        ("loading_loaded_perc", _PERCENT, "loading progress"),
        ("loading_eta_seconds", _S, "estimated time until loading completes"),
        ("current_cow_size", _BYTES, "copy-on-write memory of the current child process"),
        ("current_cow_peak", _BYTES, "its peak"),
        ("current_fork_perc", _PERCENT, "progress of the current child process"),
        ("rdb_changes_since_last_save", _COUNT, "writes since the last RDB save"),
        ("rdb_bgsave_in_progress", _YES, "whether BGSAVE is running"),
        ("rdb_last_save_time", _TIME, "time of the last RDB save"),
        ("rdb_last_bgsave_status", _TEXT, "result of the last BGSAVE: ok or err"),
        ("rdb_last_bgsave_time_sec", _S, "duration of the last BGSAVE; -1 for none"),
        ("rdb_current_bgsave_time_sec", _S, "duration of the running BGSAVE; -1 for none"),
        ("rdb_last_cow_size", _BYTES, "copy-on-write memory of the last BGSAVE"),
        ("rdb_saves_consecutive_failures", _COUNT, "consecutive failures of BGSAVE"),
        ("aof_enabled", _YES, "whether the append-only file is on (appendonly)"),
        ("aof_rewrite_in_progress", _YES, "whether an AOF rewrite is running"),
        ("aof_rewrite_scheduled", _YES, "whether an AOF rewrite starts after the running BGSAVE"),
        ("aof_last_rewrite_time_sec", _S, "duration of the last AOF rewrite; -1 for none"),
        ("aof_current_rewrite_time_sec", _S, "duration of the running AOF rewrite; -1 for none"),
        ("aof_last_bgrewrite_status", _TEXT, "result of the last AOF rewrite: ok or err"),
        ("aof_last_write_status", _TEXT, "result of the last write to the AOF: ok or err"),
        ("aof_last_cow_size", _BYTES, "copy-on-write memory of the last AOF rewrite"),
        ("aof_rewrites_consecutive_failures", _COUNT, "consecutive failures of AOF rewrites"),
        ("aof_current_size", _BYTES, "current size of the AOF"),
        ("aof_base_size", _BYTES, "size of the AOF after the last rewrite"),
        ("aof_pending_rewrite", _YES, "whether an AOF rewrite is pending"),
        ("aof_buffer_length", _BYTES, "size of the AOF buffer"),
        ("aof_pending_bio_fsync", _COUNT, "pending fsyncs"),
    ),
    *_counters(
        Source.INFO_PERSISTENCE,
        ("rdb_saves", _COUNT, "RDB saves"),
        ("aof_rewrites", _COUNT, "AOF rewrites"),
        ("aof_delayed_fsync", _COUNT, "fsyncs that delayed writes"),
    ),
    *_counters(
        Source.INFO_STATS,
        ("total_connections_received", _COUNT, "accepted connections"),
        ("total_commands_processed", _COUNT, "processed commands"),
        ("total_net_input_bytes", _BYTES, "bytes received"),
        ("total_net_output_bytes", _BYTES, "bytes sent"),
        ("total_net_repl_input_bytes", _BYTES, "bytes received for replication"),
        ("total_net_repl_output_bytes", _BYTES, "bytes sent for replication"),
        ("rejected_connections", _COUNT, "connections rejected because of maxclients"),
        ("sync_full", _COUNT, "full resynchronisations of replicas; each forks and sends the whole dataset"),
        ("sync_partial_ok", _COUNT, "accepted partial resynchronisations"),
        (
            "sync_partial_err",
            _COUNT,
            "denied partial resynchronisations: the backlog was too short, or the replica had other data",
        ),
        ("expired_keys", _COUNT, "expired keys"),
        ("expired_subkeys", _COUNT, "expired hash fields, in Redis"),
        ("expired_fields", _COUNT, "expired hash fields, in Valkey"),
        ("expired_time_cap_reached_count", _COUNT, "expire cycles that hit their time limit"),
        ("expire_cycle_cpu_milliseconds", _MS, "CPU time of expire cycles"),
        ("evicted_keys", _COUNT, "keys evicted because of maxmemory"),
        ("evicted_clients", _COUNT, "clients closed because of maxmemory-clients"),
        ("evicted_scripts", _COUNT, "evicted scripts"),
        ("total_eviction_exceeded_time", _MS, "total time above maxmemory"),
        ("keyspace_hits", _COUNT, "successful lookups of keys"),
        ("keyspace_misses", _COUNT, "failed lookups of keys"),
        ("total_forks", _COUNT, "forks"),
        ("active_defrag_hits", _COUNT, "values moved by active defragmentation"),
        ("active_defrag_misses", _COUNT, "values visited but not moved"),
        ("total_active_defrag_time", _MS, "total time above the defragmentation threshold"),
        ("unexpected_error_replies", _COUNT, "unexpected errors, such as in loading and replication"),
        ("total_error_replies", _COUNT, "error replies"),
        ("total_reads_processed", _COUNT, "reads from clients"),
        ("total_writes_processed", _COUNT, "writes to clients"),
        ("io_threaded_reads_processed", _COUNT, "reads by I/O threads"),
        ("io_threaded_writes_processed", _COUNT, "writes by I/O threads"),
        ("client_query_buffer_limit_disconnections", _COUNT, "clients closed because of client-query-buffer-limit"),
        ("client_output_buffer_limit_disconnections", _COUNT, "clients closed because of client-output-buffer-limit"),
        ("acl_access_denied_auth", _COUNT, "denied logins"),
        ("acl_access_denied_cmd", _COUNT, "denied commands"),
        ("acl_access_denied_key", _COUNT, "denied keys"),
        ("acl_access_denied_channel", _COUNT, "denied channels"),
        ("eventloop_cycles", _COUNT, "event loop cycles"),
        ("eventloop_duration_sum", _US, "total duration of event loop cycles"),
        ("eventloop_duration_cmd_sum", _US, "total duration of commands in event loop cycles"),
        ("slowlog_commands_count", _COUNT, "commands logged in the slow log"),
        ("slowlog_commands_time_ms_sum", _MS, "total duration of these commands"),
    ),
    *_gauges(
        Source.INFO_STATS,
        ("instantaneous_ops_per_sec", _PER_S, "commands per second, over recent moments"),
        ("instantaneous_input_kbps", _KIB_PER_S, "network input, over recent moments"),
        ("instantaneous_output_kbps", _KIB_PER_S, "network output, over recent moments"),
        ("instantaneous_input_repl_kbps", _KIB_PER_S, "replication input, over recent moments"),
        ("instantaneous_output_repl_kbps", _KIB_PER_S, "replication output, over recent moments"),
        ("expired_stale_perc", _PERCENT, "estimated share of keys that are expired but not deleted yet"),
        ("current_eviction_exceeded_time", _MS, "time above maxmemory so far"),
        ("current_active_defrag_time", _MS, "time above the defragmentation threshold so far"),
        ("pubsub_channels", _COUNT, "channels with subscribers"),
        ("pubsub_patterns", _COUNT, "patterns with subscribers"),
        ("pubsubshard_channels", _COUNT, "shard channels with subscribers"),
        ("latest_fork_usec", _US, "duration of the last fork"),
        ("migrate_cached_sockets", _COUNT, "connections cached by MIGRATE"),
        ("tracking_total_keys", _COUNT, "keys tracked for clients"),
        ("tracking_total_items", _COUNT, "sum of clients over tracked keys"),
        ("tracking_total_prefixes", _COUNT, "prefixes tracked for clients"),
        ("instantaneous_eventloop_cycles_per_sec", _PER_S, "event loop cycles per second, over recent moments"),
        ("instantaneous_eventloop_duration_usec", _US, "duration of a cycle, over recent moments"),
        ("avg_pipeline_length", _RATIO, "mean number of commands per pipeline"),
        ("slowlog_commands_time_ms_max", _MS, "longest command in the slow log"),
    ),
    *_gauges(
        Source.INFO_REPLICATION,
        ("role", _TEXT, "master or slave"),
        ("connected_slaves", _COUNT, "connected replicas"),
        ("min_slaves_good_slaves", _COUNT, "replicas that keep up, if min-replicas-to-write is set"),
        ("replicas_waiting_psync", _COUNT, "replicas that have the RDB and wait for the rest"),
        ("master_failover_state", _TEXT, "state of a FAILOVER"),
        ("master_replid", _TEXT, "replication id of the dataset"),
        ("master_repl_offset", _BYTES, "bytes written to the replication stream"),
        ("second_repl_offset", _BYTES, "offset up to which replicas of the previous primary can continue; -1 for none"),
        ("repl_backlog_active", _YES, "whether there is a replication backlog"),
        ("repl_backlog_size", _BYTES, "size of the replication backlog, for replicas that reconnect"),
        ("repl_backlog_first_byte_offset", _BYTES, "offset of the first byte in the backlog"),
        ("repl_backlog_histlen", _BYTES, "bytes in the backlog"),
        ("master_host", _TEXT, "host of the primary"),
        ("master_port", _COUNT, "port of the primary"),
        ("master_link_status", _TEXT, "link to the primary: up or down"),
        ("master_last_io_seconds_ago", _S, "time since the last contact with the primary; -1 for never"),
        ("master_link_down_since_seconds", _S, "time since the link went down; -1 for always"),
        ("master_sync_in_progress", _YES, "whether a full resynchronisation is running"),
        ("master_sync_total_bytes", _BYTES, "size of the full resynchronisation; 0 if unknown"),
        ("master_sync_read_bytes", _BYTES, "bytes received so far"),
        ("master_sync_last_io_seconds_ago", _S, "time since the last bytes arrived"),
        ("slave_read_repl_offset", _BYTES, "bytes of the replication stream received"),
        ("slave_repl_offset", _BYTES, "bytes of the replication stream applied"),
        ("slave_priority", _COUNT, "priority for promotion by Sentinel; 0 for never"),
        ("slave_read_only", _YES, "whether it refuses writes"),
        ("replica_announced", _YES, "whether Sentinel announces it"),
    ),
    *_counters(
        Source.INFO_CPU,
        ("used_cpu_sys", _S, "system CPU time"),
        ("used_cpu_user", _S, "user CPU time"),
        ("used_cpu_sys_children", _S, "system CPU time of ended child processes"),
        ("used_cpu_user_children", _S, "user CPU time of ended child processes"),
        ("used_cpu_sys_main_thread", _S, "system CPU time of the main thread"),
        ("used_cpu_user_main_thread", _S, "user CPU time of the main thread"),
        ("used_active_time_main_thread", _S, "active time of the main thread"),
    ),
    *_gauges(Source.INFO_CLUSTER, ("cluster_enabled", _YES, "whether it is a cluster node")),
    *_gauges(
        Source.CLUSTER_INFO,
        ("cluster_state", _TEXT, "ok or fail"),
        ("cluster_slots_assigned", _COUNT, "slots assigned to a node"),
        ("cluster_slots_ok", _COUNT, "slots of healthy nodes"),
        ("cluster_slots_pfail", _COUNT, "slots of nodes that this node cannot reach (PFAIL)"),
        ("cluster_slots_fail", _COUNT, "slots of nodes that are down (FAIL)"),
        ("cluster_known_nodes", _COUNT, "known nodes"),
        ("cluster_size", _COUNT, "primaries with slots"),
        ("cluster_current_epoch", _COUNT, "current epoch; grows with each failover"),
        ("cluster_my_epoch", _COUNT, "configuration epoch of this node"),
    ),
    *_counters(
        Source.CLUSTER_INFO,
        ("cluster_stats_messages_sent", _COUNT, "messages sent to other nodes"),
        ("cluster_stats_messages_received", _COUNT, "messages received from other nodes"),
        ("total_cluster_links_buffer_limit_exceeded", _COUNT, "links closed because of their buffer"),
    ),
)

FIELDS: Final = {one.name: one for one in _FIELDS}
