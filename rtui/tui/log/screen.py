"""The screen of the command log: every command that was sent, with a filter, and one entry as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from rtui.keyspace.text.display import SafeText
from rtui.server.guard.command import unpack_requests
from rtui.server.user.copying import sent_line
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.target import Target
from rtui.tui.kit.bars import Bar, FilterInput
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.clipboard import copy_text
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Owner, bindings
from rtui.tui.kit.command_screen import FLUSH_S, REST_S
from rtui.tui.kit.history import LogPlace
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.panel_screen import RowsScreen
from rtui.tui.kit.panel_view import key_hint
from rtui.tui.kit.status_lines import over_title
from rtui.tui.kit.styled_text import Line, literal
from rtui.tui.kit.title_bar import TitleBar
from rtui.tui.log.commands import LOG_COMMANDS
from rtui.tui.log.entries import LogView
from rtui.tui.log.log_lines import empty_lines, header_line, layout_log, summary_line, whole_lines
from rtui.tui.log.log_rows import Row

FILTER_HINT: Final = key_hint(literal(" goes to the entries"), literal(" shows all"))
"""Stands in the footer while a filter is typed."""


class EntryScreen(CardScreen[None]):
    """Shows the entries of one row; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,left,h", "dismiss", "Close", show=False)]

    def __init__(self, row: Row) -> None:
        super().__init__("Command" if len(row) == 1 else "Commands", "entry")
        self._row = row

    def lines(self, width: int) -> list[Line]:
        """Return the row as it is now."""
        return whole_lines(self._row, width)


class LogScreen(RowsScreen[None]):
    """Shows a command log while it grows."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(LOG_COMMANDS, Owner.LOG)
    SCREEN_COMMANDS = (*LOG_COMMANDS, *APP_COMMANDS)
    AUTO_FOCUS = "#entries"

    def __init__(self, log: CommandLog, target: Target, *, label: SafeText | None = None) -> None:
        """`target` is for copied commands; `label` replaces its own in the title."""
        super().__init__()
        self.log_view = LogView(log, id="entries")
        self._log, self._target = log, target
        self._shown_label = target.label if label is None else label
        self.title_bar, self.summary = TitleBar(), Bar(id="log-summary")
        self.header, self.nothing = LinePanel(id="log-header"), LinePanel(id="log-nothing")
        self.filter_input = FilterInput("part of a command, its purpose or its connection; !text leaves out")
        self._seen = -1

    @property
    def focus_home(self) -> Widget:
        """The entries."""
        return self.log_view

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield from (self.title_bar, self.summary, self.header, self.log_view, self.nothing)
        yield from (self.filter_input, self.footer_bar)

    def on_mount(self) -> None:
        """Show the log and begin to poll."""
        self.header.set_content(lambda width: [header_line(layout_log(width - 1))])  # beside the scrollbar below
        self.show_changes()

    def _title(self, width: int) -> Line:
        status = self.title_bar.server_status
        return over_title(self._shown_label, self._target.db, literal("command log"), width, status)

    def show_changes(self) -> None:
        """Show what has been sent since the last call."""
        self.title_bar.set_line(self._title)
        before, self._seen = self._seen, self._log.revision
        if before != self._seen:
            self.log_view.follow()
            self._show_bars()
        self.flush_after(FLUSH_S if before != self._seen else REST_S)

    def on_resize(self) -> None:
        """Fit the columns to the new width."""
        self.log_view.refresh()
        if self.log_view.is_following:
            self.call_after_refresh(self.log_view.follow)

    @on(LogView.Moved)
    def _show_bars(self) -> None:
        """Show what it all came to, what stands in place of entries where there are none, and the commands."""
        rows, log = self.log_view.rows, self._log
        self.set_class(not len(rows), "-nothing")
        self.summary.set_line(lambda width: summary_line(log, rows.entries, rows.needle, width))
        self.nothing.set_content(lambda width: [] if len(rows) else empty_lines(log, rows.needle, width))
        self.show_commands()

    @property
    def typed(self) -> Mapping[FilterInput, Line]:
        """The filter."""
        return {self.filter_input: FILTER_HINT}

    @property
    def place(self) -> LogPlace:
        """The log."""
        return LogPlace()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen and its entries."""
        return {Owner.LOG: self, Owner.ENTRIES: self.log_view}

    @property
    def conditions(self) -> Conditions:
        """Whether there is an entry to act on."""
        return frozenset({Condition.LIVE, *([Condition.HAS_ROWS] if len(self.log_view.rows) else [])})

    @on(LogView.Opened)
    def _open_entry(self) -> None:
        if row := self.log_view.row:
            self.app.push_screen(EntryScreen(tuple(row)))

    def action_copy(self) -> None:
        """Copy the commands of the row as lines for a shell, or say why there is nothing to copy."""
        row = self.log_view.row
        if not row:
            return
        entry = row[0]
        if entry.is_secret or entry.is_sum or entry.is_cut:
            why = (
                literal("What it holds is secret, so it is not kept.") if entry.is_secret
                else literal("The commands of a bulk connection are counted, not kept one by one.") if entry.is_sum
                else literal("It is too long: only its beginning is kept.")
            )  # fmt: skip
            self.notify(why, title="Nothing to copy", markup=False, timeout=4)
            return
        sent = [argv for one in row for argv in unpack_requests(one.request)]
        copy_text(self, "\n".join(sent_line(self._target, argv) for argv in sent))

    def action_filter(self) -> None:
        """Type a filter."""
        self.open_line(self.filter_input, self.log_view.rows.needle)

    def filter_rows(self, text: str) -> None:
        """Show only the entries with a text in them."""
        self.log_view.filter(text)

    def action_back(self) -> None:
        """Go back one step: end the filter, or leave."""
        if self.is_typing or self.log_view.rows.needle:
            self.action_leave_filter()
            self.log_view.filter("")
        else:
            self.dismiss(None)
