"""Pauses before a lost connection is made again, which grow with each failure: exponential backoff with full jitter.

The longest possible pause doubles from 0.25 s to 15 s, and the pause is drawn evenly between 0 and that, so that many
clients of one server do not come back at the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from rtui.server.wire.errors import ConnectFailure, FailureKind, RtuiError

FIRST_PAUSE_S: Final = 0.25
"""The upper limit of the first pause."""

LONGEST_PAUSE_S: Final = 15.0
"""The upper limit of all pauses, so that a returning server is noticed soon."""

LONGEST_LOADING_PAUSE_S: Final = 2.0
"""A server that loads its data reports its progress, so frequent attempts cost nothing and show it."""

LONGEST_REFUSED_PAUSE_S: Final = 120.0
"""A server that refuses the user logs each attempt, and somebody has to change its configuration first."""

REFUSING_USER: Final = frozenset(
    {FailureKind.NOAUTH, FailureKind.WRONGPASS, FailureKind.NOPERM, FailureKind.PROTECTED, FailureKind.DATABASE}
)
"""Failures that another attempt as the same user does not mend."""

HEALTHY_S: Final = 5.0
"""A connection that still brings replies this long after its handshake is healthy: the count of failures restarts."""


def longest_pause_s(reason: RtuiError) -> float:
    """Return the upper limit of the pause after a failure: a loading server is soon back, a refused user seldom."""
    if isinstance(reason, ConnectFailure) and reason.kind.is_temporary:
        return LONGEST_LOADING_PAUSE_S
    if isinstance(reason, ConnectFailure) and reason.kind in REFUSING_USER:
        return LONGEST_REFUSED_PAUSE_S
    return LONGEST_PAUSE_S


def backoff_s(attempt: int, rng: Random, longest_s: float = LONGEST_PAUSE_S) -> float:
    """Draw the pause after failed attempt number `attempt`, from 1 on."""
    return rng.uniform(0.0, min(longest_s, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16)))


class Backoff:
    """Counts the failed attempts at one connection, and draws the pause before the next attempt.

    A successful handshake proves little: the connection may break at the first large reply. Only one that brings
    replies for `healthy_s` seconds resets the count.
    """

    def __init__(self, rng: Random, healthy_s: float = HEALTHY_S) -> None:
        self.failed = 0
        """Attempts in a row without a healthy connection."""
        self._rng = rng
        self._healthy_s = healthy_s

    def ended(self, worked_s: float | None = None) -> None:
        """Count an attempt; `worked_s` is the time from the handshake to the last reply, None without a reply."""
        self.failed = 0 if worked_s is not None and worked_s >= self._healthy_s else self.failed + 1

    def pause_s(self, longest_s: float = LONGEST_PAUSE_S) -> float:
        return backoff_s(max(1, self.failed), self._rng, longest_s)


class Pause:
    """A pause that can be cut short."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._is_skipped = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until `skip` is called."""
        self._is_skipped.clear()
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._is_skipped.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def skip(self) -> None:
        self._is_skipped.set()
