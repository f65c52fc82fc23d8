"""The title of a screen: who the server is and what is shown of it; how the server is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from rtui.server.browsing.status import BrowsingStatus
from rtui.server.health.session import Trouble
from rtui.tui.kit.bars import LinkedBar
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.status_lines import title_action_of
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, line_width, literal


@runtime_checkable
class KnowsServer(Protocol):
    """An application that knows how the server is which its screens are about."""

    @property
    def server_status(self) -> BrowsingStatus | None:
        """Its figures and what is wrong with it; None while no server is browsed."""


class TitleBar(LinkedBar):
    """The first line of a screen; clicks lead to other servers and databases, and to what is wrong."""

    def __init__(self) -> None:
        super().__init__(self._action_of, id="title")

    @property
    def server_status(self) -> BrowsingStatus | None:
        """How the server is that is browsed; None while there is none."""
        return self.app.server_status if isinstance(self.app, KnowsServer) else None

    def set_line(self, make: Callable[[int], Line]) -> None:
        """Show a line in what is left by the trouble of the server, which stands at the right."""
        status = self.server_status
        trouble = None if status is None else status.trouble
        if trouble is None:
            super().set_line(make)
        else:
            mark = trouble_line(trouble)
            super().set_line(lambda width: _with_mark(make, mark, width))

    @staticmethod
    def _action_of(span: Span) -> str | None:
        return "app.server" if span.text.startswith(MARK) else title_action_of(span)


MARK = literal("! ")
"""Stands before what is wrong, and is the key that shows it."""


def trouble_line(trouble: Trouble) -> Line:
    """Return what is wrong in a word, and how much else: `! memory-near-limit +2`."""
    more = f" +{trouble.more:,}" if trouble.more else ""
    text = display_text(f"{MARK}{trouble.word}{more}")
    return Span(text, Role.BAD if trouble.is_error else Role.WARN), gap(1)


def _with_mark(make: Callable[[int], Line], mark: Line, width: int) -> Line:
    room = width - line_width(mark) - 1
    if room <= 0:
        return clip(mark, width)
    line = make(room)
    return (*line, gap(1 + room - line_width(line)), *mark)
