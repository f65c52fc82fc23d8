"""The parts of the main screen around its trees: two panes with a border to move, the status bar of the scan, watching.

Keys and the mouse move the border. Watching a key, or the keys in view below an open namespace, fetches their facts
again when they are due, and marks changes.

A refresh is a handful of commands: the facts of a key and the page of its value that is shown, or type, TTL and memory
of the keys on the screen. The time from question to answer bounds what the server spent on it. So a refresh that took 3
ms is repeated after 3 s, which keeps rtui below a thousandth of the server's time, and never more often than every
`LEAST_S`; over a slow link, where most of that time is the network's, it is every `MOST_S`.

Rates are taken over the last few refreshes. Changes since the last one are marked until the clock ticks next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from rtui.analysis import humanize
from rtui.analysis.facts import KeyFacts, RowFacts
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Online
from rtui.tui.browse.detail_pane import DetailPane
from rtui.tui.browse.fact_lines import UNCHANGED, FactChange
from rtui.tui.browse.row_facts import MOST_NAME_BYTES
from rtui.tui.browse.tree_pane import TreePane
from rtui.tui.kit.bars import LinkedBar
from rtui.tui.kit.command import Owner
from rtui.tui.kit.layout import display
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

    def __init__(self, left: Widget, right: Widget, percent: int | None, on_divide: Callable[[int], object]) -> None:
        """`percent` is the width of the left pane as the user chose it, None for the width in the style sheet.

        `on_divide` is called with another one that the user has chosen.
        """
        super().__init__(id="body")
        self.percent, self._on_divide = percent, on_divide
        self._left, self._right = left, right
        self._is_dragged = False

    def compose(self) -> ComposeResult:
        yield self._left
        yield self._right

    @property
    def are_side_by_side(self) -> bool:
        return self.size.width >= SIDE_BY_SIDE_CELLS

    def widen(self, step: int) -> None:
        if self.are_side_by_side:
            now = self.percent
            if now is None:
                now = round(100 * self._left.outer_size.width / self.size.width) if self.size.width else DEFAULT_PERCENT
            self._divide_at(now + step)
            self._on_divide(self.percent or now)

    def _divide_at(self, percent: int) -> None:
        self.percent = max(NARROWEST_TREE, min(WIDEST_TREE, percent))
        self._divide()

    def _divide(self) -> None:
        for pane, percent in ((self._left, self.percent), (self._right, 100 - (self.percent or 0))):
            if self.percent is not None and self.are_side_by_side:
                pane.styles.width = f"{percent}%"
            else:
                pane.styles.clear_rule("width")

    def on_resize(self) -> None:
        self._divide()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self.are_side_by_side and self._right.display and event.screen_x == self._right.region.x:
            self._is_dragged = True
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._is_dragged and self.size.width:
            self._divide_at(round(100 * (event.screen_x - self.region.x) / self.size.width))

    def on_mouse_up(self) -> None:
        if self._is_dragged:
            self._is_dragged = False
            self.release_mouse()
            if self.percent is not None:
                self._on_divide(self.percent)


class StatusBar(LinkedBar):
    """Shows the figures of a session's scan and controls the scan."""

    def __init__(self, session: BrowsingSession, is_filling: Callable[[], bool] | None) -> None:
        """`is_filling` returns whether keys are still being added, as while the demo loads; None: they are not."""
        super().__init__(lambda span: run_action_of(span, Owner.SCAN), id="status")
        self._session = session
        self._is_filling = is_filling
        self._shows_cost = False
        self.watching = SafeText("")
        self.marked = 0

    def show_status(self) -> None:
        status, now_s = self._session.status, asyncio.get_running_loop().time()
        note = literal("loading the demo") if self._is_filling is not None else None
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
        """Return True once, when the demo has been loaded: an earlier scan has missed keys."""
        if self._is_filling is None or self._is_filling():
            return False
        self._is_filling = None
        return True

    def action_pause(self) -> None:
        control = self._session.control
        if self._session.status.progress.state is ScanState.PAUSED:
            control.resume()
        else:
            control.pause()
        self.show_status()

    def action_faster(self) -> None:
        self._session.control.pace = self._session.control.pace.faster()
        self.show_status()

    def action_slower(self) -> None:
        self._session.control.pace = self._session.control.pace.slower()
        self.show_status()

    def action_cost(self) -> None:
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
        """Refresh the watched key or namespace when it is due; a key is watched while its details are shown.

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
        if self.watcher.node is not None:
            self._tree_pane.flash(frozenset(self.watcher.learn_rows(found)))
            self._end_refresh()

    def learn(self, facts: KeyFacts) -> None:
        if facts.key == self.watcher.key and self.watcher.learn(facts):
            self._end_refresh()
            self._show_changes()

    def _show_changes(self) -> None:
        self._detail_pane.changes = self.watcher.changes
        self._detail_pane.tick()

    def _end_refresh(self) -> None:
        self.watcher.end(self._session.clock(), asyncio.get_running_loop().time() - self._began_s)


LEAST_S: Final = 2.0
MOST_S: Final = 10.0
"""Seconds between two refreshes."""

TIME_SHARE: Final = 0.001
"""Of the server's time a watch takes no more than this."""

FLASH_S: Final = 0.9
"""Seconds that changes stay marked: until the screen next looks at the clock."""

RATED: Final = 5
"""Refreshes that a rate is taken over."""

EXPIRY_SLACK_S: Final = 1.5
"""A change of the expiry by this much means another time to live; less is the clocks' rounding."""

NAME_CELLS: Final = 24

REFUSED: Final = literal(
    "Its count needs a scan of the whole keyspace (SCAN MATCH), too costly to repeat every few seconds. "
    "Open it to watch the visible keys; R rescans."
)
"""Why a closed namespace is not watched."""


class Watcher:
    """The watched key or namespace, if any. All times but the durations of refreshes are seconds since the epoch."""

    def __init__(self) -> None:
        self.key: bytes | None = None
        self.node: Namespace | None = None
        self.pace_s = LEAST_S
        self.changes: dict[str, FactChange] = {}
        """Of the key that is watched."""
        self._due_at_s = self._marked_at_s = 0.0
        self._seen: deque[KeyFacts] = deque(maxlen=RATED)
        self._rows: dict[bytes, RowFacts] = {}

    @property
    def is_on(self) -> bool:
        return self.key is not None or self.node is not None

    def watch_key(self, key: bytes, facts: KeyFacts | None, now_s: float) -> None:
        self.stop()
        self.key, self._due_at_s = key, now_s
        if facts is not None:
            self._seen.append(facts)

    def watch_rows(self, node: Namespace, now_s: float) -> None:
        self.stop()
        self.node, self._due_at_s = node, now_s

    def stop(self) -> None:
        self.key = self.node = None
        self.pace_s = LEAST_S
        self.changes = {}
        self._seen.clear()
        self._rows = {}

    def is_due(self, now_s: float) -> bool:
        return self.is_on and now_s >= self._due_at_s

    def begin(self, now_s: float) -> None:
        """Begin a refresh: the next one comes after the pace, also if this one fails."""
        self._due_at_s = now_s + self.pace_s

    def end(self, now_s: float, took_s: float) -> None:
        """End a refresh; `took_s` is the time from question to answer."""
        self.pace_s = min(MOST_S, max(LEAST_S, took_s / TIME_SHARE))
        self._due_at_s = now_s + self.pace_s
        self._marked_at_s = now_s

    def settle(self, now_s: float) -> bool:
        """Mark nothing any more once marks were there for `FLASH_S`, and return True then; rates stay."""
        if now_s - self._marked_at_s < FLASH_S:
            return False
        self.changes = {label: FactChange(change.rate) for label, change in self.changes.items() if change.rate}
        return True

    def learn(self, facts: KeyFacts) -> bool:
        """Compare newer facts of the key with its previous ones; return whether they are newer."""
        before = self._seen[-1] if self._seen else None
        if before is not None and (facts is before or facts.asked_at_s <= before.asked_at_s):
            return False
        if before is None or before.is_gone or facts.is_gone or before.type != facts.type:
            self._seen.clear()
        self._seen.append(facts)
        self.changes = {} if before is None else dict(self._compared(before, facts))
        return True

    def learn_rows(self, found: Iterable[RowFacts]) -> set[bytes]:
        """Compare newer facts of rows with their previous ones; return the keys that have changed."""
        changed = set()
        for facts in found:
            before = self._rows.get(facts.key)
            if before is not None and _differ(before, facts):
                changed.add(facts.key)
            self._rows[facts.key] = facts
        return changed

    def keys_in(self, rows: Iterable[Row]) -> list[bytes]:
        """Return the keys among some rows that lie below the namespace that is watched; forget other rows."""
        of_keys = (row for row in rows if row.kind is RowKind.KEY)
        names = (row.key() for row in of_keys if any(node is self.node for node in row.namespace.upwards()))
        keys = [key for key in names if len(key) <= MOST_NAME_BYTES]
        wanted = set(keys)
        self._rows = {key: facts for key, facts in self._rows.items() if key in wanted}
        return keys

    def text(self, *, is_online: bool) -> SafeText:
        """Return the watched key or namespace, the interval and the rates of change; empty if nothing is watched."""
        if not self.is_on:
            return SafeText("")
        name = self.key if self.key is not None else b"" if self.node is None else self.node.path()
        shown = (
            display(name, limit=NAME_CELLS) if name else literal("(empty name)" if self.node is None else "all keys")
        )
        what = shown if self.node is None else SafeText(f"visible keys of {shown}")
        if not is_online:
            return SafeText(f"watching {what} when the connection is back")
        rates = [f" · {label} {change.rate}" for label, change in self.changes.items() if change.rate]
        return SafeText(f"watching {what} every {self.pace_s:.0f} s{''.join(rates)}")

    def _compared(self, before: KeyFacts, now: KeyFacts) -> Iterable[tuple[str, FactChange]]:
        if now.is_gone or before.is_gone:
            return
        for label, name in (("length", "length"), ("memory", "memory_bytes")):
            old, new = getattr(before, name), getattr(now, name)
            if isinstance(old, int) and isinstance(new, int):
                mark = "" if old == new else "▲" if new > old else "▼"
                rate = _rate(self._seen, name)
                if mark or rate:
                    yield label, FactChange(rate, SafeText(mark))
        for label, name in (("type", "type"), ("encoding", "encoding")):
            if getattr(before, name) != getattr(now, name):
                yield label, FactChange(mark=literal("•"))
        if _has_other_expiry(before, now):
            yield "TTL", FactChange(mark=literal("•"))
        if isinstance(before.idle_s, int) and isinstance(now.idle_s, int) and now.idle_s < before.idle_s:
            yield "idle", FactChange(mark=literal("•"))


def _rate(seen: Sequence[KeyFacts], name: str) -> SafeText:
    """Return how fast a number changed over some refreshes, `+12/s`, `-3/min`; empty if it did not."""
    known = [(facts.asked_at_s, value) for facts in seen if isinstance(value := getattr(facts, name), int)]
    if len(known) < 2 or known[-1][0] <= known[0][0] or known[-1][1] == known[0][1]:
        return SafeText("")
    per_s = (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])
    sign = "+" if per_s > 0 else "-"
    if name == "memory_bytes":
        return SafeText(f"{sign}{humanize.size(abs(per_s))}/s")
    return SafeText(f"{sign}{humanize.rate(abs(per_s) * 60)}")


def _has_other_expiry(before: KeyFacts | RowFacts, now: KeyFacts | RowFacts) -> bool:
    old, new = before.expires_at_s, now.expires_at_s
    if old is None or new is None:
        return (old is None) is not (new is None)
    return abs(old - new) > EXPIRY_SLACK_S


def _differ(before: RowFacts, now: RowFacts) -> bool:
    facts_before, facts_now = ((one.type, one.memory_bytes, one.is_gone) for one in (before, now))
    return facts_before != facts_now or (not now.is_gone and _has_other_expiry(before, now))
