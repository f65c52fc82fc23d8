"""Collecting garbage between frames."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from textual.widget import Widget

from rtui.tui.terminal_app import ENOUGH, OLDER, YOUNG, collect_all, collect_young
from tests.tui.browsing import browsing


class Knot:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def left_alone() -> Iterator[None]:
    """Have nobody else collect meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_many_new_containers_are_collected_and_few_are_not() -> None:
    few = [weakref.ref(Knot()) for _ in range(10)]
    collect_young()
    assert all(one() is not None for one in few)
    many = [weakref.ref(Knot()) for _ in range(YOUNG)]
    collect_young()
    assert all(one() is None for one in (*few, *many))


def test_what_has_become_garbage_later_is_collected_after_some_looks() -> None:
    knots = [Knot() for _ in range(YOUNG)]
    old = [weakref.ref(one) for one in knots]
    collect_young()
    del knots
    collect_young()
    assert all(one() is not None for one in old)
    for _ in range(OLDER + 1):
        held: list[list[object]] = [[] for _ in range(2 * YOUNG)]
        collect_young()
        del held
    assert all(one() is None for one in old)


def test_what_has_stayed_for_long_is_collected_after_many_looks() -> None:
    knots = [Knot() for _ in range(10)]
    old = [weakref.ref(one) for one in knots]
    gc.collect(1)
    del knots
    for _ in range(ENOUGH - 2):
        gc.collect(1)
    collect_all()
    assert all(one() is not None for one in old)
    gc.collect(1)
    collect_all()
    assert all(one() is None for one in old)


async def test_nothing_is_left_of_the_painted_lines_of_a_closed_screen() -> None:
    async with browsing() as user:
        await user.press("question_mark")
        painted = [weakref.ref(widget._styles_cache) for widget in user.pilot.app.screen.walk_children(Widget)]
        await user.press("escape")
        gc.collect()
        assert painted
        assert all(one() is None for one in painted)
