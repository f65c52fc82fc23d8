"""Between screens and the terminal: filters of lines, keys one by one, themes, chosen keys, and work between frames.

Painting makes thousands of containers that stay for a while: strips, segments, caches. Left to itself the garbage
collector runs in the middle of it, several times in a large frame, for a third of the time that this takes. So it runs
right after a frame, in a callback of its own, between which and the next one keys are handled.

Closed screens are part of the older garbage: cycles of a megabyte each. They are collected while no key is pressed.

Where no frame is painted for long, as in a thread of an analysis, the interpreter collects by itself, later.

The imports of the first screen are few, so that it is there at once. Keys such as `:` and `a` need more, for which they
would wait up to a quarter of a second. Those modules are imported in a thread, one module with its dependencies after
the other: a key that is pressed meanwhile shares the interpreter with it for a tenth of a second at most, and ends the
work until no key was pressed for a while.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text
from textual import events, on
from textual.actions import ActionParseResult
from textual.app import App
from textual.dom import DOMNode
from textual.driver import Driver
from textual.filter import LineFilter, Monochrome
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer

from rtui.keyspace.text.display import SafeText
from rtui.server.options import BrowseOptions
from rtui.tui.kit.command import CHOSEN_KEYS, choose_keys
from rtui.tui.kit.command_screen import CommandScreen, HoldKeypresses, failure_text, is_reachable
from rtui.tui.kit.layout import TERMINAL, display_text
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.terminal import (
    AsciiFilter,
    ConsoleFilter,
    KeySerialiser,
    SanitisingFilter,
    forget_screen,
    terminal_driver,
)
from rtui.tui.kit.themes import DEFAULT_THEME, VARIABLE_DEFAULTS, Palette, load_themes

if TYPE_CHECKING:
    from rtui.server.recording.recorder import Recorder
    from rtui.tui.kit.input_recording import InputRecording

YOUNG: Final = 2_000
"""New containers that are worth a collection of 1 to 2 ms; at 100,000 it would take 50 to 70 ms."""

OLDER: Final = 1
"""Collections of the youngest generation before one of the next generation.

With five, such a collection took up to 35 ms of a busy processor; containers that survive two are mostly there to stay.
"""

ENOUGH: Final = 100
"""Collections of the middle generation before a full one, which may take a tenth of a second."""

IDLE_S: Final = 5.0
"""Seconds without a key after which a full collection disturbs nobody."""

THRESHOLDS: Final = (15_000, OLDER, 5_000)
"""The thresholds at which the interpreter collects each generation by itself.

A frame in which every cell is new makes up to 4,000 containers, a screen that is opened up to 10,000 until it is
painted. By default it would be after 700, and everything would be looked at after a hundred times: a scan would spend
a third of its time on it.
"""


AHEAD: Final = (
    "rtui.tui.kit.query_hints",
    "rtui.analysis.query.hints",
    "rtui.server.analysis.run",
    "rtui.server.analysis.session",
    "rtui.server.analysis.kept_reports",
    "rtui.tui.analyse.screen",
    "rtui.server.search.run",
    "rtui.tui.find",
    "rtui.tui.browse.tree_figures",
    "rtui.tui.browse.level_lines",
    "rtui.tui.log",
    "rtui.tui.help",
    "rtui.tui.server",
    "rtui.tui.navigation",
    "rtui.server.health.info",
    "rtui.analysis.findings.server",
)
"""Modules that no first screen imports, those first that are needed most."""

REST_S: Final = 1.0
"""Nothing is imported within this time of a key, in seconds."""


REDRAW_AFTER_S: Final = 0.05
"""Seconds after the last resize when the whole terminal is painted again."""


class TerminalApp(App[int]):
    """An application in a terminal, whatever its screens show."""

    ESCAPE_TO_MINIMIZE = False
    ALLOW_SELECT = False
    """Text is copied by commands; Textual's selection fails on a click at a notice that has just gone."""

    def __init__(
        self, options: BrowseOptions, palette: Palette, settings: SettingsFile | None, recorder: Recorder | None
    ) -> None:
        """`palette` are the colours of the terminal; `recorder` records the input."""
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
        """Titles and texts of the first notices."""
        if self.settings.failure is not None:
            self._messages.append(("Settings", self.settings.failure))
        self.recorder = recorder
        self._recording: InputRecording | None = None
        if recorder is not None:
            from rtui.tui.kit.input_recording import InputRecording  # noqa: PLC0415 - few sessions are recorded

            self._recording = InputRecording(recorder, self)
        self._redraw_timer: Timer | None = None
        self._idle_timer: Timer | None = None
        self._key_at_s = 0.0
        """When a key was pressed last, on the clock of the event loop."""
        self._keys = KeySerialiser(self, monotonic)
        self._register_themes(palette)
        self._choose_keys()

    def on_mount(self) -> None:
        """Say which settings can't be used, and begin to look after memory and the recording."""
        for title, message in self._messages:
            self.notify(message, title=title, severity="warning", markup=False)
        self._idle_timer = self.set_interval(IDLE_S, collect_all)
        self.theme_changed_signal.subscribe(self, lambda theme: self.settings.choose("theme", theme.name))
        if self._recording is not None:
            self._recording.watch()

    def get_driver_class(self) -> type[Driver]:
        return self.extend_driver(super().get_driver_class())

    def extend_driver(self, driver_class: type[Driver]) -> type[Driver]:
        return terminal_driver(driver_class, self.before_message)

    def before_message(self, message: Message) -> None:
        """Learn of a message of the terminal before it is handled; called from the thread that reads the terminal."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add the filters that keep hostile characters from the terminal, last."""
        return [*super().get_line_filters(), *self._line_filters]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(VARIABLE_DEFAULTS)

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
            self._key_at_s = asyncio.get_running_loop().time()
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
        """The screens that show through the top screen: empty if that is opaque.

        Textual also counts the screen under an opaque one, and paints the whole terminal when anything changes there.
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
        """Collect the garbage of a frame once it is painted, in a callback of its own."""
        asyncio.get_running_loop().call_soon(collect_young)

    def action_redraw(self) -> None:
        """Paint everything again: something else has written to the terminal."""
        if self.screen_stack:
            forget_screen(self._driver)
            self.screen.refresh(layout=True)

    def _record(self, event: events.Event) -> None:
        if self._recording is not None:
            self._recording.add(event)

    def _fatal_error(self) -> None:
        """Exit with a short message instead of a traceback that shows values."""
        error = self._exception
        if error is not None:
            self._exit_renderables.append(Text(failure_text(error)))
        self._close_messages_no_wait()

    def _register_themes(self, palette: Palette) -> None:
        """Register the themes that parse; keep messages about the others."""
        found = load_themes(_all_css, palette=palette)
        for theme in found.themes:
            self.register_theme(theme)
        self._messages += [("Theme", display_text(str(error))) for error in found.errors]
        wanted = self.options.theme or self.settings.settings.theme or DEFAULT_THEME
        if wanted not in self.available_themes:
            self._messages.append(("Theme", display_text(f"there is no theme called {wanted}")))
            wanted = DEFAULT_THEME
        self.theme = wanted

    def _choose_keys(self) -> None:
        if keys := self.settings.settings.keys:
            from rtui.tui.navigation import command_sets  # noqa: PLC0415 - it imports all screens

            wrong = choose_keys(keys, command_sets())
            self._messages += [("Keys", display_text(message)) for message in wrong]
            self.set_keymap({name: ",".join(chosen) for name, chosen in CHOSEN_KEYS.items()})
        else:
            CHOSEN_KEYS.clear()


def _all_css() -> str:
    from rtui.tui.navigation import all_css  # noqa: PLC0415 - it imports all screens

    return all_css()


def begin_collecting() -> None:
    """Collect garbage between frames from now on.

    Existing objects are never collected, nor are the members of a report, of which each has tens of thousands
    (`gc=False`): they refer to nothing that refers to them.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def collect_young() -> None:
    """Collect the youngest generation if it is large; every now and then the middle one, too."""
    young, looks, _ = gc.get_count()
    if young >= YOUNG:
        gc.collect(1 if looks >= OLDER else 0)


def collect_all() -> None:
    """Collect all generations, if much garbage is likely. To be called when nobody waits."""
    if gc.get_count()[2] >= ENOUGH:
        gc.collect()


async def import_ahead(last_key_s: Callable[[], float], names: Sequence[str] = AHEAD) -> None:
    """Import these modules; `last_key_s` returns when a key was pressed last, on the clock of the event loop."""
    loop = asyncio.get_running_loop()
    for name in names:
        while (waits_s := last_key_s() + REST_S - loop.time()) > 0:  # noqa: ASYNC110 - keys are many, looks few
            await asyncio.sleep(waits_s)
        if name not in sys.modules:
            await asyncio.to_thread(import_module, name)
