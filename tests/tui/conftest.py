"""What rests for people need not rest for tests, and no theme of whoever runs them is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def without_rests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rtui.tui.browse.detail_fetcher.REST_S", 0.001)
    monkeypatch.setattr("rtui.tui.browse.tree_pane.FACTS_REST_S", 0.001)
    monkeypatch.setattr("rtui.tui.kit.themes.user_folder", lambda: tmp_path)
