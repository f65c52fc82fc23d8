"""What a user does in the analysis of a real server: opens it, has it done, looks at everything in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rtui.analysis.report.document import Report
from rtui.server.analysis.session import AnalysisSession
from rtui.server.scan.progress import ScanState
from rtui.server.wire.target import Target
from rtui.tui.analyse.panel import AnalysePanel
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.kit.bars import FooterBar
from tests.tui.visiting import Visitor, visiting


def analysis(visitor: Visitor) -> AnalysisSession:
    """The analysis of the visitor's session."""
    return visitor.session.analysis


def state(visitor: Visitor) -> ScanState:
    """How it is doing."""
    return analysis(visitor).status.progress.state


def report(visitor: Visitor) -> Report:
    """Its latest report."""
    found = analysis(visitor).report
    assert found is not None
    return found


def is_analysing(visitor: Visitor) -> bool:
    """Whether its screen is there and painted."""
    screen = visitor.app.screen
    return isinstance(screen, AnalyseScreen) and any(bar.lines for bar in screen.query(FooterBar))


def screen_of(visitor: Visitor) -> AnalyseScreen:
    """Its screen."""
    screen = visitor.app.screen
    assert isinstance(screen, AnalyseScreen), screen
    return screen


async def open_analysis(visitor: Visitor) -> AnalyseScreen:
    """Go to it from the tree."""
    await visitor.press("a")
    await visitor.until(lambda: is_analysing(visitor), "the analysis")
    return screen_of(visitor)


@asynccontextmanager
async def at_analysis(
    target: Target, folder: Path, *, size: tuple[int, int] = (120, 36), **options: Any
) -> AsyncIterator[Visitor]:
    """A user in the analysis of a server whose keys have all been counted."""
    async with visiting(target, folder, size=size, **options) as visitor:
        await visitor.whole()
        await open_analysis(visitor)
        yield visitor


async def ask(visitor: Visitor, key: str = "r") -> Report:
    """Have every key asked, or with `e` a sample, and wait until the last report is shown."""
    before = analysis(visitor).control
    await visitor.press(key)
    await visitor.until(lambda: analysis(visitor).control is not before and state(visitor).is_over, "the end")
    await up_to_date(visitor)
    return report(visitor)


async def up_to_date(visitor: Visitor) -> None:
    """Wait until the screen shows the latest."""
    screen = screen_of(visitor)
    await visitor.until(lambda: screen._seen == analysis(visitor).revision, "the latest figures")
    await visitor.until(lambda: not visitor.app.screen._dirty_widgets, "a paint")


async def panels(visitor: Visitor, *only: str) -> AsyncIterator[tuple[AnalysePanel[Any], str]]:
    """Go to every table of every panel, or of a few; yields each when it is shown, with what stands on the screen."""
    screen = screen_of(visitor)
    for panel in (panel for panel in PANELS if not only or panel.id in only):
        await visitor.press(panel.key)
        await visitor.until(lambda panel=panel: screen.view.panel is panel, panel.title)  # type: ignore[misc]
        for wanted in table_ids(screen, panel):
            await visitor.until(lambda at=wanted: table_id(screen) == at, wanted)  # type: ignore[misc]
            await visitor.pilot.pause()  # until what follows from the choice is laid out
            await visitor.until(lambda: not visitor.app.screen._dirty_widgets, "a paint")
            yield panel, visitor.text()
            await visitor.press("right_square_bracket")


def table_ids(screen: AnalyseScreen, panel: AnalysePanel[Any]) -> Iterator[str]:
    """The tables of a panel, from the one that is shown on."""
    assert screen.report is not None
    found = [table.id for table in screen.view.states.listed(panel, screen.report, screen.view.state)]
    at = found.index(table_id(screen))
    yield from found[at:] + found[:at]


def table_id(screen: AnalyseScreen) -> str:
    """The table that is shown."""
    assert screen.report is not None
    return screen.view.states.chosen(screen.view.panel, screen.report, screen.view.state).id
