"""The engines that analyses are held against counts of."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["", "table"], ids=["default", "table"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What RTUI_ENGINE says: nothing, so that the compiled engine counts where it was built, or a table."""
    name: str = request.param
    monkeypatch.setenv("RTUI_ENGINE", name)
    return name
