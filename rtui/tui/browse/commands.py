"""The commands of the tree and of the details beside it, and what holds of both for the commands that need it."""

from __future__ import annotations

from typing import Final

from rtui.keyspace.rows.rows import Row, RowKind
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.scan.progress import ScanState
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.kit.command import Command, Condition, Conditions, Group, Owner

# fmt: off
BROWSE_COMMANDS: Final[tuple[Command, ...]] = (
    Command("cursor_up", ("up", "k"), "Up", "Move to the row above.", Group.MOVE, Owner.TREE),
    Command("cursor_down", ("down", "j"), "Down", "Move to the row below.", Group.MOVE, Owner.TREE),
    Command("page_up", ("pageup", "ctrl+b"), "Page up", "Move up by a screenful.", Group.MOVE, Owner.TREE),
    Command("page_down", ("pagedown", "ctrl+f"), "Page down", "Move down by a screenful.", Group.MOVE, Owner.TREE),
    Command("first", ("home", "g"), "First", "Move to the first row.", Group.MOVE, Owner.TREE),
    Command("last", ("end", "G"), "Last", "Move to the last row.", Group.MOVE, Owner.TREE),
    Command("parent", ("backspace", "u"), "Parent", "Move to the namespace that holds this row.", Group.MOVE,
            Owner.TREE),
    Command("first_sibling", ("left_curly_bracket",), "First sibling", "Move to the first row of this namespace.",
            Group.MOVE, Owner.TREE, label="{"),
    Command("last_sibling", ("right_curly_bracket",), "Last sibling", "Move to the last row of this namespace.",
            Group.MOVE, Owner.TREE, label="}"),
    Command("jump", ("f", "apostrophe"), "Jump to",
            "Type the beginning of a name to jump to it among the rows beside this one.", Group.MOVE, Owner.TREE,
            label="f '"),
    Command("enter", ("enter",), "Open", "Open or close a namespace; on a key, go to its details.", Group.TREE,
            Owner.TREE, (Condition.ON_ROW,), footer=1),
    Command("expand", ("right", "l"), "Open", "Open a namespace, or go into an open one.", Group.TREE, Owner.TREE),
    Command("collapse", ("left", "h"), "Close", "Close a namespace, or go to the one that holds this row.",
            Group.TREE, Owner.TREE),
    Command("open_close", ("space",), "Open or close", "Open or close a namespace and stay on it.", Group.TREE,
            Owner.TREE),
    Command("expand_all", ("asterisk",), "Open all below",
            "Open every namespace below this one, as far as a screenful of work allows.", Group.TREE, Owner.TREE,
            (Condition.ON_NAMESPACE,)),
    Command("sort", ("s",), "Sort", "Sort by number of keys, then by name, and back.", Group.TREE, Owner.TREE,
            footer=4),
    Command("sort_again", ("S",), "Sort again",
            "Put what arrived since into its place; rows never move by themselves.", Group.TREE, Owner.TREE),
    Command("columns", ("c",), "Columns", "Choose the columns of the tree.", Group.TREE, Owner.BROWSE, footer=8),
    Command("filter", ("slash",), "Filter",
            "Filter: a glob such as user:*:cart is asked of the server, plain text is searched in what is loaded, "
            "an exact name is looked up at once.", Group.TREE, Owner.BROWSE, footer=3),
    Command("clear_filter", (), "Clear the filter", "Show everything again.", Group.TREE, Owner.BROWSE,
            (Condition.FILTERED,)),
    Command("focus_next_pane", ("tab",), "Other pane", "Give the keyboard to the tree or to the details.", Group.KEY,
            Owner.BROWSE),
    Command("value_tab", ("1",), "Value", "Show a bounded preview of the value.", Group.KEY, Owner.DETAIL,
            call="show_tab(0)"),
    Command("slot_tab", ("2",), "Slot", "Show the hash slot, and why it is that one.", Group.KEY, Owner.DETAIL,
            call="show_tab(1)"),
    Command("next_tab", ("right_square_bracket",), "Next tab", "Show the next tab of the details.", Group.KEY,
            Owner.DETAIL),
    Command("previous_tab", ("left_square_bracket",), "Previous tab", "Show the tab before.", Group.KEY,
            Owner.DETAIL),
    Command("next_page", ("n",), "Next page", "Fetch the next page of the value.", Group.KEY, Owner.DETAIL,
            (Condition.PAGES,), footer=2),
    Command("previous_page", ("b",), "Page before", "Go back a page of the value.", Group.KEY, Owner.DETAIL,
            (Condition.PAGES,)),
    Command("reload", ("r",), "Look again", "Fetch the facts and the value of this key again.", Group.KEY,
            Owner.DETAIL, (Condition.ON_KEY,)),
    Command("copy_name", ("y",), "Copy", "Copy the name as text.", Group.KEY, Owner.BROWSE, (Condition.ON_ROW,),
            footer=5),
    Command("copy_menu", ("Y",), "Copy as…",
            "Copy the name as escaped bytes, or a redis-cli command for what rtui will not do.", Group.KEY,
            Owner.BROWSE, (Condition.ON_ROW,)),
    Command("pause", ("p",), "Pause", "Pause the scan, or go on with it.", Group.SCAN, Owner.SCAN,
            (Condition.SCANNING, Condition.PAUSED), footer=6),
    Command("faster", ("plus", "equals_sign"), "Faster", "Scan at a faster pace; the server gives more of its time.",
            Group.SCAN, Owner.SCAN, (Condition.SCANNING, Condition.PAUSED), footer=7, label="+"),
    Command("slower", ("minus",), "Slower", "Scan at a gentler pace.", Group.SCAN, Owner.SCAN,
            (Condition.SCANNING, Condition.PAUSED)),
    Command("rescan", ("R",), "Scan again", "Forget what was counted and scan again.", Group.SCAN, Owner.BROWSE),
    Command("cost", ("i",), "Cost", "Show what rtui has cost the server: commands, bytes, time.", Group.SCAN,
            Owner.SCAN),
    Command("analyse", ("a",), "Analyse",
            "Show what holds the memory, is big, hot, expires; by one pass over all keys.", Group.ANALYSE, Owner.APP,
            footer=2),
    Command("back", ("escape",), "Back", "Go back one step: close what was opened last.", Group.APP, Owner.BROWSE,
            (Condition.DETAIL_OPEN, Condition.CAN_GO_BACK), footer=9),
)
"""The commands of the tree and its details, in the order of the help screen."""
# fmt: on


def browse_conditions(status: BrowsingStatus, detail: Detail, cursor: Row | None) -> Conditions:
    """Return what holds of the scan, of the details and of the row under the cursor."""
    state, preview = status.progress.state, detail.preview
    found = {
        Condition.SCANNING: not state.is_over and state is not ScanState.PAUSED,
        Condition.PAUSED: state is ScanState.PAUSED,
        Condition.ON_KEY: detail.key is not None,
        Condition.ON_ROW: cursor is not None or detail.key is not None,
        Condition.ON_NAMESPACE: cursor is not None and cursor.kind is RowKind.NAMESPACE,
        Condition.PAGES: preview is not None and bool(preview.next_page or preview.previous_page),
    }
    return frozenset(condition for condition, holds in found.items() if holds)
