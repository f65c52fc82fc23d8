"""The user's history: places to go back to and forward again, as in a browser.

A place is remembered when it is left by a jump: from the tree into details, to another panel, by name. Steps of the
cursor are no jumps. A place is a value: the state that a screen needs to show itself as it was, without references that
keep widgets or reports alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from textual.message import Message

from rtui.keyspace.text.display import SafeText

KEPT: Final = 100
"""Most places that are kept."""


@dataclass(frozen=True, slots=True)
class TreePlace:
    """A row of the tree, and whether its details have the keyboard."""

    name: bytes | None = None
    """The name of the key, or the prefix of the namespace with its separator; None for a tree without rows."""
    is_namespace: bool = False
    is_reading: bool = False
    needle: bytes | None = None
    """The text that names are filtered by."""
    level: Any = None
    """Where the schema is shown, the path of the level under the cursor; None in the tree of names."""


@dataclass(frozen=True, slots=True)
class PanelPlace:
    """A panel of the analysis."""

    panel_id: str
    state: Any = None
    """The choices in it, such as the namespace that is zoomed into, a frozen value; None for how it was left."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """The command log."""


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """A panel of the health of the server."""

    panel_id: str
    list_id: str | None = None
    """The list of the panel; None for the list shown last."""
    node: SafeText | None = None
    """The node of a cluster; None for the node shown last."""


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """The list of keys that was found last."""


Place = TreePlace | PanelPlace | FoundPlace | LogPlace | ServerPlace


class Leaving(Message):
    """A screen is about to show another place than this one, because the user jumps there."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


class History:
    """Places behind and ahead of where the user is."""

    def __init__(self) -> None:
        self._behind: list[Place] = []
        self._ahead: list[Place] = []

    def leave(self, place: Place) -> None:
        """Remember a place that is left by a jump; the places ahead are forgotten."""
        self._ahead.clear()
        if not self._behind or self._behind[-1] != place:
            self._behind.append(place)
        del self._behind[:-KEPT]

    def back(self, here: Place | None) -> Place | None:
        """Return the place before, or None; the place that is left can be gone forward to."""
        return _step(self._behind, self._ahead, here)

    def forward(self, here: Place | None) -> Place | None:
        """Return the place after, or None."""
        return _step(self._ahead, self._behind, here)

    def clear(self) -> None:
        """Forget all: another keyspace is shown."""
        self._behind.clear()
        self._ahead.clear()


def _step(taken: list[Place], kept: list[Place], here: Place | None) -> Place | None:
    while taken:
        place = taken.pop()
        if place != here:
            if here is not None:
                kept.append(here)
            return place
    return None
