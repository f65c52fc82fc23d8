"""Text and numbers that try something, in every place of an analysis: nothing gets through as it is, or breaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from textual.filter import LineFilter
from textual.geometry import Size

from rtui.analysis.formats import FORMS
from rtui.analysis.formats.json import ReportFormatError, document, read_json
from rtui.analysis.report.document import Report
from rtui.analysis.report.members import LARGEST_NUMBER
from rtui.analysis.report.tables.table import cell_interval, cell_reason, cell_text, sort_key
from rtui.server.options import BrowseOptions
from rtui.tui.analyse.expiry_panel import ExpiryState, TimeRange
from rtui.tui.analyse.panel import AnalysePanel, Charts, PanelState
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.size_panels import BigKeysState
from rtui.tui.analyse.slots_panel import SlotsState
from rtui.tui.run import ReportApp
from tests.conftest import examples
from tests.made_report import estimate_report, made_report
from tests.server.targets import target_of
from tests.servers import Server
from tests.tui.analyse.analysis_tour import ask, at_analysis, is_analysing, open_analysis, panels, screen_of, state
from tests.tui.browsing import until
from tests.tui.test_hostile_text import ONE_LINE, PAYLOADS, Netless, hostile_server, netless, plant
from tests.tui.visiting import Visitor, check_text, visiting

HOSTILE: Final = ONE_LINE.decode("utf-8", "replace") + "\r\n"

LONG: Final = b"\x1b]0;owned\x07" * 6_000
"""A name of 60 KB, which is still asked in bulk."""

STRANGE: Final[tuple[Any, ...]] = (
    -1, 0, int(LARGEST_NUMBER), -LARGEST_NUMBER, 1e-320, 10**30, 1e308, None, "7", [], {}, True,
)  # fmt: skip
"""What may stand where a number should."""

AREA: Final = Size(118, 30)

FILE: Final = {make.__name__: json.dumps(document(make())) for make in (made_report, estimate_report)}

Place = tuple[str | int, ...]

WORDS: Final = frozenset({"format", "kind", "state", "source", "idle_basis"})
"""Members that have to be one of a few words."""


class NetlessReport(ReportApp):
    """A report on the screen without the last net."""

    def get_line_filters(self) -> list[LineFilter]:
        return Netless.get_line_filters(self)  # type: ignore[arg-type]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where the numbers and texts of a file are; of long lists only the first items."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from places(one, (*at, name))
    elif isinstance(value, list):
        for number, one in enumerate(value[:3]):
            yield from places(one, (*at, number))
    else:
        yield at


PLACES: Final = sorted(places(json.loads(FILE["made_report"])), key=str)


def changed(text: str, changes: dict[Place, Any]) -> str:
    """A file with other values at some places."""
    found = json.loads(text)
    for place, value in changes.items():
        holder = found
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
    return json.dumps(found)


OTHER_STATES: Final[dict[str, PanelState]] = {
    "big": BigKeysState(by_length=True),
    "expiry": ExpiryState(time_range=TimeRange.ALL),
    "slots": SlotsState(by_bytes=True),
}


def show(report: Report) -> None:
    """Make every line and every cell that a screen could show of a report."""
    for panel in PANELS:
        for chosen in (panel.initial, OTHER_STATES.get(panel.id, panel.initial)):
            for table in panel.tables(report, chosen):
                _show_table(panel, report, replace(chosen, table_id=table.id))
            _show_chart(panel, report, chosen)


def _show_table(panel: AnalysePanel[Any], report: Report, chosen: PanelState) -> None:
    shown = next(one for one in panel.tables(report, chosen) if one.id == chosen.table_id)
    table = shown.make()
    check_text(table.title + table.note)
    for number, row in enumerate(table.rows[:20]):
        if shown.is_marked is not None:
            shown.is_marked(table, number)
        for cell, column in zip(row, table.columns, strict=True):
            check_text(cell_text(cell, column) + (cell_interval(cell, column) or "") + cell_reason(cell))
            sort_key(cell)
        panel.zoomed_in(report, replace(chosen, subject=table.subject(number)))


def _show_chart(panel: AnalysePanel[Any], report: Report, chosen: PanelState) -> None:
    height = Charts().height(panel, report, chosen, AREA)
    if height:
        for line in panel.chart(report, chosen, Size(AREA.width, height)):
            check_text("".join(span.text for span in line))


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from(sorted(FILE)),
    st.dictionaries(st.sampled_from(PLACES), st.sampled_from((*STRANGE, HOSTILE)), max_size=5),
)
@example("made_report", {("head", "made_at_s"): LARGEST_NUMBER})
@example("made_report", {("head", "made_at_s"): -LARGEST_NUMBER})
@example("made_report", {("summary", "namespaces", 1, "stats", "memory_bytes"): -1})
def test_a_strange_file_is_shown_or_refused(name: str, changes: dict[Place, Any]) -> None:
    try:
        report = read_json(changed(FILE[name], changes))
    except ReportFormatError as error:
        check_text(str(error))
        return
    show(report)


@pytest.mark.parametrize(
    "text",
    ["", "[" * 100_000, "{" * 100_000, '{"a":' * 100_000, "NaN", '{"format": "rtui report", "schema": 1}', "9" * 5_000],
    ids=["empty", "lists", "objects", "members", "nan", "head alone", "digits"],
)
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ReportFormatError) as refused:
        read_json(text)
    check_text(str(refused.value))


def poisoned() -> Report:
    """A report from a file in which every name and text is hostile, but those that have to be one of a few words."""
    found = json.loads(FILE["made_report"])
    changes: dict[Place, Any] = {}
    for place in places(found):
        holder, name = found, next(step for step in reversed(place) if isinstance(step, str))
        for step in place[:-1]:
            holder = holder[step]
        is_word = name in WORDS or place[:3] == ("head", "scope", "columns")
        if isinstance(holder[place[-1]], str) and not is_word:
            changes[place] = HOSTILE.replace("\\", r"\\")  # a name as well as a text
    assert len(changes) > 50
    return read_json(changed(FILE["made_report"], changes))


@pytest.mark.slow
async def test_a_poisoned_report_is_shown_in_every_panel_and_written_in_every_form() -> None:
    report = poisoned()
    show(report)
    for write in FORMS.values():
        for line in write(report).splitlines():
            check_text(line.replace("\t", " "))
    app = NetlessReport(report, BrowseOptions())
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        visitor = Visitor(app, pilot)
        await until(pilot, lambda: is_analysing(visitor))
        for panel in PANELS:
            await visitor.press(panel.key, "right_square_bracket", "y", "down", "greater_than_sign")
            await visitor.until(lambda panel=panel: screen_of(visitor).view.panel is panel, panel.title)  # type: ignore[misc]
            await visitor.until(lambda: not app.screen._dirty_widgets, "a paint")
            visitor.check_harmless()


@pytest.mark.slow
async def test_hostile_keys_in_every_panel_copy_and_file(valkey: Server, tmp_path: Path) -> None:
    client = valkey.client()
    plant(client)
    client.set(LONG, "x", ex=60)
    for text in PAYLOADS:
        client.set(b"{" + text + b"}:" + text, "x" * 9_000, ex=90)
    target = target_of(valkey)
    async with at_analysis(target, tmp_path, app=netless(target), size=(140, 40)) as visitor:
        screen = screen_of(visitor)
        await ask(visitor)
        async for _ in panels(visitor):
            visitor.check_harmless()
            await visitor.press("end", "y")
            await visitor.until(lambda: not visitor.app.screen._dirty_widgets, "a paint")
            check_text(visitor.app.clipboard.replace("\t", " "))
            visitor.check_painted()
        await visitor.press("3", "home")
        for suffix in (".csv", ".md", ".json"):
            path = tmp_path / f"big{suffix}"
            await visitor.press("w")
            await visitor.until(lambda: visitor.app.focused is screen.file_input, "the line for a name")
            await visitor.paste(str(path))
            await visitor.until(lambda path=path: screen.file_input.value == str(path), "the name")  # type: ignore[misc]
            await visitor.press("enter")
            await visitor.until(path.exists, "the file")
            for line in path.read_text().splitlines():
                check_text(line)


async def test_what_a_server_says_of_itself_and_in_errors(tmp_path: Path) -> None:
    async with hostile_server() as target, visiting(target, tmp_path, app=netless(target)) as visitor:
        await visitor.connected()
        await open_analysis(visitor)
        for key in ("r", "e"):
            await visitor.press(key)
            await visitor.until(lambda: state(visitor).is_over, "the end")
            await visitor.until(lambda: not visitor.app.screen._dirty_widgets, "a paint")
            visitor.check_harmless()
            await visitor.press("1", "2", "3", "4", "5", "6", "7", "i")
            await visitor.until(lambda: not visitor.app.screen._dirty_widgets, "a paint")
            visitor.check_harmless()
