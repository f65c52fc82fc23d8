"""For how long callbacks hold the event loop, in processor's time: other work on the machine does not change that.

What a callback is called is read off its task: where that has come to when the callback is over. A hold that is worth
a closer look is traced: a thread looks every half millisecond where the one of the loop is, once its callback has taken
`TRACED_S`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

TRACED_S: Final = float(os.environ.get("RTUI_BENCH_TRACED_MS", "6")) / 1000
"""Callbacks that take longer are traced, where any are."""

LOOK_S: Final = 0.0005
"""How often it is looked where they are."""

INNER_FRAMES: Final = 14
"""Of each place so many frames are shown."""

_run = asyncio.Handle._run


@dataclass(slots=True)
class Hold:
    cpu_s: float
    what: str
    collected_s: float
    """How much of it was the garbage collector's."""
    stacks: Counter[tuple[str, ...]]
    """Where it was, by how often it was seen there; nothing unless it was traced."""

    @property
    def text(self) -> str:
        """Its length and where it ended, with the places where it was seen."""
        lines = [f"{self.cpu_s * 1000:6.1f} ms  {self.what}"]
        if self.collected_s > 0.0005:
            lines[0] += f"  (garbage collection {self.collected_s * 1000:.1f} ms)"
        for stack, times in self.stacks.most_common(4):
            lines.append(f"    seen {times} ×: " + " → ".join(stack))
        return "\n".join(lines)


@dataclass(slots=True)
class Holds:
    """The callbacks of the loop's thread since it was asked to look."""

    is_traced: bool = False
    holds: list[Hold] = field(default_factory=list)
    """Those that took longer than a millisecond."""
    callbacks: int = 0
    cpu_s: float = 0.0
    collected_s: float = 0.0
    longest_collection_s: float = 0.0
    collections: Counter[int] = field(default_factory=Counter)
    """How often garbage was collected, by generation."""
    _thread: int = 0
    _began_s: float | None = None
    """On the clock of the thread's processor time; None between callbacks."""
    _stacks: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _collecting_s: float = 0.0
    _is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def longest_s(self) -> float:
        """The processor's time of the longest one."""
        return max((hold.cpu_s for hold in self.holds), default=0.0)

    def longest(self, most: int = 10) -> list[Hold]:
        return nlargest(most, self.holds, key=lambda hold: hold.cpu_s)

    def clear(self) -> None:
        self.holds, self.callbacks, self.cpu_s, self.collected_s, self.longest_collection_s = [], 0, 0.0, 0.0, 0.0
        self.collections.clear()

    def begin(self) -> None:
        self._thread = threading.get_ident()
        gc.callbacks.append(self._collected)
        asyncio.Handle._run = self._timed()  # type: ignore[method-assign, assignment]
        if self.is_traced:
            threading.Thread(target=self._trace, name="tracer", daemon=True).start()

    def end(self) -> None:
        self._is_over.set()
        asyncio.Handle._run = _run  # type: ignore[method-assign]
        gc.callbacks.remove(self._collected)

    def _timed(self) -> Callable[[asyncio.Handle], None]:
        thread, clock = self._thread, time.thread_time

        def run(handle: asyncio.Handle) -> None:
            if threading.get_ident() != thread:
                _run(handle)
                return
            callback = handle._callback  # type: ignore[attr-defined]
            collected_s = self.collected_s
            self._began_s = began_s = clock()
            _run(handle)
            self._began_s, took_s = None, clock() - began_s
            self.callbacks += 1
            self.cpu_s += took_s
            if took_s > 0.001:
                stacks, self._stacks = self._stacks, Counter()
                self.holds.append(Hold(took_s, _what(callback), self.collected_s - collected_s, stacks))
            elif self._stacks:
                self._stacks = Counter()

        return run

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting_s = time.thread_time()
        else:
            took_s = time.thread_time() - self._collecting_s
            self.collected_s += took_s
            self.collections[info["generation"]] += 1
            self.longest_collection_s = max(self.longest_collection_s, took_s)

    def _trace(self) -> None:
        clock = time.pthread_getcpuclockid(self._thread)
        while not self._is_over.wait(LOOK_S):
            began_s = self._began_s
            if began_s is None or time.clock_gettime(clock) - began_s < TRACED_S:
                continue
            frame = sys._current_frames().get(self._thread)
            if frame is not None and self._began_s == began_s:
                self._stacks[_places(frame)] += 1


def _places(frame: FrameType | None) -> tuple[str, ...]:
    """Return where a thread is, the innermost frame last."""
    found: list[str] = []
    while frame is not None and len(found) < INNER_FRAMES:
        found.append(_place(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(reversed(found))


def _place(code: CodeType, line: int) -> str:
    return f"{Path(code.co_filename).stem}:{line} {code.co_qualname}"


def _what(callback: Any) -> str:
    """Return what a callback belongs to: its task and where that waits now, or the name of a function."""
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return str(getattr(callback, "__qualname__", callback))
    coroutine: Any = task.get_coro()
    names = []
    while coroutine is not None and hasattr(coroutine, "cr_code"):
        frame = coroutine.cr_frame
        names.append(coroutine.cr_code.co_qualname if frame is None else _place(frame.f_code, frame.f_lineno))
        coroutine = coroutine.cr_await
    return f"{task.get_name()}: {' → '.join(names[-4:])}"


@contextmanager
def held(*, is_traced: bool = False) -> Iterator[Holds]:
    """Look at the callbacks of this thread's loop for the time of the block."""
    found = Holds(is_traced)
    found.begin()
    try:
        yield found
    finally:
        found.end()
