"""What is written for this terminal: names and foreign text as safe text, ages, bars."""

from __future__ import annotations

from typing import Final

from rtui.analysis.humanize import SECOND_MS, short_duration
from rtui.keyspace.text.display import Display, SafeText

TERMINAL: Final = Display()
"""How names and foreign text are written on this terminal; the application chooses whether in ASCII only."""

display: Final = TERMINAL.name
"""Show bytes in at most `limit` characters."""

display_text: Final = TERMINAL.text
"""Show foreign text in at most `limit` characters."""

_EIGHTHS: Final = "▏▎▍▌▋▊▉"
_FULL: Final = "█"


FRESH_S: Final = 10
"""Facts of the last so many seconds have no age."""

_MINUTE_S: Final = 60


def ago(age_s: float | None) -> SafeText:
    """Return how long ago something was learned, rounded down: `20s ago`, `5m ago`; nothing while it is fresh."""
    if age_s is None or age_s < FRESH_S:
        return SafeText("")
    step_s = FRESH_S if age_s < _MINUTE_S else _MINUTE_S
    return SafeText(f"{short_duration(int(age_s // step_s * step_s) * SECOND_MS)} ago")


def bar(fraction: float, cells: int) -> tuple[SafeText, SafeText]:
    """Return a bar of `cells` cells in eighths: the filled part and the blank rest."""
    eighths = round(max(0.0, min(1.0, fraction)) * cells * 8)
    whole, part = divmod(eighths, 8)
    filled = _FULL * whole + (_EIGHTHS[part - 1] if part else "")
    return SafeText(filled), SafeText(" " * (cells - len(filled)))
