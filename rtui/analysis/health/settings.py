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
    """Its effect; without a full stop."""
    default: str
    valkey_default: str | None = None
    """Where Valkey's is another one."""
    default_before_7: str | None = None
    """The default of Redis before 7.0, if another."""

    def default_of(self, sample: Sample) -> str:
        """Return its default in the version of a server."""
        if "valkey_version" in sample.info:
            return self.default if self.valkey_default is None else self.valkey_default
        major = str(sample.info.get("redis_version", "")).partition(".")[0]
        is_old = major.isdigit() and int(major[:3]) < 7
        return self.default_before_7 if is_old and self.default_before_7 is not None else self.default


SETTINGS: Final = {
    "maxmemory": Setting("memory at which keys are evicted or writes fail; 0 for no limit", "0"),
    "maxmemory-policy": Setting("which keys are evicted", "noeviction"),
    "maxmemory-samples": Setting("keys that are compared to find one to evict", "5"),
    "maxmemory-eviction-tenacity": Setting("how much time eviction may take, 0 to 100", "10"),
    "maxmemory-clients": Setting("memory of all clients at which the largest are closed; 0 for no limit", "0"),
    "lfu-log-factor": Setting("how slowly access counters grow", "10"),
    "lfu-decay-time": Setting("minutes in which an access counter falls by one", "1"),
    "databases": Setting("numbered databases", "16"),
    "active-expire-effort": Setting("how much time looking for expired keys may take, 1 to 10", "1"),
    "activedefrag": Setting("moves values so that free pages can be given back", "no"),
    "active-defrag-threshold-lower": Setting("percent of fragmentation at which that begins", "10"),
    "active-defrag-ignore-bytes": Setting("fragmentation in bytes below which it does not", "104857600"),
    "lazyfree-lazy-eviction": Setting("a thread frees what is evicted", "no", "yes"),
    "lazyfree-lazy-expire": Setting("a thread frees what has expired", "no", "yes"),
    "lazyfree-lazy-server-del": Setting("a thread frees what commands such as RENAME replace", "no", "yes"),
    "lazyfree-lazy-user-del": Setting("DEL frees as UNLINK does", "no", "yes"),
    "lazyfree-lazy-user-flush": Setting("FLUSHALL and FLUSHDB free in the background", "no", "yes"),
    "replica-lazy-flush": Setting("a replica frees its old data in the background at a full resync", "no", "yes"),
    "slowlog-log-slower-than": Setting("microseconds from which a command is logged; -1 for never", "10000"),
    "slowlog-max-len": Setting("entries of the slow log", "128"),
    "latency-monitor-threshold": Setting("milliseconds from which a delay is an event; 0 for never", "0"),
    "latency-tracking": Setting("keeps the percentiles of each command", "yes"),
    "commandlog-execution-slower-than": Setting("the same as slowlog-log-slower-than", "10000"),
    "commandlog-slow-execution-max-len": Setting("the same as slowlog-max-len", "128"),
    "commandlog-request-larger-than": Setting("bytes from which a request is logged; -1 for never", "1048576"),
    "commandlog-large-request-max-len": Setting("entries of that log", "128"),
    "commandlog-reply-larger-than": Setting("bytes from which a reply is logged; -1 for never", "1048576"),
    "commandlog-large-reply-max-len": Setting("entries of that log", "128"),
    "busy-reply-threshold": Setting("milliseconds of a script after which others are told BUSY", "5000"),
    "lua-time-limit": Setting("the older name of busy-reply-threshold", "5000"),
    "hz": Setting("rounds of background work a second", "10"),
    "dynamic-hz": Setting("more rounds with more clients", "yes"),
    "io-threads": Setting("threads that read and write for clients, with the main one", "1"),
    "io-threads-do-reads": Setting("they read, too", "no", "yes"),
    "save": Setting("seconds and changes after which an RDB is written; empty for never", _SAVE),
    "stop-writes-on-bgsave-error": Setting("writes fail while the last RDB has failed", "yes"),
    "rdbcompression": Setting("compresses strings in the RDB", "yes"),
    "disable-thp": Setting("switches transparent huge pages off for the process", "yes"),
    "oom-score-adj": Setting("tells the kernel which process to end first", "no"),
    "appendonly": Setting("writes every change to a file", "no"),
    "appendfsync": Setting("when that is forced to the disk", "everysec"),
    "no-appendfsync-on-rewrite": Setting("not while a child writes", "no"),
    "auto-aof-rewrite-percentage": Setting("growth of the AOF in percent after which it is rewritten", "100"),
    "auto-aof-rewrite-min-size": Setting("bytes below which it is not", "67108864"),
    "aof-use-rdb-preamble": Setting("a rewritten AOF begins with an RDB", "yes"),
    "repl-backlog-size": Setting("bytes of writes that are kept for replicas that come back", "1048576", "10485760"),
    "repl-backlog-ttl": Setting("seconds after the last replica after which the backlog is freed", "3600"),
    "repl-diskless-sync": Setting("sends the RDB to replicas without a file", "yes", None, "no"),
    "repl-timeout": Setting("seconds of silence after which a link is given up", "60"),
    "repl-ping-replica-period": Setting("seconds between pings to replicas", "10"),
    "min-replicas-to-write": Setting("replicas without which writes fail; 0 for none", "0"),
    "min-replicas-max-lag": Setting("seconds of lag up to which a replica counts for that", "10"),
    "replica-read-only": Setting("a replica takes no writes", "yes"),
    "replica-serve-stale-data": Setting("a replica answers without its primary, too", "yes"),
    "replica-ignore-maxmemory": Setting("a replica evicts nothing by itself", "yes"),
    "replica-priority": Setting("which replica Sentinel promotes, lowest first; 0 for never", "100"),
    "timeout": Setting("seconds after which an idle client is closed; 0 for never", "0"),
    "tcp-keepalive": Setting("seconds between probes that find dead clients", "300"),
    "tcp-backlog": Setting("connections that may wait to be accepted", "511"),
    "maxclients": Setting("connections at most", "10000"),
    "client-output-buffer-limit": Setting("bytes and seconds at which slow readers are closed, by class", _OUTPUT),
    "client-query-buffer-limit": Setting("bytes of one request at most", "1073741824"),
    "tracking-table-max-keys": Setting("keys that are remembered for client-side caching", "1000000"),
    "notify-keyspace-events": Setting("which changes of keys are published", ""),
    "hash-max-listpack-entries": Setting("fields up to which a hash is compact", "512"),
    "hash-max-listpack-value": Setting("bytes of a field up to which it is", "64"),
    "hash-max-ziplist-entries": Setting("the older name of hash-max-listpack-entries", "512"),
    "hash-max-ziplist-value": Setting("the older name of hash-max-listpack-value", "64"),
    "list-max-listpack-size": Setting("elements of a list's node, or -2 for 8 KiB", "-2"),
    "list-max-ziplist-size": Setting("the older name of list-max-listpack-size", "-2"),
    "list-compress-depth": Setting("nodes at the ends of a list that are not compressed; 0 for none compressed", "0"),
    "set-max-intset-entries": Setting("members up to which a set of numbers is compact", "512"),
    "set-max-listpack-entries": Setting("members up to which another set is compact", "128"),
    "set-max-listpack-value": Setting("bytes of a member up to which it is", "64"),
    "zset-max-listpack-entries": Setting("members up to which a sorted set is compact", "128"),
    "zset-max-listpack-value": Setting("bytes of a member up to which it is", "64"),
    "zset-max-ziplist-entries": Setting("the older name of zset-max-listpack-entries", "128"),
    "zset-max-ziplist-value": Setting("the older name of zset-max-listpack-value", "64"),
    "stream-node-max-entries": Setting("entries of a stream's node", "100"),
    "stream-node-max-bytes": Setting("bytes of a stream's node", "4096"),
    "hll-sparse-max-bytes": Setting("bytes up to which a HyperLogLog is compact", "3000"),
    "key-memory-histograms": Setting("keeps histograms of the memory of keys", "no"),
    "cluster-node-timeout": Setting("milliseconds after which a node is taken for dead", "15000"),
    "cluster-require-full-coverage": Setting("no slot is served while one has no node", "yes"),
    "cluster-allow-reads-when-down": Setting("reads are answered even then", "no"),
    "cluster-replica-validity-factor": Setting("how old data may be for a replica to take over", "10"),
    "cluster-slot-stats-enabled": Setting("counts the load of each slot", "no"),
}
"""By their names, in the order in which they are shown."""


_NAME: Final = Column("setting", "setting", Unit.TEXT, 30)
_VALUE: Final = Column("value", "value", Unit.TEXT, 12)
_DEFAULT: Final = Column("default", "default", Unit.TEXT, 8, "Of this version")
_CHANGED: Final = Column("changed", "", Unit.TEXT, 7, "Whether it is not the default")
_ABOUT: Final = Column("about", "what it does", Unit.TEXT)

_VALUE_LIMIT: Final = 200
_EMPTY: Final = "(empty)"


def configuration_panel(view: HealthView) -> Panel:
    """Return a table of the settings, the changed ones first."""
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
