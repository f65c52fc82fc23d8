"""The application: it wires options, themes, the terminal, the session and the screens together."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from rtui.keyspace.text.display import SafeText
from rtui.server.files import remove_saved_analyses, rows_folder
from rtui.server.options import BrowseOptions
from rtui.server.user.ending_signals import exit_status, hang_up, heeded, raise_at_once
from rtui.server.user.known_servers import Profiles, RecentServers
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import as_rtui_error
from rtui.tui.connect import (
    Answer,
    ConnectScreen,
    DatabasesScreen,
    LeaveScreen,
    LeftSessions,
    ServersScreen,
    ended_notice,
    known_places,
    of_report_first,
)
from rtui.tui.kit.choice import QuitScreen
from rtui.tui.kit.command import APP_COMMANDS, Owner, bindings
from rtui.tui.kit.command_screen import History, KeysWanted, Leaving
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.terminal import disable_input
from rtui.tui.kit.themes import CSS_FILE, Palette
from rtui.tui.terminal_app import TerminalApp, begin_collecting, import_ahead

if TYPE_CHECKING:
    from rtui.analysis.report.document import ServerReport
    from rtui.registry.registry import Registry
    from rtui.server.browsing.session import BrowsingSession
    from rtui.server.browsing.status import BrowsingStatus
    from rtui.server.recording.recorder import Recorder
    from rtui.server.wire.target import Target
    from rtui.tui.browse.screen import BrowseScreen
    from rtui.tui.navigation import Navigation

QUICK_S: Final = 0.05
"""A connection that takes no longer than this, in seconds, is there before the first paint, which is then the tree."""

CONNECT_POLL_S: Final = 0.2
"""Interval in seconds at which the state of a pending connection is shown."""

FIRST_HINT_S: Final = 10.0
"""Seconds for which the first start says which keys help."""

LEFT_POLL_S: Final = 1.0
"""Interval in seconds at which analyses of left sessions are checked for their end."""

SWITCH_S: Final = 0.0005
"""The interpreter's switch interval: how long the thread that reads the terminal waits while the loop is busy."""

INPUT_EVENTS: Final = (events.Key, events.MouseDown, events.MouseScrollDown, events.MouseScrollUp)
"""Events whose effect a user wants to see at once, unlike that of moving the mouse."""


class RtuiApp(TerminalApp):
    """The interface: connects, then browses."""

    TITLE = "rtui"
    CSS_PATH = CSS_FILE
    BINDINGS: ClassVar[list[BindingType]] = bindings(APP_COMMANDS, Owner.APP)
    ENABLE_COMMAND_PALETTE = False
    offers_servers: ClassVar[bool] = True
    """Whether servers can be gone to by name."""
    begins_connected: ClassVar[bool] = True
    """Whether the server of the options is connected to before the first screen."""
    leads_back: ClassVar[bool] = False
    """Whether Escape leaves a server."""

    def __init__(
        self,
        options: BrowseOptions,
        session: BrowsingSession | None = None,
        palette: Palette = Palette.TRUE,
        settings: SettingsFile | None = None,
        recent: RecentServers | None = None,
        *,
        recorder: Recorder | None = None,
    ) -> None:
        """`session` replaces the session that the options describe; `palette` are the colours of the terminal.

        `recent` remembers the browsed servers, unless it is None; `recorder` records the session.
        """
        super().__init__(options, palette, settings, recorder)
        self.recent = recent
        self._given_session = session
        self._session: BrowsingSession | None = None
        self._start: tuple[BrowsingSession, asyncio.Task[None]] | None = None
        """A session that began to connect before the first screen."""
        self._is_ending = False
        """Whether a signal has come that ends it."""
        self._left = LeftSessions()
        self._left_timer: Timer
        self._navigation: Navigation | None = None
        self._history = History()
        self._wanted_keys: KeysWanted | None = None
        """A query that waits for a server to be chosen."""
        self._importing: asyncio.Task[None] | None = None
        """Imports the modules that the first keys need."""

    @property
    def server_status(self) -> BrowsingStatus | None:
        return None if self._session is None else self._session.status

    @property
    def server_of_report(self) -> ServerReport | None:
        """The server of the shown report; None unless a report file is shown."""
        return None

    # connecting and leaving

    async def on_load(self) -> None:
        """Connect; go on with the first screen once that is done, or takes too long."""
        if self._recording is not None:
            self._recording.begin(self.options, self.settings.settings)
        if self.options.chooses_server or not self.begins_connected:
            return
        session = self._new_session()
        start = asyncio.create_task(session.start(), name="rtui connect")
        self._start = session, start
        await asyncio.wait([start], timeout=QUICK_S)

    def get_default_screen(self) -> Screen[Any]:
        """Return the first screen: the tree where the server has answered already, else the connect screen.

        Painting the connect screen takes as long as painting the tree.
        """
        if self._start is not None:
            session, start = self._start
            if start.done() and start.exception() is None:
                return self._browse(session)
        return ConnectScreen(self.options.target.label)

    def on_mount(self) -> None:
        self._left_timer = self.set_interval(LEFT_POLL_S, self._look_at_left, pause=True)
        if not self.is_headless:
            self._handle_signals()
        if self.options.is_first_start:
            keys = {command.id: command.first_key for command in APP_COMMANDS}
            said = f"{keys['help']} shows the keys of each screen, {keys['command_palette']} lists all commands."
            self.notify(said, title="Welcome to rtui", markup=False, timeout=FIRST_HINT_S)
        self.call_after_refresh(self.begin)

    async def begin(self) -> None:
        """Connect in a worker, unless connected already; first let the user choose a server if none was named."""
        if self.options.chooses_server:
            self.options = replace(self.options, chooses_server=False)
            self.action_servers()
        elif self._session is None:
            work = self._open_session()
            self.run_worker(work, group="connect", exclusive=True, exit_on_error=False, description="connect")

    def before_message(self, message: Message) -> None:
        if self._session is not None and isinstance(message, INPUT_EVENTS):
            self._session.yield_to_input()
            for left in self._left.kept:
                left.session.yield_to_input()

    @on(ConnectScreen.Retry)
    async def _retry(self, message: ConnectScreen.Retry) -> None:
        if message.password is not None:
            self.options = replace(self.options, target=replace(self.options.target, password=message.password))
        if message.key_password is not None:
            self.options = replace(self.options, target=self.options.target.with_key_password(message.key_password))
        await self.begin()

    def _new_session(self) -> BrowsingSession:
        if self._given_session is not None:
            return self._given_session
        from rtui.server.browsing.session import BrowsingSession  # noqa: PLC0415 - reports from files need none

        options, rows = self.options, self.settings.settings.rows
        keep = rows.keep if options.keep_rows is None else options.keep_rows
        session = BrowsingSession(replace(options, keep_rows=keep, rows_in_files=rows.files))
        if self.recorder is not None:
            self.recorder.attach(session.log, session.target.db)
            session.deployment.on_change.append(partial(self.recorder.end, "cluster"))
        return session

    def _browse(self, session: BrowsingSession) -> BrowseScreen:
        from rtui.tui.browse.screen import BrowseScreen  # noqa: PLC0415 - a slow connection does not wait for it

        self._session = session
        if self.recent is not None and not self.options.demo:
            self.run_worker(partial(self._remember_server, self.recent, session.target), thread=True, group="recent")
        begin_collecting()
        sys.setswitchinterval(SWITCH_S)
        if self._importing is None:
            self._key_at_s = asyncio.get_running_loop().time()
            importing = import_ahead(lambda: self._key_at_s)
            self._importing = asyncio.create_task(importing, name="rtui import")
        return BrowseScreen(
            session,
            is_filling=self.options.is_filling,
            settings=self.settings,
            registry=self.options.registry,
            leads_back=self.leads_back,
        )

    def on_unmount(self) -> None:
        if self._importing is not None:
            self._importing.cancel()

    async def _open_session(self) -> None:
        """Wait until a session is connected and switch to the tree; a failure stays on the first screen."""
        left = self._left.take(self.options.target)
        if left is not None:
            screen = self._browse(left.session)
            self.navigation.report_states = left.states
            await self.push_screen(screen)
            self._show_wanted_keys()
            return
        if self._start is None:
            session = self._new_session()
            connecting: Awaitable[None] = session.start()
        else:
            session, connecting = self._start
            self._start = None
        poll = self.set_interval(CONNECT_POLL_S, partial(self._show_waiting, session))
        try:
            await connecting
        except RtuiError as error:
            self._show_error(error)
            return
        finally:
            poll.stop()
        await self.push_screen(self._browse(session))
        self._show_wanted_keys()

    def _show_waiting(self, session: BrowsingSession) -> None:
        link = session.status.link
        if isinstance(link, Lost) and link.reason is not None:
            self._show_error(link.reason, is_final=False)

    def _show_error(self, error: RtuiError, *, is_final: bool = True) -> None:
        if isinstance(self.screen, ConnectScreen):
            self.screen.show_error(error, is_final=is_final)

    @on(Worker.StateChanged)
    def _worker_ended(self, event: Worker.StateChanged) -> None:
        """Show an unexpected failure to connect on the connect screen; other screens handle their own workers."""
        error = event.worker.error
        if event.worker.group == "connect" and event.state is WorkerState.ERROR and error is not None:
            self._show_error(as_rtui_error(error, "connecting"))

    async def action_quit(self) -> None:
        """Quit, after a question where something would be lost; given again, quit at once."""
        lost = self._left.lost_by_leaving(self._session)
        if lost is None or isinstance(self.screen, QuitScreen):
            await self._leave()
            return

        def answered(is_wanted: bool | None) -> None:
            if is_wanted:
                self.run_worker(self._leave(), group="quit", exclusive=True, description="quit")

        self.push_screen(QuitScreen(lost), answered)

    def _handle_signals(self) -> None:
        """Leave without a question when the terminal hangs up or rtui is to end; a second signal ends it at once."""
        loop = asyncio.get_running_loop()
        handled = heeded()

        def end(sent: signal.Signals) -> None:
            if self._is_ending:  # kernel and shell each send a SIGHUP, nearly at once
                return
            self._is_ending = True
            hang_up()
            others = [one for one in handled if one is not signal.SIGHUP]
            for one in others:
                loop.remove_signal_handler(one)
            raise_at_once(*others)
            if sent is signal.SIGHUP:
                disable_input(self._driver)
            self.run_worker(self._leave(exit_status(sent)), group="quit", exclusive=True, description="quit")

        for one in handled:
            loop.add_signal_handler(one, end, one)

    async def _leave(self, code: int = 0) -> None:
        """Close the sessions, which save their positions and reports, and exit."""
        if self._session is not None:
            await self._session.close()
        await self._left.close()
        await self.settings.close()
        if self.recorder is not None:
            await asyncio.to_thread(self.recorder.close)
        self.exit(code)

    def _remember_server(self, recent: RecentServers, target: Target) -> None:
        """Remember a server that was connected to, unless there is no place to write to; tidy that place up."""
        from rtui.table.private_folder import remove_left  # noqa: PLC0415 - the tree does not wait for the table

        with contextlib.suppress(OSError):
            recent.add(target)
        remove_saved_analyses()
        remove_left(rows_folder())

    def action_servers(self) -> None:
        def chosen(target: Target | None) -> None:
            if target is not None:
                self.connect_to(target)
                return
            self._wanted_keys = None
            if self._session is None and isinstance(self.screen, ConnectScreen) and not self.screen.has_failed:
                self.call_later(self.begin)

        places = known_places(Profiles(), self.recent or RecentServers())
        if (server := self.server_of_report) is not None:
            places = of_report_first(places, server.label, server.db)
        self.push_screen(ServersScreen(places), chosen)

    def action_databases(self) -> None:
        if self._session is None:
            return
        session = self._session
        target, server = session.target, session.status.server

        def chosen(number: int | None) -> None:
            if number is not None and number != target.db:
                self.connect_to(replace(target, db=number))

        screen = DatabasesScreen(target.db, server.databases)

        async def count() -> None:
            with contextlib.suppress(RtuiError):
                screen.show_count(await session.database_count())

        self.push_screen(screen, chosen)
        self.run_worker(count(), group="databases", exclusive=True, exit_on_error=False, description="databases")

    def connect_to(self, target: Target) -> None:
        """Leave the browsed server and connect to another one; first ask whether to keep a long analysis."""
        session = self._session
        if session is None or session.lost_by_leaving is None:
            self._connect_to(target)
            return
        can_wait = self.recorder is None and self._left.has_room

        def answered(answer: Answer | None) -> None:
            if answer not in (None, Answer.STAY) and self._session is session:
                self._connect_to(target, None if answer is Answer.END else answer is Answer.PAUSE)

        self.push_screen(LeaveScreen(session.analysis.status, session.target, target, can_wait=can_wait), answered)

    def _connect_to(self, target: Target, pauses: bool | None = None) -> None:
        work = self.browse_other(target, pauses)
        self.run_worker(work, group="connect", exclusive=True, description="connect")

    async def browse_other(self, target: Target, pauses: bool | None = None) -> None:
        """Leave the browsed server, saving the position of its scan, and connect to another one.

        Unless `pauses` is None the session is kept to be come back to; `pauses` is whether its analysis waits until
        then.
        """
        if self.recorder is not None and replace(target, db=0) != replace(self.options.target, db=0):
            self.recorder.end("server")
        registry = await self._registry_of(target)
        self.options = replace(
            self.options, target=target, demo=False, is_filling=None, match=None, key_type=None, registry=registry
        )
        await self.leave_for(ConnectScreen(target.label), pauses)
        self.call_later(self.begin)

    async def leave_for(self, screen: Screen[Any], pauses: bool | None = None) -> None:
        """Leave the browsed server, and show a screen in place of all others; `pauses` as in `browse_other`."""
        old, self._session = self._session, None
        navigation, self._navigation = self._navigation, None
        self._history.clear()
        if self._start is not None:
            self._start[1].cancel()
            self._start = None
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        if not self.screen._result_callbacks:
            self.screen._push_result_callback(self.screen, None)
        await self.switch_screen(screen)
        if old is not None and pauses is not None:
            states = None if navigation is None else navigation.report_states
            self._left.put(old, states, waits=pauses)
            self._left_timer.resume()
        elif old is not None:
            await old.close()

    def _look_at_left(self) -> None:
        for one in self._left.ended():
            self.notify(ended_notice(one.session), title="Analysis ended", markup=False, timeout=8)
        if all(one.is_over for one in self._left.kept):
            self._left_timer.pause()

    async def _registry_of(self, target: Target) -> Registry | None:
        try:
            return await asyncio.to_thread(self.options.registry_choice.load, target)
        except RtuiError as error:
            self.notify(error.happened, title=error.title, severity="warning", markup=False)
            return None

    # from screen to screen

    @property
    def navigation(self) -> Navigation:
        """Goes from screen to screen over the tree of the session, or over a file; imports all screens."""
        from rtui.tui.navigation import Navigation  # noqa: PLC0415 - the first screen does not wait for all others

        if self._navigation is None or self._navigation.session is not self._session:
            self._navigation = Navigation(
                *(self, self._session, self.settings, self._history),
                registry=self.options.registry,
                recent=self.recent,
                connect_to=self.connect_to,
                offers_servers=self.offers_servers,
            )
        return self._navigation

    @on(Leaving)
    def _leave_place(self, event: Leaving) -> None:
        self._history.leave(event.place)

    @on(KeysWanted)
    def _show_keys(self, message: KeysWanted) -> None:
        """Show the keys that a query finds; without a session, offer to connect to a server."""
        if self._session is not None:
            self.navigation.show_keys(self._session, message)
            return
        text = SafeText(f"Choose a server to search. The query runs once connected: {message.query}")
        self.notify(text, title="Choose a server", markup=False, timeout=8)
        self._wanted_keys = message
        self.run_worker(self.run_action("app.servers"), group="servers", exit_on_error=False)

    def _show_wanted_keys(self) -> None:
        wanted, self._wanted_keys = self._wanted_keys, None
        if wanted is not None:
            self._show_keys(wanted)

    def action_analyse(self) -> None:
        self.navigation.analyse()

    def action_sql(self) -> None:
        self.navigation.sql()

    def action_log(self) -> None:
        self.navigation.log()

    def action_server(self) -> None:
        self.navigation.server()

    async def action_found(self) -> None:
        await self.navigation.found()

    def action_goto(self) -> None:
        self.navigation.goto()

    async def action_go_back(self) -> None:
        await self.navigation.travel(self._history.back, "Nothing to go back to.")

    async def action_go_forward(self) -> None:
        await self.navigation.travel(self._history.forward, "Nothing to go forward to.")

    def action_help(self) -> None:
        self.navigation.help()

    def action_command_palette(self) -> None:
        self.navigation.goto(only_commands=True)

    def action_theme(self) -> None:
        self.navigation.goto("theme ")
