"""The stages of an inspection, declared: their commands, when they are sent, their evidence and their columns.

    stage    asked of each key                     together with       evidence       into the columns
    FIRST    TYPE, PTTL, OBJECT IDLETIME or FREQ   the next SCAN       none needed    key_type, ttl_ms, idle_s|frequency
    SECOND   MEMORY USAGE, and STRLEN, HLEN, …     the SCAN after it   TypeEvidence   memory_bytes, lengths, encodings
    THIRD    STRLEN, HLEN, … of some               the SCAN after it   none needed    lengths

The first stage sends the same commands about all keys of a page, and some about sampled keys only. The second asks
about keys of one type, which decides what the answers cost the server and which command returns the length. The third
asks the length of keys that are not sampled, where their memory says that they may be among the longest. Of every n-th
key of a type, which waits by itself, the second asks OBJECT ENCODING, too. One variant:

    TIMED      MEMORY USAGE where nothing bounds its cost: alone in a write, between two INFO commandstats, for no more
               keys than have proved cheap so far; the evidence contains how many those are

The replies to k questions about n keys come as one list of n * k, key by key. Where every answer is a fact, as on
nearly every page, the columns are plain slices of it; only where one is not is each key checked by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias

from rtui.server import guard
from rtui.server.facts.answers import Expected, length_commands
from rtui.server.facts.answers import expected as expected_of
from rtui.server.guard.command import Command, KeyCommand, build_batch, split_keys
from rtui.server.guard.evidence import Evidence
from rtui.server.inspection.tables import InspectedBatch
from rtui.server.scan.page import is_elsewhere, is_temporary
from rtui.server.wire.capability import Feature, is_key_refusal, means_gone
from rtui.server.wire.errors import Reply, ServerBusyError, ServerError

FACT_COLUMNS: Final = ("ttl_ms", "memory_bytes", "idle_s", "frequency", "lengths", "encodings")
"""The columns of `InspectedBatch`, by their names."""

COMMANDS_OF_A_KEY: Final = 5
"""How many commands it takes to ask everything about a key."""

MOMENT_S: Final = 0.125
"""Width of a time bin in seconds: keys asked within it count as asked at its end."""

_ENCODING: Final = expected_of(Feature.OBJECT_ENCODING)

COLUMN_OF: Final[dict[KeyCommand, str]] = {
    guard.key_type: "key_type",
    guard.pttl: "ttl_ms",
    guard.object_idletime: "idle_s",
    guard.object_freq: "frequency",
    guard.memory_usage: "memory_bytes",
    **dict.fromkeys(length_commands().values(), "lengths"),
    guard.object_encoding: "encodings",
}
"""The field of `InspectedBatch` that the answers to a question go into."""


class QueryStage(Enum):
    """The commands that a query sends about its keys; see the table above."""

    FIRST = "first"
    SECOND = "second"
    THIRD = "third"
    TIMED = "timed"


@dataclass(slots=True)
class KeyQuery:
    """The same questions about each key of a batch, in one write."""

    stage: QueryStage
    batch: InspectedBatch
    """The keys, with the facts of earlier stages."""
    key_commands: tuple[KeyCommand, ...]
    commands: tuple[Command, ...] = ()
    """The commands sent: the questions, and for TIMED the server's clock before and after them."""
    cost: float = 0.0
    """Cost to the server, in whole inspections of a key."""

    @property
    def answers(self) -> int:
        return len(self.batch.keys) * len(self.key_commands)


def query_about(
    stage: QueryStage,
    batch: InspectedBatch,
    key_commands: tuple[KeyCommand, ...],
    evidence: Evidence | None = None,
    *,
    asks_clock: bool = False,
) -> KeyQuery:
    """Ask these questions about each key of a batch; with `asks_clock`, also for INFO commandstats before and after."""
    portions = split_keys(batch.keys, len(key_commands))
    commands = tuple([build_batch(key_commands, portion, evidence) for portion in portions])
    if asks_clock:
        clock = guard.info("commandstats")
        commands = (clock, *commands, clock)
    query = KeyQuery(stage, batch, key_commands, commands)
    query.cost = 1.0 if stage is QueryStage.TIMED else query.answers / COMMANDS_OF_A_KEY
    return query


@dataclass(slots=True)
class AnsweredKeys:
    """Keys and, for each command, a column of replies; None if it was answered for none of these keys."""

    keys: Sequence[bytes]
    answers: tuple[Sequence[Any] | None, ...]


@dataclass(slots=True)
class Answers:
    """The replies to the same questions about many keys."""

    parts: list[AnsweredKeys] = field(default_factory=list)
    """All existing keys; within a part a command was answered for all keys or for none."""
    gone: list[bytes] = field(default_factory=list)
    """Keys that do not exist any more, or whose name now belongs to a key of another type."""
    errors: dict[int, ServerError] = field(default_factory=dict)
    """By the index of a question, an error reply to its command that is not about one key."""
    elsewhere: list[bytes] = field(default_factory=list)
    unread: Counter[int] = field(default_factory=Counter)
    """By the index of a question, the number of answers that are no value of the fact."""


def read_answers(
    keys: Sequence[bytes], replies: Sequence[Reply], expected: Sequence[Expected], *, tells_elsewhere: bool = False
) -> Answers:
    """Turn replies, ordered by key and then by command, into columns.

    Unless it `tells_elsewhere`, a fact is unknown if another node has the key. OBJECT ENCODING does not tell whether
    its key exists: the other commands of the same write do. Raises ServerBusyError if a reply says that the server
    can't answer just now: all are to be asked again then.
    """
    width = len(expected)
    columns = tuple(replies[index::width] for index in range(width))
    if all(question.all_fit(column) for question, column in zip(expected, columns, strict=True)):
        return Answers([AnsweredKeys(keys, columns)])
    found = Answers()
    parts: dict[tuple[bool, ...], tuple[list[bytes], list[list[Reply]]]] = {}
    for key, row in zip(keys, zip(*columns, strict=True), strict=True):
        is_gone = has_moved = False
        for index, (question, reply) in enumerate(zip(expected, row, strict=True)):
            says_where = question is not _ENCODING
            if not isinstance(reply, ServerError):
                is_gone = is_gone or (says_where and question.means_gone(reply))
            elif tells_elsewhere and is_elsewhere(reply):
                has_moved = has_moved or says_where
            elif is_temporary(reply):
                raise ServerBusyError(reply.text)
            elif means_gone(reply):
                is_gone = is_gone or says_where
            elif not is_key_refusal(reply):
                found.errors.setdefault(index, reply)
        if has_moved:
            found.elsewhere.append(key)
            continue
        if is_gone:
            found.gone.append(key)
            continue
        has = tuple(question.fits(reply) for question, reply in zip(expected, row, strict=True))
        found.unread.update(
            index
            for index, (question, reply) in enumerate(zip(expected, row, strict=True))
            if not (has[index] or isinstance(reply, ServerError) or question.means_gone(reply))
        )
        part_keys, part_columns = parts.setdefault(has, ([], [[] for _ in expected]))
        part_keys.append(key)
        for column, reply in zip(part_columns, row, strict=True):
            column.append(reply)
    for has, (part_keys, part_columns) in parts.items():
        kept = tuple(column if is_there else None for column, is_there in zip(part_columns, has, strict=True))
        found.parts.append(AnsweredKeys(part_keys, kept))
    return found


def picked(columns: Mapping[str, Any], indexes: Sequence[int]) -> dict[str, Any]:
    """Return the values of each column at these indexes, and whatever is no list as it is."""
    return {
        name: [*map(one.__getitem__, indexes)] if isinstance(one, Sequence) else one for name, one in columns.items()
    }


def rows_at(batch: InspectedBatch, indexes: Sequence[int]) -> InspectedBatch:
    return replace(batch, **picked({name: getattr(batch, name) for name in ("keys", *FACT_COLUMNS)}, indexes))


def moment(now_s: float) -> float:
    """Return the end of the MOMENT_S that a time is in, both in seconds since the epoch."""
    return -(-now_s // MOMENT_S) * MOMENT_S


def with_answers(query: KeyQuery, part: AnsweredKeys, now_s: float) -> list[InspectedBatch]:
    """Return the keys of a part with their earlier facts and the new replies: a batch for each type.

    `now_s`: when the replies arrived, in seconds since the epoch; used for the first stage.
    """
    asked_at_s = moment(now_s) if query.batch.asked_at_s is None else query.batch.asked_at_s
    columns: dict[str, Any] = {
        COLUMN_OF[command]: one for command, one in zip(query.key_commands, part.answers, strict=True)
    }
    if query.stage is not QueryStage.FIRST:
        known = query.batch
        if len(part.keys) < len(known.keys):
            there = set(part.keys)
            known = rows_at(known, [index for index, key in enumerate(known.keys) if key in there])
        return [replace(known, asked_at_s=asked_at_s, **columns)]
    types: Sequence[bytes] | None = columns.pop("key_type", None)
    columns["is_sampled"], columns["asked_at_s"] = query.batch.is_sampled, asked_at_s
    if types is None or len(set(types)) == 1:
        return [InspectedBatch(None if types is None else types[0], part.keys, **columns)]
    indexes: dict[bytes, list[int]] = {one: [] for one in set(types)}
    for index, one in enumerate(types):
        indexes[one].append(index)
    columns["keys"] = part.keys
    return [InspectedBatch(one, **picked(columns, rows)) for one, rows in indexes.items()]


_Signature: TypeAlias = tuple[bytes | None, tuple[bool, ...], str, bool, float | None]
"""What the keys of a batch have in common: type, which columns exist, note, whether sampled, when they were asked."""


class JoinedKeys:
    """Keys of one signature and their columns, joined from many batches in order."""

    __slots__ = ("columns", "keys", "signature")

    def __init__(self, signature: _Signature) -> None:
        self.signature = signature
        self.keys: list[bytes] = []
        self.columns: list[list[Any] | None] = [[] if is_known else None for is_known in signature[1]]

    def add(self, batch: InspectedBatch) -> None:
        self.keys += batch.keys
        for column, more in zip(self.columns, _columns_of(batch), strict=True):
            if column is not None and more is not None:
                column.extend(more)

    def take(self, most: int) -> InspectedBatch:
        """Remove and return the first keys, at most `most`."""
        keys, columns = self.keys, self.columns
        if len(keys) <= most:
            self.keys, self.columns = [], [None if column is None else [] for column in columns]
        else:
            columns = [None if column is None else column[:most] for column in columns]
            keys = keys[:most]
            for column in (self.keys, *self.columns):
                if column is not None:
                    del column[:most]
        key_type, _, note, is_sampled, asked_at_s = self.signature
        facts: dict[str, Any] = dict(zip(FACT_COLUMNS, columns, strict=True))
        return InspectedBatch(key_type, keys, note=note, is_sampled=is_sampled, asked_at_s=asked_at_s, **facts)


def _columns_of(batch: InspectedBatch) -> tuple[Sequence[Any] | None, ...]:
    return tuple([getattr(batch, name) for name in FACT_COLUMNS])


def _signature_of(batch: InspectedBatch, asked_at_s: float | None) -> _Signature:
    known = tuple([column is not None for column in _columns_of(batch)])
    return batch.key_type, known, batch.note, batch.is_sampled, asked_at_s


def _size_of(joined: JoinedKeys) -> int:
    return len(joined.keys)


class WaitingKeys:
    """Batches that wait for their next query; batches of one type are joined: many small pages become few writes."""

    def __init__(self) -> None:
        self.keys = 0
        self._joined: dict[_Signature, JoinedKeys] = {}

    def add(self, batch: InspectedBatch) -> None:
        signature = _signature_of(batch, batch.asked_at_s)
        joined = self._joined.get(signature)
        if joined is None:
            joined = self._joined[signature] = JoinedKeys(signature)
        joined.add(batch)
        self.keys += len(batch.keys)

    def take(self, most: int) -> Iterator[InspectedBatch]:
        """Yield up to `most` keys, a batch for each type, beginning with the type of which most keys wait."""
        while self._joined and most > 0:
            joined = max(self._joined.values(), key=_size_of)
            taken = joined.take(most)
            if not joined.keys:
                del self._joined[joined.signature]
            self.keys -= len(taken.keys)
            most -= len(taken.keys)
            yield taken

    def clear(self) -> None:
        self._joined.clear()
        self.keys = 0
