"""The commands of the tree and of the details beside it."""

from __future__ import annotations

from functools import partial
from typing import Final

from rtui.tui.kit.choice import sort_commands
from rtui.tui.kit.command import SERVERS_COMMAND, Condition, Group, Owner, ScreenCommand, move_commands

_value = partial(ScreenCommand, group=Group.VALUE, owner=Owner.VALUE, when=(Condition.IN_VALUE,))
_item = partial(ScreenCommand, group=Group.VALUE, owner=Owner.VALUE, when=(Condition.ON_ITEM,))

# fmt: off
VALUE_COMMANDS: Final[tuple[ScreenCommand, ...]] = (
    *move_commands(Owner.ROWS, when=(Condition.DETAIL_OPEN,)),
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
    _value("write", ("w",), "Export", "Export the value to a file that only you can read.", footer=7,
        words="export save dump download"),
    _value("pager", ("P",), "Pager", "Show the value in $PAGER, as safe text or as it is."),
)
"""In the order of the help screen. Keys that the screen around it has, too, do the same thing there to a key."""

SHARED: Final = {"find": "filter", "sort": "sort", "copy": "copy_name", "copy_menu": "copy_menu"}
"""By command of the value, the command of the screen with the same key and the same effect on keys."""
# fmt: on


_move = partial(ScreenCommand, group=Group.MOVE, owner=Owner.TREE)
_tree = partial(ScreenCommand, group=Group.TREE, owner=Owner.TREE)
_rows = partial(ScreenCommand, group=Group.TREE, owner=Owner.BROWSE)
_key = partial(ScreenCommand, group=Group.KEY, owner=Owner.BROWSE)
_detail = partial(ScreenCommand, group=Group.KEY, owner=Owner.DETAIL)
_scan = partial(ScreenCommand, group=Group.SCAN, owner=Owner.SCAN)

# fmt: off
BROWSE_COMMANDS: Final[tuple[ScreenCommand, ...]] = (
    *move_commands(Owner.TREE),
    _move("parent", ("backspace", "u"), "Parent", "Move to the namespace that holds this row."),
    _move("first_sibling", ("left_curly_bracket",), "First sibling", "Move to the first row of this namespace.",
        label="{"),
    _move("last_sibling", ("right_curly_bracket",), "Last sibling", "Move to the last row of this namespace.",
        label="}"),
    _move("jump", ("f", "apostrophe"), "Jump to",
        "Type the beginning of a name to jump to it among the siblings of this row.", label="f '"),
    _tree("enter", ("enter",), "Open", "Open or close a namespace; on a key, go to its details.",
        when=(Condition.ON_ROW,), footer=1),
    _tree("expand", ("right", "l"), "Open", "Open a namespace, or go into an open one; of a key, go to its details."),
    _tree("collapse", ("left", "h"), "Close", "Close a namespace, or go to the one that holds this row."),
    _tree("open_close", ("space",), "Open or mark",
        "Open or close a namespace and stay on it; mark a key for U, or take its mark away."),
    _tree("expand_all", ("asterisk",), "Open all below",
        "Open every namespace below this one (up to one screenful).", when=(Condition.ON_NAMESPACE,)),
    *sort_commands(Group.TREE, Owner.TREE, footer=4, chooser=Owner.BROWSE),
    _rows("schema", ("F",), "Schema",
        "Show the schema in place of the names: one row for all segments that are identifiers, such as "
        "<id> ×50,000; there Enter lists the keys of a row. Again goes back to the names.", footer=9),
    _rows("columns", ("c",), "Columns", "Choose the columns of the tree.", footer=10),
    _rows("narrower", ("left_parenthesis",), "Narrower tree", "Make the tree narrower; so does dragging the border.",
        call="divide(-4)", label="("),
    _rows("wider", ("right_parenthesis",), "Wider tree", "Make the tree wider; so does dragging the border.",
        call="divide(4)", label=")"),
    _rows("filter", ("slash",), "Find",
        "Find keys: plain text is searched in what is loaded, an exact name is looked up, a glob such as user:*:cart "
        "is asked of the server, and terms such as ttl:none size>1M list what they find.", footer=3,
        words="search scan match exists"),
    _rows("keys", ("K",), "Keys",
        "List the keys of the namespace, with columns, by the matching query; add terms with /.",
        when=(Condition.ON_NAMESPACE,), words="export save list"),
    _rows("together", ("U",), "Use together",
        "Say whether a cluster accepts one command on the marked keys: slots, nodes, and a hash tag that would allow "
        "it.", when=(Condition.MARKED,), footer=1),
    _rows("clear_filter", (), "Clear the filter", "Show everything again; scans all keys if that was not done yet.",
        when=(Condition.FILTERED,)),
    _key("focus_next_pane", ("tab",), "Other pane", "Switch focus between tree and details."),
    _detail("value_tab", ("1",), "Value", "Show a preview of the value.", call="show_tab(0)"),
    _detail("slot_tab", ("2",), "Slot", "Show the hash slot and how it is computed.", call="show_tab(1)"),
    _detail("references_tab", ("3",), "References",
        "Show what the value points to and who should point to the key, as the registry says; Enter follows.",
        call="show_tab(2)", when=(Condition.HAS_REGISTRY,)),
    _detail("next_tab", ("right_square_bracket",), "Next tab", "Show the next tab of the details."),
    _detail("previous_tab", ("left_square_bracket",), "Previous tab", "Show the previous tab."),
    _detail("next_page", ("n",), "Next page", "Read the next page of the value.",
        when=(Condition.NEXT_PAGE,), footer=2),
    _detail("previous_page", ("b",), "Previous page", "Go back a page of the value.",
        when=(Condition.PAGE_BEFORE,)),
    _detail("reload", ("r",), "Refresh", "Read the facts and the value of this key again.",
        when=(Condition.ON_KEY,), words="refresh reload get"),
    _key("watch", ("W",), "Watch",
        "Refresh this key, or the visible keys of an open namespace, every few seconds, and mark changes; press again "
        "to stop.", when=(Condition.ON_ROW,), words="monitor follow"),
    _key("copy_name", ("y",), "Copy", "Copy the name as text.", when=(Condition.ON_ROW,), footer=5),
    _key("copy_menu", ("Y",), "Copy as…",
        "Copy the name as escaped bytes, or a redis-cli command for what rtui will not do.", when=(Condition.ON_ROW,)),
    *VALUE_COMMANDS,
    _scan("pause", ("p",), "Pause", "Pause or resume the scan.", when=(Condition.SCANNING, Condition.PAUSED),
        footer=6),
    _scan("faster", ("plus", "equals_sign"), "Faster", "Increase the pace; uses more server time.",
        when=(Condition.SCANNING, Condition.PAUSED), footer=7, label="+"),
    _scan("slower", ("minus",), "Slower", "Decrease the pace.", when=(Condition.SCANNING, Condition.PAUSED)),
    _scan("rescan", ("R",), "Rescan", "Discard the counts and scan again.", owner=Owner.BROWSE,
        words="rescan refresh reload dbsize"),
    _scan("cost", ("i",), "Cost", "Show the cost to the server so far: commands, bytes, CPU time."),
    ScreenCommand("analyse", ("a",), "Analyse",
        "Analyse all keys in one pass: memory, big and hot keys, expiry, slots, findings.",
        Group.ANALYSE, Owner.APP, footer=2, words="analyze report inspect"),
    SERVERS_COMMAND,
    ScreenCommand("databases", ("B",), "Databases", "Browse another database of this server, with key counts.",
        Group.APP, Owner.APP, words="select dbsize swapdb"),
    ScreenCommand("back", ("escape",), "Back", "Go back one step.", Group.APP, Owner.BROWSE,
        when=(Condition.DETAIL_OPEN, Condition.CAN_GO_BACK), footer=2),
)
# fmt: on
