"""What is written for this terminal: names and foreign text as safe text, ages, bars."""

from __future__ import annotations

from typing import Final

from rtui.analysis.humanize import SECOND_MS, short_duration
from rtui.keyspace.text.display import DISPLAY_LIMIT, Display, SafeText

_UNICODE: Final = Display()
_ASCII: Final = Display(ascii_only=True)
_chosen: list[Display] = [_UNICODE]


def set_ascii_only(*, only: bool) -> None:
    """Choose whether everything is written in ASCII from now on."""
    _chosen[0] = _ASCII if only else _UNICODE


def is_ascii_only() -> bool:
    """Return whether everything is written in ASCII, for drawings whose steps ASCII could not tell apart."""
    return _chosen[0].ascii_only


def display(raw: bytes, *, limit: int = DISPLAY_LIMIT) -> SafeText:
    """Show bytes in at most `limit` characters."""
    return _chosen[0].name(raw, limit=limit)


def display_text(text: str, *, limit: int = DISPLAY_LIMIT) -> SafeText:
    """Show foreign text in at most `limit` characters."""
    return _chosen[0].text(text, limit=limit)


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
