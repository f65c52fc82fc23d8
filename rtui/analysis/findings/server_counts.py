"""Rules over counters: how far each has come since the server's start, and what it does while samples are taken.

A counter is judged by its number and by its mean per day: what happened now and then in a year is no trouble. Since the
start it counts from `count` on, and `a_day` for each day of that time; in the session from `now` on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Finding, of_server, server_rule
from rtui.analysis.health.load_panels import BANNED, HIT_LOW, callers_of, hits_and_reads, listed
from rtui.analysis.health.memory_panel import eviction
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.slow_panel import caller
from rtui.analysis.health.view import DAY_S, HealthView, number
from rtui.keyspace.text.display import SafeText, display

REFUSED: Final = {
    "OOM": "memory was full, and no key could be evicted",
    "MISCONF": "the last RDB save or AOF write had failed",
    "NOREPLICAS": "fewer replicas were in sync than min-replicas-to-write",
    "READONLY": "they were sent to a replica",
    "CLUSTERDOWN": "the cluster did not serve their slots",
}

_OTHER_REJECTIONS: Final = (
    "NOPERM", "NOAUTH", "MOVED", "ASK", "TRYAGAIN", "CROSSSLOT", "LOADING", "BUSY", "MASTERDOWN", "EXECABORT", "DENIED",
)  # fmt: skip
"""Errors of other commands that are rejected before they run, by INFO errorstats."""

_EXPECTED: Final = frozenset({
    "ACL", "AUTH", "CLIENT", "CLUSTER", "COMMAND", "COMMANDLOG", "CONFIG", "EVALSHA", "EVALSHA_RO", "FUNCTION",
    "HELLO", "HOTKEYS", "INFO", "LATENCY", "MEMORY", "MODULE", "OBJECT", "PING", "READONLY", "SCRIPT", "SELECT",
    "SENTINEL", "SLOWLOG", "XGROUP",
})  # fmt: skip
"""Commands whose errors clients expect, such as a library or rtui that finds out what a server can do."""

MOST_EXAMPLES: Final = 3
_NAME_LIMIT: Final = 60
Counts = Mapping[str, int]


def _none(_view: HealthView, _counts: Counts) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class CounterRule:
    """A rule over the sum of some counters: of fields of INFO, or of errors."""

    rule: str
    word: str
    panel: str
    """The panel that has a line with the number since the start."""
    what: tuple[str, str]
    """One and several of them: `write refused`, `writes refused`."""
    command: str
    source: Source
    fields: Mapping[str, str] = field(default_factory=dict)
    """Words for each counter, and its field of INFO."""
    errors: Iterable[str] = ()
    """The codes of errors that are counted; each is its own word."""
    expected: Callable[[Sample], float] | None = None
    """Return the part of the counter that is no trouble."""
    evidence: Callable[[HealthView, Counts], Iterable[str]] = _none
    names_parts: bool = False
    """Whether the title says which counters it was: `12 writes refused (OOM 10, READONLY 2)`."""

    def counts(self, sample: Sample) -> Counts | None:
        known = {words: number(sample, name) for words, name in self.fields.items()}
        found = {words: round(count) for words, count in known.items() if count is not None}
        if self.fields and not found:
            return None
        found |= {code: count for code in self.errors if (count := sample.errors.get(code))}
        if self.expected is None:
            return found
        expected = round(self.expected(sample))
        return {words: max(0, count - expected) for words, count in found.items()}

    def total(self, view: HealthView) -> int | None:
        counts = self.counts(view.latest)
        return None if counts is None or view.told(self.source) is None else sum(counts.values())


def _grown(view: HealthView, of: Callable[[Sample], Counts | None]) -> Counts:
    if view.session is None:
        return {}
    before, after = of(view.session.before), of(view.session.after)
    if before is None or after is None:
        return {}
    return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


def _is_trouble(view: HealthView, rule: str, total: int, recent: int, *, count: str = "count") -> bool:
    days = view.since.days or 0.0
    least = max(1, view.levels.number(rule, count), view.levels.number(rule, "a_day") * days)
    return total >= least or recent >= max(1, view.levels.number(rule, "now"))


def _times(view: HealthView, recent: int) -> str:
    """Return the time of a number: `since the server started 3d ago, 12 in the last 10s`."""
    session = view.session
    if not recent or session is None:
        return view.since.words
    return f"{view.since.words}, {recent:,} in the last {humanize.seconds(max(1, round(session.seconds)))}"


def _look(one: CounterRule, view: HealthView) -> Iterator[Finding]:
    counts, recent = one.counts(view.latest) or {}, sum(_grown(view, one.counts).values())
    total = sum(counts.values())
    if not _is_trouble(view, one.rule, total, recent):
        return
    title = str(humanize.counted(total, one.what[0], plural=one.what[1]))
    if one.names_parts and counts:
        parts = [name if len(counts) == 1 else f"{name} {count:,}" for name, count in counts.items()]
        title = f"{title} ({', '.join(parts)})"
    title = f"{title} {_times(view, recent)}"
    yield of_server(view, one.rule, title, command=one.command, evidence=one.evidence(view, counts))


def _refused(view: HealthView, counts: Counts) -> Iterator[str]:
    yield from (f"{count:,} with {code}: {REFUSED[code]}" for code, count in counts.items())
    rejected = ((one.rejected or 0, name) for name, one in view.latest.commands.items())
    top = sorted((one for one in rejected if one[0]), reverse=True)[:MOST_EXAMPLES]
    if top:
        yield f"rejected calls: {', '.join(f'{_safe(name)} {count:,}' for count, name in top)}"


def _connections(view: HealthView, _counts: Counts) -> Iterator[str]:
    connected, most = view.number("connected_clients"), view.number("maxclients")
    if connected is not None and most is not None:
        yield f"{humanize.decimal(connected)} connected now, maxclients {humanize.decimal(most)}"


def _denied_to_monitoring(sample: Sample) -> int:
    """Count the rejections of commands of monitoring, which asks for all that its user may be allowed to."""
    return sum(one.rejected or 0 for name, one in sample.commands.items() if _base(name) in _EXPECTED)


def _closed(_view: HealthView, counts: Counts) -> Iterator[str]:
    yield from (f"{count:,} for {why}" for why, count in counts.items() if count)


def _partial_syncs(view: HealthView, _counts: Counts) -> Iterator[str]:
    accepted, refused = (view.number(f"sync_partial_{how}") for how in ("ok", "err"))
    if accepted is not None and refused is not None:
        yield f"partial resynchronisations: {accepted:,.0f} accepted, {refused:,.0f} refused"


COUNTER_RULES: Final = (
    CounterRule("writes-refused", "writes refused", "load", ("write refused", "writes refused"),
        "redis-cli INFO errorstats", Source.ERROR_STATS, errors=REFUSED, evidence=_refused, names_parts=True),
    CounterRule("connections-refused", "connections refused", "clients", ("connection refused", "connections refused"),
        "redis-cli INFO stats", Source.INFO_STATS, {"connections": "rejected_connections"}, evidence=_connections),
    CounterRule("logins-failed", "failed logins", "clients", ("login failed", "logins failed"), "redis-cli ACL LOG",
        Source.ERROR_STATS, errors=("WRONGPASS",)),
    CounterRule("acl-denied", "ACL denials", "clients",
        ("command denied by ACL rules", "commands denied by ACL rules"), "redis-cli ACL LOG", Source.ERROR_STATS,
        errors=("NOPERM",), expected=_denied_to_monitoring),
    CounterRule("clients-closed", "clients closed", "clients",
        ("client closed for its buffers", "clients closed for their buffers"), "redis-cli INFO stats",
        Source.INFO_STATS, {
            "unread output": "client_output_buffer_limit_disconnections",
            "too large a request": "client_query_buffer_limit_disconnections",
            "the memory of all clients": "evicted_clients",
        }, evidence=_closed),
    CounterRule("expire-cycles-late", "late expiry", "memory",
        ("expire cycle hit its time limit", "expire cycles hit their time limit"), "redis-cli INFO stats",
        Source.INFO_STATS, {"cycles": "expired_time_cap_reached_count"}, evidence=lambda view, _: (
            [f"{stale:g} % of the keys with a TTL are expired and still there, by the server's estimate"]
            if (stale := view.number("expired_stale_perc"))
            else []
        )),
    CounterRule("aof-fsync-delayed", "slow AOF disk", "persistence",
        ("write delayed by a slow fsync", "writes delayed by slow fsyncs"), "redis-cli INFO persistence",
        Source.INFO_PERSISTENCE, {"fsyncs": "aof_delayed_fsync"}),
    CounterRule("replication-flapping", "full resyncs", "replication",
        ("repeated full resynchronisation", "repeated full resynchronisations"), "redis-cli INFO stats",
        Source.INFO_STATS, {"full": "sync_full"}, expected=lambda sample: number(sample, "connected_slaves") or 0,
        evidence=_partial_syncs),
)  # fmt: skip


def _safe(name: str) -> SafeText:
    return display(name.encode(), limit=_NAME_LIMIT)


def _base(name: str) -> str:
    return name.partition("|")[0]


def banned(view: HealthView) -> Iterator[Finding]:
    told, before = view.told(Source.COMMAND_STATS), view.between(Source.COMMAND_STATS)
    grown = {} if before is None else before.commands or {}
    for word in view.levels.words(BANNED, "commands"):
        name = word.upper()
        stats = None if told is None else told.commands.get(name)
        recent = grown[name].calls if name in grown else 0
        if stats is None or not _is_trouble(view, BANNED, stats.calls, recent, count="calls"):
            continue
        mean = humanize.seconds(stats.took_us / stats.calls / 1e6) if stats.calls else "0s"
        callers = [f"sent by {one}" for one in callers_of(view, name)]
        yield of_server(
            view,
            BANNED,
            f"{_safe(name)} was called {humanize.counted(stats.calls, 'time')} {_times(view, recent)}",
            where=_safe(name),
            command="redis-cli SLOWLOG GET 25",
            evidence=(f"{humanize.seconds(stats.took_us / 1e6)} in total, {mean} each", *callers[:MOST_EXAMPLES]),
        )


FAILED: Final = "calls-failed"


def _of_failed(sample: Sample) -> Counts:
    """Count the failed and rejected calls of each command that nothing else explains.

    The server tells the rejected calls of a command and how often each error was replied, but not both together: as
    many rejections are left out of each command as other errors explain.
    """
    explained = sum(sample.errors.get(code, 0) for code in (*REFUSED, *_OTHER_REJECTIONS))
    found = {
        name: (one.failed or 0) + max(0, (one.rejected or 0) - explained)
        for name, one in sample.commands.items()
        if _base(name) not in _EXPECTED
    }
    return {name: count for name, count in found.items() if count}


def failed(view: HealthView) -> Iterator[Finding]:
    recent, least = _grown(view, _of_failed), view.levels.number(FAILED, "share")
    for name, count in sorted(_of_failed(view.latest).items(), key=lambda one: -one[1]):
        stats = view.latest.commands[name]
        calls = stats.calls + (stats.rejected or 0)
        if count < least * calls or not _is_trouble(view, FAILED, count, recent.get(name, 0)):
            continue
        share = f"{humanize.share(count / calls)} of its {humanize.counted(calls, 'call')}" if count <= calls else ""
        codes = sorted(view.latest.errors.items(), key=lambda one: -one[1])
        others = [f"{code} {times:,}" for code, times in codes if code not in (*REFUSED, *_OTHER_REJECTIONS)]
        yield of_server(
            view,
            FAILED,
            f"{_safe(name)} failed {humanize.counted(count, 'time')} {_times(view, recent.get(name, 0))}",
            where=_safe(name),
            command="redis-cli INFO commandstats",
            evidence=(
                *([share] if share else []),
                *([f"errors of all commands: {', '.join(others[:MOST_EXAMPLES])}"] if others else []),
            ),
        )


def hits_rarely(view: HealthView) -> Iterator[Finding]:
    hits, reads = hits_and_reads(view) or (0.0, 0.0)
    if reads < max(1, view.levels.number(HIT_LOW, "reads")) or hits >= view.levels.number(HIT_LOW, "share") * reads:
        return
    title = f"{humanize.share(hits / reads)} of {humanize.counted(round(reads), 'read')} found their key "
    evidence = [f"{humanize.counted(round(reads - hits), 'miss', plural='misses')}"]
    if view.session is not None and view.session.hit_ratio is not None:
        last = humanize.seconds(max(1, round(view.session.seconds)))
        evidence.append(f"{humanize.share(view.session.hit_ratio)} in the last {last}")
    yield of_server(view, HIT_LOW, title + view.since.words, command="redis-cli INFO stats", evidence=evidence)


FAST: Final = "eviction-fast"


def evicted_soon(view: HealthView) -> Iterator[Finding]:
    keys, longest_s = eviction(view).candidates, view.levels.number(FAST, "stay") / 1000
    spans: list[tuple[float, float, str]] = []
    # After a CONFIG RESETSTAT at an unknown time the uptime is too long, and the keys stay for even less.
    uptime_s = view.number("uptime_in_seconds") if view.since.days is None else view.since.days * DAY_S
    spans.append((view.number("evicted_keys") or 0, uptime_s or 0, view.since.words))
    if (session := view.session) is not None:
        last = f"in the last {humanize.seconds(round(session.seconds))}"
        spans.append((session.change("evicted_keys") or 0, session.seconds, last))
    for evicted, seconds, when in spans:
        stays_s = (keys or 0) * seconds / max(1, evicted)
        if evicted >= view.levels.number(FAST, "keys") and seconds >= longest_s and stays_s < longest_s:
            title = f"{humanize.keys(round(evicted))} evicted {when}"
            evidence = (f"each of {humanize.keys(keys or 0)} stays for about {humanize.seconds(stays_s)}",)
            yield of_server(view, FAST, title, command="redis-cli INFO stats", evidence=evidence)
            return


OPEN: Final = "default-user-open"


def without_password(view: HealthView) -> Iterator[Finding]:
    told = listed(view) or ()
    remote = [one for one in told if is_remote(one.address) and one.user in (b"", b"default")]
    if remote:
        evidence = [str(caller(one.name, one.address)) for one in remote[:MOST_EXAMPLES]]
        count = humanize.counted(len(remote), "connection")
        title = f"No password is needed, and {count} {'does' if len(remote) == 1 else 'do'} not come from loopback"
        yield of_server(view, OPEN, title, command="redis-cli ACL LIST", evidence=evidence)


def is_remote(address: bytes) -> bool:
    """Whether a client's address is neither loopback nor the path of a socket."""
    host = address.decode("ascii", "replace").rpartition(":")[0].strip("[]")
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return False


MONITOR: Final = "monitor-attached"


def monitors(view: HealthView) -> Iterator[Finding]:
    found = [one for one in listed(view) or () if "O" in one.flags]
    if found:
        evidence = [
            f"{caller(one.name, one.address)}, for {humanize.seconds(one.connected_s or 0)}"
            for one in found[:MOST_EXAMPLES]
        ]
        title = f"MONITOR runs on {humanize.counted(len(found), 'connection')}"
        yield of_server(view, MONITOR, title, command="redis-cli CLIENT LIST", evidence=evidence)


def _is_counted(one: CounterRule, view: HealthView) -> bool:
    return view.has_asked(one.source) and (one.source in view.latest.missing or one.counts(view.latest) is not None)


FINDERS: Final = (
    *(
        server_rule(one.rule, partial(_look, one), one.word, (), one.source, applies=partial(_is_counted, one))
        for one in COUNTER_RULES
    ),
    server_rule(FAILED, failed, "failing calls", (), Source.COMMAND_STATS,
        applies=lambda view: view.has_asked(Source.COMMAND_STATS)),
    server_rule(BANNED, banned, "banned command", (), Source.COMMAND_STATS),
    server_rule(FAST, evicted_soon, "evicted soon", ("evicted_keys",), Source.INFO_STATS,
        applies=lambda view: bool(view.number("maxmemory"))),
    server_rule(OPEN, without_password, "no password", (), Source.CLIENTS,
        applies=lambda view: view.latest.own.is_let_in_freely and view.has_asked(Source.CLIENTS)),
    server_rule(MONITOR, monitors, "MONITOR", (), Source.CLIENTS, applies=lambda view: view.has_asked(Source.CLIENTS)),
    server_rule(HIT_LOW, hits_rarely, "low hit ratio", ("keyspace_hits", "keyspace_misses"), Source.INFO_STATS),
)  # fmt: skip
