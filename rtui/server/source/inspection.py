"""The inspection of all keys that a scan returns, whose results are tables: what `InspectionPipeline` does, in bulk.

The scan, its pace and its writes are those of `ScanPipeline`; which commands a key gets is up to the same plan. What
differs is that keys of all types stay together in lists (`Rows`), and that nothing is done key by key as long as the
answers are what they nearly always are:

1. `add_page` lets keys wait in `listed`; sampled keys by themselves.
2. `next_write` asks of some of them the first stage, TYPE and PTTL, of sampled ones IDLETIME or FREQ too.
3. Their answers are cut into columns by slices. Then the rows wait for what the second stage asks of their types, which
   is MEMORY USAGE of nearly all types alike, and of sampled ones a length besides: so only these are divided by type.
   Of every n-th key of a type, the encoding is asked in the same write.
4. With these answers rows are done. Of some thousands at once it is checked with NumPy that each answer is in the range
   of its command, and which keys are to be asked for their length after all; all others go into one table.

Whatever is out of the ordinary leaves these lists, and goes on as batches in the parts of `InspectionPipeline`: an
error, a key that is gone or elsewhere, an answer that can't be (`read_answers`); lengths that are asked late, and
MEMORY USAGE that nothing bounds (`LastStages`). What comes of that joins a later table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, cast

import numpy as np
import polars as pl

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.aggregate.top_keys import TopKeys
from rtui.keyspace.types import STRING
from rtui.server import guard
from rtui.server.facts.answers import expected
from rtui.server.guard.command import (
    MAX_BATCH_BYTES,
    MAX_BULK_KEY_BYTES,
    BulkTemplate,
    Command,
    KeyCommand,
    PackedKeys,
    build_bulk,
    bulk_template,
    key_template,
    pack_keys,
)
from rtui.server.guard.evidence import MemoryUsagePolicy
from rtui.server.inspection.last_stages import memory_note
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.queries import COLUMN_OF, COMMANDS_OF_A_KEY, Query, Stage
from rtui.server.scan.node import KeyQueries
from rtui.server.scan.page import is_temporary
from rtui.server.source.floors import LengthFloors
from rtui.server.source.rows import KEY_TYPE, Layout, Rows, every_nth, joined, rows_of
from rtui.server.source.table import Part, TableMaker, part_of
from rtui.server.wire.capability import Feature, refuses_fact
from rtui.server.wire.errors import ServerBusyError
from rtui.server.wire.identity import parse_info, parse_number
from rtui.server.wire.lane import Lane
from rtui.server.wire.replies import Reply, ServerError

TABLE_ROWS: Final = 2_000
"""So many rows are a table: it holds the event loop for about 2 ms."""

FEW_ROWS: Final = 32
"""So many rows are asked together at least where more are to come: each command costs as much as some rows."""

FIRST_ROWS: Final = 200
"""The first table, for something to show; each has twice the rows of the one before then."""

TABLE_S: Final = 0.25
"""Or as many as there are after so long."""

MOST_COMMANDS: Final = 8
"""Commands about a key in one write, at most."""

_NAMES: Final = frozenset({bytes})
_NUMBERS: Final = frozenset({int})


class TableFindings(Protocol):
    """What the tables of a pass are added up to."""

    @property
    def big(self) -> TopKeys:
        """Says how long a key must be to be listed, and is told of keys whose length is not asked."""

    def add_rows(self, table: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        """Add rows that were asked at about this moment, in seconds since the epoch by the server's clock.

        `table` makes the table of these rows, in any thread.
        """

    def add_unread(self, keys: Sequence[bytes]) -> None:
        """Add keys of which only the name is known."""

    def add_vanished(self, count: int) -> None:
        """Count keys that were gone when they were asked."""

    def add_note(self, key_type: bytes | None, note: str) -> None:
        """Learn why the memory of keys of a type is not known."""


class LateRows:
    """Findings for the parts of `InspectionPipeline`: what they are given as batches becomes rows of a later table."""

    def __init__(self, findings: TableFindings) -> None:
        self.rows: list[Rows] = []
        """What is to go into the next table."""
        self.use(findings)

    def use(self, findings: TableFindings) -> None:
        """Hand on to other findings from now on."""
        self.findings = findings
        self.big = LengthFloors(findings.big)
        self.add_rows, self.add_unread, self.add_vanished, self.add_note = (
            findings.add_rows,
            findings.add_unread,
            findings.add_vanished,
            findings.add_note,
        )

    def add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        """Add keys about which all is known."""
        if batch.note:
            self.add_note(batch.key_type, batch.note)
        if batch.lengths is not None:
            self.big.add(batch.key_type, np.array(batch.lengths, dtype=np.int64))
        if batch.keys:
            self.rows.append(rows_of(batch, asked_at_s))


@dataclass(slots=True)
class Asked:
    """Rows about which one write asks, and what."""

    rows: Rows
    key_commands: tuple[KeyCommand, ...]
    commands: list[Command]
    is_first: bool
    encoded: list[int] = field(default_factory=list)
    """The indexes of rows whose encoding is asked, after everything else."""


class TableInspection(InspectionPipeline):
    """Asks about every key that it is given, and hands tables to its findings; see the module's walk-through."""

    def __init__(
        self,
        plan: InspectionPlan,
        findings: Aggregates | TableFindings,
        *,
        node: str = "",
        **options: Any,
    ) -> None:
        """`node` is host and port of the primary that serves the keys, by default those of the lane's server.

        Other options are those of `InspectionPipeline`.
        """
        self.late_rows = LateRows(cast("TableFindings", findings))
        super().__init__(plan, cast("Aggregates", self.late_rows), **options)  # its parts only hand keys on
        self.node, self.database = node, 0
        self.maker = TableMaker()
        self._clocked: Lane | None = None
        """The lane whose server's clock was compared with that of rtui."""
        self._revision = (-1, -1)
        self._asks: tuple[dict[bytes | None, tuple[KeyCommand, ...]], ...] = ({}, {})
        """What the second stage asks by type, of keys that are not sampled and of those that are."""
        self._templates: dict[tuple[KeyCommand, ...], BulkTemplate] = {}
        self._second: dict[tuple[Layout, tuple[KeyCommand, ...]], Rows] = {}
        """Rows that wait for the second stage, by what it asks."""
        self._second_keys = 0
        self._done: dict[Layout, Rows] = {}
        """Rows about which all is asked, unless they are asked late."""
        self._done_keys = 0
        self._done_since = 0.0
        self._table_rows = FIRST_ROWS
        self._key_share = 1.0
        self._under_way = 0
        """Writes that were not answered."""
        self._skips: dict[bytes, int] = {}
        """See `every_nth`."""
        self._known_encodings: dict[bytes, bytes] = {}
        """By key, of rows that are not in a table yet."""
        self._late_encodings: dict[bytes, bytes] = {}
        """The same of rows that are to be asked for more."""
        self._longest = 1
        """The length of the longest name so far."""

    def add_to(self, findings: Aggregates | TableFindings) -> None:
        """Hand the results to other findings from now on."""
        self.late_rows.use(cast("TableFindings", findings))

    @property
    def key_share(self) -> float:
        """How much of a whole inspection keys get on average."""
        return self._key_share

    @property
    def unsent(self) -> int:
        """Keys about which something is still to be sent."""
        return self.listed.keys + self._second_keys + self.last_stages.keys

    @property
    def waiting(self) -> int:
        """Keys about which something is still to be sent, or that are to go into a table."""
        late = sum([len(rows.keys) for rows in self.late_rows.rows])
        return self.unsent + self._answered.keys + self._done_keys + late

    async def use_lane(self, lane: Lane) -> None:
        """Ask on this lane from now on, and only what its server allows; raises ConnectionLost."""
        await super().use_lane(lane)
        if lane is self._clocked:
            return
        self.node, self.database = self.node or lane.target.label, lane.target.db
        before_s = self._clock()
        (info,) = await lane.run(guard.info("server"))
        server_us = parse_number(parse_info(info), "server_time_usec")
        now_s = (before_s + self._clock()) / 2
        self.maker.ahead_ms = 0 if server_us is None else round(server_us / 1000 - now_s * 1000)
        self._clocked = lane

    def reset(self) -> None:
        """Forget all keys: the scan begins again."""
        super().reset()
        self._second.clear()
        self._done.clear()
        self.late_rows.rows.clear()
        self._known_encodings.clear()
        self._late_encodings.clear()
        self._second_keys = self._done_keys = self._under_way = 0

    def take_waiting(self) -> list[bytes]:
        """Forget all keys that wait, and return them: another node is asked all about them."""
        keys = super().take_waiting()
        for rows in self._second.values():
            keys += rows.keys
        self._second.clear()
        self._second_keys = 0
        return keys

    def add_page(self, keys: list[bytes]) -> None:
        """Inspect these keys."""
        longest = max(map(len, keys), default=0)
        self._longest = max(self._longest, longest)
        if longest > MAX_BULK_KEY_BYTES or not self.plan.first_commands(False):
            super().add_page(keys)
            return
        sampled, others = self.listed.divided(keys)
        self.listed.add(sampled, is_sampled=True)
        self.listed.add(others, is_sampled=False)

    def go_on(self, batch: InspectedBatch) -> None:
        """Let keys of one type wait for the second stage, or finish them if it asks nothing."""
        self._wait(rows_of(batch, self.last_stages.asked_at_s(batch), pack_keys(batch.keys)))

    # What is asked

    def next_write(self, most: int) -> KeyQueries | None:
        """Queries about up to `most` keys a stage, None when there is nothing to ask; what is timed goes alone."""
        asked: list[Asked] = []
        queries: list[Query] = []
        last = self.last_stages
        timed = last.timed_query(self._typed) if last.keys else None
        if self._typed.keys:
            for batch in self._typed.take(self._typed.keys):
                self.go_on(batch)
        if timed is not None:
            queries = [timed]
        else:
            if self._revision != self.plan.revision:
                self._keep_up()
            most = max(1, min(most, MAX_BATCH_BYTES // MOST_COMMANDS // self._longest))
            listed = self.listed.keys
            if self._under_way and listed + self._second_keys < most // 2:  # a fuller write is as dear as this one
                return None
            is_flowing = listed > 0
            later, least = (most // 2 + 1, min(most // 4, FEW_ROWS)) if is_flowing else (most, 1)
            asked = self._next_first(most, least) if is_flowing else []
            if self._second_keys:
                asked += self._next_second(later, least)
            if last.keys >= least:
                queries = [*last.length_queries(later)]
        commands = [command for one in asked for command in one.commands]
        cost = sum([command.replies for command in commands]) / COMMANDS_OF_A_KEY
        for query in queries:
            commands += query.commands
            cost += query.cost
        if not commands:
            return None
        self._under_way += 1
        return KeyQueries(
            commands,
            round(cost) or 1,
            answered=partial(self._take_answers, asked, queries),
            lost=partial(self._lose, asked, queries),
            is_alone=timed is not None,
        )

    def _next_first(self, most: int, least: int) -> list[Asked]:
        """Take up to `most` listed keys and ask the first stage of them; of sampled ones once there are so many."""
        found = []
        for listed in self.listed.take(most, least=least):
            keys, is_sampled = [*listed.keys], listed.is_sampled
            key_commands = self.plan.first_commands(is_sampled)
            if key_commands:
                template = self._templates.get(key_commands) or self._template(key_commands, None)
                rows = Rows(keys, pack_keys(keys), [], {}, is_sampled=is_sampled)
                found.append(Asked(rows, key_commands, [build_bulk(template, cast("PackedKeys", rows.packed))], True))
            else:  # all of it is refused
                self._finish(Rows(keys, None, [self._now_ms()] * len(keys), {}, is_sampled=is_sampled))
        return found

    def _next_second(self, most: int, least: int) -> list[Asked]:
        """Take up to `most` rows that wait for the second stage and ask it of them.

        Those alike that have waited longest come first, however few, so that keys are done nearly in the order in which
        they were listed; then those that are most, unless they are less than `least`.
        """
        found = []
        asks_encodings = self.plan.asks_encodings
        longest, *others = self._second.items()
        for kind, waiting in (longest, *sorted(others, key=lambda one: -len(one[1].keys))):
            size = len(waiting.keys)
            if (size < least and waiting is not longest[1]) or most <= 0:
                break
            rows = self._second.pop(kind) if size <= most else waiting.take(most)
            self._second_keys -= len(rows.keys)
            most -= len(rows.keys)
            _, key_commands = kind
            packed = cast("PackedKeys", rows.packed)
            asked = Asked(rows, key_commands, [], False)
            if key_commands:
                asked.commands.append(build_bulk(self._templates[key_commands], packed))
            if asks_encodings and KEY_TYPE in rows.facts:
                asked.encoded = every_nth(rows.facts[KEY_TYPE], self.plan.encoding_every, self._skips)
                if asked.encoded:
                    asked.commands.append(build_bulk(self._encoding_template, packed.at(asked.encoded)))
            if asked.commands:
                found.append(asked)
            else:
                self._finish(rows)
        return found

    def _keep_up(self) -> None:
        """Ask from now on what the plan allows now; rows that wait are to be asked something else, maybe."""
        self._revision = self.plan.revision
        for asks in self._asks:
            asks.clear()
        self._templates.clear()
        every = self.plan.sample_every
        others, sampled = (
            len(self.plan.first_commands(is_sampled)) + len(self.plan.second_commands(STRING.name, is_sampled))
            for is_sampled in (False, True)
        )
        self._key_share = min(1.0, max(1.0, (others * (every - 1) + sampled) / every) / COMMANDS_OF_A_KEY)
        self._encoding_template = bulk_template(key_template(guard.object_encoding))
        waiting, self._second_keys = [*self._second.values()], 0
        self._second.clear()
        for rows in waiting:
            self._wait(rows)

    def _template(self, key_commands: tuple[KeyCommand, ...], key_type: bytes | None) -> BulkTemplate:
        """Return the template of these commands; keys of this type may be sent it."""
        evidence = self.plan.evidence(key_type)
        made = bulk_template(
            *[key_template(one, evidence if one is guard.memory_usage else None) for one in key_commands]
        )
        self._templates[key_commands] = made
        return made

    def _know(self, key_type: bytes | None) -> None:
        """Find out what the second stage asks of keys of this type."""
        for is_sampled in (False, True):
            key_commands = self.plan.second_commands(key_type, is_sampled)
            if key_commands:
                self._template(key_commands, key_type)
            self._asks[is_sampled][key_type] = key_commands

    def _wait(self, rows: Rows) -> None:
        """Let rows wait for what the second stage asks of their types; all types must be names of types."""
        if self.plan.resets_idle_times and "idle_s" in rows.facts:
            at_s = rows.asked_at_ms[0] / 1000
            idle_s, count = self.own_reads.correct_idle_times(rows.keys, rows.facts["idle_s"], at_s)
            rows.facts["idle_s"] = [*idle_s]
            self.own_read_keys += count
        asks, types = self._asks[rows.is_sampled], rows.types
        kinds = set(types)
        if not asks.keys() >= kinds:
            for one in kinds - asks.keys():
                self._know(one)
        groups = {asks[one] for one in kinds}
        if len(groups) == 1:
            self._wait_for(groups.pop(), rows)
            return
        by_commands: dict[tuple[KeyCommand, ...], list[int]] = {one: [] for one in groups}
        for index, one in enumerate(types):
            by_commands[asks[one]].append(index)
        for key_commands, indexes in by_commands.items():
            self._wait_for(key_commands, rows.at(indexes))

    def _wait_for(self, key_commands: tuple[KeyCommand, ...], rows: Rows) -> None:
        if not key_commands and not self.plan.asks_encodings:
            self._finish(rows)
            return
        self._second_keys += len(rows.keys)
        waiting = self._second.setdefault((rows.layout, key_commands), rows)
        if waiting is not rows:
            waiting.extend(rows)

    # What is answered

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _take_answers(
        self, asked: list[Asked], queries: list[Query], replies: Sequence[Reply], round_trip_s: float | None
    ) -> None:
        """Store the answers to a write; raises ServerBusyError when some of it is to be asked again."""
        start = 0
        self._under_way -= 1
        now_ms = self._now_ms()
        for index, one in enumerate(asked):
            try:
                start = self._take(one, replies, start, now_ms)
            except ServerBusyError:
                self._put_back(asked[index:], queries)
                raise
        if queries:
            self.answered(queries, replies[start:], round_trip_s)
        if self._done_keys and now_ms / 1000 - self._done_since > TABLE_S:
            self._make_table()

    def _take(self, asked: Asked, replies: Sequence[Reply], start: int, now_ms: int) -> int:
        """Store the answers about some rows, from `start` on, and return where they end.

        Raises ServerBusyError, and nothing is stored then.
        """
        rows, key_commands = asked.rows, asked.key_commands
        size, width = len(rows.keys), len(key_commands)
        end = start + size * width
        facts: dict[str, Any] = {
            COLUMN_OF[command]: replies[start + at : end : width] for at, command in enumerate(key_commands)
        }
        encodings: dict[bytes, bytes] = {}
        if asked.encoded:
            start, end = end, end + len(asked.encoded)
            encodings = self._read_encodings(rows, asked.encoded, replies[start:end])
        if asked.is_first:
            rows.asked_at_ms = [now_ms] * size
        self._known_encodings |= encodings
        if odd := self._odd_rows(facts, self._asks[rows.is_sampled]):
            known = rows.facts | facts
            both = Rows(rows.keys, rows.packed, rows.asked_at_ms, known, is_sampled=rows.is_sampled)
            left, rows = both.divided(odd)
            self._keep_encodings(left.keys)
            self._read_rows(left, is_first=asked.is_first)
        else:
            rows.facts |= facts
        if not rows.keys:
            return end
        if asked.is_first:
            self._wait(rows)
        else:
            self._finish(rows)
        return end

    @staticmethod
    def _odd_rows(facts: dict[str, list[Reply]], types: dict[bytes | None, Any]) -> list[int]:
        """Return the indexes of rows with an error, nil or another reply that is no name of a type or no number."""
        is_plain = True
        for name, column in facts.items():
            if name != KEY_TYPE:
                is_plain = is_plain and _NUMBERS.issuperset(map(type, column))
            elif not (_NAMES.issuperset(map(type, column)) and types.keys() >= set(column)):
                is_plain = False
        if is_plain:
            return []
        odd = set[int]()
        is_type = expected(Feature.TYPE).fits
        for name, column in facts.items():
            fits = is_type if name == KEY_TYPE else _is_number
            odd.update([index for index, reply in enumerate(column) if not fits(reply)])
        return sorted(odd)

    def _read_encodings(self, rows: Rows, indexes: list[int], replies: Sequence[Reply]) -> dict[bytes, bytes]:
        """Return by key the encodings among the answers; raises ServerBusyError."""
        found: dict[bytes, bytes] = {}
        wanted = expected(Feature.OBJECT_ENCODING)
        for index, reply in zip(indexes, replies, strict=True):
            if wanted.fits(reply) and isinstance(reply, bytes):
                found[rows.keys[index]] = reply
            elif not isinstance(reply, ServerError):
                self.unread[Feature.OBJECT_ENCODING] += not wanted.means_gone(reply)
            elif is_temporary(reply):
                raise ServerBusyError(reply.text)
            elif refuses_fact(reply):
                self.plan.capabilities.record(Feature.OBJECT_ENCODING, reply)
        return found

    def _read_rows(self, rows: Rows, *, is_first: bool) -> None:
        """Read rows key by key, and let those that exist go on; raises ServerBusyError, and nothing is changed then."""
        read: list[InspectedBatch] = []
        for alike in [rows] if is_first else rows.alike():
            known = InspectedBatch(
                None, alike.keys, is_sampled=alike.is_sampled, asked_at_s=alike.asked_at_ms[0] / 1000
            )
            commands = self._commands_of(alike, None if is_first else alike.types[0])  # which are not read yet
            read += self._read(Query(Stage.FIRST, known, commands), alike.replies(), self._clock())
        for batch in read:
            if is_first:
                self.go_on(batch)
            else:
                self.last_stages.go_on(batch)

    def _commands_of(self, rows: Rows, key_type: bytes | None) -> tuple[KeyCommand, ...]:
        """Return the commands that rows of one type were asked, in the order of their facts."""
        second = self.plan.third_command(key_type), *self._asks[rows.is_sampled].get(key_type, ())
        by_fact = {COLUMN_OF[command]: command for command in second if command is not None}
        by_fact = _ANY | by_fact
        return tuple([by_fact[name] for name in rows.facts])

    def _put_back(self, asked: Sequence[Asked], queries: Sequence[Query]) -> None:
        """Let keys wait again about which nothing has come back."""
        for one in asked:
            if one.is_first:
                self.listed.add(one.rows.keys, is_sampled=one.rows.is_sampled)
            else:
                self._wait(one.rows)
        self.lost(queries)

    def _lose(self, asked: Sequence[Asked], queries: Sequence[Query]) -> None:
        """Let keys of a write wait again that was lost with its connection."""
        self._under_way -= 1
        self._put_back(asked, queries)

    # What becomes a table

    def settle(self) -> None:
        """Make a table of all rows about which all is known, so that the findings know of each key."""
        self._make_table()

    def _finish(self, rows: Rows) -> None:
        """Let rows wait for the next table."""
        rows.packed = None
        if not self._done_keys:
            self._done_since = self._clock()
        self._done_keys += len(rows.keys)
        done = self._done.setdefault(rows.layout, rows)
        if done is not rows:
            done.extend(rows)
        if self._done_keys >= self._table_rows:
            self._table_rows = min(2 * self._table_rows, TABLE_ROWS)
            self._make_table()

    def _make_table(self) -> None:
        """Hand all rows on about which all is known, but for those whose length is to be asked late."""
        super().settle()
        done, self._done, self._done_keys = [*self._done.values()], {}, 0
        parts = [self._judged(rows) for rows in done]
        late, self.late_rows.rows = self.late_rows.rows, []
        for rows in late:
            for key in self._late_encodings.keys() & rows.keys:
                self._known_encodings[key] = self._late_encodings.pop(key)
        parts += map(part_of, joined(late).values())
        if not parts:
            return
        asked_at_s = (max([part.rows.asked_at_ms[-1] for part in parts]) + self.maker.ahead_ms) / 1000
        encodings, self._known_encodings = self._known_encodings, {}
        if wanted := sum([part.wanted for part in parts]):
            table = partial(self.maker.table, parts, encodings, self.node, self.database)
            self.late_rows.add_rows(table, wanted, asked_at_s)

    def _judged(self, rows: Rows) -> Part:
        """Return rows as a part of a table; of those that are no facts, or are to be asked for more, it has none."""
        size, types = len(rows.keys), rows.types
        part = part_of(rows)
        columns = part.numbers
        odd = np.zeros(size, dtype=bool)
        for name, column in columns.items():
            wanted = expected(_ANY[name].spec.name)
            least = max(wanted.low, 1) if name == "lengths" else wanted.low  # a type may not have empty keys
            if column.min() < least or column.max() > wanted.high:
                odd |= (column < least) | (column > wanted.high)
        kinds = [*set(types)]
        codes = np.fromiter(map({one: code for code, one in enumerate(kinds)}.__getitem__, types), np.int32, size)
        late: list[int] = []
        for code, one in enumerate(kinds):
            if "lengths" in columns:
                self.late_rows.big.add(one, columns["lengths"][codes == code])
            cost = self.plan.memory(one)
            self.tell_unmeasured(one)
            if "memory_bytes" not in columns and cost.policy is MemoryUsagePolicy.WATCHED:
                odd |= codes == code
            elif "lengths" not in columns and not rows.is_sampled and self.plan.samples_lengths(one):
                indexes = np.flatnonzero((codes == code) & ~odd)
                late += self._late_rows(one, indexes, columns.get("memory_bytes"))
        is_left = odd.copy()
        is_left[late] = True
        if not is_left.any():
            return part
        self._keep_encodings(map(rows.keys.__getitem__, np.flatnonzero(is_left).tolist()))
        for alike in rows.at(sorted(late)).alike():
            self.last_stages.measure(alike.batch())
        if odd.any():
            self._read_rows(rows.at(np.flatnonzero(odd).tolist()), is_first=False)
        return part._replace(is_wanted=~is_left)

    def tell_unmeasured(self, key_type: bytes | None) -> None:
        """Tell the findings why the memory of keys of a type is not known, where it is never asked."""
        cost = self.plan.memory(key_type)
        if cost.policy is MemoryUsagePolicy.NEVER and (note := memory_note(cost)):
            self.late_rows.add_note(key_type, note)

    def _keep_encodings(self, keys: Iterable[bytes]) -> None:
        """Keep what is known of keys until they come back for a later table."""
        known = self._known_encodings
        self._late_encodings |= {key: known[key] for key in keys if key in known}

    def _late_rows(self, key_type: bytes | None, indexes: Any, memory: Any) -> list[int]:
        """Return which of the rows at these indexes, all of one type, are to be asked for their length."""
        if not len(indexes):
            return []
        sizes = None if memory is None else memory[indexes].tolist()
        batch = InspectedBatch(key_type, indexes, memory_bytes=sizes, is_sampled=False)
        chosen = self.last_stages.late_lengths.choose(batch, self.late_rows.big)
        return indexes[[*chosen]].tolist() if chosen else []


def _is_number(reply: Reply) -> bool:
    return type(reply) is int


_ANY: Final = {fact: command for command, fact in COLUMN_OF.items()}
"""By fact a command for it; that of a length depends on the type."""
