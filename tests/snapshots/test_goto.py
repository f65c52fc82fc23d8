"""The line that goes to anything, as pictures: as it begins, with names, with hostile ones, and with nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.snapshots.test_screens import Compare, app, doing
from tests.tui.fixed_session import FixedSession


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's profiles and recent servers."""
    monkeypatch.setattr("rtui.server.user.known_servers.default_path", lambda: tmp_path / "profiles.toml")
    monkeypatch.setattr("platformdirs.user_state_path", lambda *_names, **_options: tmp_path)


def typed(text: str) -> tuple[str, ...]:
    return ("colon", *("space" if character == " " else character for character in text.replace(":", "")))


@pytest.mark.parametrize(("text", "size"), [("", (80, 24)), ("user", (120, 36))], ids=["begins", "names"])
def test_going(snap_compare: Compare, size: tuple[int, int], text: str) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*typed(text)))


def test_hostile_names(snap_compare: Compare) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=(40, 14), run_before=doing(*typed("key hostile")))
