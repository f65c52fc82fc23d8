"""The help as pictures, for what has the keyboard."""

from __future__ import annotations

import pytest

from tests.snapshots.test_screens import Compare, app, doing
from tests.tui.fixed_session import FixedSession


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
@pytest.mark.parametrize("keys", [(), ("end", "enter"), ("a", "2"), ("L",)], ids=["tree", "value", "analysis", "log"])
def test_help(snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*keys, "question_mark"))


@pytest.mark.parametrize("turns", [2, 1], ids=["rules", "conventions"])
def test_help_of_rules_and_conventions(snap_compare: Compare, turns: int) -> None:
    keys = ("question_mark", *["shift+tab"] * turns)
    assert snap_compare(app(FixedSession()), terminal_size=(80, 24), run_before=doing(*keys))
