"""The tree after an analysis: columns of figures, how old they are, and sorting by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.rows.rows import RowKind
from rtui.server.wire.identity import Outdated
from rtui.tui.kit.settings import SettingsFile
from tests.tui.analyse.fixed_analysis import READY, FixedAnalysis
from tests.tui.analysed_session import analysed_session, report_of, scoped, with_report
from tests.tui.browsing import BrowseUser, browsing
from tests.tui.fixed_session import FixedSession, keys


def header(user: BrowseUser) -> str:
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
        assert "analysed 12m ago" in header(user)
        assert "memory" in header(user)
        assert "no TTL" in header(user)


async def test_before_an_analysis_nothing_is_there_of_it() -> None:
    async with browsing() as user:
        assert "no TTL" not in header(user)
        assert "analysed" not in header(user)


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
        await user.until(lambda: "analysis running" in header(user))
        assert "≥ " in row(user, " shop ")
        assert namespaces(user) == before
        assert "At least, analysis running." in user.body
        with_report(session, report_of(keys()), age_s=60.0)
        await user.until(lambda: "Exact, analysed 1m ago." in user.body)


async def test_figures_that_do_not_hold_any_more_say_so() -> None:
    session = FixedSession()
    session.analysis = FixedAnalysis(report_of(keys()), replace(READY, age_s=60.0, outdated=Outdated.RESTARTED))
    async with browsing(session) as user:
        assert "analysis outdated" in header(user)


async def test_a_report_of_other_keys_is_not_shown() -> None:
    session = FixedSession()
    session.analysis = FixedAnalysis(scoped(report_of(keys()), match=b"shop:*"))
    async with browsing(session) as user:
        assert "no TTL" not in header(user)
    session.analysis = FixedAnalysis(scoped(report_of(keys()), separators=(b"-",)))
    async with browsing(session) as user:
        assert "no TTL" not in header(user)


@pytest.mark.parametrize(("sort", "column"), [("bytes", "memory ↓"), ("mean", "mean ↓"), ("TTL", "no TTL / TTL ↓")])
async def test_sorting_by_a_figure_shows_it_and_follows_it(sort: str, column: str) -> None:
    settings = SettingsFile()
    settings.choose("tree.sort", sort)
    async with browsing(analysed_session(), (200, 50), settings=settings) as user:
        await user.pilot.press("s", "enter", "home")
        assert column in header(user)
        pane = user.screen.tree_pane
        rows = [one for one in pane.names.rows.window(0, 200) if one.kind is RowKind.NAMESPACE]
        weights_at = pane._weights.namespaces(pane.names.rows.store.root, pane.names.rows.sort_order)
        assert weights_at is not None
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
        assert "no TTL" not in header(user)
        await user.press("escape")
        await user.until(lambda: "no TTL" in header(user))
        await user.press("home", "enter", "down", "enter")
        assert "≈ 521 B" in row(user, "▸ 17 ")
        assert "≈" not in row(user, " user ")


async def test_the_order_is_remembered() -> None:
    settings = SettingsFile()
    settings.choose("tree.sort", "name")
    async with browsing(settings=settings) as user:
        assert user.listed[0] == b":"
        assert "Namespaces split at : ↑" in header(user)


async def test_a_click_on_a_title_sorts_by_it_and_another_one_the_other_way() -> None:
    async with browsing(analysed_session(), (200, 50), settings=SettingsFile()) as user:
        for title, sort, sign in (
            *(("keys", "-keys", "↑"), ("memory", "bytes", "↓"), ("mean", "mean", "↓")),
            *(("no TTL", "TTL", "↓"), ("analysed", "name", "↑")),
        ):
            bar = user.screen.tree_pane.header
            await user.pilot.click(bar, offset=(header(user).index(title) + 1, 0))
            await user.settled()
            assert user.screen.settings.settings.tree.sort == sort
            assert sign in header(user)
