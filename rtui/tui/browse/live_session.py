"""A session on a real server, made from what the user asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.browse_options import BrowseOptions
from rtui.server.browsing import Browsing
from rtui.server.facts.key_preview import key_preview
from rtui.server.facts.preview.page import Page, Preview
from rtui.server.scan.pace import Pace
from rtui.tui.analyse.source import lost_by_leaving

if TYPE_CHECKING:
    from rtui.server.analysing import AnalysisOptions
    from rtui.tui.analyse.live_analysis import LiveAnalysis


class LiveSession(Browsing):
    """A browsing session that also looks into values, and at the keyspace as a whole."""

    _analysis: LiveAnalysis | None = None

    @property
    def analysis(self) -> LiveAnalysis:
        """What the keyspace holds, once it is asked for; the scan rests while every key is asked."""
        if self._analysis is None:
            from rtui.tui.analyse.live_analysis import LiveAnalysis  # noqa: PLC0415 - with all that adds up, when it is wanted

            self._analysis = LiveAnalysis(self.connection, self._wanted, self.resting, self.clock)
        return self._analysis

    def _wanted(self) -> AnalysisOptions:
        """What is asked for when an analysis begins: the keys that the tree shows."""
        from rtui.server.analysing import AnalysisOptions  # noqa: PLC0415 - likewise

        status = self.status
        return AnalysisOptions(self.store.separators.values, status.match, status.kind, pace=self.control.pace)

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """What is lost when rtui ends now; a scan is not, since it goes on from where it is saved."""
        return None if self._analysis is None else lost_by_leaving(self._analysis.status)

    def yield_to_input(self) -> None:
        """Leave the event loop to what the user does just now; may be called from any thread."""
        super().yield_to_input()
        if self._analysis is not None:
            self._analysis.control.yield_to_input()

    async def close(self) -> None:
        """End the analysis too."""
        if self._analysis is not None:
            await self._analysis.close()
        await super().close()

    def on_change(self, call: Callable[[], object]) -> None:
        """Have `call` called when the connection is lost or comes back."""

        def changed() -> None:
            call()

        self.connection.on_change.append(changed)

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        """Read one page of a key's value."""
        return await key_preview(self.connection, facts, page, capabilities=self.capabilities)


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
