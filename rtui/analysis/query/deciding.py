"""Decides the terms of a query that are about facts: yes, no, or nobody knows.

A fact that is not known is never a no: the key is counted as one that could not be decided, unless another term
excludes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.terms import Fact
from rtui.analysis.query.values import Keyword
from rtui.keyspace.text.quantities import Bounds

Decision = Callable[[Any, float], bool]
"""Decides by the value of a fact, and when it was read in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class FactTest:
    """All terms of a query about one fact."""

    fact: Fact
    terms: tuple[Term, ...]
    passes: Decision
    """Whether a key with this value passes all of them.

    The value is bytes for type and encoding, else a whole number: milliseconds for a TTL (NO_EXPIRY without one),
    seconds for an idle time, bytes, or a count.
    """


def fact_tests(query: Query) -> dict[Fact, FactTest]:
    """Return what decides the terms of a query that are about facts."""
    found = {}
    for fact in query.facts:
        terms = query.about(fact)
        decisions = [_decision(term) for term in terms]
        found[fact] = FactTest(fact, terms, decisions[0] if len(decisions) == 1 else _all_of(decisions))
    return found


def _all_of(decisions: Sequence[Decision]) -> Decision:
    return lambda value, asked_at_s: all(decide(value, asked_at_s) for decide in decisions)


def _decision(term: Term) -> Decision:
    decide = _positive(term)
    return (lambda value, asked_at_s: not decide(value, asked_at_s)) if term.is_negated else decide


def _in_any(ranges: Sequence[Bounds]) -> Callable[[int], bool]:
    """Return what tells whether a number is within one of some bounds."""
    if not ranges:
        return lambda value: False
    return ranges[0].__contains__ if len(ranges) == 1 else lambda value: any(value in one for one in ranges)


def _positive(term: Term) -> Decision:
    ranges = tuple(value for value in term.values if isinstance(value, Bounds))
    match term.name:
        case "type" | "enc":
            names = frozenset(term.names)
            return lambda value, _: value in names
        case "ttl":
            takes_none = Keyword.NONE in term.values
            is_in = _in_any(ranges)
            return lambda value, _: takes_none if value == NO_EXPIRY else is_in(value)
        case "expires":

            def expires(ttl_ms: int, asked_at_s: float) -> bool:
                return ttl_ms != NO_EXPIRY and any(round(asked_at_s * 1000) + ttl_ms in one for one in ranges)

            return expires
        case "idle":
            is_in = _in_any(ranges)
            return lambda value, _: is_in(value * 1000)
        case "freq" | "size" | "len":
            is_in = _in_any(ranges)
            return lambda value, _: is_in(value)
    raise ValueError(f"{term.name} is not about a fact that is asked")
