"""Every row of every panel leads somewhere: to a key, a namespace, the keys behind it, or a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from rtui.analysis.findings.contents import findings
from rtui.analysis.query.behind import CHANGED_NOTE, LEFT_NOTE, NO_SLOTS, Behind, behind_key, behind_row
from rtui.analysis.query.parsing import parse
from rtui.analysis.report.comparison import Fate
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.changes import differences, fate_of
from rtui.analysis.report.tables.slots import nodes
from rtui.analysis.report.tables.table import Table, path_of
from rtui.server.options import BrowseOptions
from rtui.tui.analyse.findings_panel import FindingsState, LatestFindings
from rtui.tui.analyse.memory_panel import MemoryState
from rtui.tui.analyse.panel import AnalysePanel, PanelState, ReportStates
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.analyse.size_panels import BigKeysState
from rtui.tui.kit.command_screen import KeysWanted
from rtui.tui.run import ReportApp
from tests.made_report import (
    clustered_report,
    denied_report,
    earlier_report,
    estimate_report,
    made_report,
    partial_report,
)
from tests.tui.analyse.analysing import analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis
from tests.tui.browsing import until

REPORTS = (made_report, partial_report, estimate_report, denied_report, clustered_report)


def states_of(panel: AnalysePanel[Any], report: Report) -> Iterator[PanelState]:
    """What a user may have chosen in a panel, of all that decides which tables there are."""
    yield panel.initial
    if isinstance(panel.initial, MemoryState):
        yield from (replace(panel.initial, path=path_of(path)) for path in report.summary.root.walk())
    if isinstance(panel.initial, BigKeysState):
        yield replace(panel.initial, by_length=True)
    if isinstance(panel.initial, FindingsState):
        yield FindingsState(latest=LatestFindings(found=findings(report)))


def tables_of(panel: AnalysePanel[Any], report: Report, before: Report | None) -> Iterator[tuple[PanelState, Table]]:
    """Every table that a panel can show, as it is shown, and in which state of the panel."""
    for state in states_of(panel, report):
        shown = ReportStates(panel.id, baseline=before)
        for listed in shown.listed(panel, report, state):
            yield state, shown.table(panel, report, listed, state)


@pytest.mark.parametrize("before", [None, earlier_report], ids=["alone", "compared"])
@pytest.mark.parametrize("make", REPORTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.id)
def test_every_row_leads_to_keys(panel: AnalysePanel[Any], make: Any, before: Any) -> None:
    report = make()
    baseline = None if before is None else before()
    rows = 0
    for state, table in tables_of(panel, report, baseline):
        for row in range(len(table.rows)):
            found = panel.behind_row(state, row) or behind_row(report, table, row, baseline)
            assert isinstance(found, Behind), (table.id, table.rows[row], found)
            assert parse(str(found.query)) == found.query
            rows += 1
    assert rows or make is denied_report


def test_differences_lead_to_their_keys_and_say_what_is_not_known_of_them() -> None:
    before, after = earlier_report(), made_report()
    table = differences(before, after)
    found = {}
    for at, row in enumerate(table.rows):
        behind = behind_row(after, table, at, before)
        assert isinstance(behind, Behind)
        found[str(row[0])] = fate_of(row), str(behind.query), behind.note
    assert found["b'shop:'"] == (Fate.CAME, "in:shop:", "")
    assert found["b'gone:'"] == (Fate.WENT, "in:gone:", LEFT_NOTE)
    assert (Fate.GREW, CHANGED_NOTE) in {(fate, note) for fate, _, note in found.values()}


def test_a_row_without_keys_says_why() -> None:
    report = made_report()
    strange = structs.replace(report.keysizes[0], name="distrib_\x1b[31m_items")
    report = structs.replace(report, keysizes=(strange,))
    (types,) = [panel for panel in PANELS if panel.id == "types"]
    (sizes,) = [one.make() for one in types.tables(report, types.initial) if one.make().id == "keysizes"]
    found = behind_row(report, sizes, 0)
    assert isinstance(found, str)
    assert "does not say which type" in found
    assert "\x1b" not in found


def test_a_node_leads_to_the_keys_of_its_slots() -> None:
    report = clustered_report()
    assert report.cluster is not None
    first, *others = report.cluster.nodes
    parts = structs.replace(first, slots=((0, 9), (20, 20)))
    bare = structs.replace(first, slots=())
    cluster = structs.replace(report.cluster, nodes=(parts, bare, *others))
    report = structs.replace(report, cluster=cluster)
    found = behind_row(report, nodes(report), 0)
    assert isinstance(found, Behind)
    assert str(found.query) == "slot:0-9,20"
    assert behind_row(report, nodes(report), 1) == NO_SLOTS


@pytest.mark.parametrize("key", [b"a", b"user:*:[x]", b"\x1b[31m \"'", b"ttl:none", b"\xff\\"])
def test_the_query_of_one_key_reads_back(key: bytes) -> None:
    query = behind_key(key).query
    assert parse(str(query)) == query


class Followed:
    """Where a screen wanted to go, kept instead of going there."""

    def __init__(self, screen: AnalyseScreen, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        post = screen.post_message

        def posted(message: Any) -> bool:
            if isinstance(message, KeysWanted):
                self.found.append(str(message.query))
                return True
            return post(message)

        monkeypatch.setattr(screen, "post_message", posted)
        monkeypatch.setattr(screen, "dismiss", lambda key: self.found.append(f"key {key!r}"))
        monkeypatch.setattr(screen, "notify", lambda text, **options: self.found.append(f"said {text}"))


@pytest.mark.parametrize("is_live", [True, False], ids=["live", "file"])
async def test_enter_k_and_a_click_do_something_on_every_table(is_live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        screen = user.screen
        user.source.status = replace(user.source.status, is_live=is_live)
        screen.view.states.compare(earlier_report())
        followed = Followed(screen, monkeypatch)
        tables = 0
        for panel in PANELS:
            screen.action_show_panel(panel.id)
            for listed in screen.view.states.listed(panel, made_report(), screen.view.state):
                if not len(screen.view.table.rows):
                    screen.view.action_next_list()
                    continue
                before = len(followed.found)
                screen.action_keys()
                assert len(followed.found) == before + 1, (panel.id, listed.id)
                screen._open_row()
                has_zoomed = screen.view.action_zoom_out()
                assert has_zoomed or len(followed.found) == before + 2, (panel.id, listed.id)
                tables += 1
                screen.view.action_next_list()
        assert tables > 12
        assert not [one for one in followed.found if one.startswith("said")]
        screen.action_show_panel("types")
        await until(user.pilot, lambda: screen.view.chart.size.height > 1)
        followed.found.clear()
        await user.pilot.click("#chart", offset=(4, 0))
        await user.pilot.click("#chart", offset=(4, 1))
        await until(user.pilot, lambda: len(followed.found) > 0)
        assert followed.found == [f"type:{made_report().summary.types[0].name.decode()}"]


async def test_a_file_is_compared_with_another_and_asks_for_a_server() -> None:
    app = ReportApp(made_report(), BrowseOptions(), earlier_report())
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen) and app.screen.is_current)
        screen = app.screen
        assert isinstance(screen, AnalyseScreen)
        await until(pilot, lambda: len(screen.view.table.rows) > 0)
        await pilot.press("2", "right_square_bracket")
        await until(pilot, lambda: screen.view.table.rows.table.id == "differences")
        await pilot.press("enter")
        await until(pilot, lambda: type(app.screen).__name__ == "ServersScreen")
        assert app._wanted_keys is not None
        assert str(app._wanted_keys.query).startswith("in:")
