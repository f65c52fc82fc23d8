"""The tables of all panels: in the order that their titles claim, and with a reason where they are empty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from msgspec import structs
from textual.geometry import Size

from rtui.analysis.columns import ALL_COLUMNS, parse_columns
from rtui.analysis.report.document import ColumnReport, ColumnState, Report
from rtui.server.analysis.session import AnalysisStatus
from rtui.tui.analyse.panel import PanelTable
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen_lines import empty_table_lines, offer_lines
from rtui.tui.analyse.size_panels import BigKeysState
from rtui.tui.analyse.slots_panel import SlotsPanel, SlotsState
from rtui.tui.kit.styled_text import Line
from rtui.tui.kit.table_rows import TableRows, TableState
from tests.made_report import denied_report, empty_report, estimate_report, made_report, partial_report
from tests.tui.analyse.fixed_analysis import READY

KNOWN = [made_report(), estimate_report(), partial_report(), empty_report()]


def said(lines: list[Line]) -> str:
    """The text of lines, as one."""
    return " ".join(" ".join(span.text for line in lines for span in line).split())


def tables(report: Report) -> Iterator[PanelTable]:
    """Every table of every panel."""
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
    status = AnalysisStatus(structs.replace(READY.server, no_touch=no_touch))
    text = said(offer_lines(status, 100))
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
