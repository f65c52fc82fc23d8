"""Queries to kept rows: the rows that match a condition, and the first in some order.

A query is work in slices, a chunk of rows each: the caller runs them in another thread, shows the results in between,
and may leave off after each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import polars as pl

from rtui.keyspace.slices import Steps
from rtui.table.rows import Chunk
from rtui.table.schema import NEVER, SCHEMA, keys_of

_AT: Final = "row in its chunk"
_PASSES: Final = "passes"
_ORDER: Final = "order"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on rows, as expressions: true, false, or null where a needed fact is not known; empty, all pass."""

    names: tuple[pl.Expr, ...] = ()
    """Tests of `name`, `raw` and `slot`, never null; the cheapest first."""
    facts: pl.Expr | None = None
    """A test of all other columns; null if the known facts do not decide it."""
    columns: tuple[str, ...] = ()
    """The columns of `facts`."""

    def undecided(self) -> pl.Expr:
        """Return the column whose null keeps a row from being decided, the first one of several."""
        return pl.coalesce(pl.when(pl.col(column).is_null()).then(pl.lit(column)) for column in self.columns)


@dataclass(frozen=True, slots=True)
class By:
    """A sort order of rows; null comes last, equal rows stay in the order they came in."""

    value: pl.Expr
    is_descending: bool = False


@dataclass(slots=True)
class Found:
    """The matches of a condition so far."""

    rows: pl.DataFrame
    """The first rows, with the columns of the schema."""
    count: int = 0
    """All rows that pass."""
    undecided: Counter[str] = field(default_factory=Counter)
    """Rows that may pass, by the column whose null keeps them from being decided."""
    expired: int = 0
    """Rows that passed or may have, whose keys have expired since."""
    looked_at: int = 0
    """Rows that were looked at."""

    @property
    def keys(self) -> list[bytes]:
        """The names of the first rows, as the server has them."""
        return keys_of(self.rows)


def find(
    chunks: Iterable[Chunk | None], condition: Condition, now_ms: int, limit: int, by: By | None = None
) -> tuple[Found, Steps[None]]:
    """Return the matches of a condition, of which at most `limit` rows are kept, and the work that finds them.

    The kept rows are the first ones, or with `by` the first in that order. Keys whose time to live has run out at
    `now_ms` are gone and only counted. Chunks may come as they are found: None in their place pauses.
    """
    found = Found(pl.DataFrame(schema=SCHEMA))
    search = _Search(found, condition, now_ms, limit, by)
    return found, _each(chunks, search.look_at)


def _each(chunks: Iterable[Chunk | None], look_at: Callable[[Chunk], None]) -> Steps[None]:
    for chunk in chunks:
        yield None if chunk is None else partial(look_at, chunk)


class _Search:
    """Looks for rows, chunk by chunk."""

    def __init__(self, found: Found, condition: Condition, now_ms: int, limit: int, by: By | None) -> None:
        self._found, self._condition, self._limit, self._by = found, condition, limit, by
        self._expired = (pl.col("expires_ms") != NEVER) & (pl.col("expires_ms") < now_ms)
        self._order = pl.DataFrame(schema={_ORDER: pl.Null})
        expressions = [*condition.names, self._expired]
        expressions += [] if condition.facts is None else [condition.facts]
        expressions += [] if by is None else [by.value]
        self._needed = tuple(dict.fromkeys(name for one in expressions for name in one.meta.root_names()))

    def look_at(self, chunk: Chunk) -> None:
        found, facts = self._found, self._condition.facts
        table = chunk.columns(self._needed).with_row_index(_AT)
        if facts is not None:
            table = table.with_columns(facts.alias(_PASSES)).filter(pl.col(_PASSES).fill_null(True))
        table = _passing(table, self._condition.names)
        height = table.height
        table = table.filter(self._expired.fill_null(False).not_())
        found.expired += height - table.height
        if facts is not None and table[_PASSES].null_count():
            unknown = table.filter(pl.col(_PASSES).is_null()).select(self._condition.undecided().alias("column"))
            found.undecided.update(unknown["column"].to_list())
            table = table.filter(pl.col(_PASSES))
        found.count += table.height
        found.looked_at += chunk.height
        if self._by is None:
            self._keep(chunk, table.head(self._limit - found.rows.height))
        elif self._limit:
            self._keep_first(chunk, table.select(_AT, self._by.value.alias(_ORDER)), self._by.is_descending)

    def _keep(self, chunk: Chunk, table: pl.DataFrame) -> None:
        if table.height:
            self._found.rows = self._found.rows.vstack(_rows_of(chunk, table[_AT]))

    def _keep_first(self, chunk: Chunk, table: pl.DataFrame, is_descending: bool) -> None:
        """Keep the first rows of these and of those kept before."""
        if self._order.height == self._limit and (worst := self._order[_ORDER][-1]) is not None:
            table = table.filter(pl.col(_ORDER) > worst if is_descending else pl.col(_ORDER) < worst)
        first = _first(table, self._limit, is_descending)
        if not first.height:
            return
        rows = self._found.rows.vstack(_rows_of(chunk, first[_AT]))
        order = pl.concat([self._order, first.select(_ORDER)], how="vertical_relaxed").with_row_index(_AT)
        order = order.sort(_ORDER, descending=is_descending, nulls_last=True, maintain_order=True).head(self._limit)
        self._found.rows, self._order = rows[order[_AT]], order.select(_ORDER)


def _passing(table: pl.DataFrame, tests: Sequence[pl.Expr]) -> pl.DataFrame:
    """Return the rows that pass all tests; each test is evaluated on the rows that passed the previous one."""
    if not tests or not table.height:
        return table
    middle = table.height // 2
    halves = [half.lazy() for half in (table[:middle], table[middle:])]  # each has a thread
    for test in tests:
        halves = [half.filter(test) for half in halves]
    return pl.concat(pl.collect_all(halves, optimizations=pl.QueryOptFlags.none()))


def _first(table: pl.DataFrame, limit: int, is_descending: bool) -> pl.DataFrame:
    """Return the first rows of an order, themselves in the order of the table, without sorting all of it."""
    known = table.filter(pl.col(_ORDER).is_not_null()) if table[_ORDER].null_count() else table
    if known.height <= limit:
        rest = table.filter(pl.col(_ORDER).is_null()).head(limit - known.height)
        return known.vstack(rest)
    values = known[_ORDER]
    edge = values.top_k(limit).min() if is_descending else values.bottom_k(limit).max()
    order = pl.col(_ORDER)
    before = known.filter(order > edge if is_descending else order < edge)
    return before.vstack(known.filter(order == edge).head(limit - before.height))


def _rows_of(chunk: Chunk, at: pl.Series) -> pl.DataFrame:
    return chunk.columns(SCHEMA)[at].cast(SCHEMA)
