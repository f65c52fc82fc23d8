"""The commands of the command log, in the order of the help screen."""

from __future__ import annotations

from functools import partial
from typing import Final

from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand

_entries = partial(ScreenCommand, group=Group.LOG, owner=Owner.ENTRIES)
_log = partial(ScreenCommand, group=Group.LOG, owner=Owner.LOG)

LOG_COMMANDS: Final = (
    _entries("cursor_up", ("up", "k"), "Entry before", "Move to the entry above; new ones no longer move the list."),
    _entries("cursor_down", ("down", "j"), "Entry after", "Move to the entry below."),
    _entries("page_up", ("pageup", "ctrl+b"), "Page up", "Move up by a screenful."),
    _entries("page_down", ("pagedown", "ctrl+f"), "Page down", "Move down by a screenful."),
    _entries("first", ("home", "g"), "Oldest", "Move to the oldest entry that is kept."),
    _entries("last", ("end", "G"), "Latest", "Move to the latest entry, and stay on what comes.", footer=5),
    _entries(
        "open", ("enter", "right", "l"), "Whole entry",
        "Show the whole entry: all commands of it with their arguments, bytes and times. What is asked at once about "
        "the server is one entry here.",
        when=(Condition.HAS_ROWS,), footer=1,
    ),
    _log(
        "filter", ("slash",), "Filter",
        "Show the entries with a text in their commands, purpose or connection; !server facts those without it.",
        footer=2,
    ),
    _log(
        "copy", ("y",), "Copy", "Copy the command as a line for redis-cli in a shell.",
        when=(Condition.HAS_ROWS,), footer=3,
    ),
    _log("back", ("escape",), "Back", "End the filter, or leave the command log.", footer=4),
)  # fmt: skip
