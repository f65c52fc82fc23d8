"""The line that goes to anything, as pictures: as it begins, with names, with hostile ones, and with nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.snapshots.test_screens import Compare, app, doing
from tests.tui.fixed_session import FixedSession

SIZES = pytest.mark.parametrize("size", [(40, 14), (80, 24), (120, 36)], ids=["40x14", "80x24", "120x36"])


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's profiles and recent servers."""
    monkeypatch.setattr("rtui.server.profiles.default_path", lambda: tmp_path / "profiles.toml")
    monkeypatch.setattr("platformdirs.user_state_path", lambda *_names, **_options: tmp_path)


def typed(text: str) -> tuple[str, ...]:
    return ("colon", *("space" if character == " " else character for character in text.replace(":", "")))


@SIZES
@pytest.mark.parametrize("text", ["", "user"], ids=["begins", "names"])
def test_going(snap_compare: Compare, size: tuple[int, int], text: str) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*typed(text)))


@pytest.mark.parametrize("text", ["key hostile", "db ", "cmd zz"], ids=["hostile", "databases", "nothing"])
def test_narrowed(snap_compare: Compare, text: str) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=(80, 24), run_before=doing(*typed(text)))
