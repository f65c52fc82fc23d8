"""Ctrl-C and SIGTERM while something runs that can end in order: the first asks it to, the second leaves at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""What is taken for the wish to end."""


class Interrupts:
    """A context manager within a running event loop.

    The first signal calls `stop`; from then on, and after the block, both signals raise KeyboardInterrupt, so that
    whatever has to be cleaned up is.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.stop = stop
        """Asks what runs to end soon; may be replaced by what fits the moment."""
        self.is_asked = False
        """Whether there was a signal."""

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for one in SIGNALS:
            self._loop.add_signal_handler(one, self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    def _first(self) -> None:
        self.is_asked = True
        self._let_go()
        self.stop()

    def _let_go(self) -> None:
        for one in SIGNALS:
            self._loop.remove_signal_handler(one)
            signal.signal(one, signal.default_int_handler)
