"""Queries about some keys after the second stage, and the way of all keys into tables.

A batch that has the replies of the second stage takes one of these ways:

    a length is to be asked     it waits for the THIRD stage where `LateLengths` chooses it
    its memory is not bounded   it waits for a TIMED query, alone in its write, so that its time can be measured
    neither                     it goes into a table

Only one TIMED query is under way at a time, with as many keys as have proved cheap. Once some have proved costly, no
more are sent: keys that wait go on without their memory, and with a note that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.guard.evidence import MemoryCost, MemoryUsagePolicy
from rtui.server.inspection.largest import LateLengths
from rtui.server.inspection.plan import LEFT_OUT, InspectionPlan
from rtui.server.inspection.queries import KeyQuery, QueryStage, WaitingKeys, query_about, rows_at
from rtui.server.inspection.tables import InspectedBatch, Tables
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.errors import Reply

TOO_COSTLY_NOTE: Final = "skipped, because MEMORY USAGE was too slow for others of this type"


class LastStages:
    """The keys that wait for the third stage or a timed MEMORY USAGE; see the module."""

    def __init__(
        self,
        plan: InspectionPlan,
        tables: Tables,
        *,
        clock: Callable[[], float],
        gone: Callable[[Sequence[bytes]], object],
    ) -> None:
        """`clock` returns seconds since the epoch; `gone` is called with keys whose length says that they are gone."""
        self.cost_watch = CostWatch()
        self.late_lengths = LateLengths(plan)
        self._tables = tables
        self._plan, self._clock, self._gone = plan, clock, gone
        self._long = WaitingKeys()
        self._unbounded = WaitingKeys()
        """Keys that wait for a timed MEMORY USAGE."""
        self._is_timing = False

    @property
    def keys(self) -> int:
        return self._long.keys + self._unbounded.keys

    def use_other_server(self) -> None:
        """Forget the measured cost of MEMORY USAGE: another server may take more or less time."""
        self.cost_watch = CostWatch()

    def reset(self) -> None:
        """Forget all keys: the scan begins again."""
        self._long.clear()
        self._unbounded.clear()
        self.late_lengths = LateLengths(self._plan)
        self._is_timing = False

    def take_all(self) -> Iterator[InspectedBatch]:
        for waiting in (self._long, self._unbounded):
            yield from waiting.take(waiting.keys)

    def put_back(self, query: KeyQuery) -> None:
        """Let keys of these stages wait again, since their replies were lost."""
        if query.stage is QueryStage.TIMED:
            self._is_timing = False
            self._unbounded.add(query.batch)
        else:
            self._long.add(query.batch)

    def length_queries(self, most: int) -> Iterator[KeyQuery]:
        """Take up to `most` keys of the third stage and yield the queries about them, or pass them on unasked."""
        for batch in self._long.take(most):
            length = self._plan.third_command(batch.key_type)
            if length is not None:
                yield query_about(QueryStage.THIRD, batch, (length,))
            else:
                self.go_on_after_third(batch)

    def timed_query(self, typed: WaitingKeys) -> KeyQuery | None:
        """Take keys of a type without a bound on MEMORY USAGE, unless such a query is under way.

        Keys that have got a bound meanwhile wait for the second stage again, in `typed`.
        """
        while self._unbounded.keys and not self._is_timing:
            batch = next(self._unbounded.take(self.cost_watch.most))
            if self._plan.memory(batch.key_type).policy is MemoryUsagePolicy.WATCHED:
                self._is_timing = True
                evidence = replace(self._plan.evidence(batch.key_type), proved=self.cost_watch.proved)
                asks_clock = self.cost_watch.asks_clock
                return query_about(QueryStage.TIMED, batch, (guard.memory_usage,), evidence, asks_clock=asks_clock)
            typed.add(batch)  # it has been refused since, or another server answers
        return None

    def go_on(self, batch: InspectedBatch) -> None:
        """Pass on keys of one type after the second stage, except keys whose length is still to be asked."""
        late = self.late_lengths.choose(batch, self._tables.big)
        if not late:
            self._after_lengths(batch)
        elif len(late) == len(batch.keys):
            self._long.add(batch)
        else:
            self._long.add(rows_at(batch, late))
            chosen = set(late)
            self._after_lengths(rows_at(batch, [index for index in range(len(batch.keys)) if index not in chosen]))

    def go_on_after_third(self, batch: InspectedBatch) -> None:
        """Pass on keys of one type; without a length if it can't be asked any more."""
        if batch.lengths is None:
            self.late_lengths.leave_out(batch, self._tables.big)
        self._after_lengths(batch)

    def _after_lengths(self, batch: InspectedBatch) -> None:
        """Pass on keys of one type, unless their memory is to be asked in a timed query."""
        if batch.lengths is not None and type_of(batch.key_type).removed_when_empty and 0 in batch.lengths:
            existing = [index for index, length in enumerate(batch.lengths) if length]
            self._gone([key for key, length in zip(batch.keys, batch.lengths, strict=True) if not length])
            batch = rows_at(batch, existing)
            if not existing:
                return
        cost = self._plan.memory(batch.key_type)
        if batch.memory_bytes is None and cost.policy is not MemoryUsagePolicy.FREE:
            if cost.policy is MemoryUsagePolicy.WATCHED and not self.cost_watch.is_over:
                self._unbounded.add(batch)
                return
            batch = replace(batch, note=memory_note(cost))
        self._tables.add(batch, self.asked_at_s(batch))

    def go_on_after_timed(
        self,
        batches: Sequence[InspectedBatch],
        asked: int,
        round_trip_s: float | None,
        clocks: tuple[Reply, Reply] | None = None,
    ) -> None:
        """Pass on the keys of a timed query about `asked` keys; if it took too long, all others that wait for one, too.

        Its time is read from `clocks`, the replies to INFO commandstats before and after it, else it is the round trip.
        """
        self._is_timing = False
        server_s = None if clocks is None else self.cost_watch.server_s(*clocks, asked)
        spent_s = round_trip_s if server_s is None else server_s
        for batch in batches:
            self.cost_watch.observe(len(batch.keys), spent_s)
            self._tables.add(batch, self.asked_at_s(batch))
        if self.cost_watch.is_over:
            for rest in self._unbounded.take(self._unbounded.keys):
                self._tables.add(replace(rest, note=TOO_COSTLY_NOTE), self.asked_at_s(rest))

    def asked_at_s(self, batch: InspectedBatch) -> float:
        """Return when these keys were asked: now, if no fact that depends on the time was."""
        return self._clock() if batch.asked_at_s is None else batch.asked_at_s


def memory_note(cost: MemoryCost) -> str:
    """Return why MEMORY USAGE was not sent about keys; empty if it was, or was not wanted."""
    if cost.policy is MemoryUsagePolicy.FREE or cost.why == LEFT_OUT:
        return ""
    return TOO_COSTLY_NOTE if cost.policy is MemoryUsagePolicy.WATCHED else f"memory skipped, because {cost.why}"
