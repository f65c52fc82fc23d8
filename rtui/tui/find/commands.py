"""The commands of the list of found keys, in the order of the help screen."""

from __future__ import annotations

from functools import partial
from typing import Final

from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.sorting import sort_commands

_rows = partial(ScreenCommand, group=Group.FIND, owner=Owner.FOUND)
_find = partial(ScreenCommand, group=Group.FIND, owner=Owner.FIND)

_RUNNING: Final = (Condition.SCANNING, Condition.PAUSED)

FIND_COMMANDS: Final = (
    _rows("cursor_up", ("up", "k"), "Key above", "Move to the key above."),
    _rows("cursor_down", ("down", "j"), "Key below", "Move to the key below."),
    _rows("page_up", ("pageup", "ctrl+b"), "Page up", "Move up by a screenful."),
    _rows("page_down", ("pagedown", "ctrl+f"), "Page down", "Move down by a screenful."),
    _rows("first", ("home", "g"), "First key", "Move to the first key of the list."),
    _rows("last", ("end", "G"), "Last key", "Move to the last key of the list."),
    _find(
        "begin", (), "Search", "Begin a search of a large keyspace, as its cost was said.",
        when=(Condition.READY,), footer=1, label="enter",
    ),
    _find(
        "open", ("enter", "right", "l"), "Go to it",
        "Go to the key in the tree, with its details; escape comes back to the list as it was.",
        when=(Condition.HAS_ROWS,), footer=1,
    ),
    _find("edit", ("slash",), "Query", "Change the query.", footer=2),
    _find("pause", ("p",), "Pause", "Pause the search, or go on with it.", when=_RUNNING, footer=3),
    _find("stop", ("x",), "Stop", "End the search; what was found stays.", when=_RUNNING, footer=4),
    _find("faster", ("plus", "equals_sign"), "Faster", "Search at a faster pace.", when=_RUNNING, label="+"),
    _find("slower", ("minus",), "Slower", "Search at a gentler pace.", when=_RUNNING),
    *sort_commands(Group.FIND, Owner.FIND, footer=5, when=(Condition.HAS_ROWS,)),
    _find("columns", ("c",), "Columns", "Choose the columns; facts that are missing are asked in a new search.",
        footer=8),
    _find("copy_name", ("y",), "Copy", "Copy the name of the key.", when=(Condition.HAS_ROWS,), footer=6,
        call="copy_row"),
    _find("copy_menu", ("Y",), "Copy as…", "Choose what to copy of the key.", when=(Condition.HAS_ROWS,)),
    _find("export", ("w",), "Write", "Write the list to a .txt, .csv, .md or .json file.",
        when=(Condition.HAS_ROWS,), footer=7),
    _find("again", ("R",), "Search again",
        "Ask the server, for what there is now; when sorted by a fact, for the first thousand of all keys by that."),
    _find("cost", ("i",), "Cost", "Show what the search has cost the server: commands, bytes, time."),
    _find("back", ("escape",), "Back", "Go back one step: end a search that is under way, or leave the list.",
        footer=9),
)  # fmt: skip
