"""Waiting as Pilot does, for what has something to do and not for all of a screen.

Pilot sends each widget a message before it looks, a hundred of them and as many answers: where the rest of a test
presses a few keys, these are most of what widgets do.
"""

from __future__ import annotations

import asyncio
from typing import Any

from textual.app import ScreenError
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout


def is_idle(pump: MessagePump) -> bool:
    """Whether it waits for a message, and none is there."""
    queue: Any = pump._message_queue
    return bool(queue.empty() and any(not waiter.done() for waiter in queue.ready_event._waiters))


async def wait_for_busy(pilot: Pilot[Any], timeout: float = 30.0) -> bool:  # noqa: ASYNC109 -- as in Pilot
    """In place of `Pilot._wait_for_screen`: wait until all messages that are on their way have been taken up.

    Returns False where the application has failed.
    """
    app = pilot.app
    try:
        screen = app.screen
    except ScreenError:
        return False
    left, taken_up = 0, asyncio.Event()

    def count_down() -> None:
        nonlocal left
        left -= 1
        if not left:
            taken_up.set()

    for pump in (app, *screen.walk_children(with_self=True)):
        if not is_idle(pump) and pump.call_later(count_down):
            left += 1
    if left:
        waits = [asyncio.create_task(event.wait()) for event in (taken_up, app._exception_event)]
        done, pending = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if not done:
            raise WaitForScreenTimeout("messages are not taken up")
    return not left and not app._exception_event.is_set()
