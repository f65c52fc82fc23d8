"""The Fleet screen: many servers in a table, their findings folded into one list, and sums by labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.message import Message

from rtui.analysis.formats.fleet import (
    FleetServer,
    findings_of_fleet,
    fleet_table,
    groups_table,
    state_line,
)
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.registry.rules import RULES
from rtui.server.health.fleet import Fleet
from rtui.server.wire.target import Target
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.command import (
    APP_COMMANDS,
    RULES_PAGE,
    Condition,
    Conditions,
    Group,
    HelpSubject,
    Owner,
    ScreenCommand,
    bindings,
)
from rtui.tui.kit.command_screen import FLUSH_S, REST_S
from rtui.tui.kit.layout import LinePart, display_text
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.panel_screen import PanelScreen, TablesStates, TablesView, nothing_left_lines, notice_lines
from rtui.tui.kit.status_lines import bar_line, over_title
from rtui.tui.kit.styled_text import Line, Role, Span, literal
from rtui.tui.kit.table import TableBody
from rtui.tui.kit.table_rows import TableRows
from rtui.tui.server_panels import SERVER_COMMANDS, ServerPanel, panels_line, row_card

SERVERS: Final = "servers"
FINDINGS: Final = "findings"
GROUPS: Final = "groups"

PANELS: Final = (
    ServerPanel(
        SERVERS, literal("Servers"), literal("Servers"), "1", "Show the servers, those in trouble first.",
        "fleet instances nodes",
    ),
    ServerPanel(
        FINDINGS, literal("Findings"), literal("Findings"), "2",
        "Show the findings of all servers, the same trouble on many as one row.", "problems rules",
    ),
    ServerPanel(
        GROUPS, literal("Labels"), literal("Labels"), "3", "Show sums of servers by their labels.", "groups tags"
    ),
)  # fmt: skip

_fleet = partial(ScreenCommand, group=Group.SERVER, owner=Owner.FLEET)

_OWN: Final = {
    "open": "Open the server of the row, or the servers of a finding or label.",
    "write": "Export the list to a .csv, .md or .json file.",
    "ask": "Ask all servers now, also unreachable ones; each is polled every few seconds anyway.",
    "back": "Go back one step: end the filter, or show all servers.",
}
"""What commands of the Server screen do here."""

FLEET_COMMANDS: Final = (
    *(
        _fleet(panel.id, (panel.key,), panel.short, panel.help, call=f"show_panel('{panel.id}')", words=panel.words)
        for panel in PANELS
    ),
    *(
        replace(one, owner=Owner.FLEET, help=_OWN.get(one.id, one.help)) if one.owner is Owner.SERVER else one
        for one in SERVER_COMMANDS
        if not one.call.startswith("show_panel")
    ),
)


@dataclass(slots=True)
class FleetStates(TablesStates):
    """The user's choices on the screen."""

    among: frozenset[SafeText] = frozenset()
    """The addresses of the servers that are shown, such as those of a finding; empty for all."""
    what: SafeText = SafeText("")  # noqa: RUF009 - a value that does not change
    """What these have in common, such as `no maxmemory`."""


class FleetView(TablesView):
    """Shows one list of a panel."""

    def __init__(self, states: FleetStates) -> None:
        self._note = LinePanel(id="server-notes")
        super().__init__(self._note)
        self.states: FleetStates = states

    def compose(self) -> ComposeResult:
        yield from (self.titles_bar, self.table, self.in_place, self._note)

    @property
    def panel_id(self) -> str:
        return self.states.panel_id or SERVERS

    def show(self, tables: Sequence[Table]) -> None:
        if not self.show_tables(tables):
            text = literal('A label stands behind a target in a file, or in profiles.toml: labels.team = "shop".')
            self.show_lines(lambda width: notice_lines(literal("No server has a label"), Role.STRONG, width, text))

    @property
    def _scope(self) -> SafeText:
        what = self.states.what
        return SafeText(f" among: {what}") if what and self.panel_id == SERVERS else SafeText("")

    def show_around(self) -> None:
        rows, scope = self.table.rows, self._scope
        titles = [SafeText(f"{display_text(one.title)} {len(one.rows):,}{scope}") for one in self.tables]
        self.show_titles(titles, literal(""), lambda width: self._nothing_lines(rows, width))

    def _nothing_lines(self, rows: TableRows, width: int) -> list[Line]:
        if rows.state.filter_text:
            return nothing_left_lines(rows, literal(""), width)
        return notice_lines(literal("No problems found"), Role.GOOD, width)


class FleetScreen(PanelScreen[None]):
    """Shows many servers; Enter opens one of them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(FLEET_COMMANDS, Owner.FLEET)
    SCREEN_COMMANDS = (*FLEET_COMMANDS, *APP_COMMANDS)
    view: FleetView

    @dataclass
    class Chosen(Message):
        """The user wants to open a server."""

        target: Target
        wants_health: bool
        """Whether its health is to be shown, not its keys."""

    def __init__(self, fleet: Fleet, states: FleetStates) -> None:
        super().__init__(FleetView(states), Bar(id="node"), remedy="fleet.ask")
        self.fleet = fleet
        self._servers: Sequence[FleetServer] = ()

    def on_mount(self) -> None:
        self.show_again()

    @property
    def states(self) -> FleetStates:
        return self.view.states

    @property
    def is_behind(self) -> bool:
        return self._seen != self.fleet.revision

    def show_changes(self) -> None:
        if self.is_behind:
            self._seen = self.fleet.revision
            self._show_panel()
        self._show_bars()
        self.flush_after(REST_S)

    def _show_panel(self) -> None:
        self._servers = servers = self.fleet.servers
        if self.view.panel_id == FINDINGS:
            self.view.show([findings_of_fleet(servers)])
        elif self.view.panel_id == GROUPS:
            names = dict.fromkeys(name for one in servers for name, _ in one.labels)
            self.view.show([replace(groups_table(servers, name), id=name) for name in names])
        else:
            among = self.states.among
            self.view.show([fleet_table([one for one in servers if not among or one.address in among])])

    def _show_bars(self) -> None:
        servers = self._servers
        self.title_bar.set_line(lambda width: over_title(literal("fleet"), None, literal("servers"), width, None))
        chosen = next(at for at, panel in enumerate(PANELS) if panel.id == self.view.panel_id)
        ids = [panel.id for panel in PANELS]
        self.show_tabs(ids, self.view.panel_id, lambda width: panels_line(PANELS, chosen, width))
        self.bar_below_tabs.display = False
        states, every_s = state_line(servers), self.fleet.every_s
        every = LinePart(0, (Span(SafeText(f"each asked every {round(every_s, 1):g} s"), Role.MUTED),))
        self.status_bar.set_line(lambda width: bar_line((Span(states, Role.TEXT),), [every], width))
        self.show_commands()

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        return {Owner.FLEET: self, Owner.TABLE: self.view.table.body}

    @property
    def conditions(self) -> Conditions:
        holding = {
            Condition.LIVE: True,
            Condition.HAS_ROWS: self.view.has_rows,
            Condition.SEVERAL_LISTS: len(self.view.lists) > 1,
        }
        return frozenset(condition for condition, holds in holding.items() if holds)

    def action_show_panel(self, panel_id: str) -> None:
        self.action_leave_filter()
        self.states.panel_id = panel_id
        if panel_id == SERVERS:
            self.states.among, self.states.what = frozenset(), SafeText("")
        self._show_panel()
        self._show_bars()

    # rows

    @on(TableBody.Opened)
    def _row_opened(self) -> None:
        self.action_open()

    def action_open(self, *, wants_health: bool = False) -> None:
        """Open the server of the row, or show the servers of a finding or of a label."""
        subject = self.view.subject
        if not self.view.has_rows or not isinstance(subject, str):
            return
        if self.view.panel_id == FINDINGS and subject in RULES:
            found = {
                one.address
                for one in self._servers
                if one.found is not None and any(finding.rule == subject for finding in one.found.findings)
            }
            self._show_among(found, SafeText(subject))
        elif self.view.panel_id == GROUPS:
            name = self.view.list_id
            among = {one.address for one in self._servers if (one.label(name) or "(none)") == subject}
            self._show_among(among, SafeText(f"{name}={subject}"))
        elif (target := self.fleet.target_of(SafeText(subject))) is not None:
            self.post_message(self.Chosen(target, wants_health=wants_health))

    def _show_among(self, addresses: set[SafeText], what: SafeText) -> None:
        self.states.panel_id, self.states.among, self.states.what = SERVERS, frozenset(addresses), what
        self._show_panel()
        self._show_bars()

    def action_whole_row(self) -> None:
        if self.view.has_rows:
            self.app.push_screen(row_card(self.view.table))

    @property
    def help_subject(self) -> HelpSubject | None:
        subject = self.view.subject
        return HelpSubject(RULES_PAGE, subject) if isinstance(subject, str) and subject in RULES else None

    def action_ask(self) -> None:
        self.fleet.ask_now()
        self.flush_after(FLUSH_S)

    def go_back(self) -> None:
        if self.view.panel_id != SERVERS or self.states.among:
            self.action_show_panel(SERVERS)
