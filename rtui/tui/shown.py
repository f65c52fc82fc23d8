"""How bytes and foreign text are written on this terminal: the door of `keyspace.display`, opened once at the start."""

from __future__ import annotations

from typing import Final

from rtui.keyspace.display import DISPLAY_LIMIT, Display, SafeText

_UNICODE: Final = Display()
_ASCII: Final = Display(ascii_only=True)
_chosen: list[Display] = [_UNICODE]


def choose_ascii(*, only: bool) -> None:
    """Write everything in ASCII from now on, or not."""
    _chosen[0] = _ASCII if only else _UNICODE


def in_ascii() -> bool:
    """Tell whether everything is written in ASCII, for drawings whose steps the net could not keep apart."""
    return _chosen[0].ascii_only


def display(raw: bytes, *, limit: int = DISPLAY_LIMIT) -> SafeText:
    """Show bytes in at most `limit` characters."""
    return _chosen[0].name(raw, limit=limit)


def display_text(text: str, *, limit: int = DISPLAY_LIMIT) -> SafeText:
    """Show foreign text in at most `limit` characters."""
    return _chosen[0].text(text, limit=limit)
