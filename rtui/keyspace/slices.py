"""Long work cut into slices, so that the event loop can run in between.

Work is a generator that yields after each slice of some milliseconds and returns its result at the end. Within it, a
`Slicer` measures slices: `yield from slicer.pause()` after each small step pauses at the end of a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

Slices = Generator[None, None, T]
"""Work that pauses after each slice and returns its result at the end."""

Steps = Generator[Callable[[], None] | None, None, T]
"""Work that may yield a function, which may run in another thread and must have returned before the next slice."""

Clock = Callable[[], float]
"""Seconds from an arbitrary start, monotonic."""

SLICE_S = 0.003
"""The length of a slice in seconds; the current step is finished first (about 2 ms)."""


def finish(work: Steps[T]) -> T:
    """Run all slices at once and return the result: for tests, reports and small work."""
    while True:
        try:
            elsewhere = next(work)
            if elsewhere is not None:
                elsewhere()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def elsewhere(work: Steps[T]) -> Steps[T]:
    """Run all slices in another thread; closing this early stops the thread after the current slice."""
    made: list[T] = []
    is_wanted = True

    def make() -> None:
        while is_wanted and not made:
            try:
                step = next(work)
                if step is not None:
                    step()
            except StopIteration as end:
                made.append(end.value)

    try:
        yield make
    finally:
        is_wanted = False
    return made[0]


def only_while(holds: Callable[[], bool], work: Slices[T]) -> Slices[T | None]:
    """Run work as long as a condition holds after each pause; return None once it does not."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        yield
        if not holds():
            work.close()
            return None


class Slicer:
    """Measures slices of work."""

    __slots__ = ("_clock", "_deadline", "_slice_s")

    def __init__(self, clock: Clock = perf_counter, slice_s: float = SLICE_S) -> None:
        self._clock = clock
        self._slice_s = slice_s
        self._deadline = clock() + slice_s

    def pause(self) -> Slices[None]:
        """Pause if the slice is over; the next one begins after the pause."""
        if self._clock() >= self._deadline:
            yield
            self._deadline = self._clock() + self._slice_s
