"""Adds up what an inspection learns as rows of the key table, folded into a partial a chunk at a time, in a thread.

What comes waits as it came. To fold it is to make a chunk of it, find the patterns of its keys and add it to the
partial; that is done for whoever wants a summary, and for the pass from time to time, by one at a time. Keys that come
batch by batch are ranked at once, those that come as rows when they are folded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, Literal, NamedTuple, TypeVar

import polars as pl

from rtui.analysis.aggregate.aggregates import NOT_ASKED_S, Aggregates, Counted, Lists, summed
from rtui.analysis.aggregate.figures import SampledKeyspace
from rtui.analysis.aggregate.from_table import TablePatterns, counted_patterns, encodings_of, lengths_of, slots_of
from rtui.analysis.aggregate.lengths import Lengths
from rtui.analysis.aggregate.registered_rows import RegisteredRows
from rtui.analysis.aggregate.registry_counts import RegistryCounts
from rtui.analysis.aggregate.slot_counts import SlotCounts
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.columns import Asked
from rtui.analysis.report.document import Scope, SlotsReport, Summary
from rtui.keyspace.slices import Slicer, Slices, Steps, elsewhere
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import STRING
from rtui.registry.registry import Registry
from rtui.table import slots
from rtui.table.partial import Partial, Thresholds
from rtui.table.patterns import Patterns
from rtui.table.rows import KeptRows
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, keys_of, names_of
from rtui.table.slots import Slots

T = TypeVar("T")

CHUNK: Final = 100_000
"""Rows that are folded at once, about."""

ROWS_AT_ONCE: Final = 4_096
"""Rows whose columns are made of lists of Python at once: a millisecond or two, in which nothing else runs."""

_FACTS: Final = ("expires_ms", "memory_bytes", "length", "idle_s", "frequency")


class _Piece(NamedTuple):
    """What waits to be folded: a batch or rows."""

    batch: InspectedBatch | None
    table: Callable[[], pl.DataFrame] | None
    rows: int
    asked_ms: int
    is_unread: bool


class _Ranked(NamedTuple):
    """What `big` has to know of a chunk of rows."""

    rows: pl.DataFrame
    over: Counter[str]
    over_sampled: Counter[str]


class _Moment(NamedTuple):
    """What the partial adds up to at one moment."""

    patterns: TablePatterns
    counted_keys: Counted
    slots: SlotsReport
    lengths: Lengths
    encodings: dict[bytes, Counter[bytes]]
    registered: RegistryCounts | None


class TableAggregates(Aggregates):
    """What all keys of a pass add up to, in a partial of the key table."""

    def __init__(
        self,
        separators: Separators,
        *,
        scope: Scope,
        started_at_s: float,
        node_budget: int = 4096,
        registry: Registry | None = None,
        is_sample: bool = False,
        rows: KeptRows | None = None,
    ) -> None:
        """As `Aggregates`; all that is folded is kept in `rows` as well."""
        super().__init__(
            separators,
            scope=scope,
            started_at_s=started_at_s,
            node_budget=node_budget,
            registry=registry,
            is_sample=is_sample,
        )
        self._waiting: deque[_Piece] = deque()
        self._notes: dict[bytes | None, str] = {}
        """By type, why the memory of keys is not known."""
        self._came = self._folded = 0
        """Rows that have ever waited, and those of them that were taken to be folded: one is of each thread."""
        self._ranked: deque[_Ranked] = deque()
        self._rows = rows
        self._folding: object | None = None
        """What folds in another thread now, if anything does."""
        samples_lengths = scope.columns.length is Asked.SAMPLED

        def thresholds(key_type: str | None) -> Thresholds:
            limits = self.big.limits(None if key_type is None else key_type.encode())
            is_string = key_type == STRING.name.decode()
            return Thresholds(limits.length, limits.memory_bytes, is_string, is_string and not samples_lengths)

        patterns = Patterns(separators, scope.depth)
        self.partial = Partial(patterns, origin_min=self._scale.origin_min, top=scope.top, thresholds=thresholds)
        """What was folded."""
        self.slots = self._table_slots = _TableSlots()
        counts = self.registered
        self._registered_rows = None if counts is None else RegisteredRows(counts, batches_of)

    @property
    def summed_keys(self) -> int:
        """Keys inspected that a summary counts: those that were folded."""
        return self.partial.keys

    @property
    def held(self) -> int:
        """How many keys wait to be folded."""
        return self._came - self._folded

    def add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        """Add keys that were asked at this moment, in seconds since the epoch."""
        is_unread = asked_at_s == NOT_ASKED_S
        self.keys += 0 if is_unread else len(batch.keys)
        self.big.add(batch, asked_at_s)
        self._wait(_Piece(batch, None, len(batch.keys), int(asked_at_s * 1000), is_unread))

    def add_rows(self, table: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        """Add rows of the key table, which `table` makes, asked at this moment, in seconds since the epoch."""
        self._rank()
        self.keys += rows
        self._wait(_Piece(None, table, rows, int(asked_at_s * 1000), is_unread=False))

    def add_note(self, key_type: bytes | None, note: str) -> None:
        """Learn why the memory of keys of a type is not known that come as rows."""
        self._notes[key_type] = note

    def _wait(self, piece: _Piece) -> None:
        self.revision += 1
        if piece.rows:
            self._waiting.append(piece)
            self._came += piece.rows

    def add_held(self) -> Steps[None]:
        """Fold all that waits; then `big` and `slots` know every key."""
        yield from self._alone(self._fold())
        self._rank()

    def _alone(self, work: Slices[T]) -> Steps[T]:
        """Do work in another thread that reads or changes the partial, as `elsewhere` does, once nothing else does.

        What is left before its end goes on until its next pause.
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
        """Fold what waits by now, a chunk at a time."""
        left = self._came - self._folded
        while left > 0 and self._waiting:
            left -= self._fold_chunk(min(CHUNK, left))
            self._table_slots.found = self.partial.slots.copy()
            yield

    def _fold_chunk(self, most: int) -> int:
        """Fold about so many rows; return how many it was."""
        pieces: list[_Piece] = []
        rows = 0
        while rows < most and self._waiting:
            pieces.append(self._waiting.popleft())
            rows += pieces[-1].rows
        self._folded += rows
        for (is_unread, are_rows), some in groupby(pieces, lambda one: (one.is_unread, one.batch is None)):
            parts = [*some]
            if are_rows:
                self._fold_rows([with_moment(one.table(), one.asked_ms) for one in parts if one.table is not None])
            else:
                batches = [(one.batch, one.asked_ms) for one in parts if one.batch is not None]
                table = pl.concat(_tables_of(batches))
                self.partial.add(table, is_unread=is_unread)
                self._keep(table)
                self._register(batch for batch, _ in batches)
        return rows

    def _fold_rows(self, tables: Sequence[pl.DataFrame]) -> None:
        table, over, sampled = pl.concat(tables), self.partial.over.copy(), self.partial.over_sampled.copy()
        ranked = self.partial.add(table)
        self._keep(table)
        now, now_sampled = self.partial.over, self.partial.over_sampled
        self._ranked.append(
            _Ranked(
                ranked,
                Counter({key_type: now[key_type] - over[key_type] for key_type in now}),
                Counter({key_type: now_sampled[key_type] - sampled[key_type] for key_type in now}),
            )
        )
        if self._registered_rows is not None:
            self._registered_rows.add(table, self.partial.checksums)

    def _keep(self, table: pl.DataFrame) -> None:
        if self._rows is not None:
            self._rows.append(table.select(SCHEMA.names()))

    def _register(self, batches: Iterable[InspectedBatch]) -> None:
        if self.registered is not None:
            for batch in batches:
                self.registered.add(batch)

    def _rank(self) -> None:
        """Hand to `big` what was folded."""
        while self._ranked:
            rows, over, sampled = self._ranked.popleft()
            rows = rows.select(*SCHEMA.names(), "asked_ms").unique(["name", "raw"], keep="last")
            for batch, asked_ms in batches_of(rows):
                note = self._notes.get(batch.key_type, "") if batch.memory_bytes is None else ""
                self.big.rank(replace(batch, note=note), asked_ms / 1000)
            for key_type, count in over.items():
                self.big.count_over(key_type.encode(), count, sampled[key_type])
            self.big.settle()

    def summary(self, sample: SampledKeyspace | None = None) -> Steps[Summary]:
        """Return the summary of all keys of one moment, as that of `Aggregates`."""
        slicer = Slicer()
        moment = yield from self._alone(self._moment())
        self._rank()
        big = self.big.report(), self.big.over, self.big.hottest()
        encodings = {key_type: counts.copy() for key_type, counts in self._encodings.items()}
        for key_type, counts in moment.encodings.items():
            encodings.setdefault(key_type, Counter()).update(counts)
        lists = Lists(encodings, moment.lengths, big, moment.slots, self._columns, moment.registered)
        self.counted = moment.counted_keys
        return (yield from elsewhere(summed(moment.patterns, lists, sample, slicer)))

    def _moment(self) -> Slices[_Moment]:
        """Fold all that waits, and return what it adds up to."""
        yield from self._fold()
        slicer, found = Slicer(), self.partial
        return _Moment(
            (yield from counted_patterns(found, self._scale, self._node_budget, slicer)),
            Counted(found.keys, found.unread, self.vanished_keys),
            slots_of(found.slots),
            lengths_of(found, self._columns),
            encodings_of(found),
            None if self.registered is None else (yield from self.registered.copy(slicer)),
        )


class _TableSlots(SlotCounts):
    """The counts by hash slot of a partial, as it was when something was folded last."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Slots()

    def report(self) -> SlotsReport:
        """Return the counts of all slots and the heaviest tags."""
        return slots_of(self.found)

    def ttl_counts(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return by slot the keys whose time to live is known, and those of them without one."""
        rows = self.found.rows
        return rows[:, slots.TTL_KNOWN].tolist(), rows[:, slots.LASTING].tolist()


def with_moment(table: pl.DataFrame, asked_ms: int) -> pl.DataFrame:
    """Return rows with a column `asked_ms`, in milliseconds since the epoch."""
    return table.with_columns(pl.lit(asked_ms, pl.Int64).alias("asked_ms"))


def _tables_of(batches: Sequence[tuple[InspectedBatch, int]]) -> Iterator[pl.DataFrame]:
    """Yield the rows of batches, with the moment at which each was asked, some thousand at a time."""
    waiting: list[tuple[InspectedBatch, int]] = []
    rows = 0
    for one in batches:
        waiting.append(one)
        rows += len(one[0].keys)
        if rows >= ROWS_AT_ONCE:
            yield _table_of(waiting, rows)
            waiting, rows = [], 0
    if waiting:
        yield _table_of(waiting, rows)


def _table_of(batches: Sequence[tuple[InspectedBatch, int]], rows: int) -> pl.DataFrame:
    name, raw = names_of([key for batch, _ in batches for key in batch.keys])

    def repeated(values: Iterable[T]) -> list[T]:
        return [value for value, (batch, _) in zip(values, batches, strict=True) for _ in batch.keys]

    def column(fact: Literal["memory_bytes", "lengths", "idle_s", "frequency"]) -> list[int | None]:
        columns = ((getattr(batch, fact), len(batch.keys)) for batch, _ in batches)
        return [value for values, size in columns for value in ((None,) * size if values is None else values)]

    expires_ms = [
        None if left is None else NEVER if left < 0 else min(left + asked_ms, LATEST_MS)
        for batch, asked_ms in batches
        for left in ((None,) * len(batch.keys) if batch.ttl_ms is None else batch.ttl_ms)
    ]
    types = repeated(None if batch.key_type is None else batch.key_type.decode() for batch, _ in batches)
    nothing = [None] * rows
    values = {
        "name": name,
        "raw": raw,
        "type": types,
        "encoding": nothing,
        "node": nothing,
        "expires_ms": expires_ms,
        "memory_bytes": column("memory_bytes"),
        "length": column("lengths"),
        "idle_s": column("idle_s"),
        "frequency": column("frequency"),
        "database": nothing,
        "slot": nothing,
        "sampled": repeated(batch.is_sampled for batch, _ in batches),
    }
    moments = pl.Series("asked_ms", repeated(asked_ms for _, asked_ms in batches), dtype=pl.Int64)
    return pl.DataFrame(values, SCHEMA).with_columns(moments)


def batches_of(table: pl.DataFrame) -> Iterator[tuple[InspectedBatch, int]]:
    """Yield rows with a column `asked_ms` as batches of one type of which the same facts are known."""
    known = [pl.col(fact).is_not_null().alias(f"has_{fact}") for fact in _FACTS]
    sampled = pl.col("sampled").fill_null(value=True)
    by = ["type", "sampled", "asked_ms", *(f"has_{fact}" for fact in _FACTS)]
    for part in table.with_columns(sampled, *known).partition_by(by, maintain_order=True):
        key_type, is_sampled, asked_ms, *_ = part.select(by).row(0)
        expires, memory, lengths, idle, frequency = (
            part[fact].to_list() if part[f"has_{fact}"][0] else None for fact in _FACTS
        )
        yield (
            InspectedBatch(
                None if key_type is None else key_type.encode(),
                keys_of(part),
                None if expires is None else [one if one == NEVER else max(0, one - asked_ms) for one in expires],
                *(memory, idle, frequency, lengths),
                is_sampled=is_sampled,
            ),
            asked_ms,
        )
