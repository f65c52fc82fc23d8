"""Drives work that is cut into slices, leaving the loop to the keyboard and the screen in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from rtui.keyspace.slices import Slices

T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, None]]
"""Something to do; a coroutine comes of it when it begins, so none is left over from what is cancelled before."""

PAUSE_S: Final = 0.001
"""A real pause between slices: yielding without one would make a keypress wait for ten slices."""


async def drive(work: Slices[T], between: Callable[[], None] | None = None) -> T:
    """Do all slices and return the result; `between` is called after each pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        await asyncio.sleep(PAUSE_S)
        if between is not None:
            between()
