"""Adds up the results of an inspection as rows of the key table, folded into a partial a chunk at a time, in a thread.

New rows wait as they came. To fold them is to make a chunk of them, find the patterns of its keys and add it to the
partial; that is done for each summary, and for the pass from time to time, by one thread at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import polars as pl

from rtui.analysis.columns import Asked
from rtui.analysis.report.document import Node, Scope, SlotsReport, Summary
from rtui.analysis.report.figures import Counted, Figures, SampledKeyspace
from rtui.analysis.report.thresholds import preset
from rtui.keyspace.slices import Slicer, Slices, Steps, elsewhere
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import STRING
from rtui.registry.registry import Registry
from rtui.table import slots
from rtui.table.node_sums import counted_patterns, encodings_of, slots_of
from rtui.table.partial import Partial, Thresholds
from rtui.table.patterns import Patterns
from rtui.table.registered import RegistryCounts
from rtui.table.registered_rows import RegisteredRows
from rtui.table.rows import KeptRows
from rtui.table.schema import SCHEMA, SLICE_ROWS, names_of
from rtui.table.slots import Slots
from rtui.table.summary import Biggest, Moment, NodeReports, lengths_of, summed
from rtui.table.tops import TopKeys

if TYPE_CHECKING:  # few write files
    from rtui.table.keys_file import KeysWriter

T = TypeVar("T")

CHUNK: Final = 100_000
"""Rows that are folded at once, about."""


MOST_SHOWN: Final = 4_096
"""Most nodes of a report, without rest nodes."""


_NO_MOMENT: Final = pl.lit(None, pl.Int64).alias("asked_ms")


class _Piece(NamedTuple):
    """Rows that wait to be folded; `table` makes them."""

    table: Callable[[], pl.DataFrame]
    rows: int
    asked_ms: int
    is_unread: bool


class Collected(NamedTuple):
    """The sums of keys of one pass that were inspected elsewhere; can be pickled."""

    partial: Partial
    big: TopKeys
    registered: RegistryCounts | None
    keys: int
    unread: int
    vanished: int

    def merge(self, other: Collected) -> Collected:
        """Return the sums of both, for which this one is used up."""
        self.partial.merge(other.partial)
        self.big.merge(other.big)
        if self.registered is not None and other.registered is not None:
            self.registered.merge(other.registered)
        counts = (mine + theirs for mine, theirs in zip(self[-3:], other[-3:], strict=True))
        return Collected(self.partial, self.big, self.registered, *counts)


class Aggregates:
    """The sums over all keys of a pass, in a partial of the key table."""

    def __init__(
        self,
        separators: Separators,
        *,
        scope: Scope,
        started_at_s: float,
        node_budget: int = MOST_SHOWN,
        registry: Registry | None = None,
        is_sample: bool = False,
        rows: KeptRows | KeysWriter | None = None,
    ) -> None:
        """Count by the entries and naming rules of a registry as well; `is_sample` if its bytes are to be estimated.

        All that is folded is kept in `rows`, too.
        """
        self.keys = 0
        """Keys inspected, including those that wait to be folded."""
        self.vanished_keys = 0
        """Keys that no longer existed when they were queried."""
        self.unread_keys = 0
        """Keys of which only the name is known."""
        self.revision = 0
        self.counted = Counted()
        """The keys counted by the latest summary, or by one that is being made."""
        self.big = TopKeys(scope.top, preset(scope.preset))
        self.registered = None if registry is None else RegistryCounts(registry, is_sample=is_sample)
        self._columns, self._node_budget = scope.columns, node_budget
        self._waiting: deque[_Piece] = deque()
        self._came = self._folded = 0
        """Rows that have ever waited, and rows taken to be folded; each number is written by one thread."""
        self._rows = rows
        self._folding: object | None = None
        """The token of the work that folds in another thread now; None if none does."""
        samples_lengths = scope.columns.length is Asked.SAMPLED

        def thresholds(key_type: str | None) -> Thresholds:
            limits = self.big.limits(None if key_type is None else key_type.encode())
            is_string = key_type == STRING.name.decode()
            return Thresholds(limits.length, limits.memory_bytes, is_string, is_string and not samples_lengths)

        patterns, origin_min = Patterns(separators, scope.depth), int(started_at_s) // 60
        self.partial = Partial(patterns, origin_min=origin_min, top=scope.top, thresholds=thresholds)
        self.slots = TableSlots()
        self._registered_rows = None if self.registered is None else RegisteredRows(self.registered)

    @property
    def held(self) -> int:
        return self._came - self._folded

    def add_rows(self, table: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        """Add rows of the key table, which `table` makes, asked at this moment, in seconds since the epoch."""
        self.keys += rows
        self._wait(_Piece(table, rows, int(asked_at_s * 1000), is_unread=False))

    def add_unread(self, keys: Sequence[bytes]) -> None:
        """Add keys of which only the name, or its beginning, is known: to the patterns and the slots only."""
        self.unread_keys += len(keys)
        self._wait(_Piece(partial(named_rows, keys), len(keys), 0, is_unread=True))

    def add_vanished(self, count: int) -> None:
        self.vanished_keys += count
        self.revision += 1

    def add_note(self, key_type: bytes | None, note: str) -> None:
        self.big.notes[key_type] = note

    def _wait(self, piece: _Piece) -> None:
        self.revision += 1
        if piece.rows:
            self._waiting.append(piece)
            self._came += piece.rows

    def add_held(self) -> Steps[None]:
        """Fold all that waits; then `big` and `slots` know every key."""
        yield from self._alone(self._fold())

    def _alone(self, work: Slices[T]) -> Steps[T]:
        """Run work on the partial in another thread, as `elsewhere` does, once no other work does.

        Work that is abandoned early goes on until its next pause.
        """
        while self._folding is not None:
            yield None
        turn = self._folding = object()
        steps, has_begun = elsewhere(work), False
        make = next(steps)
        assert make is not None  # noqa: S101 - `elsewhere` pauses with a function

        def run() -> None:
            nonlocal has_begun
            has_begun = True
            try:
                make()
            finally:
                if self._folding is turn:
                    self._folding = None

        is_over = False
        try:
            yield run
            is_over = True
        finally:
            if not is_over:
                steps.close()
            if not has_begun:
                self._folding = None
        return (yield from steps)

    def _fold(self) -> Slices[None]:
        left = self._came - self._folded
        while left > 0 and self._waiting:
            most = min(CHUNK, left)
            pieces: list[_Piece] = []
            rows = 0
            while rows < most and self._waiting:
                pieces.append(self._waiting.popleft())
                rows += pieces[-1].rows
            self._folded += rows
            for is_unread, some in groupby(pieces, lambda one: one.is_unread):
                self._fold_rows([with_moment(one.table(), one.asked_ms) for one in some], is_unread=is_unread)
            left -= rows
            self._take()
            yield

    def _take(self) -> None:
        """Let `big` and `slots` have what is folded by now."""
        found = self.partial
        self.big.take(found.tops, found.over, found.over_sampled)
        self.slots.found = found.slots.copy()

    def _fold_rows(self, tables: Sequence[pl.DataFrame], *, is_unread: bool) -> None:
        table = pl.concat(tables)
        self.partial.add(table, is_unread=is_unread)
        if self._rows is not None:
            self._rows.append(table.with_columns(_NO_MOMENT) if is_unread else table)
        if self._registered_rows is not None:
            self._registered_rows.add(table, self.partial.checksums)

    def fold(self, table: pl.DataFrame, *, is_unread: bool = False) -> None:
        """Add rows of the key table with a column `asked_ms` at once, where nothing else folds."""
        if is_unread:
            self.unread_keys += table.height
        else:
            self.keys += table.height
        self._fold_rows([table], is_unread=is_unread)
        self._take()

    def collected(self) -> Collected:
        """Return the sums of all keys, none of which may wait to be folded."""
        return Collected(self.partial, self.big, self.registered, self.keys, self.unread_keys, self.vanished_keys)

    def merge(self, other: Collected) -> Steps[None]:
        """Add keys of the same pass that were inspected elsewhere, once no summary is made of the sums."""
        yield from self._alone(self._merge_sums(other))
        self.keys += other.keys
        self.unread_keys += other.unread
        self.vanished_keys += other.vanished
        self.revision += 1

    def _merge_sums(self, other: Collected) -> Slices[None]:
        self.collected().merge(other)
        self._take()
        yield

    def summary(self, sample: SampledKeyspace | None = None) -> Steps[Summary]:
        """Return the summary of all keys of one moment; `counted` is of the same.

        With `sample` the keys are a random sample, and every figure is an estimate for the whole keyspace.
        """
        moment = yield from self._alone(self._moment())
        self.counted = moment.counted
        return (yield from elsewhere(summed(moment, self._columns, sample, Slicer())))

    def _moment(self) -> Slices[Moment]:
        yield from self._fold()
        slicer, found = Slicer(), self.partial
        return Moment(
            (yield from counted_patterns(found, self._node_budget, slicer)),
            Biggest(self.big.report(), self.big.over, self.big.hottest()),
            Counted(found.keys, found.unread, self.vanished_keys),
            slots_of(found.slots),
            lengths_of(found, self._columns),
            encodings_of(found),
            None if self.registered is None else (yield from self.registered.copy(slicer)),
        )


class NameTree:
    """The patterns of names of which nothing else is known."""

    def __init__(self, separators: Separators) -> None:
        self._found = Partial(Patterns(separators), origin_min=0, top=0)

    def add(self, names: Sequence[bytes]) -> Slices[None]:
        if names:
            self._found.add(named_rows(names), 0, is_unread=True)
        yield

    def root(self) -> Slices[Node]:
        """Return the root of their tree, as in a report."""
        slicer = Slicer()
        patterns = yield from counted_patterns(self._found, MOST_SHOWN, slicer)
        root = patterns.root
        part = yield from NodeReports(Figures(root.keys), slicer).part(root, is_root=True)
        return part.node


class TableSlots:
    """The counts by hash slot of a partial, as it was when something was folded last."""

    def __init__(self) -> None:
        self.found = Slots()

    def report(self) -> SlotsReport:
        return slots_of(self.found)

    def ttl_counts(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return by slot the keys whose time to live is known, and how many of these never expire."""
        rows = self.found.rows
        return rows[:, slots.TTL_KNOWN].tolist(), rows[:, slots.LASTING].tolist()


def with_moment(table: pl.DataFrame, asked_ms: int) -> pl.DataFrame:
    return table.with_columns(pl.lit(asked_ms, pl.Int64).alias("asked_ms"))


def named_rows(keys: Sequence[bytes]) -> pl.DataFrame:
    """Return rows of which nothing but their names is known."""
    parts = [names_of(keys[first : first + SLICE_ROWS]) for first in range(0, len(keys), SLICE_ROWS)]
    nothing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in ("name", "raw")]
    return pl.concat([pl.DataFrame(one) for one in parts]).with_columns(nothing).select(SCHEMA.names())
