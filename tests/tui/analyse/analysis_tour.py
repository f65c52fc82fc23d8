"""One long session in which everything of an analysis is used once, and all that can be known of it afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from rtui.analysis.report.document import CoverageKind, Report
from rtui.server.analysis.session import AnalysisSession
from rtui.server.guard.command import Secret
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.wire.target import Target
from rtui.tui.analyse.hot_panel import HotSessionScreen
from rtui.tui.analyse.panel import AnalysePanel
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.kit.bars import FooterBar
from tests.conftest import known
from tests.proxy import DelayProxy
from tests.servers import Server
from tests.tui.tour import Witnessed
from tests.tui.visiting import Visitor, visiting

SIZE: Final = (110, 30)
"""A small terminal is painted soon."""

PANEL_KEYS: Final = (
    "greater_than_sign", "S", "M", "M", "T", "N", "m", "z", "shift+down", "shift+right", "end", "pageup", "home", "i",
)  # fmt: skip
"""What changes what a panel shows; each does nothing where it means nothing."""


@dataclass(slots=True)
class AnalysisTour(Witnessed):
    """What a session did to a server, and what it showed."""

    before_analysis: int = 0
    """How many commands the tree has sent before the analysis was opened."""
    estimate: Report | None = None
    report: Report | None = None
    texts: dict[str, list[str]] = field(default_factory=dict)
    """What each panel showed, by its id, a text a table."""
    gone_to: bytes = b""
    """The key that was gone to in the tree."""
    written: str = ""


async def analysis_tour(
    server: Server, folder: Path, *, what: str, user: tuple[str, Secret] | None = None, consents: bool = False
) -> AnalysisTour:
    """Take the tour; `what` is FREQ or IDLETIME, `consents` starts a hot-key session where there are such."""
    done = AnalysisTour(server)
    async with done.visited(folder, what, user, SIZE) as (visitor, proxy):
        await visitor.whole()
        await visitor.settled()
        done.before_analysis = len(proxy.commands())
        await _everything(visitor, proxy, done, folder, consents=consents)
    return done


async def _everything(visitor: Visitor, proxy: DelayProxy, done: AnalysisTour, folder: Path, *, consents: bool) -> None:
    await open_analysis(visitor)
    done.estimate = await ask(visitor, "e")
    await visitor.until_shown("≈ estimate")
    await _hold_the_pass(visitor, proxy)
    done.report = report(visitor)
    await _look(visitor, done)
    await _sort_and_filter(visitor)
    await _take_away(visitor, done, folder)
    await _consider_a_session(visitor, consents=consents)
    await _go_and_come_back(visitor, done)
    await visitor.press("a")
    await visitor.until(lambda: visitor.is_browsing, "the tree")
    await visitor.press("q")
    await visitor.until(lambda: not visitor.app.is_running, "the end")


async def _hold_the_pass(visitor: Visitor, proxy: DelayProxy) -> None:
    """Ask every key, slowly enough to pause, to go on and to change the pace."""
    proxy.hold_replies()
    await visitor.press("r")
    await visitor.until(lambda: analysis(visitor).status.is_under_way, "a pass")
    await visitor.press("p", "plus", "plus", "minus")
    await visitor.until(lambda: analysis(visitor).status.pace is Pace.NORMAL, "change the pace")
    proxy.release_replies()
    await visitor.until(lambda: state(visitor) is ScanState.PAUSED, "a pause")
    await visitor.until_shown("paused", "pace normal")
    await visitor.press("p")
    await visitor.until(lambda: state(visitor) is ScanState.DONE, "the end")
    await visitor.until(lambda: report(visitor).head.coverage.kind is CoverageKind.EXACT, "every key")
    await visitor.until_shown("exact")


async def _look(visitor: Visitor, done: AnalysisTour) -> None:
    """Look at every table of every panel, and change all that can be changed of it."""
    async for panel, text in panels(visitor):
        visitor.check_painted()
        done.texts.setdefault(panel.id, []).append(text)
    view = screen_of(visitor).view
    for panel in PANELS:
        await visitor.press(panel.key)
        await visitor.until(lambda panel=panel: view.panel is panel, panel.title)  # type: ignore[misc]
        await visitor.press(*PANEL_KEYS)
        await visitor.until(lambda: not visitor.app.screen._dirty_widgets, "a paint")
        visitor.check_painted()
    await visitor.press("tab")
    await visitor.until(lambda: view.panel is PANELS[0], "the first panel")
    await visitor.press("2", "home")
    await visitor.until(lambda: view.panel.id == "memory" and view.table.body.cursor_line == 0, "the first row")
    await _zoom(visitor)


async def _zoom(visitor: Visitor) -> None:
    """Go to a namespace, into it, and out of it."""
    screen = screen_of(visitor)
    while screen.view.panel.zoomed_in(report(visitor), screen.view.state) is None:
        line = screen.view.table.body.cursor_line + 1
        await visitor.press("down")
        await visitor.until(partial(_is_on_line, screen, line), "the next row")
    await visitor.press("enter")
    await visitor.until(lambda: screen.view.state.path, "a namespace")
    await visitor.press("left")
    await visitor.until(lambda: not screen.view.state.path, "the whole")


def _is_on_line(screen: AnalyseScreen, line: int) -> bool:
    return screen.view.table.body.cursor_line == line and screen.view.state.subject == screen.view.subject


async def _sort_and_filter(visitor: Visitor) -> None:
    screen = screen_of(visitor)
    await visitor.press("3", "slash")
    await visitor.until(lambda: visitor.app.focused is screen.filter_input, "the filter line")
    await visitor.paste("list:")
    await visitor.until(lambda: screen.view.table.rows.state.filter_text == "list:", "the filter")
    await visitor.press("enter", "greater_than_sign", "S")
    await visitor.until_shown("rows with list:", "list:long")


async def _take_away(visitor: Visitor, done: AnalysisTour, folder: Path) -> None:
    """Copy a row in every way, and write what the table shows."""
    await done.copy(visitor, lambda: is_analysing(visitor))
    screen, path = screen_of(visitor), folder / "big.json"
    await visitor.press("w")
    await visitor.until(lambda: visitor.app.focused is screen.file_input, "the line for a name")
    await visitor.paste(str(path))
    await visitor.until(lambda: screen.file_input.value == str(path), "the name")
    await visitor.press("enter")
    await visitor.until_shown("Written")
    done.written = path.read_text()
    await visitor.press("escape")
    await visitor.until(lambda: not screen.view.table.rows.state.filter_text, "all rows")


async def _consider_a_session(visitor: Visitor, *, consents: bool) -> None:
    """Read what a hot-key session would change, and decline; or agree to one of half a minute."""
    await visitor.press("4")
    await visitor.until(lambda: screen_of(visitor).view.panel.id == "hot", "the hot keys")
    if not analysis(visitor).offers_hot_session:
        await visitor.press("H")
        assert is_analysing(visitor)
        return
    for answer in ("escape", "n", *("y" * consents)):
        await visitor.press("H")
        await visitor.until(lambda: isinstance(visitor.app.screen, HotSessionScreen), "the question")
        await visitor.until_shown("HOTKEYS START")
        await visitor.press("d", "s", answer)
        await visitor.until(lambda: is_analysing(visitor), "the analysis")
    if consents:
        await visitor.until_shown("Tracking hot keys")


async def _go_and_come_back(visitor: Visitor, done: AnalysisTour) -> None:
    """Go from the largest keys to one of them in the tree, look at it, and come back to the panel."""
    screen = screen_of(visitor)
    await visitor.press("3", "home")
    await visitor.until(lambda: screen.view.panel.id == "big" and _is_on_line(screen, 0), "the first of the largest")
    subject = screen.view.subject
    assert isinstance(subject, bytes)
    done.gone_to = subject
    await visitor.press("enter")
    await visitor.until(lambda: visitor.is_browsing, "the tree")
    await visitor.until(lambda: visitor.detail.key == subject, "the key")
    await visitor.settled()
    again = await open_analysis(visitor)
    assert again.view.panel.id == "big"
    await visitor.until_shown("exact")


def analysis(visitor: Visitor) -> AnalysisSession:
    return visitor.session.analysis


def state(visitor: Visitor) -> ScanState:
    """How it is doing."""
    return analysis(visitor).status.progress.state


def report(visitor: Visitor) -> Report:
    return known(analysis(visitor).report)


def is_analysing(visitor: Visitor) -> bool:
    """Whether its screen is there and painted."""
    screen = visitor.app.screen
    return isinstance(screen, AnalyseScreen) and any(bar.lines for bar in screen.query(FooterBar))


def screen_of(visitor: Visitor) -> AnalyseScreen:
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
    found = [table.id for table in screen.view.states.listed(panel, known(screen.report), screen.view.state)]
    at = found.index(table_id(screen))
    yield from found[at:] + found[:at]


def table_id(screen: AnalyseScreen) -> str:
    """The table that is shown."""
    return screen.view.states.chosen(screen.view.panel, known(screen.report), screen.view.state).id
