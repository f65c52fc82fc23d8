"""What rests for people need not rest for tests, and no theme of whoever runs them is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import Server
from tests.tui.quick import quicken


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quicken(monkeypatch)
    monkeypatch.setattr("rtui.tui.kit.themes.user_folder", lambda: tmp_path)


@pytest.fixture(params=["redis62", "valkey"])
def some_server(request: pytest.FixtureRequest) -> Server:
    """The oldest and the newest."""
    found: Server = request.getfixturevalue(request.param)
    return found
