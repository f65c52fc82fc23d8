"""The Analyse screen: what the keyspace holds, in panels, filling while every key is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_source import AnalysisSource, AnalysisStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.analysis_desk import AnalysisDesk
from rtui.tui.analyse.commands import ANALYSE_COMMANDS
from rtui.tui.analyse.head_lines import empty_lines, offer_lines, panels_line, status_line, title_line
from rtui.tui.analyse.hot_session_desk import HotSessionDesk
from rtui.tui.analyse.panel import Area, Choices, Panel, PanelBook
from rtui.tui.analyse.panel_desk import PanelDesk
from rtui.tui.analyse.panel_view import PanelView
from rtui.tui.analyse.panels import BY_ID, PANELS
from rtui.tui.analyse.row_desk import RowDesk
from rtui.tui.analyse.table_notes import key_of, meaning
from rtui.tui.kit.banner import analyse_banner
from rtui.tui.kit.bars import Banner, Bar, TabBar
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Owner, bindings, footer_commands
from rtui.tui.kit.command_screen import CommandScreen
from rtui.tui.kit.filter_input import FilterInput
from rtui.tui.kit.polling import AT_ONCE_S, FLUSH_S, REST_S, NextLook
from rtui.tui.kit.styled_text import Line, Role, Span, own
from rtui.tui.kit.table import ReportTable, TableBody
from rtui.tui.kit.table_file import SUFFIXES

FILTER_HINT: Final[Line] = (
    Span(own(" enter"), Role.ACCENT),
    Span(own(" keeps the rows that have this text"), Role.MUTED),
    Span(own("  esc"), Role.ACCENT),
    Span(own(" shows all"), Role.MUTED),
)

FILE_HINT: Final[Line] = (
    Span(own(" enter"), Role.ACCENT),
    Span(own(" writes the table as it is shown: .csv, .md or .json"), Role.MUTED),
    Span(own("  esc"), Role.ACCENT),
    Span(own(" cancels"), Role.MUTED),
)


class AnalyseScreen(CommandScreen[bytes | None]):
    """Binds an analysis to panels; dismissed with the key that the user wants to go to, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ANALYSE_COMMANDS, Owner.ANALYSE)
    AUTO_FOCUS = "#table-body"
    SCREEN_COMMANDS = (*ANALYSE_COMMANDS, *APP_COMMANDS)

    def __init__(
        self,
        source: AnalysisSource,
        *,
        start_panel: str | None = None,
        book: PanelBook | None = None,
        label: SafeText | None = None,
    ) -> None:
        """`book` is what was chosen before; `label` stands for the server's own in the title."""
        super().__init__()
        self.source = source
        self._book = PanelBook() if book is None else book
        if start_panel is not None:
            self._book.panel_id = start_panel
        self.title_bar, self.status_bar, self.tab_bar = Bar(id="title"), Bar(id="status"), TabBar(id="panels")
        self.banner = Banner()
        self.view = PanelView(self._book, id="panel")
        self.filter_input = FilterInput("part of a name", id="filter")
        self.file_input = FilterInput(f"file to write, ending in {', '.join(SUFFIXES)}", id="file")
        self._label = label
        self._pass = AnalysisDesk(source, self._asked, self._ask_user)
        self._row = RowDesk(self, lambda: self.table)
        self._desk = PanelDesk(self, self._choose)
        self._session = HotSessionDesk(self, source, lambda: self.panel)
        self._seen = -1
        self._shown: tuple[Report | None, bool] | None = None
        self._next_look = NextLook(self, self.flush)

    @property
    def panel(self) -> Panel:
        """The panel that is shown."""
        return BY_ID.get(self._book.panel_id, PANELS[0])

    @property
    def choices(self) -> Choices:
        """What is chosen in it."""
        return self._book.choices_of(self.panel)

    @property
    def chart_area(self) -> Area:
        """The cells of the chart."""
        return self.view.chart_area

    @property
    def report(self) -> Report | None:
        """What is shown, None while there is nothing that panels could show."""
        report = self.source.report
        return report if report is not None and report.head.coverage.keys else None

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield self.title_bar
        yield self.banner
        yield self.tab_bar
        yield self.view
        yield self.filter_input
        yield self.file_input
        yield self.status_bar
        yield self.footer_bar

    @property
    def table(self) -> ReportTable:
        """The table of the panel."""
        return self.view.table

    @property
    def focus_home(self) -> Widget:
        """The rows of the table, also while others stand in their place."""
        return self.table.body

    def on_mount(self) -> None:
        """Show what there is and start looking for changes."""
        self.show_changes()

    def on_resize(self) -> None:
        """Give chart and table their parts of the new height."""
        self._seen, self._shown = -1, None
        self.call_after_refresh(self.flush)

    # what changes by itself

    def show_changes(self) -> None:
        """Show what has changed since the last look."""
        status, before = self.source.status, self._seen
        self._seen = self.source.revision
        now = self.source.report, status.is_under_way
        if now != self._shown or (before != self._seen and self.report is None):
            self._show_panel()
        if status.is_live or before != self._seen:
            self._say_bars()
            self._warn(status)
            self.view.age(status.hot_since_s)
            self._session.watch()
        if status.is_live:
            self._next_look.after(FLUSH_S if status.is_under_way or before != self._seen else REST_S)

    def _warn(self, status: AnalysisStatus) -> None:
        """Say that the figures do not hold any more, if so; chart and table get their parts of the height anew."""
        if self.banner.warn(analyse_banner(status.outdated, status.age_s)):
            self._seen, self._shown = -1, None
            self.call_after_refresh(self.flush)

    def _asked(self) -> None:
        """Say what has been asked of the analysis, and look soon what comes of it."""
        self._say_bars()
        self._next_look.after(AT_ONCE_S)

    def _ask_user(self, title: SafeText, entries: Sequence[SafeText], answered: Callable[[int | None], None]) -> None:
        """Have the user choose one of some entries."""
        self.app.push_screen(ChoiceScreen(title, entries), answered)

    def _say_bars(self) -> None:
        """Say whose numbers these are, how the analysis is doing, and what can be done."""
        status, report, shows_cost = self.source.status, self.source.report, self._pass.shows_cost
        now_s = asyncio.get_running_loop().time()
        self.title_bar.tell(lambda width: title_line(status, report, width, self._label))
        self.status_bar.tell(lambda width: status_line(status, report, now_s, width, shows_cost=shows_cost))
        at = PANELS.index(self.panel)
        self.tab_bar.tell(lambda width: panels_line([panel.title for panel in PANELS], at, width))
        self._offer_commands()

    # panels

    def _show_panel(self) -> None:
        """Show the chosen panel, or what stands in its place."""
        status, report = self.source.status, self.source.report
        self._shown = report, status.is_under_way
        if self.report is not None:
            self.view.show(self.report, self.panel, holds_order=status.is_under_way)
        elif report is not None and status.progress.state is not ScanState.FAILED:
            self.view.show_offer(lambda width: empty_lines(report, width))
        else:
            self.view.show_offer(lambda width: offer_lines(status, width))
        self._offer_commands()

    @on(TableBody.Highlighted)
    def _follow_cursor(self) -> None:
        """Have the chart show where the cursor is."""
        choices = replace(self.choices, subject=self.view.subject)
        if self.report is not None and choices != self.choices:
            self._book.choose(self.panel, choices)
            self.view.follow(choices)
        self._offer_commands()

    def action_show_panel(self, panel_id: str) -> None:
        """Show another panel."""
        self._close_prompt()
        self._book.panel_id = panel_id
        self._show_panel()
        self._say_bars()

    def _choose(self, choices: Choices | None) -> bool:
        """Take up other choices in the panel; False when there are none."""
        if choices is not None:
            self._book.choose(self.panel, choices)
            self._show_panel()
        return choices is not None

    @on(PanelView.Chosen)
    def _chosen(self, event: PanelView.Chosen) -> None:
        self._choose(event.choices)

    @on(TabBar.Chosen)
    def _tab_chosen(self, event: TabBar.Chosen) -> None:
        if event.index < len(PANELS):
            self.action_show_panel(PANELS[event.index].id)

    @on(TableBody.Opened)
    def _open(self) -> None:
        """Zoom into a namespace, go to a key, or begin where nothing has begun."""
        report, subject = self.report, self.view.subject
        if report is None:
            if Condition.READY in self.conditions and self.source.report is None:
                self._pass.begin()
        elif len(self.table.rows) and not self._choose(self._below(report)):
            key = key_of(subject)
            if key is not None:
                self._go_to(key)
            else:
                title = self.panel.listing(report, self.choices).title
                self.notify(meaning(subject, title), markup=False, timeout=4)

    def _below(self, report: Report) -> Choices | None:
        """Return what Enter on the row under the cursor chooses in the panel, None where it leads out or nowhere."""
        return self.panel.step_in(report, replace(self.choices, subject=self.view.subject))

    def _go_to(self, key: bytes) -> None:
        """Leave for a key in the tree, where there is one."""
        if self.source.status.is_live:
            self.dismiss(key)
        else:
            self.notify("This report was opened from a file: there is no tree to go to.", markup=False, timeout=3)

    def action_next_panel(self) -> None:
        """Show the next panel."""
        self.action_show_panel(PANELS[(PANELS.index(self.panel) + 1) % len(PANELS)].id)

    def action_previous_panel(self) -> None:
        """Show the panel before."""
        self.action_show_panel(PANELS[PANELS.index(self.panel) - 1].id)

    def action_hot_session(self) -> None:
        """Ask whether the server may be made to find its hottest keys itself."""
        self._session.ask()

    # texts that are typed

    def action_filter(self) -> None:
        """Type a text that rows must have."""
        if self.report is not None:
            self.filter_input.open(self.table.rows.look.needle)
            self._offer_commands()

    def action_export(self) -> None:
        """Type the name of a file for what the table shows."""
        if self.report is not None and len(self.table.rows):
            self.file_input.open()
            self._offer_commands()

    def action_leave_filter(self) -> None:
        """Go into what was found."""
        self._close_prompt()

    @on(FilterInput.Changed, "#filter")
    def _filter_changes(self, event: FilterInput.Changed) -> None:
        if self.filter_input.is_open:
            self._filter(event.value)

    @on(FilterInput.Submitted)
    def _typed(self, event: FilterInput.Submitted) -> None:
        self._close_prompt()
        if event.input is self.file_input and event.value:
            self._row.write(event.value)

    def _filter(self, needle: str) -> None:
        self.view.filter(needle)
        self._offer_commands()

    def _close_prompt(self) -> None:
        for prompt in (self.filter_input, self.file_input):
            prompt.close()
        self.table.body.focus()
        self._offer_commands()

    # commands

    def action_back(self) -> None:
        """Go back one step."""
        if self.file_input.is_open:
            self._close_prompt()
        elif self.report is not None and (self.filter_input.is_open or self.table.rows.look.needle):
            self._close_prompt()
            self._filter("")
        elif not (self.report is not None and self._choose(self.panel.step_out(self.report, self.choices))):
            self.action_leave()

    def action_leave(self) -> None:
        """Go back to the tree, where there is one."""
        if self.source.status.is_live:
            self.dismiss(None)

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen and its table."""
        return {Owner.ANALYSE: self, Owner.TABLE: self.table.body}

    @property
    def conditions(self) -> Conditions:
        """What holds at the moment, of what commands may need."""
        rows, report, subject = self.table.rows, self.report, self.view.subject
        has_key = self.source.status.is_live and key_of(subject) is not None
        found = {
            Condition.ON_ENTRY: report is not None and (has_key or self._below(report) is not None),
            Condition.HAS_ROWS: self.report is not None and (len(rows) > 0 or bool(rows.look.needle)),
        }
        here = frozenset(condition for condition, is_so in found.items() if is_so)
        return here | self._pass.conditions | self._session.conditions | self._desk.conditions

    def _offer_commands(self) -> None:
        if self.filter_input.is_open or self.file_input.is_open:
            self.footer_bar.offer((), FILTER_HINT if self.filter_input.is_open else FILE_HINT)
        else:
            self.footer_bar.offer(footer_commands(self.offered()))

    def action_begin(self) -> None:
        """Ask every key."""
        self._pass.begin()

    def action_estimate(self) -> None:
        """Ask a sample; where it would take the place of exact figures, only if the user says so."""
        self._pass.estimate()

    def action_pause(self) -> None:
        """Pause, or go on."""
        self._pass.pause()

    def action_stop(self) -> None:
        """End with what there is."""
        self._pass.stop()

    def action_faster(self) -> None:
        """Take the next faster pace."""
        self._pass.faster()

    def action_slower(self) -> None:
        """Take the next slower pace."""
        self._pass.slower()

    def action_cost(self) -> None:
        """Show or hide what the server was asked for in all."""
        self._pass.cost()

    def action_next_list(self) -> None:
        """Show the next table."""
        self._desk.next_list()

    def action_previous_list(self) -> None:
        """Show the table before."""
        self._desk.previous_list()

    def action_zoom_out(self) -> None:
        """Go to the namespace above."""
        self._desk.zoom_out()

    def action_measure(self) -> None:
        """List by bytes, or by length."""
        self._desk.measure()

    def action_preset(self) -> None:
        """Mark rows by the next thresholds."""
        self._desk.preset()

    def action_nodes(self) -> None:
        """Imagine a cluster of another number of nodes."""
        self._desk.nodes()

    def action_weigh(self) -> None:
        """Draw bytes instead of keys, or keys again."""
        self._desk.weigh()

    def action_horizon(self) -> None:
        """Look further ahead."""
        self._desk.horizon()

    def action_move_cell(self, columns: int, lines: int) -> None:
        """Move the cursor of the chart by so many columns and lines."""
        self._desk.move_cell(columns, lines)

    def action_copy_row(self) -> None:
        """Copy the name of what the row is about, the row itself where it has none."""
        self._row.copy_row()

    def action_copy_menu(self) -> None:
        """Choose what to copy."""
        self._row.copy_menu()
