"""Figures as people read them on the screen: the texts of reports, and bars."""

from __future__ import annotations

from typing import Final

from rtui.analysis.words import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    NOTHING,
    SECOND_MS,
    YEAR_MS,
    Mark,
    count,
    duration,
    estimated,
    power_of_two,
    share,
    short_count,
    short_duration,
    size,
)
from rtui.keyspace.display import SafeText

__all__ = [
    "DAY_MS",
    "HOUR_MS",
    "MINUTE_MS",
    "NOTHING",
    "SECOND_MS",
    "YEAR_MS",
    "Mark",
    "ago",
    "bar",
    "count",
    "duration",
    "estimated",
    "power_of_two",
    "share",
    "short_count",
    "short_duration",
    "size",
]

_EIGHTHS: Final = "▏▎▍▌▋▊▉"
_FULL: Final = "█"


FRESH_S: Final = 10
"""What was learned in the last so many seconds has no age."""

_MINUTE_S: Final = 60


def ago(age_s: float) -> SafeText:
    """Return how long ago something was learned, rounded down: `20s ago`, `5m ago`; nothing while it is fresh."""
    if age_s < FRESH_S:
        return SafeText("")
    step_s = FRESH_S if age_s < _MINUTE_S else _MINUTE_S
    return SafeText(f"{short_duration(int(age_s // step_s * step_s) * SECOND_MS)} ago")


def bar(fraction: float, cells: int) -> tuple[SafeText, SafeText]:
    """Return a bar of `cells` cells in eighths: the filled part and the blank rest."""
    eighths = round(max(0.0, min(1.0, fraction)) * cells * 8)
    whole, part = divmod(eighths, 8)
    filled = _FULL * whole + (_EIGHTHS[part - 1] if part else "")
    return SafeText(filled), SafeText(" " * (cells - len(filled)))
