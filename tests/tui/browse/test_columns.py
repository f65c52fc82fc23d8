"""The columns of the tree, also after an analysis, its title, and namespaces that hold one other only."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import RowKind
from rtui.keyspace.store.namespace import Namespace
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.wire.identity import Outdated
from rtui.tui.browse.columns import (
    ALL_COLUMNS,
    ANALYSED_COLUMNS,
    GAP_CELLS,
    LONG_NAME_CELLS,
    MIN_NAME_CELLS,
    SORT_COLUMNS,
    TreeColumn,
    lay_out_row,
    sort_at,
    title_of,
)
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import width_of
from tests.conftest import known
from tests.tui.analyse.analysing import READY, FixedAnalysis, analysed_session, report_of, scoped, with_report
from tests.tui.browse.test_ageing import row_text
from tests.tui.browse.test_together import CLUSTER, KEYS
from tests.tui.browsing import BrowseUser, browsing
from tests.tui.fixed_session import COMPLETE, FixedSession, keys

columns = st.frozensets(st.sampled_from(list(TreeColumn)))


@given(st.integers(0, 300), columns, st.booleans(), st.booleans(), st.sampled_from(Sort))
def test_a_plan_fills_the_width_exactly(
    width: int, enabled: frozenset[TreeColumn], is_analysed: bool, is_cluster: bool, sort: Sort
) -> None:
    found = lay_out_row(width, enabled, is_analysed=is_analysed, is_cluster=is_cluster, sort=sort)
    assert found.name_cells + sum(place.cells + GAP_CELLS for place in found.fields) == width


@given(st.integers(MIN_NAME_CELLS, 300), columns, st.booleans())
def test_the_name_keeps_its_room(width: int, enabled: frozenset[TreeColumn], is_analysed: bool) -> None:
    assert lay_out_row(width, enabled, is_analysed=is_analysed).name_cells >= MIN_NAME_CELLS


@given(st.integers(0, 300), columns)
def test_only_what_is_switched_on_is_shown(width: int, enabled: frozenset[TreeColumn]) -> None:
    shown = {
        column for place in lay_out_row(width, enabled).fields for column in (place.namespace, place.key) if column
    }
    assert shown <= enabled


@pytest.mark.parametrize("is_analysed", [False, True])
@given(width=st.integers(66, 120), is_cluster=st.booleans(), sort=st.sampled_from(Sort))
def test_no_row_has_a_blank_place(is_analysed: bool, width: int, is_cluster: bool, sort: Sort) -> None:
    for place in lay_out_row(width, is_analysed=is_analysed, is_cluster=is_cluster, sort=sort).fields:
        assert place.namespace is not None
        assert place.key is not None


def test_wide_trees_show_more_of_keys_below_longer_bars() -> None:
    assert [(place.namespace, place.title) for place in lay_out_row(106).fields[2:]] == [
        (TreeColumn.BAR, "memory"),
        (TreeColumn.BAR, "length"),
        (TreeColumn.BAR, "idle"),
        (TreeColumn.BAR, "encoding"),
    ]


@pytest.mark.parametrize(("is_analysed", "width"), [(False, 140), (True, 200)])
def test_keys_of_a_cluster_have_their_node_where_there_is_room(is_analysed: bool, width: int) -> None:
    def shown(width: int, *, is_cluster: bool) -> bool:
        found = lay_out_row(width, is_analysed=is_analysed, is_cluster=is_cluster)
        return TreeColumn.NODE in {place.key for place in found.fields}

    assert shown(width, is_cluster=True)
    assert not shown(80, is_cluster=True)
    assert not shown(300, is_cluster=False)


def test_narrow_trees_share_places_between_namespaces_and_keys() -> None:
    shared = lay_out_row(66).fields
    assert [(place.namespace, place.key) for place in shared] == [
        (TreeColumn.KEYS, TreeColumn.TYPE),
        (TreeColumn.SHARE, TreeColumn.TTL),
        (TreeColumn.BAR, TreeColumn.SIZE),
    ]
    assert [place.title for place in shared] == ["keys / type", "share / TTL", "memory"]


def test_very_narrow_trees_have_names_only() -> None:
    assert lay_out_row(24).fields == ()


@given(st.integers(66, 300), columns, st.integers(0, 600))
def test_a_name_that_a_small_terminal_shows_is_not_cut_harder_in_a_larger_one(
    width: int, enabled: frozenset[TreeColumn], longest: int
) -> None:
    assert lay_out_row(width, enabled, longest).name_cells >= min(
        longest, lay_out_row(78, enabled, longest).name_cells, LONG_NAME_CELLS
    )


@given(st.integers(0, 300), columns, st.integers(0, 600))
@example(46, frozenset({TreeColumn.IDLE}), 35)
def test_the_first_place_stays_however_long_names_are(width: int, enabled: frozenset[TreeColumn], longest: int) -> None:
    assert bool(lay_out_row(width, enabled, longest).fields) == bool(lay_out_row(width, enabled).fields)


@given(st.integers(40, 300), st.sampled_from(sorted(SORT_COLUMNS, key=str)), st.integers(0, 600))
def test_what_rows_are_sorted_by_has_the_first_place_after_an_analysis(width: int, sort: Sort, longest: int) -> None:
    fields = lay_out_row(width, ALL_COLUMNS, longest, is_analysed=True, sort=sort).fields
    assert any({field.namespace, field.key} & {*SORT_COLUMNS[sort]} for field in fields)


def test_columns_of_an_analysis_come_with_it() -> None:
    before, after = (
        {field.namespace for field in lay_out_row(200, is_analysed=is_analysed).fields} for is_analysed in (False, True)
    )
    assert not before & ANALYSED_COLUMNS
    assert after >= ANALYSED_COLUMNS


@given(st.integers(60, 300))
def test_a_wider_tree_shows_no_fewer_columns(width: int) -> None:
    narrow, wide = (lay_out_row(cells, is_analysed=True).fields for cells in (width, width + 1))
    assert {field.namespace for field in narrow} <= {field.namespace for field in wide}


@given(st.integers(40, 300), columns, st.booleans())
def test_a_click_on_any_title_but_a_bar_sorts(width: int, enabled: frozenset[TreeColumn], is_analysed: bool) -> None:
    layout = lay_out_row(width, enabled, is_analysed=is_analysed)
    end = layout.name_cells
    assert sort_at(layout, end - 1) is Sort.NAME
    for field in layout.fields:
        end += GAP_CELLS + field.cells
        found = sort_at(layout, end - 1)
        sorted_by = {column for columns in SORT_COLUMNS.values() for column in columns}
        shown = {field.namespace, field.key} & {*sorted_by, TreeColumn.SHARE, TreeColumn.MEMORY_SHARE}
        assert (found is None) == (not shown)
        shares = {TreeColumn.SHARE: Sort.COUNT, TreeColumn.MEMORY_SHARE: Sort.MEMORY}
        wanted = shares.get(field.namespace) if field.namespace is not None else None
        assert found is wanted or found is None or {field.namespace, field.key} & {*SORT_COLUMNS[found]}
    assert sort_at(layout, end) is None


async def test_a_wide_tree_of_a_cluster_shows_the_node_of_each_key_as_it_is_now() -> None:
    session = FixedSession(CLUSTER, KEYS)
    async with browsing(session, size=(300, 40)) as user:
        await user.go(KEYS[0])
        assert "10.0.0.1:6379" in row_text(user, KEYS[0])
        first, second = CLUSTER.nodes
        session.status = replace(
            session.status, nodes=(replace(first, slots=()), replace(second, slots=((0, 16_383),)))
        )
        user.screen.show_changes()
        await user.until(lambda: "10.0.0.2:6379" in row_text(user, KEYS[0]))
        session.status = replace(session.status, nodes=())
        user.screen.show_changes()
        await user.until(lambda: "10.0.0" not in row_text(user, KEYS[0]))


def header(user: BrowseUser) -> str:
    (line,) = user.screen.tree_pane.header.lines
    return "".join(span.text for span in line)


async def test_the_title_says_where_the_cursor_is_and_leads_there() -> None:
    async with browsing() as user:
        assert header(user).startswith(" Namespaces split at :")
        await user.go(b"shop:user:7:profile")
        assert header(user).startswith(" shop › user › 7")
        await user.pilot.click("#tree-header", offset=(10, 0))
        await user.settled()
        assert user.name == b"shop:user:"
        assert header(user).startswith(" shop ")
        await user.pilot.click("#tree-header", offset=(2, 0))
        await user.settled()
        assert user.name == b"shop:"
        assert header(user).startswith(" Namespaces split at :")
        await user.go(b"::")
        assert header(user).startswith(" (empty) › (empty)")
        await user.go(b"hostile:\x1b[31mred")
        assert header(user).startswith(" hostile")


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=8), st.integers(0, 80))
def test_each_part_stands_where_it_is_clicked(names: list[bytes], cells: int) -> None:
    path: list[Namespace] = []
    node = Namespace()
    for name in names:
        node = Namespace(name + b":", b":", node)
        path.append(node)
    title, crumbs = title_of(path, cells)
    assert crumbs[-1].node is path[-1]
    assert [crumb.node for crumb in crumbs] == path[-len(crumbs) :]
    assert len(crumbs) == 1 or width_of(title) <= cells
    assert crumbs[-1].end == 1 + width_of(title)
    for before, after in pairwise(crumbs):
        assert before.end + 3 == after.start


RUNNING = replace(COMPLETE, complete=False, progress=Progress(ScanState.RUNNING, 0.5))
NAMES = [*(b"app:v1:cache:%d" % n for n in range(5)), *(b"queue:%d" % n for n in range(9))]


def texts(user: BrowseUser) -> list[str]:
    lines = user.screen.tree_pane.key_tree.lines_in_view
    return ["".join(span.text for span in line).strip() for line in lines]


async def test_a_chain_is_one_row_that_opens_closes_copies_is_left_and_found_like_any() -> None:
    async with browsing(FixedSession(COMPLETE, NAMES)) as user:
        await user.press("down", "enter")
        assert texts(user)[1].startswith("▾ app:v1:cache ")
        assert user.name == b"app:v1:cache:"
        assert user.screen._copies()[0].text.startswith("app:v1:cache:")
        assert known(user.screen.detail_pane.detail.row).namespace is user.cursor.namespace
        await user.press("right", "down")
        assert user.name == b"app:v1:cache:1"
        await user.press("backspace")
        assert user.name == b"app:v1:cache:"
        await user.press("left")
        assert [line.split(" ")[1] for line in texts(user)] == ["queue", "app:v1:cache"]
        await user.press("home", "f", *"app:v", "escape", "enter")
        assert user.name == b"app:v1:cache:"
        await user.press("home", "slash", *"v1:ca")
        assert any(line.startswith("▾ app:v1:cache ") for line in texts(user))
        await user.press("escape")
        await user.go(b"app:v1:cache:4")
        assert user.name == b"app:v1:cache:4"


async def test_the_cursor_stays_on_what_it_was_on_when_a_chain_parts() -> None:
    session = FixedSession(RUNNING, NAMES)
    async with browsing(session) as user:
        await user.press("down", "enter")
        session.store.add([b"app:v2:x"])
        session.revision += 1
        await user.until(lambda: user.screen._shown[0] == session.revision)
        await user.settled()
        assert user.name == b"app:v1:cache:"
        assert [line.split(" ")[1] for line in texts(user)[:3]] == ["queue", "app", "v1:cache"]
        assert texts(user)[-1].split(" ")[1] == "v2"


def analysed_header(user: BrowseUser) -> str:
    return "".join(span.text for line in user.screen.tree_pane.header.lines for span in line)


def row(user: BrowseUser, name: str) -> str:
    lines = user.screen.tree_pane.key_tree.lines_in_view
    return next(text for line in lines if name in (text := "".join(span.text for span in line)))


def namespaces(user: BrowseUser) -> list[bytes]:
    return [one.key() for one in user.screen.tree_pane.key_tree.rows_in_view if one.kind is RowKind.NAMESPACE]


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_bytes_and_keys_without_ttl_stand_beside_every_namespace(width: int) -> None:
    async with browsing(analysed_session(), (width, 36)) as user:
        assert "1.18 MiB" in row(user, " shop ")
        assert "63%" in row(user, " shop ")
        assert "analysed 12m ago" in analysed_header(user)
        assert "memory" in analysed_header(user)
        assert "no TTL" in analysed_header(user)


async def test_before_an_analysis_nothing_is_there_of_it() -> None:
    async with browsing() as user:
        assert "no TTL" not in analysed_header(user)
        assert "analysed" not in analysed_header(user)


async def test_what_the_report_does_not_know_is_a_dash() -> None:
    session = analysed_session()
    session.store.add([b"new:1", b"new:2"])
    async with browsing(session) as user:
        await user.press("f", *"new", "enter")
        assert "–" in row(user, " new ")
        assert " 0 B" not in row(user, " new ")


async def test_figures_of_a_running_analysis_are_lower_bounds_and_rows_keep_their_places() -> None:
    session = FixedSession()
    async with browsing(session) as user:
        before = namespaces(user)
        with_report(session, report_of(keys()[:4_000], CoverageKind.PARTIAL))
        await user.until(lambda: "analysis running" in analysed_header(user))
        assert "≥ " in row(user, " shop ")
        assert namespaces(user) == before
        assert "At least, analysis running." in user.body
        with_report(session, report_of(keys()), age_s=60.0)
        await user.until(lambda: "Exact, analysed 1m ago." in user.body)


async def test_figures_that_do_not_hold_any_more_say_so() -> None:
    session = FixedSession()
    session.analysis = FixedAnalysis(report_of(keys()), replace(READY, age_s=60.0, outdated=Outdated.RESTARTED))
    async with browsing(session) as user:
        assert "analysis outdated" in analysed_header(user)


async def test_a_report_of_other_keys_is_not_shown() -> None:
    session = FixedSession()
    session.analysis = FixedAnalysis(scoped(report_of(keys()), match=b"shop:*"))
    async with browsing(session) as user:
        assert "no TTL" not in analysed_header(user)
    session.analysis = FixedAnalysis(scoped(report_of(keys()), separators=(b"-",)))
    async with browsing(session) as user:
        assert "no TTL" not in analysed_header(user)


@pytest.mark.parametrize(("sort", "column"), [("bytes", "memory ↓"), ("mean", "mean ↓"), ("TTL", "no TTL / TTL ↓")])
async def test_sorting_by_a_figure_shows_it_and_follows_it(sort: str, column: str) -> None:
    settings = SettingsFile()
    settings.choose("tree.sort", sort)
    async with browsing(analysed_session(), (200, 50), settings=settings) as user:
        await user.pilot.press("s", "enter", "home")
        assert column in analysed_header(user)
        pane = user.screen.tree_pane
        rows = [one for one in pane.names.rows.window(0, 200) if one.kind is RowKind.NAMESPACE]
        weights_at = known(pane._weights.namespaces(pane.names.rows.store.root, pane.names.rows.sort_order))
        weights = weights_at([one.namespace.ordinal for one in rows])
        assert weights == sorted(weights)
        assert len({*weights}) > 2


async def test_the_list_of_orders_parts_of_names_and_namespaces_of_one_pattern() -> None:
    async with browsing(analysed_session()) as user:
        before = namespaces(user)
        await user.pilot.press("s")
        await user.pilot.press("escape")
        await user.settled()
        assert namespaces(user) == before
        await user.pilot.press("s")
        await user.pilot.press("enter")
        await user.settled()
        assert user.screen.settings.settings.tree.sort == "keys"
        await user.press("slash", *"cart")
        assert "no TTL" not in analysed_header(user)
        await user.press("escape")
        await user.until(lambda: "no TTL" in analysed_header(user))
        await user.press("home", "enter", "down", "enter")
        assert "≈ 521 B" in row(user, "▸ 17 ")
        assert "≈" not in row(user, " user ")


async def test_the_order_is_remembered() -> None:
    settings = SettingsFile()
    settings.choose("tree.sort", "name")
    async with browsing(settings=settings) as user:
        assert user.listed[0] == b":"
        assert "Namespaces split at : ↑" in analysed_header(user)


async def test_a_click_on_a_title_sorts_by_it_and_another_one_the_other_way() -> None:
    async with browsing(analysed_session(), (200, 50), settings=SettingsFile()) as user:
        for title, sort, sign in (
            *(("keys", "-keys", "↑"), ("memory", "bytes", "↓"), ("mean", "mean", "↓")),
            *(("no TTL", "TTL", "↓"), ("analysed", "name", "↑")),
        ):
            bar = user.screen.tree_pane.header
            await user.pilot.click(bar, offset=(analysed_header(user).index(title) + 1, 0))
            await user.settled()
            assert user.screen.settings.settings.tree.sort == sort
            assert sign in analysed_header(user)
