"""The terminal: a driver that writes only differences, keys that arrive in one packet, filters of painted lines.

`OVERRIDDEN` and `USED` list the private names of Textual that the interface overrides or uses, each with its reason.
They may change with any release of Textual, which is therefore pinned. On an upgrade, check the names that the test of
this list reports, read how Textual uses the others now, then raise `CHECKED_VERSION`. `Toast`, of which only the
style sheet is used, and `StylesCache`, which remembers colours by the widget, come from private modules; `key_name`
gives Textual's name of a character's key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache
from io import TextIOWrapper
from typing import Final, NamedTuple, TextIO

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual._styles_cache import StylesCache
from textual.app import App
from textual.color import Color
from textual.dom import DOMNode
from textual.driver import Driver
from textual.filter import LineFilter
from textual.keys import _character_to_key as key_name
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets._toast import Toast

from rtui.keyspace.text.display import without_hostile
from rtui.tui.kit.output_diff import OutputDiff

__all__ = ["CHECKED_VERSION", "OVERRIDDEN", "USED", "PrivateName", "StylesCache", "Toast", "key_name"]

CHECKED_VERSION: Final = "8.2.8"
"""The version of Textual on which all of this was checked."""


class PrivateName(NamedTuple):
    """A private name of a Textual class."""

    owner: type
    name: str
    reason: str


OVERRIDDEN: Final = (
    PrivateName(App, "_background_screens", "a screen under an opaque one is not painted, so its changes cost nothing"),
    PrivateName(App, "_fatal_error", "the traceback would show values of the user's keys"),
    PrivateName(Widget, "_set_dirty", "lines that are kept painted must be painted again when a widget is changed"),
    PrivateName(OptionList, "_move_page", "Textual's fails where there is no room for an entry"),
)
"""Methods and properties that subclasses override; the overriding ones call Textual's where it applies."""

USED: Final = (
    PrivateName(App, "_close_messages_no_wait", "ends the application after a fatal error, as Textual does"),
    PrivateName(App, "_clipboard", "copied text can be pasted within the interface"),
    PrivateName(App, "_context", "a frame of a replay is rendered outside the application's tasks"),
    PrivateName(App, "_driver", "to write to the terminal, and to have all of it painted again"),
    PrivateName(App, "_exception", "the fatal error of which the message tells"),
    PrivateName(App, "_exit_renderables", "what is printed after the application has ended"),
    PrivateName(App, "_screen_stack", "the screen on top, also while there is none"),
    PrivateName(App, "_start_widget", "starts a scrollbar of our own, as Textual starts its own"),
    PrivateName(MessagePump, "_closed", "whether a screen has been removed"),
    PrivateName(MessagePump, "_closing", "whether a screen is being removed"),
    PrivateName(DOMNode, "_bindings", "the key bindings of a widget, to run its actions without bubbling"),
    PrivateName(DOMNode, "_pruning", "whether a node is being removed"),
    PrivateName(Screen, "_compositor", "renders the lines of a screen below another, and of a frame of a replay"),
    PrivateName(Screen, "_dirty_widgets", "whether a frame of a replay is painted"),
    PrivateName(Screen, "_push_result_callback", "the first screen has none, without which it can't be switched"),
    PrivateName(Screen, "_result_callbacks", "whether a screen has one"),
    PrivateName(Widget, "_size", "the size of a screen before it is resized to that of the terminal"),
    PrivateName(Widget, "_vertical_scrollbar", "where a widget keeps its scrollbar, which is one of ours"),
    PrivateName(ScrollView, "_scroll_update", "sets the scrollbars without laying out the whole screen"),
)
"""Names that are read or called."""


class MaybeGone:
    """The terminal to write to; when it has hung up, output is dropped."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


def terminal_driver(driver_class: type[Driver], on_message: Callable[[Message], None]) -> type[Driver]:
    """Return a subclass of the platform's driver that writes differences and reports input as early as possible.

    `on_message` is called with each message before the application gets it, from the thread that reads the terminal.
    """

    class TerminalDriver(driver_class):  # type: ignore[misc, valid-type]
        """Reduces each frame to the cells that differ from the screen."""

        @cached_property
        def output_diff(self) -> OutputDiff:
            return OutputDiff()

        def write(self, data: str) -> None:
            super().write(self.output_diff.rewrite(data))

        def start_application_mode(self) -> None:
            """Enter the application mode; output to a terminal that has hung up is dropped."""
            if isinstance(file := getattr(self, "_file", None), TextIOWrapper):
                self._file = MaybeGone(file)
            super().start_application_mode()

        def send_message(self, message: Message) -> None:
            """Report a message, then send it to the application; a resized terminal is painted from nothing."""
            on_message(message)
            if isinstance(message, events.Resize):
                self.output_diff.resize(message.size.width, message.size.height)
            super().send_message(message)

    return TerminalDriver


def forget_screen(driver: Driver | None) -> None:
    """Forget the cells of the screen, so that the driver writes everything that is painted next."""
    output_diff = getattr(driver, "output_diff", None)
    if isinstance(output_diff, OutputDiff):
        output_diff.forget()


def disable_input(driver: Driver | None) -> None:
    """Let the driver read no more, as of a terminal that may be gone."""
    if driver is not None:
        driver.disable_input()


def write_to(driver: Driver | None, sequence: str) -> None:
    if driver is not None:
        driver.write(sequence)
        driver.flush()


MOUSE_MODES: Final = ("1000", "1003", "1015", "1006")
"""The modes in which Textual has the terminal report the mouse."""


def report_mouse(driver: Driver | None, *, is_wanted: bool) -> None:
    """Let the terminal report the mouse, or keep it for selecting text."""
    write_to(driver, "".join(f"\x1b[?{mode}{'h' if is_wanted else 'l'}" for mode in MOUSE_MODES))


LONGEST_S: Final = 2.0
"""Seconds that a key waits for the previous one at most, even if that is not done."""

LOOK_S: Final = 0.02
"""Interval in seconds at which the widget of the previous key is checked for being removed."""

HELD_S: Final = 1.0
"""Seconds that keys wait at most for work that the last one began,"""

ENDS_WAITING: Final = frozenset({"escape", "ctrl+c", "ctrl+q"})
"""and no longer after one of these."""

ROUNDS: Final = 2
"""Times that a key is followed: messages that its widget posts come up behind the key."""


class KeySerialiser:
    """Lets keys that arrive in one packet through one after the other, such as a filter after the key that opens it.

    A key bubbles from the focused widget up to the application, one message queue a step, and only the application
    looks up its binding. So the next key, if it were sent at once, would go to the widget that was focused before. Each
    key is followed by a callback on the same way through the queues, and by a second one behind the messages that the
    widget posts for it, such as that a row was chosen. The next key is let through when that arrives, or when a widget
    on the way is gone.
    """

    def __init__(self, app: App[int], now_s: Callable[[], float]) -> None:
        """`now_s` returns seconds of a monotonic clock."""
        self._app = app
        self._now_s = now_s
        self._waiting: deque[events.Key] = deque()
        self._current: events.Key | None = None
        self._since_s = 0.0
        self._at: DOMNode | None = None
        """The node in whose queue the callback is."""
        self._timer: Timer | None = None
        self._is_over: Callable[[], bool] | None = None
        """Returns whether the work begun by the last key is over; None if it began no work."""
        self._held_s = 0.0

    def hold(self, is_over: Callable[[], bool]) -> None:
        """Hold keys until work is over that the last one began, such as going to a row."""
        self._is_over, self._held_s = is_over, self._now_s()

    @property
    def _is_held(self) -> bool:
        if self._is_over is None:
            return False
        is_ended = any(key.key in ENDS_WAITING for key in self._waiting)
        if is_ended or self._is_over() or self._now_s() - self._held_s >= HELD_S:
            self._is_over = None
        return self._is_over is not None

    def accept(self, key: events.Key) -> bool:
        """Return whether to handle a key now; one that has to wait is posted to the application again."""
        if key is self._current and not self._is_held:
            return True
        if key is self._current:  # it was let through before what the key before it began was known
            self._current = None
            self._waiting.appendleft(key)
        else:
            self._waiting.append(key)
        if (self._current is None or self._is_lost) and not self._is_held:
            self._current = self._waiting.popleft()
            self._since_s, self._at = self._now_s(), None
            if self._current is key:
                return True
            self._app.post_message(self._current)
        self._look_later()
        return False

    def follow(self, key: events.Key, node: DOMNode) -> None:
        self._follow(key, node, node, ROUNDS)

    def _follow(self, key: events.Key, node: DOMNode, first: DOMNode, rounds: int) -> None:
        """Put a callback behind the key in the queue of `node`, which goes on with the parent of that."""
        if key is not self._current:
            return
        self._at = node
        if node is self._app or node.parent is None:
            is_posted = node.call_later(self._end_round, key, first, rounds - 1)
        else:
            is_posted = node.call_later(self._follow, key, node.parent, first, rounds)
        if not is_posted:
            self._let_next_through()

    def _end_round(self, key: events.Key, first: DOMNode, rounds: int) -> None:
        if key is self._current and rounds:
            self._follow(key, first, first, rounds)
        elif key is self._current:
            self._let_next_through()

    def _let_next_through(self) -> None:
        self._current, self._at = None, None
        if self._waiting and not self._is_held:
            self._current, self._since_s = self._waiting.popleft(), self._now_s()
            self._app.post_message(self._current)

    @property
    def _is_lost(self) -> bool:
        """Whether nothing will come of waiting any longer."""
        node = self._at
        is_gone = node is not None and (node._closing or node._closed)
        return is_gone or self._now_s() - self._since_s >= LONGEST_S

    def _look_later(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = self._app.set_timer(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._current is None or self._is_lost:
            self._let_next_through()
        self._look_later()


_TWO_CELLS: Final = {"≥ ": ">=", "≤ ": "<=", "≈ ": "~ "}
"""Pairs with a closer rendering in two plain characters."""

_LOOKALIKES: Final = {
    "#": "█▉▊▋▌", "|": "▍▎▏▐▕│┃║╎┆┊╏‖", "-": "─━═╌┄┈╍▔▁·–—", "+": "┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝┏┓┗┛╺╸╴╶±✓",
    " ": "▀▄▂▃▅▆▇░▒▓\u00a0", "v": "▾▼↓", ">": "▸▶→›≥", "^": "▲↑", "<": "◀‹←≤", "*": "●•", "o": "○", "~": "…≈", "!": "≠",
    "x": "×✗", "u": "µ", "/": "⏎", "@": "⟳", '"': "“”", "'": "‘’",
}  # fmt: skip
"""Characters beyond ASCII of one cell, by the ASCII character that stands for them."""

_ONE_CELL: Final = {ord(character): plain for plain, characters in _LOOKALIKES.items() for character in characters}


_CONSOLE: Final = str.maketrans(
    {character: plain for plain, characters in {
        "█": "▉▊▋▆▇", "▌": "▍", "│": "▎▏▕┃║╎┆┊╏‖", "▄": "▃▅", "_": "▁▂", "▀": "▔", "─": "━═╌┄┈╍╺╸╴╶–—",
        "┌": "╭┏╔", "┐": "╮┓╗", "└": "╰┗╚", "┘": "╯┛╝", "√": "✓", "x": "×✗", "▼": "▾", "►": "▸▶›", "◄": "◀‹",
        "»": "…", "•": "●", "¶": "⏎", "@": "⟳", "^": "⇧", "!": "≠", '"': "“”", "'": "‘’", " ": "\u00a0",
    }.items() for character in characters}
)  # fmt: skip
"""Replacements for characters that the fonts of the Linux console lack: they have only code page 437."""


class SanitisingFilter(LineFilter):
    """Replaces characters that must never reach a terminal by blanks of the same width, wherever they come from."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all((segment.text.isprintable() and segment.text.isascii()) or segment.control for segment in segments):
            return segments
        return [segment if segment.control else Segment(harmless(segment.text), segment.style) for segment in segments]


class AsciiFilter(LineFilter):
    """Writes every character beyond ASCII as a plain one of the same width, for terminals that draw nothing else."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            one if one.control or one.text.isascii() else Segment(self.drawn(one.text), one.style) for one in segments
        ]

    def drawn(self, text: str) -> str:
        return plain(text)


class ConsoleFilter(AsciiFilter):
    """Draws with the characters of the Linux console's fonts; letters of names stay as they are."""

    def drawn(self, text: str) -> str:
        return text.translate(_CONSOLE)


@lru_cache(4096)
def harmless(text: str) -> str:
    """Return the text with hostile characters removed, or replaced by blanks where they have a width."""
    return without_hostile(text, lambda character: " " * cell_len(character))


@lru_cache(4096)
def plain(text: str) -> str:
    """Return the text in ASCII, cell for cell."""
    for pair, likeness in _TWO_CELLS.items():
        text = text.replace(pair, likeness)
    text = text.translate(_ONE_CELL)
    if text.isascii():
        return text
    return "".join(ch if ch.isascii() else "?" * cell_len(ch) for ch in text)
