"""Lets the compiled engine of a scan do the work of `InspectionPipeline`, and keeps what only Python decides.

Before each slice the engine is told what the plan allows now, type by type. After it, what it counted goes to the
findings, candidates for the lists of largest keys are ranked, and the least values that enter these lists go back to
the engine. Keys that it does not see to the end, such as streams whose MEMORY USAGE has to be timed, go on in the
pipeline where the engine has left them.

Import it only where the compiled engine was built.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from rtui.analysis.aggregate.aggregates import Aggregates, CountedElsewhere, CountedType
from rtui.analysis.aggregate.registered import CountedEntries
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.keyspace.types import STRING, type_of
from rtui.server import guard
from rtui.server.engine.counters import CompiledPatternCounts, CompiledSlotCounts
from rtui.server.engine.registry_tables import add_entries, add_names, counted_entries, registry_table
from rtui.server.facts.answers import expected
from rtui.server.facts.types import QUERIES, queries_of
from rtui.server.guard.command import KeyCommand, KeyTemplate, key_template
from rtui.server.guard.evidence import Evidence, MemoryUsagePolicy
from rtui.server.inspection.last_stages import memory_note
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.scan.page import is_elsewhere, is_temporary
from rtui.server.wire.capability import is_key_refusal, means_gone, refuses_fact
from rtui.server.wire.errors import ServerBusyError
from rtui.server.wire.replies import ServerError

if TYPE_CHECKING:
    from rtui.server.engine._registry import Names, RegistryTable
    from rtui.server.engine._scan import EngineRow, KeysAlike, Kind, ScanEngine

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
"""After so many lengths of a type that are asked late, it is looked anew of which keys they are asked.

Or after a quarter more than before, since what is needed rises slowly then.
"""


TAKEN_EVERY_S: Final = 1.0
"""What the engine has counted by a registry is taken so often."""

UNDECIDED: Final = -2
"""Stands for the entry of a key that the engine does not know."""

COUNTED_AT_ONCE: Final = 512
"""Keys that are counted by a registry before the event loop may do something else."""

MOMENT_MS: Final = 125
"""Keys that Python goes on with or ranks, and that were asked within so long, count as asked at the same moment."""


class Taken(NamedTuple):
    """What an engine has found in one slice, besides what it has counted."""

    unread: list[bytes]
    exported: list[EngineRow]
    largest: list[EngineRow]
    tags: tuple[list[bytes], list[int], list[bytes]]
    """Hash tags of keys with known memory, these sizes, and hash tags of other keys."""
    late: list[tuple[bytes | None, tuple[int, int, int | None]]]
    """By type what was asked late, see `ScanEngine.take_late`."""


class CompiledInspection:
    """The inspection of one pass in one engine; see the module."""

    def __init__(self, pipeline: InspectionPipeline, engine: ScanEngine) -> None:
        """The findings of the pipeline must have compiled counters."""
        findings = pipeline.findings
        patterns, slots = findings.patterns, findings.slots
        if not (isinstance(patterns, CompiledPatternCounts) and isinstance(slots, CompiledSlotCounts)):
            raise TypeError("the counters are not compiled")
        self._pipeline = pipeline
        self._plan = pipeline.plan
        self._findings: Aggregates = findings
        self._slots = slots
        self._engine = engine
        self._revision = (-1, -1)
        self._defined = self._own_reads = 0
        self._vanished = self._keys = 0
        self._has_new_floors = True
        self._taken: Taken | None = None
        self._by_registry: list[KeysAlike] = []
        """Keys that are still to be counted by the registry, since the engine could not decide something of them."""
        self._table: RegistryTable | None = None
        self._is_resting = True
        """Whether the engine is not at work, so that what it has counted can be taken."""
        self._names: Names = []
        """Counts of names that are to be added."""
        self._counted: list[CountedEntries] = []
        """Counts by entry that are to be added, in parts."""
        self._taken_at_s = 0.0
        """When that was taken, by a clock that only goes on."""
        self._typed = 0
        """Types of which the engine knows which entries expect others."""
        if findings.registered is not None:
            self._table = registry_table(findings.registered)
            engine.count_by_registry(self._table)
            findings.registered.pulls[pipeline] = self._pull
        every = self._plan.sample_every
        engine.inspect(patterns.table, slots.table, self, sampled_every=every, sampled_in=pipeline.listed.skip)
        engine.know_types(list(QUERIES))

    def decide(self, column: int, key_type: bytes | None, kind: Kind, value: bytes | int | None) -> int:
        """Say what a reply means that is no plain answer; raises ServerBusyError."""
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
        """Tell the engine what to ask from now on, where that has changed."""
        plan, engine = self._plan, self._engine
        self._is_resting = False
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
            self._set_floors(types)
        self._defined = len(types)
        self._prepare_registry(types)
        if plan.resets_idle_times and self._own_reads != self._pipeline.own_reads.revision:
            self._own_reads = self._pipeline.own_reads.revision
            engine.set_own_reads(self._pipeline.own_reads.hashes())

    def _prepare_registry(self, types: Sequence[bytes | None]) -> None:
        """Tell the engine what the registry says of new types."""
        registered, table = self._findings.registered, self._table
        if registered is None or table is None:
            return
        for number in range(self._typed, len(types)):
            table.set_type(number, registered.entries.wrong_entries(types[number]))
        self._typed = len(types)

    def _define(self, number: int, key_type: bytes | None) -> None:
        """Tell the engine what is asked of keys of one type, and from which size on they are of interest."""
        plan, known = self._plan, type_of(key_type)
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
        limits = self._findings.big.limits(key_type)
        self._engine.define_type(
            number,
            is_exported=policy is MemoryUsagePolicy.WATCHED,
            is_removed_when_empty=known.removed_when_empty,
            length_is_memory=key_type == STRING.name,
            asked=(asked[0], asked[1]),
            length=length,
            most_length=limits.length,
            most_memory=limits.memory_bytes,
        )

    def _template(self, command: KeyCommand, evidence: Evidence | None = None) -> KeyTemplate:
        return key_template(command, evidence, self._plan.names)

    def take(self) -> None:
        """Take what the engine has found since the last time."""
        engine = self._engine
        progress = engine.progress()
        keys, self._keys = progress[5] - self._keys, progress[5]
        vanished, self._vanished = progress[6] - self._vanished, progress[6]
        self._findings.take_over(CountedElsewhere(keys, vanished, map(CountedType._make, engine.take_type_counts())))
        self._taken = Taken(
            engine.take_unread(),
            engine.take_exported(),
            engine.take_top(),
            engine.take_tags(),
            [*zip(engine.types(), engine.take_late(), strict=True)],
        )
        absent = engine.take_absent()
        if absent and self._pipeline.on_absent is not None:
            self._pipeline.on_absent(absent)
        self._by_registry += engine.take_by_registry()
        self._is_resting = True
        if self._table is not None and (self._table.is_filling or time.monotonic() - self._taken_at_s > TAKEN_EVERY_S):
            self._take_registered()

    def hand_on(self) -> Iterator[None]:
        """Hand what was taken to the findings and the pipeline, in parts; see `EngineQueries`."""
        taken, self._taken = self._taken, None
        if taken is not None:
            self._hand_on(taken)
        registered = self._findings.registered
        if registered is not None:
            yield from add_entries(registered, self._counted)
            yield from add_names(registered, self._names)
        while self._by_registry and registered is not None:
            key_type, is_sampled, keys, entries, ttl_ms, sizes, lengths = self._by_registry.pop()
            for start in range(0, len(keys), COUNTED_AT_ONCE):
                part = slice(start, start + COUNTED_AT_ONCE)
                columns = (None if column is None else column[part] for column in (ttl_ms, sizes, lengths))
                ttl_part, size_part, length_part = columns
                registered.add(
                    InspectedBatch(
                        key_type,
                        keys[part],
                        ttl_ms=ttl_part,
                        memory_bytes=size_part,
                        lengths=length_part,
                        is_sampled=is_sampled,
                    ),
                    self._entries(keys[part], entries[part]),
                )
                yield

    def _take_registered(self) -> None:
        """Take what the engine has counted by the registry, while it is not at work."""
        registered, table = self._findings.registered, self._table
        if registered is not None and table is not None:
            self._taken_at_s = time.monotonic()
            taken = table.take(self._engine.types())
            self._counted += counted_entries(taken)
            self._names += taken[-1]

    def _pull(self) -> Iterator[None]:
        """Add what was counted by the registry until now, or if the engine is at work until it was taken, in parts."""
        registered = self._findings.registered
        if self._is_resting:
            self._take_registered()
        if registered is not None:
            yield from add_entries(registered, self._counted)
            yield from add_names(registered, self._names)

    def _entries(self, keys: Sequence[bytes], entries: Sequence[int]) -> Sequence[int]:
        """Return the entry of each key; the engine does not know some."""
        registered = self._findings.registered
        if registered is None or UNDECIDED not in entries:
            return entries
        match = registered.registry.matcher.match_page
        return [match((key,))[0] if one == UNDECIDED else one for key, one in zip(keys, entries, strict=True)]

    def _hand_on(self, taken: Taken) -> None:
        """Hand on what one slice has found."""
        findings, late = self._findings, self._pipeline.last_stages.late_lengths
        if taken.unread:
            findings.add_unread(taken.unread)
        for batch, _ in self._batches(taken.exported):
            self._pipeline.go_on(replace(batch, note=""))  # its memory may yet be asked
        for batch, asked_at_s in self._batches(taken.largest):
            findings.big.rank(batch, asked_at_s)
            self._has_new_floors = True
        tags, sizes, tags_of_others = taken.tags
        self._slots.add_tags(tags, sizes)
        self._slots.add_tags(tags_of_others, None)
        for key_type, (seen, asked, left_out) in taken.late:
            if (seen or left_out != -1) and self._plan.samples_lengths(key_type):
                self._has_new_floors = True
                late.count(key_type, seen=seen, asked=asked)
                if left_out != -1:
                    findings.big.leave_out(key_type, late.most_length(key_type, left_out))

    def _set_floors(self, types: Sequence[bytes | None]) -> None:
        """Tell the engine which keys the lists still take, and of which the length is to be asked late."""
        big, late = self._findings.big, self._pipeline.last_stages.late_lengths
        for number, key_type in enumerate(types):
            self._engine.set_floors(number, *big.floors(key_type))
            least = late.least_memory(key_type, big)
            left, most = late.left(key_type, big), max(LATE_AT_ONCE, 2 * big.top, late.asked(key_type) // 4)
            # What is needed rises with the lengths that are found, unless memory says nothing of them.
            is_open = left > most and self._plan.least_element_bytes(key_type) > 0
            self._engine.ask_late(number, least, most if is_open else left, is_open=is_open)
        is_frequency = self._plan.recency is guard.object_freq
        self._engine.set_recency_floor(big.recency_floor(is_frequency=is_frequency), is_frequency=is_frequency)

    def _batches(self, rows: Iterable[EngineRow]) -> Iterable[tuple[InspectedBatch, float]]:
        """Join rows of which the same is known; yield the keys, and when they were asked, in seconds."""
        alike: defaultdict[tuple[object, ...], list[EngineRow]] = defaultdict(list)
        for row in rows:
            alike[row[1], row[7] // MOMENT_MS, row[8], *(one is None for one in row[2:7])].append(row)
        for joined in alike.values():
            keys, types, ttl_ms, memory_bytes, idle_s, frequency, lengths, asked_at_ms, is_sampled = zip(
                *joined, strict=True
            )
            yield (
                InspectedBatch(
                    types[0],
                    keys,
                    ttl_ms=None if ttl_ms[0] is None else ttl_ms,
                    memory_bytes=None if memory_bytes[0] is None else memory_bytes,
                    idle_s=None if idle_s[0] is None else idle_s,
                    frequency=None if frequency[0] is None else frequency,
                    lengths=None if lengths[0] is None else lengths,
                    note=memory_note(self._plan.memory(types[0])) if memory_bytes[0] is None else "",
                    is_sampled=is_sampled[0],
                    asked_at_s=-(-asked_at_ms[0] // MOMENT_MS) * MOMENT_MS / 1000,
                ),
                asked_at_ms[0] / 1000,
            )
