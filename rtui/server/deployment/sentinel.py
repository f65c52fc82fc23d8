"""Asks Sentinels where the primary of a service is, before each connection to it.

All are asked at the same time, and those that hang are not waited for once another has answered. Of those that have
answered redis-py's `Sentinel` chooses whom to believe: the first that takes the primary for alive is asked first from
then on. When a connection is lost over a failover, the next attempt asks again and reaches the new primary: those who
demote a server end its connections. Where they name different primaries, `note` says who names which.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.sentinel import Sentinel
from redis.exceptions import RedisError, ResponseError

from rtui.analysis.health.sample import SentinelView
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.deployment.guarded import GuardedConnection
from rtui.server.wire.command_log import CommandLog, Purpose
from rtui.server.wire.errors import ConnectFailure, FailureKind, RtuiError
from rtui.server.wire.failures import MOST_SERVICES, demoted_failure
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.lane import CONNECT_TIMEOUT_S
from rtui.server.wire.target import MAX_PORT, Sentinels, Target
from rtui.server.wire.tunnels import patience_s

ANSWER_TIMEOUT_S: Final = 1.0
"""How long a Sentinel may take to say how its service is, and to answer once another one has: samples wait for it."""

MAX_TEXT: Final = 300

_NO_ANSWER: Final = SafeText("no answer in time")
_CHECK_SENTINELS: Final = (
    "Check the addresses of the Sentinels, and their own user, password and TLS: --sentinel-user, --sentinel-askpass, "
    "--sentinel-tls."
)


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
        way = Target(user=sentinels.user, password=sentinels.password, tls=sentinels.tls, way=target.way)
        options: dict[str, Any] = {"target": way, "log": log, "purpose": Purpose.SERVER, "timeout_s": timeout_s}
        self._timeout_s = patience_s(target.way, timeout_s)
        self._clients = {
            _address(host, port): Redis(
                connection_pool=ConnectionPool(GuardedConnection, host=host, port=port, protocol=2, **options)
            )
            for host, port in sentinels.addresses
        }
        self._finder = Sentinel([])
        self._order = list(self._clients.values())
        """The one that was believed last comes first."""
        self._names_primary: frozenset[SafeText] = frozenset()
        """Those that have named a primary."""

    @property
    def note(self) -> SafeText | None:
        """Which Sentinel says what, where they name different primaries; None where they don't."""
        if len({said for who, said in self.said.items() if who in self._names_primary}) < 2:
            return None
        return SafeText("The Sentinels disagree: " + "; ".join(f"{who} says {said}" for who, said in self.said.items()))

    async def locate(self) -> Target:
        """Ask where the primary is now; raises ConnectFailure."""
        service = self._sentinels.service
        answers = await self._answers()
        self.said = {who: _as_text(answer) for who, answer in answers.items()}
        self._names_primary = frozenset(who for who, answer in answers.items() if isinstance(answer, tuple))
        has_named = [self._clients[who] for who in self._names_primary]
        self._finder.sentinels = [client for client in self._order if client in has_named]
        with contextlib.suppress(RedisError):
            match await self._finder.discover_master(service):
                case (str(host), int(port)) if 0 < port <= MAX_PORT:
                    believed = self._finder.sentinels[0]
                    self._order.sort(key=lambda client: client is not believed)
                    self._found = replace(self._target, host=host, port=port)
                    return self._found
        said = "; ".join(what if who in what else f"{who}: {what}" for who, what in self.said.items())
        happened = f"No Sentinel names a primary of {display_text(service)} that it takes for alive. {said}."
        raise ConnectFailure(FailureKind.NO_PRIMARY, happened, await self._remedy(answers))

    async def _answers(self) -> dict[SafeText, object]:
        """Ask each which address it has; return that, None, or an exception for each, in the order they were given."""
        asked = {who: asyncio.create_task(self._ask(client)) for who, client in self._clients.items()}
        try:
            waiting, until_s = set(asked.values()), self._timeout_s
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=until_s, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
                if any(task.exception() is None and task.result() is not None for task in done):
                    until_s = ANSWER_TIMEOUT_S
        finally:
            for task in asked.values():
                task.cancel()
            await asyncio.gather(*asked.values(), return_exceptions=True)
        return {
            who: TimeoutError() if task.cancelled() else task.exception() or task.result()
            for who, task in asked.items()
        }

    async def _remedy(self, answers: Mapping[SafeText, object]) -> str:
        """Say what to try: another service where a Sentinel has answered, which the first such one lists."""
        has_answered = [who for who, answer in answers.items() if not isinstance(answer, BaseException)]
        if not has_answered:
            return _CHECK_SENTINELS
        who = has_answered[0]
        if answers[who] is not None:
            return "A failover may be under way, or all servers of the service are down: try again in a moment."
        with contextlib.suppress(RedisError, TimeoutError):
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                services = await _services(self._clients[who])
            names = ", ".join(display_text(name) for name in sorted(services)[:MOST_SERVICES])
            more = ", …" if len(services) > MOST_SERVICES else ""
            return f"Check the name of the service: {who} knows {names or 'none'}{more}."
        return "Check the name of the service: SENTINEL MASTERS lists those that a Sentinel knows."

    async def views(self) -> tuple[SentinelView, ...]:
        """Ask each Sentinel how the service is, and return what they say in their order; raises nothing."""
        return tuple(await asyncio.gather(*(self._view(who, client) for who, client in self._clients.items())))

    async def _view(self, who: SafeText, client: Redis) -> SentinelView:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                services = await _services(client)
        except (RedisError, ConnectFailure, TimeoutError) as error:
            return SentinelView(who, failure=_as_text(error))
        said = services.get(self._sentinels.service)
        if not isinstance(said, dict):
            return SentinelView(who, failure=_as_text(None))
        others = _number(said.get("num-other-sentinels"))
        return SentinelView(
            who,
            primary=_address(str(said.get("ip", "")), said.get("port", "")),
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


async def _services(client: Redis) -> dict[str, Any]:
    """Return what a Sentinel says of each service that it knows, by name."""
    answer = await cast("Awaitable[object]", client.execute_command("SENTINEL MASTERS"))
    return answer if isinstance(answer, dict) else {}


def _address(host: str, port: object) -> SafeText:
    return display_text(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", limit=MAX_TEXT)


def _as_text(answer: object) -> SafeText:
    """Return what a Sentinel said in a few words, without a full stop."""
    match answer:
        case None:
            return SafeText("does not know the service")
        case (bytes(host), int(port)):
            return _address(host.decode("utf-8", "replace"), port)
        case TimeoutError():
            return _NO_ANSWER
        case ResponseError() if "unknown command" in str(answer).lower():
            return SafeText("is no Sentinel")
        case BaseException():
            failure: BaseException | None = answer
            while failure is not None and not isinstance(failure, RtuiError):
                failure = failure.__cause__
            said = display_text(str(answer)) if failure is None else failure.happened
            return SafeText(said.removesuffix("."))
    return SafeText("gives an answer that is no address")
