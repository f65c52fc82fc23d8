"""Makes the connection to a target, wherever it is said to be and whatever makes its password."""

from __future__ import annotations

from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection
from rtui.server.wire.opening import Locator, Logins
from rtui.server.wire.target import Target


def connection_to(
    target: Target,
    log: CommandLog | None = None,
    *,
    locator: Locator | None = None,
    logins: Logins | None = None,
) -> Connection:
    """Return a connection that is not open yet; raises TargetError for a credential provider that can't be used.

    To a service, each attempt asks its Sentinels first, unless `locator` says where attempts go. `logins` makes the
    passwords where another connection has what makes them.
    """
    log = CommandLog() if log is None else log
    if target.login is not None and logins is None:
        from rtui.server.deployment.credentials import credentials_of  # noqa: PLC0415 - few have passwords that expire

        logins = credentials_of(target.login)
    if target.sentinels is not None and locator is None:
        from rtui.server.deployment.sentinel import PrimaryFinder  # noqa: PLC0415 - redis-py, for those who have Sentinels

        locator = PrimaryFinder(target, target.sentinels, log)
    return Connection(target, log=log, locator=locator, logins=logins)
