"""The first answers about a key: how it is used, its type, time to live and encoding, and of a known key more.

Idle time or frequency is read before everything else in the same write, since whatever reads the key may change it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.facts import NOT_ASKED, IdleBasis, Reason, Unknown
from rtui.server import guard
from rtui.server.facts.answers import KeyAnswers
from rtui.server.facts.known_key import KnownKey, forget_failure
from rtui.server.facts.types import queries_of
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import MemoryUsagePolicy, TypeEvidence
from rtui.server.wire.capability import Feature, Querier, unknown_from
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.own_reads import COUNTER_NOTE, IDLE_NOTE, UNKNOWN_USE, OwnReads
from rtui.server.wire.replies import ServerError

REPLICA_NOTE: Final = "idle time and frequency are this replica's own: what clients read on the primary is not in them"


@dataclass(frozen=True, slots=True)
class FirstAnswers:
    """What the first write about a key has brought."""

    answers: KeyAnswers
    asked_at_s: float
    round_trip_s: float
    basis: IdleBasis
    idle_s: int | Unknown
    """How long nobody but rtui has used the key."""
    counter: int | Unknown
    notes: tuple[str, ...]


async def first_answers(
    querier: Querier, key: bytes, known: KnownKey | None, *, may_touch: bool, clock: Callable[[], float]
) -> FirstAnswers:
    """Ask what needs no type, and of a known key what does as well.

    Where that counts as an access, the answers are waited for even if the caller is cancelled: only they say when
    somebody else has used the key last.
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
    """Ask, by the type that the key is known to have; a page of `known` and a length count as an access."""
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
        for one in more:
            del answers.replies[one.name]  # by another type than the key has now
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
    """Remember that the key is read at `at_s`, and when somebody else has used it last."""
    used_s = None if isinstance(first.idle_s, Unknown) else first.asked_at_s - first.idle_s
    own_reads.add(key, at_s, used_s=used_s, counter=None if isinstance(first.counter, Unknown) else first.counter)


def _without_own_reads(
    own_reads: OwnReads, key: bytes, idle_s: int | Unknown, counter: int | Unknown, asked_at_s: float
) -> tuple[int | Unknown, tuple[str, ...]]:
    """Return the idle time as if rtui had not read the key, and a note on what its reading has changed, if anything."""
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
    """Ask what never counts as an access, idle time or frequency first, by which of them the policy keeps; then `more`.

    The page of a known key is sent for behind that. Where the policy has been changed since, the other one of idle time
    and frequency is asked in a round trip of its own.
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
    """Return the command that asks for the length, or why it is not asked."""
    command = queries_of(key_type).length
    if key_type is None:
        return Unknown(Reason.NOT_ASKED, "the type is not known")
    if command is None:
        return Unknown(Reason.UNSUPPORTED, "no command returns the length of this type")
    if querier.touches and not may_touch:
        return Unknown(Reason.NOT_ASKED, "asking would count as an access")
    return command(key)


def type_evidence(querier: Querier, key_type: bytes | Unknown) -> TypeEvidence:
    """Return what the guard has to know before it lets MEMORY USAGE through."""
    server = querier.connection.server
    return TypeEvidence(None if isinstance(key_type, Unknown) else key_type, server.product, server.version)
