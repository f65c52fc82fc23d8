"""What the interface keeps of names: bounded in bytes, however long the names are."""

from __future__ import annotations

import tracemalloc
from sys import getrefcount

import pytest
from rich.style import Style
from textual.widget import Widget

from rtui.analysis.facts import NO_TTL, RowFacts
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.row_facts import KEPT_NAME_BYTES, RowFactsCache
from rtui.tui.kit.line_view import Painter
from rtui.tui.kit.styled_text import Span
from tests.tui.browsing import browsing
from tests.tui.fixed_session import COMPLETE, FixedSession

NAMES = 300
SIZES = pytest.mark.parametrize("size", [1 << 16, 1 << 20])


@SIZES
def test_facts_of_long_names_are_kept_up_to_their_bytes(size: int) -> None:
    cache = RowFactsCache(lambda: 1.0)
    tracemalloc.start()
    try:
        for number in range(NAMES):
            cache.put([RowFacts(b"%0*d" % (size, number), b"string", 60_000, 64, 1.0)])
            assert cache.get(b"%0*d" % (size, number)) is not None
        cache.invalidate()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < KEPT_NAME_BYTES + (1 << 20)
    kept = KEPT_NAME_BYTES // size
    assert cache.get(b"%0*d" % (size, NAMES - kept)) is not None
    assert cache.get(b"%0*d" % (size, NAMES - kept - 1)) is None


def test_facts_that_are_put_again_or_forgotten_take_no_room() -> None:
    cache = RowFactsCache(lambda: 1.0)
    size = KEPT_NAME_BYTES // 4
    names = [b"%d" % number * size for number in range(4)]
    for _ in range(3):
        cache.put([RowFacts(name, b"string", NO_TTL, 64, 1.0) for name in names])
    cache.forget(names[0])
    cache.put([RowFacts(names[0], b"string", NO_TTL, 64, 1.0)])
    assert all(cache.get(name) is not None for name in names)
    cache.forget()
    cache.put([RowFacts(name, b"string", NO_TTL, 64, 1.0) for name in names])
    assert all(cache.get(name) is not None for name in names)


@SIZES
async def test_what_rows_of_long_names_say_is_not_kept(size: int) -> None:
    names = [b"%0*d" % (size, number) for number in range(NAMES if size < 1 << 20 else 40)]
    async with browsing(FixedSession(COMPLETE, names)) as user:
        tree = user.screen.tree_pane.key_tree
        assert tree.rows is not None
        listed = tree.rows.window(0, len(names))
        before = [getrefcount(row.name) for row in listed]
        said = [tree.line_at(number) is not None for number in range(len(names))]
        held = [len(row.name) for row, was in zip(listed, before, strict=True) if getrefcount(row.name) > was]
    assert len(listed) == len(names)
    assert all(said)
    assert sum(held) < 4 << 20


@SIZES
def test_painted_lines_that_are_long_are_not_kept(size: int) -> None:
    painter = Painter(Widget())
    tracemalloc.start()
    try:
        for number in range(40):
            painter.paint((Span(SafeText(f"{number:0{size}}")),), Style(), is_plain=True, width=80)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 2 << 20
