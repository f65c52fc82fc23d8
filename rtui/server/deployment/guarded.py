"""redis-py over lanes: the connections on which it asks Sentinels.

redis-py knows how Sentinels are asked, and whom to believe. Its connections are replaced by these. Each is a `Lane`
with our own handshake: the socket takes the same way as all others, the guard builds each command and refuses what is
not on the closed list, and each is in the command log. redis-py itself opens nothing and packs nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import Any

from redis.asyncio.connection import Connection as RedisConnection
from redis.asyncio.connection import DefaultParser
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.maint_notifications import MaintNotificationsConfig

from rtui.server.guard.command import build_command
from rtui.server.wire.command_log import CommandLog, Purpose, sent_for
from rtui.server.wire.errors import ConnectFailure, ConnectionLost
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import Logins, open_control_lane
from rtui.server.wire.replies import Reply, ServerError
from rtui.server.wire.target import Target


class GuardedConnection(RedisConnection):
    """A connection of redis-py's that is a lane; raises redis-py's errors, whose causes are ours."""

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
        """`target` says how to connect, `host` and `port` where to; `options` are what redis-py passes on.

        `logins` makes passwords that expire.
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
        """Whether commands can be sent."""
        return self._lane is not None and self._lane.is_open

    async def _connect(self) -> None:
        """Open a lane and make it ready."""
        try:
            self._lane = await open_control_lane(self._target, self._log, self._logins)
        except (ConnectFailure, ConnectionLost) as failed:
            raise RedisConnectionError(str(failed)) from failed

    async def on_connect_check_health(self, check_health: bool = True) -> None:
        """Do nothing more: the lane is ready."""

    async def disconnect(self, *_: object, **__: object) -> None:
        """Close the lane; replies that are owed are lost."""
        self._close()

    def _close(self) -> None:
        lane, self._lane = self._lane, None
        self._owed.clear()
        if lane is not None:
            lane.close()

    def pack_command(self, *args: Any) -> Any:
        """Have the guard build a command; raises GuardError for one that is not on the closed list."""
        words = [arg.encode() if isinstance(arg, str) else b"%d" % arg if isinstance(arg, int) else arg for arg in args]
        return [build_command(*words[0].split(b" "), *words[1:])]

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send what `pack_command` has built."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        assert self._lane is not None  # noqa: S101 - it has just been opened
        with sent_for(self._purpose):
            self._owed += [self._lane.run(one) for one in command]

    async def read_response(self, *_: object, **__: object) -> Reply:
        """Wait for the reply to the oldest command that is not answered."""
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
        """Whether a reply lies there that nobody waits for: a lane takes none."""
        return False
