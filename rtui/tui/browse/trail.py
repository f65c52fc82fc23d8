"""The keys from which references were followed, one to the next, so that Escape goes back the same way.

It holds as long as the user is where it led: whoever goes elsewhere has left it, and it begins anew.
"""

from __future__ import annotations

from typing import Final

from rtui.tui.kit.history import TreePlace

LONGEST: Final = 100
"""So many steps are kept."""


class Trail:
    """Steps from one key to the next."""

    def __init__(self) -> None:
        self._steps: list[tuple[TreePlace, bytes]] = []
        """Where each step began, and the key that it led to."""

    def follow(self, origin: TreePlace, key: bytes) -> None:
        """Take a step from a place in the tree to a key."""
        if origin.name is None or not self._leads_to(origin.name):
            self._steps.clear()
        self._steps.append((origin, key))
        del self._steps[:-LONGEST]

    def back(self, key: bytes | None) -> TreePlace | None:
        """Take the step to this key back and return where it began; None where no step led here."""
        return self._steps.pop()[0] if self._leads_to(key) else None

    def before(self, key: bytes | None) -> list[bytes]:
        """Return the keys on the way to this one, the first one first; none where no step led here."""
        if not self._leads_to(key):
            return []
        return [origin.name for origin, _ in self._steps if origin.name is not None]

    def _leads_to(self, key: bytes | None) -> bool:
        return bool(self._steps) and self._steps[-1][1] == key
