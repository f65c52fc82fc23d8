"""Runs work in tasks of its own so that no exception is lost: whoever started it is told why it ended.

What is meant for the user (`RtuiError`) is passed on as it is. What nobody foresaw becomes an `InternalError` and is
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
"""Silent unless a handler is added: without one of its own, Python would write to the terminal that is drawn on."""

LOG.addHandler(logging.NullHandler())


async def ended(work: Coroutine[Any, Any, object], *, name: str) -> RtuiError | None:
    """Run work to its end; return why it failed, None when it did not. Only cancellation is raised."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_retrieve)
    try:
        await asyncio.wait([task])
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    if task.cancelled():
        return foreseen(asyncio.CancelledError(), name)
    error = task.exception()
    return None if error is None else foreseen(error, name)


def supervised(
    work: Coroutine[Any, Any, object], *, name: str, failed: Callable[[RtuiError], object]
) -> asyncio.Task[None]:
    """Start work that runs beside everything else; `failed` is called with the reason when it ends by an exception.

    The task itself never raises, so that it may be awaited by whoever ends it.
    """

    async def run() -> None:
        error = await ended(work, name=name)
        if error is not None:
            failed(error)

    task = asyncio.create_task(run(), name=name)
    task.add_done_callback(lambda _: _close_unbegun(work))
    return task


def _close_unbegun(work: Coroutine[Any, Any, object]) -> None:
    """Close work whose task was cancelled before its first step."""
    if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
        work.close()


def foreseen(error: BaseException, name: str) -> RtuiError:
    """Return an exception as one that can be shown; one that nobody foresaw is logged."""
    first = _first(error)
    if isinstance(first, RtuiError):
        return first
    LOG.error("%s has ended by an exception that nobody foresaw", name, exc_info=first)
    return InternalError(first)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take the exception of a task that nobody may be left to take, since whoever waited for it was cancelled."""
    if not task.cancelled():
        task.exception()


def _first(error: BaseException) -> BaseException:
    """The exception itself, or of a group one that nobody foresaw, else its first one."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [_first(one) for one in error.exceptions]
    return next((one for one in found if not isinstance(one, RtuiError)), found[0])
