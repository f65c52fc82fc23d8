"""The settings that explain a server's figures: the effect of each, and its default in that version.

Defaults are those of Redis 6.2 to 8.10 and Valkey 8.0 to 9.1, as servers without a configuration file tell them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis.health.panel import Panel
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Column, Row, Table, Unit, cell_reason
from rtui.keyspace.text.display import SafeText, display_text

_SAVE: Final = "3600 1 300 100 60 10000"
_OUTPUT: Final = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of CONFIG GET."""

    about: str
    default: str
    valkey_default: str | None = None
    default_before_7: str | None = None

    def default_of(self, sample: Sample) -> str:
        if "valkey_version" in sample.info:
            return self.default if self.valkey_default is None else self.valkey_default
        major = str(sample.info.get("redis_version", "")).partition(".")[0]
        is_old = major.isdigit() and int(major[:3]) < 7
        return self.default_before_7 if is_old and self.default_before_7 is not None else self.default


SETTINGS: Final = {
    "maxmemory": Setting("memory limit; above it keys are evicted or writes fail; 0 for none", "0"),
    "maxmemory-policy": Setting("which keys are evicted", "noeviction"),
    "maxmemory-samples": Setting("keys sampled to find one to evict", "5"),
    "maxmemory-eviction-tenacity": Setting("effort of eviction, 0 to 100", "10"),
    "maxmemory-clients": Setting("memory limit of all clients; above it the largest are closed; 0 for none", "0"),
    "lfu-log-factor": Setting("how slowly LFU counters grow", "10"),
    "lfu-decay-time": Setting("minutes until an LFU counter falls by one", "1"),
    "databases": Setting("number of databases", "16"),
    "active-expire-effort": Setting("effort of deleting expired keys, 1 to 10", "1"),
    "activedefrag": Setting("active defragmentation: moves values to free memory pages", "no"),
    "active-defrag-threshold-lower": Setting("fragmentation in percent at which active defrag starts", "10"),
    "active-defrag-ignore-bytes": Setting(
        "fragmentation in bytes below which active defrag does not start", "104857600"
    ),
    "lazyfree-lazy-eviction": Setting("frees evicted values in the background", "no", "yes"),
    "lazyfree-lazy-expire": Setting("frees expired values in the background", "no", "yes"),
    "lazyfree-lazy-server-del": Setting(
        "frees values replaced by commands such as RENAME in the background", "no", "yes"
    ),
    "lazyfree-lazy-user-del": Setting("DEL works like UNLINK", "no", "yes"),
    "lazyfree-lazy-user-flush": Setting("FLUSHALL and FLUSHDB free in the background", "no", "yes"),
    "replica-lazy-flush": Setting("replicas free old data in the background at a full resync", "no", "yes"),
    "slowlog-log-slower-than": Setting("slow log threshold in microseconds; -1 for off", "10000"),
    "slowlog-max-len": Setting("most entries of the slow log", "128"),
    "latency-monitor-threshold": Setting("latency monitor threshold in milliseconds; 0 for off", "0"),
    "latency-tracking": Setting("tracks latency percentiles per command", "yes"),
    "commandlog-execution-slower-than": Setting("the same as slowlog-log-slower-than", "10000"),
    "commandlog-slow-execution-max-len": Setting("the same as slowlog-max-len", "128"),
    "commandlog-request-larger-than": Setting("large request log threshold in bytes; -1 for off", "1048576"),
    "commandlog-large-request-max-len": Setting("most entries of that log", "128"),
    "commandlog-reply-larger-than": Setting("large reply log threshold in bytes; -1 for off", "1048576"),
    "commandlog-large-reply-max-len": Setting("most entries of that log", "128"),
    "busy-reply-threshold": Setting("milliseconds after which clients get BUSY while a script runs", "5000"),
    "lua-time-limit": Setting("the older name of busy-reply-threshold", "5000"),
    "hz": Setting("background task frequency per second", "10"),
    "dynamic-hz": Setting("raises hz with more clients", "yes"),
    "io-threads": Setting("I/O threads, including the main thread", "1"),
    "io-threads-do-reads": Setting("I/O threads also read", "no", "yes"),
    "save": Setting("RDB schedule: seconds and changes; empty for never", _SAVE),
    "stop-writes-on-bgsave-error": Setting("writes fail with MISCONF while the last BGSAVE failed", "yes"),
    "rdbcompression": Setting("compresses strings in the RDB", "yes"),
    "disable-thp": Setting("disables transparent huge pages for the process", "yes"),
    "oom-score-adj": Setting("adjusts which process the kernel kills first", "no"),
    "appendonly": Setting("append-only file: logs every write", "no"),
    "appendfsync": Setting("when the AOF is flushed to disk", "everysec"),
    "no-appendfsync-on-rewrite": Setting("no AOF fsync while a child process writes", "no"),
    "auto-aof-rewrite-percentage": Setting("AOF growth in percent that triggers a rewrite", "100"),
    "auto-aof-rewrite-min-size": Setting("least AOF size for that, in bytes", "67108864"),
    "aof-use-rdb-preamble": Setting("rewritten AOFs begin with an RDB", "yes"),
    "repl-backlog-size": Setting("replication backlog in bytes, for replicas that reconnect", "1048576", "10485760"),
    "repl-backlog-ttl": Setting("seconds without replicas until the backlog is freed", "3600"),
    "repl-diskless-sync": Setting("sends the RDB to replicas without writing a file", "yes", None, "no"),
    "repl-timeout": Setting("replication timeout in seconds", "60"),
    "repl-ping-replica-period": Setting("seconds between pings to replicas", "10"),
    "min-replicas-to-write": Setting("writes fail with fewer replicas; 0 for off", "0"),
    "min-replicas-max-lag": Setting("most lag in seconds of a replica that counts", "10"),
    "replica-read-only": Setting("replicas refuse writes", "yes"),
    "replica-serve-stale-data": Setting("replicas answer without a link to their primary", "yes"),
    "replica-ignore-maxmemory": Setting("replicas do not evict keys themselves", "yes"),
    "replica-priority": Setting("priority for promotion by Sentinel, lowest first; 0 for never", "100"),
    "timeout": Setting("seconds until an idle client is closed; 0 for never", "0"),
    "tcp-keepalive": Setting("seconds between TCP keepalive probes", "300"),
    "tcp-backlog": Setting("queue of connections waiting to be accepted", "511"),
    "maxclients": Setting("maximum number of client connections", "10000"),
    "client-output-buffer-limit": Setting("output buffer limits by client class: hard, soft, seconds", _OUTPUT),
    "client-query-buffer-limit": Setting("largest request in bytes", "1073741824"),
    "tracking-table-max-keys": Setting("most keys tracked for client-side caching", "1000000"),
    "notify-keyspace-events": Setting("keyspace notifications", ""),
    "hash-max-listpack-entries": Setting("most fields of a listpack hash", "512"),
    "hash-max-listpack-value": Setting("longest field or value of a listpack hash, in bytes", "64"),
    "hash-max-ziplist-entries": Setting("the older name of hash-max-listpack-entries", "512"),
    "hash-max-ziplist-value": Setting("the older name of hash-max-listpack-value", "64"),
    "list-max-listpack-size": Setting("most elements of a list node; -2 for 8 KiB", "-2"),
    "list-max-ziplist-size": Setting("the older name of list-max-listpack-size", "-2"),
    "list-compress-depth": Setting("uncompressed nodes at each end of a list; 0 for no compression", "0"),
    "set-max-intset-entries": Setting("most members of an intset", "512"),
    "set-max-listpack-entries": Setting("most members of a listpack set", "128"),
    "set-max-listpack-value": Setting("longest member of a listpack set, in bytes", "64"),
    "zset-max-listpack-entries": Setting("most members of a listpack sorted set", "128"),
    "zset-max-listpack-value": Setting("longest member of a listpack sorted set, in bytes", "64"),
    "zset-max-ziplist-entries": Setting("the older name of zset-max-listpack-entries", "128"),
    "zset-max-ziplist-value": Setting("the older name of zset-max-listpack-value", "64"),
    "stream-node-max-entries": Setting("most entries of a stream node", "100"),
    "stream-node-max-bytes": Setting("largest stream node in bytes", "4096"),
    "hll-sparse-max-bytes": Setting("largest sparse HyperLogLog in bytes", "3000"),
    "key-memory-histograms": Setting("tracks memory histograms of keys", "no"),
    "cluster-node-timeout": Setting("milliseconds until an unreachable node is considered failing", "15000"),
    "cluster-require-full-coverage": Setting("no slot is served while any slot is uncovered", "yes"),
    "cluster-allow-reads-when-down": Setting("reads are answered even then", "no"),
    "cluster-replica-validity-factor": Setting("limits how old the data of a replica may be for a failover", "10"),
    "cluster-slot-stats-enabled": Setting("tracks load per slot", "no"),
}


_NAME: Final = Column("setting", "setting", Unit.TEXT, 30)
_VALUE: Final = Column("value", "value", Unit.TEXT, 12)
_DEFAULT: Final = Column("default", "default", Unit.TEXT, 8, "Default of this version")
_CHANGED: Final = Column("changed", "", Unit.TEXT, 7, "Whether it differs from the default")
_ABOUT: Final = Column("about", "what it does", Unit.TEXT)
_VALUE_LIMIT: Final = 200
_EMPTY: Final = "(empty)"


def configuration_panel(view: HealthView) -> Panel:
    told = view.told(Source.SETTINGS)
    if told is None:
        why = cell_reason(view.unknown(Source.SETTINGS))
        return Panel("configuration", "Configuration", notes=(SafeText(f"CONFIG GET: {why}"),))
    rows = sorted(_rows(view, told.settings), key=lambda row: row[3] != "changed")
    columns = (_NAME, _VALUE, _DEFAULT, _CHANGED, _ABOUT)
    return Panel("configuration", "Configuration", tables=(Table("settings", "Settings", columns, tuple(rows)),))


def _rows(view: HealthView, values: dict[str, str]) -> Iterator[Row]:
    for name, setting in SETTINGS.items():
        value = values.get(name)
        if value is not None:
            default = setting.default_of(view.latest)
            yield name, _shown(value), default or _EMPTY, "changed" if value != default else "", setting.about


def _shown(value: str) -> SafeText:
    return display_text(value, limit=_VALUE_LIMIT) or SafeText(_EMPTY)
