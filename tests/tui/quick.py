"""What tests of the interface need not do: parse the same style sheets again, ask all widgets, and wait for time.

Pilot sends each widget a message before it looks, a hundred of them and as many answers: where the rest of a test
presses a few keys, these are most of what widgets do. And it sleeps twice 20 ms or more after each key: most of
its time. A pause is as long as ever.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import pytest
from textual.app import ScreenError
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout

SOON_S: Final = 0.02
"""Timers that are due in this time are waited for: repaints, and what rests for a moment."""

LOOK_S: Final = 0.001
"""How often threads and workers are looked at."""

GRACE_S: Final = 0.005
"""When all is at rest so much longer is waited, for sockets."""

LOOKS: Final = 2
"""At so many looks in a row nothing is to be done: what sockets bring is ready at the second one."""

PARSED: Final[LRUCache[tuple[object, ...], list[RuleSet]]] = LRUCache(2_000)
"""The rules of each source under each set of variables; nothing changes rules once they are parsed."""

_parse_rules = Stylesheet._parse_rules


def quicken(patch: pytest.MonkeyPatch) -> None:
    """Have applications of this process do without all that."""
    patch.setattr(Stylesheet, "_parse_rules", parse_once)
    patch.setattr(Pilot, "_wait_for_screen", wait_for_busy)
    patch.setattr("textual.app.wait_for_idle", wait_for_rest)
    patch.setattr("rtui.tui.browse.detail_fetcher.REST_S", 0.001)
    patch.setattr("rtui.tui.browse.tree_pane.FACTS_REST_S", 0.001)


def parse_once(sheet: Stylesheet, css: str, *args: Any, **options: Any) -> list[RuleSet]:
    """In place of `Stylesheet._parse_rules`: parse what no application has parsed yet with the same variables."""
    key = (css, args, tuple(options.items()), tuple(sheet._variables.items()))
    rules = PARSED.get(key)
    if rules is None:
        PARSED[key] = rules = _parse_rules(sheet, css, *args, **options)
    return rules


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


async def wait_for_rest(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """In place of Textual's `wait_for_idle`: wait until nothing is to be done now or soon, by the loop or its threads.

    Workers may run for as long as their screen is there, so they are waited for no longer than Textual waits. What
    comes from elsewhere has `GRACE_S` to come.
    """
    loop: Any = asyncio.get_running_loop()
    end_s, patience_s = time.monotonic() + max_sleep, SOON_S
    looks, is_granted = 0, False
    while time.monotonic() < end_s:
        await asyncio.sleep(0)
        looks = 0 if loop._ready else looks + 1
        due_s = min((timer._when for timer in loop._scheduled if not timer._cancelled), default=1e9) - loop.time()
        if looks and due_s < SOON_S:
            looks, pause_s = 0, max(due_s, 0.0)
        elif looks and (is_working(loop) or (patience_s > 0.0 and has_worker())):
            looks, pause_s = 0, LOOK_S
        elif looks >= LOOKS and not is_granted:
            looks, pause_s, is_granted = 0, GRACE_S, True
        elif looks >= LOOKS:
            return
        else:
            continue
        patience_s -= pause_s
        await asyncio.sleep(pause_s)


def is_working(loop: Any) -> bool:
    """Whether a thread of the loop does something."""
    pool = loop._default_executor
    return pool is not None and (not pool._work_queue.empty() or pool._idle_semaphore._value < len(pool._threads))


def has_worker() -> bool:
    """Whether a worker of Textual is under way."""
    return any(task.get_coro().__qualname__ == "Worker._run" for task in asyncio.all_tasks())  # type: ignore[union-attr]
