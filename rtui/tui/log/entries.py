"""The rows of the command log: those of its entries that a filter keeps, followed while the log grows."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.message import Message

from rtui.keyspace.slices import Slices
from rtui.server.wire.command_log import CommandLog, LogEntry
from rtui.tui.kit.command import Owner, bindings
from rtui.tui.kit.command_screen import drive
from rtui.tui.kit.line_view import RowsView, set_content_height
from rtui.tui.kit.styled_text import Line
from rtui.tui.log.commands import LOG_COMMANDS
from rtui.tui.log.log_lines import entry_line, layout_log

_FRAMING: Final = re.compile(rb"(?:^|\r\n)(?:[*$]\d+\r\n)*")

LEAVES_OUT: Final = "!"
"""A filter that begins with it keeps the entries without the text behind it."""

SLICE_ENTRIES: Final = 1000
"""So many are searched at once."""

MOST_UNDECIDED: Final = 500
"""Of the latest entries so many are looked at again while they may change."""


def has_text(entry: LogEntry, needle: bytes) -> bool:
    """Return whether an entry has a text, in small letters, in its commands, purpose, connection or outcome."""
    words = f"{entry.counts_text} {entry.purpose} {entry.connection} {entry.outcome} {entry.error}"
    return needle in words.lower().encode() or needle in _FRAMING.sub(b" ", entry.request).lower()


class LogRows:
    """The entries that a filter keeps, oldest first: `load` takes those there are, `follow` what the log has got since.

    Whether an entry is kept is decided when it is over, since the commands of a sum come one after the other.
    """

    def __init__(self, log: CommandLog, needle: str = "") -> None:
        self.needle = needle
        self._log = log
        self._leaves_out = needle.startswith(LEAVES_OUT)
        self._needle = needle.removeprefix(LEAVES_OUT).lower().encode("utf-8", "surrogateescape")
        self._decided: deque[LogEntry] = deque()
        self._undecided: list[LogEntry] = []
        self._seen = 0
        """The number of the last entry that is decided."""

    def __len__(self) -> int:
        return len(self._decided) + len(self._undecided)

    def __getitem__(self, line: int) -> LogEntry:
        decided = len(self._decided)
        return self._decided[line] if line < decided else self._undecided[line - decided]

    def line_of(self, wanted: LogEntry | None) -> int | None:
        """Return the line of an entry, None where it is not kept."""
        rows = enumerate(chain(self._decided, self._undecided))
        return next((line for line, entry in rows if entry is wanted), None)

    def load(self) -> Slices[None]:
        """Take what there is, in slices of a few milliseconds."""
        log = self._log
        for at, entry in enumerate(tuple(log.entries), 1):
            if not self._may_decide(entry):
                break
            self._seen = entry.number
            if self._keeps(entry):
                self._decided.append(entry)
            if not at % SLICE_ENTRIES:
                yield
        self.follow()

    def follow(self) -> int:
        """Take new entries, and drop those that the log has dropped; return how many rows that were first are gone."""
        log, gone = self._log, 0
        while self._decided and self._decided[0].number <= log.dropped:
            self._decided.popleft()
            gone += 1
        gone += sum(entry.number <= log.dropped for entry in self._undecided)
        self._undecided, may_decide = [], True
        for entry in self._since(max(self._seen, log.dropped)):
            may_decide = may_decide and self._may_decide(entry)
            if may_decide:
                self._seen = entry.number
            if self._keeps(entry):
                (self._decided if may_decide else self._undecided).append(entry)
        return gone

    def _may_decide(self, entry: LogEntry) -> bool:
        """Whether an entry will not change any more, or has had long enough for it."""
        return entry.is_over or self._log.dropped + len(self._log.entries) - entry.number > MOST_UNDECIDED

    def _keeps(self, entry: LogEntry) -> bool:
        return not self._needle or has_text(entry, self._needle) is not self._leaves_out

    def _since(self, number: int) -> Iterator[LogEntry]:
        """Return the entries after the one of this number."""
        new = self._log.dropped + len(self._log.entries) - number
        return reversed(list(islice(reversed(self._log.entries), max(0, new))))


class LogView(RowsView, can_focus=True):
    """Shows rows of the log; on the last one, the cursor stays on the latest entry."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LOG_COMMANDS, Owner.ENTRIES)
    DEFAULT_CSS = """
    LogView { height: 1fr; }
    """

    class Opened(Message):
        """The user wants to see the whole entry under the cursor."""

    class Moved(Message):
        """The cursor has moved."""

    def __init__(self, log: CommandLog, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._log = log
        self.rows = LogRows(log)
        self.is_following = True
        """Whether new entries are scrolled to."""

    @property
    def entry(self) -> LogEntry | None:
        """The entry under the cursor."""
        return self.rows[self.cursor_line] if 0 <= self.cursor_line < len(self.rows) else None

    def line_at(self, number: int) -> Line | None:
        """Return the row of an entry."""
        if not 0 <= number < len(self.rows):
            return None
        return entry_line(self.rows[number], layout_log(self.scrollable_content_region.width))

    def filter(self, needle: str) -> None:
        """Show the entries with this text; all for an empty one. The cursor stays on its entry, or goes to the end."""
        work = self._filter(LogRows(self._log, needle))
        self.run_worker(work, group="filter", exclusive=True, exit_on_error=False, description="filter")

    async def _filter(self, rows: LogRows) -> None:
        await drive(rows.load())
        entry, self.rows = self.entry, rows
        set_content_height(self, len(self.rows))
        line = self.rows.line_of(entry)
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
        """Show the whole entry under the cursor."""
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Go to the entry under the mouse; a second click opens it."""
        line = event.y + self.scroll_offset.y
        if 0 <= line < len(self.rows):
            self.move_to(line)
            if event.chain == 2:
                self.action_open()
