"""The commands of the value beside the tree, given while it has the keyboard."""

from __future__ import annotations

from functools import partial
from typing import Final

from rtui.tui.kit.command import Condition, Group, Owner, ScreenCommand
from rtui.tui.kit.sorting import sort_commands

_view = partial(ScreenCommand, group=Group.VALUE, owner=Owner.ROWS, when=(Condition.DETAIL_OPEN,))
_value = partial(ScreenCommand, group=Group.VALUE, owner=Owner.VALUE, when=(Condition.IN_VALUE,))
_item = partial(ScreenCommand, group=Group.VALUE, owner=Owner.VALUE, when=(Condition.ON_ITEM,))

# fmt: off
VALUE_COMMANDS: Final[tuple[ScreenCommand, ...]] = (
    _view("cursor_up", ("up", "k"), "Row above", "Move to the row above."),
    _view("cursor_down", ("down", "j"), "Row below", "Move to the row below."),
    _view("page_up", ("pageup", "ctrl+b"), "Page up", "Move up by a screenful."),
    _view("page_down", ("pagedown", "ctrl+f"), "Page down", "Move down by a screenful."),
    _view("first", ("home", "g"), "First row", "Move to the first row."),
    _view("last", ("end", "G"), "Last row", "Move to the last row."),
    _item("open", ("enter",), "Open",
        "Show the whole value of this row, decoded; open or close a map or list; beside a namespace, go to the key or "
        "namespace of the row, or list the keys that it stands for.", when=(Condition.CAN_OPEN,), footer=1),
    _item("unfold", ("right", "l"), "Unfold", "Open a map or list of a decoded value, or go into it."),
    _item("fold", ("left", "h"), "Fold",
        "Close a map or list, or go to the one that holds this row; elsewhere go back, to the tree at last."),
    _item("fold_or_unfold", ("space",), "Fold or unfold", "Open or close a map or list and stay on it."),
    _value("find", ("slash",), "Find inside",
        "Find fields, members, items or entries by a part of them or by a glob, or text in what is shown.", footer=3),
    _value("go_to", ("o",), "Go to",
        "Go to an index, a field, a member, a score, a rank, an entry id or a time; 10..20 shows a range.", footer=4),
    *sort_commands(Group.VALUE, Owner.VALUE, when=(Condition.IN_VALUE,)),
    _value("decode", ("d",), "Decoder",
        "Choose a decoder, of those that fit or of all others: it is remembered for the pattern of the key. In a table "
        "show rows as they are stored, or as what they mean.",
        when=(Condition.DECODED,), footer=6),
    _item("copy", ("y",), "Copy", "Copy the value of this row.", footer=5),
    _value("copy_menu", ("Y",), "Copy as…",
        "Copy the redis-cli command that reads this row, its value, field, index, score or id.", footer=5),
    _value("copy_command", ("C",), "Copy command", "Copy the redis-cli command that reads this row, for a shell."),
    _value("write", ("w",), "Write", "Write the value to a file that only you can read.", footer=7),
    _value("pager", ("P",), "Pager", "Show the value in $PAGER, as safe text or as it is."),
)
"""In the order of the help screen. Keys that the screen around it has, too, do the same thing there to a key."""

SHARED: Final = {"find": "filter", "sort": "sort", "copy": "copy_name", "copy_menu": "copy_menu"}
"""By a command of the value, the one of the screen that has the same key, and does the same thing to keys."""
# fmt: on
