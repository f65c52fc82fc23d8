"""Work in tasks of its own: whatever ends it is known to whoever started it."""

from __future__ import annotations

import asyncio
import inspect
import logging

import pytest

from rtui.server.wire.errors import ConnectionLost, InternalError, RtuiError
from rtui.server.wire.supervised_tasks import failure_of, start_supervised

HELD = "s3cret"


async def _raise(error: BaseException) -> None:
    raise error


async def test_work_that_ends_well_has_no_failure() -> None:
    assert await failure_of(asyncio.sleep(0), name="work") is None


async def test_a_failure_that_is_meant_for_the_user_is_given_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    lost = ConnectionLost("The server closed the connection.")
    assert await failure_of(_raise(lost), name="work") is lost
    assert await failure_of(_raise(BaseExceptionGroup("", [lost])), name="work") is lost
    assert not caplog.records


async def test_what_nobody_foresaw_is_logged_and_says_where_without_data(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raise(KeyError(HELD)))

    failure = await failure_of(work(), name="work")
    assert isinstance(failure, InternalError)
    assert failure.happened.startswith("a fault of rtui itself (KeyError at test_supervised_tasks.py:")
    assert HELD not in str(failure)
    assert isinstance(failure.__cause__, KeyError)
    assert [record.levelno for record in caplog.records if record.name == "rtui"] == [logging.ERROR]


async def test_cancelled_it_ends_the_work_first() -> None:
    began, cleaned = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    waiting = asyncio.create_task(failure_of(work(), name="work"))
    await began.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cleaned.is_set()


async def test_a_supervised_task_tells_its_failure_and_never_raises() -> None:
    told: list[RtuiError] = []
    await start_supervised(_raise(ValueError()), name="work", failed=told.append)
    assert [type(one.__cause__) for one in told] == [ValueError]
    task = start_supervised(asyncio.Event().wait(), name="work", failed=told.append)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert len(told) == 1


@pytest.mark.filterwarnings("error")
async def test_cancelled_before_it_begins_it_leaves_nothing() -> None:
    told: list[RtuiError] = []
    work = _raise(ValueError())
    task = start_supervised(work, name="work", failed=told.append)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    assert not told
