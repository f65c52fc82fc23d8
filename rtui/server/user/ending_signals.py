"""The signals that end rtui, and its exit status after one: 128 and the number of the signal, as shells have it.

Python ends by itself at most of them, without cleaning up: files stay half written, the terminal stays in the state of
the interface. Here they raise `EndedBySignal` wherever the program is; event loops handle the first one in order.
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
"""What Ctrl-C, a supervisor, a terminal that hangs up and Ctrl-\\ send."""

_MAY_BE_IGNORED: Final = frozenset({signal.SIGHUP, signal.SIGQUIT})
"""Those that stay ignored where whoever starts rtui ignores them, as nohup does."""

_STANDARD_STREAMS: Final = (0, 1, 2)


class EndedBySignal(KeyboardInterrupt):
    """A signal has come that ends rtui."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)
        self.exit_status = exit_status(number)


def exit_status(number: int) -> int:
    """Return the exit status of a process that a signal has ended: 130 for SIGINT."""
    return 128 + number


def heeded() -> tuple[signal.Signals, ...]:
    """Return the signals that end this process: all but those that it was started to ignore."""
    return tuple(one for one in ENDING if one not in _MAY_BE_IGNORED or signal.getsignal(one) is not signal.SIG_IGN)


def raise_at_once(*signals: signal.Signals) -> None:
    """Have signals raise EndedBySignal; SIGINT as Python has it, of which asyncio makes a cancelled task."""
    for one in signals:
        signal.signal(one, signal.default_int_handler if one is signal.SIGINT else _raise)


def _raise(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        hang_up()
    raise EndedBySignal(number)


@contextmanager
def keys_for_others() -> Iterator[None]:
    """Leave Ctrl-C and Ctrl-\\ to a program that has the terminal: they are sent to rtui, too. For the main thread."""
    keys = (signal.SIGINT, signal.SIGQUIT)
    before = {one: signal.signal(one, lambda *_: None) for one in keys}
    wakeup = signal.set_wakeup_fd(-1)  # by which an event loop learns of them
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for one, handler in before.items():
            signal.signal(one, handler)


def hang_up() -> None:
    """Ignore further SIGHUP, of which the kernel sends one and the shell another, and leave a terminal that is gone.

    What is written to it from now on is dropped, where it would be an error.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in _STANDARD_STREAMS:
        if _is_gone(stream):
            os.dup2(nothing, stream)
    os.close(nothing)


def _is_gone(stream: int) -> bool:
    """Whether a file descriptor is a terminal that has hung up."""
    try:
        termios.tcgetattr(stream)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False
