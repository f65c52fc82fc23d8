"""The parts of the main screen around its trees: two panes with a border to move, the status bar of the scan, watching.

Keys and the mouse move the border. Watching asks again for what the panes show when it is time, and marks changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget

from rtui.analysis.facts import KeyFacts, RowFacts
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Online
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.browse.watching import UNCHANGED, Watcher
from rtui.tui.kit.bars import LinkedBar
from rtui.tui.kit.command import Owner
from rtui.tui.kit.settings import NARROWEST_TREE, WIDEST_TREE
from rtui.tui.kit.status_lines import run_action_of, status_line
from rtui.tui.kit.styled_text import joined, literal

SIDE_BY_SIDE_CELLS: Final = 100
"""From this width on there is room for both; in narrower terminals one of them has all of it."""

DEFAULT_PERCENT: Final = 56
"""About the width of the tree unless the user chose another; the style sheet has the exact one."""


class Panes(Horizontal):
    """Holds panes that cover it, so that nothing of its own is painted."""

    BLANK = True

    class Divided(Message):
        """The user has given the tree another width, in percent."""

        def __init__(self, percent: int) -> None:
            super().__init__()
            self.percent = percent

    def __init__(self, left: Widget, right: Widget, percent: int | None, *, id: str | None = None) -> None:
        """`percent` is the width of the left one as the user chose it, None for what the style sheet says."""
        super().__init__(id=id)
        self.percent = percent
        self._left, self._right = left, right
        self._is_dragged = False

    def compose(self) -> ComposeResult:
        """Put them side by side."""
        yield self._left
        yield self._right

    @property
    def are_side_by_side(self) -> bool:
        """Whether both are shown."""
        return self.size.width >= SIDE_BY_SIDE_CELLS

    def widen(self, step: int) -> None:
        """Make the left pane wider by a step in percent."""
        if self.are_side_by_side:
            now = self.percent
            if now is None:
                now = round(100 * self._left.outer_size.width / self.size.width) if self.size.width else DEFAULT_PERCENT
            self._divide_at(now + step)
            self.post_message(self.Divided(self.percent or now))

    def _divide_at(self, percent: int) -> None:
        self.percent = max(NARROWEST_TREE, min(WIDEST_TREE, percent))
        self._divide()

    def _divide(self) -> None:
        """Give the panes their widths, or leave them to the style sheet."""
        for pane, percent in ((self._left, self.percent), (self._right, 100 - (self.percent or 0))):
            if self.percent is not None and self.are_side_by_side:
                pane.styles.width = f"{percent}%"
            else:
                pane.styles.clear_rule("width")

    def on_resize(self) -> None:
        """Divide another width."""
        self._divide()

    def _is_on_border(self, event: events.MouseEvent) -> bool:
        return self.are_side_by_side and self._right.display and event.screen_x == self._right.region.x

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the border."""
        if self._is_on_border(event):
            self._is_dragged = True
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the border with the mouse."""
        if self._is_dragged and self.size.width:
            self._divide_at(round(100 * (event.screen_x - self.region.x) / self.size.width))

    def on_mouse_up(self) -> None:
        """Let go of the border."""
        if self._is_dragged:
            self._is_dragged = False
            self.release_mouse()
            if self.percent is not None:
                self.post_message(self.Divided(self.percent))


class StatusBar(LinkedBar):
    """Shows the figures of a session's scan and controls the scan."""

    def __init__(self, session: BrowsingSession, is_filling: Callable[[], bool] | None) -> None:
        """`is_filling` returns whether keys are still being added, as while the demo loads; None: they are not."""
        super().__init__(lambda span: run_action_of(span, Owner.SCAN), id="status")
        self._session = session
        self._is_filling = is_filling
        self._shows_cost = False
        self.watching = SafeText("")
        """The key or keys that are watched; empty for none."""
        self.marked = 0
        """How many keys are marked."""

    def show_status(self) -> None:
        """Show how the scan is doing now."""
        status, now_s = self._session.status, asyncio.get_running_loop().time()
        note = literal("the demo is being loaded") if self._is_filling is not None else None
        marked = SafeText(f"{self.marked} marked" if self.marked else "")
        shows_cost, doing = self._shows_cost, joined([one for one in (marked, self.watching) if one])
        self.set_line(lambda width: status_line(status, now_s, width, shows_cost=shows_cost, note=note, doing=doing))

    @property
    def is_at_rest(self) -> bool:
        """Whether hardly anything can change by itself: only the server's own figures, now and then."""
        status = self._session.status
        is_over = status.progress.state.is_over or status.progress.state is ScanState.PAUSED
        return is_over and isinstance(status.link, Online) and self._is_filling is None

    def has_just_been_filled(self) -> bool:
        """Return True once, when the keys have all been added: what was scanned before is not everything."""
        if self._is_filling is None or self._is_filling():
            return False
        self._is_filling = None
        return True

    def action_pause(self) -> None:
        """Pause the scan, or go on with it."""
        control = self._session.control
        if self._session.status.progress.state is ScanState.PAUSED:
            control.resume()
        else:
            control.pause()
        self.show_status()

    def action_faster(self) -> None:
        """Take the next faster pace."""
        self._session.control.pace = self._session.control.pace.faster()
        self.show_status()

    def action_slower(self) -> None:
        """Take the next slower pace."""
        self._session.control.pace = self._session.control.pace.slower()
        self.show_status()

    def action_cost(self) -> None:
        """Show or hide rtui's total cost for the server."""
        self._shows_cost = not self._shows_cost
        self.show_status()


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
        """Watch the key or namespace under the cursor, or end watching; return False where neither can be watched."""
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
        key, node = watcher.key, watcher.node
        is_elsewhere = key is not None and self._detail_pane.detail.key != key
        if is_elsewhere or (node is not None and not self._tree_pane.key_tree.rows.is_expanded(node)):
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

    def learn_rows(self, found: Sequence[RowFacts]) -> None:
        """Mark rows that have changed, where those are watched."""
        if self.watcher.node is not None:
            self._tree_pane.flash(frozenset(self.watcher.learn_rows(found)))
            self._end_refresh()

    def learn(self, facts: KeyFacts) -> None:
        """Mark the changes of a key, if it is watched."""
        if facts.key == self.watcher.key and self.watcher.learn(facts):
            self._end_refresh()
            self._show_changes()

    def _show_changes(self) -> None:
        self._detail_pane.changes = self.watcher.changes
        self._detail_pane.tick()

    def _end_refresh(self) -> None:
        """Choose when to ask again, by how long this took."""
        self.watcher.end(self._session.clock(), asyncio.get_running_loop().time() - self._began_s)
