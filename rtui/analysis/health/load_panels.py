"""The load of a server and its clients: the Load panel and the Clients panel.

Commands a second, hits, network, processor, and which commands take the time; who is connected: buffers, the largest
first, their limits by class, idle and blocked clients, who sends KEYS.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.health.panel import NO_READS, About, Line, Lines, Panel
from rtui.analysis.health.sample import ClientFigures, CommandStats, Source
from rtui.analysis.health.slow_panel import caller, logged
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText, display

BANNED: Final = "command-banned"
HIT_RATIO: Final = "hit-ratio-fell"
HIT_LOW: Final = "hit-ratio-low"
CPU: Final = "cpu-saturated"
CHURN: Final = "connection-churn"
CLIENTS_LIMIT: Final = "clients-limit"
MOST_COMMANDS: Final = 50
MAIN_THREAD: Final = ("used_cpu_user_main_thread", "used_cpu_sys_main_thread")
WHOLE_PROCESS: Final = ("used_cpu_user", "used_cpu_sys")
_COMMAND: Final = Column("command", "command", Unit.TEXT, 18)
_CALLS: Final = Column("calls", "calls", Unit.COUNT, 12, "Since start or CONFIG RESETSTAT")
_SHARE: Final = Column(
    "share_of_time", "time", Unit.SHARE, 5, "Of the time of all commands since the last CONFIG RESETSTAT"
)
_MEAN: Final = Column("mean", "mean", Unit.DURATION, 7, "Mean time per call")
_PERCENTILES: Final = tuple(
    Column(f"p{name.replace('.', '_')}", f"p{name}", Unit.DURATION, 7, f"{name} % of calls took at most this long")
    for name in ("50", "99", "99.9")
)
_SESSION_CALLS: Final = Column("session_calls", "recent calls", Unit.COUNT, 10, "In this session")
_SESSION_SHARE: Final = Column(
    "session_share", "recent time", Unit.SHARE, 8, "Share of the time of all commands in this session"
)
_REJECTED: Final = Column(
    "rejected", "rejected", Unit.COUNT, 9, "Rejected before execution: permissions, arguments, memory"
)
_FAILED: Final = Column("failed", "failed", Unit.COUNT, 9, "Ended with an error")
_ERROR: Final = Column("error", "error", Unit.TEXT, 20)
_TIMES: Final = Column("times", "count", Unit.COUNT, 10, "Since start or CONFIG RESETSTAT")
_SESSION_TIMES: Final = Column("session_times", "recent", Unit.COUNT, 8, "In this session")


def load_panel(view: HealthView) -> Panel:
    own = view.latest.own.commands
    notes = [SafeText(f"{humanize.counted(own, 'command')} of this session are rtui's own")] if own else []
    return Panel("load", "Load", tuple(_lines(view)), tuple(_tables(view)), tuple(notes))


def _lines(view: HealthView) -> Iterator[Line]:
    stats, clients = Lines(view, Source.INFO_STATS), Lines(view, Source.INFO_CLIENTS)
    yield stats.rate("commands", "commands processed", Unit.COUNT, "total_commands_processed")
    yield stats.gauge("instantaneous_ops_per_sec", "commands per second", Unit.COUNT)
    yield stats.over_time(
        "hit_ratio",
        "hit ratio",
        Unit.SHARE,
        lambda span: span.hit_ratio,
        About("", "as before", HIT_RATIO),
        counters=("keyspace_hits", "keyspace_misses"),
        otherwise=NO_READS,
    )
    hits, reads = hits_and_reads(view) or (0, 0)
    least = f"at least {humanize.share(view.levels.number(HIT_LOW, 'share'))}"
    about = About(view.since.words, least, HIT_LOW)
    is_told = {"keyspace_hits", "keyspace_misses"} <= view.latest.info.keys()
    none = NO_READS if is_told else view.unknown(Source.INFO_STATS, "keyspace_hits", "keyspace_misses")
    ratio: Cell = hits / reads if reads else none
    yield stats.given("hit_ratio_total", "hit ratio since start", Unit.SHARE, ratio, about)
    yield stats.rate("net_input", "network input", Unit.BYTES, "total_net_input_bytes")
    yield stats.rate("net_output", "network output", Unit.BYTES, "total_net_output_bytes")
    yield from _processor(view)
    connected, most = view.number("connected_clients"), view.number("maxclients")
    said = f"maxclients is {humanize.decimal(most)}" if most and connected is not None else ""
    share = humanize.share(view.levels.number(CLIENTS_LIMIT, "share"))
    yield clients.gauge(
        "connected_clients", "connected clients", Unit.COUNT, About(said, f"below {share} of maxclients", CLIENTS_LIMIT)
    )
    yield clients.gauge("blocked_clients", "blocked clients", Unit.COUNT)
    new = f"below {view.levels.number(CHURN, 'rate'):g}/s"
    received = "total_connections_received"
    yield stats.rate("new_connections", "new connections", Unit.COUNT, received, about=About("", new, CHURN))
    yield stats.rate("rejected_connections", "rejected connections", Unit.COUNT, "rejected_connections")
    yield stats.rate("error_replies", "error replies", Unit.COUNT, "total_error_replies")


def _processor(view: HealthView) -> Iterator[Line]:
    lines = Lines(view, Source.INFO_CPU)
    knows_threads = all(view.number(name) is not None for name in MAIN_THREAD)
    normal = f"below {humanize.share(view.levels.number(CPU, 'share'))} of one core"

    def line(name: str, title: str, counters: tuple[str, ...], about: About) -> Line:
        return lines.over_time(name, title, Unit.SHARE, lambda span: span.rate(*counters), about, counters=counters)

    if knows_threads:
        main = About("this thread executes all commands", normal, CPU)
        yield line("cpu_main_thread", "CPU, main thread", MAIN_THREAD, main)
        yield line("cpu", "CPU, all threads", WHOLE_PROCESS, About("of one core; includes I/O threads"))
    else:
        yield line("cpu", "CPU", WHOLE_PROCESS, About("of one core"))
    threads = view.setting("io-threads")
    if threads is not None:
        said = ["including the main thread", *_threaded(view)]
        yield lines.given("io_threads", "I/O threads", Unit.TEXT, threads, About("; ".join(said)))


def _threaded(view: HealthView) -> Iterator[str]:
    for what, by_threads, all_of_it in (
        ("reads", "io_threaded_reads_processed", "total_reads_processed"),
        ("writes", "io_threaded_writes_processed", "total_writes_processed"),
    ):
        some, total = view.number(by_threads), view.number(all_of_it)
        if some is not None and total and some <= total:
            yield f"{humanize.share(some / total)} of {what} were threaded"


def hits_and_reads(view: HealthView) -> tuple[float, float] | None:
    """Return hits and reads since the statistics began without rtui's of this session; None if not known."""
    hits, misses, own = view.number("keyspace_hits"), view.number("keyspace_misses"), view.latest.own
    if hits is None or misses is None:
        return None
    hits = max(0.0, hits - own.hits)
    return hits, hits + max(0.0, misses - own.misses)


def _tables(view: HealthView) -> Iterator[Table]:
    told = view.told(Source.COMMAND_STATS)
    if told is not None and told.commands:
        yield _commands(view, told.commands)
    told = view.told(Source.ERROR_STATS)
    if told is not None and told.errors:
        between = view.between(Source.ERROR_STATS)
        now = None if between is None else between.errors
        most = sorted(told.errors.items(), key=lambda one: -one[1])
        rows = tuple((code, times, None if now is None else now.get(code)) for code, times in most)
        yield Table("errors", "Errors", (_ERROR, _TIMES, _SESSION_TIMES), rows)


def _commands(view: HealthView, commands: dict[str, CommandStats]) -> Table:
    between = view.between(Source.COMMAND_STATS)
    now = None if between is None else between.commands
    took = sum(one.took_us for one in commands.values())
    took_now = sum(one.took_us for one in (now or {}).values())
    unknown = view.unknown(Source.LATENCY_STATS)
    top = sorted(commands.items(), key=lambda one: -one[1].took_us)[:MOST_COMMANDS]
    rows = []
    for name, one in top:
        here = None if now is None else now.get(name)
        rows.append(
            (
                name,
                one.calls,
                one.took_us / took if took else None,
                one.took_us / one.calls / 1e6 if one.calls else None,
                *_times(one, unknown),
                None if here is None else here.calls,
                here.took_us / took_now if here is not None and took_now else None,
                one.rejected,
                one.failed,
            )
        )
    columns = (_COMMAND, _CALLS, _SHARE, _MEAN, *_PERCENTILES, _SESSION_CALLS, _SESSION_SHARE, _REJECTED, _FAILED)
    note = f"The top {MOST_COMMANDS} of {len(commands)} by total time." if len(commands) > MOST_COMMANDS else ""
    return Table("commands", "Commands by total time", columns, tuple(rows), note=note)


def _times(one: CommandStats, unknown: Unknown) -> tuple[Cell, Cell, Cell]:
    found = one.percentiles_us
    p50, p99, p999 = (found[name] / 1e6 if name in found else unknown for name in ("50", "99", "99.9"))
    return p50, p99, p999


BUFFERS: Final = "output-buffers"
QUERIES: Final = "query-buffers"
_NAME_LIMIT: Final = 60
_LIMITS: Final = re.compile(r"(normal|slave|replica|pubsub) (\d{1,18}) (\d{1,18}) (\d{1,18})", re.ASCII)
CLASSES: Final = {"normal": "normal", "slave": "replica", "replica": "replica", "pubsub": "subscriber"}
_ADDRESS: Final = Column("address", "address", Unit.NAME)
_NAME: Final = Column("name", "name", Unit.NAME, 12)
_LIBRARY: Final = Column("library", "library", Unit.NAME, 16)
_USER: Final = Column("user", "user", Unit.NAME, 8)
_CLASS: Final = Column("class", "class", Unit.TEXT, 10)
_OUTPUT: Final = Column("output", "output", Unit.BYTES, 9, "Output buffer: replies not yet read")
_QUERY: Final = Column("query", "query", Unit.BYTES, 9, "Query buffer: requests not yet executed")
_TOTAL: Final = Column("total", "memory", Unit.BYTES, 9, "Total memory of the connection")
_CONNECTED: Final = Column("connected", "connected", Unit.DURATION, 9)
_IDLE: Final = Column("idle", "idle", Unit.DURATION, 7)
_LAST: Final = Column("last", "last command", Unit.TEXT, 14)
_STATE: Final = Column("state", "state", Unit.TEXT, 10)
_SUBSCRIPTIONS: Final = Column("subscriptions", "subscribed", Unit.COUNT, 10, "Channels, patterns and shard channels")
_CLIENTS: Final = Column("clients", "clients", Unit.COUNT, 8)
_HARD: Final = Column("hard", "hard limit", Unit.BYTES, 9)
_SOFT: Final = Column("soft", "soft limit", Unit.BYTES, 9)
_FOR: Final = Column("for", "for", Unit.DURATION, 6)
_WHEN: Final = Column("when", "when, UTC", Unit.TIME, 19)
_PATTERN: Final = Column("pattern", "pattern", Unit.NAME)
_TOOK: Final = Column("took", "took", Unit.DURATION, 8)


@dataclass(frozen=True, slots=True)
class Limit:
    """When clients of a class are closed; 0 for never."""

    hard_bytes: int
    soft_bytes: int
    soft_s: int

    def is_near(self, output_bytes: int, share: float) -> bool:
        """Whether `output_bytes` reach this share of the hard limit, or the soft limit, whose time runs then."""
        is_over_soft = 0 < self.soft_bytes <= output_bytes
        return is_over_soft or (self.hard_bytes > 0 and output_bytes >= share * self.hard_bytes)

    @property
    def words(self) -> str:
        """When that is: `at 32.0 MiB, or after 1m above 8.0 MiB`; empty for never."""
        parts = [f"at {humanize.size(self.hard_bytes)}"] if self.hard_bytes else []
        if self.soft_bytes:
            parts.append(f"after {humanize.seconds(self.soft_s)} above {humanize.size(self.soft_bytes)}")
        return ", or ".join(parts)


def clients_panel(view: HealthView) -> Panel:
    missing = view.latest.missing.get(Source.CLIENTS)
    notes = []
    if missing is not None:
        notes.append(SafeText(f"CLIENT LIST is not available: {missing.detail or missing.reason}"))
    return Panel("clients", "Clients", tuple(_client_lines(view)), tuple(_client_tables(view)), tuple(notes))


def class_of(client: ClientFigures) -> str:
    if set(client.flags) & set("SM"):
        return "replica"
    return "subscriber" if "P" in client.flags or client.subscriptions else "normal"


def limits(view: HealthView) -> dict[str, Limit]:
    text = view.setting("client-output-buffer-limit") or ""
    return {CLASSES[name]: Limit(int(hard), int(soft), int(time)) for name, hard, soft, time in _LIMITS.findall(text)}


def query_limit(view: HealthView) -> int | None:
    text = view.setting("client-query-buffer-limit") or ""
    return int(text) if text.isdigit() else None


def listed(view: HealthView) -> tuple[ClientFigures, ...] | None:
    """Return the clients, the largest buffers first; None if they are not listed."""
    told = view.told(Source.CLIENTS)
    if told is None:
        return None
    return tuple(sorted(told.clients, key=lambda one: (-(one.output_bytes or 0), -(one.total_bytes or 0))))


def _client_lines(view: HealthView) -> Iterator[Line]:
    lines, stats = Lines(view, Source.INFO_CLIENTS), Lines(view, Source.INFO_STATS)
    share = humanize.share(view.levels.number(CLIENTS_LIMIT, "share"))
    limit = About("", f"below {share} of maxclients", CLIENTS_LIMIT)
    yield lines.gauge("connected_clients", "connected clients", Unit.COUNT, limit)
    yield lines.gauge("maxclients", "client limit", Unit.COUNT)
    yield lines.gauge("blocked_clients", "blocked clients", Unit.COUNT)
    yield lines.gauge("pubsub_clients", "Pub/Sub clients", Unit.COUNT)
    yield lines.gauge("tracking_clients", "tracking clients", Unit.COUNT)
    found = listed(view)
    size = humanize.size(view.levels.number(BUFFERS, "size"))

    def largest(of: Callable[[ClientFigures], int | None]) -> Cell:
        return view.unknown(Source.CLIENTS) if found is None else max((of(one) or 0 for one in found), default=None)

    about = About("", f"below {size} and the class limit", BUFFERS)
    yield lines.given(
        "largest_output", "largest output buffer", Unit.BYTES, largest(lambda one: one.output_bytes), about
    )
    limit_bytes, portion = query_limit(view), humanize.share(view.levels.number(QUERIES, "share"))
    bound = f", of {humanize.size(limit_bytes)}" if limit_bytes else ""
    about = About("", f"below {portion} of client-query-buffer-limit{bound}", QUERIES)
    yield lines.given("largest_query", "largest query buffer", Unit.BYTES, largest(lambda one: one.query_bytes), about)
    memory = Lines(view, Source.INFO_MEMORY)
    yield memory.gauge("mem_clients_normal", "client memory", Unit.BYTES)
    yield stats.gauge("client_output_buffer_limit_disconnections", "closed by output limit", Unit.COUNT)
    yield stats.gauge("client_query_buffer_limit_disconnections", "closed by query limit", Unit.COUNT)
    yield stats.gauge("evicted_clients", "evicted clients", Unit.COUNT, About("by maxmemory-clients"))


def _client_tables(view: HealthView) -> Iterator[Table]:
    found = listed(view)
    if found:
        columns = (_ADDRESS, _NAME, _LIBRARY, _USER, _CLASS, _OUTPUT, _QUERY, _TOTAL, _CONNECTED, _IDLE, _LAST, _STATE)
        yield Table("clients", "Clients by buffer size", columns, tuple(map(_row, found)))
        subscribers = [one for one in found if one.subscriptions]
        if subscribers:
            subscribers.sort(key=lambda one: -(one.subscriptions or 0))
            of_one = (_ADDRESS, _NAME, _LIBRARY, _USER, _SUBSCRIPTIONS, _OUTPUT, _IDLE)
            told = tuple((*_who(one), one.subscriptions, one.output_bytes, one.idle_s) for one in subscribers)
            yield Table("subscribers", "Subscribers", of_one, told)
        libraries = Counter(one.library for one in found)
        yield Table("libraries", "Clients by library", (_LIBRARY, _CLIENTS), tuple(libraries.most_common()))
    bounds = limits(view)
    if bounds:
        rows = tuple(
            (name, one.hard_bytes or "no limit", one.soft_bytes or "no limit", one.soft_s if one.soft_bytes else None)
            for name, one in bounds.items()
        )
        yield Table("buffer_limits", "Output buffer limits", (_CLASS, _HARD, _SOFT, _FOR), rows)
    callers = tuple(_keys_callers(view))
    if callers:
        note = "From the slow log and each client's last command; other clients may have sent KEYS, too."
        of_call = (_WHEN, _ADDRESS, _NAME, _PATTERN, _TOOK)
        yield Table("keys_callers", "Clients sending KEYS", of_call, callers, note=note)


def _who(one: ClientFigures) -> tuple[Cell, ...]:
    return one.address, one.name or None, one.library or None, one.user or None


def _row(one: ClientFigures) -> tuple[Cell, ...]:
    words = [word for flag, word in (("b", "blocked"), ("x", "in MULTI"), ("t", "tracking")) if flag in one.flags]
    return (
        *_who(one),
        class_of(one),
        one.output_bytes,
        one.query_bytes,
        one.total_bytes,
        one.connected_s,
        one.idle_s,
        SafeText(display(one.last_command.encode(), limit=_NAME_LIMIT)),
        ", ".join(["rtui"] * one.is_own + words),
    )


def callers_of(view: HealthView, command: str) -> list[SafeText]:
    """Return the clients of a command by the slow log and their last commands, with the libraries of connected ones."""
    clients = {one.address: one for one in listed(view) or ()}
    calls = [
        (one.client_name, one.address)
        for one in logged(view, Source.SLOW_LOG)
        if one.name == command and not one.is_own
    ]
    calls += [(one.name, one.address) for one in clients.values() if one.last_command == command and not one.is_own]
    return list(dict.fromkeys(with_library(name, address, clients.get(address)) for name, address in calls))


def with_library(name: bytes, address: bytes, client: ClientFigures | None) -> SafeText:
    """Return a client in words: `batchjob 10.0.0.9:4711 (redis-py 5.2.1)`."""
    library = b"" if client is None else client.library
    more = f" ({display(library, limit=_NAME_LIMIT)})" if library else ""
    return SafeText(f"{caller(name, address)}{more}")


def _keys_callers(view: HealthView) -> Iterator[tuple[Cell, ...]]:
    for entry in logged(view, Source.SLOW_LOG):
        if entry.name == "KEYS" and not entry.is_own:
            pattern = entry.argv[1] if len(entry.argv) > 1 else None
            yield entry.at_s, entry.address, entry.client_name or None, pattern, entry.amount / 1e6
    told = view.told(Source.CLIENTS)
    for client in told.clients if told is not None else ():
        if client.last_command == "KEYS" and told is not None:
            at_s = None if client.idle_s is None else told.at_ms / 1000 - client.idle_s
            yield at_s, client.address, client.name or None, None, None
