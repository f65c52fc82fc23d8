"""Keys that may match a query, the queries about them, the stage each key waits for, and the commands allowed.

A key waits in one place at a time. If nothing bounds the cost of MEMORY USAGE, it goes alone in its write, and one at a
time, so that its time shows its cost.

If reading a length counts as a use (no CLIENT NO-TOUCH), only a few keys are asked for it: those whose memory allows
the wanted length, MOST_TOUCHED at most, each after its idle time, which is remembered (`wire/own_reads.py`). So there
the plan has the stages MEMORY and IDLE before it, though no term needs them (`before_length`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final

from msgspec import Struct

from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.types import type_of
from rtui.server import guard
from rtui.server.facts.answers import expected, queries_of
from rtui.server.guard.command import Command, KeyCommand, build_batch
from rtui.server.guard.evidence import MemoryUsagePolicy
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.page import is_elsewhere
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import is_key_refusal, means_gone, refuses_fact
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.own_reads import OwnReads

MOST_TOUCHED: Final = 100
"""Most lengths that are read if that counts as a use of the key: as many as an analysis reads of the largest keys."""

COUNTS_AS_USE: Final = f"asking a length counts as a use of the key here, so no more than {MOST_TOUCHED} are asked"
TOO_COSTLY: Final = "MEMORY USAGE was too slow for others of this type"

_SIMPLE: Final[dict[Fact, KeyCommand]] = {
    Fact.TYPE: guard.key_type,
    Fact.TTL: guard.pttl,
    Fact.IDLE: guard.object_idletime,
    Fact.FREQUENCY: guard.object_freq,
    Fact.ENCODING: guard.object_encoding,
    Fact.MEMORY: guard.memory_usage,
}
"""The command for each fact but the length, whose command depends on the type."""


def command_of(fact: Fact, key_type: bytes | None) -> KeyCommand | None:
    """Return the command that reads a fact of keys of a type; None if there is none."""
    return queries_of(key_type).length if fact is Fact.LENGTH else _SIMPLE[fact]


class KeyCandidate(Struct, gc=False):
    """A key that may match, with its known facts; None for an unknown one.

    Thousands wait at a time, so the garbage collector does not track them: they take part in no reference cycle.
    """

    key: bytes
    key_type: bytes | None = None
    ttl_ms: int | None = None
    idle_s: int | None = None
    frequency: int | None = None
    encoding: bytes | None = None
    memory_bytes: int | None = None
    length: int | None = None
    asked_at_s: float = 0.0
    """When its TTL was read, or else the first fact; seconds since the epoch."""
    unknown: Fact | None = None
    """The first fact that a term needs and that is not known."""
    why_untyped: str = ""
    """Why its type could not be read; also the reason for facts that depend on the type."""

    def record(self) -> KeyRecord:
        """Return its known facts as a record."""
        facts = {field: value for field in _FACT_FIELDS if (value := getattr(self, field)) is not None}
        return KeyRecord(key=self.key, asked_at_s=self.asked_at_s, **facts)


_FACT_FIELDS: Final = tuple(fact.field for fact in Fact if fact not in (Fact.NAME, Fact.VALUE))


@dataclass(slots=True)
class Question:
    """One command for each of some keys, as a part of a write."""

    stage: int
    key_type: bytes | None
    """Their type, if the command depends on it."""
    command: KeyCommand
    candidates: list[KeyCandidate]
    commands: Sequence[Command]
    is_timed: bool = False
    has_clock: bool = False

    def divided(self, replies: Sequence[Reply]) -> tuple[list[bytes], list[KeyCandidate], Sequence[Reply]]:
        """Return the keys that are gone, or that another node has; of the others the candidates and their replies."""
        pairs = [*zip(self.candidates, replies, strict=True)]
        is_absent = [self._is_absent(one, reply) for one, reply in pairs]
        if not any(is_absent):
            return [], self.candidates, replies
        kept = [pair for pair, is_away in zip(pairs, is_absent, strict=True) if not is_away]
        absent = [one.key for one, _ in compress(pairs, is_absent)]
        return absent, [one for one, _ in kept], [reply for _, reply in kept]

    def _is_absent(self, one: KeyCandidate, reply: Reply) -> bool:
        """Whether a reply says that another node has the key, or that it is gone."""
        if isinstance(reply, ServerError):
            return is_elsewhere(reply) or means_gone(reply)
        is_empty = self.command is command_of(Fact.LENGTH, one.key_type) and reply == 0
        return (is_empty and type_of(one.key_type).removed_when_empty) or expected(self.command.spec.name).means_gone(
            reply
        )


class WaitingCandidates:
    """Keys that wait for their next question, by stage and type; apart from them those whose question goes alone."""

    def __init__(self, stages: int) -> None:
        self.keys = 0
        self.is_timing = False
        self._by_stage: list[dict[bytes | None, list[KeyCandidate]]] = [{} for _ in range(stages)]
        self._timed: list[KeyCandidate] = []

    def add(self, at: int, key_type: bytes | None, candidates: list[KeyCandidate]) -> None:
        """Let keys wait for a stage; `key_type` is None where their type does not matter for it."""
        self._by_stage[at].setdefault(key_type, []).extend(candidates)
        self.keys += len(candidates)

    def add_timed(self, candidates: list[KeyCandidate]) -> None:
        """Let keys wait for a MEMORY USAGE whose cost nothing bounds."""
        self._timed += candidates
        self.keys += len(candidates)

    def take(self, at: int, most: int) -> tuple[bytes | None, list[KeyCandidate]] | None:
        """Take up to `most` keys of one type that wait for a stage, with that type; None if no key waits."""
        waiting = self._by_stage[at]
        if not waiting:
            return None
        key_type, candidates = next(iter(waiting.items()))
        taken = candidates[:most]
        del candidates[:most]
        if not candidates:
            del waiting[key_type]
        self.keys -= len(taken)
        return key_type, taken

    @property
    def next_timed(self) -> KeyCandidate | None:
        """The first key whose question goes alone; None while such a question is under way."""
        return None if self.is_timing or not self._timed else self._timed[0]

    def take_timed(self, key_type: bytes | None, most: int | None) -> list[KeyCandidate]:
        """Take up to `most` keys of one type with a query that goes alone, all if `most` is None."""
        taken = [one for one in self._timed if one.key_type == key_type][:most]
        chosen = set(map(id, taken))
        self._timed = [one for one in self._timed if id(one) not in chosen]
        self.keys -= len(taken)
        return taken

    def put_back(self, question: Question) -> None:
        """Let keys wait again about which a question was not answered."""
        if question.is_timed:
            self.is_timing = False
            self.add_timed(question.candidates)
        else:
            self.add(question.stage, question.key_type, question.candidates)

    def take_all(self) -> list[KeyCandidate]:
        found = [one for waiting in self._by_stage for group in waiting.values() for one in group]
        found += self._timed
        for waiting in self._by_stage:
            waiting.clear()
        self._timed, self.keys = [], 0
        return found


def before_length(plan: InspectionPlan) -> tuple[Fact, ...]:
    """Return the facts read before a length, if reading that counts as a use of the key."""
    if plan.asks_lengths:
        return ()
    recency = plan.recency
    if recency is None:
        return (Fact.MEMORY,)
    return Fact.MEMORY, Fact.IDLE if recency is guard.object_idletime else Fact.FREQUENCY


class KeyRights:
    """The commands that may be sent about keys for one query; they change with refusals and measured cost."""

    def __init__(
        self, query: Query, plan: InspectionPlan, own_reads: OwnReads | None, clock: Callable[[], float]
    ) -> None:
        """`plan` holds the commands that the server and the user allow; `clock` returns seconds since the epoch."""
        self.plan = plan
        self.touched = 0
        """Lengths read that counted as a use."""
        self.cost_watch = CostWatch()
        """Measured cost of MEMORY USAGE without a bound."""
        self.own_reads = OwnReads() if own_reads is None else own_reads
        self._query, self._needed, self._clock = query, frozenset(query.facts), clock

    def why_not(self, fact: Fact, key_type: bytes | None, *, is_column: bool = False) -> str | None:
        """Return why a fact is not read of keys of a type, None if it is."""
        command = command_of(fact, key_type)
        if command is None:
            return "no command returns the length of this type" if key_type is not None else "the type is not known"
        if not self.plan.capabilities.allows(command.spec.name):
            return self.plan.capabilities[command.spec.name].reason or f"{command.spec.name} is refused"
        if fact is Fact.MEMORY:
            cost = self.plan.memory(key_type)
            is_over = cost.policy is MemoryUsagePolicy.WATCHED and self.cost_watch.is_over
            return TOO_COSTLY if is_over else cost.why if cost.policy is MemoryUsagePolicy.NEVER else None
        if fact is Fact.LENGTH and not self.plan.asks_lengths and (is_column or self.touched >= MOST_TOUCHED):
            return COUNTS_AS_USE
        is_first = fact in (Fact.IDLE, Fact.FREQUENCY) and fact not in self._needed and not is_column
        return COUNTS_AS_USE if is_first and self.touched >= MOST_TOUCHED else None

    def timed(self, candidates: Sequence[KeyCandidate], key_type: bytes | None) -> tuple[Command, ...]:
        """Return MEMORY USAGE of keys without a bound on its cost, between two reads of the server's clock, if it has
        one.

        The replies are for `observe_cost`.
        """
        evidence = replace(self.plan.evidence(key_type), proved=self.cost_watch.proved)
        batch = build_batch(guard.memory_usage, [one.key for one in candidates], evidence)
        clock = (guard.info("commandstats"),) if self.cost_watch.asks_clock else ()
        return (*clock, batch, *clock)

    def observe_cost(self, replies: Sequence[Reply], round_trip_s: float | None, *, has_clock: bool) -> None:
        """Learn the cost of such queries, by the server's clock if it was read, else by the round trip."""
        keys, server_s = len(replies) - 2 * has_clock, None
        if has_clock:
            server_s = self.cost_watch.server_s(replies[0], replies[-1], keys)
        self.cost_watch.observe(keys, round_trip_s if server_s is None else server_s)

    def touch(self, candidate: KeyCandidate) -> bool:
        """Note that a length is read though that counts as a use; False if the limit is reached."""
        if self.touched >= MOST_TOUCHED:
            return False
        self.touched += 1
        idle_s = candidate.idle_s
        used_s = None if idle_s is None else candidate.asked_at_s - idle_s
        self.own_reads.add(candidate.key, self._clock(), used_s=used_s, counter=candidate.frequency)
        return True

    def may_fit(self, candidate: KeyCandidate) -> bool:
        """Whether the memory of a key allows a length that all terms let through."""
        memory, least = candidate.memory_bytes, self.plan.least_element_bytes(candidate.key_type)
        if memory is None or not least:
            return True
        longest = memory // least
        terms = [term for term in self._query.about(Fact.LENGTH) if not term.is_negated]
        return all(
            any(isinstance(value, Bounds) and (value.low or 0) <= longest for value in term.values) for term in terms
        )

    def refusal(self, name: str, reply: Reply) -> str:
        """Return why a reply is no value, and note where the server refuses the command for every key."""
        if not isinstance(reply, ServerError):
            return f"the reply to {name} is not a valid value"
        if is_key_refusal(reply):
            return f"{name} is denied for some keys: {reply.text}"
        if refuses_fact(reply):
            self.plan.capabilities.record(name, reply)
        return str(reply)
