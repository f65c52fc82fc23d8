"""Replies to SCAN and DBSIZE, checked against what they may be; and what a scan filters by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, cast

from rtui.keyspace.text.glob import Matcher, check_pattern
from rtui.server import guard
from rtui.server.wire.errors import ScanRefusedError, ServerBusyError
from rtui.server.wire.replies import Reply, ServerError

_TEMPORARY: Final = frozenset({"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN"})
"""Codes of errors that are temporary."""

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
    """Return cursor and keys of a reply to SCAN; raises ScanRefusedError or ServerBusyError for anything else."""
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
    """Return the number of keys of a reply to DBSIZE; None for an error or for what can't be a number of keys."""
    return reply if isinstance(reply, int) and reply >= 0 else None


@dataclass(frozen=True, slots=True)
class ScanFilter:
    """MATCH and TYPE of a scan; raises PatternError or GuardError beyond the bounds of what may be sent."""

    match: bytes | None = None
    key_type: bytes | None = None

    def __post_init__(self) -> None:
        if self.match is not None:
            check_pattern(self.match)
        guard.scan(0, count=1, match=self.match, key_type=self.key_type)

    @property
    def is_open(self) -> bool:
        """Whether every key passes."""
        return self.match is None and self.key_type is None

    def names(self) -> Callable[[bytes], bool] | None:
        """Return a function that tests names like MATCH does, where MATCH is used otherwise; None if all names pass."""
        return None if self.match is None else Matcher(self.match)
