"""Recording the user's input to the application: keys, clicks, pasted text and sizes, never a password.

Text typed into a field for passwords is recorded as asterisks.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from textual import events
from textual.app import App
from textual.timer import Timer
from textual.widgets import Input as InputField

import rtui
from rtui.server.options import BrowseOptions
from rtui.server.recording.document import Cursor, Key, Mouse, Paste, Resize
from rtui.server.recording.recorder import Recorder, session_header
from rtui.server.wire.target import Target
from rtui.tui.kit.settings import Settings, place_of, saved_queries

_MOUSE: Final[dict[type[events.MouseEvent], Any]] = {
    events.MouseDown: "down",
    events.MouseUp: "up",
    events.MouseScrollDown: "scroll_down",
    events.MouseScrollUp: "scroll_up",
    events.MouseScrollLeft: "scroll_left",
    events.MouseScrollRight: "scroll_right",
}

MAX_NAME_BYTES: Final = 1 << 15
"""The cursor on a longer name is not recorded."""

MOUSE_EVENTS: Final = {what: event for event, what in _MOUSE.items()}
"""The classes of events by the words for them in a recording."""


RECORDER_POLL_S: Final = 0.1
"""Interval in seconds at which the cursor's row is recorded, and the end of the recording is noticed."""


class InputRecording:
    """Records the input of an application, and says when nothing is recorded any more."""

    def __init__(self, recorder: Recorder, app: App[Any]) -> None:
        self._recorder, self._app = recorder, app
        self._timer: Timer | None = None

    def begin(self, options: BrowseOptions, settings: Settings) -> None:
        """Begin the recording of a session that is about to connect; other servers' saved queries stay out of it."""
        queries = saved_queries(settings, options.target)
        kept = msgspec.structs.replace(settings, queries={place_of(Target()): queries} if queries else {})
        size, version = self._app.size, rtui.__version__
        header = session_header(self._recorder, options, size=size, settings=msgspec.to_builtins(kept), version=version)
        self._recorder.begin(header)

    def watch(self) -> None:
        self._timer = self._app.set_interval(RECORDER_POLL_S, self._look)

    def _look(self) -> None:
        self._add_cursor()
        if self._recorder.ended is not None and self._timer is not None:
            self._timer.stop()
            self._app.notify(self._recorder.why_ended, title="Recording", severity="warning", markup=False)

    def add(self, event: events.Event) -> None:
        """Record an event that reaches the application, if it is an input."""
        recorder = self._recorder
        if recorder.ended is not None:
            return
        self._add_cursor()
        focused = self._app.focused if self._app.screen_stack else None
        at_ms, is_secret = recorder.at_ms, isinstance(focused, InputField) and focused.password
        if isinstance(event, events.Key):
            key, character = ("asterisk", "*") if event.is_printable and is_secret else (event.key, event.character)
            recorder.add(Key(at_ms, key[:64], None if character is None else character[:16]))
        elif isinstance(event, events.Paste):
            recorder.add(Paste(at_ms, "*" if is_secret else event.text[: 1 << 20]))
        elif isinstance(event, events.Resize):
            recorder.add(Resize(at_ms, min(1000, max(1, event.size.width)), min(1000, max(1, event.size.height))))
        elif isinstance(event, events.MouseEvent) and type(event) in _MOUSE:
            what, x, y = _MOUSE[type(event)], min(1000, int(event.x)), min(1000, int(event.y))
            recorder.add(Mouse(at_ms, what, x, y, event.button, event.shift, event.meta, event.ctrl))

    def _add_cursor(self) -> None:
        """Record the row of the tree under the cursor, if it has changed."""
        recorder = self._recorder
        place = getattr(self._app.screen, "cursor_place", None) if self._app.screen_stack else None
        if recorder.ended is not None or place is None or place == recorder.cursor_place:
            return
        recorder.cursor_place = place
        is_key, name = place
        if len(name) <= MAX_NAME_BYTES:
            recorder.add(Cursor(recorder.at_ms, is_key, name.decode("latin-1")))
