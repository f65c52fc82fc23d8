"""How the application goes from one screen to another: by commands, by name, and back to where the user has been."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual.screen import Screen

from rtui.analysis import humanize as fmt
from rtui.keyspace.text.display import SafeText
from rtui.server.wire.target import Target
from rtui.tui.goto.screen import Entry, GotoScreen, Kind, Loaded
from rtui.tui.kit.command import ScreenCommand
from rtui.tui.kit.command_screen import CommandScreen, KeysWanted
from rtui.tui.kit.history import FoundPlace, History, Leaving, LogPlace, PanelPlace, Place, ServerPlace, TreePlace
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.settings import saved_queries
from rtui.tui.kit.styled_text import literal
from rtui.tui.terminal_app import TerminalApp

if TYPE_CHECKING:
    from rtui.analysis.report.document import ServerReport
    from rtui.server.browsing.session import BrowsingSession
    from rtui.server.browsing.status import BrowsingStatus
    from rtui.server.user.known_servers import RecentServers
    from rtui.tui.analyse.panel import ReportStates
    from rtui.tui.browse.screen import BrowseScreen
    from rtui.tui.finding import Finding
    from rtui.tui.server.screen import ServerStates

NOTHING_BEFORE: Final = "There is no place before this one."
NOTHING_AFTER: Final = "There is no place after this one."


class Navigation(TerminalApp):
    """The part of the application that shows screens over the tree, and knows where the user has been."""

    recent: RecentServers | None
    _session: BrowsingSession | None
    _label: SafeText | None
    _panel_states: ReportStates | None
    _server_states: ServerStates | None
    history: History
    _finding: Finding | None = None
    """The list of keys that was shown last."""
    _wanted_keys: KeysWanted | None = None
    """A query that waits for a server to be chosen."""

    can_connect: ClassVar[bool] = True
    """Whether servers can be browsed."""

    @property
    def server_status(self) -> BrowsingStatus | None:
        """How the server is that is browsed; None while there is none."""
        return None if self._session is None else self._session.status

    def connect_to(self, target: Target) -> None:
        """Leave the server that is browsed and connect to another one."""
        raise NotImplementedError

    @property
    def _browse_screen(self) -> BrowseScreen | None:
        """The screen of the tree, whatever lies over it; None before there is one."""
        from rtui.tui.browse.screen import BrowseScreen  # noqa: PLC0415 - a slow connection does not wait for it

        return next((screen for screen in self.screen_stack if isinstance(screen, BrowseScreen)), None)

    def action_analyse(self) -> None:
        """Show the analysis over the tree, which then goes to the key that is chosen in it."""
        from rtui.tui.browse.screen import BrowseScreen  # noqa: PLC0415 - there by now

        if isinstance(self.screen, BrowseScreen):
            self._remember_place()
            self._show_analysis(self.screen)

    def _show_analysis(self, browse: BrowseScreen, place: PanelPlace | None = None) -> None:
        from rtui.tui.analyse.screen import AnalyseScreen  # noqa: PLC0415 - when it is wanted

        screen = AnalyseScreen(
            browse.session.analysis,
            states=self._panel_states,
            label=self._label,
            settings=self.settings,
            registry=self.options.registry,
            clock=browse.session.clock,
        )
        self._panel_states = screen.view.states
        if place is not None:
            screen.view.states.put(place.panel_id, place.state)
        self.push_screen(screen, browse.return_from_analysis)

    def action_log(self) -> None:
        """Show every command that was sent, or leave that; where no server is asked there are none."""
        from rtui.tui.log.screen import LogScreen  # noqa: PLC0415 - when it is wanted

        if isinstance(self.screen, LogScreen):
            self.screen.dismiss(None)
        elif self._session is not None and isinstance(self.screen, CommandScreen):
            self._remember_place()
            self._show_log(self._session)
        elif self._session is None:
            self.notify("No server is connected, so nothing has been sent.", markup=False, timeout=3)

    def _show_log(self, session: BrowsingSession) -> None:
        from rtui.tui.log.screen import LogScreen  # noqa: PLC0415 - when it is wanted

        self.push_screen(LogScreen(session.log, session.target, label=self._label))

    def action_server(self) -> None:
        """Show how the server is, or leave that."""
        from rtui.tui.server.screen import ServerScreen  # noqa: PLC0415 - when it is wanted

        if isinstance(self.screen, ServerScreen):
            if self.screen.source.file is None:
                self.screen.dismiss(None)
        elif self._session is not None and isinstance(self.screen, CommandScreen):
            self._remember_place()
            self._show_server(self._session)

    def _show_server(self, session: BrowsingSession, place: ServerPlace | None = None) -> None:
        from rtui.tui.server.screen import ServerScreen  # noqa: PLC0415 - when it is wanted

        label = session.target.label if self._label is None else self._label
        screen = ServerScreen(session.health, label, states=self._server_states, clock=session.clock)
        self._server_states = screen.states
        if place is not None:
            screen.put_place(place)

        async def left(key: bytes | None) -> None:
            if key is not None and (browse := await self._uncover_tree()) is not None:
                browse.go_to_key(key, "app.server")

        self.push_screen(screen, left)

    # found keys

    @on(KeysWanted)
    def _show_keys(self, message: KeysWanted) -> None:
        """Show the keys that a query finds; where no server is asked, offer to connect to one."""
        if self._session is None:
            text = SafeText(f"Keys are asked of a server. The query, once one is connected: {message.query}")
            self.notify(text, title="Choose a server", markup=False, timeout=8)
            self._wanted_keys = message
            self.run_worker(self.run_action("app.servers"), group="servers", exit_on_error=False)
            return
        self._remember_place()
        self._found_keys(self._session).show(message.query, message.note, message.sort)

    @property
    def server_of_report(self) -> ServerReport | None:
        """The server that the report from a file is of, while there is no other one."""
        from rtui.tui.analyse.screen import AnalyseScreen  # noqa: PLC0415 - when it is wanted

        screen = self.screen
        return screen.source.status.server if self._session is None and isinstance(screen, AnalyseScreen) else None

    def show_wanted_keys(self) -> None:
        """Show the keys that were wanted before there was a server."""
        wanted, self._wanted_keys = self._wanted_keys, None
        if wanted is not None:
            self._show_keys(wanted)

    def _found_keys(self, session: BrowsingSession) -> Finding:
        from rtui.tui.finding import Finding  # noqa: PLC0415 - when it is wanted

        if self._finding is None or self._finding.session is not session:
            self._finding = Finding(self, session, self._label, self.settings)
        return self._finding

    async def action_found(self) -> None:
        """Go back to the keys that were found last."""
        if self._session is not None:
            await self._found_keys(self._session).back()

    # by name

    def action_goto(self) -> None:
        """Go to anything by name."""
        screen = self.screen
        if not isinstance(screen, CommandScreen):
            return
        goto = GotoScreen([*self._destinations(screen)], self._loaded())

        async def chosen(entry: Entry | None) -> None:
            if entry is not None and entry.go is not None:
                done = entry.go()
                if inspect.isawaitable(done):
                    await done

        self.push_screen(goto, chosen)
        if self.can_connect:
            work = self._offer_servers(goto)
            self.run_worker(work, group="goto", exclusive=True, exit_on_error=False, description="servers")

    def _loaded(self) -> Loaded | None:
        """Return the names of the keyspace that is browsed."""
        browse = self._browse_screen
        if browse is None or self._session is None:
            return None

        async def look_up(name: bytes) -> None:
            await self._go_to_tree()
            browse.search.go_to(name)

        def go(name: bytes, is_namespace: bool) -> Awaitable[None]:
            return self.go_to(TreePlace(name, is_namespace))

        return Loaded(self._session.store, go, look_up)

    def _destinations(self, screen: CommandScreen[Any]) -> Iterator[Entry]:
        """Yield everything that can be gone to from a screen, but names and servers."""
        from rtui.tui.analyse.report_panel import PANELS  # noqa: PLC0415 - when it is wanted
        from rtui.tui.analyse.screen import AnalyseScreen  # noqa: PLC0415

        if self._session is not None or isinstance(screen, AnalyseScreen):
            for panel in PANELS:
                place = PanelPlace(panel.id)
                note, go = SafeText(f"{panel.key}  {panel.help}"), partial(self.go_to, place)
                yield Entry(Kind.PANEL, panel.title, panel.title.encode(), note, go)
        if self._session is not None:
            tree, log, server = literal("Tree"), literal("Command log"), literal("Server health")
            yield Entry(Kind.SCREEN, tree, tree.encode(), go=self._go_to_tree)
            yield Entry(Kind.SCREEN, log, log.encode(), go=partial(self.go_to, LogPlace()))
            about = literal("!  what is wrong with the server, and the most important figures")
            yield Entry(Kind.PANEL, server, server.encode(), about, partial(self.go_to, ServerPlace("overview")))
            yield from self._server_panels()
            yield from self._databases(self._session)
            yield from self._saved_queries(self._session)
        for command in screen.offered():
            if command.id not in ("goto", "log", "server") and not command.call.startswith("show_panel"):
                go = partial(self._run_command, screen, command)
                text, keys = SafeText(command.title), SafeText(command.key_text)
                note = SafeText(f"{keys}  {command.help}") if keys else SafeText(command.help)
                yield Entry(Kind.COMMAND, text, text.encode(), note, go)
        for theme in sorted(self.available_themes):
            note = literal("in use") if theme == self.theme else literal("")
            yield Entry(Kind.THEME, display_text(theme), theme.encode(), note, partial(setattr, self, "theme", theme))

    def _server_panels(self) -> Iterator[Entry]:
        """Yield the panels of the server's health."""
        from rtui.tui.server.panels import NODES, OVERVIEW, PANELS  # noqa: PLC0415 - when it is wanted

        for panel in PANELS:
            if panel.id not in (NODES, OVERVIEW):
                title, go = SafeText(f"{panel.title} of the server"), partial(self.go_to, ServerPlace(panel.id))
                yield Entry(Kind.PANEL, title, title.encode(), SafeText(f"! {panel.key}  {panel.help}"), go)

    def _saved_queries(self, session: BrowsingSession) -> Iterator[Entry]:
        """Yield the queries that were saved for the server."""
        from rtui.analysis.query.parsing import read  # noqa: PLC0415 - when it is wanted

        for name, line in saved_queries(self.settings.settings, session.target).items():
            go = partial(self._show_keys, KeysWanted(read(line).query))
            yield Entry(Kind.QUERY, display_text(f"@{name}"), f"@{name}".encode(), display_text(line), go)

    def _databases(self, session: BrowsingSession) -> Iterator[Entry]:
        """Yield the databases that hold keys, and the one that is browsed."""
        target, sizes = session.target, session.status.server.databases or {}
        for number in sorted({0, target.db, *sizes}):
            size = sizes.get(number, 0)
            known = literal("") if session.status.server.databases is None else literal("empty")
            note = fmt.counted(size, "key") if size else known
            go = self._go_to_tree if number == target.db else partial(self.connect_to, replace(target, db=number))
            yield Entry(Kind.DATABASE, SafeText(f"db{number}"), b"%d" % number, note, go)

    async def _offer_servers(self, goto: GotoScreen) -> None:
        """Offer profiles and recent servers, whose files are read in a thread."""
        from rtui.server.user.known_servers import Profiles, RecentServers  # noqa: PLC0415 - when it is wanted
        from rtui.tui.connect.places import known_places  # noqa: PLC0415

        recent = self.recent
        places = await asyncio.to_thread(lambda: known_places(Profiles(), recent or RecentServers()))
        if goto.is_attached:
            kinds = {True: Kind.PROFILE, False: Kind.SERVER}
            goto.add([
                Entry(kinds[one.is_profile], one.name, one.name.encode(), one.about, partial(self._choose, one.target))
                for one in places
            ])  # fmt: skip

    def _choose(self, target: Callable[[], Target]) -> None:
        from rtui.server.wire.errors import TargetError  # noqa: PLC0415 - there by now

        try:
            self.connect_to(target())
        except TargetError as error:
            self.notify(error.happened, title=error.title, severity="error", markup=False)

    async def _run_command(self, screen: Screen[Any], command: ScreenCommand) -> None:
        if self.screen is screen:
            await screen.run_action(command.action)

    # back and forward

    @on(Leaving)
    def _leave_place(self, event: Leaving) -> None:
        """Remember where the user was."""
        self.history.leave(event.place)

    @property
    def place(self) -> Place | None:
        """Where the user is; None on a screen that is none of the places to come back to."""
        return self.screen.place if isinstance(self.screen, CommandScreen) else None

    async def action_go_back(self) -> None:
        """Go back to where the user was before the last jump."""
        await self._travel(self.history.back, NOTHING_BEFORE)

    async def action_go_forward(self) -> None:
        """Go forward to where the user has gone back from."""
        await self._travel(self.history.forward, NOTHING_AFTER)

    async def _travel(self, step: Callable[[Place | None], Place | None], nothing: str) -> None:
        if not isinstance(self.screen, CommandScreen):
            return
        place = step(self.place)
        if place is None:
            self.notify(nothing, markup=False, timeout=2)
        else:
            await self._show_place(place)

    async def _go_to_tree(self) -> None:
        """Go to the tree as it was left."""
        self._remember_place()
        await self._uncover_tree()

    async def go_to(self, place: Place) -> None:
        """Go to a place, and remember the one that is left."""
        self._remember_place()
        await self._show_place(place)

    def _remember_place(self) -> None:
        if self.place is not None:
            self.history.leave(self.place)

    async def _show_place(self, place: Place) -> None:
        from rtui.tui.analyse.screen import AnalyseScreen  # noqa: PLC0415 - when it is wanted
        from rtui.tui.log.screen import LogScreen  # noqa: PLC0415
        from rtui.tui.server.screen import ServerScreen  # noqa: PLC0415

        if isinstance(place, PanelPlace):
            if isinstance(self.screen, LogScreen):
                await self.pop_screen()
            if isinstance(self.screen, AnalyseScreen):
                self.screen.show_place(place)
            elif (browse := await self._uncover_tree()) is not None:
                self._show_analysis(browse, place)
        elif isinstance(place, FoundPlace):
            await self._uncover_tree()
            await self.action_found()
        elif isinstance(place, ServerPlace):
            if isinstance(self.screen, ServerScreen):
                self.screen.show_place(place)
            elif self._session is not None:
                await self._uncover_tree()
                self._show_server(self._session, place)
        elif isinstance(place, LogPlace):
            if self._session is not None and not isinstance(self.screen, LogScreen):
                self._show_log(self._session)
        elif (browse := await self._uncover_tree()) is not None:
            browse.show_place(place)

    async def _uncover_tree(self) -> BrowseScreen | None:
        """Close the screens over the tree, and return the tree's; None where there is none."""
        browse = self._browse_screen
        while browse is not None and self.screen is not browse:
            await self.pop_screen()
        return browse
