"""An inspection by the compiled engine, which queries each key and holds its facts in arrays.

After a slice of time the rows whose facts are complete become a table. Keys that the engine leaves to Python, because
the cost of their queries must be watched, go on in the stages of `InspectionPipeline`. This module interprets
unexpected replies, and decides which lengths to ask late.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.facts.answers import QUERIES, expected, queries_of
from rtui.server.guard.command import KeyCommand, KeyTemplate, key_template
from rtui.server.guard.evidence import Evidence, MemoryUsagePolicy
from rtui.server.inspection.pipeline import memory_note
from rtui.server.inspection.tables import EngineRows, InspectedBatch
from rtui.server.scan.page import is_elsewhere, is_temporary
from rtui.server.wire.capability import is_key_refusal, means_gone, refuses_fact
from rtui.server.wire.errors import ServerBusyError, ServerError

if TYPE_CHECKING:
    from rtui.server.engine._scan import EngineRow, Kind, ScanEngine
    from rtui.server.inspection.pipeline import InspectionPipeline

IS_GONE: Final = 1
IS_UNKNOWN: Final = 2
IS_ELSEWHERE: Final = 4

_COLUMNS: Final[dict[KeyCommand, int]] = {
    guard.key_type: 0,
    guard.pttl: 1,
    guard.object_idletime: 2,
    guard.object_freq: 3,
    guard.memory_usage: 4,
    guard.object_encoding: 6,
}
"""Columns as the engine numbers them; 5 is the length, whose command depends on the type."""

_COMMANDS: Final = {column: command for command, column in _COLUMNS.items()}

ASKS_MEMORY: Final = 1 << 4
ASKS_LENGTH: Final = 1 << 5

LATE_AT_ONCE: Final = 256
"""Late lengths of a type to ask before the choice of keys is made anew.

Or a quarter more than were asked so far, since the threshold rises slowly then.
"""

MOMENT_MS: Final = 125
"""Width of a time bin in ms: keys that Python goes on with and that were asked within it count as asked together."""


class Taken(NamedTuple):
    """The results of an engine from one slice."""

    rows: EngineRows
    unread: list[bytes]
    exported: list[EngineRow]
    vanished: int
    late: list[tuple[bytes | None, tuple[int, int, int | None]]]
    """By type, the lengths asked late; see `ScanEngine.take_late`."""


class InspectingEngine:
    """One engine that sends the queries of an inspection; see the module."""

    def __init__(self, pipeline: InspectionPipeline, engine: ScanEngine) -> None:
        self._pipeline, self._plan, self._engine = pipeline, pipeline.plan, engine
        self._revision = (-1, -1)
        self._defined = self._own_reads = self._vanished = 0
        """Types that are defined, the revision of rtui's own reads, and keys gone, all as the engine has them."""
        self._has_new_floors = True
        self._taken: Taken | None = None
        engine.inspect(self, sampled_every=self._plan.sample_every, sampled_in=pipeline.listed.skip)
        engine.know_types(list(QUERIES))

    def decide(self, column: int, key_type: bytes | None, kind: Kind, value: bytes | int | None) -> int:
        """Return how the engine treats an unexpected reply: gone, unknown, …; raises ServerBusyError."""
        length = queries_of(key_type).length
        command = _COMMANDS.get(column, length)
        name = "" if command is None else command.spec.name
        if kind != "error":
            if kind != "other" and name and expected(name).means_gone(value):
                return IS_GONE
            self._pipeline.unread[name] += 1
            return IS_UNKNOWN
        error = ServerError(value.decode(errors="replace") if isinstance(value, bytes) else "")
        if self._pipeline.on_absent is not None and is_elsewhere(error):
            return IS_ELSEWHERE
        if is_temporary(error):
            raise ServerBusyError(error.text)
        if means_gone(error):
            return IS_GONE
        if not is_key_refusal(error) and refuses_fact(error):
            self._plan.capabilities.record(name, error)
            self._engine.interrupt()
        return IS_UNKNOWN

    def prepare(self) -> None:
        """Set the engine's commands, if they have changed."""
        plan, engine = self._plan, self._engine
        engine.tells_absent = self._pipeline.on_absent is not None
        types = engine.types()
        if self._revision != plan.revision:
            self._revision, self._defined = plan.revision, 0
            of_others, of_sampled = (
                [(_COLUMNS[command], self._template(command)) for command in plan.first_commands(is_sampled)]
                for is_sampled in (False, True)
            )
            engine.ask_first(of_others, of_sampled)
            engine.set_template(_COLUMNS[guard.object_encoding], self._template(guard.object_encoding))
            engine.ask_encodings(plan.encoding_every if plan.asks_encodings else 0)
        for number in range(self._defined, len(types)):
            self._define(number, types[number])
        if self._has_new_floors or self._defined < len(types):
            self._has_new_floors = False
            big, late = self._pipeline.tables.big, self._pipeline.last_stages.late_lengths
            for place, key_type in enumerate(types):
                least = late.least_memory(key_type, big)
                left, most = late.left(key_type, big), max(LATE_AT_ONCE, 2 * big.top, late.asked(key_type) // 4)
                # What is needed rises with the lengths that are found, unless memory says nothing of them.
                is_open = left > most and self._plan.least_element_bytes(key_type) > 0
                self._engine.ask_late(place, least, most if is_open else left, is_open=is_open)
        self._defined = len(types)
        if plan.resets_idle_times and self._own_reads != self._pipeline.own_reads.revision:
            self._own_reads = self._pipeline.own_reads.revision
            engine.set_own_reads(self._pipeline.own_reads.hashes())

    def _define(self, number: int, key_type: bytes | None) -> None:
        plan = self._plan
        policy = plan.memory(key_type).policy
        if policy is MemoryUsagePolicy.FREE:
            column = _COLUMNS[guard.memory_usage]
            self._engine.set_template(column, self._template(guard.memory_usage, plan.evidence(key_type)))
        asked = []
        length: KeyTemplate | None = None
        for is_sampled in (False, True):
            commands = plan.second_commands(key_type, is_sampled)
            bits = ASKS_MEMORY if guard.memory_usage in commands else 0
            for command in commands:
                if command is not guard.memory_usage:
                    bits |= ASKS_LENGTH
                    length = self._template(command)
            asked.append(bits)
        late = plan.third_command(key_type)
        if late is not None:
            length = self._template(late)
        self._engine.define_type(
            number,
            is_exported=policy is MemoryUsagePolicy.WATCHED,
            is_removed_when_empty=type_of(key_type).removed_when_empty,
            asked=(asked[0], asked[1]),
            length=length,
        )

    def _template(self, command: KeyCommand, evidence: Evidence | None = None) -> KeyTemplate:
        return key_template(command, evidence, self._plan.names)

    def take(self) -> None:
        """Take the engine's results since the last call."""
        engine = self._engine
        vanished, types = engine.progress()[6], engine.types()
        self._taken = Taken(
            EngineRows(*engine.take_rows(), types, engine.encodings()),
            engine.take_unread(),
            engine.take_exported(),
            vanished - self._vanished,
            [*zip(types, engine.take_late(), strict=True)],
        )
        self._vanished = vanished
        absent = engine.take_absent()
        if absent and self._pipeline.on_absent is not None:
            self._pipeline.on_absent(absent)

    def hand_on(self) -> Iterator[None]:
        """Hand the results taken to the findings and the pipeline, in parts; see `EngineQueries`."""
        taken, self._taken = self._taken, None
        if taken is None:
            return
        pipeline, tables = self._pipeline, self._pipeline.tables
        tables.add_vanished(taken.vanished)
        if taken.unread:
            tables.add_unread(taken.unread)
        if len(taken.rows):
            for key_type in taken.rows.without_memory():
                if note := memory_note(self._plan.memory(key_type)):
                    tables.add_note(key_type, note)
            self._has_new_floors = tables.add_array(taken.rows) or self._has_new_floors
            yield
        for batch in self._batches(taken.exported):
            pipeline.go_on(batch)
        late = pipeline.last_stages.late_lengths
        for key_type, (seen, asked, left_out) in taken.late:
            if (seen or left_out != -1) and self._plan.samples_lengths(key_type):
                self._has_new_floors = True
                late.count(key_type, seen=seen, asked=asked)
                if left_out != -1:
                    tables.big.leave_out(key_type, late.most_length(key_type, left_out))

    @staticmethod
    def _batches(rows: Iterable[EngineRow]) -> Iterator[InspectedBatch]:
        """Join rows with the same known facts that were asked at the same moment."""
        alike: defaultdict[tuple[object, ...], list[EngineRow]] = defaultdict(list)
        for row in rows:
            alike[row[1], row[7] // MOMENT_MS, row[8], *(one is None for one in row[2:7])].append(row)
        for joined in alike.values():
            keys, types, ttl_ms, memory_bytes, idle_s, frequency, lengths, asked_at_ms, is_sampled = zip(
                *joined, strict=True
            )
            yield InspectedBatch(
                types[0],
                keys,
                ttl_ms=None if ttl_ms[0] is None else ttl_ms,
                memory_bytes=None if memory_bytes[0] is None else memory_bytes,
                idle_s=None if idle_s[0] is None else idle_s,
                frequency=None if frequency[0] is None else frequency,
                lengths=None if lengths[0] is None else lengths,
                is_sampled=is_sampled[0],
                asked_at_s=-(-asked_at_ms[0] // MOMENT_MS) * MOMENT_MS / 1000,
            )
