"""The Analyse screen: the report of the keyspace in panels that fill while the analysis reads every key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.dom import DOMNode

from rtui.analysis.humanize import keys
from rtui.analysis.query.behind import Behind, behind_key, behind_row
from rtui.analysis.report.document import CoverageKind, Report
from rtui.keyspace.text.display import SafeText
from rtui.server import wall_clock
from rtui.server.analysis.session import AnalysisSource
from rtui.server.guard.evidence import Consent
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.tui.analyse import screen_lines
from rtui.tui.analyse.comparing import ScreenComparison
from rtui.tui.analyse.findings_panel import FindingsPanel, FindingsState, LatestFindings
from rtui.tui.analyse.hot_panel import HotKeys, HotSessionScreen
from rtui.tui.analyse.memory_panel import Colouring, MemoryPanel, MemoryState
from rtui.tui.analyse.panel import ReportStates
from rtui.tui.analyse.report_panel import ANALYSE_COMMANDS, PANELS, ReportPanel
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.command import APP_COMMANDS, RULES_PAGE, Condition, Conditions, HelpSubject, Owner, bindings
from rtui.tui.kit.command_screen import AT_ONCE_S, FLUSH_S, REST_S, KeysWanted, Leaving, PanelPlace
from rtui.tui.kit.panel_screen import PanelScreen, RunScreen
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.status_lines import analyse_banner, run_action_of
from rtui.tui.kit.styled_text import literal
from rtui.tui.kit.table import ReportTable, TableBody

if TYPE_CHECKING:
    from rtui.registry.registry import Registry


class AnalyseScreen(RunScreen[bytes | None], PanelScreen[bytes | None]):
    """Shows an analysis in panels; dismissed with the key that the user wants to go to, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(ANALYSE_COMMANDS, Owner.ANALYSE, Owner.PANEL)
    SCREEN_COMMANDS = (*ANALYSE_COMMANDS, *APP_COMMANDS)
    view: ReportPanel

    def __init__(
        self,
        source: AnalysisSource,
        *,
        states: ReportStates | None = None,
        settings: SettingsFile | None = None,
        registry: Registry | None = None,
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        """`states` are the states of the panels when the screen was left.

        `registry` describes the keys, with severities of rules; `clock` returns seconds since the epoch.
        """
        self.settings = SettingsFile() if settings is None else settings
        view = ReportPanel(states or self._remembered(self.settings.settings.panel or PANELS[0].id))
        super().__init__(
            view, Bar(id="against"), remedy="analyse.begin",
            action_of=lambda span: run_action_of(span, Owner.ANALYSE),
        )  # fmt: skip
        self.clock, self.source = clock, source
        self.findings = LatestFindings(None if registry is None else registry.rules, registry)
        view.states.by_panel[FindingsPanel.id] = FindingsState(latest=self.findings)
        self.comparison = ScreenComparison(self, view, source, self.findings, lambda: self.clock())  # noqa: PLW0108 - the clock may be replaced
        self.hot_keys = HotKeys(source, self, lambda: self.view.panel.shows_hot_keys)
        self._shown: tuple[Report | None, bool] | None = None

    def _remembered(self, first: str) -> ReportStates:
        chosen = self.settings.settings
        memory = MemoryState(colouring=Colouring(chosen.colouring))
        rankings = {panel.id for panel in PANELS if panel.is_ranking}
        orders = {name: order for name, order in chosen.tables.items() if name.partition(".")[0] not in rankings}
        return ReportStates(first, by_panel={MemoryPanel.id: memory}, orders=orders)

    @on(ReportTable.Sorted)
    def _remember_order(self) -> None:
        name, order = self.view.order_name, self.view.order
        if not self.view.panel.is_ranking:
            self.settings.choose(f"tables.{name}", order)
        self.view.states.orders[name] = order or ""

    @on(ReportPanel.Changed)
    def _remember_colouring(self) -> None:
        state = self.view.state
        if isinstance(state, MemoryState) and state.colouring.value != self.settings.settings.colouring:
            self.settings.choose("colouring", state.colouring.value)

    @property
    def control(self) -> RunControl:
        return self.source.control

    @property
    def report(self) -> Report | None:
        return self.view.report

    def on_mount(self) -> None:
        self.show_changes()

    def show_again(self) -> None:
        self._shown = None
        super().show_again()

    def show_changes(self) -> None:
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
            self.comparison.go_on_watching(status)
        if status.is_live:
            self.flush_after(FLUSH_S if status.is_under_way or before != self._seen else REST_S)

    def _show_panel(self) -> None:
        status, report = self.source.status, self.source.report
        self._shown = report, status.is_under_way
        if report is not None and report.head.coverage.keys:
            is_held = status.is_under_way or self.comparison.watch is not None
            self.view.show(report, holds_order=is_held)
            self.comparison.look_for_findings(report)
        elif report is not None and status.progress.state is not ScanState.FAILED:
            self.view.show_lines(lambda width: screen_lines.empty_lines(report, width))
        else:
            self.view.show_lines(lambda width: screen_lines.offer_lines(status, width))
        self.show_commands()

    def show_bars(self) -> None:
        status, report, shows_cost = self.source.status, self.source.report, self.shows_cost
        now_s = asyncio.get_running_loop().time()
        browsed = self.title_bar.server_status
        self.title_bar.set_line(
            lambda width: screen_lines.title_line(status, report, width, clock_s=self.clock(), browsed=browsed)
        )
        self.status_bar.set_line(
            lambda width: screen_lines.status_line(status, report, now_s, width, shows_cost=shows_cost)
        )
        chosen = PANELS.index(self.view.panel)
        titles = [panel.title for panel in PANELS]
        self.show_tabs(
            [panel.id for panel in PANELS],
            self.view.panel.id,
            lambda width: screen_lines.panels_line(titles, chosen, width),
        )
        line = self.comparison.line()
        self.bar_below_tabs.display = line is not None
        if line is not None:
            self.bar_below_tabs.set_line(line)
        self.show_commands()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        return {Owner.ANALYSE: self, Owner.PANEL: self.view, Owner.TABLE: self.view.table.body}

    @property
    def conditions(self) -> Conditions:
        status = self.source.status
        is_running, is_paused = status.is_under_way, status.progress.state is ScanState.PAUSED
        is_ready = status.is_live and not is_running
        holding = {
            Condition.LIVE: status.is_live,
            Condition.READY: is_ready,
            Condition.SCANNING: is_running and not is_paused,
            Condition.PAUSED: is_running and is_paused,
            Condition.ON_ENTRY: self.view.has_rows,
            Condition.HOT_SESSION: is_ready and self.view.panel.shows_hot_keys and self.source.offers_hot_session,
        }
        return frozenset(condition for condition, holds in holding.items() if holds) | self.view.conditions

    def show_soon(self) -> None:
        self.show_bars()
        self.flush_after(AT_ONCE_S)

    def action_show_panel(self, panel_id: str) -> None:
        if panel_id != self.view.panel.id:
            self.leave_place()
        self.settings.choose("panel", panel_id)
        self.show_place(PanelPlace(panel_id))

    @property
    def place(self) -> PanelPlace:
        return PanelPlace(self.view.panel.id, self.view.state)

    def show_place(self, place: PanelPlace) -> None:
        self.action_leave_filter()
        self.view.states.put(place.panel_id, place.state)
        self._show_panel()
        self.show_bars()

    @on(TableBody.Opened)
    def _open_row(self) -> None:
        """Zoom into a namespace, go to a key, or begin the first analysis."""
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
        found = self._behind
        if isinstance(found, str):
            self.notify(found, markup=False, timeout=6)
        elif found is not None:
            self.post_message(KeysWanted(found.query, found.note))

    @property
    def _behind(self) -> Behind | SafeText | None:
        """The query behind the row under the cursor, or why it has none; None without rows."""
        rows, line = self.view.table.rows, self.view.table.body.cursor_line
        if self.report is None or not 0 <= line < len(rows):
            return None

        key = screen_lines.key_of(self.view.subject)
        if key is not None:
            return behind_key(key)
        if (found := self.view.panel.behind_row(self.view.state, rows.index(line))) is not None:
            return found
        return behind_row(self.report, rows.table, rows.index(line), self.view.states.baseline)

    @property
    def copies(self) -> Sequence[Copy]:
        return [*self.view.panel.copies(self.view.state), *super().copies]

    @property
    def help_subject(self) -> HelpSubject | None:
        """In the list of findings the rule under the cursor."""
        if self.view.panel.id != FindingsPanel.id:
            return None
        found = self.view.subject
        return HelpSubject(RULES_PAGE, found.partition(" ")[0] if isinstance(found, str) else "")

    def action_hot_session(self) -> None:
        if Condition.HOT_SESSION in self.conditions:

            def answered(consent: Consent | None) -> None:
                if consent is not None:
                    self.hot_keys.start_session(consent)

            self.app.push_screen(HotSessionScreen(), answered)

    def action_begin(self, *, estimate: bool = False) -> None:
        """Read every key, or a sample; ask first where it costs money."""
        if Condition.READY not in self.conditions:
            return

        def begin() -> None:
            self.source.begin(estimate=estimate)
            self.show_soon()

        def chosen(choice: int | None) -> None:
            if choice == 1 and Condition.READY in self.conditions:
                begin()

        if self.source.bill is None:
            begin()
        else:
            self.app.push_screen(ChoiceScreen(self.source.bill, screen_lines.LEAVE_OR_PAY), chosen)

    def action_estimate(self) -> None:
        """Read a sample; ask first where an estimate would replace exact figures."""
        report = self.report
        if report is None or report.head.coverage.kind is not CoverageKind.EXACT:
            self.action_begin(estimate=True)
        elif Condition.READY in self.conditions:

            def chosen(choice: int | None) -> None:
                if choice == 1:
                    self.action_begin(estimate=True)

            title = SafeText(f"The figures of {keys(report.head.coverage.counted_keys)} are exact")
            self.app.push_screen(ChoiceScreen(title, screen_lines.KEEP_OR_REPLACE), chosen)

    def action_columns(self) -> None:
        if Condition.READY in self.conditions:
            choices = screen_lines.column_choices(self.source.given_columns)

            def chosen(choice: int | None) -> None:
                if choice is not None:
                    self.source.choose_columns(choices[choice][0])
                    self.show_again()
                    if self.report is not None:
                        self.notify(choices[choice][1], title="The next analysis reads", markup=False, timeout=4)

            self.app.push_screen(ChoiceScreen(literal("Fields to read"), [text for _, text in choices]), chosen)

    def action_watch(self) -> None:
        self.comparison.toggle_watch()
        self.show_soon()

    def action_compare(self) -> None:
        self.comparison.toggle()

    def go_back(self) -> None:
        if not self.view.action_zoom_out():
            self.action_leave()

    def action_leave(self) -> None:
        status = self.source.status
        if status.is_live:
            if status.is_under_way:
                is_paused = status.progress.state is ScanState.PAUSED
                self.app.notify(
                    screen_lines.STAYS_PAUSED if is_paused else screen_lines.GOES_ON, markup=False, timeout=4
                )
            self.dismiss(None)
