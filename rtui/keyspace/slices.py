"""Long work cut into slices, so that whoever drives it can do something else in between."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

Slices = Generator[None, None, T]
"""Work that pauses after each slice and returns its result at the end."""

Clock = Callable[[], float]
"""Seconds since some moment, never running backwards."""

SLICE_S = 0.003
"""How long a slice works before it pauses; one more chunk may be under way then (about 2 ms)."""


def finish(work: Slices[T]) -> T:
    """Do all slices at once and return the result: for tests, reports and small work."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def only_while(holds: Callable[[], bool], work: Slices[T]) -> Slices[T | None]:
    """Do work as long as a condition holds after each pause; None if it ceased to."""
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
    """Says when a slice is over: `if slicer.over(): yield`."""

    __slots__ = ("_clock", "_deadline", "_slice_s")

    def __init__(self, clock: Clock = perf_counter, slice_s: float = SLICE_S) -> None:
        self._clock = clock
        self._slice_s = slice_s
        self._deadline = clock() + slice_s

    def over(self) -> bool:
        """Whether it is time to pause; the next slice begins now if it is."""
        now = self._clock()
        if now < self._deadline:
            return False
        self._deadline = now + self._slice_s
        return True

    def restart(self) -> None:
        """Begin a slice now: after a pause that took time of its own."""
        self._deadline = self._clock() + self._slice_s
