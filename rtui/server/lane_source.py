"""Who gives a lane for many questions, as far as those know who ask them."""

from __future__ import annotations

from typing import Protocol

from rtui.server.lane import Lane


class LaneSource(Protocol):
    """What asking in bulk needs of a connection."""

    async def bulk(self) -> Lane:
        """A ready lane; waits while there is none."""


class BulkSource(LaneSource, Protocol):
    """What a scan needs besides: to know whether the server that it goes on with is still the same run."""

    @property
    def run_id(self) -> str | None:
        """The server's name for this run of it, if it tells."""
