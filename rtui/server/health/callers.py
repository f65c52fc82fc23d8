"""Who sends KEYS and other slow commands, from what the server keeps anyway; never from MONITOR.

Three sources, none of which tells everything. `INFO commandstats` counts every call of KEYS since the server started,
and names nobody. The slow log names the client and the pattern of the latest calls that took longer than the server's
threshold. CLIENT LIST names the clients whose last command was KEYS; one that has sent something else since is not
known. It costs the server time for each client, so it is not asked where more than `MAX_CLIENTS` are connected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.sample import ClientFigures, LoggedCommand
from rtui.server import guard
from rtui.server.guard.closed_list import MAX_SLOW
from rtui.server.guard.evidence import ClientsEvidence
from rtui.server.health.clients import parse_clients, too_many
from rtui.server.health.slow_log import parse_slow_log
from rtui.server.wire.capability import Capabilities, Querier, unknown_from
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import parse_info, parse_number
from rtui.server.wire.replies import Reply, ServerError

KEYS: Final = "KEYS"
"""Walks over all keys of the database while everybody else waits."""

_CALLS: Final = re.compile(r"calls=([0-9]{1,18}),usec=([0-9]{1,18})(?:,|$)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Calls:
    """How often a command was called since the server started, or its statistics were reset."""

    count: int
    took_us: int
    """All calls together."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A call of KEYS and who made it, by one of the sources."""

    at_s: float | None
    """When, in seconds since the epoch by the server's clock for the slow log, by rtui's for the list of clients."""
    address: bytes
    name: bytes
    """What the client calls itself."""
    library: bytes = b""
    user: bytes = b""
    pattern: bytes | None = None
    """None where the source does not tell it."""
    took_us: int | None = None


NOT_ASKED: Final = Unknown(Reason.UNSUPPORTED, "it was not asked")


@dataclass(frozen=True, slots=True)
class Callers:
    """What the three sources say, each with the reason where it says nothing."""

    at_s: float = 0.0
    """When they were asked, in seconds since the epoch."""
    calls: Calls | Unknown = NOT_ASKED
    """Of KEYS."""
    clients: tuple[ClientFigures, ...] | Unknown = ()
    connected: int | None = None
    """How many clients are connected, also where they are not listed."""
    slow: tuple[LoggedCommand, ...] | Unknown = ()

    @property
    def of_keys(self) -> tuple[Caller, ...]:
        """Who sent KEYS, latest first; a call that both lists tell is there once, with what either knows of it."""
        clients = () if isinstance(self.clients, Unknown) else self.clients
        slow = () if isinstance(self.slow, Unknown) else self.slow
        by_who: dict[tuple[bytes, bytes], list[ClientFigures]] = {}
        for client in clients:
            by_who.setdefault((client.address, client.name), []).append(client)
        found, told = [], set()
        for entry in slow:
            if entry.name == KEYS:
                alike = by_who.get((entry.address, entry.client_name), [])
                who = (
                    alike[0] if len(alike) == 1 else ClientFigures(None, b"")
                )  # those of a unix socket have one address
                told.add((entry.address, entry.client_name) if len(alike) == 1 else None)
                pattern = entry.argv[1] if len(entry.argv) > 1 else b""
                names = entry.address, entry.client_name, who.library, who.user
                found.append(Caller(float(entry.at_s), *names, pattern, entry.amount))
        for client in clients:
            if client.last_command == KEYS and (client.address, client.name) not in told:
                at_s = None if client.idle_s is None else self.at_s - client.idle_s
                found.append(Caller(at_s, client.address, client.name, client.library, client.user))
        return tuple(sorted(found, key=lambda one: -(one.at_s or 0.0)))


def parse_calls(info: Mapping[str, str], command: str) -> Calls | Unknown:
    """Read how often a command was called from the fields of INFO commandstats, which lists only those that were."""
    if not any(name.startswith("cmdstat_") for name in info):
        return Unknown(Reason.UNSUPPORTED, "INFO counts no commands")
    text = info.get(f"cmdstat_{command.lower()}")
    if text is None:
        return Calls(0, 0)
    found = _CALLS.match(text)
    if found is None:
        return Unknown(Reason.UNSUPPORTED, "INFO counts calls in a way that rtui does not know")
    return Calls(int(found[1]), int(found[2]))


@for_purpose(Purpose.CLIENTS)
async def ask_callers(connection: Connection, capabilities: Capabilities, clock: Callable[[], float]) -> Callers:
    """Ask all three sources, the number of clients before the list of them. Raises ConnectionLost.

    Costs the server about 0.2 ms, and 1.2 µs for each client.
    """
    querier = Querier(connection, capabilities)
    counted, used, slow = await querier.run(
        guard.info("clients"), guard.info("commandstats"), guard.slowlog_get(MAX_SLOW)
    )
    connected = parse_number(parse_info(counted), "connected_clients")
    evidence = ClientsEvidence(connected)
    clients: tuple[ClientFigures, ...] | Unknown
    if evidence.refusal("CLIENT LIST", (), 0):
        clients = unknown_from(counted) if isinstance(counted, ServerError) else too_many(connected)
    else:
        (listed,) = await querier.run(guard.client_list(evidence))
        clients = unknown_from(listed) if isinstance(listed, ServerError) else parse_clients(listed)
    return Callers(
        at_s=clock(),
        calls=_calls(used),
        clients=clients,
        connected=connected,
        slow=unknown_from(slow) if isinstance(slow, ServerError) else parse_slow_log(slow),
    )


def _calls(reply: Reply) -> Calls | Unknown:
    if isinstance(reply, ServerError):
        return unknown_from(reply)
    return parse_calls(parse_info(reply), KEYS)
