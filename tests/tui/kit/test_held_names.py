"""What the interface keeps of names, when garbage is collected, and the private names of Textual it relies on."""

from __future__ import annotations

import ast
import gc
import inspect
import tracemalloc
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from sys import getrefcount

import pytest
import textual
from rich.style import Style
from textual.widget import Widget

import rtui.tui
from rtui.analysis.facts import NO_TTL, RowFacts
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.row_facts import KEPT_NAME_BYTES, RowFactsCache
from rtui.tui.kit.line_view import Painter
from rtui.tui.kit.styled_text import Span
from rtui.tui.kit.terminal import CHECKED_VERSION, OVERRIDDEN, USED, PrivateName
from rtui.tui.terminal_app import ENOUGH, OLDER, YOUNG, collect_all, collect_young
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


FOLDER = Path(rtui.tui.__file__).parent
OWNERS = {private.owner for private in (*OVERRIDDEN, *USED)}


@cache
def trees() -> list[ast.Module]:
    """The interface, parsed."""
    return [ast.parse(path.read_text()) for path in FOLDER.rglob("*.py")]


source_of = cache(inspect.getsource)


def test_the_names_were_checked_on_the_version_that_is_installed() -> None:
    assert textual.__version__ == CHECKED_VERSION


@pytest.mark.parametrize(
    "private", [*OVERRIDDEN, *USED], ids=lambda private: f"{private.owner.__name__}.{private.name}"
)
def test_textual_still_has_the_name(private: PrivateName) -> None:
    sources = [source_of(base) for base in private.owner.__mro__ if base.__module__.startswith("textual")]
    is_set = any(f"self.{private.name}" in source for source in sources)
    assert hasattr(private.owner, private.name) or is_set, private.reason


def test_every_private_name_that_is_used_is_listed() -> None:
    nodes = [node for tree in trees() for node in ast.walk(tree)]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_private(node.attr)}
    ours = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    ours |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    ours |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    listed = {private.name for private in (*OVERRIDDEN, *USED)}
    assert used - ours - listed == set()
    assert listed - used - ours == set()


def test_every_private_method_that_hides_one_of_textual_is_listed() -> None:
    hidden = {
        name
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.bases
        for name in (one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        if is_private(name) and any(hasattr(owner, name) for owner in OWNERS)
    }
    assert hidden == {private.name for private in OVERRIDDEN}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
