"""The inspection of all keys that a scan returns: two stages of queries, sent together with the scan's own SCANs.

One page of keys goes through it like this, a round trip after the other, while further pages follow behind:

1. The scan receives a page and calls `add_page(keys)`: the keys wait in `listed`.
2. For its next write the scan calls `next_write(most)`, which takes keys from `listed` and makes them the FIRST query
   of queries.py. Before its SCAN the write now carries `TYPE k1, PTTL k1, OBJECT IDLETIME k1, TYPE k2, …`.
3. The replies come back to `InspectionPipeline.answered`, where `with_answers` turns them into an `InspectedBatch` a
   type: keys and the columns `ttl_ms` and `idle_s`. Keys that are gone are counted, the others wait in `_typed`, joined
   with keys of the same type from other pages.
4. The next write takes batches from `_typed` and makes a SECOND query of each: `MEMORY USAGE k1, HLEN k1, …`. Every
   n-th key of a type waits in `_encoded` instead, and is asked `OBJECT ENCODING k1` besides.
5. With these replies `memory_bytes` and `lengths` are filled, and the batch goes by way of `last_stages` into `tables`,
   which hand rows of the key table on to the findings.

This is the way if replies are recorded, for samples, and if cursors have no position. Otherwise the compiled engine
scans and queries (`engine_inspection`), and only the keys that branch off go through these stages.

If some facts are asked of a sample only, every eighth key is sampled in step 1, beginning with a random one of the
first eight. Both samples are taken by the order in which SCAN returns keys, which has nothing to do with their names or
values; figures based on them are estimates with a known error. From then on sampled keys and others go in queries and
batches of their own.

Two things branch off. Keys that are not sampled wait in `last_stages` for the THIRD stage where their memory says
that they may be among the longest (`LateLengths`). A batch whose MEMORY USAGE nothing bounds waits there for a TIMED
query, which is alone in its write so that its time can be measured.

When the inspection ends, `largest.complete_largest` reads the missing facts of the largest keys.

Keys whose queries are lost with a connection are put back where they waited. A refused command is not sent any more,
and keys that waited for it go on without its fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final

from rtui.keyspace.types import type_of
from rtui.server import guard, wall_clock
from rtui.server.facts.answers import expected
from rtui.server.guard.command import MAX_BULK_KEY_BYTES
from rtui.server.guard.evidence import MemoryCost, MemoryUsagePolicy
from rtui.server.inspection.largest import LateLengths
from rtui.server.inspection.plan import COMMAND_NAMES, KEY_US, LEFT_OUT, InspectionPlan
from rtui.server.inspection.queries import (
    KeyQuery,
    QueryStage,
    WaitingKeys,
    query_about,
    read_answers,
    rows_at,
    with_answers,
)
from rtui.server.inspection.tables import InspectedBatch, TableFindings, Tables
from rtui.server.scan.node import EngineQueries, KeyQueries
from rtui.server.scan.server_time import CostWatch
from rtui.server.wall_clock import new_random
from rtui.server.wire.capability import refuses_fact
from rtui.server.wire.errors import Reply, ServerBusyError
from rtui.server.wire.identity import parse_info, parse_number
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads

if TYPE_CHECKING:
    from rtui.server.engine._scan import ScanEngine


class ListedKeys:
    """Keys that wait for the first stage; which of them are sampled is decided as they are listed."""

    def __init__(self, plan: InspectionPlan, first_sampled: int | None = None) -> None:
        """Sample the listed keys from this index on, a random one of the first eight by default."""
        self._plan = plan
        self._skip = first_sampled
        """How many keys are passed over before the next one that is sampled; None until the first page."""
        self._others: list[bytes] = []
        """Unsampled keys, which are not asked for all facts."""
        self._sampled: list[bytes] = []
        """Sampled keys, which are asked for all facts."""

    @property
    def keys(self) -> int:
        return len(self._others) + len(self._sampled)

    @property
    def skip(self) -> int:
        """How many keys are passed over before the next one that is sampled."""
        if self._skip is None:
            self._skip = new_random("which of eight").randrange(self._plan.sample_every)
        return self._skip

    def divided(self, keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Divide the next listed keys into sampled keys and others."""
        every = self._plan.sample_every
        if every == 1:
            return keys, []
        others, skip = list(keys), self.skip
        sampled = others[skip::every]
        del others[skip::every]
        self._skip = (skip - len(keys)) % every
        return sampled, others

    def add(self, keys: Sequence[bytes], *, is_sampled: bool) -> None:
        waiting = self._sampled if is_sampled else self._others
        waiting += keys

    def take(self, most: int) -> Iterator[InspectedBatch]:
        """Take up to `most` keys, in proportion of sampled keys and others, so that both run out together."""
        waiting = len(self._sampled) + len(self._others)
        sampled = -(-len(self._sampled) * min(most, waiting) // max(1, waiting))
        others = min(most, waiting) - sampled
        if sampled:
            taken, self._sampled = self._sampled[:sampled], self._sampled[sampled:]
            yield InspectedBatch(None, taken)
        if others:
            taken, self._others = self._others[:others], self._others[others:]
            yield InspectedBatch(None, taken, is_sampled=False)

    def take_all(self) -> list[bytes]:
        """Take all keys, in any order."""
        keys = [*self._others, *self._sampled]
        self._others, self._sampled = [], []
        return keys


class EveryNth:
    """Chooses every n-th key of each type, in the order in which they come."""

    def __init__(self) -> None:
        self._skip: dict[bytes, int] = {}
        """By type, how many keys are passed over before the next one."""

    def choose(self, key_type: bytes, keys: int, every: int) -> range:
        skip = self._skip.get(key_type, 0)
        self._skip[key_type] = (skip - keys) % every
        return range(skip, keys, every)


class InspectionPipeline:
    """Asks about every key that it is given, and hands tables to its findings; see the module's walk-through."""

    command_names = COMMAND_NAMES
    key_us = KEY_US

    def __init__(
        self,
        plan: InspectionPlan,
        findings: TableFindings,
        *,
        by_engine: Callable[[InspectionPipeline, ScanEngine], EngineQueries] | None = None,
        node: str = "",
        first_sampled: int | None = None,
        clock: Callable[[], float] = wall_clock.now_s,
        on_server: Callable[[Lane], Awaitable[None]] | None = None,
        own_reads: OwnReads | None = None,
    ) -> None:
        """Sample the listed keys from index `first_sampled` on, a random one by default; `clock` returns seconds since
        the epoch.

        `by_engine` makes the engine send the queries, see `QuerySource.compiled`; without it Python does. `node` is
        `host:port` of the primary that serves the keys, by default that of the lane's server. `on_server` is called
        when the rights on a server were found out anew, such as after a reconnect. `own_reads` are keys that rtui has
        read, which counts as a use if NO-TOUCH is off.
        """
        self.plan = plan
        self.compiled = None if by_engine is None else partial(by_engine, self)
        self.tables = Tables(findings, node)
        self.listed = ListedKeys(plan, first_sampled)
        self.last_stages = LastStages(plan, self.tables, clock=clock, gone=self._add_gone)
        self.unread: Counter[str] = Counter()
        """By command, answers that are no value of the fact, which stays unknown."""
        self.own_read_keys = 0
        """Keys that rtui itself has used last: their idle time is that before."""
        self.own_reads = OwnReads() if own_reads is None else own_reads
        self.on_absent: Callable[[Sequence[bytes]], object] | None = None
        """See `ScanQueries`."""
        self._clock = clock
        self._on_server = on_server
        self._typed = WaitingKeys()
        self._encoded = WaitingKeys()
        """Keys that wait for the second stage and its query for their encoding."""
        self._every_nth = EveryNth()
        self._clocked: Lane | None = None
        """The lane whose server's clock was compared with that of rtui."""

    @property
    def waiting(self) -> int:
        return self.unsent + self.tables.rows

    @property
    def unsent(self) -> int:
        return self.listed.keys + self._typed.keys + self._encoded.keys + self.last_stages.keys

    @property
    def key_share(self) -> float:
        """As if each key got all questions."""
        return 1.0

    async def use_lane(self, lane: Lane) -> None:
        """Query on this lane from now on, with the commands that its server allows; raises ConnectionLost."""
        self.settle()
        is_same_server = self.plan.server.is_like(lane.server)
        if await self.plan.follow(lane):
            if not is_same_server:
                self.last_stages.use_other_server()
            if self._on_server is not None:
                await self._on_server(lane)
        if lane is not self._clocked:
            tables = self.tables
            tables.node, tables.database = tables.node or lane.target.label, lane.target.db
            before_s = self._clock()
            (info,) = await lane.run(guard.info("server"))
            server_us = parse_number(parse_info(info), "server_time_usec")
            now_s = (before_s + self._clock()) / 2
            if wall_clock.is_stopped():
                server_us = None
            tables.ahead_ms = 0 if server_us is None else round(server_us / 1000 - now_s * 1000)
            self._clocked = lane

    def reset(self) -> None:
        """Forget all keys that wait: the scan begins again."""
        self.listed.take_all()
        self._typed.clear()
        self._encoded.clear()
        self.last_stages.reset()
        self.tables.clear()
        self.own_read_keys = 0

    def take_waiting(self) -> list[bytes]:
        """Forget all keys that wait, and return them: another node starts anew with them."""
        self.settle()
        keys = self.listed.take_all()
        waiting = [one.take(one.keys) for one in (self._typed, self._encoded)]
        for batch in chain(*waiting, self.last_stages.take_all()):
            keys += batch.keys
        return keys

    def add_page(self, keys: list[bytes]) -> None:
        """Inspect these keys."""
        if keys and max(map(len, keys)) > MAX_BULK_KEY_BYTES:
            self.tables.add_unread([key for key in keys if len(key) > MAX_BULK_KEY_BYTES])
            keys = [key for key in keys if len(key) <= MAX_BULK_KEY_BYTES]
        sampled, others = self.listed.divided(keys)
        if others:
            self._list(others, is_sampled=False)
        self._list(sampled, is_sampled=True)

    def _list(self, keys: list[bytes], *, is_sampled: bool) -> None:
        """Let keys wait for the first stage, or pass them on if it has no commands."""
        if self.plan.first_commands(is_sampled):
            self.listed.add(keys, is_sampled=is_sampled)
        elif keys:
            self.go_on(InspectedBatch(None, keys, is_sampled=is_sampled))

    def next_write(self, most: int) -> KeyQueries | None:
        """Return queries about up to `most` keys a stage, None if there is nothing to ask; a timed query goes alone."""
        timed = self.last_stages.timed_query(self._typed)
        queries = [*self._next_queries(most)] if timed is None else [timed]
        if not queries:
            return None
        return KeyQueries(
            [command for query in queries for command in query.commands],
            max(1, round(sum([query.cost for query in queries]))),
            answered=partial(self.answered, queries),
            lost=partial(self.lost, queries),
            is_alone=timed is not None,
        )

    def _next_queries(self, most: int) -> Iterator[KeyQuery]:
        """Take up to `most` keys of each stage and yield the queries about them, or pass them on unasked.

        While keys wait for the first stage, the second takes only half as many: they have waited together.
        """
        later = most // 2 + 1 if self.listed.keys else most
        for listed in self.listed.take(most):
            key_commands = self.plan.first_commands(listed.is_sampled)
            if key_commands:
                yield query_about(QueryStage.FIRST, listed, key_commands)
            else:  # all of it is refused
                self.go_on(listed)
        encoding = (guard.object_encoding,) if self.plan.asks_encodings else ()
        encoded = [*self._encoded.take(later)]
        left = later - sum([len(batch.keys) for batch in encoded])
        for batch, more in chain(zip(encoded, repeat(encoding)), zip(self._typed.take(left), repeat(()))):
            key_commands = (*self.plan.second_commands(batch.key_type, batch.is_sampled), *more)
            if key_commands:
                yield query_about(QueryStage.SECOND, batch, key_commands, self.plan.evidence(batch.key_type))
            else:
                self.last_stages.go_on(batch)
        yield from self.last_stages.length_queries(later)

    def answered(self, queries: Sequence[KeyQuery], replies: Sequence[Reply], round_trip_s: float | None) -> None:
        """Read the replies to the queries of a write, and pass on the keys.

        Raises ServerBusyError if the server can't answer just now: earlier replies are kept, the rest is asked again.
        `round_trip_s` is the write's round trip less an idle one, None if it was not measured.
        """
        now_s, end = self._clock(), 0
        for index, query in enumerate(queries):
            start, end = end, end + query.answers
            is_clocked = query.stage is QueryStage.TIMED and len(query.commands) > 2
            if is_clocked:
                end += 2
            facts = replies[start + is_clocked : end - is_clocked]
            try:
                batches = self._read(query, facts, now_s)
            except ServerBusyError:
                self.lost(queries[index:])
                raise
            if query.stage is QueryStage.TIMED:
                clocks = (replies[start], replies[end - 1]) if is_clocked else None
                self.last_stages.go_on_after_timed(batches, len(facts), round_trip_s, clocks)
            else:
                for batch in batches:
                    self._after(query.stage, batch)

    def settle(self) -> None:
        """Make a table of all keys about which all is known, so that the findings know of each."""
        self.tables.hand_on()

    def _read(self, query: KeyQuery, replies: Sequence[Reply], now_s: float) -> list[InspectedBatch]:
        """Read the replies about the keys of a query; return batches of the keys that exist. Raises ServerBusyError."""
        names = [command.spec.name for command in query.key_commands]
        tells_elsewhere = self.on_absent is not None
        found = read_answers(query.batch.keys, replies, [*map(expected, names)], tells_elsewhere=tells_elsewhere)
        for at, error in found.errors.items():
            if refuses_fact(error):
                self.plan.capabilities.record(names[at], error)
        for at, count in found.unread.items():
            self.unread[names[at]] += count
        if found.elsewhere and self.on_absent is not None:
            self.on_absent(found.elsewhere)
        self._add_gone(found.gone)
        return [batch for part in found.parts for batch in with_answers(query, part, now_s)]

    def _add_gone(self, keys: Sequence[bytes]) -> None:
        if self.on_absent is None:
            self.count_gone(len(keys))
        elif keys:
            self.on_absent(keys)

    def count_gone(self, keys: int) -> None:
        if keys:
            self.tables.add_vanished(keys)

    def _after(self, stage: QueryStage, batch: InspectedBatch) -> None:
        match stage:
            case QueryStage.FIRST:
                self.go_on(batch)
            case QueryStage.SECOND:
                self.last_stages.go_on(batch)
            case QueryStage.THIRD:
                self.last_stages.go_on_after_third(batch)

    def lost(self, queries: Sequence[KeyQuery]) -> None:
        """Put back the keys of queries whose replies were lost."""
        for query in queries:
            match query.stage:
                case QueryStage.FIRST:
                    self.listed.add(query.batch.keys, is_sampled=query.batch.is_sampled)
                case QueryStage.SECOND:
                    waiting = self._encoded if guard.object_encoding in query.key_commands else self._typed
                    waiting.add(query.batch)
                case QueryStage.THIRD | QueryStage.TIMED:
                    self.last_stages.put_back(query)

    def go_on(self, batch: InspectedBatch) -> None:
        """Let keys of one type wait for the second stage after the first, or pass them on if it has no commands."""
        if batch.idle_s is not None and self.plan.resets_idle_times:
            asked_at_s = self.last_stages.asked_at_s(batch)
            idle_s, count = self.own_reads.correct_idle_times(batch.keys, batch.idle_s, asked_at_s)
            batch = replace(batch, idle_s=idle_s)
            self.own_read_keys += count
        if batch.key_type is not None and self.plan.asks_encodings:
            size = len(batch.keys)
            chosen = self._every_nth.choose(batch.key_type, size, self.plan.encoding_every)
            if chosen:
                self._encoded.add(rows_at(batch, chosen))
                batch = rows_at(batch, sorted({*range(size)} - {*chosen}))
            if len(chosen) == size:
                return
        if self.plan.second_commands(batch.key_type, batch.is_sampled):
            self._typed.add(batch)
        else:
            self.last_stages.go_on(batch)


TOO_COSTLY_NOTE: Final = "skipped, because MEMORY USAGE was too slow for others of this type"


class LastStages:
    """The keys that wait for the third stage or a timed MEMORY USAGE, and the way of all keys into tables.

    A batch that has the replies of the second stage takes one of these ways:

        a length is to be asked     it waits for the THIRD stage where `LateLengths` chooses it
        its memory is not bounded   it waits for a TIMED query, alone in its write, so that its time can be measured
        neither                     it goes into a table

    Only one TIMED query is under way at a time, with as many keys as have proved cheap. Once some have proved costly,
    no more are sent: keys that wait go on without their memory, and with a note that says why.
    """

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
