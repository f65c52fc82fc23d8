"""Rows on their way to a table: keys of which the same was asked, and for each fact a list of its answers.

A write is of some tens of keys, a table of some thousands, so rows are joined and divided often: everything here works
on whole lists. Facts have the names of the fields of `InspectedBatch`; `key_type` is one of them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.server.guard.command import PackedKeys
from rtui.server.inspection.queries import FACT_COLUMNS, MOMENT_S
from rtui.server.wire.replies import Reply

KEY_TYPE: Final = "key_type"

MOMENT_MS: Final = round(1000 * MOMENT_S)

Layout: TypeAlias = tuple[bool, tuple[str, ...]]
"""What rows that can be joined have in common: whether they are sampled, and which facts there are."""


class Rows:
    """Keys, and by the name of each fact that was asked a list of the answers, which may be errors."""

    __slots__ = ("asked_at_ms", "facts", "is_sampled", "keys", "packed")

    def __init__(
        self,
        keys: list[bytes],
        packed: PackedKeys | None,
        asked_at_ms: list[int],
        facts: dict[str, list[Any]],
        *,
        is_sampled: bool,
    ) -> None:
        """`asked_at_ms` is when each key was asked first, in ms since the epoch by the clock of rtui."""
        self.keys = keys
        self.packed = packed
        """The same keys for further questions; None where there are none."""
        self.is_sampled = is_sampled
        self.asked_at_ms = asked_at_ms
        self.facts = facts

    @property
    def layout(self) -> Layout:
        """What only rows that can be joined have in common."""
        return self.is_sampled, tuple(self.facts)

    @property
    def types(self) -> list[bytes | None]:
        """The type of each key; None where types are not asked."""
        return self.facts.get(KEY_TYPE) or [None] * len(self.keys)

    def extend(self, others: Rows) -> None:
        """Append rows of the same layout."""
        self.keys += others.keys
        self.asked_at_ms += others.asked_at_ms
        for name, column in self.facts.items():
            column.extend(others.facts[name])
        if self.packed is not None and others.packed is not None:
            self.packed.extend(others.packed)

    def take(self, most: int) -> Rows:
        """Take out the first rows, at most so many."""
        columns: list[list[Any]] = [self.keys, self.asked_at_ms, *self.facts.values()]
        keys, asked_at_ms, *facts = [column[:most] for column in columns]
        for column in columns:
            del column[:most]
        packed = None if self.packed is None else self.packed.take(most)
        return Rows(keys, packed, asked_at_ms, dict(zip(self.facts, facts, strict=True)), is_sampled=self.is_sampled)

    def at(self, indexes: Sequence[int]) -> Rows:
        """Return the rows at these indexes."""
        return Rows(
            [*map(self.keys.__getitem__, indexes)],
            None if self.packed is None else self.packed.at(indexes),
            [*map(self.asked_at_ms.__getitem__, indexes)],
            {name: [*map(column.__getitem__, indexes)] for name, column in self.facts.items()},
            is_sampled=self.is_sampled,
        )

    def divided(self, indexes: Sequence[int]) -> tuple[Rows, Rows]:
        """Return the rows at these indexes, and the others."""
        chosen = set(indexes)
        return self.at(indexes), self.at([index for index in range(len(self.keys)) if index not in chosen])

    def alike(self) -> Iterator[Rows]:
        """Yield them divided by type and by the moment in which they were asked, as batches are."""
        groups: dict[tuple[bytes | None, int], list[int]] = {}
        moments = [-(-at // MOMENT_MS) * MOMENT_MS for at in self.asked_at_ms]
        for index, group in enumerate(zip(self.types, moments, strict=True)):
            groups.setdefault(group, []).append(index)
        for (_, moment), indexes in groups.items():
            part = self.at(indexes)
            left = part.facts.get("ttl_ms", [])
            for index, ttl_ms in enumerate(left):
                if type(ttl_ms) is int and ttl_ms > 0:
                    left[index] = max(0, ttl_ms + part.asked_at_ms[index] - moment)
            part.asked_at_ms = [moment] * len(indexes)
            yield part

    def replies(self) -> list[Reply]:
        """Return all answers key by key, as they came."""
        return [*chain.from_iterable(zip(*self.facts.values(), strict=True))]

    def batch(self) -> InspectedBatch:
        """Return rows that are `alike` as a batch; all answers must be facts."""
        facts: dict[str, Any] = {name: column for name, column in self.facts.items() if name != KEY_TYPE}
        asked_at_s = self.asked_at_ms[0] / 1000
        return InspectedBatch(self.types[0], self.keys, is_sampled=self.is_sampled, asked_at_s=asked_at_s, **facts)


def rows_of(batch: InspectedBatch, asked_at_s: float, packed: PackedKeys | None = None) -> Rows:
    """Return the rows of a batch that was asked at this moment, in seconds since the epoch."""
    size = len(batch.keys)
    facts: dict[str, list[Any]] = {} if batch.key_type is None else {KEY_TYPE: [batch.key_type] * size}
    facts |= {name: [*column] for name in FACT_COLUMNS if (column := getattr(batch, name)) is not None}
    return Rows([*batch.keys], packed, [round(asked_at_s * 1000)] * size, facts, is_sampled=batch.is_sampled)


def every_nth(types: list[bytes | None], every: int, skips: dict[bytes, int]) -> list[int]:
    """Return the indexes of one in so many keys of each type, and count on in `skips`.

    That has by type how many keys are passed over before the next one.
    """
    if every == 1:
        return [index for index, one in enumerate(types) if one is not None]
    chosen: list[int] = []
    for key_type in set(types):
        if key_type is None:
            continue
        skip = skips.get(key_type, 0)
        count = types.count(key_type)
        skips[key_type] = (skip - count) % every
        if skip < count:
            chosen += [index for index, one in enumerate(types) if one == key_type][skip::every]
    return chosen


def joined(parts: Iterable[Rows]) -> dict[Layout, Rows]:
    """Join rows by what they have in common."""
    found: dict[Layout, Rows] = {}
    for part in parts:
        before = found.setdefault(part.layout, part)
        if before is not part:
            before.extend(part)
    return found
