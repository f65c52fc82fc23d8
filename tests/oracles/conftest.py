"""The engines that analyses are held against counts of."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["compiled", "table"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What RTUI_ENGINE says."""
    name: str = request.param
    monkeypatch.setenv("RTUI_ENGINE", name)
    return name
