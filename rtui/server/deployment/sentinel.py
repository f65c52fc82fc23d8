"""Asks Sentinels where the primary of a service is, before each connection to it.

redis-py's `Sentinel` chooses whom to believe: the first that answers, and takes the primary for alive, is asked first
from then on. When a connection is lost over a failover, the next attempt asks again and reaches the new primary: those
who demote a server end its connections. What the others say is asked as well; where they disagree, `said` has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.sentinel import Sentinel
from redis.exceptions import RedisError

from rtui.analysis.health.sample import SentinelView
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.deployment.guarded import GuardedConnection
from rtui.server.wire.command_log import CommandLog, Purpose
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.failures import demoted_failure
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.lane import CONNECT_TIMEOUT_S
from rtui.server.wire.target import MAX_PORT, Sentinels, Target

ANSWER_TIMEOUT_S: Final = 1.0
"""How long a Sentinel may take to say how its service is: samples wait for it."""

MAX_TEXT: Final = 300


class PrimaryFinder:
    """Finds the primary of a service; `close` it at the end."""

    def __init__(
        self, target: Target, sentinels: Sentinels, log: CommandLog, *, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        """`target` says how to connect to the primary."""
        self.said: Mapping[SafeText, SafeText] = {}
        """What each Sentinel said last: an address, or why there is none."""
        self._target, self._sentinels = target, sentinels
        self._found = target
        """Where the primary was said to be last."""
        way = Target(user=sentinels.user, password=sentinels.password, tls=sentinels.tls)
        options: dict[str, Any] = {"target": way, "log": log, "purpose": Purpose.SERVER, "timeout_s": timeout_s}
        self._clients = {
            display_text(f"{host}:{port}"): Redis(
                connection_pool=ConnectionPool(GuardedConnection, host=host, port=port, protocol=2, **options)
            )
            for host, port in sentinels.addresses
        }
        self._finder = Sentinel([])
        self._finder.sentinels = list(self._clients.values())

    @property
    def note(self) -> SafeText | None:
        """Which Sentinel says what, where they name different primaries; None where they don't."""
        named = {said for said in self.said.values() if ":" in said}
        if len(named) < 2:
            return None
        return SafeText("The Sentinels disagree: " + "; ".join(f"{who} says {said}" for who, said in self.said.items()))

    async def locate(self) -> Target:
        """Ask where the primary is now; raises ConnectFailure."""
        service = self._sentinels.service
        found, *answers = await asyncio.gather(
            self._finder.discover_master(service),
            *(self._ask(client) for client in self._clients.values()),
            return_exceptions=True,
        )
        self.said = dict(zip(self._clients, map(cast("Any", _as_text), answers), strict=True))
        match found:
            case (str(host), int(port)) if 0 < port <= MAX_PORT:
                self._found = replace(self._target, host=host, port=port)
                return self._found
            case ConnectFailure() | asyncio.CancelledError():
                raise found
        said = "; ".join(f"{who}: {what}" for who, what in self.said.items())
        raise ConnectFailure(
            FailureKind.NO_PRIMARY,
            f"No Sentinel names a primary of {display_text(service)} that it takes for alive. {said}.",
            "`redis-cli -p 26379 SENTINEL MASTERS` on a Sentinel names its services and their state.",
        ) from (found if isinstance(found, BaseException) else None)

    async def views(self) -> tuple[SentinelView, ...]:
        """Ask each Sentinel how the service is, and return what they say in their order; raises nothing."""
        return tuple(await asyncio.gather(*(self._view(who, client) for who, client in self._clients.items())))

    async def _view(self, who: SafeText, client: Redis) -> SentinelView:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                services = await cast("Awaitable[dict[str, Any]]", client.execute_command("SENTINEL MASTERS"))
        except TimeoutError:
            return SentinelView(who, failure=f"no answer within {ANSWER_TIMEOUT_S:g} s")
        except (RedisError, ConnectFailure) as error:
            return SentinelView(who, failure=_as_text(error))
        said = services.get(self._sentinels.service) if isinstance(services, dict) else None
        if not isinstance(said, dict):
            return SentinelView(who, failure=_as_text(None))
        others = _number(said.get("num-other-sentinels"))
        return SentinelView(
            who,
            primary=display_text(f"{said.get('ip', '')}:{said.get('port', '')}", limit=MAX_TEXT),
            flags=display_text(str(said.get("flags", "")), limit=MAX_TEXT),
            quorum=_number(said.get("quorum")),
            sentinels=None if others is None else others + 1,
            replicas=_number(said.get("num-slaves")),
        )

    def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
        """Return a failure for a replica: a failover may be under way."""
        return demoted_failure(self._found) if server.role == "replica" else None

    async def _ask(self, client: Redis) -> object:
        return await cast(
            "Awaitable[object]", client.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", self._sentinels.service)
        )

    async def close(self) -> None:
        """Close the connections to the Sentinels."""
        for client in self._clients.values():
            await client.connection_pool.disconnect()


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else None


def _as_text(answer: object) -> SafeText:
    """Return what a Sentinel said in a few words."""
    match answer:
        case None:
            return SafeText("does not know the service")
        case (bytes(host), int(port)):
            return display_text(f"{host.decode('utf-8', 'replace')}:{port}")
        case RedisError() if isinstance(answer.__cause__, ConnectFailure):
            return answer.__cause__.happened
        case BaseException():
            return display_text(str(answer))
    return SafeText("gives an answer that is no address")
