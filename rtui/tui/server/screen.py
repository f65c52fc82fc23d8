"""The screen of clients and commands: who sends KEYS, what was slow, who is connected; asked every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.server.health.callers import Callers
from rtui.server.wire.errors import RtuiError
from rtui.tui.kit.bars import Bar, FilterInput, TabBar
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.clipboard import copy_text
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Owner, bindings
from rtui.tui.kit.command_screen import REST_S, CommandScreen
from rtui.tui.kit.history import ClientsPlace
from rtui.tui.kit.layout import ago, prose, tab_line
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.status_lines import over_title
from rtui.tui.kit.styled_text import Line, Role, Span, gap, left, literal
from rtui.tui.kit.table import ReportTable, TableBody
from rtui.tui.kit.table_rows import Order, TableState
from rtui.tui.server.clients_tables import TITLES, nothing_lines, summary_lines, tables
from rtui.tui.server.commands import CLIENTS_COMMANDS

ASK_EVERY_S: Final = 5.0
"""How often the server is asked while the screen is shown: it costs 0.2 ms, and 1.2 µs for each client."""

ORDERS: Final = (Order("ago_s", upward=True), Order("ago_s", upward=True), Order("output_bytes"))
"""By which the lists are sorted before the user chooses."""

TITLE_CELLS: Final = 14
"""Of the names of facts in the card of a row."""

FILTER_HINT: Final[Line] = (
    Span(literal(" enter"), Role.ACCENT),
    Span(literal(" keeps the rows that have this text"), Role.MUTED),
    Span(literal("  esc"), Role.ACCENT),
    Span(literal(" shows all"), Role.MUTED),
)
"""Stands in the footer while a filter is typed."""


class RowScreen(CardScreen[None]):
    """Shows all cells of a row; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,left,h", "dismiss", "Close", show=False)]

    def __init__(self, title: SafeText, facts: list[tuple[SafeText, SafeText]]) -> None:
        super().__init__(title, "row")
        self._facts = facts

    def lines(self, width: int) -> list[Line]:
        """Return a paragraph for each cell, its title beside it."""
        lines: list[Line] = [()]
        for title, text in self._facts:
            first, *rest = prose(text, width - TITLE_CELLS - 1, Role.TEXT)
            lines.append((gap(1), Span(left(title, TITLE_CELLS), Role.MUTED), *first[1:]))
            lines += [(gap(TITLE_CELLS + 1), *line[1:]) for line in rest]
        return [*lines, ()]


class ClientsScreen(CommandScreen[None]):
    """Shows the three lists, one at a time."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(CLIENTS_COMMANDS, Owner.CLIENTS)
    SCREEN_COMMANDS = (*CLIENTS_COMMANDS, *APP_COMMANDS)
    AUTO_FOCUS = "#table-body"

    def __init__(self, ask: Callable[[], Awaitable[Callers]], label: SafeText, clock: Callable[[], float]) -> None:
        """`ask` asks the server; `clock` gives seconds since the epoch."""
        super().__init__()
        self._ask, self._label, self._clock = ask, label, clock
        self.title_bar, self.summary = Bar(id="title"), LinePanel(id="clients-summary")
        self.lists_bar, self.table = TabBar(id="clients-lists"), ReportTable(id="clients-table")
        self.nothing = LinePanel(id="clients-nothing")
        self.filter_input = FilterInput("part of a command, of a name or of an address")
        self.callers: Callers | None = None
        """What the server has said, None before it has."""
        self._failure: SafeText | None = None
        self._shown = 0
        """Which list."""
        self._states = tuple(TableState() for _ in TITLES)
        self._due_s = 0.0

    @property
    def focus_home(self) -> Widget:
        """The rows."""
        return self.table.body

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield from (self.title_bar, self.summary, self.lists_bar, self.table, self.nothing)
        yield from (self.filter_input, self.footer_bar)

    def on_mount(self) -> None:
        """Ask, and begin to poll."""
        self.action_refresh()
        self.show_changes()
        self._show()

    def on_resize(self) -> None:
        """Give the sentences the lines that they need now."""
        self._show()

    def show_changes(self) -> None:
        """Ask again when it is time, and show how old the answer is."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._due_s and self.is_current:
            self.action_refresh()
        self.title_bar.set_line(self._title)
        self.flush_after(REST_S)

    def _title(self, width: int) -> Line:
        age = ago(None if self.callers is None else self._clock() - self.callers.at_s)
        what = SafeText(f"clients, asked {age}") if age else literal("clients")
        return over_title(self._label, None, what, width)

    def action_refresh(self) -> None:
        """Ask now."""
        self._due_s = asyncio.get_running_loop().time() + ASK_EVERY_S
        self.run_worker(self._refresh(), group="clients", exclusive=True, exit_on_error=False, description="clients")

    async def _refresh(self) -> None:
        try:
            self.callers, self._failure = await self._ask(), None
        except RtuiError as error:
            self._failure = error.happened
        self._show()

    @property
    def _table(self) -> Table | None:
        return None if self.callers is None else tables(self.callers)[self._shown]

    def _show(self) -> None:
        """Show the answer: sentences, the titles of the lists, the rows or what stands in their place."""
        callers, table = self.callers, self._table
        width = max(1, self.size.width)
        sentences = self._sentences(width)
        self.summary.styles.height = len(sentences)
        self.summary.set_content(self._sentences)
        notes: list[SafeText] = list(TITLES)
        if callers is not None:
            notes = [SafeText(f"{title} {len(one.rows):,}") for title, one in zip(TITLES, tables(callers), strict=True)]
        self.lists_bar.set_line(lambda width: tab_line(notes, self._shown, (), width))
        state = self._states[self._shown]
        if table is not None:
            self.table.show(table.id, table, state, made=ORDERS[self._shown], holds_order=True)
        has_rows = table is not None and len(self.table.rows) > 0
        self.set_class(not has_rows, "-nothing")
        if callers is not None and table is not None and not has_rows:
            self.nothing.set_content(lambda width: nothing_lines(callers, table, state.filter_text, width))
        else:
            self.nothing.set_content(lambda width: [])
        self._offer_commands()

    def _sentences(self, width: int) -> list[Line]:
        if self._failure is not None:
            return prose(SafeText(f"Not asked: {self._failure}"), width, Role.WARN)
        if self.callers is None:
            return prose(SafeText("Asking the server …"), width, Role.MUTED)
        return summary_lines(self.callers, width)

    def _offer_commands(self) -> None:
        if self.filter_input.is_open:
            self.footer_bar.show_commands((), FILTER_HINT)
        else:
            self.footer_bar.show_commands(self.offered())

    @property
    def place(self) -> ClientsPlace:
        """The clients."""
        return ClientsPlace()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen and its table."""
        return {Owner.CLIENTS: self, Owner.TABLE: self.table.body}

    @property
    def conditions(self) -> Conditions:
        """Whether there is a row to act on."""
        has_rows = self.callers is not None and len(self.table.rows) > 0
        return frozenset({Condition.LIVE, *([Condition.HAS_ROWS] if has_rows else [])})

    @on(TableBody.Opened)
    def action_whole_row(self) -> None:
        """Show everything that is known of the row under the cursor."""
        texts, table = self.table.body.texts, self.table.rows.table
        if texts and self._table is not None:
            titles = [SafeText(column.title) for column in table.columns]
            self.app.push_screen(RowScreen(TITLES[self._shown], list(zip(titles, texts, strict=True))))

    @on(TabBar.Chosen)
    def _list_clicked(self, event: TabBar.Chosen) -> None:
        self.action_next_list(event.index - self._shown)

    def action_next_list(self, step: int = 1) -> None:
        """Show the list so many places after this one."""
        self._shown = (self._shown + step) % len(TITLES)
        self._show()

    def action_copy_row(self) -> None:
        """Copy the row."""
        if texts := self.table.body.texts:
            copy_text(self, "\t".join(texts))

    def action_filter(self) -> None:
        """Type a text that rows must have."""
        self.filter_input.open(self._states[self._shown].filter_text)
        self._offer_commands()

    @on(FilterInput.Changed)
    def _filter_changed(self, event: FilterInput.Changed) -> None:
        if self.filter_input.is_open:
            self.table.filter(event.value)
            self._show()

    @on(ReportTable.Sorted)
    def _sorted(self) -> None:
        self._offer_commands()

    @on(FilterInput.Submitted)
    def action_leave_filter(self) -> None:
        """Move from what is typed to the rows."""
        self.filter_input.close()
        self.set_focus(self.table.body)
        self._offer_commands()

    def action_back(self) -> None:
        """Go back one step: end the filter, or leave."""
        if self.filter_input.is_open or self._states[self._shown].filter_text:
            self.action_leave_filter()
            self.table.filter("")
            self._show()
        else:
            self.dismiss(None)
