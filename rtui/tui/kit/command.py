"""What a command of the interface is: its keys, its words, who carries it out, and when it makes sense."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from textual.keys import format_key


class Group(StrEnum):
    """The headings under which commands are listed."""

    MOVE = "Move"
    TREE = "Tree"
    KEY = "Key under the cursor"
    SCAN = "Scan"
    ANALYSE = "Analyse"
    TABLE = "Tables of an analysis"
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
    ANALYSE = "analyse"
    PANEL = "panel"
    RUN = "run"
    ROW = "row"
    CHOICE = "choice"
    TABLE = "table"


BROWSE_SCOPES: Final = frozenset({Scope.APP, Scope.BROWSE, Scope.TREE, Scope.DETAIL, Scope.SCAN, Scope.COPY})
"""What can be reached from the tree."""

ANALYSE_SCOPES: Final = frozenset(
    {Scope.APP, Scope.ANALYSE, Scope.PANEL, Scope.RUN, Scope.ROW, Scope.CHOICE, Scope.TABLE}
)
"""What can be reached from an analysis."""


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
    BEHIND = "there is something to go back to"
    FAILED = "the connection failed"
    LIVE = "there is a server to ask"
    READY = "nothing is under way on a server that can be asked"
    ON_ENTRY = "the row under the cursor leads to a key or a namespace"
    SEVERAL_LISTS = "the panel has several tables"
    ZOOMED = "a namespace is zoomed into"
    BY_LENGTH = "the panel can list by length"
    PRESET = "the panel marks what is over a threshold"
    NODES = "the panel imagines a cluster"
    HAS_ROWS = "the table has rows"
    FIELD = "the chart of the panel has a cursor"
    HORIZON = "the panel looks ahead"
    HOT_SESSION = "the server has hot-key sessions that can be started"


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


def _key_name(key: str) -> str:
    """Return how one key is written."""
    if key.startswith("ctrl+"):
        return f"^{key[5:]}"
    return _KEY_NAMES.get(key) or format_key(key)


def when(*conditions: When) -> frozenset[When]:
    """Return the conditions of which one must hold."""
    return frozenset(conditions)
