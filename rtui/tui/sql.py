"""The screen that asks the rows of an analysis by SQL: a line for the statement, its result, and what it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.widget import Widget
from textual.worker import Worker

from rtui.analysis.formats.result_rows import StatementRows, written_rows
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText, display_text
from rtui.registry.registry import Registry
from rtui.server.analysis.statements import answer, keys_of_names, read, statement_process
from rtui.server.browsing.session import BrowsingSession
from rtui.server.wire.errors import RtuiError
from rtui.tui.kit.bars import Bar, FilterInput, TitleBar
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.clipboard import copies as key_copies
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Group, Owner, ScreenCommand, bindings
from rtui.tui.kit.command_screen import REST_S
from rtui.tui.kit.layout import prose
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.panel_screen import RowsScreen, key_hint, suffix_of, write_text
from rtui.tui.kit.status_lines import over_title
from rtui.tui.kit.styled_text import Line, Role, Span, cut, gap, literal
from rtui.tui.kit.table import MOVE_COMMANDS, SORT_COMMANDS, ReportTable, TableBody
from rtui.tui.kit.table_rows import TableState

MOST_ROWS: Final = 10_000
"""Rows of a result that are shown."""

LONGEST: Final = 4_000
"""Characters of a statement that can be typed."""

EXAMPLE: Final = (
    "SELECT pattern, count(*) AS keys, sum(memory_bytes) FROM keys GROUP BY pattern ORDER BY 3 DESC LIMIT 20"
)

NO_ROWS: Final = literal("No rows to ask yet: press a for an analysis, whose rows are kept, and come back with Q.")

_sql = partial(ScreenCommand, group=Group.SQL, owner=Owner.SQL)

SQL_COMMANDS: Final = (
    *MOVE_COMMANDS,
    *SORT_COMMANDS,
    _sql("edit", ("slash",), "Statement", "Change the statement; Up and Down go through earlier ones.", footer=1),
    _sql("copy_row", ("y",), "Copy", "Copy the name of the key, or the row.", when=(Condition.HAS_ROWS,), footer=4),
    _sql("copy_menu", ("Y",), "Copy …", "Choose what to copy.", when=(Condition.HAS_ROWS,)),
    _sql("export", ("w",), "Export", "Export the result to a file.", when=(Condition.HAS_ROWS,), footer=5),
    _sql("back", ("escape",), "Back", "End a running statement, or leave the screen.", footer=6),
)


class StatementLine(FilterInput):
    """The line for a statement; Up and Down show earlier and later ones."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.older(1)", show=False),
        Binding("down", "screen.older(-1)", show=False),
    ]

    def __init__(self) -> None:
        hint = key_hint(literal(" runs it"), literal(" leaves"))
        super().__init__("SELECT … FROM keys, patterns or findings", keys_hint=hint, id="statement")
        self.max_length = LONGEST

    def open(self, value: str = "") -> None:
        """Show a statement to change; what is typed takes the place of the example."""
        super().open(value)
        if value == EXAMPLE:
            self.select_all()


@dataclass
class SqlState:
    """The statements of this run and the last result, which outlive the screen."""

    history: list[str] = field(default_factory=list)
    result: StatementRows | None = None
    table: Table = field(default_factory=lambda: Table("sql", "", (), ()))
    rows: TableState = field(default_factory=TableState)


class SqlScreen(RowsScreen[bytes | None]):
    """Runs statements; dismissed with the key that the user wants to go to, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(SQL_COMMANDS, Owner.SQL)
    SCREEN_COMMANDS = (*SQL_COMMANDS, *APP_COMMANDS)
    OPENED_BY = "sql"
    AUTO_FOCUS = ""
    suffixes = (".csv", ".json", ".jsonl", ".md")

    def __init__(self, session: BrowsingSession, state: SqlState, *, registry: Registry | None = None) -> None:
        super().__init__()
        self._session, self.state, self._registry = session, state, registry
        self._label = session.target.label
        self.title_bar, self.summary = TitleBar(), Bar(id="sql-summary")
        self.table, self.notes = ReportTable(id="sql-table"), LinePanel(id="sql-notes")
        self.statement_line, self.file_input = StatementLine(), self.file_line()
        self.typed = (self.statement_line, self.file_input)
        self.error: SafeText | None = None
        self.is_asking = False
        self._work: Worker[None] | None = None
        self._at = 0
        """Which of the earlier statements the line shows, from the latest on; 0 for a new one."""

    @property
    def focus_home(self) -> Widget:
        return self.table.body

    def compose(self) -> ComposeResult:
        yield from (self.title_bar, self.statement_line, self.summary, self.table, self.notes)
        yield from (self.file_input, self.footer_bar)

    def on_mount(self) -> None:
        state = self.state
        if state.result is None or not state.table.rows:
            self.statement_line.open(state.history[-1] if state.history else EXAMPLE)
        else:
            self.call_after_refresh(self.set_focus, self.table.body)
        self.call_after_refresh(self._show_result)
        self.show_changes()

    def show_changes(self) -> None:
        db, status = self._session.target.db, self.title_bar.server_status
        self.title_bar.set_line(lambda width: over_title(self._label, db, literal("SQL"), width, status))
        self._show_bars()
        self.flush_after(REST_S)

    def _show_bars(self) -> None:
        self.summary.set_line(self._summary_line)
        lines = self._note_lines(max(1, self.size.width))
        self.notes.styles.height = max(1, len(lines))
        self.notes.set_content(self._note_lines)
        self.show_commands()

    def _summary_line(self, width: int) -> Line:
        result = self.state.result
        if self.is_asking:
            return (gap(1), Span(literal("running; Escape ends it"), Role.ACCENT))
        if result is None:
            return (gap(1), Span(literal("keys · patterns · findings    ? has the columns and examples"), Role.MUTED))
        shown = display_text(" ".join(result.statement.split()), limit=LONGEST)
        return (gap(1), Span(cut(SafeText(f"{result.title} · {shown}"), width - 2), Role.MUTED))

    def _note_lines(self, width: int) -> list[Line]:
        if self.error is not None:
            return prose(self.error, width, Role.BAD)
        result = self.state.result
        if result is None:
            return [] if self._session.analysis.rows is not None else prose(NO_ROWS, width, Role.WARN)
        return [line for note in result.notes for line in prose(note, width, Role.WARN)]

    def _show_result(self) -> None:
        self.table.show(id(self.state.table), self.state.table, self.state.rows)
        self._show_bars()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        return {Owner.SQL: self, Owner.TABLE: self.table.body}

    @property
    def conditions(self) -> Conditions:
        holding = {
            Condition.LIVE: True,
            Condition.HAS_ROWS: len(self.table.rows) > 0,
            Condition.ON_ENTRY: isinstance(self.table.body.subject, bytes),
        }
        return frozenset(condition for condition, holds in holding.items() if holds)

    @on(TableBody.Highlighted)
    def _row_changed(self) -> None:
        self.show_commands()

    # statements

    def action_edit(self) -> None:
        self._at = 0
        self.open_line(self.statement_line, self.state.history[-1] if self.state.history else EXAMPLE)

    def action_older(self, step: int) -> None:
        """Show an earlier statement in the line; behind the latest go to the rows."""
        history = self.state.history
        if self._at + step < 0 or not history:
            if step < 0 and len(self.table.rows):
                self.action_leave_filter()
            return
        self._at = min(self._at + step, len(history))
        self.statement_line.open(history[-self._at] if self._at else "")

    @on(FilterInput.Submitted, "#statement")
    def _statement_typed(self, event: FilterInput.Submitted) -> None:
        text = event.value.strip()
        if text and not self.is_asking:
            history = self.state.history
            if text not in history[-1:]:
                history.append(text)
            self._at, self.error, self.is_asking = 0, None, True
            self._work = self.run_worker(self._run(text), group="sql", exit_on_error=False, description="SQL")
            self._show_bars()

    async def _run(self, text: str) -> None:
        """Run a statement in place of the one before; what is wrong is shown in its place."""
        try:
            result, table = await self._asked(text)
        except RtuiError as error:
            self.error = SafeText(" ".join(part for part in (error.happened, error.remedy) if part))
        else:
            self.state.result, self.state.table, self.state.rows = result, table, TableState()
            if table.rows:
                self.action_leave_filter()
        finally:
            self.is_asking = False
            if self.is_mounted:
                self._show_result()

    async def _asked(self, text: str) -> tuple[StatementRows, Table]:
        statement = await asyncio.to_thread(read, text)
        rows, report = self._session.analysis.rows, self._session.analysis.report
        if report is None or (rows is None and statement.tables != {"findings"}):
            raise RtuiError("No rows", NO_ROWS)
        async with statement_process() as process:
            given = await answer(process, statement, report, rows, registry=self._registry, most_rows=MOST_ROWS)
        columns, names = tuple(given.rows.columns), tuple[bytes, ...]()
        result = StatementRows(text, columns, given.rows.rows(), given.is_cut, given.notes)
        if "key" in columns and rows is not None:
            names = await asyncio.to_thread(keys_of_names, rows, given.rows["key"])
        return result, replace(result.table, subjects=names)

    def action_back(self) -> None:
        """End the statement that runs; else leave the line, or the screen."""
        if self.is_asking and self._work is not None:
            self._work.cancel()
            self.error = literal("It was stopped.")
        elif self.is_typing and len(self.table.rows):
            self.action_leave_filter()
        else:
            self.dismiss(None)

    # rows

    @on(TableBody.Opened)
    def _open_key(self) -> None:
        subject = self.table.body.subject
        if isinstance(subject, bytes):
            self.dismiss(subject)

    @property
    def copies(self) -> Sequence[Copy]:
        subject = self.table.body.subject
        if isinstance(subject, bytes):
            return key_copies(self._session.target, subject, None)[:2]
        texts = self.table.body.texts
        return [Copy(literal("the row"), "\t".join(texts))] if texts else []

    def action_export(self) -> None:
        if len(self.table.rows):
            self.open_line(self.file_input)

    def writing(self, name: str) -> Callable[[], SafeText]:
        result = self.state.result
        assert result is not None  # noqa: S101 - there are rows
        form = suffix_of(name).removeprefix(".")
        return partial(write_text, name, lambda: "".join(written_rows(result, form)), counted(len(result.rows), "row"))
