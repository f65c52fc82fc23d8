"""A session on a real server, made from what the user asked for."""

from __future__ import annotations

from collections.abc import Callable

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.segments import Separators
from rtui.server.browse_options import BrowseOptions
from rtui.server.browsing import Browsing
from rtui.server.pace import Pace
from rtui.server.preview import preview
from rtui.server.preview.page import Page, Preview


class LiveSession(Browsing):
    """A browsing session that also looks into values."""

    def on_change(self, call: Callable[[], object]) -> None:
        """Have `call` called when the connection is lost or comes back."""

        def changed() -> None:
            call()

        self.connection.on_change.append(changed)

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        """Read one page of a key's value."""
        return await preview(self.connection, facts, page)


def live_session(options: BrowseOptions) -> LiveSession:
    """Return a session that has not started yet."""
    return LiveSession(
        options.target,
        separators=Separators(options.separators),
        budget_bytes=options.memory_budget_bytes,
        pace=Pace(options.pace),
        match=options.match,
        kind=options.kind,
        resume=options.resume,
        is_filling=options.is_filling,
    )
