"""What one source of knowledge about hot keys has to say."""

from __future__ import annotations

from dataclasses import dataclass

from rtui.analysis.report import HotList, HotSource


@dataclass(frozen=True, slots=True)
class Source:
    """A source with its lists, or without any and with the reasons."""

    kind: HotSource = HotSource.NONE
    lists: tuple[HotList, ...] = ()
    about: str = ""
    """What it measures and since when; a safe sentence without a full stop."""
    age_s: float | None = None
    """How old its numbers are."""
    better: tuple[str, ...] = ()
    """Why it says nothing or less than it could, and what would change that; safe sentences."""
