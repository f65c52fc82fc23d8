"""The signals that end rtui, and its exit status after one: 128 + the signal's number, as in shells.

By default most of them end Python without cleanup: files stay half written, and the terminal stays in the state of the
interface. Here they raise `EndedBySignal` wherever the program is; event loops handle the first one in order.
"""

from __future__ import annotations

import errno
import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
r"""Sent by Ctrl-C, a supervisor, a terminal that hangs up, and Ctrl-\\ respectively."""

_MAY_BE_IGNORED: Final = frozenset({signal.SIGHUP, signal.SIGQUIT})
"""Signals that stay ignored if rtui is started with them ignored, as by nohup."""

_STANDARD_STREAMS: Final = (0, 1, 2)


class EndedBySignal(KeyboardInterrupt):
    """Raised by a signal that ends rtui."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)
        self.exit_status = exit_status(number)


def exit_status(number: int) -> int:
    """Return the exit status of a process ended by a signal: 130 for SIGINT."""
    return 128 + number


def heeded() -> tuple[signal.Signals, ...]:
    """Return the signals that end this process: all but those ignored when it was started."""
    return tuple(one for one in ENDING if one not in _MAY_BE_IGNORED or signal.getsignal(one) is not signal.SIG_IGN)


def raise_at_once(*signals: signal.Signals) -> None:
    """Make signals raise EndedBySignal; SIGINT gets Python's own handler, which asyncio turns into a cancelled task."""
    for number in signals:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else _raise)


def _raise(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        hang_up()
    raise EndedBySignal(number)


@contextmanager
def keys_for_others() -> Iterator[None]:
    """Ignore SIGINT and SIGQUIT while another program has the terminal: rtui gets them, too. Main thread only."""
    keys = (signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.signal(number, lambda *_: None) for number in keys}
    wakeup = signal.set_wakeup_fd(-1)  # by which an event loop learns of them
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for one, handler in before.items():
            signal.signal(one, handler)


def hang_up() -> None:
    """Ignore further SIGHUPs, of which kernel and shell each send one, and let go of a terminal that has hung up.

    Output to it is dropped from now on instead of raising an error.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in _STANDARD_STREAMS:
        if _is_gone(stream):
            os.dup2(nothing, stream)
    os.close(nothing)


def _is_gone(stream: int) -> bool:
    try:
        termios.tcgetattr(stream)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False
