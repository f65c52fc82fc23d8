from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.formats import write_text
from rtui.analysis.formats.text import cells_of
from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import HOSTILE
from tests.analysis.formats.generated import reports
from tests.analysis.formats.made import MADE
from tests.examples import examples

GOLDEN = Path(__file__).parent / "golden"
"""What people read, as it was when somebody last looked at it: `write_text` of the made reports, 100 wide."""


@pytest.mark.parametrize("name", MADE)
def test_people_read_what_was_agreed(name: str) -> None:
    assert write_text(MADE[name], width=100) == (GOLDEN / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_it_may_be(name: str, width: int) -> None:
    assert max(map(cells_of, write_text(MADE[name], width=width).splitlines())) <= width


def test_without_a_width_nothing_is_cut() -> None:
    long = b"a:" * 100 + b"z"
    exact = MADE["exact"]
    record = replace(exact.summary.big.by_memory[0], key=long)
    big = replace(exact.summary.big, by_memory=(record,))
    report = replace(exact, summary=replace(exact.summary, big=big))
    assert long.decode() in write_text(report, width=None)
    assert long.decode() not in write_text(report, width=100)


@pytest.mark.parametrize("name", MADE)
def test_the_ascii_form_is_ascii(name: str) -> None:
    assert write_text(MADE[name], ascii_only=True).isascii()


def test_wide_names_keep_the_columns_in_line() -> None:
    exact = MADE["exact"]
    wide = tuple(replace(one, key=("鍵" * 5).encode()) for one in exact.summary.big.by_memory[:2])
    big = replace(exact.summary.big, by_memory=(*wide, exact.summary.big.by_memory[4]))
    lines = write_text(replace(exact, summary=replace(exact.summary, big=big))).splitlines()
    start = lines.index("Biggest keys by memory")
    ends = {cells_of(line[: line.index("hashtable")]) for line in lines[start + 2 : start + 5] if "hashtable" in line}
    assert len(ends) == 1


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(reports, st.sampled_from((None, 20, 100)), st.booleans())
def test_every_line_of_any_report_is_safe(report: Report, width: int | None, ascii_only: bool) -> None:
    text = write_text(report, width=width, ascii_only=ascii_only)
    assert text.isascii() or not ascii_only
    assert not any(HOSTILE.search(line) for line in text.split("\n"))
