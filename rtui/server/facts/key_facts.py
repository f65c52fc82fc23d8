"""Facts of keys, asked in as few round trips as possible and in an order in which asking spoils nothing.

What listed keys show takes two round trips for all rows, and so does what the key under the cursor shows: what memory
costs depends on the type. Idle time and frequency, type, TTL, encoding and memory touch nothing in any version; only
the length, asked last, counts as an access where NO-TOUCH is not on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis.facts import (
    GONE,
    NO_TTL,
    Frequency,
    IdleBasis,
    KeyFacts,
    LfuSettings,
    Reason,
    RowFacts,
    Ttl,
    Unknown,
    gone_key,
    gone_row,
)
from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.facts.answers import expected
from rtui.server.facts.types import queries_of
from rtui.server.guard.arguments import MAX_KEY_BYTES
from rtui.server.guard.batch import MAX_BULK_KEY_BYTES, KeyCommand, build_batch, split_keys
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import MemoryUsagePolicy, TypeEvidence
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import (
    Capabilities,
    CommandRunner,
    Feature,
    KeyReader,
    Querier,
    Verdict,
    unknown_for,
    unknown_from,
)
from rtui.server.wire.errors import ServerError
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.own_reads import IDLE_NOTE, UNKNOWN_USE, OwnReads, counter_note
from rtui.server.wire.replies import Reply

_NO_TTL_REPLY: Final = -1

REPLICA_NOTE: Final = "idle time and frequency are this replica's own: what clients read on the primary is not in them"
"""How to read the facts of a replica."""


async def row_facts(
    connection: CommandRunner,
    keys: Sequence[bytes],
    capabilities: Capabilities | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> list[RowFacts]:
    """Ask type and TTL of the rows on screen, then memory where their types make that cheap, in the order of the keys.

    That takes two round trips; `clock` gives seconds since the epoch. Names over 64 KiB are not sent. Where
    `capabilities` knows nothing of a command yet, one key goes ahead alone, so that what is refused is refused once.
    Raises ConnectionLost.
    """
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities)
    replies: dict[bytes, dict[str, Reply]] = {key: {} for key in keys if len(key) <= MAX_BULK_KEY_BYTES}
    await _ask_rows(querier, (guard.key_type, guard.pttl), {None: list(replies)}, replies)
    asked_at_s = clock()
    by_type: dict[TypeEvidence | None, list[bytes]] = {}
    for key, told in replies.items():
        answers = _Answers(querier.capabilities, told)
        evidence = _type_evidence(querier, answers.type)
        if not answers.say_gone and evidence.memory_cost.policy is MemoryUsagePolicy.FREE:
            by_type.setdefault(evidence, []).append(key)
    await _ask_rows(querier, (guard.memory_usage,), by_type, replies)
    return [
        _row(querier, key, replies[key], asked_at_s) if key in replies else _long_row(key, asked_at_s) for key in keys
    ]


async def _ask_rows(
    querier: Querier,
    wanted: Sequence[KeyCommand],
    groups: Mapping[TypeEvidence | None, Sequence[bytes]],
    replies: Mapping[bytes, dict[str, Reply]],
) -> None:
    """Put the answers of all keys into `replies`; the keys come in groups of which the same is known."""
    if any(querier.capabilities.verdict(ask.spec.name) is Verdict.UNTRIED for ask in wanted):
        for evidence, keys in groups.items():
            await _ask_batches(querier, wanted, {evidence: keys[:1]}, replies)
            groups = {**groups, evidence: keys[1:]}
            break
    await _ask_batches(querier, wanted, groups, replies)


async def _ask_batches(
    querier: Querier,
    wanted: Sequence[KeyCommand],
    groups: Mapping[TypeEvidence | None, Sequence[bytes]],
    replies: Mapping[bytes, dict[str, Reply]],
) -> None:
    """Send in one write what may be asked."""
    asks = [ask for ask in wanted if querier.capabilities.may(ask.spec.name)]
    keys = [key for group in groups.values() for key in group]
    if not asks or not keys:
        return
    found = await querier.connection.run(
        *(
            build_batch(asks, portion, evidence)
            for evidence, group in groups.items()
            for portion in split_keys(group, len(asks))
        )
    )
    names = [ask.spec.name for ask in asks]
    querier.learn(names * len(keys), found)
    for key, at in zip(keys, range(0, len(found), len(names)), strict=True):
        replies[key].update(zip(names, found[at : at + len(names)], strict=True))


def _type_evidence(querier: Querier, key_type: bytes | Unknown) -> TypeEvidence:
    """What is known of a key of this type, as the guard wants to know it."""
    server = querier.connection.server
    return TypeEvidence(None if isinstance(key_type, Unknown) else key_type, server.product, server.version)


def _row(querier: Querier, key: bytes, replies: dict[str, Reply], asked_at_s: float) -> RowFacts:
    answers = _Answers(querier.capabilities, replies)
    if answers.say_gone:
        return gone_row(key, asked_at_s)
    memory = _type_evidence(querier, answers.type).memory_cost
    return RowFacts(key, answers.type, answers.ttl_ms, answers.memory_bytes(memory.why), asked_at_s)


def _long_row(key: bytes, asked_at_s: float) -> RowFacts:
    unknown = Unknown(Reason.TOO_LARGE, f"a name of {len(key):,} bytes: longer ones than 64 KiB are not sent for rows")
    return RowFacts(key, unknown, unknown, unknown, asked_at_s)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Replies by command, read as facts; a command without a reply was not sent, because it is known to be refused."""

    capabilities: Capabilities
    replies: dict[str, Reply]

    def fact(self, feature: str) -> bytes | int | Unknown:
        """Give a reply as a fact, checked for what it may be."""
        if feature not in self.replies:
            unknown = unknown_for(self.capabilities, feature)
            return Unknown(Reason.NOT_ASKED) if unknown is None else unknown
        reply = self.replies[feature]
        if isinstance(reply, ServerError):
            return unknown_from(reply)
        question = expected(feature)
        if question.says_gone(reply):
            return GONE
        if question.fits(reply) and isinstance(reply, (bytes, int)):
            return reply
        return Unknown(
            Reason.FAILED, f"the answer to {feature} is no {'name' if question.is_name else 'number'} that it could be"
        )

    def number(self, feature: str) -> int | Unknown:
        """Give a reply that has to be a number."""
        fact = self.fact(feature)
        return Unknown(Reason.FAILED) if isinstance(fact, bytes) else fact

    def name(self, feature: str) -> bytes | Unknown:
        """Give a reply that has to be a name."""
        fact = self.fact(feature)
        return Unknown(Reason.FAILED) if isinstance(fact, int) else fact

    @property
    def type(self) -> bytes | Unknown:
        """The type's name."""
        return self.name(Feature.TYPE)

    @property
    def ttl_ms(self) -> Ttl:
        """What PTTL says."""
        left = self.number(Feature.PTTL)
        return NO_TTL if left == _NO_TTL_REPLY else left

    def memory_bytes(self, why_not: str) -> int | Unknown:
        """What MEMORY USAGE says; `why_not` is why it was not asked, if it was not."""
        found = self.number(Feature.MEMORY_USAGE)
        is_not_asked = isinstance(found, Unknown) and found.reason is Reason.NOT_ASKED
        return Unknown(Reason.NOT_ASKED, why_not) if is_not_asked else found

    @property
    def say_gone(self) -> bool:
        """Whether any reply says that there is no such key: the last word counts, and a key does not come back."""
        return any(expected(feature).says_gone(reply) for feature, reply in self.replies.items())


async def key_facts(
    connection: KeyReader,
    key: bytes,
    capabilities: Capabilities | None = None,
    *,
    may_touch: bool = True,
    lfu: LfuSettings = LfuSettings(),  # noqa: B008 - a frozen value
    watch: CostWatch | None = None,
    clock: Callable[[], float] = time.time,
) -> KeyFacts:
    """Ask all facts of one key in two round trips; `clock` gives seconds since the epoch.

    Without `may_touch` the length is left out where asking it would count as an access. `watch` follows from key to
    key what MEMORY USAGE has cost where nothing bounds that. Raises ConnectionLost.
    """
    if len(key) > MAX_KEY_BYTES:
        return _long_key(key, clock())
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities, connection.own_reads)
    began = time.monotonic()
    answers = await _still(querier, key)
    trip_s = time.monotonic() - began
    asked_at_s = clock()
    if answers.say_gone:
        return gone_key(key, asked_at_s)
    server = querier.connection.server
    basis = IdleBasis.WRITE if "lrm" in (server.maxmemory_policy or "") else IdleBasis.ACCESS
    use = _Use(answers.number(Feature.OBJECT_IDLETIME), answers.number(Feature.OBJECT_FREQ))
    if querier.touches and basis is IdleBasis.ACCESS:
        use = use.without_own_reads(querier.own_reads, key, asked_at_s)
    second = _SecondQuestions(querier, key, answers.type, CostWatch() if watch is None else watch)
    if second.will_touch(may_touch=may_touch):  # before it is sent, since whoever asked may be gone when it is answered
        querier.own_reads.note(key, clock(), used_s=use.used_s(asked_at_s), counter=use.known_counter)
    length = await second.ask(answers.replies, may_touch=may_touch, trip_s=trip_s)
    is_emptied = length == 0 and type_of(second.type_name).removed_when_empty
    if answers.say_gone or is_emptied:
        return gone_key(key, asked_at_s)
    return KeyFacts(
        key=key,
        asked_at_s=asked_at_s,
        type=answers.type,
        encoding=answers.name(Feature.OBJECT_ENCODING),
        length=length,
        memory_bytes=answers.memory_bytes(second.why_no_memory),
        ttl_ms=answers.ttl_ms,
        idle_s=use.idle_s,
        frequency=_frequency(use.counter, lfu),
        idle_basis=basis,
        touched=querier.touches and isinstance(length, int),
        notes=((REPLICA_NOTE,) if server.role == "replica" else ()) + use.notes,
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """What the server says of the use of a key: idle time or access counter."""

    idle_s: int | Unknown
    counter: int | Unknown
    notes: tuple[str, ...] = ()

    @property
    def known_counter(self) -> int | None:
        """The access counter, if there is one."""
        return None if isinstance(self.counter, Unknown) else self.counter

    def used_s(self, asked_at_s: float) -> float | None:
        """The moment of the last use, None where it is not known."""
        return None if isinstance(self.idle_s, Unknown) else asked_at_s - self.idle_s

    def without_own_reads(self, own_reads: OwnReads, key: bytes, asked_at_s: float) -> _Use:
        """Give it as it would be had rtui not read the key, or say what its reading has changed."""
        read = own_reads.of(key)
        if read is None:
            return self
        if isinstance(self.idle_s, Unknown):
            return self if isinstance(self.counter, Unknown) else replace(self, notes=(counter_note(read),))
        found = own_reads.idle(key, self.idle_s, asked_at_s)
        if not found.is_own_read:
            return self
        if found.seconds is None:
            return replace(self, idle_s=Unknown(Reason.NOT_ASKED, UNKNOWN_USE))
        return replace(self, idle_s=found.seconds, notes=(IDLE_NOTE,))


async def _still(querier: Querier, key: bytes) -> _Answers:
    """Ask what touches nothing whatever the type, first of all what looking could change."""
    keeps_frequency = querier.connection.server.is_lfu
    recency, other = guard.object_idletime, guard.object_freq
    if keeps_frequency:
        recency, other = other, recency
    asks = (recency, guard.key_type, guard.pttl, guard.object_encoding)
    names = [ask.spec.name for ask in asks]
    replies = dict(zip(names, await querier.run(*(ask(key) for ask in asks)), strict=True))
    if _is_policy_error(replies[recency.spec.name]):
        (replies[other.spec.name],) = await querier.connection.run(other(key))
    else:
        replies[other.spec.name] = ServerError(_not_kept(querier.connection.server, other))
    return _Answers(querier.capabilities, replies)


@dataclass(slots=True)
class _SecondQuestions:
    """What depends on the type: memory, as far as that is cheap, then the length, the only one that touches."""

    querier: Querier
    key: bytes
    key_type: bytes | Unknown
    watch: CostWatch
    why_no_memory: str = ""

    @property
    def type_name(self) -> bytes | None:
        """The type, None where it is not known."""
        return None if isinstance(self.key_type, Unknown) else self.key_type

    def will_touch(self, *, may_touch: bool) -> bool:
        """Whether the length will be asked where that counts as an access."""
        return self.querier.touches and bool(self._length(may_touch=may_touch)[0])

    async def ask(self, replies: dict[str, Reply], *, may_touch: bool, trip_s: float) -> int | Unknown:
        """Put memory into the replies and return the length, in one write; `trip_s` is what one without cost took."""
        memory = self._memory()
        lengths, why_no_length = self._length(may_touch=may_touch)
        asks_clock = self._is_watched(memory) and self.watch.was_slow and self.watch.asks_clock
        clock = (guard.info("commandstats"),) if asks_clock else ()
        commands = (*clock, *memory, *clock, *lengths)
        if not commands:
            return why_no_length
        began = time.monotonic()
        found = await self.querier.run(*commands)
        spent_s = time.monotonic() - began - trip_s
        if memory:
            replies[Feature.MEMORY_USAGE] = found[len(clock)]
            told_s = self.watch.server_s(found[0], found[2], 1) if clock else None
            if told_s is not None:
                self.watch.observe(1, told_s)
            elif self._is_watched(memory):
                self.watch.observe_round_trip(spent_s)
        if not lengths:
            return why_no_length
        name = lengths[0].name
        return _Answers(self.querier.capabilities, {name: found[-1]}).number(name)

    def _memory(self) -> tuple[Command, ...]:
        evidence = _type_evidence(self.querier, self.key_type)
        cost = evidence.memory_cost
        self.why_no_memory = cost.why
        if cost.policy is MemoryUsagePolicy.NEVER:
            return ()
        if cost.policy is MemoryUsagePolicy.WATCHED and self.watch.is_over:
            self.why_no_memory += ", which took the server too long for others"
            return ()
        return (guard.memory_usage(self.key, evidence),)

    def _is_watched(self, memory: tuple[Command, ...]) -> bool:
        """Whether memory is asked, with an eye on the clock."""
        is_allowed = self.querier.capabilities.may(Feature.MEMORY_USAGE)
        cost = _type_evidence(self.querier, self.key_type).memory_cost
        return bool(memory) and is_allowed and cost.policy is MemoryUsagePolicy.WATCHED

    def _length(self, *, may_touch: bool) -> tuple[tuple[Command, ...], Unknown]:
        if isinstance(self.key_type, Unknown):
            return (), Unknown(Reason.NOT_ASKED, "the type is not known")
        ask = queries_of(self.key_type).length
        if ask is None:
            return (), Unknown(Reason.UNSUPPORTED, "no command tells the length of this type")
        if self.querier.touches and not may_touch:
            return (), Unknown(Reason.NOT_ASKED, "asking would count as an access")
        return (ask(self.key),), Unknown(Reason.NOT_ASKED)


def _is_policy_error(reply: Reply) -> bool:
    """Whether the server keeps the other of idle time and frequency, since somebody has changed the policy."""
    return isinstance(reply, ServerError) and unknown_from(reply).reason is Reason.UNSUPPORTED


def _not_kept(server: ServerIdentity, ask: KeyCommand) -> str:
    """Say in the words of an error reply that the policy does not keep this."""
    kept = "access frequencies" if ask is guard.object_freq else "idle times"
    policy = f"maxmemory policy {server.maxmemory_policy}" if server.maxmemory_policy else "this maxmemory policy"
    return f"{policy} keeps no {kept}"


def _frequency(counter: int | Unknown, lfu: LfuSettings) -> Frequency | Unknown:
    return counter if isinstance(counter, Unknown) else Frequency(counter, lfu)


def _long_key(key: bytes, asked_at_s: float) -> KeyFacts:
    unknown = Unknown(Reason.TOO_LARGE, f"a name of {len(key):,} bytes: longer ones than 1 MiB are not sent")
    return KeyFacts(key, asked_at_s, unknown, unknown, unknown, unknown, unknown, unknown, unknown)
