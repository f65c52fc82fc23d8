"""Decides for each key of a scan whether a query matches it, reading one fact after another of keys that may still
match.

A page of keys goes through it like this, with the plan `ttl:none size>1M` whose stages are TTL, TYPE and MEMORY:

1. The scan calls `add_page`. Names that the query excludes are dropped, the others wait for the first stage.
2. For its next write the scan calls `next_write(most)`: keys of the last stages are taken first, so that few wait. The
   queries of a stage are one command for each key; MEMORY USAGE and lengths are asked by type, since their evidence and
   their commands depend on it.
3. With the replies, a key whose fact excludes it is dropped. The others wait for the next stage.
4. A key that has passed all stages is a match. It is counted, and as long as matches are kept, the facts of the columns
   that are still missing are asked in further stages.

A fact may stay unknown: denied for this key, too costly, no answer. Then the key goes on, since another term may
exclude it; if none does, it is counted as undecided by that fact. A key that is gone is dropped and counted.
`KeyRights` decides which commands are allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from rtui.analysis.query.deciding import NameFilter, fact_tests
from rtui.analysis.query.plan import Plan
from rtui.analysis.query.query import Matches
from rtui.analysis.query.terms import Fact
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.types import type_of
from rtui.server import guard, wall_clock
from rtui.server.facts.answers import expected
from rtui.server.guard.command import MAX_BULK_KEY_BYTES, build_batch, split_keys
from rtui.server.guard.evidence import MemoryUsagePolicy
from rtui.server.inspection.plan import COMMAND_NAMES, InspectionPlan
from rtui.server.scan.node import KeyQueries
from rtui.server.scan.pace import PRIOR_KEY_US
from rtui.server.scan.page import is_temporary
from rtui.server.search.candidates import (
    COUNTS_AS_USE,
    KeyCandidate,
    KeyRights,
    Question,
    WaitingCandidates,
    command_of,
)
from rtui.server.wire.capability import means_gone
from rtui.server.wire.errors import Reply, ServerBusyError, ServerError
from rtui.server.wire.lane import Lane
from rtui.server.wire.own_reads import OwnReads

LONG_NAME: Final = f"name over {MAX_BULK_KEY_BYTES >> 10} KiB"

_BY_TYPE: Final = frozenset({Fact.MEMORY, Fact.LENGTH})
_CORRECTED: Final = frozenset({Fact.IDLE, Fact.LENGTH})
"""Facts whose answers are looked at one by one: rtui's own reading, and elements that have gone."""


class KeyFinder:
    """Finds the keys of a query among the keys of a scan; see the walk-through. Matches go into `matches`."""

    command_names = COMMAND_NAMES
    key_us = PRIOR_KEY_US
    compiled = None
    key_share = 1.0

    def __init__(
        self,
        plan: Plan,
        allowed: InspectionPlan,
        names: NameFilter,
        matches: Matches,
        *,
        own_reads: OwnReads | None = None,
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        """`allowed` holds the commands that the server and the user allow; `clock` returns seconds since the epoch."""
        self.matches = matches
        self.seen = 0
        self.named = 0
        self.vanished = 0
        """Keys that no longer existed when they were queried."""
        self.undecided: Counter[Fact] = Counter()
        """Keys that may match, by the fact that is not known."""
        self.reasons: dict[Fact, SafeText] = {}
        """Why such a fact is not known, of the first key, without a full stop."""
        self.asked: Counter[Fact] = Counter()
        self.on_absent: Callable[[Sequence[bytes]], object] | None = None
        """See `ScanQueries`."""
        self.beside: list[bytes] = []
        """Keys that the scan's filter leaves out, to be looked at whenever it begins."""
        self.is_fed = False
        """Whether pages come from elsewhere than the scan, and more may come."""
        self.held_elsewhere: Callable[[], int] = lambda: 0
        """Returns how many of the matches wait elsewhere, for their values to be read: the scan waits for them."""
        self.rights = KeyRights(plan.query, allowed, own_reads, clock)
        self._plan, self._names, self._clock = plan, names, clock
        self._tests = fact_tests(plan.query)
        self._deciding = plan.stages
        self._stages = (*plan.stages, *plan.columns)
        self._waiting = WaitingCandidates(len(self._stages))

    @property
    def unsent(self) -> int:
        return self._waiting.keys + self.held_elsewhere()

    @property
    def waiting(self) -> int:
        """Waiting keys; more than 0 as long as more may come."""
        return self.unsent + self.is_fed

    def settle(self) -> None:
        """Do nothing: replies are read as they come."""

    async def use_lane(self, lane: Lane) -> None:
        """Query on this lane from now on, with the commands that its server allows; raises ConnectionLost."""
        await self.rights.plan.follow(lane)

    def reset(self) -> None:
        """Forget everything: all keys are delivered again."""
        self.matches.clear()
        self.seen = self.named = self.vanished = 0
        self.undecided.clear()
        self._waiting = WaitingCandidates(len(self._stages))
        self.add_page(self.beside)

    def take_waiting(self) -> list[bytes]:
        """Forget all keys that wait, and return them: another node starts anew with them."""
        found = [one.key for one in self._waiting.take_all()]
        self.seen -= len(found)
        self.named -= len(found)
        return found

    def add_page(self, keys: Sequence[bytes]) -> None:
        """Look for matches among these keys."""
        self.seen += len(keys)
        passing = self._names.keep(keys)
        self.named += len(passing)
        if self.matches.count:
            passing = [key for key in passing if not self.matches.knows(key)]
        key_type = self._plan.server.key_type
        self._go_on([KeyCandidate(key, key_type) for key in passing], 0)

    def _go_on(self, candidates: list[KeyCandidate], at: int) -> None:
        """Let keys wait for the first stage from `at` on that has a command for them; the others are matches."""
        while candidates:
            if at == len(self._deciding):
                matches = []
                for decided in candidates:
                    if decided.unknown is not None:
                        self.undecided[decided.unknown] += 1
                    else:
                        matches.append(decided)
                self.matches.add_count(len(matches))
                candidates = [] if self.matches.is_full else matches
            if at == len(self._stages):
                self.matches.add([one.record() for one in candidates])
                return
            candidates = self._wait(candidates, at)
            at += 1

    def _wait(self, candidates: list[KeyCandidate], at: int) -> list[KeyCandidate]:
        """Let keys wait for a stage; return the keys it skips, whose fact is known or can't be read."""
        fact, through = self._stages[at], []
        field = fact.field
        groups: dict[bytes | None, list[KeyCandidate]] = {}
        for one in candidates:
            if getattr(one, field) is not None:
                through.append(one)
            elif len(one.key) > MAX_BULK_KEY_BYTES:
                self._leave_unknown(one, at, LONG_NAME)
                through.append(one)
            else:
                groups.setdefault(one.key_type if fact in _BY_TYPE else None, []).append(one)
        for key_type, group in groups.items():
            why = self.rights.why_not(fact, key_type, is_column=at >= len(self._deciding))
            if why is not None:
                for one in group:
                    self._leave_unknown(one, at, why)
                through += group
            elif fact is Fact.MEMORY and self.rights.plan.memory(key_type).policy is MemoryUsagePolicy.WATCHED:
                self._waiting.add_timed(group)
            else:
                self._waiting.add(at, key_type, group)
        return through

    def _leave_unknown(self, candidate: KeyCandidate, at: int, why: str) -> None:
        fact = self._stages[at]
        if fact is Fact.TYPE:
            candidate.why_untyped = why
        if at < len(self._deciding) and fact in self._tests and candidate.unknown is None:
            candidate.unknown = fact
            is_by_type = fact in _BY_TYPE and candidate.key_type is None
            self.reasons.setdefault(fact, display_text((is_by_type and candidate.why_untyped) or why, limit=200))

    def next_write(self, most: int) -> KeyQueries | None:
        """Return queries about up to `most` keys, None if there is nothing to ask; a timed query goes alone."""
        timed = self._next_timed()
        questions = [timed] if timed is not None else self._next_questions(most)
        if not questions:
            return None
        return KeyQueries(
            [command for question in questions for command in question.commands],
            max(1, sum(len(question.candidates) for question in questions)),
            answered=partial(self._answered, questions),
            lost=partial(self._lost, questions),
            is_alone=timed is not None,
        )

    def _next_questions(self, most: int) -> list[Question]:
        questions: list[Question] = []
        for at in reversed(range(len(self._stages))):
            while most > 0 and (taken := self._waiting.take(at, most)) is not None:
                question = self._question(at, *taken)
                if question is not None:
                    questions.append(question)
                    most -= len(question.candidates)
        return questions

    def _question(self, at: int, key_type: bytes | None, candidates: list[KeyCandidate]) -> Question | None:
        """Return the query of a stage about keys of one type; None if no command is left to send."""
        fact = self._stages[at]
        is_column = at >= len(self._deciding)
        if fact is Fact.LENGTH and not self.rights.plan.asks_lengths and not is_column:
            allowed: list[KeyCandidate] = []
            others: list[KeyCandidate] = []
            for touched in candidates:
                (allowed if self.rights.touch(touched) else others).append(touched)
            for touched in others:
                self._leave_unknown(touched, at, COUNTS_AS_USE)
            self._go_on(others, at + 1)
            candidates = allowed
        why = self.rights.why_not(fact, key_type, is_column=is_column)
        command = command_of(fact, key_type)
        if command is None or (why is not None and (is_column or why != COUNTS_AS_USE)):
            for one in candidates:
                self._leave_unknown(one, at, why or COUNTS_AS_USE)
            self._go_on(candidates, at + 1)
            return None
        if not candidates:
            return None
        evidence = self.rights.plan.evidence(key_type) if fact is Fact.MEMORY else None
        portions = split_keys([one.key for one in candidates], 1)
        return Question(
            at, key_type, command, candidates, [build_batch(command, portion, evidence) for portion in portions]
        )

    def _next_timed(self) -> Question | None:
        """Take keys of one type without a bound on MEMORY USAGE, unless such a query is under way."""
        first = self._waiting.next_timed
        if first is None:
            return None
        at, key_type = self._stages.index(Fact.MEMORY), first.key_type
        why = self.rights.why_not(Fact.MEMORY, key_type)
        taken = self._waiting.take_timed(key_type, None if why is not None else self.rights.cost_watch.most)
        if why is not None or self.rights.plan.memory(key_type).policy is not MemoryUsagePolicy.WATCHED:
            self._go_on(self._wait(taken, at), at + 1)
            return None
        self._waiting.is_timing = True
        commands = self.rights.timed(taken, key_type)
        return Question(at, key_type, guard.memory_usage, taken, commands, is_timed=True, has_clock=len(commands) > 1)

    def _answered(self, questions: Sequence[Question], replies: Sequence[Reply], round_trip_s: float | None) -> None:
        """Read the replies to a write; raises ServerBusyError where the server can't answer just now."""
        end = 0
        for index, question in enumerate(questions):
            start, end = end, end + len(question.candidates) + 2 * question.has_clock
            facts = replies[start + question.has_clock : end - question.has_clock]
            busy = next((reply for reply in facts if isinstance(reply, ServerError) and is_temporary(reply)), None)
            if busy is not None:
                self._lost(questions[index:])
                raise ServerBusyError(busy.text)
            if question.is_timed:
                self._waiting.is_timing = False
                self.rights.observe_cost(replies[start:end], round_trip_s, has_clock=question.has_clock)
            question.candidates, facts = self._leave_to_others(question, facts)
            self._go_on(self._read(question, facts), question.stage + 1)

    def _read(self, question: Question, replies: Sequence[Reply]) -> list[KeyCandidate]:
        """Store the answers to a question; return the keys that may still match."""
        at, name = question.stage, question.command.spec.name
        fact = self._stages[at]
        field = fact.field
        is_column = at >= len(self._deciding)
        test = None if is_column else self._tests.get(fact)
        wanted, now_s = expected(name), self._clock()
        is_plain = fact not in _CORRECTED and wanted.all_fit(replies)
        self.asked[fact] += len(question.candidates)
        passing: list[KeyCandidate] = []
        for one, reply in zip(question.candidates, replies, strict=True):
            value: Any = reply
            if not is_plain and wanted.fits(reply):
                if fact is Fact.LENGTH and not value and type_of(one.key_type).removed_when_empty:
                    self._gone(is_match=is_column)
                    continue
                if fact is Fact.IDLE and self.rights.plan.resets_idle_times and len(self.rights.own_reads):
                    value = self.rights.own_reads.correct_idle_times([one.key], [value], now_s)[0][0]
            elif not is_plain:
                if means_gone(reply) if isinstance(reply, ServerError) else wanted.means_gone(reply):
                    self._gone(is_match=is_column)
                else:
                    self._leave_unknown(one, at, self.rights.refusal(name, reply))
                    passing.append(one)
                continue
            setattr(one, field, value)
            if fact is Fact.TTL or not one.asked_at_s:
                one.asked_at_s = now_s
            if test is None or test(value, now_s):
                passing.append(one)
        is_next = fact is Fact.MEMORY and Fact.LENGTH in self._tests
        return [one for one in passing if self.rights.may_fit(one)] if is_next else passing

    def _leave_to_others(
        self, question: Question, replies: Sequence[Reply]
    ) -> tuple[list[KeyCandidate], Sequence[Reply]]:
        """Leave keys that are not here to other nodes; return the others with their replies."""
        if self.on_absent is None:
            return question.candidates, replies
        absent, candidates, kept = question.divided(replies)
        if absent:
            self.seen -= len(absent)
            self.named -= len(absent)
            if question.stage >= len(self._deciding):
                self.matches.add_count(-len(absent))
            self.on_absent(absent)
        return candidates, kept

    def count_gone(self, keys: int) -> None:
        self.vanished += keys

    def _gone(self, *, is_match: bool) -> None:
        self.count_gone(1)
        if is_match:
            self.matches.add_count(-1)

    def _lost(self, questions: Sequence[Question]) -> None:
        for question in questions:
            self._waiting.put_back(question)
