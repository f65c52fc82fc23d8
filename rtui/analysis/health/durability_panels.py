"""Durability: snapshots, the append-only file, forks; links, lag and backlog of replicas, the state of a cluster.

A panel each: Persistence and Replication.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.health.panel import About, Line, Lines, Panel
from rtui.analysis.health.possible import NEVER, now_s
from rtui.analysis.health.sample import Peer, Replica, Sample, Source
from rtui.analysis.health.view import HealthView, SampleSpan, number
from rtui.analysis.report.tables.table import Column, Table, Unit
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText

FAILING: Final = "persistence-failing"
FORK: Final = "fork-slow"
HUGE_PAGES: Final = "huge-pages"
GIB: Final = 1 << 30

USUAL_FORK_S_A_GIB: Final = (0.009, 0.013)
"""Seconds of a fork for each GiB, as measured by Redis' documentation (Latency) on a physical machine and on a virtual
one."""


def persistence_panel(view: HealthView) -> Panel:
    notes = []
    if view.setting("save") == "" and view.number("aof_enabled") == 0:
        notes.append(SafeText("Persistence is off: no RDB schedule (save) and no AOF (appendonly)"))
    return Panel("persistence", "Persistence", tuple(_saved_lines(view)), notes=tuple(notes))


def fork_s_a_gib(sample: Sample) -> float | None:
    took_us, used = number(sample, "latest_fork_usec"), number(sample, "used_memory")
    return took_us / 1e6 * GIB / used if took_us and used is not None and used >= 1 else None


def _saved_lines(view: HealthView) -> Iterator[Line]:
    lines, stats = Lines(view, Source.INFO_PERSISTENCE), Lines(view, Source.INFO_STATS)
    yield lines.gauge("rdb_last_bgsave_status", "last RDB", Unit.TEXT, About(_rdb_took(view), "ok", FAILING))
    yield lines.computed("rdb_age", "age of the last RDB", Unit.DURATION, _rdb_age, fields=("rdb_last_save_time",))
    unsaved = About("lost if the server stops now")
    yield lines.gauge("rdb_changes_since_last_save", "changes since last save", Unit.COUNT, unsaved)
    yield lines.gauge("rdb_bgsave_in_progress", "BGSAVE in progress", Unit.COUNT, About(_child(view)))
    yield lines.gauge("aof_enabled", "append-only file (AOF)", Unit.NUMBER)
    if view.number("aof_enabled"):
        yield lines.gauge("aof_last_write_status", "last AOF write", Unit.TEXT, About("", "ok", FAILING))
        yield lines.gauge("aof_last_bgrewrite_status", "last AOF rewrite", Unit.TEXT, About("", "ok", FAILING))
        yield lines.gauge("aof_current_size", "AOF size", Unit.BYTES)
        yield lines.gauge("aof_rewrite_in_progress", "AOF rewrite in progress", Unit.COUNT, About(_child(view)))
        yield lines.rate("aof_delayed_fsync", "delayed fsyncs", Unit.COUNT, "aof_delayed_fsync")
    longest = humanize.seconds(view.levels.number(FORK, "longest") / 1000)
    about = About(_fork_said(view), f"up to {longest}", FORK)
    yield stats.computed("latest_fork", "last fork", Unit.DURATION, _fork_s, about, fields=("latest_fork_usec",))
    usual = " to ".join(map(humanize.seconds, USUAL_FORK_S_A_GIB))
    if view.number("latest_fork_usec"):
        yield stats.computed("fork_per_gib", "fork time per GiB", Unit.DURATION, fork_s_a_gib, About("", usual))
    yield lines.gauge("rdb_last_cow_size", "copy-on-write, last RDB", Unit.BYTES)
    if view.number("aof_enabled"):
        yield lines.gauge("aof_last_cow_size", "copy-on-write, last AOF", Unit.BYTES)
    pages = view.setting("disable-thp")
    if pages is not None:
        yield lines.given("disable_thp", "THP disabled", Unit.TEXT, pages, About("", "yes", HUGE_PAGES))


def _rdb_age(sample: Sample) -> float | None:
    saved = number(sample, "rdb_last_save_time")
    return max(0.0, now_s(sample) - saved) if saved else None


def _rdb_took(view: HealthView) -> str:
    took = view.number("rdb_last_bgsave_time_sec")
    return f"it took {humanize.seconds(took)}" if took is not None and took >= 0 else "none since the server started"


def _child(view: HealthView) -> str:
    done, copied = view.number("current_fork_perc"), view.number("current_cow_size")
    if not (view.number("rdb_bgsave_in_progress") or view.number("aof_rewrite_in_progress")) or done is None:
        return ""
    more = f", {humanize.size(copied)} of copy-on-write so far" if copied else ""
    return f"{humanize.share(done / 100)} done{more}"


def _fork_s(sample: Sample) -> float | None:
    took_us = number(sample, "latest_fork_usec")
    return None if took_us is None else took_us / 1e6


def _fork_said(view: HealthView) -> str:
    used = view.number("used_memory")
    if not used:
        return ""
    if view.number("latest_fork_usec"):
        return f"with {humanize.size(used)} used; all clients wait during a fork"
    low, high = (humanize.seconds(one * used / GIB) for one in USUAL_FORK_S_A_GIB)
    return f"none so far; with {humanize.size(used)} used, expect {low} to {high}"


CLUSTER: Final = "cluster-failing"
NODES: Final = "cluster-node-down"
SENTINELS: Final = "sentinels-failing"
_NODE: Final = Column("node", "node", Unit.NAME)
_ROLE: Final = Column("role", "role", Unit.TEXT, 8)
_LINK: Final = Column("link", "link", Unit.TEXT, 12, "State of the cluster bus link")
_SLOTS: Final = Column("slots", "slots", Unit.NUMBER, 6)
_SENTINEL: Final = Column("sentinel", "Sentinel", Unit.TEXT, 21)
_SAYS: Final = Column(
    "says", "says", Unit.TEXT, 0, "s_down: this Sentinel cannot reach the primary; o_down: a quorum agrees"
)
_PRIMARY: Final = Column("primary", "primary", Unit.TEXT, 21)
_QUORUM: Final = Column("quorum", "quorum", Unit.NUMBER, 7, "Sentinels that must agree that the primary is down")
_SENTINELS: Final = Column("sentinels", "Sentinels", Unit.NUMBER, 9, "Known to this Sentinel")
_REPLICAS: Final = Column("replicas", "replicas", Unit.NUMBER, 8, "Known to this Sentinel")


def cluster_lines(view: HealthView) -> Iterator[Line]:
    lines = Lines(view, Source.CLUSTER_INFO)
    yield lines.gauge("cluster_state", "cluster state", Unit.TEXT, About("", "ok", CLUSTER))
    yield lines.gauge("cluster_slots_assigned", "slots assigned", Unit.NUMBER, About(normal=f"{SLOTS}"))
    yield lines.gauge("cluster_slots_pfail", "slots possibly failing", Unit.NUMBER, About(normal="0"))
    yield lines.gauge("cluster_slots_fail", "slots failing", Unit.NUMBER, About(normal="0"))
    yield lines.gauge("cluster_known_nodes", "known nodes", Unit.COUNT)
    yield lines.gauge("cluster_size", "primaries with slots", Unit.COUNT)
    told = view.told(Source.CLUSTER_NODES)
    if told is None:
        yield lines.given("nodes_out_of_reach", "unreachable nodes", Unit.COUNT, view.unknown(Source.CLUSTER_NODES))
        return
    quorum = quorum_of(told)
    about = About(
        f"{quorum.reached} of {quorum.primaries} primaries with slots are reachable; {quorum.words}", "0", NODES
    )
    yield lines.given("nodes_out_of_reach", "unreachable nodes", Unit.COUNT, len(out_of_reach(told)), about)


def out_of_reach(sample: Sample) -> tuple[Peer, ...]:
    return tuple(one for one in sample.peers if not one.is_self and (one.state != "ok" or not one.is_linked))


@dataclass(frozen=True, slots=True)
class Quorum:
    """The primaries with slots, and how many of them are in reach to vote on a failover."""

    reached: int
    primaries: int

    @property
    def words(self) -> str:
        reached = f"{self.reached} of {self.primaries} primaries with slots are reachable"
        return f"{reached}; a failover needs {self.primaries // 2 + 1} of them"


def quorum_of(sample: Sample) -> Quorum:
    lost = out_of_reach(sample)
    primaries = [one for one in sample.peers if not one.is_replica and one.slots]
    return Quorum(sum(one not in lost for one in primaries), len(primaries))


def sentinel_lines(view: HealthView) -> Iterator[Line]:
    told = view.told(Source.SENTINELS)
    if told is None or not told.sentinels:
        return
    answering = [one for one in told.sentinels if not one.failure]
    needed = needed_sentinels(told)
    said = f"of {len(told.sentinels)}" + (f"; a failover needs {needed}" if needed else "")
    about = About(said, "all", SENTINELS)
    lines = Lines(view, Source.SENTINELS)
    yield lines.given("sentinels_answering", "Sentinels answering", Unit.COUNT, len(answering), about)


def needed_sentinels(sample: Sample) -> int | None:
    """Return the Sentinels needed for a failover: the quorum, and a majority of all; None if none answers."""
    needed = [max(one.quorum or 0, (one.sentinels or 0) // 2 + 1) for one in sample.sentinels if not one.failure]
    return max(needed, default=None)


def quorum_tables(view: HealthView) -> Iterator[Table]:
    told = view.told(Source.CLUSTER_NODES)
    if told is not None and told.peers:
        peers = tuple(
            (
                one.address,
                "replica" if one.is_replica else "primary",
                one.state,
                "itself" if one.is_self else "connected" if one.is_linked else "disconnected",
                one.slots,
            )
            for one in told.peers
        )
        yield Table("peers", "Nodes as seen by this node", (_NODE, _ROLE, _STATE, _LINK, _SLOTS), peers)
    told = view.told(Source.SENTINELS)
    if told is not None and told.sentinels:
        sentinels = tuple(
            (one.address, one.failure or one.flags, one.primary, one.quorum, one.sentinels, one.replicas)
            for one in told.sentinels
        )
        columns = (_SENTINEL, _SAYS, _PRIMARY, _QUORUM, _SENTINELS, _REPLICAS)
        yield Table("sentinels", "Sentinels", columns, sentinels)


BROKEN: Final = "replication-broken"
LAGGING: Final = "replica-lagging"
MISSING: Final = "replica-missing"
OUTDATED: Final = "version-outdated"
BACKLOG: Final = "backlog-short"
ROLES: Final = {"master": "primary", "slave": "replica"}

LEAST_S: Final = 10.0
"""Rates of a shorter session say little of the usual load."""

_NOT_PARTIAL: Final = "the backlog was too short, or the replica had other data"
_REPLICA: Final = Column("replica", "replica", Unit.NAME)
_STATE: Final = Column("state", "state", Unit.TEXT, 12)
_BEHIND: Final = Column("behind", "behind", Unit.BYTES, 9, "Bytes of the replication stream not yet acknowledged")
_LAG: Final = Column("lag", "lag", Unit.DURATION, 6, "Time since its last acknowledgement")


def replication_panel(view: HealthView) -> Panel:
    return Panel("replication", "Replication", tuple(_lines(view)), tuple(_tables(view)))


def is_replica(view: HealthView) -> bool:
    return view.text("role") == "slave"


def behind(sample: Sample, replica: Replica) -> float | None:
    offset = number(sample, "master_repl_offset")
    return None if offset is None or replica.offset is None else offset - replica.offset


def changes(view: HealthView) -> Iterator[str]:
    """Yield the changes of role and primary in the samples, in words, oldest first: a failover."""
    for before, after in pairwise(view.samples):
        when = humanize.moment(after.at_ms / 1000)
        was, now = (str(one.info.get("role", "")) for one in (before, after))
        if SampleSpan(before, after).is_other_server:
            yield f"a different server since {when} UTC"
        elif was and now and was != now:
            yield f"{ROLES.get(was, was)} until {when} UTC"
        elif now == "slave" and _primary_of(before) != _primary_of(after):
            yield f"followed {_primary_of(before)} until {when} UTC"


def _primary_of(sample: Sample) -> str:
    return f"{sample.info.get('master_host', '')}:{sample.info.get('master_port', '')}"


def most_behind(sample: Sample) -> float | None:
    return max((size for one in sample.replicas if (size := behind(sample, one)) is not None), default=None)


def backlog_s(view: HealthView) -> float | None:
    """Return the seconds of outage that the backlog survives at the write rate of the session; None if unknown."""
    size, session = view.number("repl_backlog_size"), view.session
    if size is None or session is None or session.seconds < LEAST_S:
        return None
    written = session.rate("master_repl_offset")
    return size / written if written else None


def version_field(view: HealthView) -> str:
    """Return the field of the version of a server: Valkey claims one of Redis as well."""
    return "valkey_version" if view.text("valkey_version") else "redis_version"


def _lines(view: HealthView) -> Iterator[Line]:
    lines, stats = Lines(view, Source.INFO_REPLICATION), Lines(view, Source.INFO_STATS)
    role = view.cell("role", Source.INFO_REPLICATION)
    shown = ROLES.get(role, role) if isinstance(role, str) else role
    yield lines.given("role", "role", Unit.TEXT, shown, About("; ".join(changes(view))))
    server = replace(lines, source=Source.INFO_SERVER)
    yield server.gauge(version_field(view), "version", Unit.TEXT, About("", "one with all security fixes", OUTDATED))
    yield server.gauge("uptime_in_seconds", "uptime", Unit.DURATION)
    if is_replica(view):
        yield from _as_replica(view, lines)
    yield lines.gauge("connected_slaves", "connected replicas", Unit.COUNT, About("", "as many as before", MISSING))
    if view.number("connected_slaves"):
        lag = humanize.seconds(view.levels.number(LAGGING, "lag") / 1000)
        lags = [one.lag_s for one in view.latest.replicas if one.lag_s is not None and one.lag_s >= 0]
        lagging = About("of the slowest replica", f"up to {lag}", LAGGING)
        longest = max(lags) if lags else view.unknown(Source.INFO_REPLICATION)
        yield lines.given("replica_lag", "replica lag", Unit.DURATION, longest, lagging)
        yield lines.computed("replica_behind", "replica offset gap", Unit.BYTES, most_behind, _behind_about(view))
    if view.number("repl_backlog_active"):
        yield lines.gauge("repl_backlog_size", "replication backlog", Unit.BYTES)
        least = f"at least {humanize.seconds(view.levels.number(BACKLOG, 'least') / 1000)}"
        survives = backlog_s(view)
        about = About("" if survives is not None else "known after 10 s of writes", least, BACKLOG)
        yield lines.given("backlog_seconds", "outage backlog covers", Unit.DURATION, survives, about)
        yield lines.rate("replicated", "replication stream", Unit.BYTES, "master_repl_offset")
        yield stats.gauge("sync_full", "full resyncs", Unit.COUNT, About("each forks and sends the whole dataset"))
        yield stats.gauge("sync_partial_ok", "partial resyncs", Unit.COUNT)
        yield stats.gauge("sync_partial_err", "failed partial resyncs", Unit.COUNT, About(_NOT_PARTIAL))
    if view.number("cluster_enabled"):
        yield from cluster_lines(view)
    yield from sentinel_lines(view)


def _behind_about(view: HealthView) -> About:
    size, session = most_behind(view.latest), view.session
    written = None if session is None or session.seconds < LEAST_S else session.rate("master_repl_offset")
    said = f"{humanize.seconds(round(size / written, 1))} at the current write rate" if size and written else ""
    share = humanize.share(view.levels.number(LAGGING, "backlog"))
    return About(said, f"up to {share} of the backlog", LAGGING)


def _as_replica(view: HealthView, lines: Lines) -> Iterator[Line]:
    down_s = view.number("master_link_down_since_seconds")
    said = f"for {humanize.seconds(down_s)}" if down_s is not None and down_s > 0 else ""
    yield lines.given("primary", "primary", Unit.TEXT, SafeText(_primary_of(view.latest)))
    yield lines.gauge("master_link_status", "link to the primary", Unit.TEXT, About(said, "up", BROKEN))
    yield lines.gauge("master_last_io_seconds_ago", "last contact with primary", Unit.DURATION)
    if view.number("master_sync_in_progress"):
        yield lines.gauge("master_sync_total_bytes", "full resync, total", Unit.BYTES)
        yield lines.gauge("master_sync_read_bytes", "full resync, received", Unit.BYTES)


def _tables(view: HealthView) -> Iterator[Table]:
    rows = tuple(
        (one.address, SafeText(one.state), behind(view.latest, one), None if one.lag_s == NEVER else one.lag_s)
        for one in view.latest.replicas
    )
    if rows:
        yield Table("replicas", "Replicas", (_REPLICA, _STATE, _BEHIND, _LAG), rows)
    yield from quorum_tables(view)
