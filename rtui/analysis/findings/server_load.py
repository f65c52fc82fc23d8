"""Rules about what a server does: commands that are banned or slow, hits, processor, connections, buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Finding
from rtui.analysis.findings.places import key_line
from rtui.analysis.findings.server_finding import ServerFinder, of_server
from rtui.analysis.health.clients_panel import (
    BUFFERS,
    QUERIES,
    Limit,
    class_of,
    client_name,
    limits,
    listed,
    query_limit,
)
from rtui.analysis.health.load_panel import BANNED, CHURN, CLIENTS_LIMIT, CPU, HIT_RATIO, MAIN_THREAD
from rtui.analysis.health.replication_panel import LEAST_S
from rtui.analysis.health.sample import ClientFigures, LoggedCommand, Source
from rtui.analysis.health.slow_panel import SLOW, LoggedGroup, client, first_key, folding, group_name, grouped, logged
from rtui.analysis.health.view import HealthView, Span
from rtui.analysis.query.behind import Behind
from rtui.analysis.query.patterns import PatternSyntaxError, check_pattern_text
from rtui.analysis.query.query import one_of, query_of
from rtui.keyspace.text.display import display

MOST_EXAMPLES: Final = 3
"""Commands or clients that are named in a finding."""

_SLOWER: Final = 10
"""A single command that takes so many times the threshold is told, too."""

_NAME_LIMIT: Final = 60


def banned(view: HealthView) -> Iterator[Finding]:
    """Find calls of commands that should not be used."""
    told = view.told(Source.COMMAND_STATS)
    least = view.levels.number(BANNED, "calls")
    for word in view.levels.words(BANNED, "commands"):
        name = word.upper()
        stats = None if told is None else told.commands.get(name)
        if stats is None or stats.calls < least:
            continue
        took = humanize.seconds(stats.took_us / 1e6)
        mean = humanize.seconds(stats.took_us / stats.calls / 1e6)
        callers = {client(one): None for one in logged(view, Source.SLOW_LOG) if one.name == name and not one.is_own}
        yield of_server(
            view,
            BANNED,
            f"{display(name.encode(), limit=_NAME_LIMIT)} was called {humanize.counted(stats.calls, 'time')}",
            where=display(name.encode(), limit=_NAME_LIMIT),
            command="redis-cli SLOWLOG GET 25",
            evidence=(f"{took} of the server's time, {mean} each", *list(callers)[:MOST_EXAMPLES]),
        )


def slow_groups(view: HealthView) -> Iterator[tuple[LoggedGroup, float]]:
    """Yield the commands by namespace that are slow by the rule, with the threshold in microseconds."""
    longest_us = view.levels.number(SLOW, "longest") * 1000
    since_s = view.latest.at_ms / 1000 - view.levels.number(SLOW, "within") / 1000
    entries: list[LoggedCommand] = [
        one
        for one in logged(view, Source.SLOW_LOG)
        if one.amount > longest_us and one.at_s >= since_s and not one.is_own
    ]
    for group in grouped(entries, folding(view)):
        if len(group.entries) >= view.levels.number(SLOW, "calls") or group.largest.amount > _SLOWER * longest_us:
            yield group, longest_us


def slow(view: HealthView) -> Iterator[Finding]:
    """Find slow commands by command and namespace."""
    for group, longest_us in slow_groups(view):
        longest = humanize.seconds(group.largest.amount / 1e6)
        key = first_key(group.largest)
        callers = {client(one): None for one in group.entries}
        examples = {display(one, limit=_NAME_LIMIT): None for entry in group.entries if (one := first_key(entry))}
        yield of_server(
            view,
            SLOW,
            f"{group_name(group)} took over {humanize.seconds(longest_us / 1e6)} "
            f"{humanize.counted(len(group.entries), 'time')}, {longest} at most",
            where=group_name(group),
            command="redis-cli SLOWLOG GET 25" if key is None else key_line("MEMORY USAGE", key),
            behind=_keys_of(group.pattern),
            evidence=[
                f"{humanize.seconds(group.total / 1e6)} together, last {humanize.moment(group.entries[0].at_s)} UTC",
                *list(examples)[:MOST_EXAMPLES],
                *[f"sent by {who}" for who in list(callers)[:MOST_EXAMPLES] if who],
            ],
            example_keys=() if key is None else (key,),
        )


def _keys_of(pattern: bytes) -> Behind | None:
    """Return the query for the keys of a pattern; None where there is none."""
    try:
        return Behind(query_of(one_of("pattern", [check_pattern_text(pattern)]))) if pattern else None
    except PatternSyntaxError:
        return None


def fell(view: HealthView) -> Iterator[Finding]:
    """Find a hit ratio of the session far below that since the statistics began."""
    session = view.session
    hits, misses = view.number("keyspace_hits"), view.number("keyspace_misses")
    if session is None or hits is None or misses is None or session.hit_ratio is None:
        return
    own = view.latest.own
    hits, misses = max(0.0, hits - own.hits), max(0.0, misses - own.misses)
    reads = (session.change("keyspace_hits") or 0) + (session.change("keyspace_misses") or 0)
    before_hits, before = hits - (session.change("keyspace_hits") or 0), hits + misses - reads
    if before < 1 or reads < view.levels.number(HIT_RATIO, "reads"):
        return
    ratio = before_hits / before
    if session.hit_ratio <= ratio - view.levels.number(HIT_RATIO, "by"):
        now, was = humanize.share(session.hit_ratio), humanize.share(ratio)
        yield of_server(
            view,
            HIT_RATIO,
            f"{now} of the reads find their key; before it were {was}",
            command="redis-cli INFO stats",
            evidence=(f"{humanize.counted(round(reads), 'read')} in {humanize.seconds(round(session.seconds))}",),
        )


def saturated(view: HealthView) -> Iterator[Finding]:
    """Find a main thread that has no time left."""
    share = None if view.session is None else view.session.rate(*MAIN_THREAD)
    if share is not None and share >= view.levels.number(CPU, "share"):
        told = view.told(Source.COMMAND_STATS)
        top = sorted(() if told is None else told.commands.items(), key=lambda one: -one[1].took_us)[:MOST_EXAMPLES]
        evidence = [f"{display(name.encode())}: {humanize.seconds(one.took_us / 1e6)} so far" for name, one in top]
        title = f"The main thread uses {humanize.share(share)} of a core"
        yield of_server(view, CPU, title, command="redis-cli INFO commandstats", evidence=evidence)


def churn(view: HealthView) -> Iterator[Finding]:
    """Find many new connections."""
    rate = None if view.session is None else view.session.rate("total_connections_received")
    if rate is not None and rate > view.levels.number(CHURN, "rate"):
        connected = view.number("connected_clients")
        evidence = [] if connected is None else [f"{humanize.decimal(connected)} are connected"]
        title = f"{humanize.decimal(rate)} new connections a second"
        yield of_server(view, CHURN, title, command="redis-cli INFO clients", evidence=evidence)


def near_client_limit(view: HealthView) -> Iterator[Finding]:
    """Find connections that are near maxclients, or were refused in the session."""
    connected, most = view.number("connected_clients"), view.number("maxclients")
    refused = None if view.session is None else view.session.change("rejected_connections")
    if refused:
        title = f"{humanize.counted(round(refused), 'connection')} refused"
    elif connected and most and connected >= view.levels.number(CLIENTS_LIMIT, "share") * most:
        title = f"{humanize.share(connected / most)} of maxclients are connected"
    else:
        return
    known = connected is not None and most is not None
    evidence = [f"{humanize.decimal(connected or 0)} connected, {humanize.decimal(most or 0)} at most"] if known else []
    yield of_server(view, CLIENTS_LIMIT, title, command="redis-cli CLIENT LIST", evidence=evidence)


def unread_output(view: HealthView) -> Iterator[Finding]:
    """Find clients with large output buffers, and ones that were closed for them in the session."""
    size, share, bounds = view.levels.number(BUFFERS, "size"), view.levels.number(BUFFERS, "share"), limits(view)
    found = []
    for one in listed(view) or ():
        bound, waits = bounds.get(class_of(one)), one.output_bytes or 0
        if waits >= size or (bound is not None and bound.is_near(waits, share)):
            found.append((one, waits, f", {class_of(one)}{_closed_at(bounds, one)}"))
    yield from _with_buffers(view, BUFFERS, found, ("output", "of unread output", "unread output"))


def _closed_at(bounds: Mapping[str, Limit], one: ClientFigures) -> str:
    """Return when a client is closed; empty where it never is."""
    bound = bounds.get(class_of(one))
    return f", closed {bound.words}" if bound is not None and bound.words else ""


def large_requests(view: HealthView) -> Iterator[Finding]:
    """Find clients that have sent nearly as much as is kept of a request."""
    limit, share = query_limit(view), view.levels.number(QUERIES, "share")
    sent = [(one, one.query_bytes or 0, "") for one in listed(view) or ()]
    found = [one for one in sent if limit and one[1] >= share * limit]
    found.sort(key=lambda one: -one[1])
    yield from _with_buffers(view, QUERIES, found, ("query", "of requests under way", "too large a request"))


def _with_buffers(
    view: HealthView, rule: str, found: Sequence[tuple[ClientFigures, int, str]], words: tuple[str, str, str]
) -> Iterator[Finding]:
    """Yield what was found of clients: each with how much of its own waits, and with more about it."""
    kind, of_what, for_what = words
    change = None if view.session is None else view.session.change(f"client_{kind}_buffer_limit_disconnections")
    if not found and not change:
        return
    closed = f"{humanize.counted(round(change or 0), 'client')} closed for"
    evidence = [f"{client_name(one)}: {humanize.size(waits)}{more}" for one, waits, more in found[:MOST_EXAMPLES]]
    title, memory = f"{closed} {for_what}", None
    if change:
        evidence.append(f"{closed} it in this session")
    if found:
        memory = sum(waits for _, waits, _ in found)
        title = f"{humanize.counted(len(found), 'client')} with {humanize.size(memory)} {of_what}"
    yield of_server(view, rule, title, command="redis-cli CLIENT LIST", memory=memory, evidence=evidence)


def _lasts(view: HealthView) -> bool:
    """Whether there is a session that is long enough for rates."""
    session: Span | None = view.session
    return session is not None and session.seconds >= LEAST_S


_STATS: Final = Source.INFO_STATS

FINDERS: Final = (
    ServerFinder(CLIENTS_LIMIT, near_client_limit, "clients", ("connected_clients",), Source.INFO_CLIENTS),
    ServerFinder(CPU, saturated, "CPU", MAIN_THREAD, Source.INFO_CPU, _lasts, needs_more=True),
    ServerFinder(BUFFERS, unread_output, "buffers", (), Source.CLIENTS),
    ServerFinder(QUERIES, large_requests, "large requests", (), Source.CLIENTS),
    ServerFinder(SLOW, slow, "slow", (), Source.SLOW_LOG),
    ServerFinder(BANNED, banned, "banned command", (), Source.COMMAND_STATS),
    ServerFinder(
        HIT_RATIO,
        fell,
        "hit ratio",
        ("keyspace_hits", "keyspace_misses"),
        _STATS,
        lambda view: view.session is not None,
        needs_more=True,
    ),
    ServerFinder(CHURN, churn, "churn", ("total_connections_received",), _STATS, _lasts, needs_more=True),
)
"""The rules about load, the worst first."""
