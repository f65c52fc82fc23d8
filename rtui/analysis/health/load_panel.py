"""What a server does: commands a second, hits, network, processor, clients, and which commands take the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.health.panel import NO_READS, About, Line, Lines, Panel
from rtui.analysis.health.sample import CommandStats, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText

BANNED: Final = "command-banned"
HIT_RATIO: Final = "hit-ratio-fell"
CPU: Final = "cpu-saturated"
CHURN: Final = "connection-churn"
CLIENTS_LIMIT: Final = "clients-limit"

MOST_COMMANDS: Final = 50
"""Commands in the table, those that took most of the server's time."""

MAIN_THREAD: Final = ("used_cpu_user_main_thread", "used_cpu_sys_main_thread")
WHOLE_PROCESS: Final = ("used_cpu_user", "used_cpu_sys")

_COMMAND: Final = Column("command", "command", Unit.TEXT, 18)
_CALLS: Final = Column("calls", "calls", Unit.COUNT, 12, "Since the statistics began")
_SHARE: Final = Column("share_of_time", "time", Unit.SHARE, 5, "Of the time of all commands since the statistics began")
_MEAN: Final = Column("mean", "mean", Unit.DURATION, 7, "Time of a call")
_PERCENTILES: Final = tuple(
    Column(f"p{name.replace('.', '_')}", f"p{name}", Unit.DURATION, 7, f"{name} % of the calls took no longer")
    for name in ("50", "99", "99.9")
)
_SESSION_CALLS: Final = Column("session_calls", "calls now", Unit.COUNT, 10, "In this session")
_SESSION_SHARE: Final = Column(
    "session_share", "time now", Unit.SHARE, 8, "Of the time of all commands in this session"
)
_REJECTED: Final = Column("rejected", "rejected", Unit.COUNT, 9, "Refused before they ran: rights, arguments, memory")
_FAILED: Final = Column("failed", "failed", Unit.COUNT, 9, "Ended with an error")

_ERROR: Final = Column("error", "error", Unit.TEXT, 20)
_TIMES: Final = Column("times", "times", Unit.COUNT, 10, "Since the statistics began")
_SESSION_TIMES: Final = Column("session_times", "now", Unit.COUNT, 8, "In this session")


def load_panel(view: HealthView) -> Panel:
    """Return the figures of INFO stats, cpu and clients, and tables of commands and errors."""
    own = view.latest.own.commands
    notes = [SafeText(f"{humanize.counted(own, 'command')} of this session so far are rtui's own")] if own else []
    return Panel("load", "Load", tuple(_lines(view)), tuple(_tables(view)), tuple(notes))


def _lines(view: HealthView) -> Iterator[Line]:
    stats, clients = Lines(view, Source.INFO_STATS), Lines(view, Source.INFO_CLIENTS)
    yield stats.rate("commands", "commands", Unit.COUNT, "total_commands_processed")
    yield stats.gauge("instantaneous_ops_per_sec", "commands a second, by the server", Unit.COUNT)
    yield stats.over_time(
        "hit_ratio",
        "hit ratio",
        Unit.SHARE,
        lambda span: span.hit_ratio,
        About(_since_start(view), "what it has been so far", HIT_RATIO),
        counters=("keyspace_hits", "keyspace_misses"),
        otherwise=NO_READS,
    )
    yield stats.rate("net_input", "received", Unit.BYTES, "total_net_input_bytes")
    yield stats.rate("net_output", "sent", Unit.BYTES, "total_net_output_bytes")
    yield from _processor(view)
    connected, most = view.number("connected_clients"), view.number("maxclients")
    said = f"of {humanize.decimal(most)} at most" if most and connected is not None else ""
    share = humanize.share(view.levels.number(CLIENTS_LIMIT, "share"))
    yield clients.gauge(
        "connected_clients", "connected clients", Unit.COUNT, About(said, f"below {share} of maxclients", CLIENTS_LIMIT)
    )
    yield clients.gauge("blocked_clients", "blocked clients", Unit.COUNT, About("they wait in BLPOP, XREAD BLOCK …"))
    new = f"below {view.levels.number(CHURN, 'rate'):g}/s"
    received = "total_connections_received"
    yield stats.rate("new_connections", "new connections", Unit.COUNT, received, about=About("", new, CHURN))
    yield stats.rate("rejected_connections", "refused connections", Unit.COUNT, "rejected_connections")
    yield stats.rate("error_replies", "errors replied", Unit.COUNT, "total_error_replies")


def _processor(view: HealthView) -> Iterator[Line]:
    lines = Lines(view, Source.INFO_CPU)
    knows_threads = all(view.number(name) is not None for name in MAIN_THREAD)
    counters = MAIN_THREAD if knows_threads else WHOLE_PROCESS
    normal = f"below {humanize.share(view.levels.number(CPU, 'share'))} of one core"
    yield lines.over_time(
        "cpu_main_thread" if knows_threads else "cpu",
        "processor, main thread" if knows_threads else "processor",
        Unit.SHARE,
        lambda span: span.rate(*counters),
        About("commands are carried out by this thread alone", normal, CPU) if knows_threads else About("of one core"),
        counters=counters,
    )
    if knows_threads:
        yield lines.over_time(
            "cpu",
            "processor, all threads",
            Unit.SHARE,
            lambda span: span.rate(*WHOLE_PROCESS),
            About("of one core; the I/O threads take part"),
            counters=WHOLE_PROCESS,
        )
    threads = view.setting("io-threads")
    if threads is not None:
        said = ["the main thread is one of them", *_threaded(view)]
        yield lines.given("io_threads", "I/O threads", Unit.TEXT, threads, About("; ".join(said)))


def _threaded(view: HealthView) -> Iterator[str]:
    """Yield how much of reading and writing threads have done since the statistics began, in words."""
    for what, by_threads, all_of_it in (
        ("reads", "io_threaded_reads_processed", "total_reads_processed"),
        ("writes", "io_threaded_writes_processed", "total_writes_processed"),
    ):
        some, total = view.number(by_threads), view.number(all_of_it)
        if some is not None and total and some <= total:
            yield f"threads have done {humanize.share(some / total)} of the {what}"


def _since_start(view: HealthView) -> str:
    """Return the hit ratio since the statistics began without this session's reads of rtui; empty if not known."""
    hits, misses = view.number("keyspace_hits"), view.number("keyspace_misses")
    if hits is None or misses is None:
        return ""
    hits, misses = max(0.0, hits - view.latest.own.hits), max(0.0, misses - view.latest.own.misses)
    return f"{humanize.share(hits / (hits + misses))} since the statistics began" if hits + misses else ""


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
    note = f"The {MOST_COMMANDS} of {len(commands)} that took most time." if len(commands) > MOST_COMMANDS else ""
    return Table("commands", "Commands by the time they took", columns, tuple(rows), note=note)


def _times(one: CommandStats, unknown: Unknown) -> tuple[Cell, Cell, Cell]:
    """Return the median, p99 and p99.9 in seconds."""
    found = one.percentiles_us
    p50, p99, p999 = (found[name] / 1e6 if name in found else unknown for name in ("50", "99", "99.9"))
    return p50, p99, p999
