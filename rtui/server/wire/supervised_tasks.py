"""Work in asyncio tasks of its own, whose exceptions always reach the caller.

What is meant for the user (`RtuiError`) is passed on as it is. Any other exception becomes an `InternalError` and is
written to the log of rtui with its traceback.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from rtui.server.wire.errors import InternalError, RtuiError

LOG: Final = logging.getLogger("rtui")
"""Silent unless a handler is added: without one of its own, Python would write to the terminal of the interface."""

LOG.addHandler(logging.NullHandler())


async def failure_of(work: Coroutine[Any, Any, object], *, name: str) -> RtuiError | None:
    """Run work to its end; return why it failed, None when it did not. Only cancellation is raised."""
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
    """Start work in the background, which raises nothing but its cancellation; `failed` is told why it ended."""

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


async def end_task(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, if there is one, and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def as_rtui_error(error: BaseException, name: str) -> RtuiError:
    """Return an exception as one that can be shown; an unexpected one is logged. `name` says what has failed."""
    first = _first(error)
    if isinstance(first, RtuiError):
        return first
    LOG.error("%s has ended by an unexpected exception", name, exc_info=first)
    return InternalError(first)


def _first(error: BaseException) -> BaseException:
    """Return the exception itself, or of a group the first unexpected one, else its first one."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [_first(one) for one in error.exceptions]
    return next((one for one in found if not isinstance(one, RtuiError)), found[0])
