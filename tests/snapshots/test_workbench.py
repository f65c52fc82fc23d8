"""What one works with as pictures, in true colour and in the 256 colours that SSH gives, at sizes not taken elsewhere.

Found keys, a decoded value, the line that goes anywhere, a watch, changes, servers and databases, the command log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from rtui.server.analysis.kept_reports import KeptReports
from rtui.server.options import BrowseOptions
from rtui.server.wire.target import Target
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from tests.made_report import MADE_AT_S, made_report
from tests.snapshots import test_log
from tests.snapshots.test_analyse import DONE
from tests.snapshots.test_find import done, typed
from tests.snapshots.test_find import session as finding
from tests.snapshots.test_screens import Compare, doing, settle
from tests.tui.analyse.analysing import FixedAnalysis
from tests.tui.analyse.test_live import yesterday
from tests.tui.browse.test_panes import Growing
from tests.tui.browse.test_value import ValueSession
from tests.tui.browsing import until
from tests.tui.fixed_session import FixedSession
from tests.tui.palettes import XtermApp

Look = Callable[[Pilot[int]], Awaitable[None]]

PROFILES = """\
[prod-cache]
url = "rediss://app@10.0.0.5:6380/2"
word = "PROD"
colour = "red"

[staging]
host = "10.1.0.5"
"""


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two profiles, and no recent servers."""
    path = tmp_path / "beside the themes" / "profiles.toml"
    path.parent.mkdir()
    path.write_text(PROFILES, encoding="utf-8")
    path.chmod(0o600)
    monkeypatch.setattr("rtui.server.user.known_servers.default_path", lambda: path)
    monkeypatch.setattr("platformdirs.user_state_path", lambda *_names, **_options: tmp_path)


async def decoded(pilot: Pilot[int]) -> None:
    await doing()(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, BrowseScreen)
    screen.tree_pane.reveal(b"shop:session:0042")
    await until(pilot, lambda: screen.detail_pane.detail.preview is not None)
    await settle(pilot)
    await pilot.press("enter", "down", "enter")
    await settle(pilot)


async def watched(pilot: Pilot[int]) -> None:
    await doing()(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, BrowseScreen)
    screen.tree_pane.reveal(b"jobs")
    await until(pilot, lambda: screen.detail_pane.detail.preview is not None)
    await settle(pilot)
    await pilot.press("W")
    await until(pilot, lambda: bool(screen.status_bar.watching))
    await settle(pilot)


async def compared(pilot: Pilot[int]) -> None:
    await doing("a")(pilot)
    await until(pilot, lambda: isinstance(pilot.app.screen, AnalyseScreen))
    screen = pilot.app.screen
    assert isinstance(screen, AnalyseScreen)
    screen.clock = lambda: MADE_AT_S + 60
    await pilot.press("D")
    await until(pilot, lambda: screen.is_current and bool(screen.bar_below_tabs.lines))
    await until(pilot, lambda: any(column.is_change for column in screen.view.table.rows.table.columns))
    await settle(pilot)


def comparing(folder: Path) -> FixedSession:
    kept = KeptReports("10.0.0.5:6379", 0, folder)
    kept.keep(yesterday())
    session = FixedSession()
    session.analysis = FixedAnalysis(made_report(), DONE, kept)
    return session


SESSIONS: dict[str, Callable[[Path], FixedSession]] = {
    "found": lambda _: finding(done),
    "decoder": lambda _: ValueSession(),
    "watch": lambda _: Growing(),
    "changes": comparing,
    "log": lambda _: test_log.session(test_log.made()),
}


def made(name: str, folder: Path) -> FixedSession:
    """The session of a look."""
    return SESSIONS[name](folder) if name in SESSIONS else FixedSession()


LOOKS: dict[str, Look] = {
    "found": doing(*typed("cart len>0", "enter", "down")),
    "decoder": decoded,
    "goto": doing("colon", *"user"),
    "watch": watched,
    "changes": compared,
    "servers": doing("O"),
    "databases": doing("B"),
    "log": doing("L"),
}
SMALL, MEDIUM, LARGE = (80, 24), (120, 36), (200, 50)
OPTIONS = BrowseOptions(target=Target(host="10.0.0.5"))


@pytest.mark.parametrize(("name", "size"), [("decoder", SMALL), ("servers", SMALL)], ids=str)
def test_in_true_colour(snap_compare: Compare, name: str, size: tuple[int, int], tmp_path: Path) -> None:
    one = RtuiApp(OPTIONS, made(name, tmp_path))
    assert snap_compare(one, terminal_size=size, run_before=LOOKS[name])


@pytest.mark.parametrize(("name", "size"), [("found", SMALL), ("changes", LARGE)], ids=str)
def test_in_256_colours(snap_compare: Compare, name: str, size: tuple[int, int], tmp_path: Path) -> None:
    one = XtermApp(OPTIONS, made(name, tmp_path), palette=XtermApp.shown_in)
    assert snap_compare(one, terminal_size=size, run_before=LOOKS[name])
