"""Work that pauses, and what of it is done in another thread."""

from __future__ import annotations

import threading

import pytest

from rtui.keyspace.slices import Steps, elsewhere, finish
from tests.conftest import known


def counting(to: int, seen: list[int]) -> Steps[int]:
    """Note the threads in which each of so many slices is done, and functions that are called in between."""
    for _ in range(to):
        seen.append(threading.get_ident())
        yield None
        yield lambda: seen.append(threading.get_ident())
    return to


def test_work_done_elsewhere_has_the_same_result() -> None:
    seen: list[int] = []
    assert finish(counting(3, seen)) == finish(elsewhere(counting(3, seen))) == 3
    assert seen == [threading.get_ident()] * 12


def test_all_slices_are_done_in_the_thread_that_the_work_is_given_to() -> None:
    seen: list[int] = []
    work = elsewhere(counting(3, seen))
    thread = threading.Thread(target=known(next(work)))
    thread.start()
    thread.join()
    with pytest.raises(StopIteration) as end:
        next(work)
    assert (end.value.value, len(seen)) == (3, 6)
    assert threading.get_ident() not in seen


def test_closing_stops_the_work_after_the_slice_under_way() -> None:
    def work() -> Steps[None]:
        while True:
            slices.append(len(slices))
            if len(slices) == 3:
                whole.close()
            yield None

    slices: list[int] = []
    whole = elsewhere(work())
    known(next(whole))()
    assert slices == [0, 1, 2]


def test_a_failure_elsewhere_is_raised_there() -> None:
    def work() -> Steps[None]:
        yield None
        raise MemoryError

    with pytest.raises(MemoryError):
        finish(elsewhere(work()))
