"""The stages of an inspection, declared: what is asked of keys, when, under which evidence, and into which columns.

    stage    asked of each key                     together with       evidence       into the columns
    FIRST    TYPE, PTTL, OBJECT IDLETIME or FREQ   the next SCAN       none needed    key_type, ttl_ms, idle_s|frequency
    SECOND   MEMORY USAGE, and STRLEN, HLEN, …     the SCAN after it   TypeEvidence   memory_bytes, lengths
    THIRD    STRLEN, HLEN, … of some               the SCAN after it   none needed    lengths

The first stage asks about all keys of a page alike, but for what is asked of sampled keys only. The second asks about
keys of one type, which decides what the answers cost the server and which command returns the length. The third asks
the length of keys that are not sampled, where their memory says that they may be among the longest. Two variants:

    TIMED      MEMORY USAGE where nothing bounds its cost: alone in a write, between two INFO commandstats, for no more
               keys than have proved cheap so far; the evidence contains how many those are
    ENCODING   OBJECT ENCODING of every n-th key of a type, counted by type and not kept by key

The replies to k questions about n keys come as one list of n * k, key by key. Where every answer is a fact, as on
nearly every page, the columns are plain slices of it; only where one is not is each key checked by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias

from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.server import guard
from rtui.server.facts.answers import Expected
from rtui.server.facts.types import length_commands
from rtui.server.guard.command import Command, KeyCommand, build_batch, split_keys
from rtui.server.guard.evidence import Evidence
from rtui.server.scan.page import is_temporary
from rtui.server.wire.capability import is_key_refusal
from rtui.server.wire.errors import ServerBusyError
from rtui.server.wire.replies import Reply, ServerError

FACT_COLUMNS: Final = ("ttl_ms", "memory_bytes", "idle_s", "frequency", "lengths")
"""The columns of `InspectedBatch`, by their names."""

COMMANDS_OF_A_KEY: Final = 5
"""How many commands it takes to ask everything about a key."""

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
    THIRD = "third"
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
    """What it costs the server, in keys of which everything is asked."""


def query_about(
    stage: Stage,
    batch: InspectedBatch,
    key_commands: tuple[KeyCommand, ...],
    evidence: Evidence | None = None,
    *,
    asks_clock: bool = False,
) -> Query:
    """Ask these questions about each key of a batch; with `asks_clock`, also for INFO commandstats before and after."""
    keys = batch.keys
    portions = split_keys(keys, len(key_commands))
    commands = tuple(build_batch(key_commands, portion, evidence) for portion in portions)
    clock = (guard.info("commandstats"),) if asks_clock else ()
    cost = 1.0 if stage is Stage.TIMED else len(keys) * len(key_commands) / COMMANDS_OF_A_KEY
    return Query(stage, batch, key_commands, (*clock, *commands, *clock), cost)


@dataclass(slots=True)
class AnsweredKeys:
    """Keys and, for each question, the answers; None where there is none for any of these keys."""

    keys: Sequence[bytes]
    answers: tuple[Sequence[Any] | None, ...]


@dataclass(slots=True)
class Answers:
    """The replies to the same questions about many keys."""

    parts: list[AnsweredKeys] = field(default_factory=list)
    """Together all keys that exist; in each part a question is answered for all keys or for none."""
    gone: int = 0
    """Keys that do not exist any more, or whose name now belongs to a key of another type."""
    errors: dict[int, ServerError] = field(default_factory=dict)
    """By the index of a question, an error reply to its command that is not about one key."""
    unread: Counter[int] = field(default_factory=Counter)
    """By the index of a question, the number of answers that are no value of the fact."""


def read_answers(keys: Sequence[bytes], replies: Sequence[Reply], expected: Sequence[Expected]) -> Answers:
    """Turn replies, key by key and for each key question by question, into columns.

    Raises ServerBusyError when one of them says that the server can't answer just now: all are to be asked again then.
    """
    width = len(expected)
    columns = tuple(replies[index::width] for index in range(width))
    if all(question.all_fit(column) for question, column in zip(expected, columns, strict=True)):
        return Answers([AnsweredKeys(keys, columns)])
    found = Answers()
    parts: dict[tuple[bool, ...], tuple[list[bytes], list[list[Reply]]]] = {}
    for key, row in zip(keys, zip(*columns, strict=True), strict=True):
        is_gone = False
        for index, (question, reply) in enumerate(zip(expected, row, strict=True)):
            if not isinstance(reply, ServerError):
                is_gone = is_gone or question.means_gone(reply)
            elif is_temporary(reply):
                raise ServerBusyError(reply.text)
            elif reply.code == "WRONGTYPE" or "no such key" in reply.text.lower():
                is_gone = True
            elif not is_key_refusal(reply):
                found.errors.setdefault(index, reply)
        if is_gone:
            found.gone += 1
            continue
        has = tuple(question.fits(reply) for question, reply in zip(expected, row, strict=True))
        found.unread.update(i for i, reply in enumerate(row) if not (has[i] or isinstance(reply, ServerError)))
        part_keys, part_columns = parts.setdefault(has, ([], [[] for _ in expected]))
        part_keys.append(key)
        for column, reply in zip(part_columns, row, strict=True):
            column.append(reply)
    for has, (part_keys, part_columns) in parts.items():
        kept = tuple(column if is_there else None for column, is_there in zip(part_columns, has, strict=True))
        found.parts.append(AnsweredKeys(part_keys, kept))
    return found


def picked(columns: Mapping[str, Sequence[Any] | None], indexes: Sequence[int]) -> dict[str, Any]:
    """Return the values of each column at these indexes, None for a column that is None."""
    return {name: None if one is None else [*map(one.__getitem__, indexes)] for name, one in columns.items()}


def rows_at(batch: InspectedBatch, indexes: Sequence[int]) -> InspectedBatch:
    """Return the keys of a batch at these indexes, with all their columns."""
    return replace(batch, **picked({name: getattr(batch, name) for name in ("keys", *FACT_COLUMNS)}, indexes))


def with_answers(query: Query, part: AnsweredKeys) -> list[InspectedBatch]:
    """Return the keys of a part with what was known of them and the answers: a batch for each type."""
    columns: dict[str, Any] = {
        COLUMN_OF[command]: one for command, one in zip(query.key_commands, part.answers, strict=True)
    }
    if query.stage is not Stage.FIRST:
        known = query.batch
        if len(part.keys) < len(known.keys):
            there = set(part.keys)
            known = rows_at(known, [index for index, key in enumerate(known.keys) if key in there])
        return [replace(known, **columns)]
    types: Sequence[bytes] | None = columns.pop("key_type", None)
    is_sampled = query.batch.is_sampled
    if types is None or len(set(types)) == 1:
        return [InspectedBatch(None if types is None else types[0], part.keys, **columns, is_sampled=is_sampled)]
    indexes: dict[bytes, list[int]] = {one: [] for one in set(types)}
    for index, one in enumerate(types):
        indexes[one].append(index)
    columns["keys"] = part.keys
    return [InspectedBatch(one, **picked(columns, rows), is_sampled=is_sampled) for one, rows in indexes.items()]


_Signature: TypeAlias = tuple[bytes | None, tuple[bool, ...], str, bool]
"""Type, which columns there are, the note, and whether they are sampled: what all keys of a batch have in common."""


class WaitingKeys:
    """Batches that wait for their next query; those of one type are joined: many small pages become few writes."""

    def __init__(self) -> None:
        self.keys = 0
        """How many keys wait."""
        self._joined: dict[_Signature, tuple[list[bytes], list[list[int] | None]]] = {}

    def add(self, batch: InspectedBatch) -> None:
        """Let a batch wait."""
        columns = [getattr(batch, name) for name in FACT_COLUMNS]
        signature = (batch.key_type, tuple(one is not None for one in columns), batch.note, batch.is_sampled)
        joined = self._joined.get(signature)
        if joined is None:
            joined = self._joined[signature] = ([], [None if one is None else [] for one in columns])
        joined[0].extend(batch.keys)
        for column, more in zip(joined[1], columns, strict=True):
            if column is not None:
                column.extend(more)
        self.keys += len(batch.keys)

    def take(self, most: int) -> Iterator[InspectedBatch]:
        """Yield up to so many keys, a batch for each type, beginning with the type of which most keys wait."""
        for signature in sorted(self._joined, key=lambda one: -len(self._joined[one][0])):
            if most <= 0:
                return
            keys, columns = self._joined[signature]
            taken = InspectedBatch(
                signature[0],
                keys[:most],
                **{name: None if one is None else one[:most] for name, one in zip(FACT_COLUMNS, columns, strict=True)},
                note=signature[2],
                is_sampled=signature[3],
            )
            for column in (keys, *columns):
                if column is not None:
                    del column[:most]
            if not keys:
                del self._joined[signature]
            self.keys -= len(taken.keys)
            most -= len(taken.keys)
            yield taken

    def clear(self) -> None:
        """Forget everything."""
        self._joined.clear()
        self.keys = 0
