"""The panels: their charts, tables and keys, and where every row leads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from textual.geometry import Size

from rtui.analysis.columns import ALL_COLUMNS, parse_columns
from rtui.analysis.findings.contents import findings
from rtui.analysis.query.behind import CHANGED_NOTE, LEFT_NOTE, NO_SLOTS, Behind, behind_key, behind_row
from rtui.analysis.query.parsing import parse
from rtui.analysis.report.comparison import Fate
from rtui.analysis.report.document import ColumnReport, ColumnState, Report
from rtui.analysis.report.tables.changes import differences, fate_of
from rtui.analysis.report.tables.slots import nodes
from rtui.analysis.report.tables.table import Table, path_of
from rtui.server.analysis.session import AnalysisStatus
from rtui.server.guard.evidence import Consent
from rtui.server.hot.hotkeys import SessionRefusedError
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.expiry_panel import TimeRange
from rtui.tui.analyse.findings_panel import FindingsState, LatestFindings
from rtui.tui.analyse.hot_panel import HotSessionScreen
from rtui.tui.analyse.memory_panel import MemoryState
from rtui.tui.analyse.panel import AnalysePanel, PanelState, PanelTable, ReportStates
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.analyse.screen_lines import empty_table_lines, offer_lines
from rtui.tui.analyse.size_panels import BigKeysState
from rtui.tui.analyse.slots_panel import SlotsPanel, SlotsState
from rtui.tui.kit.command_screen import KeysWanted
from rtui.tui.kit.styled_text import Line
from rtui.tui.kit.table_rows import TableRows, TableState
from rtui.tui.run import ReportApp
from tests.made_report import (
    clustered_report,
    denied_report,
    earlier_report,
    empty_report,
    estimate_report,
    made_report,
    partial_report,
)
from tests.tui.analyse.analysing import READY, AnalyseUser, FixedAnalysis, analysing
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
    cluster = structs.replace(report.cluster, nodes=(parts, structs.replace(first, slots=()), *others))
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


KNOWN = [made_report(), estimate_report(), partial_report(), empty_report()]


def said(lines: list[Line]) -> str:
    return " ".join(" ".join(span.text for line in lines for span in line).split())


def tables(report: Report) -> Iterator[PanelTable]:
    for panel in PANELS:
        states = (panel.initial, BigKeysState(by_length=True)) if panel.id == "big" else (panel.initial,)
        for state in states:
            yield from panel.tables(report, state)


@pytest.mark.parametrize("report", KNOWN, ids=["exact", "estimate", "partial", "empty"])
def test_tables_are_made_in_the_order_that_is_marked(report: Report) -> None:
    for wanted in tables(report):
        if wanted.order is not None:
            table = wanted.make()
            assert wanted.order.column in {column.id for column in table.columns}
            by_column = TableRows(table, TableState(wanted.order.column, is_reversed=wanted.order.upward))
            assert by_column.order == TableRows(table, TableState()).order, wanted.id


@pytest.mark.parametrize("report", [*KNOWN, denied_report()])
def test_what_a_table_needs_is_a_fact_of_the_report(report: Report) -> None:
    for wanted in tables(report):
        assert set(wanted.needs) <= report.head.columns.keys()


def nothing(report: Report, panel_id: str, table_id: str) -> str:
    """What stands in place of a table without rows."""
    panel = next(one for one in PANELS if one.id == panel_id)
    wanted = next(one for one in panel.tables(report, panel.initial) if one.id == table_id)
    table = replace(wanted.make(), rows=(), subjects=())
    return said(empty_table_lines(report, wanted, TableRows(table, TableState()), 100))


def without(report: Report, fact: str, why: str) -> Report:
    """The same report, whose user may not ask a fact."""
    columns = {**report.head.columns, fact: ColumnReport(ColumnState.DENIED, why)}
    return structs.replace(report, head=structs.replace(report.head, columns=columns))


def test_an_empty_table_says_why_and_nothing_of_other_facts() -> None:
    report = without(made_report(), "frequency", "no counters")
    assert "No expiry cliffs" in nothing(report, "expiry", "cliffs")
    assert "no counters" not in nothing(report, "expiry", "cliffs")
    denied = nothing(without(report, "ttl", "NOPERM PTTL"), "expiry", "cliffs")
    assert "Nothing to list" in denied
    assert "TTL denied: NOPERM PTTL" in denied
    assert "counters" not in denied
    assert "All keys have a TTL" in nothing(report, "expiry", "no_ttl")
    assert "encoding denied: no" in nothing(without(report, "encoding", "no"), "types", "encodings")


@pytest.mark.parametrize("no_touch", ["on", "denied", "unsupported", ""])
def test_the_offer_promises_no_more_than_the_server_allows(no_touch: str) -> None:
    text = said(offer_lines(AnalysisStatus(structs.replace(READY.server, no_touch=no_touch)), 100))
    assert ("idle time and length" in text) is (no_touch == "on")
    assert ("counts as an access" in text) is (no_touch != "on")


def test_the_offer_says_what_is_asked_of_which_keys() -> None:
    assert "idle time and length of one key in 8 (of every key if there are up to 20,000)" in said(
        offer_lines(READY, 200)
    )
    every = said(offer_lines(replace(READY, columns=ALL_COLUMNS), 200))
    assert "TTL, idle time and length of every key in one gentle pass" in every
    assert "one key in 8" not in every
    given = said(offer_lines(replace(READY, columns=parse_columns("ttl,length/8")), 200))
    assert "the fields given by --columns (ttl,length/8) in one gentle pass" in given


@pytest.mark.parametrize("is_node", [False, True])
def test_a_cluster_is_simulated_only_where_there_is_none(is_node: bool) -> None:
    report = made_report()
    server = structs.replace(report.head.server, cluster_enabled=is_node)
    report = structs.replace(report, head=structs.replace(report.head, server=server))
    (change,) = [change for command, change in SlotsPanel.commands if command.id == "nodes"]
    changed = change(report, SlotsState(), Size(120, 20))
    assert (changed is not None and changed.nodes != SlotsState().nodes) is not is_node


class SessionAnalysis(FixedAnalysis):
    """An analysis of a server that has hot-key sessions."""

    def __init__(self, report: Report, refusal: SessionRefusedError | None = None) -> None:
        super().__init__(report)
        self.put(report, ScanState.DONE)
        self.offers_hot_session = True
        self.refusal = refusal
        self.consents: list[Consent] = []
        self.reports_hot_keys = True

    async def ask_hot(self) -> None:
        self.asked.append("hot")

    async def start_hot_session(self, consent: Consent) -> None:
        self.consents.append(consent)
        if self.refusal is not None:
            raise self.refusal


def is_asking(user: AnalyseUser) -> bool:
    return isinstance(user.screen.app.screen, HotSessionScreen)


@pytest.mark.slow
async def test_a_session_begins_with_what_the_user_has_agreed_to() -> None:
    source = SessionAnalysis(made_report())
    async with analysing(source) as user:
        await user.press("4", "H")
        await user.until_shown("HOTKEYS START", "17 %", "1.6 %")
        await user.press("d", "s", "l", "y")
        await user.until(lambda: bool(source.consents))
        assert source.consents == [Consent(300, 10, discards_result=True)]
        await user.until_shown("Tracking hot keys")


async def test_the_hot_keys_grow_older_while_they_are_looked_at() -> None:
    source = FixedAnalysis(made_report())
    source.put(source.report, ScanState.DONE)
    async with analysing(source) as user:
        await user.press("4")
        await user.until_shown("4s old")
        source.status = replace(source.status, hot_since_s=60.0)
        user.screen.flush()
        await user.until_shown("1m 4s old")
        await user.press("2", "4")
        await user.until_shown("1m 4s old")


async def test_hot_keys_are_asked_for_again_only_while_they_are_shown() -> None:
    source = SessionAnalysis(made_report())
    async with analysing(source) as user:
        user.screen.flush()
        assert "hot" not in source.asked
        await user.press("4")
        user.screen.flush()
        await user.until(lambda: source.asked.count("hot") == 1)
        user.screen.flush()
        await user.pilot.pause()
        assert source.asked.count("hot") == 1


async def test_nothing_but_yes_starts_a_session() -> None:
    source = SessionAnalysis(made_report())
    async with analysing(source) as user:
        await user.press("4")
        for key in ("escape", "q", "n"):
            await user.press("H")
            await user.until(lambda: is_asking(user))
            await user.press("enter", "space", key)
            await user.until(lambda: not is_asking(user))
        assert source.consents == []


async def test_a_refused_session_is_told_and_costs_nothing_else() -> None:
    refusal = SessionRefusedError("No hot-key session", "A session runs; it is not rtui's to stop.")
    async with analysing(SessionAnalysis(made_report(), refusal)) as user:
        await user.press("4", "H", "y")
        await user.until_shown("No hot-key session", "not rtui's to stop")


@pytest.mark.slow
async def test_sessions_are_offered_only_where_there_are_any_and_not_while_a_pass_would_be_counted() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.press("4", "H")
        assert not is_asking(user)
    source = SessionAnalysis(made_report())
    source.put(made_report(), ScanState.RUNNING)
    async with analysing(source) as user:
        await user.press("4", "H")
        assert not is_asking(user)


async def test_time_ranges_timelines_and_slots_are_chosen_by_keys_by_the_table_and_by_mouse() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.press("5")
        await user.until_shown("coming expiries of shop:session")
        await user.press("right_square_bracket")
        await user.until_shown("coming expiries of all keys")
        await user.press("5")
        for time_range in (TimeRange.HOUR, TimeRange.DAY, TimeRange.WEEK, TimeRange.ALL, TimeRange.HOUR):
            await user.until_shown(f"[{time_range.title}]")
            await user.press("z")
        await user.press("6")
        await user.until_shown("slots 10,768–10,783")
        await user.press("shift+down", "shift+right")
        await user.until_shown("slots 11,808–11,823")
        await user.press("down")
        await user.until_shown("slots 6,880–6,895")
        await user.pilot.click("#chart", offset=(9, 1))
        await user.until_shown("slots 0–15")
        await user.press("6", "m")
        await user.until_shown("1.75 GiB in 16,384 slots")
        await user.press("N")
        await user.until_shown("[12]", "as a cluster of 12")
