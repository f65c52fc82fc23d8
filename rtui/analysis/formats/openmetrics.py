"""Servers and keys as metrics, written by prometheus_client: OpenMetrics, or the text format of Prometheus.

The textfile collector of node_exporter reads the text format, and Prometheus itself both. A figure of a server has the
name and the unit that redis_exporter gives it (`redis_memory_used_bytes`), so that dashboards and alerts of its users
work; a field of INFO that it does not know begins with `rtui_` and is in base units: seconds, bytes, ratios. Keys by
pattern and findings begin with `rtui_`, too.

An unknown figure has no sample, since 0 would be a value. `redis_up` is 0 for a node that has not answered last: its
other metrics are older. `rtui_finding` has a sample for each finding; `rtui_health_rule_checked` is 1 for each rule
that was judged, 0 for those that could not be. The samples of a metric are bounded: of patterns the largest, with one
sample for all others, of commands, errors and findings the first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest as text_format
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_format
from prometheus_client.registry import Collector

from rtui.analysis.estimates import as_estimate
from rtui.analysis.findings.contents import findings
from rtui.analysis.findings.finding import Found
from rtui.analysis.findings.server import server_findings
from rtui.analysis.formats.fleet import DOWN, FleetServer
from rtui.analysis.health.fields import FIELDS, FieldUnit, InfoField
from rtui.analysis.health.possible import NEVER, range_of
from rtui.analysis.health.sample import Replica
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import Node, Report
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.totals import namespace_cell
from rtui.keyspace.text.display import display, display_text

PROMETHEUS: Final = "prom"
OPENMETRICS: Final = "openmetrics"

MOST_PATTERNS: Final = 100
"""Patterns of a report with samples of their own; the others are one."""

MOST_SAMPLES: Final = 200
"""Samples of a list of one node: commands, errors, databases, replicas, findings."""

OTHERS: Final = "(others)"
LABEL_LIMIT: Final = 200

_SAME: Final = (
    "uptime_in_seconds", "hz", "configured_hz", "connected_clients", "blocked_clients", "tracking_clients",
    "cluster_connections", "pubsub_clients", "watching_clients", "clients_in_timeout_table", "allocator_frag_ratio",
    "allocator_frag_bytes", "allocator_rss_ratio", "allocator_rss_bytes", "number_of_cached_scripts",
    "mem_fragmentation_ratio", "mem_fragmentation_bytes", "mem_clients_slaves", "mem_clients_normal",
    "lazyfree_pending_objects", "active_defrag_running", "async_loading", "rdb_changes_since_last_save",
    "rdb_bgsave_in_progress", "rdb_last_bgsave_status", "aof_enabled", "aof_rewrite_in_progress",
    "aof_rewrite_scheduled", "aof_pending_rewrite", "aof_buffer_length", "aof_pending_bio_fsync",
    "aof_last_bgrewrite_status", "aof_last_write_status", "pubsub_channels", "pubsub_patterns",
    "pubsubshard_channels", "tracking_total_keys", "tracking_total_items", "tracking_total_prefixes",
    "connected_slaves", "repl_backlog_first_byte_offset", "master_repl_offset", "second_repl_offset",
    "slave_priority", "instantaneous_ops_per_sec", "instantaneous_input_kbps", "instantaneous_output_kbps",
    "cluster_enabled", "cluster_state", "cluster_slots_assigned", "cluster_slots_ok", "cluster_slots_pfail",
    "cluster_slots_fail", "cluster_known_nodes", "cluster_size", "cluster_current_epoch", "cluster_my_epoch",
)  # fmt: skip
_AND_BYTES: Final = (
    "client_recent_max_output_buffer", "client_recent_max_input_buffer", "allocator_active", "allocator_allocated",
    "allocator_resident", "total_system_memory", "mem_total_replication_buffers",
    "mem_overhead_db_hashtable_rehashing", "rdb_last_cow_size", "aof_last_cow_size", "aof_current_size",
    "aof_base_size",
)  # fmt: skip
_AND_TOTAL: Final = (
    "rdb_saves", "rejected_connections", "expired_subkeys", "expired_keys", "evicted_keys", "evicted_clients",
    "evicted_scripts", "keyspace_hits", "keyspace_misses", "client_query_buffer_limit_disconnections",
    "client_output_buffer_limit_disconnections", "acl_access_denied_auth", "acl_access_denied_cmd",
    "acl_access_denied_key", "acl_access_denied_channel",
)  # fmt: skip
_TOTAL_BEHIND: Final = (
    "connections_received", "commands_processed", "net_input_bytes", "net_output_bytes", "net_repl_input_bytes",
    "net_repl_output_bytes",
)  # fmt: skip
REDIS_EXPORTER: Final[Mapping[str, str]] = {
    **{name: name for name in _SAME},
    **{name: f"{name}_bytes" for name in _AND_BYTES},
    **{name: f"{name}_total" for name in _AND_TOTAL},
    **{f"total_{name}": f"{name}_total" for name in _TOTAL_BEHIND},
    "maxclients": "max_clients",
    "used_memory": "memory_used_bytes",
    "used_memory_rss": "memory_used_rss_bytes",
    "used_memory_peak": "memory_used_peak_bytes",
    "used_memory_lua": "memory_used_lua_bytes",
    "used_memory_overhead": "memory_used_overhead_bytes",
    "used_memory_startup": "memory_used_startup_bytes",
    "used_memory_dataset": "memory_used_dataset_bytes",
    "used_memory_scripts": "memory_used_scripts_bytes",
    "maxmemory": "memory_max_bytes",
    "mem_not_counted_for_evict": "mem_not_counted_for_eviction_bytes",
    "expired_stale_perc": "expired_stale_percentage",
    "expired_time_cap_reached_count": "expired_time_cap_reached_total",
    "loading": "loading_dump_file",
    "rdb_last_save_time": "rdb_last_save_timestamp_seconds",
    "rdb_last_bgsave_time_sec": "rdb_last_bgsave_duration_sec",
    "rdb_current_bgsave_time_sec": "rdb_current_bgsave_duration_sec",
    "aof_last_rewrite_time_sec": "aof_last_rewrite_duration_sec",
    "aof_current_rewrite_time_sec": "aof_current_rewrite_duration_sec",
    "latest_fork_usec": "latest_fork_seconds",
    "repl_backlog_size": "replication_backlog_bytes",
    "repl_backlog_active": "repl_backlog_is_active",
    "repl_backlog_histlen": "repl_backlog_history_bytes",
    "sync_full": "replica_resyncs_full",
    "sync_partial_ok": "replica_partial_resync_accepted",
    "sync_partial_err": "replica_partial_resync_denied",
    "active_defrag_hits": "defrag_hits",
    "active_defrag_misses": "defrag_misses",
    "expire_cycle_cpu_milliseconds": "expire_cycle_cpu_time_ms_total",
    "total_eviction_exceeded_time": "eviction_exceeded_time_ms_total",
    "current_eviction_exceeded_time": "current_eviction_exceeded_time_ms",
    "used_cpu_sys": "cpu_sys_seconds_total",
    "used_cpu_user": "cpu_user_seconds_total",
    "used_cpu_sys_children": "cpu_sys_children_seconds_total",
    "used_cpu_user_children": "cpu_user_children_seconds_total",
    "used_cpu_sys_main_thread": "cpu_sys_main_thread_seconds_total",
    "used_cpu_user_main_thread": "cpu_user_main_thread_seconds_total",
    "cluster_stats_messages_sent": "cluster_messages_sent_total",
    "cluster_stats_messages_received": "cluster_messages_received_total",
}
"""The names that redis_exporter (1.67, metricMapGauges and metricMapCounters) gives fields of INFO, behind `redis_`.

Values are the server's own, but `latest_fork_seconds`. Left out are counters whose names it does not end in `_total`
as both formats want it.
"""

_STATUS: Final = {"ok": 1.0, "err": 0.0, "fail": 0.0}
"""The values of fields of words, as redis_exporter has them."""

_SUFFIXES: Final = {
    FieldUnit.BYTES: ("bytes", 1.0),
    FieldUnit.KIB_PER_S: ("bytes_per_second", 1024.0),
    FieldUnit.SECONDS: ("seconds", 1.0),
    FieldUnit.MILLISECONDS: ("seconds", 1e-3),
    FieldUnit.MICROSECONDS: ("seconds", 1e-6),
    FieldUnit.PERCENT: ("ratio", 0.01),
    FieldUnit.RATIO: ("ratio", 1.0),
    FieldUnit.TIME: ("timestamp_seconds", 1.0),
}
"""The suffix of names and the factor of values of fields that only rtui has, by unit."""

_UNIT_WORDS: Final = re.compile(r"_(?:in_seconds|seconds|sec|usec|milliseconds|bytes|ratio|perc|kbps)\Z")
_Samples = Iterable[tuple[Mapping[str, str], float | None]]


class FieldMetric(NamedTuple):
    """The metric of a field of INFO."""

    name: str
    factor: float
    is_counter: bool


def metric_of(one: InfoField) -> FieldMetric:
    """Return the metric of a field: `redis_memory_used_bytes`, or `rtui_peak_bytes` if redis_exporter has none."""
    known = REDIS_EXPORTER.get(one.name)
    if known is not None:
        factor = 1e-6 if one.unit is FieldUnit.MICROSECONDS else 1.0
        return FieldMetric(f"redis_{known}", factor, known.endswith("_total"))
    suffix, factor = _SUFFIXES.get(one.unit, ("", 1.0))
    stem = _UNIT_WORDS.sub("", one.name) if suffix else one.name
    stem = stem.removeprefix("total_") if one.is_counter else stem
    parts = ["rtui", stem, *([suffix] if suffix else []), *(["total"] if one.is_counter else [])]
    return FieldMetric("_".join(parts), factor, one.is_counter)


def _metric(name: str, about: str, samples: _Samples) -> Metric:
    """Return a metric, a counter if its name ends in `_total`, with the samples that are known."""
    family = CounterMetricFamily(name, about) if name.endswith("_total") else GaugeMetricFamily(name, about)
    for labels, value in samples:
        if value is not None:
            family.add_sample(name, {key: _text(one) for key, one in labels.items()}, float(value))
    return family


def _text(value: str) -> str:
    return display_text(value, limit=LABEL_LIMIT)


class _Metrics(Collector):
    """Metrics that are there already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = [one for one in metrics if one.samples]

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _written(metrics: Iterable[Metric], form: str) -> str:
    found = _Metrics(metrics)
    return (openmetrics_format(found) if form == OPENMETRICS else text_format(found)).decode()


def health_metrics(views: Sequence[HealthView], failed: Collection[str] = (), form: str = PROMETHEUS) -> str:
    """`failed` nodes gave no answer last; with a report of the keys also the metrics of its patterns."""
    judged = {view.latest.node: server_findings(view) for view in views}
    reports = {id(view.report): view.report for view in views if view.report is not None}
    return _written([*_servers(views, failed), *_rules(judged), *_reports(list(reports.values()))], form)


def fleet_metrics(servers: Sequence[FleetServer], form: str = PROMETHEUS) -> str:
    views = [one.view for one in servers if one.view is not None]
    failed = [one.address for one in servers if one.state == DOWN]
    judged: dict[str, Found] = {one.address: one.found for one in servers if one.found is not None}
    named = (
        ({"node": one.address, "name": one.name, **{f"label_{key}": value for key, value in one.labels}}, 1.0)
        for one in servers
    )
    info = _metric("rtui_server_info", "name and labels of a server", named)
    return _written([*_servers(views, failed), info, *_rules(judged)], form)


def report_metrics(report: Report, form: str = PROMETHEUS) -> str:
    return _written([*_reports([report]), *_rules({report.head.server.label: findings(report)})], form)


def _servers(views: Sequence[HealthView], failed: Collection[str]) -> Iterator[Metric]:
    nodes = dict.fromkeys([*(view.latest.node for view in views), *failed])
    up = (({"node": node}, float(node not in failed)) for node in nodes)
    yield _metric("redis_up", "whether the node answered the last poll", up)
    for one in FIELDS.values():
        metric = metric_of(one)
        samples = (({"node": view.latest.node}, _value(view, one, metric.factor)) for view in views)
        if one.unit is not FieldUnit.TEXT or one.name in REDIS_EXPORTER:
            yield _metric(metric.name, one.about, samples)
    yield from _lists(views)


def _value(view: HealthView, one: InfoField, factor: float) -> float | None:
    """Return a field in the unit of its metric; None if it is unknown, or stands for never."""
    if one.unit is FieldUnit.TEXT:
        return _STATUS.get(view.text(one.name))
    value = view.number(one.name)
    is_never = value == NEVER and range_of(one).low == NEVER
    return None if value is None or is_never else value * factor


_INFO: Final = ("role", "redis_version", "valkey_version", "redis_mode", "os", "maxmemory_policy", "tcp_port", "run_id")


def _lists(views: Sequence[HealthView]) -> Iterator[Metric]:
    nodes = [(view.latest.node, view.latest) for view in views]
    info = (({"node": node, **{name: str(last.info.get(name, "")) for name in _INFO}}, 1.0) for node, last in nodes)
    yield _metric("redis_instance_info", "version, role and settings of a server", info)
    databases = [
        ({"node": node, "db": f"db{db}"}, one)
        for node, last in nodes
        for db, one in sorted(last.databases.items(), key=lambda pair: -pair[1].keys)[:MOST_SAMPLES]
    ]
    yield _metric("redis_db_keys", "keys of a database", ((at, one.keys) for at, one in databases))
    yield _metric(
        "redis_db_keys_expiring", "keys of a database with a TTL", ((at, one.expires) for at, one in databases)
    )
    ttls = ((at, _scaled(one.avg_ttl_ms, 1e-3)) for at, one in databases)
    yield _metric("redis_db_avg_ttl_seconds", "mean TTL of a database, as the server estimates it", ttls)
    commands = [
        ({"node": node, "cmd": name.lower()}, one)
        for node, last in nodes
        for name, one in sorted(last.commands.items(), key=lambda pair: -pair[1].calls)[:MOST_SAMPLES]
    ]
    yield _metric("redis_commands_total", "calls of a command", ((at, one.calls) for at, one in commands))
    took = ((at, one.took_us / 1e6) for at, one in commands)
    yield _metric("redis_commands_duration_seconds_total", "total time of a command", took)
    errors = (
        ({"node": node, "err": code}, times)
        for node, last in nodes
        for code, times in sorted(last.errors.items(), key=lambda pair: -pair[1])[:MOST_SAMPLES]
    )
    yield _metric("redis_errors_total", "replies with an error code", errors)
    replicas = [({"node": node, **_replica(one)}, one) for node, last in nodes for one in last.replicas[:MOST_SAMPLES]]
    lags = ((at, _scaled(one.lag_s)) for at, one in replicas)
    yield _metric("redis_connected_slave_lag_seconds", "since the last acknowledgement of a replica", lags)
    offsets = ((at, _scaled(one.offset)) for at, one in replicas)
    yield _metric("redis_connected_slave_offset_bytes", "acknowledged bytes of a replica", offsets)
    primaries = [
        ({"node": node, **{name: str(last.info.get(name, "")) for name in ("master_host", "master_port")}}, last.info)
        for node, last in nodes
        if "master_link_status" in last.info
    ]
    links = ((at, float(fields["master_link_status"] == "up")) for at, fields in primaries)
    yield _metric("redis_master_link_up", "whether a replica is connected to its primary", links)


def _scaled(value: float | None, factor: float = 1.0) -> float | None:
    """Return a figure in the unit of its metric; None if it is unknown, never or impossible."""
    return None if value is None or value < 0 else value * factor


def _replica(one: Replica) -> dict[str, str]:
    host, _, port = display(one.address, limit=LABEL_LIMIT).rpartition(":")
    return {"slave_ip": host, "slave_port": port, "slave_state": one.state}


def _rules(judged: Mapping[str, Found]) -> Iterator[Metric]:
    listed = [
        (
            {"node": node, "rule": one.rule, "severity": one.severity.value, "where": str(one.where)},
            one.keys,
            one.memory,
        )
        for node, found in judged.items()
        for one in {(each.rule, each.where): each for each in reversed(found.findings[:MOST_SAMPLES])}.values()
    ]
    yield _metric("rtui_finding", "findings of a rule", ((at, 1.0) for at, _, _ in listed))
    keys = ((at, None if amount is None else amount.value) for at, amount, _ in listed)
    yield _metric("rtui_finding_keys", "keys that a finding is about", keys)
    sizes = ((at, None if amount is None else amount.value) for at, _, amount in listed)
    yield _metric("rtui_finding_bytes", "bytes that a finding is about", sizes)
    checked = (
        ({"node": node, "rule": rule}, float(rule in found.judged))
        for node, found in judged.items()
        for rule in found.checked
    )
    yield _metric("rtui_health_rule_checked", "whether a rule could be checked", checked)


def _reports(reports: Sequence[Report]) -> Iterator[Metric]:
    """Yield the keys of reports by pattern; each key is in one of them."""
    at_report, patterns = [], []
    for report in reports:
        head = report.head
        at = {"node": head.server.label, "db": f"db{head.server.db}"}
        at_report.append((at, report))
        patterns += [({**at, "pattern": name}, nodes) for name, nodes in _patterns(report.summary.root)]
    kinds = (({**at, "coverage": report.head.coverage.kind.value}, 1.0) for at, report in at_report)
    yield _metric("rtui_report_info", "whether figures by pattern are exact, at least, or estimates", kinds)
    made = ((at, report.head.made_at_s) for at, report in at_report)
    yield _metric("rtui_report_timestamp_seconds", "when the keys were inspected", made)
    keys = ((at, _sum(one.stats.keys for one in nodes)) for at, nodes in patterns)
    yield _metric("rtui_pattern_keys", "keys by pattern of their names", keys)
    sizes = ((at, _sum(one.stats.memory_bytes for one in nodes)) for at, nodes in patterns)
    yield _metric("rtui_pattern_bytes", "MEMORY USAGE by pattern, at least where it is not known of all keys", sizes)
    lasting = ((at, _sum(one.stats.no_ttl_keys for one in nodes)) for at, nodes in patterns)
    yield _metric("rtui_pattern_keys_without_ttl", "keys without TTL by pattern", lasting)


def _patterns(root: Node) -> Iterator[tuple[str, Sequence[Node]]]:
    """Yield the patterns that keys end at, the largest each with its node, then all others together."""
    ends = [path for path in root.walk() if len(path) > 1 and not path[-1].children]
    ends.sort(key=lambda path: (-_of(path[-1].stats.memory_bytes), -_of(path[-1].stats.keys)))
    largest: dict[str, list[Node]] = {}
    for path in ends[:MOST_PATTERNS]:
        name = namespace_cell(path)
        text = display(name, limit=LABEL_LIMIT) if isinstance(name, bytes) else _text(name)
        largest.setdefault(text, []).append(path[-1])
    if rest := [path[-1] for path in ends[MOST_PATTERNS:]]:
        largest.setdefault(OTHERS, []).extend(rest)
    yield from largest.items()


def _of(figure: Figure | None) -> float:
    return 0.0 if figure is None else as_estimate(figure).value


def _sum(figures: Iterable[Figure | None]) -> float | None:
    known = [as_estimate(one).value for one in figures if one is not None]
    return sum(known) if known else None
