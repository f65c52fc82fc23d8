"""Reads the replies to SCAN and DBSIZE: what they may be is checked here, once for everybody who asks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from rtui.server.errors import ScanRefusedError, ServerBusyError, ServerError
from rtui.server.reply import Reply

_TEMPORARY: Final = frozenset({"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN"})
"""Error replies that pass."""

_CURSOR_DIGITS: Final = 20
"""Most digits of an unsigned number of 64 bits."""

_CURSOR_END: Final = 1 << 64
"""Cursors are below it."""

_NO_PAGE: Final = "What the server answers to SCAN is not a page of keys"


def is_temporary(reply: Reply) -> bool:
    """Whether a reply says that the server can't answer just now."""
    return isinstance(reply, ServerError) and reply.code in _TEMPORARY


def raise_if_busy(replies: Iterable[Reply]) -> None:
    """Raise ServerBusyError when one of the replies says that the server can't answer just now."""
    for reply in replies:
        if isinstance(reply, ServerError) and is_temporary(reply):
            raise ServerBusyError(reply.text)


def scan_page(reply: Reply) -> tuple[int, list[bytes]]:
    """The cursor and the keys of a reply to SCAN; raises ScanRefusedError or ServerBusyError for anything else."""
    raise_if_busy((reply,))
    if isinstance(reply, ServerError):
        raise ScanRefusedError(f"SCAN was refused: {reply.code} {reply.text}")
    if not isinstance(reply, list) or len(reply) != 2:
        raise ScanRefusedError(f"{_NO_PAGE}.")
    cursor, keys = reply
    if not isinstance(cursor, bytes) or not cursor.isdigit() or len(cursor) > _CURSOR_DIGITS:
        raise ScanRefusedError(f"{_NO_PAGE}: its cursor is no number of 64 bits.")
    number = int(cursor)
    if number >= _CURSOR_END:
        raise ScanRefusedError(f"{_NO_PAGE}: its cursor is no number of 64 bits.")
    if not isinstance(keys, list) or not set(map(type, keys)) <= {bytes}:
        raise ScanRefusedError(f"{_NO_PAGE}: its keys are no names.")
    return number, cast("list[bytes]", keys)


def key_count(reply: Reply) -> int | None:
    """The number of keys that a reply to DBSIZE says; None for an error or for what can't be a number of keys."""
    return reply if isinstance(reply, int) and reply >= 0 else None
