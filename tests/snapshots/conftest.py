"""Nothing that is photographed may depend on the machine or the moment."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.tui.quick import quicken


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No animation, no colours from the environment, no themes of whoever runs the tests."""
    quicken(monkeypatch)
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr("rtui.tui.kit.themes.user_folder", lambda: tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
