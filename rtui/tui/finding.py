"""From a query to its keys, from a key to the tree, and back to the list as it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.app import App

from rtui.analysis.query.completion import Vocabulary
from rtui.analysis.query.query import Query
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find.found_rows import USUAL, FoundRows
from rtui.tui.find.screen import FindScreen, new_rows
from rtui.tui.kit.query_hints import vocabulary_of
from rtui.tui.kit.settings import SettingsFile

if TYPE_CHECKING:
    from rtui.server.browsing.session import BrowsingSession

BACK: Final = "app.found"
"""The action that leads from a key in the tree back to the list that it was in."""


class Finding:
    """Shows found keys over the tree or over the analysis, and keeps the latest list."""

    def __init__(self, app: App[Any], session: BrowsingSession, label: SafeText | None, settings: SettingsFile) -> None:
        self.session = session
        self._app, self._label, self._settings = app, label, settings
        self._rows: FoundRows | None = None
        self._is_over_analysis = False

    def show(self, query: Query, note: SafeText, sort: str | None = None) -> None:
        """Show the keys that a query finds, sorted by a column as they come or in the order in which they are found."""
        rows = new_rows(self.session, query, USUAL if self._rows is None else self._rows.columns, sort, note)
        screen = self._app.screen
        if isinstance(screen, FindScreen):
            screen.show_rows(rows)
            return
        if self._rows is not None:
            before = self._rows.search
            self._app.run_worker(before.close(), group="close", exit_on_error=False, description="search")
        self._is_over_analysis = isinstance(screen, AnalyseScreen)
        self._push(rows)

    async def back(self) -> None:
        """Show the latest list again, as it was left, over the analysis where it came from that."""
        if self._rows is None or isinstance(self._app.screen, FindScreen):
            return
        if self._is_over_analysis and not isinstance(self._app.screen, AnalyseScreen):
            await self._app.run_action("app.analyse")
        self._push(self._rows)

    def _push(self, rows: FoundRows) -> None:
        self._rows = rows
        screen = FindScreen(
            self.session, rows, self.vocabulary, label=self._label, settings=self._settings, keep=self._keep
        )

        def left(key: bytes | None) -> None:
            if key is not None:
                self._go_to(key)
            else:
                self._app.run_worker(screen.search.close(), group="close", exit_on_error=False, description="search")

        self._app.push_screen(screen, left)

    def _keep(self, rows: FoundRows) -> None:
        self._rows = rows

    def vocabulary(self) -> Vocabulary:
        """Return what is known of the keyspace, for completion."""
        analysed = self.session.analysed
        nodes = [one.label for one in self.session.status.nodes]
        return vocabulary_of(self.session.store, None if analysed is None else analysed.report, nodes)

    def _go_to(self, key: bytes) -> None:
        """Go to a key in the tree."""
        if isinstance(self._app.screen, AnalyseScreen):
            self._app.screen.dismiss(None)
        browse = next((one for one in self._app.screen_stack if isinstance(one, BrowseScreen)), None)
        if browse is not None:
            self._app.call_later(browse.go_to_key, key, BACK)
