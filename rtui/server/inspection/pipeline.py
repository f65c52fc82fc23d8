"""The inspection of all keys that a scan returns: two stages of questions, sent together with the scan's own SCANs.

One page of keys goes through it like this, a round trip after the other, while further pages follow behind:

1. The scan receives a page and calls `add_page(keys)`: the keys wait in `_listed`.
2. For its next write the scan calls `next_write(most)`, which takes keys from `_listed` and makes them the FIRST query
   of queries.py. Before its SCAN the write now carries `TYPE k1, PTTL k1, OBJECT IDLETIME k1, TYPE k2, …`.
3. The replies come back to `InspectionPipeline.answered`, and are kept in `_answered` until there are some hundreds:
   writes are small, and reading the replies to each by itself takes longer than the server needs for them. Then
   `with_answers` turns them into an `InspectedBatch` a type: keys and the columns `ttl_ms` and `idle_s`. Keys that are
   gone are counted, the others wait in `_typed`, joined with keys of the same type from other pages.
4. The next write takes batches from `_typed` and makes a SECOND query of each: `MEMORY USAGE k1, HLEN k1, …`.
5. With these replies, hundreds at once again, `memory_bytes` and `lengths` are filled, and the batch goes to
   `Aggregates.add`. What is kept is read at once when there is an error among the replies, and by `settle`.

Where some facts are asked of a sample only, step 1 puts every eighth key into `_sampled` instead, beginning with a
random one of the first eight. From then on sampled keys and others go in queries and batches of their own.

Three things branch off. Keys that are not sampled wait in `_long` for the THIRD stage where their memory says that they
may be among the longest (`late_lengths`). A batch whose MEMORY USAGE nothing bounds waits in `_unbounded` for a TIMED
query, which is alone in its write so that its time can be measured. Of every n-th key of a type the encoding is asked
besides.

When the inspection ends, `largest.complete_largest` asks what the lists of the largest keys still lack.

What is lost with a connection is put back where it waited. A question that is refused is not asked any more, and keys
that waited for it go on without the answer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.chance import new_random
from rtui.server.facts.answers import expected
from rtui.server.guard.command import MAX_BULK_KEY_BYTES
from rtui.server.guard.evidence import MemoryCost, MemoryUsagePolicy
from rtui.server.inspection.late_lengths import LateLengths
from rtui.server.inspection.plan import COMMAND_NAMES, LEFT_OUT, InspectionPlan
from rtui.server.inspection.queries import (
    AnsweredQueries,
    Query,
    Stage,
    WaitingKeys,
    is_plain,
    query_about,
    read_answers,
    rows_at,
    with_answers,
)
from rtui.server.scan.node import EngineQueries, KeyQueries
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import refuses_fact
from rtui.server.wire.errors import ServerBusyError
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads
from rtui.server.wire.replies import Reply

if TYPE_CHECKING:
    from rtui.server.engine._scan import ScanEngine

KEY_US: Final = 3.0
"""Server time of five commands a key on a million keys, reading and answering included: Redis 7.0 3.2, Valkey 9 2.7."""

TOO_COSTLY_NOTE: Final = "skipped, because MEMORY USAGE of others of this type took the server too long"


class SavedInspection(Struct, frozen=True):
    """What an inspection has to know of keys of an earlier run."""

    not_sampled: int
    """Keys that are not sampled."""
    asked_late: tuple[tuple[bytes | None, int], ...]
    """By type, of how many of them the length was asked."""
    unread: dict[str, int]
    own_read_keys: int


class InspectionPipeline:
    """Asks about every key that it is given, and hands the results to `findings`; see the module's walk-through."""

    command_names = COMMAND_NAMES
    key_us = KEY_US

    def __init__(
        self,
        plan: InspectionPlan,
        findings: Aggregates,
        *,
        first_sampled: int | None = None,
        clock: Callable[[], float] = time.time,
        on_server: Callable[[Lane], Awaitable[None]] | None = None,
        own_reads: OwnReads | None = None,
        compile_to: Callable[[InspectionPipeline, ScanEngine], EngineQueries] | None = None,
    ) -> None:
        """Sample the listed keys from this index on, a random one by default; `clock` returns seconds since the epoch.

        `on_server` is called when the rights on a server were found out anew, such as after a reconnect.
        `own_reads` are keys that rtui has read, which counts as a use where NO-TOUCH is not on. `compile_to` makes the
        compiled engine of a scan do the same.
        """
        self.plan = plan
        self.findings = findings
        self.cost_watch = CostWatch()
        self.late_lengths = LateLengths(plan)
        self.unread: Counter[str] = Counter()
        """By command, answers that are no value of the fact, which stays unknown."""
        self.own_read_keys = 0
        """Keys that rtui itself has used last: their idle time is that before."""
        self.own_reads = OwnReads() if own_reads is None else own_reads
        self.on_elsewhere: Callable[[Sequence[bytes]], object] | None = None
        """Called with keys of which the server says that another one has them; None where they stay unknown."""
        self.moves_silently = False
        """Whether a key that is gone may have moved to another node; it is `on_elsewhere` then."""
        self._clock = clock
        self._on_server = on_server
        self._compile = compile_to
        self._skip = first_sampled
        """How many keys are passed over before the next one that is sampled; None until the first page."""
        self._listed: list[bytes] = []
        """Keys that wait for the first stage, of which not everything is asked."""
        self._sampled: list[bytes] = []
        """Keys that wait for it, of which everything is asked."""
        self._typed = WaitingKeys()
        """Keys that wait for the second stage."""
        self._long = WaitingKeys()
        """Keys that wait for the third stage."""
        self._unbounded = WaitingKeys()
        """Keys that wait for a timed MEMORY USAGE."""
        self._answered = AnsweredQueries()
        """Queries whose answers are to be read."""
        self._is_timing = False
        self._skip_encodings: dict[bytes, int] = {}
        """By type, how many keys are passed over before the next one whose encoding is asked."""
        self._for_encoding: dict[bytes, list[bytes]] = {}
        """By type, keys whose encoding is to be asked."""

    @property
    def waiting(self) -> int:
        """Keys about which something is still to be sent, or answers are to be read."""
        return self.unsent + self._answered.keys

    @property
    def unsent(self) -> int:
        """Keys about which something is still to be sent."""
        encodings = sum(map(len, self._for_encoding.values()))
        in_stages = self._typed.keys + self._long.keys + self._unbounded.keys
        return len(self._listed) + len(self._sampled) + in_stages + encodings

    @property
    def skip(self) -> int:
        """How many keys are passed over before the next one that is sampled."""
        if self._skip is None:
            self._skip = new_random("which of eight").randrange(self.plan.sample_every)
        return self._skip

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled engine can do its work."""
        return self._compile is not None

    def compiled(self, engine: ScanEngine) -> EngineQueries:
        """Let a new engine do its work, as far as it can."""
        assert self._compile is not None  # noqa: S101 - `is_compiled`
        return self._compile(self, engine)

    async def use_lane(self, lane: Lane) -> None:
        """Ask on this lane from now on, and only what its server allows; raises ConnectionLost."""
        self.settle()
        is_same_server = self.plan.server.is_like(lane.server)
        if await self.plan.follow(lane):
            if not is_same_server:
                self.cost_watch = CostWatch()
            if self._on_server is not None:
                await self._on_server(lane)

    def reset(self) -> None:
        """Forget all keys that wait: the scan begins again."""
        self._listed, self._sampled = [], []
        self._typed.clear()
        self._long.clear()
        self._unbounded.clear()
        self._answered.clear()
        self.late_lengths = LateLengths(self.plan)
        self._for_encoding = {}
        self._is_timing = False
        self.own_read_keys = 0

    def take_waiting(self) -> list[bytes]:
        """Forget all keys that wait, and return them: another node is asked all about them."""
        self.settle()
        keys = [*self._listed, *self._sampled]
        for waiting in (self._typed, self._long, self._unbounded):
            for batch in waiting.take(waiting.keys):
                keys += batch.keys
        self._listed, self._sampled, self._for_encoding = [], [], {}
        return keys

    def saved(self) -> SavedInspection:
        """Return for a file what is to be known later; keys that wait are not part of it."""
        return SavedInspection(*self.late_lengths.counts(), dict(self.unread), self.own_read_keys)

    def restore(self, saved: SavedInspection) -> None:
        """Take back what was saved, before the first key."""
        for key_type, asked in saved.asked_late:
            self.late_lengths.count(key_type, seen=0, asked=asked)
        self.late_lengths.count(None, seen=saved.not_sampled, asked=0)
        self.unread.update(saved.unread)
        self.own_read_keys = saved.own_read_keys

    def add_page(self, keys: list[bytes]) -> None:
        """Inspect these keys."""
        if keys and max(map(len, keys)) > MAX_BULK_KEY_BYTES:
            self.findings.add_unread([key for key in keys if len(key) > MAX_BULK_KEY_BYTES])
            keys = [key for key in keys if len(key) <= MAX_BULK_KEY_BYTES]
        every = self.plan.sample_every
        if every > 1:
            others, skip = list(keys), self.skip
            keys = others[skip::every]
            del others[skip::every]
            self._skip = (skip - len(keys) - len(others)) % every
            self._list(others, is_sampled=False)
        self._list(keys, is_sampled=True)

    def _list(self, keys: list[bytes], *, is_sampled: bool) -> None:
        """Let keys wait for the first stage, or go on where it asks nothing about them."""
        if self.plan.first_commands(is_sampled):
            waiting = self._sampled if is_sampled else self._listed
            waiting += keys
        elif keys:
            self.go_on(InspectedBatch(None, keys, is_sampled=is_sampled))

    def next_write(self, most: int) -> KeyQueries | None:
        """Queries about up to `most` keys a stage, None when there is nothing to ask; what is timed goes alone."""
        timed = self._next_timed()
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

    def _next_queries(self, most: int) -> Iterator[Query]:
        """Take up to `most` keys of each stage and yield the queries about them, or let them go on unasked.

        While keys wait for the first stage, the second takes only half as many: they have waited together.
        """
        later = most // 2 + 1 if self._listed or self._sampled else most
        for listed in self._take_listed(most):
            key_commands = self.plan.first_commands(listed.is_sampled)
            if key_commands:
                yield query_about(Stage.FIRST, listed, key_commands)
            else:  # all of it is refused
                self.go_on(listed)
        for batch in self._typed.take(later):
            key_commands = self.plan.second_commands(batch.key_type, batch.is_sampled)
            if key_commands:
                yield query_about(Stage.SECOND, batch, key_commands, self.plan.evidence(batch.key_type))
            else:
                self._after_second(batch)
        for batch in self._long.take(later):
            length = self.plan.third_command(batch.key_type)
            if length is not None:
                yield query_about(Stage.THIRD, batch, (length,))
            else:
                self._after_third(batch)
        if self._for_encoding:
            yield from self._encoding_queries(later)

    def _encoding_queries(self, most: int) -> Iterator[Query]:
        """Take up to `most` keys whose encoding is to be asked."""
        if not self.plan.asks_encodings:
            self._for_encoding = {}
        while self._for_encoding and most > 0:
            key_type, keys = self._for_encoding.popitem()
            if len(keys) > most:
                self._for_encoding[key_type] = keys[most:]
            yield query_about(Stage.ENCODING, InspectedBatch(key_type, keys[:most]), (guard.object_encoding,))
            most -= len(keys)

    def _take_listed(self, most: int) -> Iterator[InspectedBatch]:
        """Take up to `most` keys for the first stage; of sampled keys and others so many that both run out together."""
        waiting = len(self._sampled) + len(self._listed)
        sampled = -(-len(self._sampled) * min(most, waiting) // max(1, waiting))
        others = min(most, waiting) - sampled
        if sampled:
            taken, self._sampled = self._sampled[:sampled], self._sampled[sampled:]
            yield InspectedBatch(None, taken)
        if others:
            taken, self._listed = self._listed[:others], self._listed[others:]
            yield InspectedBatch(None, taken, is_sampled=False)

    def _next_timed(self) -> Query | None:
        """Take keys of a type whose MEMORY USAGE nothing bounds, unless such a query is under way."""
        while self._unbounded.keys and not self._is_timing:
            batch = next(self._unbounded.take(self.cost_watch.most))
            if self.plan.memory(batch.key_type).policy is MemoryUsagePolicy.WATCHED:
                self._is_timing = True
                evidence = replace(self.plan.evidence(batch.key_type), proved=self.cost_watch.proved)
                asks_clock = self.cost_watch.asks_clock
                return query_about(Stage.TIMED, batch, (guard.memory_usage,), evidence, asks_clock=asks_clock)
            self._typed.add(batch)  # it has been refused since, or another server answers
        return None

    def answered(self, queries: Sequence[Query], replies: Sequence[Reply], round_trip_s: float | None) -> None:
        """Store the answers to the queries of a write, and let the keys go on from time to time.

        Raises ServerBusyError when the server can't answer just now: what was answered before is kept, the rest is
        asked again. `round_trip_s` is the write's round trip less an idle one, None where it was not seen.
        """
        now_s, is_due, end = self._clock(), False, 0
        for index, query in enumerate(queries):
            start, end = end, end + query.answers
            is_clocked = query.stage is Stage.TIMED and len(query.commands) > 2
            if is_clocked:
                end += 2
            facts = replies[start + is_clocked : end - is_clocked]
            if is_plain(query, facts):
                is_due = self._answered.add(query, facts, now_s) or is_due
                continue
            try:
                batches = self._read(query, facts, now_s)
            except ServerBusyError:
                self.lost(queries[index:])
                raise
            if query.stage is Stage.TIMED:
                self._is_timing = False
                server_s = (
                    self.cost_watch.server_s(replies[start], replies[end - 1], len(facts)) if is_clocked else None
                )
                self._after_timed(batches, round_trip_s if server_s is None else server_s)
            else:
                for batch in batches:
                    self._after(query.stage, batch)
        if is_due:
            self._go_on_with_answered(is_all=False)

    def settle(self) -> None:
        """Read all answers that there are, so that the findings know of every key that was asked everything."""
        self._go_on_with_answered(is_all=True)

    def _go_on_with_answered(self, *, is_all: bool) -> None:
        for query, replies in self._answered.take(is_all=is_all):
            for batch in self._read(query, replies, self._clock()):
                self._after(query.stage, batch)

    def _read(self, query: Query, replies: Sequence[Reply], now_s: float) -> list[InspectedBatch]:
        """Read the replies about the keys of a query; return those that exist. Raises ServerBusyError."""
        names = [command.spec.name for command in query.key_commands]
        tells_elsewhere = self.on_elsewhere is not None
        found = read_answers(query.batch.keys, replies, [*map(expected, names)], tells_elsewhere=tells_elsewhere)
        for at, error in found.errors.items():
            if refuses_fact(error):
                self.plan.capabilities.record(names[at], error)
        for at, count in found.unread.items():
            self.unread[names[at]] += count
        if found.elsewhere and self.on_elsewhere is not None and query.stage is not Stage.ENCODING:
            self.on_elsewhere(found.elsewhere)
        if query.stage is Stage.ENCODING:
            encodings = [encoding for part in found.parts for encoding in part.answers[0] or ()]
            self.findings.add_encodings(query.batch.key_type or b"", encodings)
            return []
        self._add_gone(found.gone)
        return [batch for part in found.parts for batch in with_answers(query, part, now_s)]

    def _add_gone(self, keys: Sequence[bytes]) -> None:
        """Count keys that are gone, or have it found out whether they have moved."""
        if self.moves_silently and self.on_elsewhere is not None:
            self.on_elsewhere(keys)
        else:
            self.count_gone(len(keys))

    def count_gone(self, keys: int) -> None:
        """Count keys that are gone."""
        if keys:
            self.findings.add_vanished(keys)

    def _after(self, stage: Stage, batch: InspectedBatch) -> None:
        """Let keys go on whose questions of a stage are answered."""
        match stage:
            case Stage.FIRST:
                self.go_on(batch)
            case Stage.SECOND:
                self._after_second(batch)
            case Stage.THIRD:
                self._after_third(batch)

    def lost(self, queries: Sequence[Query]) -> None:
        """Put keys back about which nothing has come back; other keys will do for encodings."""
        for query in queries:
            match query.stage:
                case Stage.FIRST if query.batch.is_sampled:
                    self._sampled += query.batch.keys
                case Stage.FIRST:
                    self._listed += query.batch.keys
                case Stage.SECOND:
                    self._typed.add(query.batch)
                case Stage.THIRD:
                    self._long.add(query.batch)
                case Stage.TIMED:
                    self._is_timing = False
                    self._unbounded.add(query.batch)

    def go_on(self, batch: InspectedBatch) -> None:
        """Let keys of one type wait for the second stage after the first, or hand them on if it asks nothing."""
        if batch.key_type is not None and self.plan.asks_encodings:
            every, skip = self.plan.encoding_every, self._skip_encodings.get(batch.key_type, 0)
            self._skip_encodings[batch.key_type] = (skip - len(batch.keys)) % every
            chosen = batch.keys[skip::every]
            if chosen:
                self._for_encoding.setdefault(batch.key_type, []).extend(chosen)
        if batch.idle_s is not None and self.plan.resets_idle_times:
            idle_s, count = self.own_reads.correct_idle_times(batch.keys, batch.idle_s, self._asked_at_s(batch))
            batch = replace(batch, idle_s=idle_s)
            self.own_read_keys += count
        if self.plan.second_commands(batch.key_type, batch.is_sampled):
            self._typed.add(batch)
        else:
            self._after_second(batch)

    def _after_second(self, batch: InspectedBatch) -> None:
        """Hand on keys of one type, but those whose length is to be asked yet."""
        late = self.late_lengths.choose(batch, self.findings.big)
        if not late:
            self._after_lengths(batch)
        elif len(late) == len(batch.keys):
            self._long.add(batch)
        else:
            self._long.add(rows_at(batch, late))
            chosen = set(late)
            self._after_lengths(rows_at(batch, [index for index in range(len(batch.keys)) if index not in chosen]))

    def _after_third(self, batch: InspectedBatch) -> None:
        """Hand on keys of one type; without a length where it can't be asked any more."""
        if batch.lengths is None:
            self.late_lengths.leave_out(batch, self.findings.big)
        self._after_lengths(batch)

    def _after_lengths(self, batch: InspectedBatch) -> None:
        """Hand on keys of one type, unless their memory is to be asked with an eye on the clock."""
        if batch.lengths is not None and type_of(batch.key_type).removed_when_empty and 0 in batch.lengths:
            existing = [index for index, length in enumerate(batch.lengths) if length]
            self._add_gone([key for key, length in zip(batch.keys, batch.lengths, strict=True) if not length])
            batch = rows_at(batch, existing)
            if not existing:
                return
        cost = self.plan.memory(batch.key_type)
        if batch.memory_bytes is None and cost.policy is not MemoryUsagePolicy.FREE:
            if cost.policy is MemoryUsagePolicy.WATCHED and not self.cost_watch.is_over:
                self._unbounded.add(batch)
                return
            batch = replace(batch, note=memory_note(cost))
        self.findings.add(batch, self._asked_at_s(batch))

    def _asked_at_s(self, batch: InspectedBatch) -> float:
        """Return when these keys were asked: now, where nothing was asked that takes a moment."""
        return self._clock() if batch.asked_at_s is None else batch.asked_at_s

    def _after_timed(self, batches: Sequence[InspectedBatch], spent_s: float | None) -> None:
        """Hand on keys whose memory took the server so long; if that was too long, all others that wait for it, too."""
        for batch in batches:
            self.cost_watch.observe(len(batch.keys), spent_s)
            self.findings.add(batch, self._asked_at_s(batch))
        if self.cost_watch.is_over:
            for rest in self._unbounded.take(self._unbounded.keys):
                self.findings.add(replace(rest, note=TOO_COSTLY_NOTE), self._asked_at_s(rest))


def memory_note(cost: MemoryCost) -> str:
    """Return why keys have no memory whose MEMORY USAGE was not asked for; empty where it was, or was not wanted."""
    if cost.policy is MemoryUsagePolicy.FREE or cost.why == LEFT_OUT:
        return ""
    return TOO_COSTLY_NOTE if cost.policy is MemoryUsagePolicy.WATCHED else f"memory skipped, because {cost.why}"
