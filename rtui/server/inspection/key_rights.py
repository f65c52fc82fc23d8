"""What a search may ask about which key, and why not: rights, types, costs, and whether asking counts as a use.

Where reading a length counts as a use (no CLIENT NO-TOUCH), it is asked of few keys alone: those whose memory allows
the length that is wanted, MOST_TOUCHED at most, each after its idle time, which is remembered (`wire/own_reads.py`).
So there the plan has the stages MEMORY and IDLE before it, though no term needs them (`before_length`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.keyspace.text.quantities import Bounds
from rtui.server import guard
from rtui.server.guard.command import Command, build_batch
from rtui.server.guard.evidence import MemoryUsagePolicy
from rtui.server.inspection.candidates import Candidate, command_of
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import is_key_refusal, refuses_fact
from rtui.server.wire.own_reads import OwnReads
from rtui.server.wire.replies import Reply, ServerError

MOST_TOUCHED: Final = 100
"""Lengths that are asked where that counts as a use of the key: as many as an analysis asks of the largest keys."""

COUNTS_AS_USE: Final = f"asking a length counts as a use of the key here, so no more than {MOST_TOUCHED} are asked"
TOO_COSTLY: Final = "MEMORY USAGE of others of this type took the server too long"


def before_length(plan: InspectionPlan) -> tuple[Fact, ...]:
    """Return the facts that are asked before a length, where asking that counts as a use of the key."""
    if plan.asks_lengths:
        return ()
    recency = plan.recency
    if recency is None:
        return (Fact.MEMORY,)
    return Fact.MEMORY, Fact.IDLE if recency is guard.object_idletime else Fact.FREQUENCY


class KeyRights:
    """What may be asked about keys for one query; it changes with what the server refuses and what it takes."""

    def __init__(
        self, query: Query, plan: InspectionPlan, own_reads: OwnReads | None, clock: Callable[[], float]
    ) -> None:
        """`plan` says what the server and the user allow; `clock` returns seconds since the epoch."""
        self.plan = plan
        self.touched = 0
        """Lengths that were asked where that counts as a use."""
        self.cost_watch = CostWatch()
        """What MEMORY USAGE has cost where nothing bounds it."""
        self.own_reads = OwnReads() if own_reads is None else own_reads
        self._query, self._needed, self._clock = query, frozenset(query.facts), clock

    def why_not(self, fact: Fact, key_type: bytes | None, *, is_column: bool = False) -> str | None:
        """Return why a fact is not asked of keys of a type, None where it is."""
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

    def timed(self, candidates: Sequence[Candidate], key_type: bytes | None) -> tuple[Command, ...]:
        """Return MEMORY USAGE of keys where nothing bounds its cost, and what tells the server's time around it.

        The replies are for `observe_cost`.
        """
        evidence = replace(self.plan.evidence(key_type), proved=self.cost_watch.proved)
        batch = build_batch(guard.memory_usage, [one.key for one in candidates], evidence)
        clock = (guard.info("commandstats"),) if self.cost_watch.asks_clock else ()
        return (*clock, batch, *clock)

    def observe_cost(self, replies: Sequence[Reply], round_trip_s: float | None, *, has_clock: bool) -> None:
        """Learn what such questions have cost, by the server's clock if that was asked, else by the round trip."""
        keys, server_s = len(replies) - 2 * has_clock, None
        if has_clock:
            server_s = self.cost_watch.server_s(replies[0], replies[-1], keys)
        self.cost_watch.observe(keys, round_trip_s if server_s is None else server_s)

    def touch(self, candidate: Candidate) -> bool:
        """Note that the length of a key is asked though that counts as a use; False where no more of them are."""
        if self.touched >= MOST_TOUCHED:
            return False
        self.touched += 1
        idle_s = candidate.idle_s
        used_s = None if idle_s is None else candidate.asked_at_s - idle_s
        self.own_reads.add(candidate.key, self._clock(), used_s=used_s, counter=candidate.frequency)
        return True

    def may_fit(self, candidate: Candidate) -> bool:
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
            return f"the answer to {name} is no value that it could be"
        if is_key_refusal(reply):
            return f"{name} is denied for some keys: {reply.text}"
        if refuses_fact(reply):
            self.plan.capabilities.record(name, reply)
        return str(reply)
