"""The screen of the command log: every command that was sent, with a filter, and one entry as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.widget import Widget

from rtui.server.guard.command import unpack_requests
from rtui.server.user.copying import sent_line
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.target import Target
from rtui.tui import log_lines
from rtui.tui.kit.bars import Bar, FilterInput, TitleBar
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.clipboard import copy_text
from rtui.tui.kit.command import (
    APP_COMMANDS,
    Condition,
    Conditions,
    Group,
    Owner,
    ScreenCommand,
    bindings,
    move_commands,
)
from rtui.tui.kit.command_screen import FLUSH_S, REST_S, LogPlace, drive
from rtui.tui.kit.line_view import LinePanel, OpenRows, set_content_height
from rtui.tui.kit.panel_screen import RowsScreen, key_hint
from rtui.tui.kit.status_lines import over_title
from rtui.tui.kit.styled_text import Line, literal

_entries = partial(ScreenCommand, group=Group.LOG, owner=Owner.ENTRIES)
_log = partial(ScreenCommand, group=Group.LOG, owner=Owner.LOG)

LOG_COMMANDS: Final = (
    *move_commands(Owner.ENTRIES, "entry")[:-1],
    _entries("last", ("end", "G"), "Latest", "Move to the latest entry and follow new entries.", footer=5),
    _entries(
        "open", ("enter", "right", "l"), "Whole entry",
        "Show the whole entry: all commands of it with their arguments, bytes and times. What is asked at once about "
        "the server is one entry here.",
        when=(Condition.HAS_ROWS,), footer=1,
    ),
    _log(
        "filter", ("slash",), "Filter",
        "Show entries whose command, purpose or connection contains a text; !text excludes it.",
        footer=2,
    ),
    _log(
        "copy", ("y",), "Copy", "Copy the command as a line for redis-cli in a shell.",
        when=(Condition.HAS_ROWS,), footer=3,
    ),
    _log("back", ("escape",), "Back", "Clear the filter, or leave the command log.", footer=4),
)  # fmt: skip


class LogView(OpenRows, can_focus=True):
    """Shows rows of the log; on the last one, the cursor stays on the latest entry."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LOG_COMMANDS, Owner.ENTRIES)
    DEFAULT_CSS = """
    LogView { height: 1fr; }
    """

    class Moved(Message):
        """The cursor has moved."""

    def __init__(self, log: CommandLog) -> None:
        super().__init__(id="entries")
        self._log = log
        self.rows = log_lines.LogRows(log)
        self.is_following = True
        """Whether new entries are scrolled to."""

    @property
    def row(self) -> log_lines.Row:
        return self.rows[self.cursor_line] if 0 <= self.cursor_line < len(self.rows) else ()

    def line_at(self, number: int) -> Line | None:
        if not 0 <= number < len(self.rows):
            return None
        return log_lines.row_line(self.rows[number], log_lines.layout_log(self.scrollable_content_region.width))

    def filter(self, needle: str) -> None:
        """Show the entries with this text; all for an empty one. The cursor stays on its entry, or goes to the end."""
        work = self._filter(log_lines.LogRows(self._log, needle))
        self.run_worker(work, group="filter", exclusive=True, exit_on_error=False, description="filter")

    async def _filter(self, rows: log_lines.LogRows) -> None:
        await drive(rows.load())
        before, self.rows = self.row, rows
        set_content_height(self, len(self.rows))
        line = self.rows.line_of(before[0]) if before else None
        self.move_to(len(self.rows) - 1 if line is None or self.is_following else line)
        self.refresh()

    def follow(self) -> None:
        """Show new entries; rows stay where they are unless the cursor is on the latest."""
        gone = self.rows.follow()
        set_content_height(self, len(self.rows))
        if self.is_following:
            self.move_to(len(self.rows) - 1)
        elif gone:
            self.scroll_top_to(self.scroll_offset.y - gone)
            self.cursor_line = max(0, self.cursor_line - gone)
        self.repaint_changes()

    def move_to(self, line: int) -> None:
        """Put the cursor on an entry; on the last one it stays with the latest."""
        last = len(self.rows) - 1
        line = max(0, min(line, last))
        self.is_following = line >= last
        if line != self.cursor_line or self.is_following:
            self.put_cursor(line)
        self.post_message(self.Moved())


FILTER_HINT: Final = key_hint(literal(" goes to the entries"), literal(" shows all"))
"""Stands in the footer while a filter is typed."""


class LogScreen(RowsScreen[None]):
    """Shows a command log while it grows."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LOG_COMMANDS, Owner.LOG)
    SCREEN_COMMANDS = (*LOG_COMMANDS, *APP_COMMANDS)
    OPENED_BY = "log"
    AUTO_FOCUS = "#entries"

    def __init__(self, log: CommandLog, target: Target) -> None:
        """`target` is for copied commands."""
        super().__init__()
        self.log_view = LogView(log)
        self._log, self._target = log, target
        self.title_bar, self.summary = TitleBar(), Bar(id="log-summary")
        self.header, self.nothing = LinePanel(id="log-header"), LinePanel(id="log-nothing")
        self.filter_input = FilterInput(
            "part of a command, purpose or connection; !text excludes it", keys_hint=FILTER_HINT
        )
        self.typed = (self.filter_input,)
        self._seen = -1

    @property
    def focus_home(self) -> Widget:
        return self.log_view

    def compose(self) -> ComposeResult:
        yield from (self.title_bar, self.summary, self.header, self.log_view, self.nothing)
        yield from (self.filter_input, self.footer_bar)

    def on_mount(self) -> None:
        self.header.set_content(
            lambda width: [log_lines.header_line(log_lines.layout_log(width - 1))]
        )  # beside the scrollbar below
        self.show_changes()

    def show_changes(self) -> None:
        db, status = self._target.db, self.title_bar.server_status
        what = literal("command log")
        self.title_bar.set_line(lambda width: over_title(self._target.label, db, what, width, status))
        before, self._seen = self._seen, self._log.revision
        if before != self._seen:
            self.log_view.follow()
            self._show_bars()
        self.flush_after(FLUSH_S if before != self._seen else REST_S)

    def on_resize(self) -> None:
        self.log_view.refresh()
        if self.log_view.is_following:
            self.call_after_refresh(self.log_view.follow)

    @on(LogView.Moved)
    def _show_bars(self) -> None:
        rows, log = self.log_view.rows, self._log
        self.set_class(not len(rows), "-nothing")
        self.summary.set_line(lambda width: log_lines.summary_line(log, rows.entries, rows.needle, width))
        self.nothing.set_content(lambda width: [] if len(rows) else log_lines.empty_lines(log, rows.needle, width))
        self.show_commands()

    @property
    def place(self) -> LogPlace:
        return LogPlace()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        return {Owner.LOG: self, Owner.ENTRIES: self.log_view}

    @property
    def conditions(self) -> Conditions:
        return frozenset({Condition.LIVE, *([Condition.HAS_ROWS] if len(self.log_view.rows) else [])})

    @on(LogView.Opened)
    def _open_entry(self) -> None:
        if row := self.log_view.row:
            entries = tuple(row)
            title = "Command" if len(entries) == 1 else "Commands"
            self.app.push_screen(TextCard(title, "entry", lambda width: log_lines.whole_lines(entries, width)))

    def action_copy(self) -> None:
        """Copy the commands of the row as lines for a shell, or say why there is nothing to copy."""
        row = self.log_view.row
        if not row:
            return
        entry = row[0]
        if entry.is_secret or entry.is_sum or entry.is_cut:
            why = (
                literal("It is secret, so it is not kept.") if entry.is_secret
                else literal("The commands of a bulk connection are counted, not kept one by one.") if entry.is_sum
                else literal("It is too long; only its beginning is kept.")
            )  # fmt: skip
            self.notify(why, title="Nothing to copy", markup=False, timeout=4)
            return
        sent = [argv for one in row for argv in unpack_requests(one.request)]
        copy_text(self, "\n".join(sent_line(self._target, argv) for argv in sent))

    def action_filter(self) -> None:
        self.open_line(self.filter_input, self.log_view.rows.needle)

    def filter_rows(self, text: str) -> None:
        self.log_view.filter(text)

    def action_back(self) -> None:
        if self.is_typing or self.log_view.rows.needle:
            self.action_leave_filter()
            self.log_view.filter("")
        else:
            self.dismiss(None)
