"""Keys and what is known of them, column by column: read from replies, split by key, joined while they wait.

The replies to k questions about n keys come as one list of n * k, key by key. Where every answer is a fact, as on
nearly every page, the columns are plain slices of it; only where one is not is each key checked by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from rtui.analysis.aggregate.batch import InspectedBatch
from rtui.server.facts.answers import Expected
from rtui.server.scan.page import is_temporary
from rtui.server.wire.capability import is_key_refusal
from rtui.server.wire.errors import ServerBusyError
from rtui.server.wire.replies import Reply, ServerError

FACT_COLUMNS: Final = ("ttl_ms", "memory_bytes", "idle_s", "frequency", "lengths")
"""The columns of `InspectedBatch`, by their names."""


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


def rows_of(batch: InspectedBatch, keys: Sequence[bytes]) -> InspectedBatch:
    """Return the part of a batch that is about these keys, which are in its order."""
    if len(keys) == len(batch.keys):
        return batch
    wanted = set(keys)
    return rows_at(batch, [index for index, key in enumerate(batch.keys) if key in wanted])


_Signature: TypeAlias = tuple[bytes | None, tuple[bool, ...], str]
"""Type, which columns there are, and the note: what all keys of a batch have in common."""


class WaitingKeys:
    """Batches that wait for their next query; those of one type are joined: many small pages become few writes."""

    def __init__(self) -> None:
        self.keys = 0
        """How many keys wait."""
        self._joined: dict[_Signature, tuple[list[bytes], list[list[int] | None]]] = {}

    def add(self, batch: InspectedBatch) -> None:
        """Let a batch wait."""
        columns = [getattr(batch, name) for name in FACT_COLUMNS]
        signature = (batch.key_type, tuple(one is not None for one in columns), batch.note)
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
