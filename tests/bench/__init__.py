"""Measurements beside peers: `python -m tests.bench.run`; a row is one line of their table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, the figure here, the peer's beside it, their ratio and what was to be reached; all as text."""

    what: str
    here: str
    beside: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None
    """Whether the goal was reached; None where there is none."""

    def as_json(self) -> dict[str, Any]:
        """For the way from one process to another."""
        return asdict(self)

    def as_markdown(self) -> str:
        """A line of the table."""
        verdict = {True: "yes", False: "**no**", None: ""}[self.met]
        return f"| {self.what} | {self.here} | {self.beside} | {self.ratio} | {self.goal} | {verdict} |"


def time_row(what: str, seconds: Sequence[float], goal_s: float, beside: str = "") -> Row:
    """A line of several measurements of one time, of which the median has to stay within a goal."""
    median = statistics.median(seconds)
    return Row(what, in_ms(median), beside, "", f"≤ {in_ms(goal_s)}", median <= goal_s)


def in_ms(seconds: float) -> str:
    """A time as text, with as many digits as mean something."""
    return f"{seconds * 1000:.1f} ms" if seconds < 0.02 else f"{seconds * 1000:.0f} ms"


HEADER = "| what | rtui | beside it | ratio | goal | reached |\n|---|---|---|---|---|---|"
"""The head of the table that rows make."""
