"""Whether data read from a server still holds: it may have restarted, or another server may answer now."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rtui.server.wire.identity import ServerIdentity

LEAST_CHANGE: Final = 10
"""A database that has gained or lost fewer keys than this counts as the same."""

UPTIME_SLACK_S: Final = 2.0
"""Servers count their uptime in whole seconds, from a start time that is rounded as well."""


class Outdated(Enum):
    """The reasons why data does not hold any more, each as a sentence without a full stop."""

    RESTARTED = "The server was restarted"
    REPLACED = "Another server answers now"
    UNSURE = "The server may have been restarted"
    EMPTIED = "The database was emptied"
    SHRANK = "More than half of the keys are gone"
    GREW = "The keys have more than doubled"


@dataclass(frozen=True, slots=True)
class ServerStamp:
    """The time and the run of the server when data was read."""

    at_s: float
    """Seconds since the epoch."""
    run_id: str | None
    """None if it is unknown."""
    generation: int
    """The generation of the connection."""

    def outdated(self, server: ServerIdentity, generation: int, now_s: float) -> Outdated | None:
        """Return why the stamped data may be outdated: the server has restarted, or another one answers now.

        It has restarted if its uptime is less than the time since; if that is unknown, it may have.
        """
        run_id, uptime_s = server.run_id, server.uptime_s
        if generation == self.generation or (run_id is not None and run_id == self.run_id):
            return None
        if run_id is None or self.run_id is None:
            return Outdated.UNSURE
        if uptime_s is not None and uptime_s > now_s - self.at_s + UPTIME_SLACK_S:
            return Outdated.REPLACED
        return Outdated.RESTARTED


def outdated_by_size(listed: int, then: int | None, now: int | None) -> Outdated | None:
    """Return why `listed` keys can't be complete any more, by the sizes of the database at the count and now.

    Both sizes are the server's own and include expired keys that are not deleted yet: only their change counts.
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
