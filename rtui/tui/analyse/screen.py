"""The Analyse screen: what the keyspace holds, in panels that fill while the analysis reads every key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_session import AnalysisSource
from rtui.server.guard.evidence import Consent
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.tui.analyse import screen_lines
from rtui.tui.analyse.commands import ANALYSE_COMMANDS, PANELS
from rtui.tui.analyse.comparing import against_line
from rtui.tui.analyse.comparing_screen import ComparingScreen
from rtui.tui.analyse.findings_panel import FindingsPanel, FindingsState
from rtui.tui.analyse.hot_session import HotKeys, HotSessionScreen
from rtui.tui.analyse.icicle_colours import Colouring
from rtui.tui.analyse.latest_findings import LatestFindings
from rtui.tui.analyse.memory_panel import MemoryPanel, MemoryState
from rtui.tui.analyse.panel import PanelStates, following
from rtui.tui.analyse.panel_view import PanelView
from rtui.tui.kit.bars import Banner, Bar, FilterInput, LinkedBar, TabBar
from rtui.tui.kit.clipboard import Copy, choose_copy, copy_text
from rtui.tui.kit.command import APP_COMMANDS, RULES_PAGE, Condition, Conditions, HelpSubject, Owner, bindings
from rtui.tui.kit.command_screen import AT_ONCE_S, FLUSH_S, REST_S, KeysWanted
from rtui.tui.kit.files import SUFFIXES, write_file, write_table
from rtui.tui.kit.history import Leaving, PanelPlace
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.status_lines import analyse_banner, run_action_of
from rtui.tui.kit.table import ReportTable, TableBody
from rtui.tui.kit.table_lines import FILTER_HINT, row_copies
from rtui.tui.kit.title_bar import TitleBar

if TYPE_CHECKING:
    from rtui.analysis.query.behind import Behind
    from rtui.registry.registry import Registry


class AnalyseScreen(ComparingScreen):
    """Shows an analysis in panels; dismissed with the key that the user wants to go to, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ANALYSE_COMMANDS, Owner.ANALYSE, Owner.PANEL)
    AUTO_FOCUS = "#table-body"
    SCREEN_COMMANDS = (*ANALYSE_COMMANDS, *APP_COMMANDS)

    def __init__(
        self,
        source: AnalysisSource,
        *,
        states: PanelStates | None = None,
        label: SafeText | None = None,
        settings: SettingsFile | None = None,
        registry: Registry | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`states` are those of the panels when the screen was left; `label` replaces the server's.

        `registry` is what is written about the keys, with severities of rules; `clock` gives seconds since the epoch.
        """
        super().__init__()
        self.clock = clock
        self.source = source
        self.settings = SettingsFile() if settings is None else settings
        self.title_bar, self.tab_bar = TitleBar(), TabBar(id="panels")
        self.status_bar = LinkedBar(lambda span: run_action_of(span, Owner.ANALYSE), id="status")
        self.banner, self.against_bar = Banner("analyse.begin"), Bar(id="against")
        first = self.settings.settings.panel or PANELS[0].id
        self.view = PanelView(states or self._remembered(first), id="panel")
        self.findings = LatestFindings(None if registry is None else registry.rules, registry)
        self.view.states.by_panel[FindingsPanel.id] = FindingsState(latest=self.findings)
        self.report: Report | None = None
        self.filter_input = FilterInput("part of a name", id="filter")
        self.file_input = FilterInput(f"file to write, ending in {', '.join(SUFFIXES)}", id="file")
        self._label = label
        self.hot_keys = HotKeys(source, self, lambda: self.view.panel.shows_hot_keys)
        self._seen = -1
        self._shown: tuple[Report | None, bool] | None = None

    def _remembered(self, first: str) -> PanelStates:
        """Return the states of panels as the user chose them in earlier sessions."""
        chosen = self.settings.settings
        memory = MemoryState(colouring=Colouring(chosen.colouring))
        return PanelStates(first, {MemoryPanel.id: memory}, orders=dict(chosen.tables))

    @on(ReportTable.Sorted)
    def _remember_order(self) -> None:
        name, order = self.view.order_name, self.view.order
        self.settings.choose(f"tables.{name}", order)
        self.view.states.orders[name] = order or ""

    @on(PanelView.Changed)
    def _remember_colouring(self) -> None:
        state = self.view.state
        if isinstance(state, MemoryState) and state.colouring.value != self.settings.settings.colouring:
            self.settings.choose("colouring", state.colouring.value)

    @property
    def control(self) -> RunControl:
        """Pauses, stops and paces the analysis."""
        return self.source.control

    @property
    def focus_home(self) -> Widget:
        """The rows of the table, also while other lines stand in their place."""
        return self.view.table.body

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield from (self.title_bar, self.banner, self.tab_bar, self.against_bar, self.view)
        yield from (self.filter_input, self.file_input, self.status_bar, self.footer_bar)

    def on_mount(self) -> None:
        """Show the report and start polling."""
        self.show_changes()

    def on_resize(self) -> None:
        """Divide the new height between chart and table."""
        self.show_again()

    def show_again(self) -> None:
        """Show everything again, whatever has changed."""
        self._seen, self._shown = -1, None
        self.call_after_refresh(self.flush)

    def show_changes(self) -> None:
        """Show what has changed since the last call, and schedule the next one."""
        status, before = self.source.status, self._seen
        self._seen = self.source.revision
        now = self.source.report, status.is_under_way
        if now != self._shown or (before != self._seen and self.report is None):
            self._show_panel()
        if status.is_live or before != self._seen:
            self.show_bars()
            if self.banner.show_warning(analyse_banner(status.outdated, status.age_s)):
                self.on_resize()
            self.view.age(status.hot_since_s)
            self.hot_keys.refresh(status)
            self.go_on_watching(status)
        if status.is_live:
            self.flush_after(FLUSH_S if status.is_under_way or before != self._seen else REST_S)

    def _show_panel(self) -> None:
        """Show the chosen panel, or what stands in its place."""
        status, report = self.source.status, self.source.report
        self._shown = report, status.is_under_way
        self.report = report if report is not None and report.head.coverage.keys else None
        if self.report is not None:
            self.view.show(self.report, holds_order=status.is_under_way or self._watch is not None)
            self.look_for_findings(self.report)
        elif report is not None and status.progress.state is not ScanState.FAILED:
            self.view.show_lines(lambda width: screen_lines.empty_lines(report, width))
        else:
            self.view.show_lines(lambda width: screen_lines.offer_lines(status, width))
        self._show_commands()

    def show_bars(self) -> None:
        """Show the title, the progress, the tabs and the commands."""
        status, report, shows_cost = self.source.status, self.source.report, self.shows_cost
        now_s = asyncio.get_running_loop().time()
        browsed = self.title_bar.server_status
        self.title_bar.set_line(
            lambda width: screen_lines.title_line(
                status, report, width, self._label, clock_s=self.clock(), browsed=browsed
            )
        )
        self.status_bar.set_line(
            lambda width: screen_lines.status_line(status, report, now_s, width, shows_cost=shows_cost)
        )
        chosen = PANELS.index(self.view.panel)
        self.tab_bar.set_line(lambda width: screen_lines.panels_line([panel.title for panel in PANELS], chosen, width))
        before, shown = self.view.states.baseline, self.report
        watching = None if self._watch is None else self._watch.text(self._loop_s)
        self.against_bar.display = shown is not None and not (before is None and watching is None)
        if shown is not None:
            self.against_bar.set_line(lambda width: against_line(before, shown, self.clock(), width, watching))
        self._show_commands()

    @on(PanelView.Changed)
    def _show_commands(self) -> None:
        """Show in the footer the commands that apply, or what is typed and how it ends."""
        if self.filter_input.is_open:
            self.footer_bar.show_commands((), FILTER_HINT)
        elif self.file_input.is_open:
            self.footer_bar.show_commands((), screen_lines.FILE_HINT)
        else:
            self.footer_bar.show_commands(self.offered())

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen, its panel, and the table of that."""
        return {Owner.ANALYSE: self, Owner.PANEL: self.view, Owner.TABLE: self.view.table.body}

    @property
    def conditions(self) -> Conditions:
        """What holds at the moment, of what commands may need."""
        status = self.source.status
        is_running, is_paused = status.is_under_way, status.progress.state is ScanState.PAUSED
        is_ready = status.is_live and not is_running
        holding = {
            Condition.LIVE: status.is_live,
            Condition.READY: is_ready,
            Condition.SCANNING: is_running and not is_paused,
            Condition.PAUSED: is_running and is_paused,
            Condition.ON_ENTRY: self.report is not None and len(self.view.table.rows) > 0,
            Condition.HOT_SESSION: is_ready and self.view.panel.shows_hot_keys and self.source.offers_hot_session,
        }
        return frozenset(condition for condition, holds in holding.items() if holds) | self.view.conditions

    def show_soon(self) -> None:
        """Show what a command has changed."""
        self.show_bars()
        self.flush_after(AT_ONCE_S)

    def action_show_panel(self, panel_id: str) -> None:
        """Show a panel."""
        if panel_id != self.view.panel.id:
            self.leave_place()
        self.settings.choose("panel", panel_id)
        self.show_place(PanelPlace(panel_id))

    @property
    def place(self) -> PanelPlace:
        """The panel and what is chosen in it."""
        return PanelPlace(self.view.panel.id, self.view.state)

    def show_place(self, place: PanelPlace) -> None:
        """Show a panel as it was."""
        self.action_leave_filter()
        self.view.states.put(place.panel_id, place.state)
        self._show_panel()
        self.show_bars()

    def action_next_panel(self, step: int = 1) -> None:
        """Show the panel so many places after this one."""
        self.action_show_panel(following(PANELS, self.view.panel, step).id)

    @on(TabBar.Chosen)
    def _tab_clicked(self, event: TabBar.Chosen) -> None:
        self.action_show_panel(PANELS[event.index].id)

    @on(TableBody.Opened)
    def _open_row(self) -> None:
        """Zoom into a namespace, go to a key, or begin an analysis where there is none yet."""
        if self.report is None:
            if self.source.report is None:
                self.action_begin()
        elif len(self.view.table.rows):
            before = self.place
            if self.view.zoom_in():
                self.app.post_message(Leaving(before))
                return
            key = screen_lines.key_of(self.view.subject)
            if key is not None and self.source.status.is_live:
                self.leave_place()
                self.dismiss(key)
            else:
                self.action_keys()

    def action_keys(self) -> None:
        """Show the keys that the row under the cursor is about, by the query that stands for them."""
        found = self._behind
        if isinstance(found, str):
            self.notify(found, markup=False, timeout=6)
        elif found is not None:
            self.post_message(KeysWanted(found.query, found.note))

    @property
    def _behind(self) -> Behind | SafeText | None:
        """The query behind the row under the cursor, or why there is none; None without rows."""
        rows, line = self.view.table.rows, self.view.table.body.cursor_line
        if self.report is None or not 0 <= line < len(rows):
            return None
        from rtui.analysis.query.rows_behind import behind_key, behind_row  # noqa: PLC0415 - when it is wanted

        key = screen_lines.key_of(self.view.subject)
        if key is not None:
            return behind_key(key)
        if (found := self.view.panel.behind_row(self.view.state, rows.index(line))) is not None:
            return found
        return behind_row(self.report, rows.table, rows.index(line), self.view.states.baseline)

    def action_copy_row(self) -> None:
        """Copy the name that the row is about, or the whole row where it has none."""
        if copies := self._copies:
            copy_text(self, copies[0].text)

    def action_copy_menu(self) -> None:
        """Choose what to copy of the row."""
        if copies := self._copies:
            choose_copy(self, copies)

    @property
    def _copies(self) -> list[Copy]:
        """What can be copied of the row under the cursor."""
        found = self.view.panel.copies(self.view.state)
        return [*found, *row_copies(self.view.subject, self.view.table.body.texts)]

    @property
    def help_subject(self) -> HelpSubject | None:
        """In the list of findings the rule under the cursor."""
        if self.view.panel.id != FindingsPanel.id:
            return None
        found = self.view.subject
        return HelpSubject(RULES_PAGE, found.partition(" ")[0] if isinstance(found, str) else "")

    def action_hot_session(self) -> None:
        """Ask the user whether the server may find its hottest keys itself, and start that."""
        if Condition.HOT_SESSION in self.conditions:

            def answered(consent: Consent | None) -> None:
                if consent is not None:
                    self.hot_keys.start_session(consent)

            self.app.push_screen(HotSessionScreen(), answered)

    def action_filter(self) -> None:
        """Type a text that rows must have."""
        if self.report is not None:
            self.filter_input.open(self.view.table.rows.state.filter_text)
            self._show_commands()

    def action_export(self) -> None:
        """Type the name of a file for what the table shows."""
        if self.report is not None and len(self.view.table.rows):
            self.file_input.open()
            self._show_commands()

    @on(FilterInput.Changed, "#filter")
    def _filter_changed(self, event: FilterInput.Changed) -> None:
        if self.filter_input.is_open:
            self.view.filter(event.value)

    @on(FilterInput.Submitted)
    def _input_submitted(self, event: FilterInput.Submitted) -> None:
        self.action_leave_filter()
        if event.input is self.file_input and event.value:
            rows = self.view.table.rows
            writing = write_file(self, lambda: write_table(rows.shown(), event.value))
            self.run_worker(writing, exit_on_error=False, description="writing the table")

    def action_leave_filter(self) -> None:
        """Move from what is typed to the rows."""
        self.filter_input.close()
        self.file_input.close()
        self.set_focus(self.view.table.body)
        self._show_commands()

    def action_back(self) -> None:
        """Go back one step."""
        if self.file_input.is_open:
            self.action_leave_filter()
        elif self.report is not None and (self.filter_input.is_open or self.view.table.rows.state.filter_text):
            self.action_leave_filter()
            self.view.filter("")
        elif not self.view.action_zoom_out():
            self.action_leave()

    def action_leave(self) -> None:
        """Go back to the tree, where there is one."""
        status = self.source.status
        if status.is_live:
            if status.is_under_way:
                is_paused = status.progress.state is ScanState.PAUSED
                self.app.notify(
                    screen_lines.STAYS_PAUSED if is_paused else screen_lines.GOES_ON, markup=False, timeout=4
                )
            self.dismiss(None)
