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
    "bar",
    "count",
    "duration",
    "power_of_two",
    "share",
    "short_count",
    "short_duration",
    "size",
]

_EIGHTHS: Final = "▏▎▍▌▋▊▉"
_FULL: Final = "█"


def bar(fraction: float, cells: int) -> tuple[SafeText, SafeText]:
    """Return a bar of `cells` cells in eighths: the filled part and the blank rest."""
    eighths = round(max(0.0, min(1.0, fraction)) * cells * 8)
    whole, part = divmod(eighths, 8)
    filled = _FULL * whole + (_EIGHTHS[part - 1] if part else "")
    return SafeText(filled), SafeText(" " * (cells - len(filled)))
