"""What rests for people need not rest for tests, and no theme of whoever runs them is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from tests.servers import Server
from tests.tui.parsed_sheets import parse_once
from tests.tui.waiting import wait_for_busy


@pytest.fixture(autouse=True)
def without_rests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rtui.tui.browse.detail_fetcher.REST_S", 0.001)
    monkeypatch.setattr("rtui.tui.browse.tree_pane.FACTS_REST_S", 0.001)
    monkeypatch.setattr("rtui.tui.kit.themes.user_folder", lambda: tmp_path)


@pytest.fixture(autouse=True)
def with_parsed_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stylesheet, "_parse_rules", parse_once)


@pytest.fixture(autouse=True)
def with_short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_busy)


@pytest.fixture(params=["redis62", "valkey"])
def some_server(request: pytest.FixtureRequest) -> Server:
    """The oldest and the newest."""
    found: Server = request.getfixturevalue(request.param)
    return found
