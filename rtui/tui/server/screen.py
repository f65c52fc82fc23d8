"""The Server screen: how the server is that holds the keys, in panels that are kept fresh while they are looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from rtui.analysis.health.panel import Line as Figure
from rtui.keyspace.text.display import SafeText
from rtui.server.health.session import Health
from rtui.tui.kit.bars import Banner, Bar, FilterInput, TabBar
from rtui.tui.kit.choice import CardScreen
from rtui.tui.kit.clipboard import Copy, choose_copy, copy_text
from rtui.tui.kit.command import APP_COMMANDS, RULES_PAGE, Condition, Conditions, HelpSubject, Owner, bindings
from rtui.tui.kit.command_screen import FLUSH_S, REST_S, CommandScreen
from rtui.tui.kit.files import SUFFIXES, write_file, write_samples, write_table
from rtui.tui.kit.history import ServerPlace
from rtui.tui.kit.status_lines import over_title
from rtui.tui.kit.styled_text import Line, literal
from rtui.tui.kit.table import TableBody
from rtui.tui.kit.table_lines import FILTER_HINT, key_hint, row_copies
from rtui.tui.kit.title_bar import TitleBar
from rtui.tui.server import screen_lines
from rtui.tui.server.commands import SERVER_COMMANDS
from rtui.tui.server.panel_view import ServerPanelView, ServerStates
from rtui.tui.server.panels import FIGURES, NODES, OVERVIEW, PANELS, Content, ServerPanel, content_of

SAMPLES_SUFFIX: Final = ".jsonl"
"""The ending of files of samples."""

FILE_HINT: Final = key_hint(literal(" writes the list: .csv, .md or .json; all samples: .jsonl"), literal(" cancels"))
"""Shown while the name of a file is typed."""


class RowScreen(CardScreen[None]):
    """Shows a row or a figure as a whole; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,left,h", "dismiss", "Close", show=False)]

    def __init__(self, title: SafeText, make: Callable[[int], list[Line]]) -> None:
        """`make` returns the lines for a width."""
        super().__init__(title, "row")
        self._make_lines = make

    def lines(self, width: int) -> list[Line]:
        """Return the row."""
        return self._make_lines(width)


class ServerScreen(CommandScreen[bytes | None]):
    """Shows the panels of a server, or of one node of a cluster at a time; dismissed with a key to go to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(SERVER_COMMANDS, Owner.SERVER)
    SCREEN_COMMANDS = (*SERVER_COMMANDS, *APP_COMMANDS)
    AUTO_FOCUS = "#table-body"

    def __init__(
        self,
        source: Health,
        label: SafeText,
        *,
        states: ServerStates | None = None,
        clock: Callable[[], float],
    ) -> None:
        """`states` are those of the panels when the screen was left; `clock` gives seconds since the epoch."""
        super().__init__()
        self.source = source
        self._label, self._clock = label, clock
        self.title_bar, self.tab_bar, self.node_bar = TitleBar(), TabBar(id="panels"), Bar(id="node")
        self.banner = Banner("server.ask")
        self.view = ServerPanelView(ServerStates() if states is None else states, id="panel")
        self.filter_input = FilterInput("part of a name", id="filter")
        self.file_input = FilterInput(f"file to write, ending in {', '.join((*SUFFIXES, SAMPLES_SUFFIX))}", id="file")
        self.status_bar = Bar(id="status")
        self._seen = -1
        self._returns_to: ServerPlace | None = None
        """Where Enter on a row has led away from."""

    @property
    def focus_home(self) -> Widget:
        """The rows of the list."""
        return self.view.table.body

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield from (self.title_bar, self.banner, self.tab_bar, self.node_bar, self.view)
        yield from (self.filter_input, self.file_input, self.status_bar, self.footer_bar)

    def on_mount(self) -> None:
        """Show what is known, and begin to ask."""
        self.source.begin()
        self.show_again()

    def on_unmount(self) -> None:
        """Ask no more."""
        self.source.end()

    def on_resize(self) -> None:
        """Lay the lines out anew."""
        self.show_again()

    def show_again(self) -> None:
        """Show everything again, whatever has changed."""
        self._seen = -1
        self.call_after_refresh(self.flush)

    @property
    def states(self) -> ServerStates:
        """What the user has chosen."""
        return self.view.states

    @property
    def node(self) -> SafeText | None:
        """The node whose panels are shown; None before any has answered."""
        nodes = self.source.nodes
        return self.states.node if self.states.node in nodes else next(iter(nodes), None)

    @property
    def panels(self) -> tuple[ServerPanel, ...]:
        """The tabs: without that of the nodes where there is one server."""
        return PANELS if self.source.nodes_table is not None else PANELS[1:]

    @property
    def is_behind(self) -> bool:
        """Whether there is something newer than what is shown, or nothing yet."""
        return self.node is None or self._seen != self.source.revision

    def show_changes(self) -> None:
        """Show new samples, and how old they are."""
        if self._seen != self.source.revision:
            self._seen = self.source.revision
            self._show_panel()
        self._show_bars()
        self.flush_after(REST_S)

    def _show_panel(self) -> None:
        """Show the chosen panel, or what stands in its place."""
        source, node, table = self.source, self.node, self.source.nodes_table
        if not self.states.panel_id and node is not None:
            self.states.panel_id = OVERVIEW if table is None else NODES
        panel = self.view.panel
        if panel.id == NODES and table is not None:
            self.view.show(Content(tables=(table,)), None)
        elif node is None:
            failure = source.failure(None)
            self.view.show_lines(lambda width: screen_lines.waiting_lines(failure, width))
        else:
            first_at_s = source.first_at_s(node)
            span_s = None if first_at_s is None else max(0.0, self._clock() - first_at_s)
            content = content_of(panel, source.panels(node), source.denied(node), source.compared(node))
            self.view.show(content, span_s, is_over=source.file is not None)

    def _show_bars(self) -> None:
        """Show the title, the tabs, the node, how the asking goes, and the commands."""
        source, node, panels = self.source, self.node, self.panels
        asked_at_s = None if node is None else source.asked_at_s(node)
        age_s = None if asked_at_s is None else self._clock() - asked_at_s
        now_s, is_cluster = asyncio.get_running_loop().time(), len(panels) == len(PANELS)
        status = self.title_bar.server_status
        what = literal("server" if source.file is None else "server, from a file")
        self.title_bar.set_line(lambda width: over_title(self._label, None, what, width, status))
        chosen = panels.index(self.view.panel) if self.view.panel in panels else 0
        self.tab_bar.set_line(lambda width: screen_lines.panels_line(panels, chosen, width))
        self.node_bar.display = is_cluster and self.view.panel.id != NODES
        self.node_bar.set_line(lambda width: screen_lines.node_line(node, source.nodes, width))
        self._show_warning(None if node is None else source.warning(node))
        if (file := source.file) is not None:
            self.status_bar.set_line(lambda width: screen_lines.file_line(file, width))
        else:
            link, failure = source.link, source.failure(node)
            self.status_bar.set_line(lambda width: screen_lines.status_line(link, failure, age_s, now_s, width))
        self._show_commands()

    def _show_warning(self, warning: SafeText | None) -> None:
        make = None if warning is None else lambda width: screen_lines.warning_line(warning, width)
        if self.banner.show_warning(make):
            self.show_again()

    @on(ServerPanelView.Changed)
    def _show_commands(self) -> None:
        """Show in the footer the commands that apply, or what is typed and how it ends."""
        if self.filter_input.is_open:
            self.footer_bar.show_commands((), FILTER_HINT)
        elif self.file_input.is_open:
            self.footer_bar.show_commands((), FILE_HINT)
        else:
            self.footer_bar.show_commands(self.offered())

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen and its table."""
        return {Owner.SERVER: self, Owner.TABLE: self.view.table.body}

    @property
    def conditions(self) -> Conditions:
        """What holds at the moment, of what commands may need."""
        holding = {
            Condition.LIVE: self.source.file is None,
            Condition.CLUSTER: self.source.nodes_table is not None,
            Condition.HAS_ROWS: self.view.has_rows,
            Condition.SEVERAL_LISTS: len(self.view.tables) > 1,
        }
        return frozenset(condition for condition, holds in holding.items() if holds)

    # panels

    @property
    def place(self) -> ServerPlace:
        """The panel, its list and the node."""
        table = self.view.chosen
        return ServerPlace(self.view.panel.id, None if table is None else table.id, self.states.node)

    def show_place(self, place: ServerPlace) -> None:
        """Show a panel as it was."""
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

    def action_show_panel(self, panel_id: str) -> None:
        """Show a panel."""
        if panel_id != self.view.panel.id:
            self.leave_place()
            self._returns_to = None
            self.show_place(ServerPlace(panel_id))

    def action_next_panel(self, step: int = 1) -> None:
        """Show the panel so many places after this one."""
        panels = self.panels
        at = panels.index(self.view.panel) if self.view.panel in panels else 0
        self.action_show_panel(panels[(at + step) % len(panels)].id)

    @on(TabBar.Chosen, "#panels")
    def _tab_clicked(self, event: TabBar.Chosen) -> None:
        self.action_show_panel(self.panels[event.index].id)

    def action_next_list(self, step: int = 1) -> None:
        """Show the list so many places after this one."""
        self.view.action_next_list(step)

    # rows

    @on(TableBody.Opened)
    def action_open(self) -> None:
        """Go to what the row under the cursor is about, or show the whole row."""
        subject, table = self.view.subject, self.view.chosen
        if table is None or not self.view.has_rows:
            return
        if self.view.panel.id == NODES and isinstance(subject, str):
            self._enter(ServerPlace(OVERVIEW, None, SafeText(subject)))
        elif self.view.panel.id == OVERVIEW and isinstance(subject, str):
            panel_id = subject.partition("/")[0]
            self.states.table(panel_id, FIGURES).cursor_row = subject
            self._enter(ServerPlace(panel_id, FIGURES))
        elif isinstance(subject, bytes) and self.source.file is None:
            self.leave_place()
            self.dismiss(subject)
        else:
            self.action_whole_row()

    def _enter(self, place: ServerPlace) -> None:
        """Show what a row is about; Escape leads back."""
        self.leave_place()
        self._returns_to = self.place
        self.show_place(place)

    def action_whole_row(self) -> None:
        """Show everything that is known of the row under the cursor."""
        texts, table, figure = self.view.table.body.texts, self.view.table.rows.table, self.view.figure
        if figure is not None:
            self._show_figure(figure)
        elif texts:
            facts = [(SafeText(column.title), text) for column, text in zip(table.columns, texts, strict=True)]
            self.app.push_screen(RowScreen(SafeText(table.title), lambda width: screen_lines.row_lines(facts, width)))

    def _show_figure(self, figure: Figure) -> None:
        self.app.push_screen(
            RowScreen(SafeText("Figure"), lambda width: screen_lines.whole_figure_lines(figure, width))
        )

    @property
    def help_subject(self) -> HelpSubject | None:
        """The rule of the figure under the cursor, where it has one."""
        figure = self.view.figure
        return None if figure is None or not figure.rule else HelpSubject(RULES_PAGE, figure.rule)

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
        return row_copies(self.view.subject, self.view.table.body.texts) if self.view.has_rows else []

    # asking and writing

    def action_ask(self) -> None:
        """Ask now."""
        self.source.ask_now()
        self.flush_after(FLUSH_S)

    def action_write(self) -> None:
        """Type the name of a file for what the list shows."""
        if self.view.has_rows:
            self.file_input.open()
            self._show_commands()

    def action_filter(self) -> None:
        """Type a text that rows must have."""
        if self.view.tables:
            self.filter_input.open(self.view.table.rows.state.filter_text)
            self._show_commands()

    @on(FilterInput.Changed, "#filter")
    def _filter_changed(self, event: FilterInput.Changed) -> None:
        if self.filter_input.is_open:
            self.view.filter(event.value)

    @on(FilterInput.Submitted)
    def _input_submitted(self, event: FilterInput.Submitted) -> None:
        self.action_leave_filter()
        if event.input is self.file_input and event.value:
            writing = write_file(self, partial(self._write, event.value.strip()))
            self.run_worker(writing, exit_on_error=False, description="writing a file")

    def _write(self, name: str) -> SafeText:
        """Write the samples of the session, or else what the list shows; raises FileError."""
        if name.lower().endswith(SAMPLES_SUFFIX):
            return write_samples(self.source.sample_lines(), name)
        return write_table(self.view.table.rows.shown(), name)

    def action_leave_filter(self) -> None:
        """Move from what is typed to the rows."""
        self.filter_input.close()
        self.file_input.close()
        self.set_focus(self.view.table.body)
        self._show_commands()

    def action_back(self) -> None:
        """Go back one step: end what is typed or the filter, go back to all nodes, or leave."""
        if self.file_input.is_open:
            self.action_leave_filter()
        elif self.filter_input.is_open or (self.view.tables and self.view.table.rows.state.filter_text):
            self.action_leave_filter()
            self.view.filter("")
        elif self._returns_to is not None:
            place, self._returns_to = self._returns_to, None
            self.show_place(place)
        elif self.source.nodes_table is not None and self.view.panel.id != NODES:
            self.show_place(ServerPlace(NODES))
        elif self.source.file is None:
            self.dismiss(None)
