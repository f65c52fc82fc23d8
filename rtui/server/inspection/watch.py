"""How many questions of unbounded cost may go out at once: few at first, more while they prove cheap, none at last."""

from __future__ import annotations

from typing import Final

CHEAP_S: Final = 0.0005
"""A write that takes the server less than this was cheap: twice as many questions go into the next."""

DEAR_S: Final = 0.002
"""A single question that takes longer than this counts against all others of its kind."""

MOST: Final = 64
"""Questions in one write at most."""

CHANCES: Final = 3
"""So many dear ones, and no more are asked."""


class CostWatch:
    """Follows what the questions of one kind have cost."""

    def __init__(self) -> None:
        self.most = 1
        """Questions that the next write may hold."""
        self._dear = 0

    @property
    def is_over(self) -> bool:
        """Whether none is to be asked any more."""
        return self._dear >= CHANCES

    def took(self, asked: int, seconds: float | None) -> None:
        """Take up how long the server took for so many; None when that was not seen."""
        if seconds is None:
            return
        if seconds < CHEAP_S:
            self.most = min(MOST, max(self.most, 2 * asked))
            return
        self.most = 1
        if asked == 1 and seconds > DEAR_S:
            self._dear += 1
