"""The Server screen: the health of the browsed server, in panels that are refreshed while they are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.geometry import Size

from rtui.analysis.health.panel import Line as Figure
from rtui.analysis.humanize import counted
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.server.health.session import Health
from rtui.tui import server_panels as tabs
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.chart_lines import inset
from rtui.tui.kit.choice import TextCard
from rtui.tui.kit.command import APP_COMMANDS, RULES_PAGE, Condition, Conditions, HelpSubject, Owner, bindings
from rtui.tui.kit.command_screen import FLUSH_S, REST_S, ServerPlace
from rtui.tui.kit.layout import display_text, prose
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.panel_screen import (
    PanelScreen,
    TablesStates,
    TablesView,
    nothing_left_lines,
    notice_lines,
    suffix_of,
    write_text,
)
from rtui.tui.kit.status_lines import over_title
from rtui.tui.kit.styled_text import Line, Role, literal
from rtui.tui.kit.table import TableBody
from rtui.tui.kit.table_rows import TableRows

SAMPLES_SUFFIX: Final = ".jsonl"
"""The ending of files of samples."""


LEAST_TABLE_LINES: Final = 9
"""Lines that stay to the table at least, its titles among them."""

MOST_DETAIL_LINES: Final = 13
"""Lines about the figure under the cursor at most."""

MOST_NOTE_LINES: Final = 3

EVERY_ROW: Final = literal("")
"""The scope of the filter: all rows of a complete list."""


@dataclass(slots=True)
class ServerStates(TablesStates):
    """The user's choices on the screen; the first panel of a cluster is that of its nodes."""

    node: SafeText | None = None
    """The node of a cluster whose panels are shown; None for the first one."""


class HealthPanel(TablesView):
    """Shows a tab, or lines in its place: one of its lists, notes, all about the figure under the cursor."""

    def __init__(self, states: ServerStates) -> None:
        self._notes, self._detail = LinePanel(id="server-notes"), LinePanel(id="server-detail")
        super().__init__(self._notes, self._detail)
        self.states: ServerStates = states
        self._content = tabs.Content()
        self._span_s: float | None = None
        self._is_over = False

    def compose(self) -> ComposeResult:
        yield from (self.titles_bar, self.table, self.in_place, self._notes, self._detail)

    @property
    def panel(self) -> tabs.ServerPanel:
        return tabs.BY_ID.get(self.states.panel_id, tabs.BY_ID[tabs.OVERVIEW])

    @property
    def panel_id(self) -> str:
        return self.panel.id

    @property
    def figure(self) -> Figure | None:
        table, subject = self.chosen, self.subject
        if table is None or table.id != tabs.FIGURES or not isinstance(subject, str):
            return None
        found = (figure for panel, figure in self._content.figures if f"{panel.id}/{figure.id}" == subject)
        return next(found, None)

    def show(self, content: tabs.Content, span_s: float | None, *, is_over: bool = False) -> None:
        """Show the content of a tab; `span_s` and `is_over` are for plots (`plot_lines`)."""
        self._content, self._span_s, self._is_over = content, span_s, is_over
        figures = (tabs.figures_table(content, is_overview=self.panel.id == tabs.OVERVIEW),) if content.figures else ()
        if not self.show_tables((*figures, *content.tables)):
            notes = [SafeText(f"{note}.") for note in content.notes]
            self.show_lines(lambda width: notice_lines(literal("No data"), Role.STRONG, width, *notes))

    def show_around(self) -> None:
        table, rows = self.chosen, self.table.rows
        if table is None:
            return
        titles = [self._title(one) for one in self.tables]
        self.show_titles(titles, EVERY_ROW, lambda width: self._nothing_lines(table, rows, width))
        notes = self._note_lines(self.size.width)
        self._notes.display = bool(notes)
        if notes:
            self._notes.styles.height = len(notes)
            self._notes.set_content(self._note_lines)
        self._show_detail()

    def _title(self, table: Table) -> SafeText:
        title = display_text(table.title)
        return title if table.id == tabs.FIGURES else SafeText(f"{title} {len(table.rows):,}")

    def _nothing_lines(self, table: Table, rows: TableRows, width: int) -> list[Line]:
        if rows.state.filter_text:
            return nothing_left_lines(rows, EVERY_ROW, width)
        note = (display_text(table.note),) if table.note else ()
        return notice_lines(literal("Nothing to list"), Role.STRONG, width, *note)

    def _note_lines(self, width: int) -> list[Line]:
        table = self.chosen
        of_table = [] if table is None or not table.note else [display_text(table.note, limit=400)]
        notes = [*of_table, *(SafeText(f"{note}.") for note in self._content.notes)]
        return [line for note in notes for line in prose(note, width, Role.MUTED)][:MOST_NOTE_LINES]

    @on(TableBody.Highlighted)
    def _show_detail(self) -> None:
        figure, span_s = self.figure, self._span_s
        above = LEAST_TABLE_LINES + 1 + (len(self._note_lines(self.size.width)) if self._notes.display else 0)
        height = min(MOST_DETAIL_LINES, self.size.height - above) if figure is not None else 0
        self._detail.display = height > 0
        if figure is None or height <= 0:
            return
        self._detail.styles.height = height
        is_over = self._is_over
        self._detail.set_content(
            lambda width: inset(
                tabs.figure_lines(figure, Size(width - 2, height), span_s, is_over=is_over), Size(width, height)
            )
        )


class ServerScreen(PanelScreen[bytes | None]):
    """Shows the panels of a server, or of one node of a cluster at a time; dismissed with a key to go to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(tabs.SERVER_COMMANDS, Owner.SERVER)
    SCREEN_COMMANDS = (*tabs.SERVER_COMMANDS, *APP_COMMANDS)
    OPENED_BY = "server"
    view: HealthPanel

    def __init__(
        self, source: Health, label: SafeText, *, states: ServerStates | None = None, clock: Callable[[], float]
    ) -> None:
        """`states` are the panels' when the screen was left; `clock` gives seconds since the epoch."""
        view = HealthPanel(ServerStates() if states is None else states)
        super().__init__(view, Bar(id="node"), remedy="server.ask")
        self.source = source
        self._label, self._clock = label, clock
        self._returns_to: ServerPlace | None = None
        """Where Enter on a row has led away from."""

    def on_mount(self) -> None:
        self.source.begin()
        self.show_again()

    def on_unmount(self) -> None:
        self.source.end()

    @property
    def states(self) -> ServerStates:
        return self.view.states

    @property
    def node(self) -> SafeText | None:
        nodes = self.source.nodes
        return self.states.node if self.states.node in nodes else next(iter(nodes), None)

    @property
    def panels(self) -> tuple[tabs.ServerPanel, ...]:
        """The tabs; a single server has no tab of nodes."""
        return tabs.PANELS if self.source.nodes_table is not None else tabs.PANELS[1:]

    @property
    def is_behind(self) -> bool:
        """Whether there are newer samples than the shown ones, or none yet."""
        return self.node is None or self._seen != self.source.revision

    def show_changes(self) -> None:
        if self._seen != self.source.revision:
            self._seen = self.source.revision
            self._show_panel()
        self._show_bars()
        self.flush_after(REST_S)

    def _show_panel(self) -> None:
        source, node, table = self.source, self.node, self.source.nodes_table
        if not self.states.panel_id and node is not None:
            self.states.panel_id = tabs.OVERVIEW if table is None else tabs.NODES
        panel = self.view.panel
        if panel.id == tabs.NODES and table is not None:
            self.view.show(tabs.Content(tables=(table,)), None)
        elif node is None:
            failure = source.failure(None)
            self.view.show_lines(lambda width: tabs.waiting_lines(failure, width))
        else:
            first_at_s = source.first_at_s(node)
            span_s = None if first_at_s is None else max(0.0, self._clock() - first_at_s)
            content = tabs.content_of(panel, source.panels(node), source.denied(node), source.compared(node))
            self.view.show(content, span_s, is_over=source.file is not None)

    def _show_bars(self) -> None:
        source, node, panels = self.source, self.node, self.panels
        asked_at_s = None if node is None else source.asked_at_s(node)
        age_s = None if asked_at_s is None else self._clock() - asked_at_s
        now_s, is_cluster = asyncio.get_running_loop().time(), len(panels) == len(tabs.PANELS)
        status = self.title_bar.server_status
        what = literal("server" if source.file is None else "server, from a file")
        self.title_bar.set_line(lambda width: over_title(self._label, None, what, width, status))
        chosen = panels.index(self.view.panel) if self.view.panel in panels else 0
        ids = [panel.id for panel in panels]
        self.show_tabs(ids, self.view.panel.id, lambda width: tabs.panels_line(panels, chosen, width))
        self.bar_below_tabs.display = is_cluster and self.view.panel.id != tabs.NODES
        self.bar_below_tabs.set_line(lambda width: tabs.node_line(node, source.nodes, width))
        warning = None if node is None else source.warning(node)
        if self.banner.show_warning(None if warning is None else partial(tabs.warning_line, warning)):
            self.show_again()
        if (file := source.file) is not None:
            self.status_bar.set_line(lambda width: tabs.file_line(file, width))
        else:
            link, failure = source.link, source.failure(node)
            self.status_bar.set_line(lambda width: tabs.status_line(link, failure, age_s, now_s, width))
        self.show_commands()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        return {Owner.SERVER: self, Owner.TABLE: self.view.table.body}

    @property
    def conditions(self) -> Conditions:
        holding = {
            Condition.LIVE: self.source.file is None,
            Condition.CLUSTER: self.source.nodes_table is not None,
            Condition.HAS_ROWS: self.view.has_rows,
            Condition.SEVERAL_LISTS: len(self.view.lists) > 1,
        }
        return frozenset(condition for condition, holds in holding.items() if holds)

    # panels

    @property
    def place(self) -> ServerPlace:
        table = self.view.chosen
        return ServerPlace(self.view.panel.id, None if table is None else table.id, self.states.node)

    def show_place(self, place: ServerPlace) -> None:
        self.action_leave_filter()
        self.put_place(place)
        self._show_panel()
        self._show_bars()

    def put_place(self, place: ServerPlace) -> None:
        """Choose a panel, before the screen is shown."""
        states = self.states
        states.panel_id = place.panel_id
        if place.list_id is not None:
            states.lists[place.panel_id] = place.list_id
        if place.node is not None:
            states.node = place.node
        if place.row is not None:
            states.table_state(place.panel_id, tabs.FIGURES).cursor_row = place.row

    def action_show_panel(self, panel_id: str) -> None:
        if panel_id != self.view.panel.id:
            self.leave_place()
            self._returns_to = None
            self.show_place(ServerPlace(panel_id))

    # rows

    @on(TableBody.Opened)
    def action_open(self) -> None:
        """Go to the subject of the row under the cursor, or show the whole row."""
        subject, table = self.view.subject, self.view.chosen
        if table is None or not self.view.has_rows:
            return
        if self.view.panel.id == tabs.NODES and isinstance(subject, str):
            self._enter(ServerPlace(tabs.OVERVIEW, None, SafeText(subject)))
        elif self.view.panel.id == tabs.OVERVIEW and isinstance(subject, str):
            self._enter(ServerPlace(subject.partition("/")[0], tabs.FIGURES, row=subject))
        elif isinstance(subject, bytes) and self.source.file is None:
            self.leave_place()
            self.dismiss(subject)
        else:
            self.action_whole_row()

    def _enter(self, place: ServerPlace) -> None:
        self.leave_place()
        self._returns_to = self.place
        self.show_place(place)

    def action_whole_row(self) -> None:
        figure = self.view.figure
        if figure is not None:
            self.app.push_screen(TextCard("Metric", "row", lambda width: tabs.whole_figure_lines(figure, width)))
        elif self.view.has_rows:
            self.app.push_screen(tabs.row_card(self.view.table))

    @property
    def help_subject(self) -> HelpSubject | None:
        figure = self.view.figure
        return None if figure is None or not figure.rule else HelpSubject(RULES_PAGE, figure.rule)

    # asking and writing

    def action_ask(self) -> None:
        self.source.ask_now()
        self.flush_after(FLUSH_S)

    def writing(self, name: str) -> Callable[[], SafeText]:
        if suffix_of(name) != SAMPLES_SUFFIX:
            return super().writing(name)
        lines = self.source.sample_lines()
        return lambda: write_text(name, lambda: "".join(lines), counted(len(lines) - 1, "sample"))

    def go_back(self) -> None:
        """Go back to where Enter has led away from, to all nodes, or leave."""
        if self._returns_to is not None:
            place, self._returns_to = self._returns_to, None
            self.show_place(place)
        elif self.source.nodes_table is not None and self.view.panel.id != tabs.NODES:
            self.show_place(ServerPlace(tabs.NODES))
        elif self.source.file is None:
            self.dismiss(None)
