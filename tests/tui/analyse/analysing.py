"""The Analyse screen on fixed values, opened from the tree as users open it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from rtui.analysis.report.tables.table import Subject
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.settings import SettingsFile
from tests.tui.analyse.fixed_analysis import FixedAnalysis
from tests.tui.browsing import until
from tests.tui.fixed_session import FixedSession
from tests.tui.palettes import PaletteApp


def app_on(
    source: FixedAnalysis,
    terminal: type[PaletteApp] | None = None,
    settings: SettingsFile | None = None,
    **options: Any,
) -> RtuiApp:
    """The whole interface with this analysis behind its tree, in a terminal of few colours if one is given.

    Without settings, the user has left the analysis at the Memory panel.
    """
    if settings is None:
        settings = SettingsFile()
        settings.choose("panel", "memory")
    session = FixedSession()
    session.analysis = source
    given = BrowseOptions(target=Target(host="10.0.0.5"), **options)
    return (
        RtuiApp(given, session, settings=settings)
        if terminal is None
        else terminal(given, session, palette=terminal.shown_in, settings=settings)
    )


class AnalyseUser:
    """A screen, its analysis, and a hand on the keyboard."""

    def __init__(self, pilot: Pilot[int], screen: AnalyseScreen, source: FixedAnalysis) -> None:
        self.pilot = pilot
        self.screen = screen
        self.source = source

    @property
    def subject(self) -> Subject:
        """What the row under the cursor is about."""
        return self.screen.view.table.body.subject

    @property
    def rows(self) -> list[str]:
        """The first cell of every row, from the top."""
        rows = self.screen.view.table.rows
        return [rows.texts(line)[0] for line in range(len(rows))]

    @property
    def text(self) -> str:
        """Everything on the screen."""
        with self.screen.app._context():
            strips = list(self.screen.app.screen._compositor.render_strips())
        return "\n".join("".join(part.text for part in strip if not part.control).rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(self.pilot, holds)

    async def until_shown(self, *texts: str) -> None:
        await self.until(lambda: all(text in self.text for text in texts))


@asynccontextmanager
async def analysing(
    source: FixedAnalysis, size: tuple[int, int] = (120, 36), **options: Any
) -> AsyncIterator[AnalyseUser]:
    """The screen over the tree."""
    app = app_on(source, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen) and app.screen.is_current)
        screen = app.screen
        assert isinstance(screen, AnalyseScreen)
        await until(pilot, lambda: screen.size.width > 0 and bool(screen.title_bar.lines))
        yield AnalyseUser(pilot, screen, source)
