"""The private names of Textual that the interface overrides or uses, each with its reason.

They may change with any release of Textual, which is therefore pinned. On an upgrade, check the names that the test of
this module reports, read how Textual uses the others now, then raise `CHECKED_VERSION`. `Toast`, of which only the
style sheet is used, and `StylesCache`, which remembers colours by the widget, come from private modules; `key_name`
gives Textual's name of a character's key.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from textual._styles_cache import StylesCache
from textual.app import App
from textual.dom import DOMNode
from textual.keys import _character_to_key as key_name
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets._toast import Toast

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
    PrivateName(App, "_clipboard", "what was copied can be pasted within the interface"),
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
