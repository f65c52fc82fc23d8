"""Screens that keep one widget focused, and screens with declared commands.

Keys, clicks, timers and workers may reach a screen before its widgets are mounted, while they are being removed, or
when another screen lies on top. `is_ready` and `is_reachable` tell; the application checks them before any action.

Screens pull changes (`CommandScreen.flush`), and long work is done in slices between which the event loop serves others
(`drive`).

`ScreenBelow` paints the screen that shows through a translucent one. Textual tints every piece of that screen through
Rich's console whenever any line of it changes, as the status does four times a second while keys are scanned. Here each
style is tinted once, and an unchanged line keeps its painted strip, with the bytes that Textual keeps.

`History` has the places to go back to and forward again, as in a browser. A place is remembered when it is left by a
jump: from the tree into details, to another panel, by name. Steps of the cursor are no jumps. A place is a value: the
state that a screen needs to show itself as it was, without references that keep widgets or reports alive.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events, on
from textual.app import App, ScreenStackError
from textual.await_complete import AwaitComplete
from textual.cache import LRUCache
from textual.color import Color
from textual.css.styles import RulesMap
from textual.dom import DOMNode, NoScreen
from textual.message import Message
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen, ScreenResultType
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.visual import RenderOptions, Visual
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from rtui.keyspace.slices import Steps
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import PatternError
from rtui.server.guard.command import GuardError
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import as_rtui_error, in_slices
from rtui.tui.kit.bars import FooterBar
from rtui.tui.kit.command import Conditions, HelpSubject, ScreenCommand
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.styled_text import ROLE_CLASSES
from rtui.tui.kit.terminal import StylesCache

if TYPE_CHECKING:
    from rtui.analysis.query.query import Query


KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class TreePlace:
    """A row of the tree, and whether its details have the keyboard."""

    name: bytes | None = None
    """The name of the key, or the prefix of the namespace with its separator; None for a tree without rows."""
    is_namespace: bool = False
    is_reading: bool = False
    needle: bytes | None = None
    level: Any = None
    """Where the schema is shown, the path of the level under the cursor; None in the tree of names."""


@dataclass(frozen=True, slots=True)
class PanelPlace:
    """A panel of the analysis."""

    panel_id: str
    state: Any = None
    """The choices in it, such as the namespace that is zoomed into, a frozen value; None for how it was left."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """The command log."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """A panel of the health of the server."""

    panel_id: str
    list_id: str | None = None
    """The list of the panel; None for the list shown last."""
    node: SafeText | None = None
    """The node of a cluster; None for the node shown last."""
    row: str | None = None
    """The metric under the cursor, as `panel/id`; None for the one it was on last."""


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """The list of keys that was found last."""


Place = TreePlace | PanelPlace | FoundPlace | LogPlace | ServerPlace


@dataclass
class Leaving(Message):
    """A screen is about to show another place than this one, because the user jumps there."""

    place: Place


class History:
    """Places behind and ahead of where the user is."""

    def __init__(self) -> None:
        self._behind: list[Place] = []
        self._ahead: list[Place] = []

    def leave(self, place: Place) -> None:
        """Remember a place that is left by a jump; the places ahead are forgotten."""
        self._ahead.clear()
        if not self._behind or self._behind[-1] != place:
            self._behind.append(place)
        del self._behind[:-KEPT]

    def back(self, here: Place | None) -> Place | None:
        """Return the place before, or None; the place that is left can be gone forward to."""
        return _step(self._behind, self._ahead, here)

    def forward(self, here: Place | None) -> Place | None:
        return _step(self._ahead, self._behind, here)

    def clear(self) -> None:
        """Forget all: another keyspace is shown."""
        self._behind.clear()
        self._ahead.clear()


def _step(taken: list[Place], kept: list[Place], here: Place | None) -> Place | None:
    while taken:
        place = taken.pop()
        if place != here:
            if here is not None:
                kept.append(here)
            return place
    return None


KEPT_STYLES: Final = 1024


class ScreenBelow(Visual):
    """The lines of a screen under a tint, in the same colours as a `BackgroundScreen` of Textual's."""

    def __init__(self, screen: Screen[Any], tint: Color) -> None:
        self.screen = screen
        self.tint = tint
        self._base: RichStyle | None = None
        """The style for text without a colour of its own."""
        self._styles: LRUCache[RichStyle | None, RichStyle] = LRUCache(KEPT_STYLES)
        self._lines: list[tuple[list[Segment], Strip]] = []
        """Each line of the screen as it was, and as it was painted."""

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        base = style.rich_style
        if base != self._base:
            self._base = base
            self._styles.clear()
            self._lines.clear()
        below = [list(strip) for strip in self.screen._compositor.render_strips()[:height]]
        before = self._lines + [([], Strip([]))] * (len(below) - len(self._lines))
        self._lines = [
            old if old[0] == line else (line, Strip(self._tinted(line, base)).adjust_cell_length(width, base))
            for line, old in zip(below, before, strict=False)
        ]
        return [strip for _, strip in self._lines]

    def _tinted(self, line: list[Segment], base: RichStyle) -> list[Segment]:
        tinted = []
        for text, style, _ in line:
            found = self._styles.get(style)
            if found is None:
                (segment,) = BackgroundScreen.process_segments([Segment(text, style)], self.tint)
                found = self._styles[style] = base + segment.style
            tinted.append(Segment(text, found))
        return tinted

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        return self.screen.size.height


FLUSH_S: Final = 0.1
"""Interval in seconds at which a screen polls while anything may change."""

REST_S: Final = 1.0
"""Interval in seconds at which a screen polls when no work is under way."""

AT_ONCE_S: Final = 0.01
"""Delay in seconds of the poll after a command."""

PAUSE_S: Final = 0.001
"""Pause between slices; without one a keypress would wait for ten slices."""

T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, None]]
"""Work for a worker: makes its coroutine only when it starts, so that none is left unawaited by a cancellation."""


async def drive(work: Steps[T]) -> T:
    """Do all slices, yielding to the event loop after each, and return the result."""
    return await in_slices(work, PAUSE_S)


def is_ready(screen: Screen[Any]) -> bool:
    """Return whether the widgets of a screen are all there: mounted, and not being removed."""
    is_leaving = screen._pruning or screen._closing or screen._closed
    return not is_leaving and bool(screen.children) and all(child.is_mounted for child in screen.children)


def is_reachable(node: DOMNode) -> bool:
    """Return whether the user can act on a node: the application, the ready screen on top, or a widget in it."""
    if isinstance(node, App):
        return True
    try:
        screen = node.screen
        is_on_top = screen.app.screen is screen
    except (NoScreen, ScreenStackError):
        return False
    return is_on_top and is_ready(screen) and not node._pruning


class FocusScreen(Screen[ScreenResultType]):
    """A screen that focuses one of its widgets whenever no other is focused."""

    @property
    def focus_home(self) -> Widget | None:
        """The widget that gets the focus when another loses it, such as one that is hidden; None for no widget."""
        return None

    def watch_focused(self, focused: Widget | None) -> None:
        """Focus `focus_home` when nothing is focused, unless the whole terminal has lost the focus."""
        if focused is None and self.focus_home is not None and self.app.app_focus and is_ready(self):
            self.set_focus(self.focus_home)

    _was_shown = False
    """Whether it has been on top before."""

    _below: ScreenBelow | None = None
    """The painter of the screen that shows through; None before its first paint."""

    def render(self) -> RenderableType:
        """Return the background of the widgets: a colour, or the screen below if the colour is translucent."""
        found = super().render()
        if not isinstance(found, BackgroundScreen):
            return found
        if self._below is None or (self._below.screen, self._below.tint) != (found.screen, found.color):
            self._below = ScreenBelow(found.screen, found.color)
        return self._below  # type: ignore[return-value]  # Textual takes visuals here, too

    @on(events.ScreenResume)
    def _keep_new_styles(self, event: events.ScreenResume) -> None:
        """Let Textual style widgets anew only where they may have changed: a new screen is styled already."""
        event.refresh_styles = event.refresh_styles and self._was_shown
        self._was_shown = True

    @on(events.Unmount)
    def _forget_painted_lines(self) -> None:
        """Drop Textual's cache of colours by widget, which keeps a megabyte for each page of help."""
        StylesCache.get_inner_outer.cache_clear()

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Leave the screen; nothing happens when it has been left already."""
        return super().dismiss(result) if is_reachable(self) else AwaitComplete()


class KeysWanted(Message):
    """The user wants to see the keys that a query finds."""

    def __init__(self, query: Query, note: str = "", sort: str | None = None) -> None:
        """`note` says why it may find other keys than were counted where it comes from; without a full stop.

        `sort` is the column of the list that decides which keys come first, such as `size`.
        """
        super().__init__()
        self.query = query
        self.sort = sort
        self.note = SafeText(note)


class ServerLeft(Message):
    """The user wants to go back to the servers that the shown one was chosen from."""


@dataclass
class HoldKeypresses(Message):
    """Hold further keys until the effect of the last one is shown, such as the row that it goes to."""

    is_over: Callable[[], bool]
    """Returns whether that effect is shown."""


class CommandScreen(FocusScreen[ScreenResultType]):
    """A screen with declared commands: its key bindings, footer and lists all run the same Textual actions."""

    SCREEN_COMMANDS: ClassVar[tuple[ScreenCommand, ...]] = ()
    """All commands that can be given on this screen."""
    OPENED_BY: ClassVar[str] = ""
    """The command that opens this screen, which it does not offer itself."""
    ESCAPE_TO_MINIMIZE = False
    BLANK = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES}

    def __init__(self) -> None:
        super().__init__()
        self.footer_bar = FooterBar()
        self._flush_timer: Timer | None = None

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen and its widgets that own actions of commands, by the namespaces of their actions."""
        raise NotImplementedError

    @property
    def conditions(self) -> Conditions:
        raise NotImplementedError

    @property
    def help_subject(self) -> HelpSubject | None:
        """Where the help begins that is asked for here; None for the keys."""
        return None

    @property
    def focused_owners(self) -> list[str]:
        """The owners of commands from the focused widget out to the screen."""
        inside = [] if self.focused is None else self.focused.ancestors_with_self
        found = [owner for node in inside for owner, its in self.action_owners.items() if its is node]
        return found or [owner for owner, its in self.action_owners.items() if its is self]

    @property
    def place(self) -> Place | None:
        """Where the user is, to come back to; None on a screen that is no such place."""
        return None

    def leave_place(self) -> None:
        if self.place is not None:
            self.app.post_message(Leaving(self.place))

    def offered(self) -> list[ScreenCommand]:
        conditions = self.conditions
        return [
            command
            for command in self.SCREEN_COMMANDS
            if command.is_offered(conditions) and command.name != self.OPENED_BY
        ]

    def flush(self) -> None:
        """Show the changes since the last call; does nothing until all widgets are mounted."""
        if is_ready(self):
            self.show_changes()

    def flush_after(self, seconds: float) -> None:
        """Call `flush` once after this time, instead of when it was due."""
        if self._flush_timer is not None:
            self._flush_timer.stop()
        self._flush_timer = self.set_timer(seconds, self.flush)

    def show_changes(self) -> None:
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        """Adapt to a terminal that was resized while another screen covered this one."""
        if self._size and self._size != self.app.size:
            self.post_message(events.Resize(self.app.size, self.app.size))

    def should_notify(self, error: BaseException) -> bool:
        """Return whether the failure of a worker needs a notification; False where the screen shows it anyway."""
        return True

    @on(Worker.StateChanged)
    def _worker_failed(self, event: Worker.StateChanged) -> None:
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None and self.should_notify(error):
            self.notify(failure_notice(error), title=event.worker.description, severity="error", markup=False)


MOST_FRAMES = 12


def failure_text(error: BaseException) -> SafeText:
    """Return the kind of the error and its traceback; neither its message nor any value."""
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    places = [f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]
    lines = ["rtui has failed, the server is unharmed.", f"{type(error).__name__} at", *places]
    return SafeText("\n".join(display_text(line) for line in lines))


def failure_notice(error: BaseException) -> SafeText:
    """Return one line for a failure that costs only a command: its own text if that is meant for users.

    An unexpected exception is logged, and the line says where in rtui it was raised.
    """
    if isinstance(error, RtuiError):
        return error.happened
    if isinstance(error, PatternError | GuardError):
        return display_text(str(error))
    return as_rtui_error(error, "a worker of the interface").happened
