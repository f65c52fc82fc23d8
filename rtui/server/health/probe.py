"""Samples of the health of one server, each within a small part of the server's time.

Cheap sources are read for every sample: most sections of INFO, together 60 to 100 µs of the server's time. Sources
whose cost grows with the number of clients or of used commands are read less often, so that none takes more than a
share of each second: CLIENT LIST about 3 µs a client, INFO latencystats 4 µs a used command, INFO commandstats 0.6 µs.
Settings are read once a minute, the nodes of a cluster and the Sentinels' views every ten seconds. Of the slow log and
similar logs the latest entry is read, and more only if that is new.

A source that a server refuses or does not have is not requested again on the same connection, and is named in each
sample.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.possible import with_possible
from rtui.analysis.health.sample import Missing, OwnUse, Sample, SentinelView, Source, with_earlier
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.closed_list import SETTINGS
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import ClientsEvidence
from rtui.server.health import info
from rtui.server.health.lists import MAX_PEERS, LatencyReader, LogReader, parse_clients, parse_peers, too_many
from rtui.server.wire.capability import refuses_command, unknown_from
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.identity import ServerIdentity

AskSentinels = Callable[[], Awaitable[tuple[SentinelView, ...]]]

SHARE_US_PER_S: Final = 200.0
"""The most of the server's time that one source may take on average."""

CLIENT_US: Final = 3.0
"""The highest cost of a line of CLIENT LIST: 0.8 to 3 µs were measured with 5,000 clients."""

PERCENTILES_US: Final = 4.5
"""The highest cost of a used command in INFO latencystats: 2 to 4.5 µs were measured with 260 to 340 of them."""

COMMAND_US: Final = 0.7
"""The highest cost of a used command in INFO commandstats."""

EVERY_S: Final[Mapping[Source, float]] = {
    Source.KEY_SIZES: 10.0,
    Source.CLUSTER_NODES: 10.0,
    Source.SENTINELS: 10.0,
    Source.LATENCY_STATS: 30.0,
    Source.CLIENTS: 5.0,
    Source.SETTINGS: 60.0,
}
"""The shortest time between two readings of a source; other sources are read for each sample."""

SLACK_S: Final = 0.5
"""A source due within this time is read now: samples come a little early or late."""

SEVERAL_SETTINGS: Final = (7, 0)
"""The first version in which CONFIG GET takes several names."""

_LOGS: Final[Mapping[Source, tuple[str, Callable[[int], Command]]]] = {
    Source.SLOW_LOG: ("slow", guard.slowlog_get),
    Source.LARGE_REQUESTS: ("large_requests", partial(guard.commandlog_get, log="large-request")),
    Source.LARGE_REPLIES: ("large_replies", partial(guard.commandlog_get, log="large-reply")),
}
"""The logs, with the field of `Sample` and the command for each; Valkey has SLOWLOG, too."""

_LISTED: Final = frozenset({*_LOGS, Source.LATENCY_EVENTS, Source.SETTINGS})
"""Sources with lists as replies; others reply with texts."""

_UNREADABLE: Final = Unknown(Reason.FAILED, "unreadable reply")
_SECTIONS: Final = tuple(source for source in Source if source.startswith("INFO "))
_NEWER: Final[Mapping[Source, tuple[tuple[int, ...] | None, tuple[int, ...] | None, str]]] = {
    Source.LATENCY_STATS: ((7, 0), (7, 2), "Redis 7.0 and later and Valkey have it"),
    Source.KEY_SIZES: ((8, 0), None, "Redis 8.0 and later have it"),
    Source.LARGE_REQUESTS: (None, (8, 1), "Valkey 8.1 and later have it"),
    Source.LARGE_REPLIES: (None, (8, 1), "Valkey 8.1 and later have it"),
}
"""The first versions of Redis and of Valkey that have a source, None for never, and a sentence about it."""


def why_absent(source: Source, server: ServerIdentity) -> Unknown | None:
    """Return why a source is missing in this version of a server; None if it exists, or if that is unknown."""
    if source not in _NEWER or server.product not in ("redis", "valkey") or server.version is None:
        return None
    of_redis, of_valkey, why = _NEWER[source]
    since = of_redis if server.product == "redis" else of_valkey
    return None if since is not None and server.version >= since else Unknown(Reason.UNSUPPORTED, why)


@dataclass(slots=True)
class _Found:
    """The parts of a sample being put together."""

    missing: dict[Source, Missing]
    figures: dict[str, Any] = field(default_factory=dict)
    """Values by names of fields of `Sample`."""
    info: dict[str, int | float | str] = field(default_factory=dict)
    percentiles: dict[str, dict[str, float]] = field(default_factory=dict)
    """By command, then by percentile, in microseconds."""
    sources: set[Source] = field(default_factory=set)
    impossible: dict[Source, dict[str, str]] = field(default_factory=dict)
    """By source, values of figures that are no numbers, by field."""


class HealthProbe:
    """Takes samples of one server; call `sample` repeatedly, one call at a time."""

    def __init__(
        self,
        connection: Connection,
        node: SafeText,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        ask_sentinels: AskSentinels | None = None,
        every_s: Mapping[Source, float] = EVERY_S,
    ) -> None:
        """`node` is the server's name in the samples; `clock` returns seconds since the epoch.

        `every_s` has the shortest times between readings of sources. `ask_sentinels` returns the views of the Sentinels
        of its service; None without Sentinels.
        """
        self.connection, self._node, self._ask_sentinels = connection, node, ask_sentinels
        self._every_s = every_s
        self._clock, self._monotonic = clock, monotonic
        self._begin()

    def _begin(self) -> None:
        """Reset everything, as on a new connection, which may lead to another server or as another user."""
        self._generation: int | None = self.connection.generation
        self._refused: dict[Source, Missing] = {}
        """Sources that are not requested again, with the reason."""
        self._due_s: dict[Source, float] = {}
        self._logs = {source: LogReader() for source in _LOGS}
        self._latency = LatencyReader()
        self._before: Sample | None = None

    def ask_everything(self) -> None:
        """Make the next sample request all sources, also refused ones."""
        self.connection.forget_denied()
        self._generation = None

    @for_purpose(Purpose.HEALTH)
    async def sample(self) -> Sample:
        """Read a sample of the server; raises ConnectionLost.

        Takes two round trips, and a third one for logs with new entries.
        """
        if self._generation != self.connection.generation:
            self._begin()
        at_ms, found = round(self._clock() * 1000), _Found(dict(self._refused))
        sent = self.connection.sent
        # as the server counts them before it answers
        own = OwnUse(sent.commands, sent.hits, sent.misses, self.connection.target.has_no_credentials)
        replies = await self._ask(found, self._first_commands())
        for source in (*_SECTIONS, Source.CLUSTER_INFO):
            if source in replies:
                self._read_section(found, source, replies[source])
        await asyncio.gather(
            self._read_log(found, Source.SLOW_LOG, replies.get(Source.SLOW_LOG)),
            self._read_large_logs(found, replies.get(Source.LARGE_REQUESTS)),
            self._read_latency(found, replies.get(Source.LATENCY_EVENTS)),
            self._read_settings(found, replies.get(Source.SETTINGS)),
            self._list_clients(found),
            self._list_peers(found),
            self._read_sentinels(found),
        )
        for name, took_us in found.percentiles.items():
            stats = found.figures.get("commands", {})
            if name in stats:
                stats[name] = msgspec.structs.replace(stats[name], percentiles_us=took_us)
        answers = Sample(
            at_ms=at_ms,
            node=self._node,
            info=found.info,
            **found.figures,
            own=own,
            sources=tuple(source for source in Source if source in found.sources),
            missing={source: found.missing[source] for source in Source if source in found.missing},
            impossible=found.impossible,
        )
        sample = with_possible(answers)
        self._before = sample if self._before is None else with_earlier(sample, self._before)
        return self._before

    def _first_commands(self) -> dict[Source, Command]:
        """Return the first commands: each command in one form, besides INFO, so that a refusal is logged once."""
        server = self.connection.server
        commands: dict[Source, Command] = {source: guard.info(source.removeprefix("INFO ")) for source in _SECTIONS}
        if server.cluster_enabled:
            commands[Source.CLUSTER_INFO] = guard.cluster_info()
        commands[Source.SLOW_LOG] = guard.slowlog_get(1)
        commands[Source.LARGE_REQUESTS] = guard.commandlog_get(1, "large-request")
        commands[Source.LATENCY_EVENTS] = guard.latency_latest()
        commands[Source.SETTINGS] = guard.config_get(*self._settings_at_once())
        return commands

    def _settings_at_once(self) -> Sequence[str]:
        """Return the names for one CONFIG GET: all, or only the first if the server takes just one."""
        server = self.connection.server
        is_known = server.product in ("redis", "valkey") and server.compatible is None
        return SETTINGS if is_known and (server.version or ()) >= SEVERAL_SETTINGS else SETTINGS[:1]

    async def _ask(self, found: _Found, commands: Mapping[Source, Command]) -> dict[Source, Reply]:
        """Send the commands that are due and not refused; return the replies without errors and record the errors."""
        wanted = {source: command for source, command in commands.items() if self._is_wanted(found, source)}
        replies = await self.connection.run(*wanted.values()) if wanted else []
        answered: dict[Source, Reply] = {}
        for source, reply in zip(wanted, replies, strict=True):
            if isinstance(reply, ServerError):
                self._mark_missing(found, source, unknown_from(reply), for_good=refuses_command(reply))
            elif isinstance(reply, list if source in _LISTED else bytes):
                answered[source] = reply
            else:
                self._mark_missing(found, source, _UNREADABLE, for_good=False)
        return answered

    def _is_wanted(self, found: _Found, source: Source) -> bool:
        why = why_absent(source, self.connection.server)
        if why is not None:
            self._mark_missing(found, source, why, for_good=True)
        return source not in self._refused and self._monotonic() + SLACK_S >= self._due_s.get(source, 0.0)

    def _mark_missing(self, found: _Found, source: Source, why: Unknown, *, for_good: bool) -> None:
        """Record why a source is missing in this sample; `for_good` is not to request it again."""
        found.missing[source] = Missing(why.reason, why.detail)
        if for_good:
            self._refused[source] = found.missing[source]

    def _mark_answered(self, found: _Found, source: Source, cost_us: float = 0.0) -> None:
        found.sources.add(source)
        self._due_s[source] = self._monotonic() + max(self._every_s.get(source, 0.0), cost_us / SHARE_US_PER_S)

    def _read_section(self, found: _Found, source: Source, reply: Reply) -> None:
        figures, cost_us, has_answer = found.figures, 0.0, info.has_section(reply)
        match source:
            case Source.INFO_KEYSPACE:
                figures["databases"] = info.parse_databases(reply)
            case Source.COMMAND_STATS:
                figures["commands"] = commands = info.parse_commands(reply)
                cost_us, has_answer = COMMAND_US * len(commands), bool(commands)
            case Source.LATENCY_STATS:
                found.percentiles = info.parse_percentiles(reply)
                cost_us = PERCENTILES_US * len(found.percentiles)
            case Source.ERROR_STATS:
                figures["errors"] = errors = info.parse_errors(reply)
                # Some compatible servers answer with other sections; where there was no error, the title is alone.
                has_answer = bool(errors) or (isinstance(reply, bytes) and b"errorstats" in reply[:20].lower())
            case Source.KEY_SIZES:
                figures["key_sizes"] = info.parse_key_sizes(reply)
            case _:
                fields = info.parse_fields(source, reply)
                found.info.update(fields)
                has_answer = bool(fields)
                if source is Source.INFO_REPLICATION:
                    figures["replicas"] = info.parse_replicas(reply)
        if unreadable := info.unreadable_fields(source, reply) | info.unreadable_lists(source, reply):
            found.impossible[source], has_answer = unreadable, True
        if has_answer:
            self._mark_answered(found, source, cost_us)
        else:
            self._mark_missing(found, source, Unknown(Reason.UNSUPPORTED, "not reported by the server"), for_good=True)

    async def _run(self, found: _Found, source: Source, *commands: Command) -> list[Reply] | None:
        """Send follow-up commands of a source; None, with the reason recorded, if any reply is not a list."""
        replies = await self.connection.run(*commands)
        strange = next((reply for reply in replies if not isinstance(reply, list)), None)
        if strange is None:
            return replies
        why = unknown_from(strange) if isinstance(strange, ServerError) else _UNREADABLE
        self._mark_missing(found, source, why, for_good=False)
        return None

    async def _read_large_logs(self, found: _Found, requests: Reply) -> None:
        """Read Valkey's logs of large requests and large replies, which share one command."""
        if requests is None:
            if Source.LARGE_REQUESTS in found.missing:
                found.missing[Source.LARGE_REPLIES] = found.missing[Source.LARGE_REQUESTS]
            return
        await self._read_log(found, Source.LARGE_REQUESTS, requests)
        replies = await self._ask(found, {Source.LARGE_REPLIES: guard.commandlog_get(1, "large-reply")})
        await self._read_log(found, Source.LARGE_REPLIES, replies.get(Source.LARGE_REPLIES))

    async def _read_log(self, found: _Found, source: Source, latest: Reply) -> None:
        """Read the new entries of a log, by the reply with its latest one."""
        if latest is None:
            return
        reader, (name, command) = self._logs[source], _LOGS[source]
        before, count = reader.entries, reader.to_request(latest)
        if count:
            replies = await self._run(found, source, command(count))
            if replies is None:
                return
            reader.add(replies[0], count)
        if reader.entries != before:
            found.figures[name] = reader.entries
            self._mark_answered(found, source)

    async def _read_latency(self, found: _Found, latest: Reply) -> None:
        """Read the histories of latency events that have new delays."""
        if latest is None:
            return
        reader, is_first = self._latency, not self._latency.is_read
        names = reader.to_request(latest)
        replies = await self._run(found, Source.LATENCY_EVENTS, *map(guard.latency_history, names)) if names else []
        if replies is None:
            return
        before = reader.events
        events = reader.add(names, replies)
        if is_first or events != before:
            found.figures["latency"] = events
            self._mark_answered(found, Source.LATENCY_EVENTS)

    async def _read_settings(self, found: _Found, first: Reply) -> None:
        """Read the settings; if the server takes one name per command, unknown settings may be errors."""
        if first is None:
            return
        rest = SETTINGS[len(self._settings_at_once()) :]
        replies = await self.connection.run(*map(guard.config_get, rest)) if rest else []
        found.figures["settings"] = info.parse_settings([first, *replies])
        self._mark_answered(found, Source.SETTINGS)

    async def _list_clients(self, found: _Found) -> None:
        """List the clients if INFO reports few of them."""
        if not self._is_wanted(found, Source.CLIENTS):
            return
        connected = found.info.get("connected_clients")
        evidence = ClientsEvidence(connected if isinstance(connected, int) and connected >= 0 else None)
        if evidence.refusal("CLIENT LIST", (), 0):
            self._mark_missing(found, Source.CLIENTS, too_many(evidence.connected), for_good=False)
            return
        replies = await self._ask(found, {Source.CLIENTS: guard.client_list(evidence)})
        if Source.CLIENTS in replies:
            clients = parse_clients(replies[Source.CLIENTS])
            if not clients:  # rtui is one itself
                self._mark_missing(found, Source.CLIENTS, _UNREADABLE, for_good=False)
                return
            found.figures["clients"] = clients
            self._mark_answered(found, Source.CLIENTS, CLIENT_US * len(clients))

    async def _list_peers(self, found: _Found) -> None:
        """List the nodes of a cluster if they are few."""
        known = found.info.get("cluster_known_nodes")
        if not isinstance(known, int) or known < 0 or not self._is_wanted(found, Source.CLUSTER_NODES):
            return
        if known > MAX_PEERS:
            why = Unknown(Reason.TOO_LARGE, SafeText(f"nodes are listed in clusters of up to {MAX_PEERS}"))
            self._mark_missing(found, Source.CLUSTER_NODES, why, for_good=False)
            return
        replies = await self._ask(found, {Source.CLUSTER_NODES: guard.cluster_nodes()})
        if Source.CLUSTER_NODES in replies:
            found.figures["peers"] = parse_peers(replies[Source.CLUSTER_NODES])
            self._mark_answered(found, Source.CLUSTER_NODES)

    async def _read_sentinels(self, found: _Found) -> None:
        if self._ask_sentinels is not None and self._is_wanted(found, Source.SENTINELS):
            found.figures["sentinels"] = await self._ask_sentinels()
            self._mark_answered(found, Source.SENTINELS)
