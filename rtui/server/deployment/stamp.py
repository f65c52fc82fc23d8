"""Whether what was read from a server still holds: another run of it may answer now, or another server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rtui.server.wire.connection import Connection
from rtui.server.wire.identity import ServerIdentity

LEAST_CHANGE: Final = 10
"""A database that has gained or lost fewer keys than this has not become another one."""

UPTIME_SLACK_S: Final = 2.0
"""Servers count their uptime in whole seconds, from a moment that they have rounded as well."""


class Outdated(Enum):
    """Why data does not hold any more, each as a sentence without a full stop."""

    RESTARTED = "The server was restarted"
    REPLACED = "Another server answers now"
    UNSURE = "The server may have been restarted"
    EMPTIED = "The database was emptied"
    SHRANK = "More than half of the keys are gone"
    GREW = "The keys have more than doubled"


@dataclass(frozen=True, slots=True)
class ServerStamp:
    """When something was read, and from which run of the server."""

    at_s: float
    """Seconds since the epoch."""
    run_id: str | None
    """None where it is not known."""
    generation: int
    """How often the connection had been made."""

    def outdated(self, server: ServerIdentity, generation: int, now_s: float) -> Outdated | None:
        """Return why the stamped data may be outdated: another run of the server, or another server, answers now.

        It was restarted if it has run for less time than has passed since; where that is not known, it may have been.
        """
        run_id, uptime_s = server.run_id, server.uptime_s
        if generation == self.generation or (run_id is not None and run_id == self.run_id):
            return None
        if run_id is None or self.run_id is None:
            return Outdated.UNSURE
        if uptime_s is not None and uptime_s > now_s - self.at_s + UPTIME_SLACK_S:
            return Outdated.REPLACED
        return Outdated.RESTARTED


def stamp_now(connection: Connection, now_s: float) -> ServerStamp:
    """Stamp what is read from a server at this moment."""
    return ServerStamp(now_s, connection.server.run_id, connection.generation)


def outdated_by_size(listed: int, then: int | None, now: int | None) -> Outdated | None:
    """Return why `listed` keys can't be all any more, by the size of the database when they had been counted and now.

    Both sizes are the server's own and include keys that have expired and still lie there: only their change counts.
    """
    if then is None or now is None:
        return None
    if not now:
        return Outdated.EMPTIED if listed else None
    if abs(now - then) < LEAST_CHANGE and listed:
        return None
    if now * 2 < then:
        return Outdated.SHRANK
    return Outdated.GREW if now > then * 2 else None
