"""The details of a namespace: its head, its biggest keys, patterns and children, counted and counted again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Known, Mark
from rtui.analysis.query.query import MatchOrder
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.slices import finish
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import HOSTILE, SafeText
from rtui.keyspace.text.segments import Segment
from rtui.tui.browse.namespace_lines import (
    ChildCount,
    ChildCounts,
    CountedState,
    child_rows,
    count_children,
    inside_rows,
    namespace_lines,
)
from rtui.tui.browse.tree_figures import TreeFigures
from rtui.tui.browse.tree_lines import TreeTotals, known_count
from rtui.tui.browse.value_view import ItemKind, RowItem
from rtui.tui.find import FindScreen
from rtui.tui.kit.styled_text import Line, line_width
from tests.conftest import known
from tests.tui.analyse.analysing import analysed_session, report_of
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import COMPLETE, FixedSession, keys

SOME_KEYS = [name for name in keys() if name not in (b"gone", b"huge")]
REPORT = report_of(SOME_KEYS)
PARTIAL = report_of(SOME_KEYS, CoverageKind.PARTIAL)


def store_of(names: list[bytes]) -> NamespaceStore:
    store = NamespaceStore()
    store.add(names)
    store.complete = True
    return store


def said(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in line) for line in lines)


def inside_lines(node: Namespace, inside: ChildCounts | None, totals: TreeTotals, width: int) -> list[Line]:
    return [row.line for row in inside_rows(node, inside, None, totals, width)]


def shown(node: Namespace, figures: TreeFigures | None, width: int = 80, note: str = "analysed 12m ago") -> str:
    totals = TreeTotals(complete=True, figures=figures, analysis_note=SafeText(note))
    inside = finish(count_children(node, NamespaceStore().separators))
    return said([*namespace_lines(node, totals, width), *inside_lines(node, inside, totals, width)])


STORE = store_of(SOME_KEYS)
NODES = [STORE.root.child(label) for label in STORE.root.labels]


@given(st.sampled_from(STORE.root.labels), st.integers(40, 240), st.sampled_from(["whole", "part", ""]), st.booleans())
def test_lines_fit_and_are_safe(label: bytes, width: int, report: str, is_current: bool) -> None:
    node = STORE.root.child(label)
    figures = TreeFigures(REPORT if report == "whole" else PARTIAL, is_current=is_current) if report else None
    totals = TreeTotals(complete=True, figures=figures)
    inside = finish(count_children(node, STORE.separators))
    lines = [*namespace_lines(node, totals, width), *inside_lines(node, inside, totals, width)]
    assert max(map(line_width, lines)) <= width
    assert not HOSTILE.search(said(lines).replace("\n", ""))


def test_the_head_has_as_many_lines_with_figures_as_without() -> None:
    for figures in (None, TreeFigures(REPORT)):
        assert len(namespace_lines(NODES[0], TreeTotals(complete=True, figures=figures), 60)) == 6


def test_without_an_analysis_it_says_how_to_get_one() -> None:
    assert "press a" in shown(NODES[0], None)
    assert "press a" not in shown(NODES[0], TreeFigures(REPORT))


@pytest.mark.parametrize(("complete", "mark"), [(True, ""), (False, "≥ ")])
def test_what_was_not_seen_yet_is_not_denied(complete: bool, mark: str) -> None:
    node = STORE.root.child(b"shop:")
    inside = finish(count_children(node, STORE.separators))
    text = said(inside_lines(node, inside, TreeTotals(complete=complete), 80))
    assert inside is not None
    assert not inside.keys
    assert f" {mark}{inside.namespaces} namespaces and {mark}0 keys directly below" in text


def test_biggest_keys_and_patterns_stand_above_what_is_directly_below() -> None:
    text = shown(STORE.root.child(b"shop:"), TreeFigures(REPORT))
    assert text.index("Biggest keys") < text.index("Patterns") < text.index("directly below")
    assert "cache:product:107  " in text
    assert "user:<id>:profile" in text
    assert "Exact, analysed 12m ago." in text


def test_where_no_big_key_is_it_says_how_big_its_keys_can_be() -> None:
    text = shown(STORE.root.child(b"lock:"), TreeFigures(REPORT))
    assert "None of the biggest keys is here: all are 272 B or less." in text
    assert "or less" not in shown(STORE.root.child(b"lock:"), TreeFigures(PARTIAL))
    assert "None of the biggest keys found is here." in shown(STORE.root.child(b"lock:"), TreeFigures(PARTIAL))


def test_one_of_a_pattern_says_whose_mean_it_is() -> None:
    node = STORE.root.child(b"{user:7}:")
    assert "≈ estimated from the mean of {user:<id>}:, analysed 12m ago." in shown(node, TreeFigures(REPORT))


@pytest.mark.parametrize("more", [b"jobs:more", b"new:1"])
def test_what_changed_since_is_said(more: bytes) -> None:
    node = store_of([*SOME_KEYS, more]).root.child(more[: more.index(b":") + 1])
    text = shown(node, TreeFigures(REPORT))
    assert ("has changed since" in text) == (more == b"jobs:more")
    assert ("Not covered by the analysis" in text) == (more == b"new:1")


def test_part_of_the_names_does_not_ask_for_an_analysis() -> None:
    totals = replace(TreeTotals(complete=True), is_part=True)
    assert "press a" not in said(inside_lines(NODES[0], None, totals, 80))


def shop(*, opened: bool) -> NamespaceStore:
    store = NamespaceStore()
    store.add([b"shop:user:%d" % number for number in range(6)] + [b"shop:lock:1", b"shop:open"])
    if opened:
        finish(store.open(store.root.child(b"shop:")))
    return store


def inside(store: NamespaceStore) -> ChildCounts | None:
    return finish(count_children(store.root.child(b"shop:"), store.separators))


def test_looking_does_not_need_an_open_namespace() -> None:
    closed, opened = inside(shop(opened=False)), inside(shop(opened=True))
    assert (
        closed == opened == ChildCounts((ChildCount(b"user:", 6), ChildCount(b"lock:", 1)), namespaces=2, keys=1, of=8)
    )


@pytest.mark.parametrize(("single", "others", "rows"), [(3_000, 2, 3), (11, 0, 1), (10, 1, 11), (0, 3, 3)])
def test_many_namespaces_of_one_key_are_one_row(single: int, others: int, rows: int) -> None:
    names = [b"shop:%d:x" % at for at in range(single)]
    names += [b"shop:many%d:%d" % (at, key) for at in range(others) for key in range(2)]
    store = NamespaceStore()
    store.add(names)
    found = child_rows(store.root.child(b"shop:"), inside(store), TreeTotals(complete=True), 52)
    lines = ["".join(span.text for span in row.line).rstrip() for row in found if row.line][1:]
    assert len([line for line in lines if "smaller" not in line]) == rows
    folded = [line for line in lines if "namespaces of 1 key" in line]
    assert len(folded) == (single > 10)
    if folded:
        assert f"{single:,} namespaces of 1 key" in folded[0]
        assert f"{single:,}  " in folded[0]


def test_the_bar_gives_its_room_to_names_that_would_be_cut() -> None:
    store = NamespaceStore()
    long = [b"app:cache:product:detail:verify:%d" % at for at in range(3)]
    store.add([*(b"app:" + b"x" * 30 + b":%d" % at for at in range(3)), *long])
    node = store.root.child(b"app:")
    for row in child_rows(node, finish(count_children(node, store.separators)), TreeTotals(complete=True), 52):
        assert "…" not in "".join(span.text for span in row.line)


def test_a_sample_that_knows_of_more_is_told_as_an_estimate() -> None:
    store = shop(opened=True)
    store.expect([Segment(b"shop", b":"), Segment(b"lock", b":")], Estimate(80, 90, 100))
    found = known(inside(store))
    assert found.parts == (ChildCount(b"lock:", 90, is_estimate=True), ChildCount(b"user:", 6))


def test_a_namespace_that_grows_is_looked_into_again_and_every_change_of_totals_counts() -> None:
    node = shop(opened=True).root.child(b"shop:")
    last = CountedState(node, 1_000, opened=True, complete=False)
    assert not CountedState(node, 1_120, opened=True, complete=False).is_due(last)
    assert CountedState(node, 1_130, opened=True, complete=False).is_due(last)
    assert CountedState(node, 1_001, opened=True, complete=True).is_due(last)
    assert not CountedState(node, 1_000, opened=True, complete=True).is_due(last)
    assert CountedState(node, 1_000, opened=False, complete=True).is_due(last)


def test_few_keys_are_asked_once_their_number_is_a_total() -> None:
    node = shop(opened=True).root.child(b"shop:")
    last = CountedState(node, 8, opened=True, complete=False)
    now = CountedState(node, 8, opened=True, complete=True)
    assert now.is_due(last)
    assert not now.is_due(now)
    assert not last.is_due(last)


def test_children_of_a_namespace_that_is_being_divided_are_not_called_totals() -> None:
    store = NamespaceStore(clock=iter(range(10**6)).__next__)
    store.add([b"shop:user:%d" % number for number in range(40_000)])
    store.complete = True
    shop = store.root.child(b"shop:")
    work = store.open(shop)
    next(work)
    user = shop.child(b"user:")
    assert known_count(shop, complete=True).mark is Mark.EXACT
    assert (known_count(user, complete=True).mark, user.count < 40_000) == (Mark.AT_LEAST, True)
    finish(work)
    assert known_count(user, complete=True) == Known(40_000, Mark.EXACT)


def item(user: BrowseUser) -> RowItem:
    return known(user.screen.detail_pane.body.item)


async def go_to_row(user: BrowseUser, kind: ItemKind) -> RowItem:
    """Go into the details, and down to the first row that stands for something of this kind."""
    if not user.has_keyboard(user.screen.detail_pane.body):
        await user.press("tab")
    body = user.screen.detail_pane.body
    while item(user).kind is not kind:
        line = body.cursor_line
        await user.press("down")
        assert body.cursor_line != line, f"no {kind}"
    return item(user)


async def found(user: BrowseUser) -> FindScreen:
    await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
    screen = user.pilot.app.screen
    assert isinstance(screen, FindScreen)
    return screen


def is_gone_to(user: BrowseUser, name: bytes | None) -> bool:
    return user.name == name and user.has_keyboard(user.screen.tree_pane.key_tree)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_big_key_is_gone_to_and_escape_comes_back(size: tuple[int, int]) -> None:
    async with browsing(analysed_session(), size) as user:
        namespace = user.name
        for key in ("enter", "l", "right"):
            biggest = await go_to_row(user, ItemKind.KEY)
            await user.press("down")
            second = item(user)
            assert second.kind is ItemKind.KEY
            assert second != biggest
            await user.pilot.press(key)
            await user.until(partial(is_gone_to, user, second.data))
            await user.settled()
            await user.press("escape")
            assert user.name == namespace
            assert user.has_keyboard(user.screen.detail_pane.body)
            await user.press("home", "escape")
            assert user.has_keyboard(user.screen.tree_pane.key_tree)


async def test_a_pattern_opens_its_keys() -> None:
    async with browsing(analysed_session()) as user:
        pattern = await go_to_row(user, ItemKind.PATTERN)
        await user.pilot.press("enter")
        screen = await found(user)
        assert screen.search.query == known(pattern.behind).query
        assert "pattern:" in str(screen.search.query)


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_all_keys_are_listed_by_size_whatever_the_report_names(is_analysed: bool) -> None:
    async with browsing(analysed_session() if is_analysed else FixedSession()) as user:
        name = user.name
        await go_to_row(user, ItemKind.BY_SIZE)
        await user.pilot.press("enter")
        screen = await found(user)
        assert str(screen.search.query) == f"in:{name.decode()}"
        assert screen.search.order == MatchOrder(Fact.MEMORY, is_descending=True)
        assert screen.rows.sort == "size"
        assert "size" in screen.rows.columns


async def test_what_lies_below_is_gone_to() -> None:
    async with browsing() as user:
        child = await go_to_row(user, ItemKind.NAMESPACE)
        await user.press("enter")
        await user.until(lambda: user.name == child.data)
        await user.press("escape")
        assert child.data is not None
        assert child.data.startswith(user.name)
        assert user.name != child.data


async def test_left_goes_back_to_the_tree_and_right_goes_from_a_key_into_its_value() -> None:
    async with browsing() as user:
        await user.press("tab", "left")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)
        await user.go(b"shop:user:7:profile")
        await user.press("right")
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("h")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)


async def test_names_and_queries_of_rows_are_copied() -> None:
    async with browsing(analysed_session()) as user:
        biggest = await go_to_row(user, ItemKind.KEY)
        await user.press("y")
        assert user.pilot.app.clipboard == known(biggest.data).decode()
        pattern = await go_to_row(user, ItemKind.PATTERN)
        await user.press("y")
        assert user.pilot.app.clipboard == str(known(pattern.behind).query)


async def test_a_small_namespace_shows_its_biggest_keys_without_any_analysis() -> None:
    session = analysed_session()
    session.store.add([b"new:%d" % number for number in range(3)])
    async with browsing(session) as user:
        await user.press("f", *"new", "enter")
        assert "Not covered by the analysis" in user.body
        assert "Biggest keys" in user.body  # few are asked at once
        assert "keys by memory" not in user.body
        assert (await go_to_row(user, ItemKind.KEY)).data == b"new:0"


async def test_a_small_namespace_shows_its_biggest_keys_once_the_scan_has_ended() -> None:
    """Its own keys have all come before."""
    session = FixedSession(replace(COMPLETE, complete=False), [b"new:%d" % number for number in range(3)])
    async with browsing(session) as user:
        assert "3 keys directly below" in user.body
        assert "Biggest keys" not in user.body
        session.store.complete = True
        session.status = replace(session.status, complete=True)
        user.screen.show_changes()
        await user.until(lambda: "Biggest keys" in user.body)
