"""Queries to the rows kept by an analysis: which queries they answer, conditions and orders for Polars, the search.

The meaning of terms is in `deciding`. Terms about facts become comparisons, null if the fact is unknown. Terms about
names become the comparisons of text that Polars makes quickest; names for which these are not right are decided one by
one by the same test as in a search of the server.

A search is work in slices, a chunk of rows each: the caller runs them in another thread, shows the results in between,
and may leave off after each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from typing import Final

import polars as pl

from rtui.analysis.columns import Asked, Columns
from rtui.analysis.query.behind import scope_of
from rtui.analysis.query.deciding import (
    FactComparison,
    NameTest,
    Test,
    TextTest,
    allowed,
    name_terms,
    name_test,
    slots_in,
)
from rtui.analysis.query.patterns import HEX_PARTS
from rtui.analysis.query.query import MatchOrder, Query, Term
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import Steps
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.matching import natural
from rtui.keyspace.text.quantities import LARGEST, Bounds
from rtui.keyspace.text.segments import Separators
from rtui.table.rows import KeptChunk, KeptRows
from rtui.table.schema import NEVER, SCHEMA, keys_in_slices, keys_of

_AT: Final = "row in its chunk"
_PASSES: Final = "passes"
_ORDER: Final = "order"


@dataclass(frozen=True, slots=True)
class RowCondition:
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
    undecided: Counter[str] = field(default_factory=Counter)
    """Rows that may pass, by the column whose null keeps them from being decided."""
    expired: int = 0
    """Rows that passed or may have, whose keys have expired since."""
    looked_at: int = 0

    @property
    def keys(self) -> list[bytes]:
        """The names of the first rows, as the server has them."""
        return keys_of(self.rows)


def find(
    chunks: Iterable[KeptChunk | None], condition: RowCondition, now_ms: int, limit: int, by: By | None = None
) -> tuple[Found, Steps[None]]:
    """Return the matches of a condition, of which at most `limit` rows are kept, and the work that finds them.

    The kept rows are the first ones, or with `by` the first in that order. Keys whose time to live has run out at
    `now_ms` are gone and only counted. Chunks may come as they are found: None in their place pauses.
    """
    found = Found(pl.DataFrame(schema=SCHEMA))
    search = _Search(found, condition, now_ms, limit, by)
    return found, _each(chunks, search.look_at)


def _each(chunks: Iterable[KeptChunk | None], look_at: Callable[[KeptChunk], None]) -> Steps[None]:
    for chunk in chunks:
        yield None if chunk is None else partial(look_at, chunk)


class _Search:
    """Looks for rows, chunk by chunk."""

    def __init__(self, found: Found, condition: RowCondition, now_ms: int, limit: int, by: By | None) -> None:
        self._found, self._condition, self._limit, self._by = found, condition, limit, by
        self._expired = (pl.col("expires_ms") != NEVER) & (pl.col("expires_ms") < now_ms)
        self._order = pl.DataFrame(schema={_ORDER: pl.Null})
        expressions = [*condition.names, self._expired]
        expressions += [] if condition.facts is None else [condition.facts]
        expressions += [] if by is None else [by.value]
        self._needed = tuple(dict.fromkeys(name for one in expressions for name in one.meta.root_names()))

    def look_at(self, chunk: KeptChunk) -> None:
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

    def _keep(self, chunk: KeptChunk, table: pl.DataFrame) -> None:
        if table.height:
            self._found.rows = self._found.rows.vstack(_rows_of(chunk, table[_AT]))

    def _keep_first(self, chunk: KeptChunk, table: pl.DataFrame, is_descending: bool) -> None:
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


def _rows_of(chunk: KeptChunk, at: pl.Series) -> pl.DataFrame:
    return chunk.columns(SCHEMA)[at].cast(SCHEMA)


_ASKED_OF: Final[dict[Fact, Callable[[Columns], Asked]]] = {
    Fact.TTL: lambda columns: columns.ttl,
    Fact.MEMORY: lambda columns: columns.memory,
    Fact.IDLE: lambda columns: columns.idle,
    Fact.FREQUENCY: lambda columns: columns.idle,
    Fact.LENGTH: lambda columns: columns.length,
    Fact.ENCODING: lambda columns: columns.encoding,
}
"""Which keys an analysis reads a fact of; it always reads the type."""


@dataclass(frozen=True, slots=True)
class PassRows:
    """The rows of an analysis, and its scope."""

    rows: KeptRows
    scope: Scope

    def why_not(self, query: Query, order: MatchOrder | None = None) -> SafeText | None:
        """Return why the rows can't answer a query, as a sentence; None if they can."""
        if self.rows.why_none:
            hint = "" if self.rows.may_use_files else "; the setting rows.files keeps them in files"
            return SafeText(f"The server is asked: no rows of the analysis are kept, since {self.rows.why_none}{hint}.")
        if query.about(Fact.VALUE):
            return SafeText("The server is asked: the analysis has read no values.")
        narrower = [term for term in scope_of(self.scope).terms if term not in query.terms]
        if narrower:
            terms = " ".join(str(term) for term in narrower)
            return SafeText(f"The server is asked: the analysis was of {terms} only.")
        for fact in (*query.facts, *([] if order is None or order.fact is Fact.NAME else [order.fact])):
            if not self.knows(fact):
                is_of_some = fact.column in self.rows.known
                which = "some keys only" if is_of_some else "no key"
                return SafeText(f"The server is asked: the analysis knows {fact.command} of {which}.")
        return None

    def knows(self, fact: Fact) -> bool:
        """Return whether a fact was read of all keys, and is known for some."""
        asked_of = _ASKED_OF.get(fact)
        is_of_all = asked_of is None or asked_of(self.scope.columns) is Asked.ALL
        return is_of_all and fact.column in self.rows.known


def condition_of(query: Query, separators: Separators, now_ms: int) -> RowCondition:
    """Return the condition of a query on rows; times to live are as of `now_ms`, 0 ms if they have run out.

    Raises RegexError for an invalid expression, ValueError for nodes and shards, which must be replaced before, see
    `plan.on_slots`.
    """
    facts = [_fact(term, now_ms) for term in query.terms if term.spec.fact in query.facts]
    return RowCondition(
        tuple(_name(term, separators) for term in name_terms(query)),
        pl.all_horizontal(*facts) if facts else None,
        tuple(fact.column for fact in query.facts),
    )


def by_order(order: MatchOrder) -> By:
    """Return the sort expression of an order: keys that never expire have the longest time to live, names sort
    naturally."""
    column = pl.col(order.fact.column)
    match order.fact:
        case Fact.NAME:
            raw = pl.coalesce("raw", column.cast(pl.Binary))
            value = raw if order.is_by_bytes else raw.map_batches(_natural, pl.Binary(), is_elementwise=True)
        case Fact.TYPE | Fact.ENCODING:
            value = column.cast(pl.String)
        case Fact.TTL:
            value = pl.when(column == NEVER).then(pl.lit(LARGEST, pl.Int64)).otherwise(column)
        case _:
            value = column
    return By(value, order.is_descending)


def _natural(names: pl.Series) -> pl.Series:
    return pl.Series([natural(name) for name in names], dtype=pl.Binary)


# facts


def _fact(term: Term, now_ms: int) -> pl.Expr:
    """Return the expression for a term about a fact, null where that is not known."""
    column, values = pl.col(term.spec.fact.column), allowed(term, now_ms)
    if isinstance(values, frozenset):
        found = column.is_in([name.decode("utf-8", "backslashreplace") for name in values])
    else:
        nothing = column != column  # noqa: PLR0124 - false or null
        found = pl.any_horizontal(nothing, *(_within(column, one) for one in values if (one.low or 0) <= LARGEST))
    return ~found if term.is_negated else found


def _within(column: pl.Expr, bounds: Bounds) -> pl.Expr:
    """Return whether a number is within bounds, in 64 bits, which no narrower column changes."""
    above = column >= pl.lit(bounds.low, pl.Int64)
    if bounds.high is None or bounds.high >= LARGEST:
        return above
    return above & (column <= pl.lit(bounds.high, pl.Int64))


# names


_NAME: Final = pl.col("name")

_COMPARED: Final[dict[FactComparison, Callable[..., pl.Expr]]] = {
    FactComparison.IS: _NAME.eq,
    FactComparison.BEGINS: _NAME.str.starts_with,
    FactComparison.ENDS: _NAME.str.ends_with,
    FactComparison.HAS: lambda text: _NAME.str.contains(text, literal=True),
    FactComparison.MATCHES: _NAME.str.contains,
    FactComparison.LEAST: _NAME.str.len_bytes().ge,
}


def _name(term: Term, separators: Separators) -> pl.Expr:
    """Return the expression for a term about names."""
    test = name_test(term, separators)
    found = test.text()
    inputs: list[str | pl.Expr] = ["name", "raw", _compared(found)]
    if is_slot := term.name == "slot":
        inputs[2:] = [pl.col("slot").is_in(list(slots_in(term.values))).fill_null(False), "slot"]

    def decide(columns: Sequence[pl.Series]) -> pl.Series:
        name, raw, answers = columns[:3]
        if len(answers) != len(name):
            answers = answers.new_from_index(0, len(name))
        again = [raw.is_not_null()] if raw.null_count() < len(raw) else []
        if is_slot:
            again = [columns[3].is_null()]
        if not found.is_for_unicode:
            again.append(name.str.len_bytes() != name.str.len_chars())
        if not found.is_sure:
            again.append(answers)
        rows = reduce(or_, again).arg_true() if again else pl.Series(dtype=pl.UInt32)
        if not len(rows):
            return answers
        table = pl.DataFrame({"name": name.gather(rows), "raw": raw.gather(rows)})
        looked_at = _one_by_one(test.passes, table) if test.is_alike is None else _by_shape(test, table)
        return answers.clone().scatter(rows, looked_at)

    answer = pl.map_batches(inputs, decide, return_dtype=pl.Boolean(), is_elementwise=True)
    return ~answer if term.is_negated else answer


def _compared(found: TextTest) -> pl.Expr:
    if () in found.any_of or not found.any_of:
        return pl.lit(() in found.any_of)
    each = ([_COMPARED[comparison](value) for comparison, value in parts] for parts in found.any_of)
    return pl.any_horizontal(*(pl.all_horizontal(*parts) for parts in each))


def _one_by_one(test: Test, table: pl.DataFrame) -> pl.Series:
    """Return the answers of a test for the names of a table."""
    parts = [pl.Series([bool(test(key)) for key in keys], dtype=pl.Boolean) for keys in keys_in_slices(table)]
    return pl.concat(parts)


def _by_shape(test: NameTest, table: pl.DataFrame) -> pl.Series:
    """Return the same, but of names that differ in identifiers, look at one only where the others are alike."""
    is_alike, name, shape = test.is_alike, _NAME, _NAME
    assert is_alike is not None  # noqa: S101 - only then
    for part, mark in zip(HEX_PARTS, _MARKS, strict=True):
        shape = shape.str.replace_all(part, mark)
    shape = shape.str.replace_all("[0-9]", "0")
    is_plain = pl.col("raw").is_null() & ~name.str.contains(f"[{_MARKS}]")
    table = table.with_columns(pl.when(is_plain).then(shape).alias("shape"))
    groups = table.filter(pl.col("shape").is_not_null()).group_by("shape").agg(name.first(), pl.len())
    groups = groups.filter(pl.col("len") > 1)
    found = [
        bool(test.passes(key.encode())) if is_alike(key.encode(), any(mark in shape for mark in _MARKS)) else None
        for key, shape in zip(groups["name"], groups["shape"], strict=True)
    ]
    groups = groups.select("shape", pl.Series("answer", found, dtype=pl.Boolean))
    answers = table.join(groups, on="shape", how="left", maintain_order="left")["answer"]
    rows = answers.is_null().arg_true()
    return answers.scatter(rows, _one_by_one(test.passes, table[rows])) if len(rows) else answers


_MARKS: Final = "\x01\x02"
"""Stand for HEX_PARTS in the shape of a name."""
