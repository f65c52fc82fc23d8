"""The keys that rank first, as rows of tables: the largest of each type by memory and by length, the keys with the
highest access counters, and those with the shortest idle times.

Ties go by key. Each key is listed once: if it came again, with the row of the greatest value.

`Tops` has the rows of a partial. `TopKeys` makes the lists of a report of them, with what is learnt of single keys at
the end of a pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from msgspec import structs

from rtui.analysis.report.document import BigReport, KeyRecord
from rtui.analysis.report.thresholds import DEFAULT_PRESET, Preset, SizeLimits, preset
from rtui.keyspace.types import STRING, UNKNOWN_LENGTH
from rtui.table.schema import NEVER, SCHEMA
from rtui.table.sums import NONE, Whole

LIST_NAME_BYTES: Final = 1 << 20
"""Most bytes of the names in one list: if names are very long, it holds fewer keys."""


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

    def add(self, table: pl.DataFrame, keys: pl.Series, types: Whole, names: list[str | None]) -> None:
        """Add rows of the key table with `asked_ms`.

        `keys` are the names in bytes, `types` the index of each row's type in `names`.
        """
        if not self.top or not table.height:
            return
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
            return
        rows = np.concatenate(first)
        which = pl.DataFrame(lists, {"measure": pl.Int8, "of_type": pl.String}, orient="row")
        ranked = which.with_columns(pl.Series("value", np.concatenate(values_of_first)), keys.gather(rows).alias("key"))
        self._join(table[rows].hstack(ranked).select(ROWS.names()))

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
        """Add the rows of other lists that are not below the last ones of their full lists here."""
        rows = other.rows
        which = zip(rows["measure"].to_list(), rows["of_type"].to_list(), strict=True)
        floors = [self._floors.get(one, (NONE, b""))[0] for one in which]
        rows = rows.filter(rows["value"] >= pl.Series(floors, dtype=pl.Int64))
        if rows.height:
            self._join(rows)

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


_RECORDED: Final = ("key", "type", "memory_bytes", "length", "expires_ms", "idle_s", "frequency", "asked_ms")


def records_of(rows: pl.DataFrame) -> Iterator[KeyRecord]:
    """Yield rows with the columns `key` and `asked_ms` as records."""
    for key, key_type, memory_bytes, length, expires_ms, idle_s, frequency, asked_ms in rows.select(
        _RECORDED
    ).iter_rows():
        left = expires_ms if expires_ms is None or expires_ms == NEVER else max(0, expires_ms - asked_ms)
        yield KeyRecord(
            key=key,
            key_type=None if key_type is None else key_type.encode(),
            memory_bytes=memory_bytes,
            length=length,
            ttl_ms=left,
            idle_s=idle_s,
            frequency=frequency,
            asked_at_s=asked_ms / 1000,
        )


class OverCounts(NamedTuple):
    """How many keys are above the thresholds, by type."""

    known: dict[bytes, int]
    """Keys known to be above the threshold, by type; a type that could not be judged is missing."""
    sampled: dict[bytes, int]
    """The same among keys that stand for others."""
    uncertain: frozenset[bytes]
    """Types with keys that may be above, since their length was not asked."""


_Lists = dict[bytes | None, list[KeyRecord]]


class TopKeys:
    """The biggest keys by memory and by length, by type and overall, and the hottest ones; may be pickled.

    The overall lists are made from those of each type.
    """

    def __init__(self, top: int, thresholds: Preset | None = None) -> None:
        self.top = top
        """Keys in each list."""
        self.notes: dict[bytes | None, str] = {}
        """By type, why the memory of keys is not known."""
        self._thresholds = thresholds or preset(DEFAULT_PRESET)
        self._rows = ROWS.to_frame()
        self._listed: dict[Measure, _Lists] | None = None
        """The records of `_rows` by measure and type; None before they are wanted."""
        self._over: Counter[bytes] = Counter()
        self._over_sampled: Counter[bytes] = Counter()
        self._left_out: dict[bytes | None, int] = {}
        """By type, the greatest possible length of keys that were not asked for it."""
        self._learnt: dict[bytes, dict[str, Any]] = {}
        """By key, facts that were asked at the end."""
        self._entered: dict[bytes, KeyRecord] = {}
        """Keys that were left out, with the length that was learnt."""
        self._entered_over: Counter[bytes] = Counter()
        """By type, those of them that are above the thresholds by that alone."""

    def take(self, tops: Tops, over: Counter[str], over_sampled: Counter[str]) -> None:
        """Take the rows that rank first, and how many keys are above the thresholds, as they are now."""
        self._rows, self._listed = tops.rows, None
        self._over = Counter({name.encode(): count for name, count in over.items()})
        self._over_sampled = Counter({name.encode(): count for name, count in over_sampled.items()})

    def merge(self, other: TopKeys) -> None:
        """Add what else is known of other keys, by the same thresholds; their rows come by `take`."""
        self.notes |= other.notes
        self._learnt |= other._learnt
        self._entered |= other._entered
        self._entered_over.update(other._entered_over)
        for key_type, most in other._left_out.items():
            self.leave_out(key_type, most)

    def limits(self, key_type: bytes | None) -> SizeLimits:
        return self._thresholds.limits(key_type)

    def leave_out(self, key_type: bytes | None, most_length: int) -> None:
        self._left_out[key_type] = max(most_length, self._left_out.get(key_type, 0))

    def bound_left_out(self, key_type: bytes, most_length: int) -> None:
        """Bound the length of the keys of this type whose length is unknown."""
        if key_type in self._left_out:
            self._left_out[key_type] = min(most_length, self._left_out[key_type])

    def learn(self, key: bytes, **learnt: int | bytes | str | None) -> None:
        """Complete the record of a key in all lists by `length`, `encoding`, `note`, `idle_s` or `frequency`.

        No list is ordered anew, but a key that was left out enters the list of its type by length.
        """
        self._learnt.setdefault(key, {}).update({name: one for name, one in learnt.items() if one is not None})
        length, listed = learnt.get("length"), self._lists
        if not isinstance(length, int) or key in self._entered:
            return
        for key_type in self._left_out:
            record = next((one for one in listed[Measure.MEMORY].get(key_type, ()) if one.key == key), None)
            by_length = listed[Measure.LENGTH].get(key_type, ())
            if record is None or key_type is None or any(one.key == key for one in by_length):
                continue
            self._entered[key] = structs.replace(record, length=length)
            limits = self.limits(key_type)
            if limits.exceeded(record.memory_bytes, length) and not limits.exceeded(record.memory_bytes, None):
                self._entered_over[key_type] += 1

    @property
    def _lists(self) -> dict[Measure, _Lists]:
        if self._listed is None:
            found: dict[Measure, _Lists] = {measure: defaultdict(list) for measure in Measure}
            which = self._rows.select("measure", "of_type").iter_rows()
            for (measure, of_type), record in zip(which, records_of(self._rows), strict=True):
                note = self.notes.get(record.key_type, "") if record.memory_bytes is None else ""
                listed = found[Measure(measure)][None if of_type is None else of_type.encode()]
                listed.append(structs.replace(record, note=note) if note else record)
            self._listed = found
        return self._listed

    def _completed(self, records: Iterable[KeyRecord]) -> tuple[KeyRecord, ...]:
        """Return records with the facts that were learnt of their keys."""
        learnt = self._learnt
        return tuple(structs.replace(one, **learnt[one.key]) if one.key in learnt else one for one in records)

    @property
    def over(self) -> OverCounts:
        """How many keys are above the thresholds by now."""
        known = self._over + self._entered_over if self._entered_over else self._over
        limits = {key_type: self.limits(key_type).length for key_type in self._over}
        uncertain = {
            key_type
            for key_type, limit in limits.items()
            if limit is not None and self._left_out.get(key_type, 0) > limit
        }
        return OverCounts(dict(known), dict(self._over_sampled), frozenset(uncertain))

    def report(self) -> BigReport:
        """Return all lists of biggest keys, with counts as they are; types in the order of their names."""
        lists, left_out = self._lists, self._left_out.copy()
        of_memory = lists[Measure.MEMORY]
        by_memory = {key_type: self._completed(of_memory[key_type]) for key_type in _in_order(of_memory)}
        entered: _Lists = defaultdict(list)
        for record in self._entered.values():
            entered[record.key_type].append(record)
        by_length = {
            key_type: self._completed(
                _ranked(chain(lists[Measure.LENGTH].get(key_type, ()), entered[key_type]), "length", self.top)
            )
            for key_type in _in_order({*lists[Measure.LENGTH], *entered})
        }
        elements = [records for key_type, records in by_length.items() if key_type not in (STRING.name, None)]
        return BigReport(
            by_memory=self._over_all(by_memory.values(), "memory_bytes"),
            by_length=self._over_all(elements, "length"),
            by_type_memory={key_type: records for key_type, records in by_memory.items() if key_type is not None},
            by_type_length={key_type: records for key_type, records in by_length.items() if key_type is not None},
            over=dict(self.over.known),
            length_not_asked={
                key_type: None if most == UNKNOWN_LENGTH else most
                for key_type, most in left_out.items()
                if key_type is not None and self._may_lack(most, by_length.get(key_type))
            },
        )

    def _may_lack(self, most_length: int, listed: tuple[KeyRecord, ...] | None) -> bool:
        """Whether a list by length may lack a key of at most this length, if there is such a list."""
        if listed is None:
            return False
        return len(listed) < self.top or (bool(listed) and most_length >= (listed[-1].length or 0))

    def _over_all(self, lists: Iterable[tuple[KeyRecord, ...]], measure: str) -> tuple[KeyRecord, ...]:
        """Join the lists of the types; a key that changed its type in between counts as it was last."""
        latest: dict[bytes, KeyRecord] = {}
        for record in chain.from_iterable(lists):
            known = latest.get(record.key)
            if known is None or known.asked_at_s <= record.asked_at_s:
                latest[record.key] = record
        return tuple(_ranked(latest.values(), measure, self.top))

    def hottest(self) -> tuple[KeyRecord, ...]:
        """Return the keys of the highest access counters, or else of the shortest idle times; hottest first."""
        lists = self._lists
        return self._completed(lists[Measure.FREQUENCY].get(None) or lists[Measure.IDLE].get(None) or ())


def _ranked(records: Iterable[KeyRecord], measure: str, top: int) -> list[KeyRecord]:
    """Return the first records, as far as their names fit into a list, the first one always."""
    ranked = sorted(records, key=lambda one: (-(getattr(one, measure) or 0), one.key))[:top]
    sizes = accumulate(len(record.key) for record in ranked)
    return [one for one, size in zip(ranked, sizes, strict=True) if size <= LIST_NAME_BYTES] or ranked[:1]


def _in_order(types: Iterable[bytes | None]) -> list[bytes | None]:
    return sorted(types, key=lambda key_type: key_type or b"")
