"""Every text that is painted can be read, in every theme as every palette shows it: 4.5:1, as WCAG 2 asks (AA).

The pairs of colours are those that occur: scenes are painted and their cells looked at, whatever widget they are of.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.theme import Theme

from rtui.analysis.report.document import Report
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.options import BrowseOptions
from rtui.server.wire.connection import Lost
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.kit.themes import Palette, load_themes
from rtui.tui.navigation import all_css
from tests.made_report import denied_report, estimate_report, made_report
from tests.tui.analyse.analysing import RUNNING, FixedAnalysis, app_on
from tests.tui.browsing import until
from tests.tui.fixed_session import COMPLETE, FixedSession
from tests.tui.palettes import GRAPHICS, contrast_of, painted

LEAST = 4.5

OPEN: Final = ("enter", "down", "enter", "down", "enter", "down", "down")

TREE: Final[dict[str, Sequence[str]]] = {
    "tree": OPEN,
    "detail": (*OPEN, "tab"),
    "filter": ("slash", *"cart"),
    "no-match": ("slash", *"zzz", "enter"),
    "jump": ("f", *"lo"),
    "toast": ("y",),
    "copy": ("Y",),
    "texts-to-select": ("Y", "end", "enter"),
    "columns": ("c",),
    "help": ("question_mark",),
    "slot": ("f", *"{user", "enter", "right", "down", "2"),
}

PALETTES: Final[dict[str, Sequence[str]]] = {"commands": ("ctrl+p", *"sort"), "themes": ("t",)}

PANELS: Final[dict[str, Sequence[str]]] = {
    "memory": (), "idle": ("v",), "types-of-memory": ("v", "v"), "big": ("3",), "hot": ("4",), "expiry": ("5",),
    "slots": ("6",), "types": ("7",), "below": ("down", "enter"), "table-filter": ("3", "slash", *"user"),
    "file": ("w",),
}  # fmt: skip


Themes = dict[str, tuple[Palette, Theme]]
"""Themes in palettes, by names of their own."""


def themes() -> Themes:
    """Every theme in every palette."""
    found: Themes = {}
    for palette in Palette:
        for theme in load_themes(all_css, Path("/nowhere"), palette).themes:
            theme.name = f"{theme.name}-{palette.name}"
            found[theme.name] = palette, theme
    return found


EVERY: Final = 5
"""Without `--thorough` a scene is painted in every fifth of them, each another theme in another palette."""


@pytest.fixture
def some_themes(request: pytest.FixtureRequest) -> Themes:
    """The themes for one scene: every fifth, beginning with another one for each scene, or all."""
    if request.config.getoption("--thorough"):
        return themes()
    first = zlib.crc32(request.node.nodeid.encode()) % EVERY
    return dict(list(themes().items())[first::EVERY])


Found = dict[tuple[str, float, str], str]
"""What stands out too little: the theme, the contrast, the style, and such a text."""


async def unreadable(app: RtuiApp, keys: Sequence[str], shown: Themes, monkeypatch: pytest.MonkeyPatch) -> Found:
    """Paint one scene in some themes, and return what can't be read."""
    monkeypatch.setattr(RtuiApp, "_background_screens", property(lambda _self: []))
    found: Found = {}
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen | AnalyseScreen))
        await press(pilot, keys)
        for name, (palette, theme) in shown.items():
            app.register_theme(theme)
            app.theme = name
            await pilot.pause()
            await pilot.pause()
            look_at(app, palette, found)
    return found


def look_at(app: RtuiApp, palette: Palette, found: Found) -> None:
    """Add what can't be read now."""
    texts = [(text, style) for text, style in painted(app) if not set(text) <= GRAPHICS]
    assert texts
    for text, style in texts:
        ratio = contrast_of(style, palette)
        if ratio < LEAST or style.dim:
            found.setdefault((app.theme, round(ratio, 2), str(style)), text.strip())


async def press(pilot: Pilot[int], keys: Sequence[str]) -> None:
    await rest(pilot.app)
    for key in keys:
        await pilot.press(key)
        await rest(pilot.app)


async def rest(app: App[int]) -> None:
    """Wait until no worker of the application is under way."""
    await app.workers.wait_for_complete([worker for worker in app.workers if worker.is_running])


@pytest.mark.slow
@pytest.mark.parametrize("scene", TREE)
async def test_texts_over_the_tree(scene: str, some_themes: Themes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not await unreadable(RtuiApp(BrowseOptions(), FixedSession()), TREE[scene], some_themes, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("scene", PALETTES)
async def test_texts_of_the_palettes(scene: str, some_themes: Themes, monkeypatch: pytest.MonkeyPatch) -> None:
    """They keep the colours in which they were opened, so each theme has one of its own."""
    monkeypatch.setattr(RtuiApp, "_background_screens", property(lambda _self: []))
    app, found = RtuiApp(BrowseOptions(), FixedSession()), Found()
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
        for name, (palette, theme) in some_themes.items():
            app.register_theme(theme)
            app.theme = name
            await press(pilot, PALETTES[scene])
            await until(pilot, lambda: not isinstance(app.screen, BrowseScreen))
            look_at(app, palette, found)
            await press(pilot, ["escape"])
            await until(pilot, lambda: isinstance(app.screen, BrowseScreen))
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("scene", PANELS)
async def test_texts_of_an_analysis(scene: str, some_themes: Themes, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(FixedAnalysis(made_report(), RUNNING))
    assert not await unreadable(app, ("a", *PANELS[scene]), some_themes, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("panel", ["2", "4", "6"])
@pytest.mark.parametrize("report", [denied_report(), estimate_report()], ids=["denied", "estimate"])
async def test_texts_of_what_is_known_less_well(
    panel: str, report: Report, some_themes: Themes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not await unreadable(app_on(FixedAnalysis(report, RUNNING)), ("a", panel), some_themes, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("status", [replace(COMPLETE, link=Lost(None, 2, 0.0)), COMPLETE], ids=["lost", "empty"])
async def test_texts_where_something_is_missing(
    status: BrowsingStatus, some_themes: Themes, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = FixedSession(status, []) if status is COMPLETE else FixedSession(status)
    assert not await unreadable(RtuiApp(BrowseOptions(), session), (), some_themes, monkeypatch)
