"""The panels of the Analyse screen in the order of their tabs, the commands, and the widget that shows a panel.

Of a panel it shows the chart, the titles of the tables, the chosen table, a note below.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Size

from rtui.analysis.report.document import Report
from rtui.server.analysis.run import ESTIMATE_KEYS
from rtui.tui.analyse.expiry_panel import ExpiryPanel
from rtui.tui.analyse.findings_panel import FindingsPanel
from rtui.tui.analyse.hot_panel import HotKeysPanel
from rtui.tui.analyse.memory_panel import MemoryPanel
from rtui.tui.analyse.panel import AnalysePanel, ReportStates
from rtui.tui.analyse.screen_lines import among, empty_table_lines
from rtui.tui.analyse.size_panels import BigKeysPanel, TypesPanel
from rtui.tui.analyse.slots_panel import SlotsPanel
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.command import Condition, Conditions, Group, Owner, ScreenCommand
from rtui.tui.kit.command_screen import KeysWanted
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.panel_screen import PanelView, note_line
from rtui.tui.kit.table import MOVE_COMMANDS, SORT_COMMANDS, TableBody

PANELS: Final[tuple[AnalysePanel[Any], ...]] = (
    FindingsPanel(), MemoryPanel(), BigKeysPanel(), HotKeysPanel(), ExpiryPanel(), SlotsPanel(), TypesPanel(),
)  # fmt: skip
"""All panels, in the order of their tabs; their keys, commands and help follow from this list."""

_run = partial(ScreenCommand, group=Group.ANALYSE, owner=Owner.ANALYSE)

_table = partial(ScreenCommand, group=Group.TABLE, owner=Owner.ANALYSE)

_panel = partial(ScreenCommand, group=Group.TABLE, owner=Owner.PANEL)

_RUNNING: Final = (Condition.SCANNING, Condition.PAUSED)

COMPARE_COMMAND: Final = _run(
    "compare", ("D",), "Compare",
    "Show ▲▼ what has changed since an earlier report of this server, in every panel; again ends that.",
    footer=5, words="diff changes trend history",
)  # fmt: skip

ANALYSE_COMMANDS: Final[tuple[ScreenCommand, ...]] = (
    *(
        _run(panel.id, (panel.key,), panel.title, panel.help, call=f"show_panel('{panel.id}')", words=panel.words)
        for panel in PANELS
    ),
    _run("next_panel", ("tab",), "Next panel", "Show the next panel."),
    _run(
        "previous_panel", ("shift+tab",), "Previous panel", "Show the previous panel.", label="⇧tab",
        call="next_panel(-1)",
    ),
    _run(
        "begin", ("r",), "Analyse all keys", "Analyse all keys from the beginning; replaces the current figures.",
        when=(Condition.READY,), footer=13, words="refresh rescan analyse reload",
    ),
    _run(
        "estimate", ("e",), "Estimate",
        f"Estimate from {ESTIMATE_KEYS:,} random keys: takes seconds at any size; every figure has an interval.",
        when=(Condition.READY,), footer=14,
    ),
    _run(
        "columns", ("c",), "Fields to read",
        "Choose the fields to read: idle times and lengths of one key in eight, or everything of every key.",
        when=(Condition.READY,),
    ),
    _run("pause", ("p",), "Pause", "Pause or resume the analysis.", when=_RUNNING, footer=2),
    _run(
        "faster", ("plus", "equals_sign"), "Faster", "Increase the pace; uses more server time.",
        when=(Condition.LIVE,), footer=15, label="+",
    ),
    _run("slower", ("minus",), "Slower", "Decrease the pace.", when=(Condition.LIVE,)),
    _run(
        "stop", ("x",), "Stop", "Stop the analysis; results so far stay, marked partial.", when=_RUNNING, footer=12
    ),
    _run("cost", ("i",), "Cost", "Show the cost to the server so far: commands, bytes, CPU time."),
    _run(
        "watch", ("W",), "Watch",
        "Repeat the analysis using 1 % of the server's time, and mark changes; press again to stop.",
        when=(Condition.LIVE,), words="monitor follow",
    ),
    COMPARE_COMMAND,
    _run(
        "back", ("escape",), "Back",
        "Go back one step: clear the filter, zoom out, or leave the analysis, which continues.", footer=11,
    ),
    _run("leave", ("a",), "Tree", "Go back to the tree; the analysis continues.", when=(Condition.LIVE,)),
    *MOVE_COMMANDS,
    _table(
        "keys", ("K",), "Keys",
        "List the keys of the row, by the matching query, which you can edit.",
        when=(Condition.ON_ENTRY,), footer=2, words="list",
    ),
    _panel(
        "zoom_out", ("left", "h", "backspace"), "Zoom out", "Go back to the parent namespace.",
        when=(Condition.ZOOMED,), footer=6,
    ),
    _panel(
        "next_list", ("right_square_bracket",), "Next list", "Show the next table of the panel.",
        when=(Condition.SEVERAL_LISTS,), footer=6,
    ),
    _panel(
        "previous_list", ("left_square_bracket",), "Previous list", "Show the previous table.",
        when=(Condition.SEVERAL_LISTS,), call="next_list(-1)",
    ),
    *(command for panel in PANELS for command, _ in panel.commands),
    _run(
        "hot_session", ("H",), "Hot-key session",
        "Let the server track its hottest keys for a while; explains effects and cost, and asks first.",
        when=(Condition.HOT_SESSION,), footer=4,
    ),
    *SORT_COMMANDS,
    _table("filter", ("slash",), "Filter", "Show only rows that contain a text.", when=(Condition.HAS_ROWS,), footer=8),
    _table(
        "copy_row", ("y",), "Copy", "Copy the name of the row, or the whole row where it has none.",
        when=(Condition.HAS_ROWS,), footer=4,
    ),
    _table("copy_menu", ("Y",), "Copy as…", "Choose what to copy of the row.", when=(Condition.HAS_ROWS,)),
    _table(
        "export", ("w",), "Export", "Export the table to a .csv, .md or .json file.",
        when=(Condition.HAS_ROWS,), footer=9, words="export save csv json download",
    ),
)  # fmt: skip


NOTE_LINES: Final = 1
"""Lines below the table that the note takes."""


class ReportPanel(PanelView):
    """Shows one panel of a report, or lines in its place; commands, clicks and the cursor change the panel's state."""

    def __init__(self, states: ReportStates) -> None:
        self.chart, self._note_bar = LinePanel(id="chart"), Bar(id="note")
        super().__init__(self.chart, self._note_bar)
        self.states = states
        self.report: Report | None = None
        """The report that is shown; None while other lines stand in its place."""
        self._holds_order = False
        self._since_s = 0.0

    def compose(self) -> ComposeResult:
        yield from (self.chart, self.titles_bar, self.table, self.in_place, self._note_bar)

    @property
    def panel(self) -> AnalysePanel[Any]:
        return next((panel for panel in PANELS if panel.id == self.states.panel_id), PANELS[0])

    @property
    def state(self) -> Any:
        """The state of the panel: a `PanelState`, of the panel's own type."""
        return self.states.by_panel.get(self.panel.id, self.panel.initial)

    def choose_list(self, list_id: str) -> None:
        self.set_state(replace(self.state, table_id=list_id, subject=None))

    @property
    def order_name(self) -> str:
        """The name of the table in the settings: `memory.namespaces` at every level of the namespaces."""
        return f"{self.panel.id}.{self.list_id.partition(' ')[0]}"

    @property
    def order(self) -> str | None:
        """The user's order of the table, such as `-keys` in reverse; None for the order of the table as made."""
        state = self.table.rows.state
        return f"{'-' if state.is_reversed else ''}{state.sort or ''}" or None

    def show(self, report: Report, *, holds_order: bool = False) -> None:
        """Show the chosen panel of a report; `holds_order` keeps the rows of a table in place once the user moved."""
        self.report, self._holds_order = report, holds_order
        states, panel = self.states, self.panel
        wanted = states.chosen(panel, report, self.state)
        self.lists, self.list_id = [one.id for one in states.listed(panel, report, self.state)], wanted.id
        table = states.table(panel, report, wanted, self.state)
        self.set_class(panel.is_chart_below, "-below")
        self._show_chart()
        self.table.show(
            (panel.id, wanted.id),
            table,
            states.table_state(panel.id, wanted.id, states.orders.get(self.order_name, "")),
            wanted.is_marked,
            made=wanted.order,
            holds_order=holds_order,
        )
        self.show_around()

    def _show_changed(self) -> None:
        if self.report is not None:
            self.show(self.report, holds_order=self._holds_order)
            self.post_message(self.Changed())

    def compare(self, baseline: Report | None) -> None:
        self.states.compare(baseline)
        self._show_changed()

    def show_lines(self, make: MakeLines) -> None:
        self.report = None
        super().show_lines(make)

    def show_again(self, panel_id: str) -> None:
        """Make the tables of a panel anew after a change outside the report."""
        self.states.forget(panel_id)
        if self.panel.id == panel_id:
            self._show_changed()

    def age(self, since_s: float) -> None:
        """Redraw a chart that shows its age; its figures were read `since_s` seconds ago."""
        before, self._since_s = self._since_s, since_s
        if self.report is not None and self.panel.aged(self.state, before) != self.panel.aged(self.state, since_s):
            self._show_chart()

    def set_state(self, state: Any) -> bool:
        """Show the panel in another state; returns False for None, which changes nothing."""
        if state is None or self.report is None:
            return False
        self.states.by_panel[self.panel.id] = state
        self._show_changed()
        return True

    def zoom_in(self) -> bool:
        return self.report is not None and self.set_state(self._zoomed_in(self.report))

    def action_zoom_out(self) -> bool:
        """Zoom out by a level; returns False at the top."""
        return self.report is not None and self.set_state(self.panel.zoomed_out(self.report, self.state))

    def action_change(self, command_id: str) -> None:
        if self.report is not None:
            for command, change in self.panel.commands:
                if command.id == command_id:
                    self.set_state(change(self.report, self.state, self.chart.size))

    @property
    def conditions(self) -> Conditions:
        report, panel, state = self.report, self.panel, self.state
        if report is None:
            return frozenset()
        size = self.chart.size
        applying = {command.id for command, change in panel.commands if change(report, state, size) is not None}
        holding = {
            Condition.SEVERAL_LISTS: len(self.lists) > 1,
            Condition.ZOOMED: panel.zoomed_out(report, state) is not None,
            Condition.ON_ENTRY: self._zoomed_in(report) is not None,
            Condition.HAS_ROWS: self.has_rows or bool(self.filter_text),
        }
        return frozenset({*applying, *(condition for condition, holds in holding.items() if holds)})

    def _zoomed_in(self, report: Report) -> Any:
        if self.states.chosen(self.panel, report, self.state).is_comparison:
            return None
        return self.panel.zoomed_in(report, replace(self.state, subject=self.subject))

    def show_around(self) -> None:
        report, rows = self.report, self.table.rows
        if report is None:
            return
        wanted = self.states.chosen(self.panel, report, self.state)
        self.show_titles(
            [one.title for one in self.states.listed(self.panel, report, self.state)],
            among(wanted, rows),
            lambda width: empty_table_lines(report, wanted, rows, width),
        )
        self._note_bar.set_line(lambda width: note_line(wanted.note, rows.table.note, width))
        self._note_bar.display = bool(wanted.note or rows.table.note)

    def _show_chart(self) -> None:
        report, panel, charts = self.report, self.panel, self.states.charts
        if report is None:
            return
        state = panel.aged(self.state, self._since_s)
        height = charts.height(panel, report, state, Size(self.size.width, max(0, self.size.height - NOTE_LINES)))
        self.chart.display = height > 0
        if height:
            self.chart.styles.height = height
            self.chart.set_content(lambda width: charts.drawn(panel, report, state, Size(width, height)))

    @on(TableBody.Highlighted)
    def _cursor_moved(self) -> None:
        state = replace(self.state, subject=self.subject)
        if self.report is not None and state != self.state:
            self.states.by_panel[self.panel.id] = state
            self._show_chart()
        self.post_message(self.Changed())

    @on(events.Click, "#chart")
    def _chart_clicked(self, event: events.Click) -> None:
        report, at = self.report, (self.chart.size, event.x, event.y)
        if report is not None and not self.set_state(self.panel.clicked(report, self.state, *at)):
            found = self.panel.behind(report, self.state, *at)
            if found is not None:
                self.post_message(KeysWanted(found.query, found.note))
