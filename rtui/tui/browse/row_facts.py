"""A cache of the facts of listed keys: their values as of now, and which of them have to be fetched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rtui.analysis.facts import RowFacts
from rtui.analysis.humanize import SECOND_MS
from rtui.keyspace.rows.rows import Row, RowKind

KEPT: Final = 4_000
"""Facts of so many keys are kept; the ones longest out of view go first."""

KEPT_NAME_BYTES: Final = 16 << 20
"""Their names have at most so many bytes in total: enough for a tall screen of the longest names."""

MOST_NAME_BYTES: Final = 1 << 16
"""Names beyond this are not sent for the sake of a row."""

HOLD_S: Final = 60.0
"""Older facts are fetched again when their rows come into view."""

AFTER_EXPIRY_S: Final = 2.0
"""A key is fetched again so long after its time to live has run out: it is gone, or its life was prolonged."""


class RowFactsCache:
    """Facts by key, bounded by number and by bytes of names. The tree and the details share it: the newest are kept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self._clock = clock
        self._asked: OrderedDict[bytes, RowFacts] = OrderedDict()
        self._name_bytes = 0
        """Bytes of the names in `_asked`."""
        self._counted_down: dict[bytes, RowFacts] = {}
        """Facts as they were shown last, where a time to live runs down."""
        self._invalid: set[bytes] = set()
        """Keys to fetch again whatever is known of them."""

    def get(self, key: bytes) -> RowFacts | None:
        """Return the facts of a key as they stand now, the very same object within one second; None if unknown."""
        asked = self._asked.get(key)
        if asked is None or not isinstance(asked.ttl_ms, int):
            return asked
        now, shown = asked.at(self._clock()), self._counted_down.get(key)
        if shown is not None and isinstance(now.ttl_ms, int) and isinstance(shown.ttl_ms, int):
            is_same_state = (now.ttl_ms == 0) == (shown.ttl_ms == 0)
            if is_same_state and now.ttl_ms // SECOND_MS == shown.ttl_ms // SECOND_MS:
                return shown
        self._counted_down[asked.key] = now
        return now

    def missing(self, rows: Iterable[Row], *, hold_s: float = HOLD_S, with_more: bool = False) -> list[bytes]:
        """Return the keys among the rows to fetch: unknown ones, expired ones, and those fetched over `hold_s` ago.

        `with_more` also those whose length, encoding and idle time were not asked.
        """
        wanted = []
        now_s = self._clock()
        for row in rows:
            if row.kind is RowKind.KEY:
                key = row.key()
                known = self._asked.get(key)
                is_due = known is None
                if known is not None:
                    self._asked.move_to_end(key)
                    expires_at_s = known.expires_at_s
                    has_expired = expires_at_s is not None and now_s >= expires_at_s + AFTER_EXPIRY_S
                    lacks = with_more and not known.has_more
                    is_due = has_expired or lacks or key in self._invalid or now_s - known.asked_at_s > hold_s
                if is_due and len(key) <= MOST_NAME_BYTES:
                    wanted.append(key)
        return wanted

    def due_again(self, rows: Iterable[Row]) -> list[bytes]:
        """Return the keys among the rows to fetch while they stay in view: not those that are merely old."""
        return self.missing(rows, hold_s=float("inf"))

    def put(self, found: Sequence[RowFacts]) -> None:
        """Keep these facts, replacing older ones of the same keys."""
        for facts in found:
            self.forget(facts.key)
            self._asked[facts.key] = facts
            self._name_bytes += len(facts.key)
        while len(self._asked) > KEPT or (self._name_bytes > KEPT_NAME_BYTES and len(self._asked) > 1):
            self.forget(next(iter(self._asked)))

    def forget(self, key: bytes | None = None) -> None:
        """Forget one key, or everything."""
        if key is None:
            self._asked.clear()
            self._name_bytes = 0
            self._counted_down.clear()
            self._invalid.clear()
        else:
            if self._asked.pop(key, None) is not None:
                self._name_bytes -= len(key)
            self._counted_down.pop(key, None)
            self._invalid.discard(key)

    def invalidate(self) -> None:
        """Have everything fetched again; known facts are shown until then."""
        self._invalid.update(self._asked)
