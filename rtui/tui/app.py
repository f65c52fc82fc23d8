"""The application: it wires options, themes, the terminal, the session and the screens together."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.actions import ActionParseResult
from textual.binding import BindingType
from textual.command import CommandPalette, Provider
from textual.dom import DOMNode
from textual.driver import Driver
from textual.filter import LineFilter, Monochrome
from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme, ThemeProvider
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from rtui.keyspace.text.display import SafeText
from rtui.server.options import BrowseOptions
from rtui.server.wire.errors import RtuiError
from rtui.tui.connect.screen import ConnectScreen
from rtui.tui.contents import CSS_FILE, all_commands, all_css, command_sets, import_later
from rtui.tui.kit import garbage
from rtui.tui.kit.command import APP_COMMANDS, CHOSEN_KEYS, Owner, bindings, choose_keys
from rtui.tui.kit.command_screen import (
    CommandProvider,
    CommandScreen,
    HoldKeypresses,
    PaletteScreen,
    failure_text,
    is_reachable,
)
from rtui.tui.kit.history import History
from rtui.tui.kit.layout import TERMINAL, display_text
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.styled_text import literal
from rtui.tui.kit.terminal import (
    AsciiFilter,
    ConsoleFilter,
    KeySerialiser,
    SanitisingFilter,
    forget_screen,
    hang_up,
    terminal_driver,
)
from rtui.tui.kit.themes import DEFAULT_THEME, VARIABLE_DEFAULTS, Palette, load_themes
from rtui.tui.left_sessions import LeftSessions, ended_notice
from rtui.tui.navigation import Navigation

if TYPE_CHECKING:
    from rtui.registry.registry import Registry
    from rtui.server.recent import RecentServers
    from rtui.server.recording.recorder import Recorder
    from rtui.server.wire.target import Target
    from rtui.tui.analyse.panel import PanelStates
    from rtui.tui.browse.screen import BrowseScreen
    from rtui.tui.browse.session import Session
    from rtui.tui.kit.input_recording import InputRecording

QUICK_S: Final = 0.05
"""A connection that takes no longer than this, in seconds, is there before the first paint, which is then the tree."""

CONNECT_POLL_S: Final = 0.2
"""How often the state of a connection that is being made is shown."""

LEFT_POLL_S: Final = 1.0
"""How often it is looked whether an analysis that was left has ended."""

REDRAW_AFTER_S: Final = 0.05
"""The whole terminal is painted again so long after it was last resized."""

SWITCH_S: Final = 0.0005
"""The interpreter's switch interval: how long the thread that reads the terminal waits while the loop is busy."""

END_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM)
"""Sent when the SSH session of the terminal ends, or the machine does."""

ENDED_BY_SIGNAL: Final = 130
"""The exit code after one of them, as of the other commands."""

IMPORTS_S: Final = 1.0
"""So long after the tree has come what later screens need is imported: by then there are rows."""

INPUT_EVENTS: Final = (events.Key, events.MouseDown, events.MouseScrollDown, events.MouseScrollUp)
"""Events of which a user wants to see the effect at once; moving the mouse is none."""


class RtuiApp(Navigation):
    """The interface: connects, then browses."""

    TITLE = "rtui"
    CSS_PATH = CSS_FILE
    BINDINGS: ClassVar[list[BindingType]] = bindings(APP_COMMANDS, Owner.APP)
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {CommandProvider}
    ESCAPE_TO_MINIMIZE = False
    ALLOW_SELECT = False
    """Text is copied by commands; Textual's selection fails on a click at a notice that has just gone."""

    def __init__(
        self,
        options: BrowseOptions,
        session: Session | None = None,
        palette: Palette = Palette.TRUE,
        settings: SettingsFile | None = None,
        recent: RecentServers | None = None,
        *,
        recorder: Recorder | None = None,
    ) -> None:
        """`session` replaces the one that the options describe; `palette` is what the terminal can show.

        `recent` remembers the servers that were browsed, unless it is None; `recorder` records the session.
        """
        self.settings = SettingsFile() if settings is None else settings
        is_ascii = options.ascii_only or self.settings.settings.ascii
        self._line_filters: tuple[LineFilter, ...] = (
            SanitisingFilter(),
            *([AsciiFilter()] if is_ascii else [ConsoleFilter()] if options.on_console else []),
            *([Monochrome()] if options.no_color else []),
        )
        super().__init__()
        TERMINAL.ascii_only = is_ascii
        self.options = options
        self._messages: list[tuple[str, SafeText]] = []
        """What to notify the user of at first: titles and texts."""
        if self.settings.failure is not None:
            self._messages.append(("Settings", self.settings.failure))
        self.recent = recent
        self.recorder = recorder
        self._recording: InputRecording | None = None
        if recorder is not None:
            from rtui.tui.kit.input_recording import InputRecording  # noqa: PLC0415 - few sessions are recorded

            self._recording = InputRecording(recorder, self)
        self._given_session = session
        self._session: Session | None = None
        self._start: tuple[Session, asyncio.Task[None]] | None = None
        """A session that began to connect before the first screen."""
        self._label = literal("demo") if options.demo else None
        self._panel_states: PanelStates | None = None
        self.history = History()
        self._redraw_timer: Timer | None = None
        self._idle_timer: Timer | None = None
        self._left_timer: Timer
        self._left = LeftSessions()
        self._keys = KeySerialiser(self, monotonic)
        self._register_themes(palette)
        self._choose_keys()

    def get_driver_class(self) -> type[Driver]:
        """Use the platform's driver, writing only differences and reporting input at once."""
        return self.extend_driver(super().get_driver_class())

    def extend_driver(self, driver_class: type[Driver]) -> type[Driver]:
        """Return the class of a driver for this application."""
        return terminal_driver(driver_class, self._on_driver_message)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add the filters that keep hostile characters from the terminal, last."""
        return [*super().get_line_filters(), *self._line_filters]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables that themes may set beyond Textual's own."""
        return dict(VARIABLE_DEFAULTS)

    async def on_load(self) -> None:
        """Connect; go on with the first screen once that is done, or takes too long."""
        if self._recording is not None:
            self._recording.begin(self.options, self.settings.settings)
        if self.options.chooses_server:
            return
        session = self._new_session()
        start = asyncio.create_task(session.start(), name="rtui connect")
        self._start = session, start
        await asyncio.wait([start], timeout=QUICK_S)

    def get_default_screen(self) -> Screen[None]:
        """Return the first screen: the tree where the server has answered already, else the connect screen.

        Painting the connect screen takes as long as painting the tree.
        """
        if self._start is not None:
            session, start = self._start
            if start.done() and start.exception() is None:
                return self._browse(session)
        return ConnectScreen(self._label or self.options.target.label)

    def on_mount(self) -> None:
        """Begin after the first paint."""
        for title, message in self._messages:
            self.notify(message, title=title, severity="warning", markup=False)
        self._left_timer = self.set_interval(LEFT_POLL_S, self._look_at_left, pause=True)
        self._idle_timer = self.set_interval(garbage.IDLE_S, garbage.collect_all)
        self.theme_changed_signal.subscribe(self, self._remember_theme)
        if self._recording is not None:
            self._recording.watch()
        if not self.is_headless:
            self._handle_signals()
        self.call_after_refresh(self.begin)

    async def begin(self) -> None:
        """Connect in a worker, unless that is done; choose a server before, where none was named."""
        if self.options.chooses_server:
            self.options = replace(self.options, chooses_server=False)
            self.action_servers()
        elif self._session is None:
            work = self._open_session()
            self.run_worker(work, group="connect", exclusive=True, exit_on_error=False, description="connect")

    def _on_driver_message(self, message: Message) -> None:
        """Have scans yield the event loop to input; called from the thread that reads the terminal."""
        if self._session is not None and isinstance(message, INPUT_EVENTS):
            self._session.yield_to_input()
            for one in self._left.kept:
                one.session.yield_to_input()

    async def on_event(self, event: events.Event) -> None:
        """Handle keys one after the other; ignore a key that arrives while the application shuts down."""
        if isinstance(event, events.Key) and not self.screen_stack:
            return
        if not isinstance(event, events.Key) or event.is_forwarded:
            if isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded:
                self._record(event)
            await super().on_event(event)
        elif self._keys.accept(event):
            self._record(event)
            if self._idle_timer is not None:
                self._idle_timer.reset()
            target = self.focused or self.screen
            await super().on_event(event)
            self._keys.follow(event, target)

    @on(HoldKeypresses)
    def _hold_keypresses(self, event: HoldKeypresses) -> None:
        self._keys.hold(event.is_over)

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        """The screens that show through the one on top: none where that is opaque.

        Textual also counts the one under an opaque screen, and paints the whole terminal when anything changes there.
        """
        is_covered = bool(self._screen_stack) and self._screen_stack[-1].styles.background.a == 1
        return [] if is_covered else super()._background_screens

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, unless the user can't act on its node: the screen is not ready, not on top, or gone.

        Actions of commands name the screen or widget that owns them, such as `tree.expand`.
        """
        node = self if default_namespace is None else default_namespace
        if not is_reachable(node):
            return False
        if isinstance(self.screen, CommandScreen):
            namespaces = {**self.screen.action_owners, **(namespaces or {})}
        return await super().run_action(action, default_namespace, namespaces)

    @on(ConnectScreen.Retry)
    async def _retry(self, message: ConnectScreen.Retry) -> None:
        """Connect again, with a password that was typed."""
        if message.password is not None:
            self.options = replace(self.options, target=replace(self.options.target, password=message.password))
        await self.begin()

    def _new_session(self) -> Session:
        """Return a session that has not begun to connect."""
        if self._given_session is not None:
            return self._given_session
        from rtui.server.browsing import BrowsingSession  # noqa: PLC0415 - reports that are opened need no server's side

        session = BrowsingSession(self.options)
        if self.recorder is not None:
            self.recorder.attach(session.log, session.target.db)
        return session

    def _browse(self, session: Session) -> BrowseScreen:
        """Return the screen of a session that is connected."""
        from rtui.tui.browse.screen import BrowseScreen  # noqa: PLC0415 - a slow connection does not wait for it

        self._session = session
        if self.recent is not None and not self.options.demo:
            self.run_worker(partial(self._remember_server, self.recent, session.target), thread=True, group="recent")
        garbage.begin()
        sys.setswitchinterval(SWITCH_S)
        self.set_timer(IMPORTS_S, self._import_later)
        return BrowseScreen(
            session,
            label=self._label,
            is_filling=self.options.is_filling,
            settings=self.settings,
            registry=self.options.registry,
        )

    def _import_later(self) -> None:
        work = partial(import_later, lambda: self.is_running)
        self.run_worker(work, thread=True, group="imports", exit_on_error=False, description="imports")

    async def _open_session(self) -> None:
        """Wait until a session is connected and switch to the tree; a failure stays on the first screen."""
        left = self._left.take(self.options.target)
        if left is not None:
            self._panel_states = left.states
            await self.push_screen(self._browse(left.session))
            self.show_wanted_keys()
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
        self.show_wanted_keys()

    def _show_waiting(self, session: Session) -> None:
        """Show what a connection waits for that is retried by itself, such as a server that is loading."""
        from rtui.server.wire.connection import Lost  # noqa: PLC0415 - there by now

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
            from rtui.server.wire.supervised_tasks import as_rtui_error  # noqa: PLC0415 - only then

            self._show_error(as_rtui_error(error, "connecting"))

    def on_resize(self, event: events.Resize) -> None:
        """Paint everything again once the terminal keeps its size.

        Textual paints nothing when a terminal comes back to its size before the size in between was handled, though
        both changes moved or cleared cells.
        """
        self._record(event)
        if self._redraw_timer is not None:
            self._redraw_timer.stop()
        self._redraw_timer = self.set_timer(REDRAW_AFTER_S, self.action_redraw)

    def post_display_hook(self) -> None:
        """Collect the garbage of a frame once it is painted."""
        garbage.collect_soon()

    def action_redraw(self) -> None:
        """Paint everything again: something else has written to the terminal."""
        if self.screen_stack:
            forget_screen(self._driver)
            self.screen.refresh(layout=True)

    async def action_quit(self) -> None:
        """Quit, after a question where something would be lost; given again, quit at once."""
        from rtui.tui.kit.choice import QuitAnswer, QuitScreen  # noqa: PLC0415 - when it is wanted

        lost = self._left.lost_by_leaving(self._session)
        if lost is None or isinstance(self.screen, QuitScreen):
            await self._leave()
            return

        def answered(answer: QuitAnswer | None) -> None:
            if answer in (QuitAnswer.QUIT, QuitAnswer.LATER):
                work = self._leave() if answer is QuitAnswer.QUIT else self._leave_for_later()
                self.run_worker(work, group="quit", exclusive=True, description="quit")

        can_go_on_later = self.recorder is None and self._left.can_go_on_later(self._session)
        self.push_screen(QuitScreen(lost, can_go_on_later=can_go_on_later), answered)

    async def _leave_for_later(self) -> None:
        """Save the analyses that are under way, to go on in a later run, and exit; stay where that fails."""
        self.notify("The keys that are listed are asked before it is saved.", title="Saving the analysis", markup=False)
        why_not = await self._left.go_on_later(self._session)
        if why_not is None:
            await self._leave()
        else:
            self.notify(why_not, title="The analysis is not saved", severity="warning", markup=False, timeout=10)

    def _handle_signals(self) -> None:
        """Save what can be saved when the terminal hangs up or rtui is to end; a second SIGTERM ends it at once."""
        loop = asyncio.get_running_loop()
        handled = [one for one in END_SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]

        def end(sent: signal.Signals) -> None:
            for one in handled:
                loop.remove_signal_handler(one)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the kernel sends it, and the shell once more
            if sent is signal.SIGHUP:
                hang_up(self._driver)
            self.run_worker(self._leave_at_once(), group="quit", exclusive=True, description="quit")

        for one in handled:
            loop.add_signal_handler(one, end, one)

    async def _leave_at_once(self) -> None:
        """Save the analyses that can go on in a later run, where reports are kept, and exit without a question."""
        if self.recorder is None:
            await self._left.save_what_goes_on(self._session)
        await self._leave(ENDED_BY_SIGNAL)

    async def _leave(self, code: int = 0) -> None:
        """Close the session, which saves its position, and exit."""
        if self._session is not None:
            await self._session.close()
        await self._left.close()
        await self.settings.close()
        if self.recorder is not None:
            await asyncio.to_thread(self.recorder.close)
        self.exit(code)

    def _remember_server(self, recent: RecentServers, target: Target) -> None:
        """Remember a server that was connected to; without a place to write to, it is forgotten."""
        with contextlib.suppress(OSError):
            recent.add(target)

    def action_servers(self) -> None:
        """Choose another server to browse."""
        from rtui.server.profiles import Profiles  # noqa: PLC0415 - when it is wanted
        from rtui.server.recent import RecentServers  # noqa: PLC0415
        from rtui.tui.connect.places import ServersScreen, known_places, of_report_first  # noqa: PLC0415

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
        """Choose another database of the server to browse."""
        if self._session is None:
            return
        from rtui.tui.connect.places import DatabasesScreen  # noqa: PLC0415 - when it is wanted

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
        """Leave the server that is browsed and connect to another one; ask first what becomes of a long analysis."""
        session = self._session
        if session is None or session.lost_by_leaving is None:
            self._connect_to(target)
            return
        from rtui.tui.connect.leaving import Answer, LeaveScreen  # noqa: PLC0415 - when it is wanted

        can_wait = self.recorder is None and self._left.has_room

        def answered(answer: Answer | None) -> None:
            if answer not in (None, Answer.STAY) and self._session is session:
                self._connect_to(target, None if answer is Answer.END else answer is Answer.PAUSE)

        self.push_screen(LeaveScreen(session.analysis.status, session.target, target, can_wait=can_wait), answered)

    def _connect_to(self, target: Target, pauses: bool | None = None) -> None:
        work = self.browse_other(target, pauses)
        self.run_worker(work, group="connect", exclusive=True, description="connect")

    async def browse_other(self, target: Target, pauses: bool | None = None) -> None:
        """Leave the server that is browsed, saving where its scan stands, and connect to another one.

        Unless `pauses` is None the session is kept to be come back to; it says whether its analysis waits until then.
        """
        if self.recorder is not None and replace(target, db=0) != replace(self.options.target, db=0):
            self.recorder.end("server")
        old, self._session = self._session, None
        states, self._panel_states = self._panel_states, None
        self.history.clear()
        if self._start is not None:
            self._start[1].cancel()
            self._start = None
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        registry = await self._registry_of(target)
        self.options = replace(
            self.options, target=target, demo=False, is_filling=None, match=None, key_type=None, registry=registry
        )
        self._label = None
        if not self.screen._result_callbacks:
            self.screen._push_result_callback(self.screen, None)
        await self.switch_screen(ConnectScreen(target.label))
        if old is not None and pauses is not None:
            self._left.put(old, states, waits=pauses)
            self._left_timer.resume()
        elif old is not None:
            await old.close()
        self.call_later(self.begin)

    def _look_at_left(self) -> None:
        """Say of an analysis that was left when it has ended."""
        for one in self._left.ended():
            self.notify(ended_notice(one.session), title="Analysis ended", markup=False, timeout=8)
        if all(one.is_over for one in self._left.kept):
            self._left_timer.pause()

    async def _registry_of(self, target: Target) -> Registry | None:
        """Read the registry of a server that was chosen; where it can't be used, say why and go on without."""
        try:
            return await asyncio.to_thread(self.options.registry_choice.load, target)
        except RtuiError as error:
            self.notify(error.happened, title=error.title, severity="warning", markup=False)
            return None

    def _record(self, event: events.Event) -> None:
        """Record an input."""
        if self._recording is not None:
            self._recording.add(event)

    def action_help(self) -> None:
        """Show every command, those of what has the keyboard first."""
        from rtui.tui.contents import help_topics  # noqa: PLC0415 - when it is wanted
        from rtui.tui.help.screen import HelpScreen  # noqa: PLC0415

        if not isinstance(self.screen, HelpScreen):
            screen = self.screen if isinstance(self.screen, CommandScreen) else None
            owners = () if screen is None else screen.focused_owners
            subject = None if screen is None else screen.help_subject
            self.push_screen(HelpScreen(all_commands(), owners, help_topics(), subject))

    def _fatal_error(self) -> None:
        """Exit with a short message instead of a traceback that shows values."""
        error = self._exception
        if error is not None:
            self._exit_renderables.append(Text(failure_text(error)))
        self._close_messages_no_wait()

    def action_theme(self) -> None:
        """Choose another theme."""
        self.push_screen(PaletteScreen(providers=[ThemeProvider], placeholder="Search for themes…"))

    def action_command_palette(self) -> None:
        """Search all commands."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(PaletteScreen())

    def _register_themes(self, palette: Palette) -> None:
        """Register the themes that parse; keep messages about the others."""
        found = load_themes(all_css, palette=palette)
        for theme in found.themes:
            self.register_theme(theme)
        self._messages += [("Theme", display_text(str(error))) for error in found.errors]
        wanted = self.options.theme or self.settings.settings.theme or DEFAULT_THEME
        if wanted not in self.available_themes:
            self._messages.append(("Theme", display_text(f"there is no theme called {wanted}")))
            wanted = DEFAULT_THEME
        self.theme = wanted

    def _remember_theme(self, theme: Theme) -> None:
        self.settings.choose("theme", theme.name)

    def _choose_keys(self) -> None:
        """Give commands the keys of the settings file."""
        if keys := self.settings.settings.keys:
            wrong = choose_keys(keys, command_sets())
            self._messages += [("Keys", display_text(message)) for message in wrong]
            self.set_keymap({name: ",".join(chosen) for name, chosen in CHOSEN_KEYS.items()})
        else:
            CHOSEN_KEYS.clear()
