"""How many questions of unbounded cost may go out at once: few at first, more while they prove cheap, none at last."""

from __future__ import annotations

from typing import Final

from rtui.server.guard.evidence import most_watched
from rtui.server.reply import Reply
from rtui.server.server_clock import ServerClock

WATCHED: Final = ("memory|usage",)
"""What is watched, as the server's statistics name it."""

CHEAP_S: Final = 0.0005
"""A write that takes the server less than this was cheap: twice as many questions go into the next."""

DEAR_S: Final = 0.002
"""A single question that takes longer than this counts against all others of its kind."""

CHANCES: Final = 3
"""So many dear ones, and no more are asked."""


class CostWatch:
    """Follows what the questions of one kind have cost."""

    def __init__(self) -> None:
        self.proved = 0
        """Questions of one write that was cheap, since the last one that was not."""
        self.asks_clock = True
        """Whether the server is asked for its own time, so that a slow link is not taken for a dear question."""
        self.is_suspicious = False
        """Whether a round trip took so long that the server's own time is wanted next time."""
        self._dear = 0

    @property
    def most(self) -> int:
        """Questions that the next write may hold."""
        return most_watched(self.proved)

    @property
    def is_over(self) -> bool:
        """Whether none is to be asked any more."""
        return self._dear >= CHANCES

    def clocked(self, before: Reply, after: Reply, asked: int) -> float | None:
        """Seconds that the server says it took for so many questions, by its statistics before and after them."""
        clock = ServerClock(WATCHED)
        if not (isinstance(before, bytes) and isinstance(after, bytes)):
            self.asks_clock = False
            return None
        clock.said(before, 0)
        spent_us = clock.said(after, asked)
        return spent_us / 1e6 if spent_us else None

    def took_trip(self, seconds: float) -> None:
        """Take up how much longer than others a round trip with one question took.

        A slow one counts only where the server does not tell its own time; else that is asked for from now on.
        """
        if not self.asks_clock:
            self.took(1, max(0.0, seconds))
        elif seconds > DEAR_S:
            self.is_suspicious = True

    def took(self, asked: int, seconds: float | None) -> None:
        """Take up how long the server took for so many; None when that was not seen."""
        if seconds is None:
            return
        if seconds < CHEAP_S:
            self.proved = max(self.proved, asked)
            return
        self.proved = 0
        if asked == 1 and seconds > DEAR_S:
            self._dear += 1
