"""Asks Sentinels for the primary of a service, before each connection to it.

All are asked at once, so that a hanging one delays nobody. redis-py's `Sentinel` chooses the answer: the first one by a
Sentinel that considers the primary alive. When a connection is lost over a failover, the next attempt asks again and
reaches the new primary: a demoted server closes its connections. `said` has the answer of each; if they disagree, a
note tells.

The connections of redis-py are replaced by `GuardedConnection`, a lane with our own handshake: the socket uses the same
SSH hosts and proxies as all others, the guard builds each command and refuses any that is not on the closed list, and
each is in the command log. redis-py itself opens nothing and packs nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import Connection as RedisConnection
from redis.asyncio.connection import DefaultParser
from redis.asyncio.sentinel import Sentinel
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from rtui.analysis.health.sample import SentinelView
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.guard.command import build_command
from rtui.server.wire.command_log import CommandLog, Purpose, sent_for
from rtui.server.wire.errors import ConnectFailure, ConnectionLost, FailureKind, Reply, ServerError, TargetError
from rtui.server.wire.failures import MOST_SERVICES, demoted_failure
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import Logins, open_control_lane
from rtui.server.wire.target import MAX_PORT, Sentinels, Target, address_text


class GuardedConnection(RedisConnection):
    """A connection of redis-py that is a lane; raises redis-py's errors, whose causes are ours."""

    def __init__(
        self,
        *,
        target: Target,
        log: CommandLog,
        purpose: Purpose,
        host: str,
        port: int,
        logins: Logins | None = None,
        **options: Any,
    ) -> None:
        """`target` has the options, `host` and `port` the address; `options` come from redis-py.

        `logins` provides expiring passwords.
        """
        super().__init__(
            host=host,
            port=port,
            retry=options.get("retry"),
            protocol=2,
            maint_notifications_config=MaintNotificationsConfig(enabled=False),
        )
        self._target = replace(target, host=self.host, port=self.port)
        self._log, self._purpose = log, purpose
        self._logins = logins
        self._lane: Lane | None = None
        self._owed: deque[asyncio.Future[list[Reply]]] = deque()

    @property
    def is_connected(self) -> bool:
        return self._lane is not None and self._lane.is_open

    async def _connect(self) -> None:
        try:
            self._lane = await open_control_lane(self._target, self._log, self._logins)
        except (ConnectFailure, ConnectionLost) as failed:
            raise RedisConnectionError(str(failed)) from failed

    async def on_connect_check_health(self, check_health: bool = True) -> None:
        """Do nothing more: the lane is ready."""

    async def disconnect(self, *_: object, **__: object) -> None:
        """Close the lane; outstanding replies are lost."""
        self._close()

    def _close(self) -> None:
        lane, self._lane = self._lane, None
        self._owed.clear()
        if lane is not None:
            lane.close()

    def pack_command(self, *args: Any) -> Any:
        """Build a command by the guard; raises GuardError if it is not on the closed list."""
        words = [arg.encode() if isinstance(arg, str) else b"%d" % arg if isinstance(arg, int) else arg for arg in args]
        return [build_command(*words[0].split(b" "), *words[1:])]

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send commands from `pack_command`."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        assert self._lane is not None  # noqa: S101 - it has just been opened
        with sent_for(self._purpose):
            self._owed += [self._lane.run(request) for request in command]

    async def read_response(self, *_: object, **__: object) -> Reply:
        """Wait for the reply to the oldest outstanding command."""
        if not self._owed:
            raise RedisConnectionError("no reply is owed")
        try:
            (reply,) = await self._owed.popleft()
        except ConnectionLost as lost:
            await self.disconnect()
            raise RedisConnectionError(str(lost)) from lost
        if isinstance(reply, ServerError):
            if self._logins is not None and reply.code == "NOAUTH":
                self._logins.refused()
            raised: Exception = DefaultParser.parse_error(str(reply))  # type: ignore[no-untyped-call]
            raise raised from reply
        return reply

    async def can_read(self) -> bool:
        """Return False: a lane accepts no unexpected replies."""
        return False


ANSWER_TIMEOUT_S: Final = 1.0
"""The time for a Sentinel's answer about its service: samples wait for it."""

NO_ANSWER: Final = SafeText(f"no answer within {ANSWER_TIMEOUT_S:g} s")

MAX_TEXT: Final = 300


class PrimaryFinder:
    """Finds the primary of a service; `close` it at the end."""

    def __init__(self, target: Target, sentinels: Sentinels, log: CommandLog) -> None:
        """`target` has the options for the primary."""
        self.said: Mapping[SafeText, SafeText] = {}
        """The last answer of each Sentinel: an address, or the reason for none."""
        self._named: Mapping[SafeText, SafeText] = {}
        """The addresses among the answers."""
        self._target, self._sentinels = target, sentinels
        self._found = target
        """The target of the last reported primary."""
        way = Target(user=sentinels.user, password=sentinels.password, tls=sentinels.tls, way=target.way)
        options: dict[str, Any] = {"target": way, "log": log, "purpose": Purpose.SERVER}
        self._clients = {
            address_text(host, port): Redis(
                connection_pool=ConnectionPool(GuardedConnection, host=host, port=port, protocol=2, **options)
            )
            for host, port in sentinels.addresses
        }
        self._names = {client: who for who, client in self._clients.items()}
        self._finder = Sentinel([])
        self._finder.sentinels = list(self._clients.values())

    @property
    def note(self) -> SafeText | None:
        """The answers of the Sentinels if they name different primaries, else None."""
        if len(set(self._named.values())) < 2:
            return None
        said = (f"{who} says {address}" for who, address in self._named.items())
        return SafeText(f"The Sentinels disagree: {'; '.join(said)}")

    async def locate(self) -> Target:
        """Ask for the current primary; raises ConnectFailure, and TargetError for unusable options of the Sentinels."""
        service = self._sentinels.service
        answers = await self._answers()
        for answer in answers.values():
            if isinstance(
                why := _cause(answer), TargetError
            ):  # such as a client key that can't be used, with any of them
                raise why
        self.said = {who: _as_text(answer) for who, answer in answers.items()}
        self._named = {who: said for who, said in self.said.items() if _is_told(answers[who])}
        self._finder.sentinels.sort(key=lambda client: not _is_told(answers[self._names[client]]))
        found: object
        (found,) = await asyncio.gather(self._finder.discover_master(service), return_exceptions=True)
        match found:
            case (str(host), int(port)) if 0 < port <= MAX_PORT:
                self._found = replace(self._target, host=host, port=port)
                return self._found
            case ConnectFailure() | asyncio.CancelledError():
                raise found
        said = "; ".join(f"{who}: {what}" for who, what in self.said.items())
        raise ConnectFailure(
            FailureKind.NO_PRIMARY,
            f"No Sentinel names a primary of {display_text(service)} that it considers alive. {said}.",
            await self._remedy(answers),
        ) from (found if isinstance(found, BaseException) else None)

    async def _answers(self) -> dict[SafeText, object]:
        """Ask all Sentinels for the address; return each one's answer, or a BaseException.

        Once one has named the address, each of the others has ANSWER_TIMEOUT_S.
        """
        asking = {who: asyncio.create_task(self._ask(client)) for who, client in self._clients.items()}
        pending = set(asking.values())
        try:
            while pending:
                is_told = any(one.done() and not one.exception() and _is_told(one.result()) for one in asking.values())
                longest_s = ANSWER_TIMEOUT_S if is_told else None
                done, pending = await asyncio.wait(pending, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
        finally:
            for task in pending:
                task.cancel()
        answers = await asyncio.gather(*asking.values(), return_exceptions=True)
        return dict(zip(asking, answers, strict=True))

    async def _remedy(self, answers: Mapping[SafeText, object]) -> str:
        """Return a remedy if no Sentinel names a primary, depending on their answers."""
        failures = [failure for failure in map(_failure_of, answers.values()) if failure is not None]
        kinds = {failure.kind for failure in failures}
        if kinds & {FailureKind.NOAUTH, FailureKind.WRONGPASS, FailureKind.NOPERM}:
            options = "--sentinel-user, with --sentinel-askpass or RTUI_SENTINEL_AUTH"
            return f"Sentinels have users and passwords of their own, or none: {options}."
        if None in answers.values() and (services := await self._services()):
            return f"They know {services}: name one after the Sentinels, sentinel://host,host/service."
        if kinds & {FailureKind.TLS, FailureKind.CLOSED} and self._sentinels.tls is None:
            return "The Sentinels may want TLS: --sentinel-tls, with --cacert and the other options of the servers."
        if any(failure.kind is FailureKind.TLS and "mismatch" in failure.happened for failure in failures):
            return "Name the Sentinels as their certificates do; --sni is for the servers."
        if FailureKind.TLS in kinds:
            return "Leave --sentinel-tls out for Sentinels without TLS; --cacert names the authority of those with it."
        return "`redis-cli -p 26379 SENTINEL MASTERS` on a Sentinel names its services and their state."

    async def _services(self) -> str:
        """Return the names of some of the services that the Sentinels know, safe to show."""
        found = await self._known_services()
        names = sorted({str(name) for answer in found if isinstance(answer, dict) for name in answer})
        more = f" and {len(names) - MOST_SERVICES} more" if len(names) > MOST_SERVICES else ""
        return ", ".join(display_text(name, limit=MAX_TEXT) for name in names[:MOST_SERVICES]) + more

    async def _known_services(self) -> list[object]:
        """Ask each Sentinel for its services; return the answers, some of them exceptions."""
        asking = (_services_of(client) for client in self._clients.values())
        return list(await asyncio.gather(*asking, return_exceptions=True))

    async def all_services(self) -> tuple[str, ...]:
        """Return the names of the services that any Sentinel knows, sorted; raises ConnectFailure if none answers."""
        found = await self._known_services()
        told = [answer for answer in found if isinstance(answer, dict)]
        if not told:
            said = "; ".join(
                f"{who}: {NO_ANSWER if isinstance(answer, TimeoutError) else _as_text(answer)}"
                for who, answer in zip(self._clients, found, strict=True)
            )
            raise ConnectFailure(FailureKind.NO_PRIMARY, f"No Sentinel names its services. {said}.", "")
        return tuple(sorted({str(name) for answer in told for name in answer}))

    async def views(self) -> tuple[SentinelView, ...]:
        """Ask each Sentinel about the service, and return their views in order; raises nothing."""
        return tuple(await asyncio.gather(*(self._view(who, client) for who, client in self._clients.items())))

    async def _view(self, who: SafeText, client: Redis) -> SentinelView:
        try:
            services = await _services_of(client)
        except TimeoutError:
            return SentinelView(who, failure=NO_ANSWER)
        except (RedisError, ConnectFailure) as error:
            return SentinelView(who, failure=_as_text(error))
        said = services.get(self._sentinels.service) if isinstance(services, dict) else None
        if not isinstance(said, dict):
            return SentinelView(who, failure=_as_text(None))
        others = _number(said.get("num-other-sentinels"))
        return SentinelView(
            who,
            primary=address_text(str(said.get("ip", "")), said.get("port", "")),
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
        for client in self._clients.values():
            await client.connection_pool.disconnect()


ANY_SERVICE: Final = "*"
"""In place of a service it stands for all that the Sentinels know."""


async def services(target: Target, log: CommandLog) -> tuple[str, ...]:
    """Return the names of all services that the Sentinels of a target know, sorted.

    Raises ConnectFailure where none of them answers.
    """
    assert target.sentinels is not None  # noqa: S101 - the caller has looked
    finder = PrimaryFinder(target, target.sentinels, log)
    try:
        return await finder.all_services()
    finally:
        await finder.close()


async def _services_of(client: Redis) -> dict[str, Any]:
    """Return a Sentinel's services by name; raises TimeoutError, and redis-py's errors."""
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        return await cast("Awaitable[dict[str, Any]]", client.execute_command("SENTINEL MASTERS"))


def _is_told(answer: object) -> bool:
    match answer:
        case (bytes(), int()):
            return True
    return False


def _failure_of(answer: object) -> ConnectFailure | None:
    """Return the failure to reach a Sentinel, which redis-py wraps in its errors; None for any other answer."""
    cause = _cause(answer)
    return cause if isinstance(cause, ConnectFailure) else None


def _cause(answer: object) -> object:
    """Return the original cause of redis-py's error; any other answer unchanged."""
    while isinstance(answer, RedisError):
        answer = answer.__cause__
    return answer


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else None


def _as_text(answer: object) -> SafeText:
    """Return the answer of a Sentinel in a few words, without a full stop."""
    if (failure := _failure_of(answer)) is not None:
        return SafeText(failure.happened.rstrip("."))
    match answer:
        case None:
            return SafeText("does not know the service")
        case (bytes(host), int(port)):
            return address_text(host.decode("utf-8", "replace"), port)
        case asyncio.CancelledError():
            return NO_ANSWER
        case BaseException():
            is_unknown = isinstance(answer, ResponseError) and "unknown command" in str(answer).lower()
            return SafeText("is no Sentinel") if is_unknown else display_text(str(answer))
    return SafeText("replies with something other than an address")
