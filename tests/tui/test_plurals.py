"""One of a thing is never told in the plural: what is drawn and written of reports of no, one and two keys."""

from __future__ import annotations

import re
from array import array
from itertools import product

import pytest
from msgspec.structs import replace
from textual.geometry import Size

from rtui.analysis.formats import FORMS, write_text
from rtui.analysis.report.document import Report
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen_lines import status_line, title_line
from rtui.tui.help import page_lines
from rtui.tui.navigation import help_topics
from tests.made_report import made_report, partial_report
from tests.tui.analyse.analysing import FixedAnalysis

_WRONG = re.compile(
    r"(?<![\d.,:/–-])1 (?:more )?(keys|rows|slots|bytes|commands|namespaces|fields|entries|levels|cliffs)\b"
)


def report_of(keys: int, made: Report) -> Report:
    """Return the report with the root, its types and its slots holding so many keys."""
    root = made.summary.root
    stats = replace(root.stats, keys=keys, no_ttl_keys=0, ttl=(keys, *(0 for _ in (root.stats.ttl or ())[1:])))
    types = tuple(replace(one, stats=replace(one.stats, keys=keys)) for one in made.summary.types)
    slots = replace(made.summary.slots, keys=array("I", [keys, *([0] * (len(made.summary.slots.keys) - 1))]))
    sizes = tuple(replace(one, bins=((1, keys),)) for one in made.keysizes)
    cost = replace(made.head.cost, commands=keys)
    coverage = replace(made.head.coverage, keys=keys, total_keys=keys)
    summary = replace(made.summary, root=replace(root, stats=stats), types=types, slots=slots)
    return replace(made, head=replace(made.head, coverage=coverage, cost=cost), summary=summary, keysizes=sizes)


def drawn(report: Report, width: int) -> str:
    """Return all that is drawn and written of a report."""
    lines = [
        *(line for panel in PANELS for line in panel.chart(report, panel.initial, Size(width + 2, 40))),
        title_line(FixedAnalysis(report).status, report, width),
        status_line(FixedAnalysis(report).status, report, 0.0, width, shows_cost=True),
    ]
    texts = ["".join(span.text for span in line) for line in lines]
    return "\n".join([*texts, write_text(report, width=width), re.sub(r"<[^>]*>", "", FORMS["html"](report))])


@pytest.mark.parametrize(("keys", "width"), product((0, 1, 2), (80, 160)))
@pytest.mark.parametrize("made", [made_report(), partial_report()], ids=["exact", "partial"])
def test_one_of_a_thing_is_never_told_in_the_plural(made: Report, keys: int, width: int) -> None:
    found = _WRONG.search(drawn(report_of(keys, made), width))
    assert found is None, found


def test_the_scan_for_plurals_finds_them() -> None:
    assert _WRONG.search("all 1 keys") is not None
    assert _WRONG.search("1,001 keys, 0.1 keys, 1 key") is None


@pytest.mark.parametrize("width", [60, 100])
def test_the_help_explains_the_terms(width: int) -> None:
    glossary = next(page for page in help_topics() if page.title == "Figures and terms")
    text = " ".join("".join(span.text for span in line) for line in page_lines(glossary, width))
    for entry in glossary.entries:
        assert entry.term in text
        assert entry.is_heading or entry.text.split()[-1] in text


def test_the_head_counts_the_keys_that_the_slots_count() -> None:
    made = made_report()
    coverage = replace(made.head.coverage, keys=42_683, unread=1)
    report = replace(made, head=replace(made.head, coverage=coverage))
    line = title_line(FixedAnalysis(report).status, report, 160)
    assert "exact · 42,684 keys" in "".join(span.text for span in line)
