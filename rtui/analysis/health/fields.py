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
        ("redis_version", _TEXT, "the version of Redis, or the one that another server says it is like"),
        ("valkey_version", _TEXT, "the version of Valkey"),
        ("server_name", _TEXT, "the program, as it calls itself"),
        ("dragonfly_version", _TEXT, "the version of Dragonfly"),
        ("garnet_version", _TEXT, "the version of Garnet"),
        ("kvrocks_version", _TEXT, "the version of Kvrocks"),
        ("pika_version", _TEXT, "the version of Pika"),
        ("upstash_version", _TEXT, "the version of Upstash"),
        ("rlec_version", _TEXT, "the version of Redis Enterprise"),
        ("redis_mode", _TEXT, "standalone, cluster or sentinel"),
        ("server_mode", _TEXT, "the same in Valkey"),
        ("os", _TEXT, "operating system and kernel"),
        ("run_id", _TEXT, "another one with each start of the server"),
        ("tcp_port", _COUNT, "port"),
        ("server_time_usec", _US, "the server's clock, since the epoch"),
        ("uptime_in_seconds", _S, "since the start of the server"),
        ("hz", _COUNT, "rounds of background work a second, as they are now"),
        ("configured_hz", _COUNT, "rounds of background work a second, as configured"),
        ("io_threads_active", _COUNT, "whether threads read and write for the main thread; in Valkey, how many"),
        ("availability_zone", _TEXT, "where the server is, as configured"),
    ),
    *_gauges(
        Source.INFO_CLIENTS,
        ("connected_clients", _COUNT, "connections of clients, replicas left out"),
        ("cluster_connections", _COUNT, "sockets of the cluster's bus"),
        ("maxclients", _COUNT, "how many connections there may be"),
        ("client_recent_max_input_buffer", _BYTES, "the largest query buffer of a client in the last seconds"),
        ("client_recent_max_output_buffer", _BYTES, "the largest output buffer of a client in the last seconds"),
        ("blocked_clients", _COUNT, "clients that wait in a blocking command"),
        ("tracking_clients", _COUNT, "clients that are told of changed keys"),
        ("pubsub_clients", _COUNT, "clients that are subscribed"),
        ("watching_clients", _COUNT, "clients that watch keys for a transaction"),
        ("clients_in_timeout_table", _COUNT, "clients that wait with a timeout"),
        ("total_watched_keys", _COUNT, "keys that are watched"),
        ("total_blocking_keys", _COUNT, "keys that clients wait for"),
        ("active_clients", _COUNT, "clients that sent something lately"),
        ("paused_reason", _TEXT, "why clients are paused"),
        ("paused_actions", _TEXT, "what is paused"),
        ("paused_timeout_milliseconds", _MS, "how long clients stay paused"),
    ),
    *_gauges(
        Source.INFO_MEMORY,
        ("used_memory", _BYTES, "allocated"),
        ("used_memory_rss", _BYTES, "resident, as the system sees the process"),
        ("used_memory_peak", _BYTES, "the most that was allocated"),
        ("used_memory_peak_time", _TIME, "when that was"),
        ("used_memory_overhead", _BYTES, "what is no data: tables of keys, buffers, backlog"),
        ("used_memory_startup", _BYTES, "allocated at the start"),
        ("used_memory_dataset", _BYTES, "the data: used memory without overhead"),
        ("total_system_memory", _BYTES, "of the machine"),
        ("used_memory_lua", _BYTES, "of the interpreter of scripts, before Redis 7.0"),
        ("used_memory_vm_total", _BYTES, "of the interpreters of scripts and functions"),
        ("used_memory_scripts", _BYTES, "of scripts"),
        ("number_of_cached_scripts", _COUNT, "scripts"),
        ("maxmemory", _BYTES, "the limit; 0 for none"),
        ("maxmemory_policy", _TEXT, "what is evicted at the limit"),
        ("allocator_allocated", _BYTES, "allocated by the allocator's count"),
        ("allocator_active", _BYTES, "pages with something in them"),
        ("allocator_resident", _BYTES, "pages that the allocator holds"),
        ("allocator_frag_ratio", _RATIO, "active over allocated: what defragmentation could give back"),
        ("allocator_frag_bytes", _BYTES, "the same in bytes"),
        ("allocator_rss_ratio", _RATIO, "resident over active: what the allocator may give back"),
        ("allocator_rss_bytes", _BYTES, "the same in bytes"),
        ("rss_overhead_ratio", _RATIO, "RSS over what the allocator holds"),
        ("rss_overhead_bytes", _BYTES, "the same in bytes"),
        ("mem_fragmentation_ratio", _RATIO, "RSS over used memory"),
        ("mem_fragmentation_bytes", _BYTES, "the same in bytes"),
        ("mem_not_counted_for_evict", _BYTES, "buffers that do not count towards the limit"),
        ("mem_replication_backlog", _BYTES, "of the replication backlog"),
        ("mem_total_replication_buffers", _BYTES, "of the backlog and of buffers of replicas"),
        ("mem_clients_slaves", _BYTES, "of connections of replicas"),
        ("mem_clients_normal", _BYTES, "of other connections"),
        ("mem_cluster_links", _BYTES, "of links to other nodes"),
        ("mem_aof_buffer", _BYTES, "waits to be written to the AOF"),
        ("mem_overhead_db_hashtable_rehashing", _BYTES, "of tables of keys that are being resized"),
        ("mem_allocator", _TEXT, "the allocator"),
        ("active_defrag_running", _PERCENT, "of the processor that defragmentation takes now"),
        ("lazyfree_pending_objects", _COUNT, "values that wait to be freed in the background"),
    ),
    *_counters(Source.INFO_MEMORY, ("lazyfreed_objects", _COUNT, "values that were freed in the background")),
    *_gauges(
        Source.INFO_PERSISTENCE,
        ("loading", _YES, "whether data is being loaded"),
        ("async_loading", _YES, "whether data is being loaded while the old one is served"),
        ("loading_loaded_perc", _PERCENT, "how much is loaded"),
        ("loading_eta_seconds", _S, "how long loading will take"),
        ("current_cow_size", _BYTES, "copied on write for the child that runs now"),
        ("current_cow_peak", _BYTES, "the most of that"),
        ("current_fork_perc", _PERCENT, "how far the child is"),
        ("rdb_changes_since_last_save", _COUNT, "changes since the last RDB"),
        ("rdb_bgsave_in_progress", _YES, "whether an RDB is being written"),
        ("rdb_last_save_time", _TIME, "when the last RDB was written"),
        ("rdb_last_bgsave_status", _TEXT, "ok, or err"),
        ("rdb_last_bgsave_time_sec", _S, "how long the last RDB took; -1 for none"),
        ("rdb_current_bgsave_time_sec", _S, "how long the present one has taken; -1 for none"),
        ("rdb_last_cow_size", _BYTES, "copied on write for the last RDB"),
        ("rdb_saves_consecutive_failures", _COUNT, "RDBs that failed in a row"),
        ("aof_enabled", _YES, "whether there is an AOF"),
        ("aof_rewrite_in_progress", _YES, "whether it is being rewritten"),
        ("aof_rewrite_scheduled", _YES, "whether it will be when the RDB is written"),
        ("aof_last_rewrite_time_sec", _S, "how long the last rewrite took; -1 for none"),
        ("aof_current_rewrite_time_sec", _S, "how long the present one has taken; -1 for none"),
        ("aof_last_bgrewrite_status", _TEXT, "ok, or err"),
        ("aof_last_write_status", _TEXT, "ok, or err"),
        ("aof_last_cow_size", _BYTES, "copied on write for the last rewrite"),
        ("aof_rewrites_consecutive_failures", _COUNT, "rewrites that failed in a row"),
        ("aof_current_size", _BYTES, "of the AOF"),
        ("aof_base_size", _BYTES, "of the AOF after the last rewrite"),
        ("aof_pending_rewrite", _YES, "whether a rewrite waits"),
        ("aof_buffer_length", _BYTES, "waits to be written"),
        ("aof_pending_bio_fsync", _COUNT, "writes to disk that wait"),
    ),
    *_counters(
        Source.INFO_PERSISTENCE,
        ("rdb_saves", _COUNT, "RDBs that were written"),
        ("aof_rewrites", _COUNT, "rewrites of the AOF"),
        ("aof_delayed_fsync", _COUNT, "writes that had to wait for the disk"),
    ),
    *_counters(
        Source.INFO_STATS,
        ("total_connections_received", _COUNT, "connections that were accepted"),
        ("total_commands_processed", _COUNT, "commands"),
        ("total_net_input_bytes", _BYTES, "received"),
        ("total_net_output_bytes", _BYTES, "sent"),
        ("total_net_repl_input_bytes", _BYTES, "received from the primary"),
        ("total_net_repl_output_bytes", _BYTES, "sent to replicas"),
        ("rejected_connections", _COUNT, "connections that were refused because of maxclients"),
        ("sync_full", _COUNT, "full resyncs of replicas"),
        ("sync_partial_ok", _COUNT, "partial resyncs of replicas"),
        ("sync_partial_err", _COUNT, "partial resyncs that were not possible"),
        ("expired_keys", _COUNT, "keys that expired"),
        ("expired_subkeys", _COUNT, "fields of hashes that expired, in Redis"),
        ("expired_fields", _COUNT, "fields of hashes that expired, in Valkey"),
        ("expired_time_cap_reached_count", _COUNT, "rounds of expiry that ended because their time was up"),
        ("expire_cycle_cpu_milliseconds", _MS, "time of the processor for expiry"),
        ("evicted_keys", _COUNT, "keys that were evicted because of maxmemory"),
        ("evicted_clients", _COUNT, "clients that were closed because of maxmemory-clients"),
        ("evicted_scripts", _COUNT, "scripts that were evicted"),
        ("total_eviction_exceeded_time", _MS, "how long memory was above maxmemory"),
        ("keyspace_hits", _COUNT, "look-ups of keys that were there"),
        ("keyspace_misses", _COUNT, "look-ups of keys that were not"),
        ("total_forks", _COUNT, "forks"),
        ("active_defrag_hits", _COUNT, "values that defragmentation has moved"),
        ("active_defrag_misses", _COUNT, "values that it has left"),
        ("total_active_defrag_time", _MS, "how long memory was above the threshold of defragmentation"),
        ("unexpected_error_replies", _COUNT, "errors of other servers, such as in loading and replication"),
        ("total_error_replies", _COUNT, "errors that were replied"),
        ("total_reads_processed", _COUNT, "reads from clients"),
        ("total_writes_processed", _COUNT, "writes to clients"),
        ("io_threaded_reads_processed", _COUNT, "reads that threads have done"),
        ("io_threaded_writes_processed", _COUNT, "writes that threads have done"),
        ("client_query_buffer_limit_disconnections", _COUNT, "clients that were closed because of their query buffer"),
        (
            "client_output_buffer_limit_disconnections",
            _COUNT,
            "clients that were closed because of their output buffer",
        ),
        ("acl_access_denied_auth", _COUNT, "logins that were refused"),
        ("acl_access_denied_cmd", _COUNT, "commands that users were denied"),
        ("acl_access_denied_key", _COUNT, "keys that users were denied"),
        ("acl_access_denied_channel", _COUNT, "channels that users were denied"),
        ("eventloop_cycles", _COUNT, "rounds of the event loop"),
        ("eventloop_duration_sum", _US, "how long these took"),
        ("eventloop_duration_cmd_sum", _US, "how long commands took in them"),
        ("slowlog_commands_count", _COUNT, "commands that went to the slow log"),
        ("slowlog_commands_time_ms_sum", _MS, "how long these took"),
    ),
    *_gauges(
        Source.INFO_STATS,
        ("instantaneous_ops_per_sec", _PER_S, "commands a second, over the last moments"),
        ("instantaneous_input_kbps", _KIB_PER_S, "received, over the last moments"),
        ("instantaneous_output_kbps", _KIB_PER_S, "sent, over the last moments"),
        ("instantaneous_input_repl_kbps", _KIB_PER_S, "received from the primary, over the last moments"),
        ("instantaneous_output_repl_kbps", _KIB_PER_S, "sent to replicas, over the last moments"),
        ("expired_stale_perc", _PERCENT, "about how many keys with a TTL have expired and still lie there"),
        ("current_eviction_exceeded_time", _MS, "how long memory has been above maxmemory"),
        ("current_active_defrag_time", _MS, "how long memory has been above the threshold of defragmentation"),
        ("pubsub_channels", _COUNT, "channels with subscribers"),
        ("pubsub_patterns", _COUNT, "patterns with subscribers"),
        ("pubsubshard_channels", _COUNT, "shard channels with subscribers"),
        ("latest_fork_usec", _US, "how long the last fork took"),
        ("migrate_cached_sockets", _COUNT, "connections that MIGRATE keeps"),
        ("tracking_total_keys", _COUNT, "keys that are tracked for clients"),
        ("tracking_total_items", _COUNT, "the same by clients"),
        ("tracking_total_prefixes", _COUNT, "prefixes that are tracked for clients"),
        ("instantaneous_eventloop_cycles_per_sec", _PER_S, "rounds of the event loop a second, over the last moments"),
        ("instantaneous_eventloop_duration_usec", _US, "how long a round takes, over the last moments"),
        ("avg_pipeline_length", _RATIO, "commands that clients send at once"),
        ("slowlog_commands_time_ms_max", _MS, "the longest command that went to the slow log"),
    ),
    *_gauges(
        Source.INFO_REPLICATION,
        ("role", _TEXT, "master or slave"),
        ("connected_slaves", _COUNT, "replicas"),
        ("min_slaves_good_slaves", _COUNT, "replicas that keep up, where min-replicas-to-write is set"),
        ("replicas_waiting_psync", _COUNT, "replicas that have the RDB and wait for the rest"),
        ("master_failover_state", _TEXT, "how far a FAILOVER is"),
        ("master_replid", _TEXT, "of the data that is replicated"),
        ("master_repl_offset", _BYTES, "how much was written to the replication stream"),
        ("second_repl_offset", _BYTES, "up to where replicas of the primary before may go on; -1 for none"),
        ("repl_backlog_active", _YES, "whether there is a backlog"),
        ("repl_backlog_size", _BYTES, "how much of the stream is kept for replicas that come back"),
        ("repl_backlog_first_byte_offset", _BYTES, "from where on it is kept"),
        ("repl_backlog_histlen", _BYTES, "how much there is"),
        ("master_host", _TEXT, "the primary"),
        ("master_port", _COUNT, "its port"),
        ("master_link_status", _TEXT, "up or down"),
        ("master_last_io_seconds_ago", _S, "since the primary was heard of; -1 for never"),
        ("master_link_down_since_seconds", _S, "how long the link has been down; -1 for always"),
        ("master_sync_in_progress", _YES, "whether all data is being copied"),
        ("master_sync_total_bytes", _BYTES, "how much that is; 0 where the primary does not say"),
        ("master_sync_read_bytes", _BYTES, "how much has come"),
        ("master_sync_last_io_seconds_ago", _S, "since some of it came"),
        ("slave_read_repl_offset", _BYTES, "how much of the stream has come"),
        ("slave_repl_offset", _BYTES, "how much of it is applied"),
        ("slave_priority", _COUNT, "which replica Sentinel chooses; 0 for never"),
        ("slave_read_only", _YES, "whether it takes no writes"),
        ("replica_announced", _YES, "whether Sentinel tells of it"),
    ),
    *_counters(
        Source.INFO_CPU,
        ("used_cpu_sys", _S, "in the system"),
        ("used_cpu_user", _S, "in the server"),
        ("used_cpu_sys_children", _S, "in the system, by children that have ended"),
        ("used_cpu_user_children", _S, "by children that have ended"),
        ("used_cpu_sys_main_thread", _S, "in the system, by the main thread"),
        ("used_cpu_user_main_thread", _S, "by the main thread"),
        ("used_active_time_main_thread", _S, "how long the main thread was not waiting"),
    ),
    *_gauges(Source.INFO_CLUSTER, ("cluster_enabled", _YES, "whether it is a node of a cluster")),
    *_gauges(
        Source.CLUSTER_INFO,
        ("cluster_state", _TEXT, "ok or fail"),
        ("cluster_slots_assigned", _COUNT, "slots that a node has"),
        ("cluster_slots_ok", _COUNT, "slots whose node is well"),
        ("cluster_slots_pfail", _COUNT, "slots whose node this one does not reach"),
        ("cluster_slots_fail", _COUNT, "slots whose node is taken for dead"),
        ("cluster_known_nodes", _COUNT, "nodes"),
        ("cluster_size", _COUNT, "primaries that have slots"),
        ("cluster_current_epoch", _COUNT, "grows with each failover"),
        ("cluster_my_epoch", _COUNT, "of the configuration of this node"),
    ),
    *_counters(
        Source.CLUSTER_INFO,
        ("cluster_stats_messages_sent", _COUNT, "messages to other nodes"),
        ("cluster_stats_messages_received", _COUNT, "messages of other nodes"),
        ("total_cluster_links_buffer_limit_exceeded", _COUNT, "links that were closed because of their buffer"),
    ),
)

FIELDS: Final = {one.name: one for one in _FIELDS}
