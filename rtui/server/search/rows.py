"""A search among the rows kept by a pass, and facts of keys from these; both send nothing to the server.

The results are as of the time of the pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Final

import polars as pl

from rtui.analysis import humanize
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.humanize import Mark
from rtui.analysis.query.plan import ShardPlace, on_slots
from rtui.analysis.query.query import MatchOrder, Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server import wall_clock
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.search.run import TWICE, KeyWeights, weight
from rtui.server.search.search import LISTED, TOP_LISTED, Search, Stage
from rtui.server.wire.connection import State
from rtui.table.kept_rows import PassRows, by_order, condition_of, find
from rtui.table.rows import KeptChunk, KeptRows
from rtui.table.schema import NEVER, SLICE_ROWS, keys_in_slices, keys_of, names_of

FOLLOW_S: Final = 0.25
"""How often it is looked whether an analysis that is under way has seen more keys."""

_FIELDS: Final = ("type", "memory_bytes", "length", "expires_ms", "idle_s", "frequency", "encoding")
"""Columns in the order of the fields of a KeyRecord behind the key."""

_FACT_OF: Final = {fact.column: fact for fact in Fact}

_NAME: Final = ["name", "raw"]


class RowsSearch(Search):
    """A search among rows."""

    def __init__(
        self,
        kept: PassRows,
        query: Query,
        separators: Separators,
        link: Callable[[], State],
        *,
        shards: Sequence[ShardPlace] = (),
        columns: Sequence[Fact] = (),
        order: MatchOrder | None = None,
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        """`link` returns the state of the connection, `shards` are those of the cluster.

        Raises RegexError for an invalid expression, PlaceError for a node or shard that is not in the cluster.
        """
        known = tuple(fact for fact in columns if kept.knows(fact))
        super().__init__(query, order, known, LISTED if order is None else TOP_LISTED)
        self._lacking = tuple(fact for fact in columns if fact not in known)
        self._kept_pass, self._rows, self._link = kept, kept.rows, link
        self._clock, now_s = clock, clock()
        self.as_of_s: float = now_s
        now_ms = round(now_s * 1000)
        condition = condition_of(on_slots(query, shards), separators, now_ms)
        by = None if order is None else by_order(order)
        self._found, self._portions = find(self._chunks(), condition, now_ms, self.limit, by)
        self._kept: list[KeyRecord] = []
        self._is_done = False
        self._steps = 0

    @property
    def revision(self) -> int:
        return self._steps + self.control.revision + self._is_over + (self._task is not None)

    @property
    def stage(self) -> Stage:
        if self._is_over:
            return Stage.OVER
        return Stage.PREPARING if self._task is None else Stage.RUNNING

    @property
    def plan(self) -> SafeText:
        return SafeText(f"looks through {humanize.keys(self._rows.height)} of the analysis; sends no commands")

    @property
    def kept(self) -> Sequence[KeyRecord]:
        return self._kept

    def _chunks(self) -> Iterator[KeptChunk | None]:
        """Yield the rows, as they come if the analysis is under way; None until there are more."""
        rows, is_over = self._rows, False
        while not is_over:
            is_over = rows.ended_s is not None or bool(rows.why_none)
            self.as_of_s = self._clock() if rows.ended_s is None else rows.ended_s
            yield from rows.chunks(self._found.looked_at)
            if not is_over:
                yield None

    def _look(self, step: Callable[[], None]) -> None:
        """Look at more rows and list the matches found, in another thread."""
        listed = 0 if self.order is not None else len(self._kept)
        before = self._found.rows
        step()
        if self._found.rows is not before:
            self._kept = [*self._kept[:listed], *self._records(self._found.rows[listed:])]

    def _records(self, rows: pl.DataFrame) -> Iterator[KeyRecord]:
        """Yield rows as they are listed, times to live as they were when the rows were found."""
        left = pl.max_horizontal(pl.col("expires_ms") - round(self.as_of_s * 1000), 0)
        expires = (
            pl.when(pl.col("expires_ms") == NEVER).then(NO_EXPIRY).when(pl.col("expires_ms").is_not_null()).then(left)
        )
        texts = (pl.col(name).cast(pl.String).cast(pl.Binary) for name in ("type", "encoding"))
        found = rows.with_columns(*texts, expires.alias("expires_ms"))
        at = repeat(self.as_of_s)
        for some in found.iter_slices(SLICE_ROWS):
            yield from map(KeyRecord, keys_of(some), *(some[column].to_list() for column in _FIELDS), at)

    @property
    def count(self) -> int:
        return self._found.count

    @property
    def mark(self) -> Mark:
        is_all = self._is_done and self._rows.is_whole and not self._found.undecided
        return Mark.EXACT if is_all else Mark.AT_LEAST

    @property
    def progress(self) -> Progress:
        seen, height = self._found.looked_at, self._rows.height
        if self._failure is not None:
            return Progress(ScanState.FAILED, None, seen, reason=self._failure.happened)
        if self._is_over:
            return Progress(ScanState.DONE if self._is_done else ScanState.STOPPED, 1.0, seen)
        state = ScanState.PAUSED if self.control.is_held else ScanState.RUNNING
        fraction = seen / height if height and self._rows.ended_s is not None else None
        return Progress(ScanState.READY if self._task is None else state, fraction, seen)

    @property
    def link(self) -> State:
        return self._link()

    @property
    def notes(self) -> tuple[SafeText, ...]:
        rows, found = self._rows, self._found
        notes = []
        if rows.why_none:
            notes.append(f"The rows of the analysis are no longer kept: {rows.why_none}.")
        elif rows.ended_s is None:
            notes.append("The analysis is running: only keys seen so far are searched.")
        elif not rows.is_whole:
            notes.append("The analysis had not seen all keys when it ended.")
        if self._lacking:
            commands = ", ".join(fact.command for fact in self._lacking)
            notes.append(f"{commands}: not known of all keys; press R to read it.")
        if rows.may_repeat:
            notes.append(TWICE)
        if found.expired:
            gone = "has expired since and is" if found.expired == 1 else "have expired since and are"
            notes.append(f"{humanize.keys(found.expired)} {gone} excluded.")
        for column, count in found.undecided.most_common():
            fact = _FACT_OF[column]
            terms = " ".join(str(term) for term in self.query.about(fact))
            why = f"the analysis has no {fact.command} of {'it' if count == 1 else 'them'}"
            notes.append(f"{humanize.keys(count)} not checked ({terms}): {why}.")
        return tuple(SafeText(note) for note in notes)

    def sorts_at_once(self, order: MatchOrder | None) -> bool:
        return self._kept_pass.why_not(self.query, order) is None

    async def _work(self) -> None:
        try:
            for step in self._portions:
                await self.control.wait_while_held()
                if self.control.is_stopped:
                    return
                if step is None:
                    await self.control.sleep(FOLLOW_S)
                else:
                    await asyncio.to_thread(self._look, step)
                    self._steps += 1
            self._is_done = not self._rows.why_none
        finally:
            self._portions.close()
            self._is_over = True


class KeptColumn(KeyWeights):
    """Looks for keys in the rows of an analysis, which knows nothing of later ones."""

    def __init__(self, rows: KeptRows, store: NamespaceStore, node: Namespace, sort: Sort) -> None:
        super().__init__(node, sort)
        self._rows, self._store = rows, store

    async def run(self) -> None:
        names = [*chain.from_iterable(HeldNames(self._store, self.node, is_direct=True).pages())]
        wanted = pl.DataFrame(names_of(names))
        for chunk in self._rows.chunks():
            self.weights |= await asyncio.to_thread(self._found, chunk, wanted)

    def _found(self, chunk: KeptChunk, wanted: pl.DataFrame) -> dict[bytes, float]:
        column, skipped = self._fact.column, len(self.node.path())
        table = chunk.columns((*_NAME, column)).join(wanted, on=_NAME, how="semi", nulls_equal=True)
        keys = chain.from_iterable(keys_in_slices(table))
        values = table[column].cast(pl.String).cast(pl.Binary) if self._fact is Fact.TYPE else table[column]
        return {key[skipped:]: weight(self._fact, value) for key, value in zip(keys, values, strict=True)}
