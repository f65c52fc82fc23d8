"""The Slow panel: each entry of the logs beside what they add up to, and each latency event."""

from __future__ import annotations

from rtui.analysis.health.sample import LatencyEvent, LoggedCommand, Sample
from rtui.analysis.health.slow_panel import slow_panel
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Table
from tests.made_report import MADE_AT_S
from tests.made_sample import made_sample

AT_S = int(MADE_AT_S)
HOSTILE = b"\x1b]0;x\x07[bold]\xff"


def tables(sample: Sample) -> dict[str, Table]:
    return {table.id: table for table in slow_panel(HealthView((sample,))).tables}


def test_entries_one_by_one() -> None:
    entries = (
        LoggedCommand(9, AT_S, 20_000, (b"SADD", b"tags", b"a", b"... (497 more arguments)"), argument_count=500),
        LoggedCommand(8, AT_S - 5, 11_000, (b"SET", HOSTILE, b""), b"10.0.0.9:7", b"shop"),
    )
    found = tables(made_sample(slow=entries))["slow_entries"]
    first, second = found.rows
    assert first == (AT_S, 0.02, "SADD tags a ... (497 more arguments)", 500, "", 9)
    assert (second[0], second[3], second[5]) == (AT_S - 5, None, 8)
    assert "\x1b" not in str(second[2])
    assert str(second[2]).endswith('""')
    assert str(second[4]).startswith("shop 10.0.0.9:7")
    assert found.subjects == (b"tags", HOSTILE)


def test_sizes_of_large_replies() -> None:
    entries = (LoggedCommand(1, AT_S, 5_000_000, (b"GET", b"page")),)
    found = tables(made_sample(large_replies=entries))["large_replies_entries"]
    assert found.rows[0][found.column("amount")] == 5_000_000


def test_events_one_by_one_and_those_whose_history_is_not_known() -> None:
    events = (
        LatencyEvent("command", AT_S, 12, 40, ((AT_S - 60, 40), (AT_S, 12))),
        LatencyEvent("fork", AT_S - 30, 9, 9),
    )
    found = tables(made_sample(latency=events))
    assert found["latency"].rows == (("command", 0.012, 0.04, 2, AT_S), ("fork", 0.009, 0.009, None, AT_S - 30))
    assert found["latency_history"].rows == ((AT_S, "command", 0.012), (AT_S - 60, "command", 0.04))


def test_many_events_are_not_all_listed() -> None:
    history = tuple((AT_S - 300 + at, 1) for at in range(250))
    found = tables(made_sample(latency=(LatencyEvent("command", AT_S, 1, 1, history),)))["latency_history"]
    assert (len(found.rows), found.note) == (200, "The latest 200 of 250.")
