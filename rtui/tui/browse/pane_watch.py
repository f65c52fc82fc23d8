"""Watching what the panes show: asks again when it is time, and marks what has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rtui.analysis.facts import KeyFacts, RowFacts
from rtui.server.browsing.session import BrowsingSession
from rtui.server.wire.connection import Online
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.status_bar import StatusBar
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.browse.watching import UNCHANGED, Watcher


class PaneWatch:
    """Watches the key in the details, or the keys in view of a namespace that is open in the tree."""

    def __init__(
        self, session: BrowsingSession, tree_pane: TreePane, detail_pane: DetailPane, status_bar: StatusBar
    ) -> None:
        self._session, self._tree_pane, self._detail_pane = session, tree_pane, detail_pane
        self._status_bar = status_bar
        self.watcher = Watcher()
        self._began_s = 0.0
        """When the refresh began that is under way, on the clock of the event loop."""

    def toggle(self) -> bool:
        """Begin to watch what the user is at, or end that; return False where that can't be watched."""
        detail, row, now_s = self._detail_pane.detail, self._tree_pane.key_tree.cursor, self._session.clock()
        if self.watcher.is_on:
            self._end()
        elif detail.key is not None:
            self.watcher.watch_key(detail.key, detail.facts, now_s)
        elif row is not None and self._tree_pane.key_tree.rows.is_expanded(row.namespace):
            self.watcher.watch_rows(row.namespace, now_s)
        else:
            return False
        return True

    def _end(self) -> None:
        self.watcher.stop()
        self._tree_pane.flash(frozenset())
        self._detail_pane.changes = UNCHANGED
        self._detail_pane.tick()
        self._detail_pane.body.marks_changes = False
        self._detail_pane.body.settle()

    def tick(self, *, is_ready: bool) -> None:
        """Ask again about what is watched when it is time; a key is watched as long as its details are shown.

        `is_ready` says that the server can be asked now.
        """
        watcher, now_s = self.watcher, self._session.clock()
        if watcher.is_on and self._has_gone():
            self._end()
        if watcher.is_on and watcher.settle(now_s):
            self._tree_pane.flash(frozenset())
            self._show_changes()
            self._detail_pane.body.settle()
        self._detail_pane.body.marks_changes = watcher.key is not None
        if is_ready and watcher.is_due(now_s):
            watcher.begin(now_s)
            self._began_s = asyncio.get_running_loop().time()
            if watcher.key is not None:
                self._detail_pane.fetcher.refresh()
            elif keys := watcher.keys_in(self._tree_pane.key_tree.rows_in_view):
                self._tree_pane.post_message(TreePane.FactsWanted(keys, with_more=self._tree_pane.has_more_columns))
        text = watcher.text(is_online=isinstance(self._session.status.link, Online))
        if text != self._status_bar.watching:
            self._status_bar.watching = text
            self._status_bar.show_status()

    def _has_gone(self) -> bool:
        """Return whether what is watched is shown no more."""
        key, node = self.watcher.key, self.watcher.node
        is_elsewhere = key is not None and self._detail_pane.detail.key != key
        return is_elsewhere or (node is not None and not self._tree_pane.key_tree.rows.is_expanded(node))

    def learn_rows(self, found: Sequence[RowFacts]) -> None:
        """Mark rows that have changed, where those are watched."""
        if self.watcher.node is not None:
            self._tree_pane.flash(frozenset(self.watcher.learn_rows(found)))
            self._end_refresh()

    def learn(self, facts: KeyFacts) -> None:
        """Mark what has changed of a key, if that is watched."""
        if facts.key == self.watcher.key and self.watcher.learn(facts):
            self._end_refresh()
            self._show_changes()

    def _show_changes(self) -> None:
        self._detail_pane.changes = self.watcher.changes
        self._detail_pane.tick()

    def _end_refresh(self) -> None:
        """Choose when to ask again, by how long this took."""
        self.watcher.end(self._session.clock(), asyncio.get_running_loop().time() - self._began_s)
