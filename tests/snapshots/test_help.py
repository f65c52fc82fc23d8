"""The help as pictures, for what has the keyboard."""

from __future__ import annotations

import pytest

from tests.snapshots.test_screens import Compare, app, doing
from tests.tui.fixed_session import FixedSession


@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
@pytest.mark.parametrize("keys", [(), ("end", "enter"), ("a",), ("L",)], ids=["tree", "value", "analysis", "log"])
def test_help(snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    assert snap_compare(app(FixedSession()), terminal_size=size, run_before=doing(*keys, "question_mark"))
