"""The questions of one write, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, overload

from rtui.analysis.aggregate.buffers import Inspected
from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.facts.answers import Expected, expected
from rtui.server.guard import Command, Evidence, PerKey
from rtui.server.inspection.columns import Columns, sort_replies
from rtui.server.wire.errors import ServerBusyError
from rtui.server.wire.replies import Reply

if TYPE_CHECKING:
    from rtui.server.inspection.pipeline import Conveyor

_V = TypeVar("_V")


class Leg(Protocol):
    """Questions of one sort about some keys."""

    @property
    def commands(self) -> tuple[Command, ...]:
        """What to send."""

    @property
    def weight(self) -> float:
        """What it costs, in keys wholly inspected."""

    def answered(self, replies: Sequence[Reply], seconds: float | None) -> None:
        """Take up the replies and the server's time for the write, or raise ServerBusyError and take up nothing."""

    def missed(self) -> None:
        """Nothing has come back."""


class Journey:
    """The questions of one write."""

    def __init__(self, legs: Sequence[Leg], *, goes_alone: bool = False) -> None:
        self.goes_alone = goes_alone
        self._legs = legs
        self.commands = [command for leg in legs for command in leg.commands]
        self.keys = max(1, round(sum(leg.weight for leg in legs)))

    def answered(self, replies: Sequence[Reply], round_trip_s: float | None) -> None:
        """Give each its replies; raises ServerBusyError when the server can't answer just now.

        What was answered before the server became busy is kept, the rest is asked again.
        """
        at = 0
        for index, leg in enumerate(self._legs):
            end = at + sum(command.replies for command in leg.commands)
            try:
                leg.answered(replies[at:end], round_trip_s)
            except ServerBusyError:
                for rest in self._legs[index:]:
                    rest.missed()
                raise
            at = end

    def missed(self) -> None:
        """Have everything asked again."""
        for leg in self._legs:
            leg.missed()


def _expected(asks: Sequence[PerKey]) -> list[Expected]:
    """What each question may be answered."""
    return [expected(ask.spec.name) for ask in asks]


def _batches(asks: Sequence[PerKey], keys: Sequence[bytes], evidence: Evidence | None = None) -> tuple[Command, ...]:
    return tuple(guard.each(asks, portion, evidence) for portion in guard.portions(keys, len(asks)))


class Look:
    """Type, time to live, and idle time or frequency."""

    def __init__(self, conveyor: Conveyor, keys: Sequence[bytes], asks: tuple[PerKey, ...]) -> None:
        self._conveyor = conveyor
        self._keys = keys
        self._asks = asks
        self.commands = _batches(asks, keys)
        self.weight = len(keys) / 2

    def answered(self, replies: Sequence[Reply], seconds: float | None) -> None:
        """Sort the keys by type and send each on its way."""
        conveyor = self._conveyor
        found = sort_replies(self._keys, replies, _expected(self._asks))
        conveyor.learn(self._asks, found)
        if found.gone:
            conveyor.findings.vanish(found.gone)
        for part in found.parts:
            for batch in self._by_type(part):
                conveyor.look_done(batch)

    def missed(self) -> None:
        """Put the keys back."""
        self._conveyor.look_again(self._keys)

    def _by_type(self, part: Columns) -> list[Inspected]:
        """A batch for each type of a part."""
        said = dict(zip(self._asks, part.answers, strict=True))
        types = cast("Sequence[bytes] | None", said.get(guard.key_type))
        columns = [said.get(ask) for ask in (guard.pttl, guard.object_idletime, guard.object_freq)]
        if types is None or len(set(types)) == 1:
            return [_looked(None if types is None else types[0], part.keys, columns)]
        rows: dict[bytes, list[int]] = {kind: [] for kind in set(types)}
        for index, kind in enumerate(types):
            rows[kind].append(index)
        return [
            _looked(kind, _picked(part.keys, places), [_picked(column, places) for column in columns])
            for kind, places in rows.items()
        ]


def _looked(kind: bytes | None, keys: Sequence[bytes], columns: Sequence[Sequence[Reply] | None]) -> Inspected:
    ttl_ms, idle_s, frequency = cast("Sequence[Sequence[int] | None]", columns)
    return Inspected(kind, keys, ttl_ms=ttl_ms, idle_s=idle_s, frequency=frequency)


class Measure:
    """Memory and length, as far as they are asked freely."""

    def __init__(self, conveyor: Conveyor, batch: Inspected, asks: tuple[PerKey, ...]) -> None:
        self._conveyor = conveyor
        self._batch = batch
        self._asks = asks
        self.commands = _batches(asks, batch.keys, conveyor.plan.evidence(batch.kind))
        self.weight = len(batch.keys) / 2

    def answered(self, replies: Sequence[Reply], seconds: float | None) -> None:
        """Put the columns beside what is known already."""
        conveyor, batch = self._conveyor, self._batch
        found = sort_replies(batch.keys, replies, _expected(self._asks))
        conveyor.learn(self._asks, found)
        if found.gone:
            conveyor.findings.vanish(found.gone)
        for part in found.parts:
            self._measured(_only(batch, part.keys), part)

    def missed(self) -> None:
        """Let the keys wait again."""
        self._conveyor.measure_again(self._batch)

    def _measured(self, batch: Inspected, part: Columns) -> None:
        said = cast("dict[PerKey, Sequence[int] | None]", dict(zip(self._asks, part.answers, strict=True)))
        memory = said.pop(guard.memory_usage, None)
        lengths = next(iter(said.values()), None)
        batch = replace(batch, memory_bytes=memory, lengths=lengths)
        if type_of(batch.kind).removed_when_empty and lengths is not None and 0 in lengths:
            there = [index for index, length in enumerate(lengths) if length]
            self._conveyor.findings.vanish(len(lengths) - len(there))
            batch = _at(batch, there)
        if batch.keys:
            self._conveyor.measured(batch)


class Watched:
    """MEMORY USAGE where nothing bounds its cost, between two looks at the server's own clock."""

    weight = 1.0

    def __init__(self, conveyor: Conveyor, batch: Inspected) -> None:
        self._conveyor = conveyor
        self._batch = batch
        clock = (guard.info("commandstats"),) if conveyor.watch.asks_clock else ()
        evidence = replace(conveyor.plan.evidence(batch.kind), proved=conveyor.watch.proved)
        self.commands = (*clock, *_batches((guard.memory_usage,), batch.keys, evidence), *clock)

    def answered(self, replies: Sequence[Reply], seconds: float | None) -> None:
        """Hand the keys on."""
        conveyor, batch = self._conveyor, self._batch
        before, replies, after = self._parted(replies)
        asks = (guard.memory_usage,)
        found = sort_replies(batch.keys, replies, _expected(asks))
        spent_s = conveyor.watch.clocked(before, after, len(replies))
        conveyor.learn(asks, found)
        if found.gone:
            conveyor.findings.vanish(found.gone)
        for part in found.parts:
            memory = cast("Sequence[int] | None", part.answers[0])
            batch_of_part = replace(_only(batch, part.keys), memory_bytes=memory)
            conveyor.watch_done(batch_of_part, seconds if spent_s is None else spent_s)
        if not found.parts:
            conveyor.watch_done(replace(batch, keys=()), None)

    def _parted(self, replies: Sequence[Reply]) -> tuple[Reply, Sequence[Reply], Reply]:
        """What the clock said before, the answers about the keys, and what it said after."""
        has_clock = len(replies) > len(self._batch.keys)
        return (replies[0], replies[1:-1], replies[-1]) if has_clock else (None, replies, None)

    def missed(self) -> None:
        """Ask again."""
        self._conveyor.watch_again(self._batch)


class Encodings:
    """The encodings of some keys of a type."""

    def __init__(self, conveyor: Conveyor, kind: bytes, keys: Sequence[bytes]) -> None:
        self._conveyor = conveyor
        self._kind = kind
        self._keys = keys
        self.commands = _batches((guard.object_encoding,), keys)
        self.weight = len(keys) / 5

    def answered(self, replies: Sequence[Reply], seconds: float | None) -> None:
        """Hand on those that were told."""
        asks = (guard.object_encoding,)
        found = sort_replies(self._keys, replies, _expected(asks))
        self._conveyor.learn(asks, found)
        told = [cast("Sequence[bytes]", part.answers[0]) for part in found.parts if part.answers[0] is not None]
        self._conveyor.findings.add_encodings(self._kind, [encoding for column in told for encoding in column])

    def missed(self) -> None:
        """Others will do: the keys were chosen without regard to what they are."""


@overload
def _picked(column: Sequence[_V], places: Sequence[int]) -> Sequence[_V]: ...
@overload
def _picked(column: Sequence[_V] | None, places: Sequence[int]) -> Sequence[_V] | None: ...
def _picked(column: Sequence[_V] | None, places: Sequence[int]) -> Sequence[_V] | None:
    """What stands at these places of a column, if there is one."""
    return None if column is None else [*map(column.__getitem__, places)]


def _at(batch: Inspected, places: Sequence[int]) -> Inspected:
    """The keys of a batch at these places, with all their columns."""
    return replace(
        batch,
        keys=_picked(batch.keys, places),
        ttl_ms=_picked(batch.ttl_ms, places),
        memory_bytes=_picked(batch.memory_bytes, places),
        idle_s=_picked(batch.idle_s, places),
        frequency=_picked(batch.frequency, places),
        lengths=_picked(batch.lengths, places),
    )


def _only(batch: Inspected, keys: Sequence[bytes]) -> Inspected:
    """The part of a batch that is about these keys, which are in its order."""
    if len(keys) == len(batch.keys):
        return batch
    wanted = set(keys)
    return _at(batch, [index for index, key in enumerate(batch.keys) if key in wanted])
