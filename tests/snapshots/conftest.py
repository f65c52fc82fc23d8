"""Nothing that is photographed may depend on the machine or the moment."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from tests.tui.parsed_sheets import parse_once
from tests.tui.waiting import wait_for_busy


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No animation, no colours from the environment, no themes of whoever runs the tests."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", parse_once)
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_busy)
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr("rtui.tui.kit.themes.user_folder", lambda: tmp_path)
    monkeypatch.setattr("rtui.tui.browse.detail_fetcher.REST_S", 0.001)
    monkeypatch.setattr("rtui.tui.browse.tree_pane.FACTS_REST_S", 0.001)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
