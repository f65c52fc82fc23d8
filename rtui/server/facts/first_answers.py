"""The first replies about a key: idle time or frequency, type, TTL and encoding, and of a known key more.

Idle time or frequency is read before everything else in the same write, since any read of the key may change it.

Without a row the type takes one round trip, facts that depend on it a second one, and the value a third, of 0.2 s each
over a slow link. A row of the tree mostly knows type and memory. So memory and length are asked together with the type,
and the first page of the value right behind them, if it is small. Its replies are used only if the facts, once they
have arrived, lead to the very same commands; if the key was replaced meanwhile, the right ones are sent then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rtui.analysis.facts import NOT_ASKED, IdleBasis, Reason, RowFacts, Unknown
from rtui.keyspace import types
from rtui.server import guard
from rtui.server.facts.answers import KeyAnswers, queries_of
from rtui.server.facts.preview.value_reader import PAGE_ITEMS, STRING_WINDOW_BYTES
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import COMPACT_BYTES, CollectionEvidence, MemoryUsagePolicy, TypeEvidence, counts_sizes
from rtui.server.wire.capability import Feature, Querier, unknown_from
from rtui.server.wire.command_log import Purpose, sent_for
from rtui.server.wire.errors import ConnectionLost, Reply, ServerError
from rtui.server.wire.own_reads import COUNTER_NOTE, IDLE_NOTE, UNKNOWN_USE, OwnReads

TYPE_HOLDS_S: Final = 600.0
"""The age in seconds from which a type is read again before anything else: the name may be another key's by now."""

SIZE_HOLDS_S: Final = 60.0
"""The age from which a size is not relied on."""

MAX_AHEAD_BYTES: Final = 16 * 1024
"""The largest collection whose page is read before the cursor has rested for a round trip."""


def _evidence(row: RowFacts) -> CollectionEvidence:
    encoding = row.encoding if isinstance(row.encoding, bytes) else None
    return CollectionEvidence(encoding, None, row.memory_bytes if isinstance(row.memory_bytes, int) else None)


_MEASURED: Final = frozenset((b"listpack", b"ziplist", b"intset", b"listpackex"))
"""Encodings in one block of memory, whose size is exact, not estimated from a few elements."""

FIRST_PAGES: Final[Mapping[bytes, Callable[[RowFacts], Command | None]]] = {
    types.STRING.name: lambda row: guard.getrange(row.key, 0, STRING_WINDOW_BYTES - 1),
    types.LIST.name: lambda row: guard.lrange(row.key, 0, PAGE_ITEMS - 1),
    types.ZSET.name: lambda row: guard.zrange(row.key, 0, PAGE_ITEMS - 1),
    types.SET.name: lambda row: guard.sscan(row.key, 0, count=PAGE_ITEMS, evidence=_evidence(row)),
    types.HASH.name: lambda row: (
        guard.hscan(row.key, 0, count=PAGE_ITEMS, evidence=_evidence(row)) if row.encoding in _MEASURED else None
    ),
}
"""The first command of the readers in `preview` for a page of a small value, by type."""

assert MAX_AHEAD_BYTES <= COMPACT_BYTES  # noqa: S101 - else the guard would refuse what is asked


class KnownKey:
    """The row of one key, and the first page of its value once `ask_page` has requested it."""

    def __init__(self, row: RowFacts, now_s: float) -> None:
        """`now_s` is in seconds since the epoch."""
        self._row = row
        self._age_s = now_s - row.asked_at_s
        self._commands: tuple[Command, ...] = ()
        self._replies: asyncio.Task[list[Reply]] | None = None

    @property
    def type(self) -> bytes | None:
        """The last known type of the key; None if it is too old."""
        return self._row.type if isinstance(self._row.type, bytes) and self._age_s <= TYPE_HOLDS_S else None

    def ask_page(self, querier: Querier) -> None:
        """Request the first page without waiting for it; sends nothing if the value may be large."""
        row, key_type = self._row, self.type
        server = querier.connection.server
        is_exact = row.encoding in _MEASURED or counts_sizes(server.product, server.version)
        is_small = is_exact and isinstance(row.memory_bytes, int) and row.memory_bytes <= MAX_AHEAD_BYTES
        is_bounded = key_type == types.STRING.name or (is_small and self._age_s <= SIZE_HOLDS_S)
        first_page = FIRST_PAGES.get(key_type or b"")
        page = None if first_page is None or not is_bounded else first_page(row)
        if page is None or not querier.capabilities.allows(page.name):
            return
        with sent_for(Purpose.PREVIEW):
            self._commands = page, guard.key_type(row.key)
            self._replies = asyncio.ensure_future(querier.send(*self._commands))
            self._replies.add_done_callback(forget_failure)

    async def replies(self, commands: Sequence[Command]) -> list[Reply] | None:
        """Return the replies if exactly these commands were sent ahead, once; else None. Raises ConnectionLost."""
        sent, replies = self._commands, self._replies
        self._replies = None
        if replies is None or [command.packed for command in commands] != [command.packed for command in sent]:
            return None
        return await replies


def forget_failure(task: asyncio.Task[Any]) -> None:
    """Mark a task's failure as retrieved, since nobody may wait for it."""
    if not task.cancelled():
        task.exception()


REPLICA_NOTE: Final = "idle time and frequency are those of this replica, without reads on the primary"


@dataclass(frozen=True, slots=True)
class FirstAnswers:
    """The result of the first write about a key."""

    answers: KeyAnswers
    asked_at_s: float
    round_trip_s: float
    basis: IdleBasis
    idle_s: int | Unknown
    """The idle time without rtui's own reads."""
    counter: int | Unknown
    notes: tuple[str, ...]


async def first_answers(
    querier: Querier, key: bytes, known: KnownKey | None, *, may_touch: bool, clock: Callable[[], float]
) -> FirstAnswers:
    """Ask for facts that need no type, and, for a known key, for facts that do.

    If that counts as an access, the replies are awaited even if the caller is cancelled: only they tell the last use by
    somebody else.
    """
    key_type = None if known is None else known.type
    length = length_query_of(querier, key, key_type, may_touch=may_touch)
    asked = _ask_first(querier, key, known if isinstance(length, Command) else None, key_type, length, clock=clock)
    if key_type is None or not querier.touches:
        return await asked
    task = asyncio.ensure_future(asked)
    task.add_done_callback(forget_failure)
    return await asyncio.shield(task)


async def _ask_first(
    querier: Querier,
    key: bytes,
    known: KnownKey | None,
    key_type: bytes | None,
    length: Command | Unknown,
    *,
    clock: Callable[[], float],
) -> FirstAnswers:
    """Ask by the known type of the key; a page of `known` and a length count as an access."""
    evidence = type_evidence(querier, NOT_ASKED if key_type is None else key_type)
    is_free = evidence.memory_cost.policy is MemoryUsagePolicy.FREE
    more = [guard.memory_usage_of(key, evidence)] if is_free else []
    more += [length] if isinstance(length, Command) else []
    server = querier.connection.server
    reads = querier.touches and isinstance(length, Command)
    sent_at_s, began = clock(), time.monotonic()
    try:
        answers = await _query_first(querier, key, more, known)
    except ConnectionLost:
        if reads:
            querier.own_reads.add(key, sent_at_s)
        raise
    round_trip_s, asked_at_s = time.monotonic() - began, clock()
    if answers.type != key_type:
        for command in more:
            del answers.replies[command.name]  # by another type than the key has now
    basis = IdleBasis.WRITE if "lrm" in (server.maxmemory_policy or "") else IdleBasis.ACCESS
    idle_s, counter = answers.number(Feature.OBJECT_IDLETIME), answers.number(Feature.OBJECT_FREQ)
    notes: tuple[str, ...] = (REPLICA_NOTE,) if server.role == "replica" else ()
    if querier.touches and basis is IdleBasis.ACCESS:
        idle_s, note = _without_own_reads(querier.own_reads, key, idle_s, counter, asked_at_s)
        notes += note
    first = FirstAnswers(answers, asked_at_s, round_trip_s, basis, idle_s, counter, notes)
    if reads and not answers.is_gone:
        note_read(querier.own_reads, key, sent_at_s, first)
    return first


def note_read(own_reads: OwnReads, key: bytes, at_s: float, first: FirstAnswers) -> None:
    """Remember that the key is read at `at_s`, and its last use by somebody else."""
    used_s = None if isinstance(first.idle_s, Unknown) else first.asked_at_s - first.idle_s
    own_reads.add(key, at_s, used_s=used_s, counter=None if isinstance(first.counter, Unknown) else first.counter)


def _without_own_reads(
    own_reads: OwnReads, key: bytes, idle_s: int | Unknown, counter: int | Unknown, asked_at_s: float
) -> tuple[int | Unknown, tuple[str, ...]]:
    """Return the idle time without rtui's own reads, and a note on their effects, if any."""
    read = own_reads.get(key)
    if read is None:
        return idle_s, ()
    if isinstance(idle_s, Unknown):
        if isinstance(counter, Unknown):
            return idle_s, ()
        before = "" if read.counter is None else f"; it was {read.counter} before the first time"
        return idle_s, (f"{COUNTER_NOTE}{before}",)
    found = own_reads.idle(key, idle_s, asked_at_s)
    if found.seconds is None:
        return Unknown(Reason.NOT_ASKED, UNKNOWN_USE), ()
    return found.seconds, (IDLE_NOTE,) if found.is_own_read else ()


async def _query_first(querier: Querier, key: bytes, more: Sequence[Command], known: KnownKey | None) -> KeyAnswers:
    """Ask for facts that never count as an access, idle time or frequency first, as the policy keeps them; then for
    `more`.

    The page of a known key is requested behind that. If the policy was changed since, the other of idle time and
    frequency is read in a round trip of its own.
    """
    server = querier.connection.server
    recency, other = guard.object_idletime, guard.object_freq
    if server.is_lfu:
        recency, other = other, recency
    commands = (recency, guard.key_type, guard.pttl, guard.object_encoding)
    names = [command.spec.name for command in commands]
    names += [command.name for command in more]
    answered = querier.send(*(command(key) for command in commands), *more)
    if known is not None:
        known.ask_page(querier)
    replies = dict(zip(names, await answered, strict=True))
    refusal = replies[recency.spec.name]
    if isinstance(refusal, ServerError) and unknown_from(refusal).reason is Reason.UNSUPPORTED:
        (replies[other.spec.name],) = await querier.connection.run(other(key))
    else:
        policy = f"maxmemory policy {server.maxmemory_policy}" if server.maxmemory_policy else "this maxmemory policy"
        missing = "access frequencies" if other is guard.object_freq else "idle times"
        replies[other.spec.name] = ServerError(f"{policy} keeps no {missing}")
    return KeyAnswers(querier.capabilities, replies)


def length_query_of(querier: Querier, key: bytes, key_type: bytes | None, *, may_touch: bool) -> Command | Unknown:
    """Return the command for the length, or Unknown with the reason why it is not sent."""
    command = queries_of(key_type).length
    if key_type is None:
        return Unknown(Reason.NOT_ASKED, "the type is not known")
    if command is None:
        return Unknown(Reason.UNSUPPORTED, "no command returns the length of this type")
    if querier.touches and not may_touch:
        return Unknown(Reason.NOT_ASKED, "reading it would count as an access")
    return command(key)


def type_evidence(querier: Querier, key_type: bytes | Unknown) -> TypeEvidence:
    """Return the evidence that the guard requires for MEMORY USAGE."""
    server = querier.connection.server
    return TypeEvidence(None if isinstance(key_type, Unknown) else key_type, server.product, server.version)
