"""The help as pictures, for what has the keyboard."""

from __future__ import annotations

import pytest

from tests.snapshots.test_screens import Compare, app, doing
from tests.tui.fixed_session import FixedSession


@pytest.mark.parametrize(("keys", "size"), [((), (80, 24)), (("a", "2"), (120, 36))], ids=["tree", "analysis"])
def test_help(snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*keys, "question_mark"))


def test_help_of_rules(snap_compare: Compare) -> None:
    keys = ("question_mark", "shift+tab", "shift+tab")
    assert snap_compare(app(FixedSession()), terminal_size=(80, 24), run_before=doing(*keys))
