"""Rows of the tree beyond their names: which names are shown, the facts of listed keys, the weights for sorting.

Facts are kept as of now, with the keys that have to be fetched. Rows are those of all keys, of a filter of the server,
or of the names that contain a text.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from rtui.analysis.facts import RowFacts
from rtui.analysis.humanize import SECOND_MS
from rtui.keyspace.rows.listing import Sort, WeightsAt
from rtui.keyspace.rows.rows import Row, RowKind, VisibleRows
from rtui.keyspace.store.name_search import FilteredStore
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.tui.kit.command_screen import drive

if TYPE_CHECKING:
    from rtui.tui.browse.tree_figures import TreeFigures

KEPT: Final = 4_000
"""Keys whose facts are kept; the keys longest out of view go first."""

KEPT_NAME_BYTES: Final = 16 << 20
"""Bytes of their names at most: enough for a tall screen of the longest names."""

MOST_NAME_BYTES: Final = 1 << 16
"""Names beyond this are not sent for the sake of a row."""

HOLD_S: Final = 60.0
"""Older facts are fetched again when their rows come into view."""

AFTER_EXPIRY_S: Final = 2.0
"""Seconds after the end of a key's time to live when it is fetched again: it is gone, or its life was prolonged."""


class RowFactsCache:
    """Facts by key, bounded by number and by bytes of names. The tree and the details share it: the newest are kept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch."""
        self._clock = clock
        self._asked: OrderedDict[bytes, RowFacts] = OrderedDict()
        self._name_bytes = 0
        self._counted_down: dict[bytes, RowFacts] = {}
        """Facts as they were shown last, where a time to live runs down."""
        self._invalid: set[bytes] = set()
        """Keys to fetch again although their facts are known."""

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
        """Return the keys among the rows to fetch: unknown ones, expired ones, and keys fetched over `hold_s` ago.

        With `with_more` also keys whose length, encoding and idle time were not asked.
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
        """Return the keys of rows in view whose facts are missing or expired, but not merely old."""
        return self.missing(rows, hold_s=float("inf"))

    def put(self, found: Sequence[RowFacts]) -> None:
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
        """Mark all facts as invalid, to be fetched again; they are shown until then."""
        self._invalid.update(self._asked)


MOST_WEIGHED: Final = 200_000
"""Keys that are asked for a fact to sort by, and remembered with their names, at most: about 30 MB."""


class RowWeights:
    """Sort weights of rows, from the figures of an analysis, if any, and the facts fetched for keys."""

    def __init__(self) -> None:
        self.figures: TreeFigures | None = None
        """The figures of namespaces; None without an analysis."""
        self._keys: dict[tuple[Namespace, Sort], dict[bytes, float]] = {}

    def namespaces(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return the weights of the children of a namespace by ordinal; None without an analysis."""
        return None if self.figures is None else self.figures.weights(node, sort)

    def keys(self, node: Namespace, sort: Sort) -> WeightsAt | None:
        """Return the weights of the keys directly below a namespace by ordinal; None if not asked."""
        weights, keys = self._keys.get((node, sort)), node.keys
        if weights is None or keys is None:
            return None
        return lambda ordinals: [weights.get(name, inf) for name in keys.names_at(ordinals)]

    def idle_s(self, node: Namespace, name: bytes) -> float | None:
        weight = self._keys.get((node, Sort.IDLE), {}).get(name, inf)
        return None if weight == inf else -weight

    def knows(self, node: Namespace, sort: Sort) -> bool:
        return (node, sort) in self._keys

    def put(self, node: Namespace, sort: Sort, weights: dict[bytes, float]) -> None:
        """Remember the weights of the keys of a namespace, and forget the oldest if they are too many."""
        self._keys[node, sort] = weights
        while len(self._keys) > 1 and sum(map(len, self._keys.values())) > MOST_WEIGHED:
            del self._keys[next(iter(self._keys))]

    def forget(self) -> None:
        self._keys.clear()


FEW_ROWS: Final = 200
"""Matches up to which all are opened."""


class ShownRows:
    """The rows that are shown; the rows of the whole keyspace are kept while filtered ones are shown."""

    def __init__(self, store: NamespaceStore, sort: Sort, weights: RowWeights, *, is_reversed: bool = False) -> None:
        self._weights = weights
        self.all_rows = self._rows_of(store, sort, is_reversed=is_reversed)
        self._before: tuple[VisibleRows, Row | None] | None = None
        self._filtered: FilteredStore | None = None
        self.rows = self.all_rows
        self.needle: bytes | None = None
        self.cursor: Row | None = None
        self.is_searching = False

    def use(self, store: NamespaceStore, cursor: Row | None) -> bool:
        """Show the rows of another store; True if it is the previous one, whose rows are as they were left.

        `cursor` is the cursor of the rows shown until now.
        """
        before, self._before = self._before, (self.all_rows, cursor)
        is_back = before is not None and before[0].store is store
        if before is not None and is_back:
            (self.all_rows, self.cursor), self._before = before, None
        else:
            self.all_rows, self.cursor = self._sorted_rows_of(store), None
        self._filtered, self.needle, self.rows, self.is_searching = None, None, self.all_rows, False
        return is_back

    @property
    def revision(self) -> int:
        """Grows with each name that is found."""
        return 0 if self._filtered is None else self._filtered.revision

    @property
    def not_searched(self) -> int:
        """Keys whose names were dropped for the memory budget, so that it is unknown whether they match."""
        return 0 if self._filtered is None else self._filtered.not_searched

    def choose(self, needle: bytes, cursor: Row | None) -> None:
        """Show the rows with these bytes in their names, all of them for none; `cursor` is where to come back to."""
        if self.needle is None:
            self.cursor = cursor
        self._filtered, self.needle, self.rows, self.is_searching = None, None, self.all_rows, False
        if needle:
            self._filtered = FilteredStore(self.all_rows.store, needle, ignore_case=needle == needle.lower())
            self.rows = self._sorted_rows_of(self._filtered)
            self.needle, self.is_searching = needle, True

    def _rows_of(self, store: NamespaceStore, sort: Sort, *, is_reversed: bool) -> VisibleRows:
        return VisibleRows(store, sort=sort, weigher=self._weights, joins_chains=True, is_reversed=is_reversed)

    def _sorted_rows_of(self, store: NamespaceStore) -> VisibleRows:
        return self._rows_of(store, self.all_rows.sort_order, is_reversed=self.all_rows.is_reversed)

    async def work(self) -> None:
        """Search all names that are loaded; later ones are matched as they come."""
        filtered = self._filtered
        if filtered is not None:
            await drive(filtered.work())
            if filtered is self._filtered:
                self.is_searching = False
                await drive(self.rows.sort(self.rows.sort_order, is_reversed=self.rows.is_reversed))
                if filtered.keys <= FEW_ROWS:
                    await drive(self.rows.expand_all(filtered.root, most_rows=FEW_ROWS))
