"""The keys that rank first, as rows of tables: the largest of each type by memory and by length, the keys with the
highest access counters, and those with the shortest idle times.

Ties go by key. Each key is listed once: if it came again, with the row of the greatest value.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import polars as pl

from rtui.table.schema import SCHEMA
from rtui.table.sums import NONE, Whole
from rtui.table.top_keys import LIST_NAME_BYTES


class Measure(IntEnum):
    """The measure that a list is ordered by."""

    MEMORY = 0
    LENGTH = 1
    FREQUENCY = 2
    IDLE = 3


_LIST: Final = pl.Schema({"measure": pl.Int8(), "of_type": pl.String(), "value": pl.Int64(), "key": pl.Binary()})

ROWS: Final = pl.Schema({**_LIST, **SCHEMA, "asked_ms": pl.Int64()})
"""Measure, the type of a list by type or null, the value of the key in it, its bytes, and its row of the key table."""

_DECIDING: Final = (
    *map(pl.col, ("expires_ms", "memory_bytes", "length", "idle_s", "frequency", "sampled")),
    *(pl.col(name).cast(pl.String) for name in ("type", "encoding", "node")),
)
"""The tie-break between rows of one key with the same value and moment."""


class Tops:
    """The first rows by each measure."""

    def __init__(self, top: int) -> None:
        self.top = top
        """Keys in each list."""
        self.rows = ROWS.to_frame()
        """List by list, best first."""
        self._floors: dict[tuple[int, str | None], tuple[int, bytes]] = {}
        """Value and key of the last entry, or of the first that did not fit, once a list is full."""

    def add(self, table: pl.DataFrame, keys: pl.Series, types: Whole, names: list[str | None]) -> pl.DataFrame:
        """Add rows of the key table with `asked_ms`; return those that may be among the first.

        `keys` are the names in bytes, `types` the index of each row's type in `names`.
        """
        if not self.top or not table.height:
            return self.rows.clear()
        by_type = [np.flatnonzero(types == index) for index in range(len(names))]
        frequency, idle = table["frequency"], table["idle_s"]
        if idle.count():
            idle = pl.select(pl.when(frequency.is_null()).then(-idle)).to_series()
        lists, first, values_of_first = list[tuple[int, str | None]](), list[Whole](), list[Whole]()
        for measure, column in (
            (Measure.MEMORY, table["memory_bytes"]),
            (Measure.LENGTH, table["length"]),
            (Measure.FREQUENCY, frequency),
            (Measure.IDLE, idle),
        ):
            if not column.count():
                continue
            values = column.fill_null(NONE).to_numpy()
            parts: list[tuple[str | None, Whole]] = [(None, np.arange(table.height))]
            if measure in (Measure.MEMORY, Measure.LENGTH):
                parts = list(zip(names, by_type, strict=True))
            for of_type, rows in parts:
                found = self._first((int(measure), of_type), values, rows, keys)
                lists += [(int(measure), of_type)] * len(found)
                first.append(found)
                values_of_first.append(values[found])
        if not lists:
            return self.rows.clear()
        rows = np.concatenate(first)
        which = pl.DataFrame(lists, {"measure": pl.Int8, "of_type": pl.String}, orient="row")
        ranked = which.with_columns(pl.Series("value", np.concatenate(values_of_first)), keys.gather(rows).alias("key"))
        entered = table[rows].hstack(ranked).select(ROWS.names())
        self._join(entered)
        return entered

    def _first(self, which: tuple[int, str | None], values: Whole, rows: Whole, keys: pl.Series) -> Whole:
        """Return the indexes of the first of these rows, without those that can't enter a list."""
        floor = self._floors.get(which)
        rows = rows[values[rows] >= (NONE + 1 if floor is None else floor[0])]
        if floor is not None and (is_equal := values[rows] == floor[0]).any():
            last = pl.Series([floor[1]], dtype=pl.Binary)
            rows = rows[~is_equal | (keys.gather(rows) <= last).to_numpy()]
        most = self.top
        while len(rows) > most:
            first = rows[values[rows] >= np.partition(values[rows], len(rows) - most)[len(rows) - most]]
            ranked = pl.DataFrame({"value": values[first], "key": keys.gather(first), "row": first})
            ranked = ranked.sort("value", "key", descending=[True, False])
            places = ranked["key"].is_first_distinct().cast(pl.Int64).cum_sum()
            if int(places[-1]) >= self.top:
                return ranked.filter(places <= self.top)["row"].to_numpy()
            most *= 4  # so many are of keys that came again
        return rows

    def merge(self, other: Tops) -> None:
        if other.rows.height:
            self._join(other.rows)

    def copy(self) -> Tops:
        made = Tops(self.top)
        made.rows, made._floors = self.rows, self._floors.copy()
        return made

    def _join(self, rows: pl.DataFrame) -> None:
        which = ["measure", "of_type"]
        length = pl.col("key").bin.size().cast(pl.Int64)
        ranked = (
            pl.concat((self.rows, rows))
            .sort(*which, "key", "value", "asked_ms", *_DECIDING)
            .unique([*which, "key"], keep="last", maintain_order=True)
            .sort(*which, "value", "key", descending=[False, False, True, False])
            .with_columns(
                pl.int_range(pl.len()).over(which).alias("place"), length.cum_sum().over(which).alias("name_bytes")
            )
            .with_columns(((pl.col("name_bytes") <= LIST_NAME_BYTES) | (pl.col("place") == 0)).alias("fits"))
        )
        kept = (pl.col("place") < self.top) & pl.col("fits")
        self.rows = ranked.filter(kept).select(ROWS.names())
        is_last = (pl.col("place") == self.top - 1) | ~pl.col("fits")
        last = ranked.filter(is_last).unique(which, keep="first", maintain_order=True)
        for measure, of_type, value, key in last.select(*which, "value", "key").iter_rows():
            self._floors[measure, of_type] = (value, key)
