"""Declared commands: from one declaration follow the key bindings, the footer, the list of commands and the help.

A command names the Textual action that carries it out and the screen or widget that owns the action. The owner's
namespace is resolved by the application (`CommandScreen.action_owners`), so a key that is bound on the screen may lead
to an action of one of its widgets, whatever has the focus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import partial
from typing import Final, NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import format_key

from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.matching import did_you_mean
from rtui.tui.kit.terminal import key_name


class Group(StrEnum):
    """The headings under which commands are listed."""

    TREE = "Tree"
    KEY = "Key under the cursor"
    VALUE = "Value, when focused"
    SCAN = "Scan"
    ANALYSE = "Analyse"
    TABLE = "Tables of an analysis"
    FIND = "Keys found by a query"
    SQL = "SQL"
    LOG = "Command log"
    SERVER = "Server"
    APP = "Application"
    MOVE = "Move"


class Owner(StrEnum):
    """The owner of a command, whose `action_...` method runs it; the value is the namespace of Textual's action."""

    APP = "app"
    CONNECT = "connect"
    BROWSE = "browse"
    TREE = "tree"
    DETAIL = "detail"
    VALUE = "value"
    ROWS = "rows"
    SCAN = "scan"
    ANALYSE = "analyse"
    PANEL = "panel"
    TABLE = "table"
    LOG = "log"
    ENTRIES = "entries"
    FIND = "find"
    FOUND = "found"
    SQL = "sql"
    SERVER = "server"
    FLEET = "fleet"


RULES_PAGE: Final = SafeText("Rules")


class HelpSubject(NamedTuple):
    """Where the help is to begin."""

    page: SafeText
    term: str = ""
    """The beginning of the entry on it; empty for the top of the page."""


class Condition(Enum):
    """A condition that a command may need in order to be offered."""

    ON_KEY = "the cursor is on a key"
    ON_ROW = "the cursor is on a row"
    ON_NAMESPACE = "the cursor is on a namespace"
    SCANNING = "a scan is running"
    PAUSED = "the scan is paused"
    NEXT_PAGE = "the value has a next page"
    PAGE_BEFORE = "the value has a previous page"
    DETAIL_OPEN = "the details have focus"
    IN_VALUE = "the value has focus"
    ON_ITEM = "the cursor is on a row of a value"
    CAN_OPEN = "the row under the cursor of a value can be opened"
    DECODED = "the value may be shown by several decoders"
    HAS_REGISTRY = "there is a registry"
    MARKED = "keys are marked"
    FILTERED = "a filter is set"
    CAN_GO_BACK = "there is a step back"
    FAILED = "the connection failed"
    LIVE = "there is a server to ask"
    READY = "no run is active and the server can be reached"
    ON_ENTRY = "the row under the cursor leads to a key or a namespace"
    SEVERAL_LISTS = "the panel has several tables"
    ZOOMED = "a namespace is zoomed into"
    HAS_ROWS = "the table has rows"
    CLUSTER = "the server is a cluster"
    HOT_SESSION = "the server supports hot-key sessions"


CHOSEN_KEYS: Final[dict[str, tuple[str, ...]]] = {}
"""Keys that the user has given to commands, by the commands' names; set before there are screens."""

Conditions = frozenset[Condition | str]
"""All conditions that hold at a moment; a string is the id of a command that has a condition of its own."""


@dataclass(frozen=True, slots=True)
class ScreenCommand:
    """A command of the interface: its keys, its texts, its owner, and when it is offered."""

    id: str
    keys: tuple[str, ...]
    """Textual's names of the keys; empty for a command that is only offered by name."""
    title: str
    """One to three words, for the footer and lists."""
    help: str
    """One sentence, for the help and lists."""
    group: Group
    owner: Owner
    when: tuple[Condition | str, ...] = ()
    """The command is offered while any of these conditions holds; always if empty."""
    footer: int = 0
    """Place in the footer, from the left; 0 keeps it out."""
    label: str = ""
    """The text for the keys if Textual's own names would be clumsy."""
    call: str = ""
    """The action with its parameters, such as `show_panel('memory')`, if it is not just the id."""
    words: str = ""
    """Other words by which it is found, such as `slowlog latency`. A command that has some is a task."""

    @property
    def action(self) -> str:
        """The Textual action with its namespace, such as `tree.expand`; unique among all commands."""
        return f"{self.owner}.{self.call or self.id}"

    @property
    def name(self) -> str:
        """The name of the command in the settings file, such as `tree.expand`; unique among all commands."""
        return f"{self.owner}.{self.id}"

    @property
    def bound_keys(self) -> tuple[str, ...]:
        """The keys in effect: the user's, or the declared ones."""
        return CHOSEN_KEYS.get(self.name, self.keys)

    @property
    def key_text(self) -> str:
        """The keys as people read them: `↑ k`."""
        if self.label and self.name not in CHOSEN_KEYS:
            return self.label
        return " ".join(
            f"^{key[5:]}" if key.startswith("ctrl+") else _KEY_NAMES.get(key) or format_key(key)
            for key in self.bound_keys
        )

    @property
    def first_key(self) -> str:
        return self.key_text.split(" ", 1)[0]

    def is_offered(self, conditions: Conditions) -> bool:
        return not self.when or not conditions.isdisjoint(self.when)


def bindings(commands: Iterable[ScreenCommand], *owners: Owner) -> list[BindingType]:
    return [
        Binding(
            key,
            command.action,
            command.title,
            show=False,
            key_display=command.key_text,
            priority=key in PRIORITY_KEYS,
            id=command.name,
        )
        for command in commands
        if command.owner in owners
        for key in command.keys
    ]


def move_commands(owner: Owner, row: str = "row", when: tuple[Condition, ...] = ()) -> tuple[ScreenCommand, ...]:
    move = partial(ScreenCommand, group=Group.MOVE, owner=owner, when=when)
    return (
        move("cursor_up", ("up", "k"), f"{row.capitalize()} above", f"Move to the {row} above."),
        move("cursor_down", ("down", "j"), f"{row.capitalize()} below", f"Move to the {row} below."),
        move("page_up", ("pageup", "ctrl+b"), "Page up", "Move up by a screenful."),
        move("page_down", ("pagedown", "ctrl+f"), "Page down", "Move down by a screenful."),
        move("first", ("home", "g"), f"First {row}", f"Move to the first {row}."),
        move("last", ("end", "G"), f"Last {row}", f"Move to the last {row}."),
    )


def footer_commands(commands: Iterable[ScreenCommand]) -> list[ScreenCommand]:
    return sorted((command for command in commands if command.footer), key=lambda command: command.footer)


def choose_keys(given: Mapping[str, str | Sequence[str]], screens: Iterable[Sequence[ScreenCommand]]) -> Iterator[str]:
    """Give commands the user's keys, by the names of commands; yield a sentence for each invalid or conflicting key.

    `screens` are the commands that can be given together, a sequence for each screen; commands that share a key by
    declaration belong to widgets of which only one has the focus. Without keys a command is left to lists and the
    footer.
    """
    together = [tuple(commands) for commands in screens]
    known = {command.name: command for commands in together for command in commands}
    CHOSEN_KEYS.clear()
    for name, keys in given.items():
        if name not in known:
            yield f"There is no command {name}.{did_you_mean(name, known)}"
            continue
        each = [keys] if isinstance(keys, str) else keys
        CHOSEN_KEYS[name] = tuple(key_name(key) if len(key) == 1 else key for key in each if key)
    said = set()
    for commands in together:
        by_key: dict[str, list[ScreenCommand]] = {}
        for command in commands:
            for key in command.bound_keys:
                by_key.setdefault(key, []).append(command)
        for key, some in by_key.items():
            names = tuple(dict.fromkeys(one.name for one in some))
            is_new = any(key not in one.keys for one in some)
            if len(names) > 1 and is_new and names not in said:
                said.add(names)
                yield f"The key {key} is that of {' and '.join(names)}."


PRIORITY_KEYS: Final = frozenset({"ctrl+c", "ctrl+q"})
"""These keys work whatever has the focus, also while text is typed."""

_KEY_NAMES: Final = {
    "up": "↑", "down": "↓", "left": "←", "right": "→", "enter": "enter", "escape": "esc", "pageup": "pgup",
    "pagedown": "pgdn", "space": "space", "backspace": "bksp", "slash": "/", "question_mark": "?", "asterisk": "*",
    "plus": "+", "minus": "-", "equals_sign": "=", "right_square_bracket": "]", "left_square_bracket": "[",
    "exclamation_mark": "!",
    "tab": "tab", "colon": ":", "alt+left": "alt+←", "alt+right": "alt+→",
}  # fmt: skip


_app = partial(ScreenCommand, group=Group.APP, owner=Owner.APP)

SERVERS_COMMAND: Final = _app("servers", ("O",), "Servers", "Browse another server: a profile or a recent one.",
    words="connect connection host profile")  # fmt: skip
"""Of the screens that have a server, or look for one."""

# fmt: off
APP_COMMANDS: Final[tuple[ScreenCommand, ...]] = (
    _app("goto", ("colon",), "Go to",
        "Go to anything by name: a panel, a command, a namespace, a key, a database, a profile, a theme.", footer=90),
    _app("go_back", ("alt+left", "ctrl+o"), "Back", "Go back to where you were before the last jump."),
    _app("go_forward", ("alt+right", "ctrl+n"), "Forward", "Go forward again after going back."),
    _app("log", ("L",), "Command log",
        "Show every command sent, with purpose, bytes and time.", when=(Condition.LIVE,),
        words="sent audit monitor"),
    _app("server", ("exclamation_mark",), "Server",
        "Show server health: problems, memory, load, slow log, latency, persistence, replication, clients.",
        when=(Condition.LIVE,), footer=3, words="health info stats"),
    _app("sql", ("Q",), "SQL", "Ask the rows of the analysis by SQL: one SELECT over keys, patterns and findings.",
        when=(Condition.LIVE,), words="sql select query statement"),
    _app("redraw", ("ctrl+l",), "Redraw", "Redraw the screen, if something else wrote to the terminal."),
    _app("theme", ("t",), "Theme", "Choose a colour theme.", words="theme colours dark light"),
    _app("help", ("question_mark", "f1"), "Help", "Show every command and its keys.", footer=91, label="?"),
    _app("command_palette", ("ctrl+p",), "Commands", "Find a command or panel by its name or by Redis' word for it."),
    _app("quit", ("q", "ctrl+q", "ctrl+c"), "Quit", "Quit rtui.", footer=93),
)
# fmt: on
