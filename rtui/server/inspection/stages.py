"""The stages of an inspection, declared: what is asked of keys, when, under which evidence, and into which columns.

    stage    asked of each key                     together with       evidence       into the columns
    FIRST    TYPE, PTTL, OBJECT IDLETIME or FREQ   the next SCAN       none needed    key_type, ttl_ms, idle_s|frequency
    SECOND   MEMORY USAGE, and STRLEN, HLEN, …     the SCAN after it   TypeEvidence   memory_bytes, lengths

The first stage asks about all keys of a page alike. The second asks about keys of one type, which decides what the
answers cost the server and which command returns the length. It has two variants:

    TIMED      MEMORY USAGE where nothing bounds its cost: alone in a write, between two INFO commandstats, for no more
               keys than have proved cheap so far; the evidence contains how many those are
    ENCODING   OBJECT ENCODING of every n-th key of a type, counted by type and not kept by key
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from rtui.analysis.aggregate.batch import InspectedBatch
from rtui.server import guard
from rtui.server.facts.answers import expected
from rtui.server.facts.types import length_commands
from rtui.server.guard.command import Command, KeyCommand, build_batch, split_keys
from rtui.server.guard.evidence import Evidence, MemoryUsagePolicy
from rtui.server.inspection.columns import AnsweredKeys, Answers, picked, read_answers, rows_of
from rtui.server.inspection.plan import Plan
from rtui.server.wire.replies import Reply

COLUMN_OF: Final[dict[KeyCommand, str]] = {
    guard.key_type: "key_type",
    guard.pttl: "ttl_ms",
    guard.object_idletime: "idle_s",
    guard.object_freq: "frequency",
    guard.memory_usage: "memory_bytes",
    **dict.fromkeys(length_commands().values(), "lengths"),
}
"""The field of `InspectedBatch` that the answers to a question go into."""


class Stage(Enum):
    """What a query asks about its keys; see the table above."""

    FIRST = "first"
    SECOND = "second"
    TIMED = "timed"
    ENCODING = "encoding"


@dataclass(frozen=True, slots=True)
class Query:
    """The same questions about each key of a batch, in one write."""

    stage: Stage
    batch: InspectedBatch
    """The keys, with what earlier stages have found out."""
    key_commands: tuple[KeyCommand, ...]
    commands: tuple[Command, ...]
    """What is sent: the questions, and for TIMED the server's clock before and after them."""
    cost: float
    """What it costs the server, in keys that go through both stages."""

    @property
    def replies(self) -> int:
        """How many replies it brings."""
        return sum(command.replies for command in self.commands)

    def read(self, replies: Sequence[Reply]) -> Answers:
        """Read the replies to `key_commands`; raises ServerBusyError when the server can't answer just now."""
        return read_answers(self.batch.keys, replies, [expected(command.spec.name) for command in self.key_commands])

    def filled(self, part: AnsweredKeys) -> list[InspectedBatch]:
        """Return the keys of a part with what was known of them and the answers: a batch for each type."""
        columns: dict[str, Any] = {
            COLUMN_OF[command]: one for command, one in zip(self.key_commands, part.answers, strict=True)
        }
        if self.stage is not Stage.FIRST:
            return [replace(rows_of(self.batch, part.keys), **columns)]
        types: Sequence[bytes] | None = columns.pop("key_type", None)
        if types is None or len(set(types)) == 1:
            return [InspectedBatch(None if types is None else types[0], part.keys, **columns)]
        indexes: dict[bytes, list[int]] = {one: [] for one in set(types)}
        for index, one in enumerate(types):
            indexes[one].append(index)
        columns["keys"] = part.keys
        return [InspectedBatch(one, **picked(columns, rows)) for one, rows in indexes.items()]


def first_query(plan: Plan, keys: Sequence[bytes]) -> Query | None:
    """Ask about keys of a page, None where everything that is asked first has been refused."""
    key_commands = plan.first_commands
    return (
        Query(Stage.FIRST, InspectedBatch(None, keys), key_commands, _commands(key_commands, keys), len(keys) / 2)
        if key_commands
        else None
    )


def second_query(plan: Plan, batch: InspectedBatch) -> Query | None:
    """Ask about keys of one type what is bounded by it; None for nothing."""
    memory = (guard.memory_usage,) if plan.memory(batch.key_type).policy is MemoryUsagePolicy.FREE else ()
    length = plan.length(batch.key_type)
    key_commands = memory if length is None else (*memory, length)
    commands = _commands(key_commands, batch.keys, plan.evidence(batch.key_type)) if key_commands else ()
    return Query(Stage.SECOND, batch, key_commands, commands, len(batch.keys) / 2) if key_commands else None


def timed_query(plan: Plan, batch: InspectedBatch, *, proved: int, asks_clock: bool) -> Query:
    """Ask for the memory of keys where nothing bounds what that costs; `proved` is how many at once were cheap."""
    key_commands = (guard.memory_usage,)
    clock = (guard.info("commandstats"),) if asks_clock else ()
    evidence = replace(plan.evidence(batch.key_type), proved=proved)
    return Query(
        Stage.TIMED, batch, key_commands, (*clock, *_commands(key_commands, batch.keys, evidence), *clock), 1.0
    )


def encoding_query(key_type: bytes, keys: Sequence[bytes]) -> Query:
    """Ask for the encodings of keys of one type."""
    key_commands = (guard.object_encoding,)
    return Query(
        Stage.ENCODING, InspectedBatch(key_type, keys), key_commands, _commands(key_commands, keys), len(keys) / 5
    )


def _commands(
    key_commands: Sequence[KeyCommand], keys: Sequence[bytes], evidence: Evidence | None = None
) -> tuple[Command, ...]:
    return tuple(build_batch(key_commands, portion, evidence) for portion in split_keys(keys, len(key_commands)))
