"""Questions about the keys of a scan that travel in the same writes as its SCANs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rtui.server.guard import Command
from rtui.server.lane import Lane
from rtui.server.reply import Reply


class Ride(Protocol):
    """Questions under way in one write; it is answered or missed, once."""

    @property
    def commands(self) -> Sequence[Command]:
        """What to send, at least one."""

    @property
    def keys(self) -> int:
        """How many keys' whole inspection this is worth: the measure of its cost."""

    @property
    def goes_alone(self) -> bool:
        """Whether nothing else may be in the same write, so that its time is its own."""

    def answered(self, replies: Sequence[Reply], round_trip_s: float | None) -> None:
        """Take up the replies; the round trip less an idle one, None when it was not seen in time.

        Raises ServerBusyError when all of it is to be asked again.
        """

    def missed(self) -> None:
        """The connection is gone: ask again on the next."""


class Rider(Protocol):
    """Asks about the keys that one node's scan delivers."""

    @property
    def command_names(self) -> Sequence[str]:
        """What it sends in numbers, as the server's statistics name it, in lower case."""

    @property
    def waiting(self) -> int:
        """Keys for which something is still to be sent."""

    @property
    def key_us(self) -> float:
        """Server time for the whole inspection of a key until it is measured, in µs."""

    async def arrive(self, lane: Lane) -> None:
        """Take it that from now on this lane carries the questions; raises ConnectionLost."""

    def put(self, keys: list[bytes]) -> None:
        """Take up a page of keys."""

    def board(self, most: int) -> Ride | None:
        """Questions about as many keys as `most`, None when there is nothing to ask."""

    def reset(self) -> None:
        """Forget all that waits: the scan begins again."""
