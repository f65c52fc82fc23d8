"""Panes side by side."""

from __future__ import annotations

from textual.containers import Horizontal


class Panes(Horizontal):
    """Holds panes that cover it, so that nothing of its own is painted."""

    BLANK = True
