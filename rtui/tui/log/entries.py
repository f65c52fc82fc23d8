"""The widget that shows the rows of the command log, and stays with the latest while the log grows."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from rtui.server.wire.command_log import CommandLog
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.command_screen import drive
from rtui.tui.kit.line_view import RowsView, set_content_height
from rtui.tui.kit.styled_text import Line
from rtui.tui.log.commands import LOG_COMMANDS
from rtui.tui.log.log_lines import layout_log, row_line
from rtui.tui.log.log_rows import LogRows, Row


class LogView(RowsView, can_focus=True):
    """Shows rows of the log; on the last one, the cursor stays on the latest entry."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LOG_COMMANDS, Owner.ENTRIES)
    DEFAULT_CSS = """
    LogView { height: 1fr; }
    """

    class Opened(Message):
        """The user wants to see all of the row under the cursor."""

    class Moved(Message):
        """The cursor has moved."""

    def __init__(self, log: CommandLog, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._log = log
        self.rows = LogRows(log)
        self.is_following = True
        """Whether new entries are scrolled to."""

    @property
    def row(self) -> Row:
        """The entries of the row under the cursor; none without rows."""
        return self.rows[self.cursor_line] if 0 <= self.cursor_line < len(self.rows) else ()

    def line_at(self, number: int) -> Line | None:
        """Return a row."""
        if not 0 <= number < len(self.rows):
            return None
        return row_line(self.rows[number], layout_log(self.scrollable_content_region.width))

    def filter(self, needle: str) -> None:
        """Show the entries with this text; all for an empty one. The cursor stays on its entry, or goes to the end."""
        work = self._filter(LogRows(self._log, needle))
        self.run_worker(work, group="filter", exclusive=True, exit_on_error=False, description="filter")

    async def _filter(self, rows: LogRows) -> None:
        await drive(rows.load())
        before, self.rows = self.row, rows
        set_content_height(self, len(self.rows))
        line = self.rows.line_of(before[0]) if before else None
        self.move_to(len(self.rows) - 1 if line is None or self.is_following else line)
        self.refresh()

    def follow(self) -> None:
        """Show what has come; entries stay where they are unless the cursor is on the latest."""
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

    def action_open(self) -> None:
        """Show all of the row under the cursor."""
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Go to the entry under the mouse; a second click opens it."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < len(self.rows):
            self.move_to(line)
            if event.chain == 2:
                self.action_open()
