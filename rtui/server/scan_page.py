"""Reads the reply to a SCAN."""

from __future__ import annotations

from typing import Final

from rtui.keyspace.display import SafeText
from rtui.server.errors import ServerError
from rtui.server.reply import Reply

_TEMPORARY: Final = frozenset({"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN"})
"""Error replies that pass."""


class ScanRefusedError(Exception):
    """The server answered a SCAN with an error that stays, or with something that is no page; safe to show."""

    def __init__(self, reason: SafeText) -> None:
        super().__init__(reason)
        self.reason = reason


class ServerBusyError(Exception):
    """The server can't answer just now; safe to show."""

    def __init__(self, reason: SafeText) -> None:
        super().__init__(reason)
        self.reason = reason


def raise_if_busy(reply: Reply) -> None:
    """Raise ServerBusyError when a reply says that the server can't answer just now."""
    if isinstance(reply, ServerError) and reply.code in _TEMPORARY:
        raise ServerBusyError(reply.text)


def scan_page(reply: Reply) -> tuple[int, list[bytes]]:
    """The cursor and the keys of a reply to SCAN; raises ScanRefusedError or ServerBusyError for anything else."""
    raise_if_busy(reply)
    if isinstance(reply, ServerError):
        raise ScanRefusedError(SafeText(f"SCAN was refused: {reply.code} {reply.text}"))
    if isinstance(reply, list) and len(reply) == 2:
        cursor, keys = reply
        if isinstance(cursor, bytes) and cursor.isdigit() and isinstance(keys, list):
            return int(cursor), keys  # type: ignore[return-value]
    raise ScanRefusedError(SafeText("What the server answers to SCAN is not a page of keys."))
