"""Who is connected: buffers, the largest first, their limits by class, idle and blocked clients, who sends KEYS."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.health.load_panel import CLIENTS_LIMIT
from rtui.analysis.health.panel import About, Line, Lines, Panel
from rtui.analysis.health.sample import ClientFigures, Source
from rtui.analysis.health.slow_panel import logged
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText, display

BUFFERS: Final = "output-buffers"
QUERIES: Final = "query-buffers"

_NAME_LIMIT: Final = 60
_LIMITS: Final = re.compile(r"(normal|slave|replica|pubsub) (\d{1,18}) (\d{1,18}) (\d{1,18})", re.ASCII)

CLASSES: Final = {"normal": "normal", "slave": "replica", "replica": "replica", "pubsub": "subscriber"}
"""What client-output-buffer-limit calls the classes of clients, and what they are."""

_ADDRESS: Final = Column("address", "address", Unit.NAME)
_NAME: Final = Column("name", "name", Unit.NAME, 12)
_LIBRARY: Final = Column("library", "library", Unit.NAME, 16)
_USER: Final = Column("user", "user", Unit.NAME, 8)
_CLASS: Final = Column("class", "class", Unit.TEXT, 10)
_OUTPUT: Final = Column("output", "output", Unit.BYTES, 9, "Replies that it has not read yet")
_QUERY: Final = Column("query", "query", Unit.BYTES, 9, "Sent by it and not carried out yet")
_TOTAL: Final = Column("total", "memory", Unit.BYTES, 9, "All that the server holds for it")
_CONNECTED: Final = Column("connected", "connected", Unit.DURATION, 9)
_IDLE: Final = Column("idle", "idle", Unit.DURATION, 7)
_LAST: Final = Column("last", "last command", Unit.TEXT, 14)
_STATE: Final = Column("state", "state", Unit.TEXT, 10)

_SUBSCRIPTIONS: Final = Column("subscriptions", "subscribed", Unit.COUNT, 10, "Channels, patterns and shard channels")

_CLIENTS: Final = Column("clients", "clients", Unit.COUNT, 8)
_HARD: Final = Column("hard", "closed at", Unit.BYTES, 9)
_SOFT: Final = Column("soft", "or above", Unit.BYTES, 9)
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
        """Whether so much is a share of the hard limit, or is already counted down by the soft one."""
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
    """Return the figures of INFO clients, and tables of CLIENT LIST."""
    missing = view.latest.missing.get(Source.CLIENTS)
    notes = []
    if missing is not None:
        notes.append(SafeText(f"clients are not listed: {missing.detail or missing.reason}"))
    return Panel("clients", "Clients", tuple(_lines(view)), tuple(_tables(view)), tuple(notes))


def class_of(client: ClientFigures) -> str:
    """Return the class whose limits are for a client: normal, replica or subscriber."""
    if set(client.flags) & set("SM"):
        return "replica"
    return "subscriber" if "P" in client.flags or client.subscriptions else "normal"


def limits(view: HealthView) -> dict[str, Limit]:
    """Return the limits of output buffers by class; empty where they are not known."""
    text = view.setting("client-output-buffer-limit") or ""
    return {CLASSES[name]: Limit(int(hard), int(soft), int(time)) for name, hard, soft, time in _LIMITS.findall(text)}


def query_limit(view: HealthView) -> int | None:
    """Return how much of a request is kept at most; None where it is not known."""
    text = view.setting("client-query-buffer-limit") or ""
    return int(text) if text.isdigit() else None


def listed(view: HealthView) -> tuple[ClientFigures, ...] | None:
    """Return the clients, those with the largest buffers first; None where they are not listed."""
    told = view.told(Source.CLIENTS)
    if told is None:
        return None
    return tuple(sorted(told.clients, key=lambda one: (-(one.output_bytes or 0), -(one.total_bytes or 0))))


def _lines(view: HealthView) -> Iterator[Line]:
    lines, stats = Lines(view, Source.INFO_CLIENTS), Lines(view, Source.INFO_STATS)
    share = humanize.share(view.levels.number(CLIENTS_LIMIT, "share"))
    limit = About("", f"below {share} of maxclients", CLIENTS_LIMIT)
    yield lines.gauge("connected_clients", "connected", Unit.COUNT, limit)
    yield lines.gauge("maxclients", "at most", Unit.COUNT)
    yield lines.gauge("blocked_clients", "blocked", Unit.COUNT)
    yield lines.gauge("pubsub_clients", "subscribed", Unit.COUNT)
    yield lines.gauge("tracking_clients", "with client-side caching", Unit.COUNT)
    found = listed(view)
    size = humanize.size(view.levels.number(BUFFERS, "size"))
    yield lines.given(
        "largest_output",
        "largest output buffer",
        Unit.BYTES,
        view.unknown(Source.CLIENTS) if found is None else max((one.output_bytes or 0 for one in found), default=None),
        About("", f"below {size}, and below the limit of the class", BUFFERS),
    )
    limit_bytes, portion = query_limit(view), humanize.share(view.levels.number(QUERIES, "share"))
    bound = f", of {humanize.size(limit_bytes)}" if limit_bytes else ""
    yield lines.given(
        "largest_query",
        "largest query buffer",
        Unit.BYTES,
        view.unknown(Source.CLIENTS) if found is None else max((one.query_bytes or 0 for one in found), default=None),
        About("", f"below {portion} of client-query-buffer-limit{bound}", QUERIES),
    )
    memory = Lines(view, Source.INFO_MEMORY)
    yield memory.gauge("mem_clients_normal", "memory of normal clients", Unit.BYTES)
    yield stats.gauge(
        "client_output_buffer_limit_disconnections", "closed for their output", Unit.COUNT, About("so far")
    )
    yield stats.gauge("client_query_buffer_limit_disconnections", "closed for their query", Unit.COUNT, About("so far"))
    yield stats.gauge("evicted_clients", "evicted", Unit.COUNT, About("so far, by maxmemory-clients"))


def _tables(view: HealthView) -> Iterator[Table]:
    found = listed(view)
    if found:
        columns = (_ADDRESS, _NAME, _LIBRARY, _USER, _CLASS, _OUTPUT, _QUERY, _TOTAL, _CONNECTED, _IDLE, _LAST, _STATE)
        yield Table("clients", "Clients, the largest buffers first", columns, tuple(map(_row, found)))
        subscribers = [one for one in found if one.subscriptions]
        if subscribers:
            subscribers.sort(key=lambda one: -(one.subscriptions or 0))
            of_one = (_ADDRESS, _NAME, _LIBRARY, _USER, _SUBSCRIPTIONS, _OUTPUT, _IDLE)
            told = tuple((*_who(one), one.subscriptions, one.output_bytes, one.idle_s) for one in subscribers)
            yield Table("subscribers", "Who is subscribed", of_one, told)
        libraries = Counter(one.library for one in found)
        yield Table("libraries", "Clients by library", (_LIBRARY, _CLIENTS), tuple(libraries.most_common()))
    bounds = limits(view)
    if bounds:
        rows = tuple(
            (name, one.hard_bytes or "no limit", one.soft_bytes or "no limit", one.soft_s if one.soft_bytes else None)
            for name, one in bounds.items()
        )
        yield Table("buffer_limits", "Limits of output buffers", (_CLASS, _HARD, _SOFT, _FOR), rows)
    callers = tuple(_keys_callers(view))
    if callers:
        note = "From the slow log and the last commands of the clients; others may have sent KEYS, too."
        of_call = (_WHEN, _ADDRESS, _NAME, _PATTERN, _TOOK)
        yield Table("keys_callers", "Who sends KEYS", of_call, callers, note=note)


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
