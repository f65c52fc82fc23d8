"""The warning above everything else: that what is shown does not hold any more, why, and what brings it up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server.browsing_status import BrowsingStatus, Outdated
from rtui.tui.kit import format as fmt
from rtui.tui.kit.layout import Piece, fitted
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap

_BETWEEN: Final = Span(SafeText(" "))


def browse_banner(status: BrowsingStatus) -> Callable[[int], Line] | None:
    """Return the warning about the tree for each width, None while there is nothing to warn of."""
    if status.outdated is None:
        return None
    return _banner(status.outdated, "What is listed was seen", status.seen_age_s, "R scans again.")


def analyse_banner(why: Outdated | None, age_s: float | None) -> Callable[[int], Line] | None:
    """Return the warning about the figures of an analysis for each width, None while there is nothing to warn of."""
    return None if why is None else _banner(why, "These figures were taken", age_s, "r asks again.")


def _banner(why: Outdated, what: str, age_s: float | None, remedy: str) -> Callable[[int], Line]:
    ago = "" if age_s is None else fmt.ago(age_s)
    pieces = [
        Piece(0, (Span(SafeText(f"{why.value}."), Role.WARN),)),
        Piece(2, (Span(SafeText(f"{what} {ago or 'before'}."), Role.TEXT),)),
        Piece(1, (Span(SafeText(remedy), Role.ACCENT),)),
    ]
    return lambda width: clip((gap(1), *fitted(pieces, width - 2, _BETWEEN)), width)
