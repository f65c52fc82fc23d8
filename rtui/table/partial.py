"""The sums of rows of the key table, in memory bounded by the number of patterns, not of keys.

    rows ──► Patterns.place: the node of each ──► cells: a node and a type each ──► sums, spreads and lives by cell
       ├──► examples and different segments by node          ├──► lengths and encodings by type
       ├──► keys, bytes and times to live by hash slot, the heaviest tags
       └──► the keys that rank first, the number of those above thresholds

Partials can be pickled, and merge: the nodes of one are found or made in the other (`Patterns.merge`), its cells
follow, and the sums of equal cells are added up. Counts, sums, extremes, examples and lists are the same in any order
of merging, as long as the numbers of patterns and of hash tags stay within their limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, MOST_SHORT, MOST_TINY, TTL_EDGES_MS
from rtui.table.key_count import Examples
from rtui.table.lives import Lives
from rtui.table.patterns import Patterns
from rtui.table.schema import NEVER
from rtui.table.slots import Slots, checksums_and_slots, tags_of
from rtui.table.sums import ChunkRows, Dense, Flags, Spreads, Whole, carried
from rtui.table.tops import Tops

STRING: Final = "string"

NUMBERS_OF_A_NODE: Final = 4
"""Most numbers of nodes, as a multiple of the most nodes."""

_IDLE_BINS: Final = len(IDLE_EDGES_S) + 1
_FREQUENCY_BINS: Final = len(FREQUENCY_EDGES) + 1

KEYS: Final = 0
IDLE: Final = slice(1, 1 + _IDLE_BINS)
FREQUENCY: Final = slice(IDLE.stop, IDLE.stop + _FREQUENCY_BINS)
"""Columns of `Partial.counts`: keys, and those whose idle time or access counter is known by its edges."""

STRINGS, LOW, HIGH, LONG, TINY = range(5)
TINY_TTL: Final = slice(5, 5 + len(TTL_EDGES_MS) + 1)
"""Columns of `Partial.strings`: strings whose length stands for that of others, both halves of the sum of lengths, the
long ones, the tiny ones, and those of these whose time to live is known by TTL_EDGES_MS."""

_IDLE_EDGES: Final = np.array(IDLE_EDGES_S, np.int64)
_FREQUENCY_EDGES: Final = np.array(FREQUENCY_EDGES, np.int64)
_TTL_EDGES: Final = np.array(TTL_EDGES_MS, np.int64)


class Thresholds(NamedTuple):
    """The sizes above which a key of one type is big; None where a measure does not count."""

    length: int | None = None
    memory_bytes: int | None = None
    by_memory: bool = False
    """Whether a key of unknown length that stands for others is judged by its memory."""
    by_memory_of_all: bool = False
    """And one that does not stand for others."""


class Partial:
    """Sums of rows."""

    def __init__(
        self,
        patterns: Patterns,
        *,
        origin_min: int,
        top: int = 100,
        thresholds: Callable[[str | None], Thresholds] = lambda _: Thresholds(),
    ) -> None:
        """Bins of expiries are for a pass that began in this minute since the epoch; lists have `top` keys each."""
        self.patterns = patterns
        self.keys = 0
        """Rows added, except those whose only known fact is the name."""
        self.unread = 0
        """Rows of which only the name, or its beginning, is known."""
        self.vanished = 0
        """Keys that no longer existed when they were queried."""
        self.types: list[str | None] = [None]
        """Types by their numbers; None for keys whose type is not known."""
        self.cell_nodes: Whole = np.empty(0, np.int64)
        """By cell, its node."""
        self.cell_types: Whole = np.empty(0, np.int64)
        """By cell, the number of its type."""
        self.counts = Dense(FREQUENCY.stop)
        self.strings = Dense(TINY_TTL.stop)
        self.memory = Spreads()
        self.lives = Lives(origin_min)
        self.lengths = Spreads()
        """By twice the number of the type; and one more for keys that stand for others."""
        self.examples = Examples()
        self.slots = Slots()
        self.tops = Tops(top)
        self.encodings: Counter[tuple[str | None, str]] = Counter()
        self.over: Counter[str] = Counter()
        """By type, keys above the thresholds; a type that could not be judged is missing."""
        self.over_sampled: Counter[str] = Counter()
        """The same among keys that stand for others."""
        self.checksums: Whole = np.empty(0, np.int64)
        """CRC32 of the keys of the rows that were added last."""
        self._thresholds = thresholds
        self._type_numbers: dict[str | None, int] = {None: 0}
        self._cells = np.full((1, 1), -1, np.int64)
        """The cell of each type and node, -1 if there is none yet."""

    def add(self, table: pl.DataFrame, asked_ms: int | None = None, *, is_unread: bool = False) -> None:
        """Add rows of the key table.

        `asked_ms` is when they were asked, in milliseconds since the epoch; None if a column of this name holds it.
        With `is_unread` only their names are known.
        """
        if asked_ms is not None:
            table = table.with_columns(pl.lit(asked_ms, pl.Int64).alias("asked_ms"))
        nodes = self.patterns.place(table).astype(np.int64, copy=False)
        self.add_placed(table, nodes, is_unread=is_unread)

    def add_placed(self, table: pl.DataFrame, nodes: Whole, *, is_unread: bool = False) -> None:
        """Add rows whose nodes are known already, with a column `asked_ms`; as `add`."""
        rows = RowColumns(table, self._types_of(table["type"]))
        if is_unread:
            self.unread += table.height
        else:
            self.keys += table.height
        chunk = ChunkRows(self._cells_of(nodes, rows.types))
        self._count(chunk, rows)
        self.memory.add(chunk, rows.memory[rows.has_memory], rows.has_memory)
        self.lives.add(chunk, rows.has_ttl, rows.left_ms, rows.expires_ms, (rows.memory, rows.has_memory))
        has_length = rows.has_length & (rows.types > 0)
        if has_length.any():
            by_type = ChunkRows(2 * rows.types[has_length] + rows.is_sampled[has_length])
            self.lengths.add(by_type, rows.lengths[has_length], np.ones(len(by_type.groups), np.bool_))
        self._judge(rows)
        keys = table.select(pl.coalesce("raw", pl.col("name").cast(pl.Binary)).alias("key")).to_series()
        tags = tags_of(table["name"], table["raw"])
        self.checksums, slots = checksums_and_slots(keys, tags, table["slot"])
        self.examples.add(nodes, keys, self.checksums, len(self.patterns))
        ttl = rows.has_ttl, rows.has_ttl & (rows.left_ms < 0)
        self.slots.add(slots, tags, (rows.memory, rows.has_memory), ttl)
        known = table.select("type", "encoding").drop_nulls("encoding")
        for key_type, encoding, count in known.group_by("type", "encoding").agg(pl.len()).iter_rows():
            self.encodings[key_type, encoding] += count
        self.tops.add(table, keys, rows.types, self.types)
        self.shrink()

    def _count(self, chunk: ChunkRows, rows: RowColumns) -> None:
        counts = np.zeros((len(chunk.used), FREQUENCY.stop), np.int64)
        counts[:, KEYS] = chunk.keys
        for column, edges, (values, known) in (
            (IDLE, _IDLE_EDGES, rows.column("idle_s")),
            (FREQUENCY, _FREQUENCY_EDGES, rows.column("frequency")),
        ):
            if known.any():
                buckets = np.searchsorted(edges, values[known], side="right")
                counts[:, column] = chunk.bins(buckets, len(edges) + 1, known)
        self.counts.add(chunk.used, counts)
        is_string = rows.types == self._type_numbers.get(STRING, -1)
        strings = is_string & rows.is_sampled & rows.has_length
        if not strings.any():
            return
        lengths = rows.lengths
        tiny = strings & (lengths <= MOST_TINY)
        with_ttl = tiny & rows.has_ttl
        figures = np.zeros((len(chunk.used), TINY_TTL.stop), np.int64)
        figures[:, STRINGS] = chunk.count(strings)
        figures[:, LOW : HIGH + 1] = chunk.halves(lengths[strings], strings)
        figures[:, LONG] = chunk.count(strings & (lengths > MOST_SHORT))
        figures[:, TINY] = chunk.count(tiny)
        buckets = np.searchsorted(_TTL_EDGES, rows.left_ms[with_ttl], side="right")
        figures[:, TINY_TTL] = chunk.bins(buckets, len(TTL_EDGES_MS) + 1, with_ttl)
        self.strings.add(chunk.used, figures)
        carried(self.strings.rows[:, LOW : HIGH + 1])

    def _judge(self, rows: RowColumns) -> None:
        """Count keys above the thresholds, as far as their facts are known."""
        for number in np.flatnonzero(np.bincount(rows.types)).tolist():
            key_type = self.types[number]
            if key_type is None:
                continue
            limits = self._thresholds(key_type)
            of_type = rows.types == number
            is_over = np.zeros(len(of_type), np.bool_)
            is_judged = False
            if limits.memory_bytes is not None:
                is_over |= rows.has_memory & (rows.memory > limits.memory_bytes)
                is_judged |= bool((of_type & rows.has_memory).any())
            if limits.length is not None:
                replaced = ~rows.has_length & rows.has_memory & limits.by_memory
                replaced &= rows.is_sampled | limits.by_memory_of_all
                is_over |= rows.has_length & (rows.lengths > limits.length)
                is_over |= replaced & (rows.memory > limits.length)
                is_judged |= bool((of_type & (rows.has_length | replaced)).any())
            if is_judged:
                is_over &= of_type
                self.over[key_type] += int(is_over.sum())
                self.over_sampled[key_type] += int((is_over & rows.is_sampled).sum())

    def _types_of(self, types: pl.Series) -> Whole:
        codes = types.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        kinds = types.unique()
        physical = kinds.to_physical().cast(pl.Int64).fill_null(-1).to_list()
        numbers = np.zeros(max(physical, default=0) + 2, np.int64)
        for name, code in zip(kinds.to_list(), physical, strict=True):
            numbers[code + 1] = self._type_number(name)
        found: Whole = numbers[codes + 1]
        return found

    def _type_number(self, name: str | None) -> int:
        if name not in self._type_numbers:
            self._type_numbers[name] = len(self.types)
            self.types.append(name)
        return self._type_numbers[name]

    def _cells_of(self, nodes: Whole, types: Whole) -> Whole:
        height, width = self._cells.shape
        if len(self.types) > height or len(self.patterns) > width:
            shape = max(height, len(self.types)), max(width, 2 * len(self.patterns))
            cells = np.full(shape, -1, np.int64)
            cells[:height, :width] = self._cells
            self._cells = cells
        found = self._cells[types, nodes]
        if len(found) and found.min() < 0:
            width = self._cells.shape[1]
            missing = found < 0
            new = np.unique(types[missing] * width + nodes[missing])
            self._cells[new // width, new % width] = len(self.cell_nodes) + np.arange(len(new))
            self.cell_nodes = np.concatenate((self.cell_nodes, new % width))
            self.cell_types = np.concatenate((self.cell_types, new // width))
            found = self._cells[types, nodes]
        return found

    def merge(self, other: Partial) -> None:
        """Add the sums of other rows, of the same pass: another node, another part of its keys."""
        to_nodes = self.patterns.merge(other.patterns).astype(np.int64, copy=False)
        to_types = np.array([self._type_number(name) for name in other.types], np.int64)
        to = self._cells_of(to_nodes[other.cell_nodes], to_types[other.cell_types])
        self.counts.merge(other.counts, to)
        self.strings.merge(other.strings, to)
        carried(self.strings.rows[:, LOW : HIGH + 1])
        self.memory.merge(other.memory, to)
        self.lives.merge(other.lives, to)
        self.lengths.merge(other.lengths, (2 * to_types[:, None] + (0, 1)).ravel())
        self.examples.merge(other.examples, to_nodes)
        self.slots.merge(other.slots)
        self.tops.merge(other.tops)
        self.encodings.update(other.encodings)
        self.over.update(other.over)
        self.over_sampled.update(other.over_sampled)
        self.keys += other.keys
        self.unread += other.unread
        self.vanished += other.vanished
        self.shrink()

    def __getstate__(self) -> dict[str, object]:
        """Leave out the thresholds: keys were judged when they were added, and sums from elsewhere are only merged."""
        return {name: value for name, value in vars(self).items() if name not in {"_thresholds", "checksums"}}

    def shrink(self) -> None:
        """Number nodes anew if many numbers belong to merged nodes."""
        if len(self.patterns) <= NUMBERS_OF_A_NODE * self.patterns.most:
            return
        to_nodes = self.patterns.fold().astype(np.int64, copy=False)
        nodes, types = to_nodes[self.cell_nodes], self.cell_types
        self._cells = np.full((1, 1), -1, np.int64)
        self.cell_nodes = self.cell_types = np.empty(0, np.int64)
        to = self._cells_of(nodes, types)
        self.counts, self.strings = self.counts.taken(to), self.strings.taken(to)
        carried(self.strings.rows[:, LOW : HIGH + 1])
        self.memory, self.lives = self.memory.taken(to), self.lives.taken(to)
        self.examples = self.examples.taken(to_nodes)


class RowColumns:
    """The columns of a chunk as arrays, each with a mask of the rows with a known value."""

    def __init__(self, table: pl.DataFrame, types: Whole) -> None:
        self.table = table
        self.types = types
        """The number of the type of each row."""
        self.memory, self.has_memory = self.column("memory_bytes")
        self.lengths, self.has_length = self.column("length")
        self.expires_ms, self.has_ttl = self.column("expires_ms")
        self.is_sampled: Flags = table["sampled"].fill_null(value=True).to_numpy()
        left_ms = np.maximum(self.expires_ms - self.column("asked_ms")[0], 0)
        self.left_ms: Whole = np.where(self.expires_ms == NEVER, -1, left_ms)
        """Remaining time to live of each key in ms, -1 if it does not expire."""

    def column(self, name: str) -> tuple[Whole, Flags]:
        """Return the numbers of a column, 0 where they are not known, and whether they are."""
        column = self.table[name]
        return column.fill_null(0).to_numpy(), column.is_not_null().to_numpy()
