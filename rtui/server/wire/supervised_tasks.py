"""Work in asyncio tasks of its own, whose exceptions always reach the caller.

An `RtuiError`, which is meant for the user, is passed on unchanged. Any other exception is written to the log of rtui
with its traceback, and becomes an `InternalError`, or, from Polars, an error with its message.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import closing
from typing import Any, Final, TypeVar

from rtui.keyspace.slices import Steps
from rtui.keyspace.text.display import display_text
from rtui.server.wire.errors import InternalError, RtuiError

_A = TypeVar("_A")
_T = TypeVar("_T")

AT_ONCE: Final = 32
"""The nodes of a cluster that are asked the same at the same time: each may need an SSH process of its own."""

LOG: Final = logging.getLogger("rtui")
"""Silent unless a handler is added: without one, Python would write to the terminal of the interface."""

POLARS: Final = frozenset({"polars", "pyo3_runtime"})
"""The packages of Polars' errors, which is not imported here; PanicException is not an Exception."""

LOG.addHandler(logging.NullHandler())


async def failure_of(work: Coroutine[Any, Any, object], *, name: str) -> RtuiError | None:
    """Run work to its end; return its failure, or None. Only cancellation is raised."""
    task = asyncio.create_task(work, name=name)
    # Marks the exception as retrieved, also when the caller is cancelled and nobody is left to look at it.
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
    try:
        await asyncio.wait([task])
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    return None if error is None else as_rtui_error(error, name)


def start_supervised(
    work: Coroutine[Any, Any, object], *, name: str, failed: Callable[[RtuiError], object]
) -> asyncio.Task[None]:
    """Start work in the background, which raises nothing but its cancellation; `failed` gets its failure."""

    async def run() -> None:
        error = await failure_of(work, name=name)
        if error is not None:
            failed(error)

    def close_unstarted(_: asyncio.Task[None]) -> None:
        if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            work.close()

    task = asyncio.create_task(run(), name=name)
    task.add_done_callback(close_unstarted)
    return task


async def for_each(items: Sequence[_A], work: Callable[[_A], Awaitable[_T]]) -> list[_T]:
    """Run `work` for each item, for AT_ONCE of them at a time; return the results in their order.

    The first failure ends all work and is raised. Unlike with `gather`, work does not all begin in one turn of the
    event loop, nor do all replies arrive in one.
    """
    found: dict[int, _T] = {}
    left = iter(enumerate(items))

    async def do_next() -> None:
        for at, item in left:
            found[at] = await work(item)

    workers = [asyncio.create_task(do_next(), name="rtui for each") for _ in range(min(AT_ONCE, len(items)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [found[at] for at in range(len(items))]


class BackgroundTasks:
    """Work that nobody waits for before the end, such as closing an unwanted connection."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all work is done."""
        await asyncio.gather(*self._tasks)


async def end_task(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, if there is one, and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def as_rtui_error(error: BaseException, name: str) -> RtuiError:
    """Return an exception as one that can be shown; an unexpected one is logged. `name` names the failed work."""
    first = _first(error)
    if isinstance(first, RtuiError):
        return first
    LOG.error("%s has ended by an unexpected exception", name, exc_info=first)
    if type(first).__module__.partition(".")[0] in POLARS:
        return RtuiError("The pass has failed", display_text(f"Polars: {first}"))
    return InternalError(first)


def _first(error: BaseException) -> BaseException:
    """Return the exception itself; from a group the first unexpected one, else the first."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [_first(cause) for cause in error.exceptions]
    return next((cause for cause in found if not isinstance(cause, RtuiError)), found[0])


async def in_slices(work: Steps[_T], pause_s: float = 0.0) -> _T:
    """Run work on the event loop, with a pause after each slice, and in a thread where it needs no Python."""
    with closing(work):
        while True:
            try:
                elsewhere = next(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if elsewhere is None:
                await asyncio.sleep(pause_s)
            else:
                await asyncio.to_thread(elsewhere)
