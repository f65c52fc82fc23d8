"""Every command of the interface, declared once: bindings, footer, palette and help all follow from here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from textual.binding import Binding
from textual.keys import format_key


class Group(StrEnum):
    """The headings under which commands are listed."""

    MOVE = "Move"
    TREE = "Tree"
    KEY = "Key under the cursor"
    SCAN = "Scan"
    APP = "Application"


class Scope(Enum):
    """Who carries a command out: a widget, screen or app has a method `action_<id>`, a desk has `<id>`."""

    APP = "app"
    CONNECT = "connect"
    BROWSE = "browse"
    TREE = "tree"
    DETAIL = "detail"
    SCAN = "scan"
    COPY = "copy"


class When(Enum):
    """What must hold for a command to make sense just now."""

    ALWAYS = "always"
    ON_KEY = "the cursor is on a key"
    ON_ROW = "the cursor is on a row"
    ON_NAMESPACE = "the cursor is on a namespace"
    SCANNING = "a scan is under way"
    PAUSED = "the scan is paused"
    SCAN_ENDED = "the scan has ended"
    PAGES = "the value has more pages"
    DETAIL_OPEN = "the detail has the keyboard"
    FILTERED = "a filter is set"
    FAILED = "the connection failed"


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that a user can ask for."""

    id: str
    """Names the method `action_<id>` of its scope."""
    keys: tuple[str, ...]
    """Textual's names of the keys; empty for what only the palette offers."""
    title: str
    """Two or three words, for the footer and the palette."""
    help: str
    """One sentence, for the help screen and the palette."""
    group: Group
    scope: Scope
    when: frozenset[When] = frozenset({When.ALWAYS})
    """The command is offered when any of these holds."""
    footer: int = 0
    """Place in the footer, from the left; 0 keeps it out."""
    label: str = ""
    """How the keys are written where Textual's own names would be clumsy."""

    @property
    def binding_id(self) -> str:
        """The name under which a keymap may move this command to another key."""
        return f"{self.scope.value}.{self.id}"

    @property
    def key_text(self) -> str:
        """The keys as people read them: `↑ k`."""
        return self.label or " ".join(_key_name(key) for key in self.keys)

    @property
    def first_key(self) -> str:
        """The key shown where there is room for one."""
        return self.key_text.split(" ", 1)[0]

    def offered(self, holds: frozenset[When]) -> bool:
        """Say whether the command makes sense when `holds` is what holds."""
        return When.ALWAYS in self.when or not self.when.isdisjoint(holds)


_KEY_NAMES: Final = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "enter": "enter",
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "space": "space",
    "backspace": "bksp",
    "slash": "/",
    "question_mark": "?",
    "asterisk": "*",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "tab": "tab",
}


PRIORITY_KEYS: Final = frozenset({"ctrl+c", "ctrl+q"})
"""These keys work wherever the keyboard is, also while text is typed."""


def _key_name(key: str) -> str:
    """Return how one key is written."""
    if key.startswith("ctrl+"):
        return f"^{key[5:]}"
    return _KEY_NAMES.get(key) or format_key(key)


def _when(*conditions: When) -> frozenset[When]:
    return frozenset(conditions)


COMMANDS: Final[tuple[Command, ...]] = (
    Command("cursor_up", ("up", "k"), "Up", "Move to the row above.", Group.MOVE, Scope.TREE),
    Command("cursor_down", ("down", "j"), "Down", "Move to the row below.", Group.MOVE, Scope.TREE),
    Command("page_up", ("pageup", "ctrl+b"), "Page up", "Move up by a screenful.", Group.MOVE, Scope.TREE),
    Command("page_down", ("pagedown", "ctrl+f"), "Page down", "Move down by a screenful.", Group.MOVE, Scope.TREE),
    Command("first", ("home", "g"), "First", "Move to the first row.", Group.MOVE, Scope.TREE),
    Command("last", ("end", "G"), "Last", "Move to the last row.", Group.MOVE, Scope.TREE),
    Command(
        "parent", ("backspace", "u"), "Parent", "Move to the namespace that holds this row.", Group.MOVE, Scope.TREE
    ),
    Command(
        "first_sibling",
        ("left_curly_bracket",),
        "First sibling",
        "Move to the first row of this namespace.",
        Group.MOVE,
        Scope.TREE,
        label="{",
    ),
    Command(
        "last_sibling",
        ("right_curly_bracket",),
        "Last sibling",
        "Move to the last row of this namespace.",
        Group.MOVE,
        Scope.TREE,
        label="}",
    ),
    Command(
        "jump",
        ("f", "apostrophe"),
        "Jump to",
        "Type the beginning of a name to jump to it among the rows beside this one.",
        Group.MOVE,
        Scope.TREE,
        label="f '",
    ),
    Command(
        "enter",
        ("enter",),
        "Open",
        "Open or close a namespace; on a key, go to its details.",
        Group.TREE,
        Scope.TREE,
        _when(When.ON_ROW),
        footer=1,
    ),
    Command("expand", ("right", "l"), "Open", "Open a namespace, or go into an open one.", Group.TREE, Scope.TREE),
    Command(
        "collapse",
        ("left", "h"),
        "Close",
        "Close a namespace, or go to the one that holds this row.",
        Group.TREE,
        Scope.TREE,
    ),
    Command(
        "open_close", ("space",), "Open or close", "Open or close a namespace and stay on it.", Group.TREE, Scope.TREE
    ),
    Command(
        "expand_all",
        ("asterisk",),
        "Open all below",
        "Open every namespace below this one, as far as a screenful of work allows.",
        Group.TREE,
        Scope.TREE,
        _when(When.ON_NAMESPACE),
    ),
    Command(
        "sort", ("s",), "Sort", "Sort by number of keys, then by name, and back.", Group.TREE, Scope.TREE, footer=4
    ),
    Command(
        "sort_again",
        ("S",),
        "Sort again",
        "Put what arrived since into its place; rows never move by themselves.",
        Group.TREE,
        Scope.TREE,
    ),
    Command("columns", ("c",), "Columns", "Choose the columns of the tree.", Group.TREE, Scope.BROWSE, footer=8),
    Command(
        "filter",
        ("slash",),
        "Filter",
        "Filter: a glob such as user:*:cart is asked of the server, plain text is searched in what is loaded, "
        "an exact name is looked up at once.",
        Group.TREE,
        Scope.BROWSE,
        footer=3,
    ),
    Command(
        "clear_filter", (), "Clear the filter", "Show everything again.", Group.TREE, Scope.BROWSE, _when(When.FILTERED)
    ),
    Command(
        "focus_next_pane",
        ("tab",),
        "Other pane",
        "Give the keyboard to the tree or to the details.",
        Group.KEY,
        Scope.BROWSE,
    ),
    Command("value_tab", ("1",), "Value", "Show a bounded preview of the value.", Group.KEY, Scope.DETAIL),
    Command("slot_tab", ("2",), "Slot", "Show the hash slot, and why it is that one.", Group.KEY, Scope.DETAIL),
    Command(
        "next_tab", ("right_square_bracket",), "Next tab", "Show the next tab of the details.", Group.KEY, Scope.DETAIL
    ),
    Command("previous_tab", ("left_square_bracket",), "Previous tab", "Show the tab before.", Group.KEY, Scope.DETAIL),
    Command(
        "next_page",
        ("n",),
        "Next page",
        "Fetch the next page of the value.",
        Group.KEY,
        Scope.DETAIL,
        _when(When.PAGES),
        footer=2,
    ),
    Command(
        "previous_page",
        ("b",),
        "Page before",
        "Go back a page of the value.",
        Group.KEY,
        Scope.DETAIL,
        _when(When.PAGES),
    ),
    Command(
        "reload",
        ("r",),
        "Look again",
        "Fetch the facts and the value of this key again.",
        Group.KEY,
        Scope.BROWSE,
        _when(When.ON_KEY),
    ),
    Command("copy_name", ("y",), "Copy", "Copy the name as text.", Group.KEY, Scope.COPY, _when(When.ON_ROW), footer=5),
    Command(
        "copy_menu",
        ("Y",),
        "Copy as…",
        "Copy the name as escaped bytes, or a redis-cli command for what rtui will not do.",
        Group.KEY,
        Scope.COPY,
        _when(When.ON_ROW),
    ),
    Command(
        "pause",
        ("p",),
        "Pause",
        "Pause the scan, or go on with it.",
        Group.SCAN,
        Scope.SCAN,
        _when(When.SCANNING, When.PAUSED),
        footer=6,
    ),
    Command(
        "faster",
        ("plus", "equals_sign"),
        "Faster",
        "Scan at a faster pace; the server gives more of its time.",
        Group.SCAN,
        Scope.SCAN,
        _when(When.SCANNING, When.PAUSED),
        footer=7,
        label="+",
    ),
    Command(
        "slower",
        ("minus",),
        "Slower",
        "Scan at a gentler pace.",
        Group.SCAN,
        Scope.SCAN,
        _when(When.SCANNING, When.PAUSED),
    ),
    Command("rescan", ("R",), "Scan again", "Forget what was counted and scan again.", Group.SCAN, Scope.BROWSE),
    Command(
        "cost", ("i",), "Cost", "Show what rtui has cost the server: commands, bytes, time.", Group.SCAN, Scope.SCAN
    ),
    Command(
        "back",
        ("escape",),
        "Back",
        "Go back one step: close what was opened last.",
        Group.APP,
        Scope.BROWSE,
        _when(When.DETAIL_OPEN, When.FILTERED),
        footer=9,
    ),
    Command(
        "retry", ("enter", "r"), "Try again", "Connect again.", Group.APP, Scope.CONNECT, _when(When.FAILED), footer=1
    ),
    Command(
        "redraw",
        ("ctrl+l",),
        "Redraw",
        "Paint everything again, if something else wrote to the terminal.",
        Group.APP,
        Scope.APP,
    ),
    Command("theme", ("t",), "Theme", "Choose another theme.", Group.APP, Scope.APP),
    Command(
        "help",
        ("question_mark", "f1"),
        "Help",
        "Show every command and its keys.",
        Group.APP,
        Scope.APP,
        footer=90,
        label="?",
    ),
    Command(
        "command_palette", ("ctrl+p",), "Commands", "Search all commands by name.", Group.APP, Scope.APP, footer=91
    ),
    Command(
        "quit",
        ("q", "ctrl+q", "ctrl+c"),
        "Quit",
        "Leave rtui; the server is left as it was.",
        Group.APP,
        Scope.APP,
        footer=92,
    ),
)
"""All commands, in the order of the help screen."""


BY_BINDING_ID: Final = {command.binding_id: command for command in COMMANDS}
"""Each command by the id of its binding."""


def commands_of(scope: Scope) -> tuple[Command, ...]:
    """Return the commands that a scope carries out."""
    return tuple(command for command in COMMANDS if command.scope is scope)


def bindings(scope: Scope, action: str | None = None) -> list[Binding]:
    """Return Textual's bindings for the commands of a scope; `action` is a form with a place for the binding's id."""
    return [
        Binding(
            key,
            command.id if action is None else action.format(command.binding_id),
            command.title,
            show=False,
            id=command.binding_id,
            key_display=command.key_text,
            priority=key in PRIORITY_KEYS,
        )
        for command in commands_of(scope)
        for key in command.keys
    ]


def footer_commands(scopes: Iterable[Scope], holds: frozenset[When]) -> list[Command]:
    """Return what the footer shows, in its order, for the scopes that can be reached just now."""
    reachable = frozenset(scopes)
    shown = [c for c in COMMANDS if c.footer and c.scope in reachable and c.offered(holds)]
    return sorted(shown, key=lambda command: command.footer)
