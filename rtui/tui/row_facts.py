"""The facts of listed keys: what is known, and what is still to be asked of the server."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rtui.analysis.facts import RowFacts
from rtui.keyspace.rows import Kind, Row

KEPT: Final = 4_000
"""Facts of so many keys are kept; the ones longest out of view go first."""

MOST_NAME_BYTES: Final = 1 << 16
"""Names beyond this are not sent for the sake of a row."""


class RowFactsCache:
    """Facts by key, as many as are kept."""

    def __init__(self) -> None:
        self._facts: OrderedDict[bytes, RowFacts] = OrderedDict()

    @property
    def facts(self) -> Mapping[bytes, RowFacts]:
        """What is known."""
        return self._facts

    def missing(self, rows: Iterable[Row]) -> list[bytes]:
        """Return the keys among the rows of which nothing is known."""
        wanted = []
        for row in rows:
            if row.kind is Kind.KEY:
                key = row.key()
                if key in self._facts:
                    self._facts.move_to_end(key)
                elif len(key) <= MOST_NAME_BYTES:
                    wanted.append(key)
        return wanted

    def put(self, found: Sequence[RowFacts]) -> None:
        """Keep these facts."""
        for facts in found:
            self._facts[facts.key] = facts
        while len(self._facts) > KEPT:
            self._facts.popitem(last=False)

    def forget(self, key: bytes | None = None) -> None:
        """Forget one key, or everything."""
        if key is None:
            self._facts.clear()
        else:
            self._facts.pop(key, None)
