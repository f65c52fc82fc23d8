"""Processes of our own that do a part of the work: starting, reading how they ended, ending.

Each is a new interpreter, since a fork hangs once Polars has threads. It works on two pipes: no password is in its
arguments, in what `/proc` shows of it, or in a file. It ends when its standard input ends, and with the process that
has started it, however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import BinaryIO, Final, NoReturn, TypeAlias

from rtui.server.files import reason_of
from rtui.server.user.ending_signals import ENDING
from rtui.server.wire.errors import RtuiError

Serve: TypeAlias = Callable[[BinaryIO, BinaryIO], None]
"""The work of a process, on its input and output; a function of a module."""

STARTS_WITH: Final = ("PATH", "HOME", "LANG", "LC_", "PYTHON", "LD_", "DYLD_", "TMPDIR")
"""Names, or beginnings of names, of the environment variables that a process starts with."""

PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[4:]; from rtui.server.analysis.worker_process import serve; "
    "serve(int(sys.argv[1]), sys.argv[2], sys.argv[3])"
)
"""The arguments are the id of the parent, the module and name of the function, and the parent's module search path."""

PR_SET_PDEATHSIG: Final = 1


async def started(function: Serve, *, is_quiet: bool = False) -> asyncio.subprocess.Process:
    """Start a process that calls this function; raises an RtuiError where that can't be.

    Its standard error is that of this process, unless it `is_quiet`.
    """
    given = [str(os.getpid()), function.__module__, function.__name__, *sys.path]
    try:
        with signals_blocked():
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", PROGRAM, *given),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL if is_quiet else None,
                env={name: value for name, value in os.environ.items() if name.startswith(STARTS_WITH)},
            )
    except OSError as error:
        raise RtuiError("No worker process", f"No worker process can be started: {reason_of(error)}.") from error


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """Block the signals of a terminal in processes started within the block, until they can ignore them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def ended(process: asyncio.subprocess.Process, *, kills: bool) -> int:
    """Wait for the end of a process, which is imminent unless this `kills` it; return its exit code."""
    if kills and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)  # `process.kill` would take its exit code from the event loop
    return await process.wait()


def how_it_ended(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"has ended with exit code {code}"


def serve(parent_id: int, module: str, name: str) -> NoReturn:
    """Do the work of a process that has just been started, and end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for one in ENDING:  # a terminal sends them to all processes: the parent says what is to end
        signal.signal(one, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if os.getppid() != parent_id:
        os._exit(1)
    function: Serve = getattr(import_module(module), name)
    function(source, sink)
    os._exit(0)
