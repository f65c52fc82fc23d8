"""How the user goes from screen to screen: by commands, by name, from a query to keys and on to the tree, and back.

Also lists over all screens: their commands, for help, keys and settings, and their style sheets.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from textual.app import App
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.widget import Widget
from textual.widgets import Input, OptionList, SelectionList

from rtui.analysis import humanize as fmt
from rtui.analysis.query.parsing import read
from rtui.keyspace.text.display import SafeText
from rtui.registry.registry import Registry
from rtui.server.browsing.session import BrowsingSession
from rtui.server.user.known_servers import Profiles, RecentServers
from rtui.server.wire.errors import TargetError
from rtui.server.wire.target import Target
from rtui.tui.analyse.panel import ReportStates
from rtui.tui.analyse.report_panel import ANALYSE_COMMANDS, COMPARE_COMMAND, PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse import detail_pane, key_tree, value_pane, value_view
from rtui.tui.browse.commands import BROWSE_COMMANDS
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.connect import CONNECT_COMMANDS, known_places
from rtui.tui.find import FindScreen, new_rows
from rtui.tui.fleet import FLEET_COMMANDS
from rtui.tui.found_rows import USUAL, FoundRows
from rtui.tui.found_view import FIND_COMMANDS, FoundBody
from rtui.tui.goto import COMMAND_KINDS, NARROWING, Destination, GotoKind, GotoScreen, Loaded
from rtui.tui.help import HelpPage, HelpScreen, help_pages
from rtui.tui.kit import bars, line_view, panel_screen, table
from rtui.tui.kit.command import APP_COMMANDS, Group, ScreenCommand
from rtui.tui.kit.command_screen import (
    CommandScreen,
    FoundPlace,
    History,
    KeysWanted,
    LogPlace,
    PanelPlace,
    Place,
    ServerPlace,
    TreePlace,
)
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.query_hints import vocabulary_of
from rtui.tui.kit.settings import SettingsFile, saved_queries
from rtui.tui.kit.styled_text import literal
from rtui.tui.kit.terminal import Toast
from rtui.tui.kit.themes import CSS_FILE
from rtui.tui.log import LOG_COMMANDS, LogScreen, LogView
from rtui.tui.server import ServerScreen, ServerStates
from rtui.tui.server_panels import FIGURES, METRICS, NODES, SERVER_COMMANDS
from rtui.tui.server_panels import PANELS as SERVER_PANELS
from rtui.tui.sql import SQL_COMMANDS, SqlScreen, SqlState

FOUND: Final = "app.found"
"""The action that leads from a key in the tree back to the list of found keys that it was in."""


class Navigation:
    """Shows screens over the tree of one session, or over a report or samples from a file; knows where the user was."""

    def __init__(
        self,
        app: App[Any],
        session: BrowsingSession | None,
        settings: SettingsFile,
        history: History,
        *,
        registry: Registry | None,
        recent: RecentServers | None,
        connect_to: Callable[[Target], None],
        offers_servers: bool,
    ) -> None:
        """`connect_to` leaves the session for another server."""
        self.session = session
        self.report_states: ReportStates | None = None
        """The user's choices in the panels of the analysis; None before it was shown."""
        self._app, self._settings, self._history = app, settings, history
        self._registry, self._recent = registry, recent
        self._connect_to, self._offers_servers = connect_to, offers_servers
        self._server_states: ServerStates | None = None
        self._found: FoundRows | None = None
        """The list of keys that was found last."""
        self._is_found_over_analysis = False
        self._sql = SqlState()

    @property
    def _browse_screen(self) -> BrowseScreen | None:
        return next((screen for screen in self._app.screen_stack if isinstance(screen, BrowseScreen)), None)

    async def _uncover_tree(self) -> BrowseScreen | None:
        """Close the screens over the tree, and return the tree's screen; None if there is none."""
        browse = self._browse_screen
        while browse is not None and self._app.screen is not browse:
            await self._app.pop_screen()
        return browse

    async def _go_to_tree(self) -> None:
        self._remember_place()
        await self._uncover_tree()

    # the analysis, the command log, the server, the help

    def analyse(self) -> None:
        if isinstance(self._app.screen, BrowseScreen):
            self._remember_place()
            self._show_analysis(self._app.screen)

    def _show_analysis(self, browse: BrowseScreen, place: PanelPlace | None = None) -> None:
        screen = AnalyseScreen(
            browse.session.analysis,
            states=self.report_states,
            settings=self._settings,
            registry=self._registry,
            clock=browse.session.clock,
        )
        self.report_states = screen.view.states
        if place is not None:
            screen.view.states.put(place.panel_id, place.state)

        self._app.push_screen(screen, partial(self._go_to_key, "app.analyse"))

    async def _go_to_key(self, leads_back: str, key: bytes | None) -> None:
        if key is not None and (browse := await self._uncover_tree()) is not None:
            browse.places.go_to_key(key, leads_back)

    def log(self) -> None:
        """Show every command that was sent, or leave that; without a connection there are none."""
        if isinstance(self._app.screen, LogScreen):
            self._app.screen.dismiss(None)
        elif self.session is not None and isinstance(self._app.screen, CommandScreen):
            self._remember_place()
            self._show_log(self.session)
        elif self.session is None:
            self._app.notify("Not connected, so nothing has been sent.", markup=False, timeout=3)

    def _show_log(self, session: BrowsingSession) -> None:
        self._app.push_screen(LogScreen(session.log, session.target))

    def sql(self) -> None:
        """Ask the rows of the analysis by SQL, or leave that."""
        if isinstance(self._app.screen, SqlScreen):
            self._app.screen.dismiss(None)
        elif self.session is not None and isinstance(self._app.screen, CommandScreen):
            self._remember_place()
            screen = SqlScreen(self.session, self._sql, registry=self._registry)
            self._app.push_screen(screen, partial(self._go_to_key, "app.sql"))

    def server(self) -> None:
        """Show how the server is, or leave that."""
        if isinstance(self._app.screen, ServerScreen):
            if self._app.screen.source.file is None:
                self._app.screen.dismiss(None)
        elif self.session is not None and self.session.target.dump is not None:
            why = "A dump has keys, but no server whose health could be judged."
            self._app.notify(why, markup=False, timeout=3)
        elif self.session is not None and isinstance(self._app.screen, CommandScreen):
            self._remember_place()
            self._show_server(self.session)

    def _show_server(self, session: BrowsingSession, place: ServerPlace | None = None) -> None:
        screen = ServerScreen(session.health, session.target.label, states=self._server_states, clock=session.clock)
        self._server_states = screen.states
        if place is not None:
            screen.put_place(place)
        self._app.push_screen(screen, partial(self._go_to_key, "app.server"))

    def help(self) -> None:
        """Show every command, those of the focused widget first."""
        if not isinstance(self._app.screen, HelpScreen):
            screen = self._app.screen if isinstance(self._app.screen, CommandScreen) else None
            owners = () if screen is None else screen.focused_owners
            subject = None if screen is None else screen.help_subject
            self._app.push_screen(HelpScreen(all_commands(), owners, help_topics(), subject))

    # found keys

    def show_keys(self, session: BrowsingSession, wanted: KeysWanted) -> None:
        """Show the keys that a query finds, over the tree or the analysis."""
        self._remember_place()
        columns = USUAL if self._found is None else self._found.columns
        rows = new_rows(session, wanted.query, columns, wanted.sort, wanted.note)
        screen = self._app.screen
        if isinstance(screen, FindScreen):
            screen.show_rows(rows)
            return
        self._close_search()
        self._is_found_over_analysis = isinstance(screen, AnalyseScreen)
        self._show_found(session, rows)

    def _show_found(self, session: BrowsingSession, rows: FoundRows) -> None:
        self._keep_found(rows)
        words = partial(vocabulary_of, session)
        settings, keep = self._settings, self._keep_found
        screen = FindScreen(session, rows, words, settings=settings, keep=keep)

        def left(key: bytes | None) -> None:
            if key is None:
                self._close_search()
                self._history.leave(FoundPlace())
                return
            if isinstance(self._app.screen, AnalyseScreen):
                self._app.screen.dismiss(None)
            if (browse := self._browse_screen) is not None:
                self._app.call_later(browse.places.go_to_key, key, FOUND)

        self._app.push_screen(screen, left)

    def _keep_found(self, rows: FoundRows) -> None:
        self._found = rows

    def _close_search(self) -> None:
        if self._found is not None:
            work = self._found.search.close()
            self._app.run_worker(work, group="close", exit_on_error=False, description="search")

    async def found(self) -> None:
        """Show the latest list of found keys again, as it was left, over the analysis if it came from there."""
        if self._found is None or self.session is None or isinstance(self._app.screen, FindScreen):
            return
        if self._is_found_over_analysis and not isinstance(self._app.screen, AnalyseScreen):
            await self._app.run_action("app.analyse")
        self._show_found(self.session, self._found)

    # by name

    def goto(self, typed: str = "", *, only_commands: bool = False) -> None:
        """Go to anything by name, the line beginning with a text; or only to commands and panels."""
        screen = self._app.screen
        if not isinstance(screen, CommandScreen):
            return
        entries = [*self._destinations(screen)]
        if only_commands:
            among = COMMAND_KINDS | {GotoKind.PANEL, GotoKind.SCREEN}
            goto = GotoScreen([one for one in entries if one.kind in among], None, title=literal("Commands"))
        else:
            goto = GotoScreen(entries, self._loaded(), typed)

        async def chosen(entry: Destination | None) -> None:
            if entry is not None and entry.go is not None:
                done = entry.go()
                if inspect.isawaitable(done):
                    await done

        self._app.push_screen(goto, chosen)
        if self._offers_servers and not only_commands:
            work = self._offer_servers(goto)
            self._app.run_worker(work, group="goto", exclusive=True, exit_on_error=False, description="servers")

    def _loaded(self) -> Loaded | None:
        browse = self._browse_screen
        if browse is None or self.session is None:
            return None

        async def look_up(name: bytes) -> None:
            await self._go_to_tree()
            browse.search.go_to(name)

        def go(name: bytes, is_namespace: bool) -> Awaitable[None]:
            return self.go_to(TreePlace(name, is_namespace))

        return Loaded(self.session.store, go, look_up)

    def _destinations(self, screen: CommandScreen[Any]) -> Iterator[Destination]:
        """Yield everything that can be gone to from a screen, but names and servers."""
        session, app = self.session, self._app
        if session is not None or isinstance(screen, AnalyseScreen):
            for panel in PANELS:
                note, go = SafeText(f"{panel.key}  {panel.help}"), partial(self.go_to, PanelPlace(panel.id))
                yield Destination(GotoKind.PANEL, panel.title, panel.title.encode(), note, go, words=panel.words)
        if session is not None:
            tree = literal("Tree")
            yield Destination(GotoKind.SCREEN, tree, tree.encode(), go=self._go_to_tree)
            for shown in SERVER_PANELS:
                if shown.id != NODES or session.status.server.cluster_enabled:
                    title, go = SafeText(f"{shown.title} of the server"), partial(self.go_to, ServerPlace(shown.id))
                    note = SafeText(f"! {shown.key}  {shown.help}")
                    yield Destination(GotoKind.PANEL, title, title.encode(), note, go, words=shown.words)
            for shown, metric in METRICS:
                go = partial(self.go_to, ServerPlace(shown.id, FIGURES, row=f"{shown.id}/{metric.id}"))
                matched = f"{metric.title} {metric.field}".encode()
                note = SafeText(f"{metric.field}  {shown.title} of the server")
                yield Destination(GotoKind.METRIC, SafeText(metric.title), matched, note, go)
            yield from self._databases(session)
            for name, line in saved_queries(self._settings.settings, session.target).items():
                find = partial(self.show_keys, session, KeysWanted(read(line).query))
                yield Destination(
                    GotoKind.QUERY, display_text(f"@{name}"), f"@{name}".encode(), display_text(line), find
                )
        if session is not None and not isinstance(screen, AnalyseScreen):
            yield self._command(COMPARE_COMMAND, self._compare)
        for command in sorted(screen.offered(), key=lambda one: one.footer or bars.WAYS):
            if command.id not in ("goto", "command_palette") and not command.call.startswith("show_panel"):

                async def run(command: ScreenCommand = command) -> None:
                    if app.screen is screen:
                        await screen.run_action(command.action)

                yield self._command(command, run)
        for theme in sorted(app.available_themes):
            note = literal("in use") if theme == app.theme else literal("")
            yield Destination(
                GotoKind.THEME, display_text(theme), theme.encode(), note, partial(setattr, app, "theme", theme)
            )

    @staticmethod
    def _command(command: ScreenCommand, run: Callable[[], object]) -> Destination:
        text, note = SafeText(command.title), SafeText(f"{command.key_text}  {command.help}".lstrip())
        kind = GotoKind.MOVE if command.group is Group.MOVE else GotoKind.COMMAND
        kind = GotoKind.TASK if command.words else kind
        return Destination(kind, text, text.encode(), note, run, words=command.words)

    async def _compare(self) -> None:
        await self._go_to_tree()
        self.analyse()
        self._app.call_later(self._app.run_action, COMPARE_COMMAND.action)

    def _databases(self, session: BrowsingSession) -> Iterator[Destination]:
        target, sizes = session.target, session.status.server.databases or {}
        for number in sorted({0, target.db, *sizes}):
            size = sizes.get(number, 0)
            known = literal("") if session.status.server.databases is None else literal("empty")
            note = fmt.counted(size, "key") if size else known
            go = self._go_to_tree if number == target.db else partial(self._connect_to, replace(target, db=number))
            yield Destination(GotoKind.DATABASE, SafeText(f"db{number}"), b"%d" % number, note, go)

    async def _offer_servers(self, goto: GotoScreen) -> None:
        """Offer profiles and recent servers, whose files are read in a thread."""
        places = await asyncio.to_thread(lambda: known_places(Profiles(), self._recent or RecentServers()))
        if goto.is_attached:
            kinds, found = {True: GotoKind.PROFILE, False: GotoKind.SERVER}, []
            for one in places:
                go = partial(self._choose, one.target)
                found.append(Destination(kinds[one.is_profile], one.name, one.name.encode(), one.about, go))
            goto.add(found)

    def _choose(self, target: Callable[[], Target]) -> None:
        try:
            self._connect_to(target())
        except TargetError as error:
            self._app.notify(error.happened, title=error.title, severity="error", markup=False)

    # back and forward

    def _remember_place(self) -> None:
        if self._place is not None:
            self._history.leave(self._place)

    @property
    def _place(self) -> Place | None:
        return self._app.screen.place if isinstance(self._app.screen, CommandScreen) else None

    async def travel(self, step: Callable[[Place | None], Place | None], nothing: str) -> None:
        """Go to the place that a step through the history leads to; `nothing` says that there is none."""
        if not isinstance(self._app.screen, CommandScreen):
            return
        place = step(self._place)
        if place is None:
            self._app.notify(nothing, markup=False, timeout=2)
        else:
            await self._show_place(place)

    async def go_to(self, place: Place) -> None:
        self._remember_place()
        await self._show_place(place)

    async def _show_place(self, place: Place) -> None:
        screen = self._app.screen
        if isinstance(place, PanelPlace):
            if isinstance(screen, LogScreen):
                await self._app.pop_screen()
            if isinstance(self._app.screen, AnalyseScreen):
                self._app.screen.show_place(place)
            elif (browse := await self._uncover_tree()) is not None:
                self._show_analysis(browse, place)
        elif isinstance(place, FoundPlace):
            await self._uncover_tree()
            await self.found()
        elif isinstance(place, ServerPlace):
            if isinstance(screen, ServerScreen):
                screen.show_place(place)
            elif self.session is not None:
                await self._uncover_tree()
                self._show_server(self.session, place)
        elif isinstance(place, LogPlace):
            if self.session is not None and not isinstance(screen, LogScreen):
                self._show_log(self.session)
        elif (browse := await self._uncover_tree()) is not None:
            browse.show_place(place)


def help_topics() -> tuple[HelpPage, ...]:
    places = [(SafeText(f"{word} …"), text) for word, (_, text) in NARROWING.items()]
    panels = [(SafeText(f"{panel.key} {panel.short}"), SafeText(panel.help)) for panel in SERVER_PANELS]
    return help_pages(places, panels)


def all_css() -> str:
    """Return the style sheets of the application and of every widget it uses, one after the other."""
    sources: tuple[type, ...] = (
        App, Screen, ModalScreen, Widget, ScrollView, Vertical, Horizontal, Input, OptionList, SelectionList, Toast,
        ScrollBar, line_view.LinePanel, bars.Bar, key_tree.KeyTree, line_view.RowsView,
        detail_pane.DetailPane, value_pane.ValuePane, value_view.ValuePrompt, value_view.ValueView,
        line_view.ScrollingPanel, bars.TabBar, panel_screen.PanelView, table.TableBody, table.ReportTable, LogView,
        FoundBody,
    )  # fmt: skip
    return "\n".join([*(str(getattr(source, "DEFAULT_CSS", "")) for source in sources), CSS_FILE.read_text("utf-8")])


def command_sets() -> tuple[tuple[ScreenCommand, ...], ...]:
    """Return the commands of each screen, in the order of the help screen, with those of the application."""
    sets = (
        BROWSE_COMMANDS,
        ANALYSE_COMMANDS,
        FIND_COMMANDS,
        SQL_COMMANDS,
        LOG_COMMANDS,
        SERVER_COMMANDS,
        FLEET_COMMANDS,
        CONNECT_COMMANDS,
    )
    return tuple((*commands, *APP_COMMANDS) for commands in sets)


def all_commands() -> tuple[ScreenCommand, ...]:
    own = {one.action: one for commands in reversed(command_sets()) for one in reversed(commands)}
    shared = {command.action for command in APP_COMMANDS}
    return (*(one for one in reversed(own.values()) if one.action not in shared), *APP_COMMANDS)
