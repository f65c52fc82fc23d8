"""The commands that a query sends, their order, and their cost at most: known before anything is sent.

Names decide first, and cost nothing but the SCAN that brings them. Then the facts are read one after the other, each
only of the keys that may still match: facts whose command costs the same for every key first, and of these the ones
that leave fewest keys. MEMORY USAGE and lengths come last, since their command depends on the type, and since a length
may count as a use of the key, so that an idle time has to be read before.

In a cluster a node and a shard stand for the slots that they serve when a query is started: `node:10.0.0.5:6379`
becomes `slot:0-5460`, which is decided by names alone. So it means the same for a key that lies on the node's replica,
and does not change while slots move during a search.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import counted, seconds, written_keys
from rtui.analysis.query.deciding import fact_tests, name_test, slots_in
from rtui.analysis.query.query import Query, Term
from rtui.analysis.query.terms import Fact, TermForm
from rtui.keyspace.slots import SLOTS, joined_ranges
from rtui.keyspace.text.display import SafeText, display, display_text
from rtui.keyspace.text.glob import GlobMatcher, PatternError, check_pattern
from rtui.keyspace.text.matching import nearest_word
from rtui.keyspace.text.quantities import Bounds
from rtui.keyspace.text.segments import HEADER, Separators

SCAN_US: Final = 1.0
"""Server time for a key that SCAN visits, in µs: 0.54 and about 30 for each call, of which a gentle one visits 55 keys
and a call at full pace 200 (Redis 8.10, three million keys)."""

FACT_US: Final = 1.5
"""Server time for one fact of a key, in writes as small as a scan's; 1.3–2.0 µs were measured."""

MOST_NAMED: Final = 5
_ALL: Final = frozenset(range(SLOTS))

_WORTH: Final = 2
"""A glob with fewer literal bytes is not worth a server's while."""

LARGE: Final = 100_000

_PASSING: Final = {
    Fact.TYPE: 0.3,
    Fact.TTL: 0.35,
    Fact.IDLE: 0.4,
    Fact.FREQUENCY: 0.4,
    Fact.ENCODING: 0.5,
    Fact.MEMORY: 0.2,
    Fact.LENGTH: 0.2,
}
"""The share of keys that one term is assumed to let through; the order of equally costly questions follows it."""

_RANK: Final = {Fact.MEMORY: 1, Fact.LENGTH: 2}
"""Facts that are asked after all others, in this order."""


@dataclass(frozen=True, slots=True)
class ServerFilter:
    """The filters of SCAN; the terms are checked here all the same."""

    match: bytes | None = None
    key_type: bytes | None = None


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of a plan at most."""

    scanned: int | None
    """Keys that SCAN visits; None if unknown, 0 if names are known already."""
    asked: int | Estimate | None
    commands: int | None
    """Questions about keys, SCANs left out."""
    seconds: float | None
    """How long it takes at the pace that it is for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is answered."""

    query: Query
    server: ServerFilter
    stages: tuple[Fact, ...]
    """Facts that are asked of each key that may still match, in this order."""
    columns: tuple[Fact, ...]

    def cost(
        self,
        keys: int | None,
        *,
        matching: int | Estimate | None = None,
        server_share: float = 0.1,
        is_listed: bool = False,
        matches: int = 0,
    ) -> PlanCost:
        """Return the cost at most in a keyspace of `keys` keys.

        `matching`: how many of their names pass, if known; `server_share`: the share of the server's time that may be
        used, 0 … 1. With `is_listed` the names need not be scanned. `matches` is the number of matches listed with
        columns.
        """
        scanned = 0 if is_listed else keys
        asked = matching if matching is not None else keys
        if not self.stages:
            asked = 0
        most = round(asked.high) if isinstance(asked, Estimate) else asked
        if scanned is None or most is None:
            return PlanCost(scanned, asked, None, None)
        listed = min(matches, most if self.stages else matches) * len(self.columns)
        commands = most * len(self.stages) + listed
        server_us = scanned * SCAN_US + (most * self._asked_share() + listed) * FACT_US
        return PlanCost(scanned, asked, commands, server_us / 1e6 / server_share)

    def _asked_share(self) -> float:
        """Return the expected number of facts read of a key whose name passes, by the assumed selectivity of terms."""
        asked, share = 0.0, 1.0
        for fact in self.stages:
            asked += share
            share *= passing(self.query.about(fact))
        return asked

    def sentence(self, cost: PlanCost, pace: str = "gentle") -> SafeText:
        parts = []
        if cost.scanned:
            parts.append(f"scans {counted(cost.scanned, 'key')}")
        elif cost.scanned is None:
            parts.append("scans all keys")
        if self.stages:
            *first, last = (fact.command for fact in self.stages)
            names = f"{', '.join(first)} and {last}" if first else last
            if cost.asked is None:
                parts.append(f"reads {names} of keys that may match")
            else:
                up_to = "" if isinstance(cost.asked, Estimate) else "up to "
                parts.append(f"reads {names} of {up_to}{written_keys(cost.asked)} keys")
        if not parts:
            parts.append("sends no commands")
        text = ", then ".join(parts)
        if cost.seconds is not None and cost.seconds >= 1:
            text += f"; about {seconds(ceil(cost.seconds))} at {pace} pace"
        return SafeText(text)


def plan_of(
    query: Query,
    separators: Separators,
    *,
    columns: Sequence[Fact] = (),
    is_listed: bool = False,
    scans_types: bool = True,
    before_length: Sequence[Fact] = (),
) -> Plan:
    """Return how a query is answered.

    With `is_listed` the names are known, so that there is no SCAN that could filter; without `scans_types` the server
    can't filter by type. `before_length` is asked before a length that counts as a use of the key.
    """
    server = ServerFilter() if is_listed else server_filter(query, separators)
    server = replace(server, match=_with_java_names(server.match))
    if not scans_types:
        server = ServerFilter(server.match)
    tests = fact_tests(query)
    if server.key_type is not None and tests[Fact.TYPE](server.key_type, 0.0):
        del tests[Fact.TYPE]
    stages = sorted(tests, key=lambda fact: (_RANK.get(fact, 0), passing(query.about(fact))))
    if Fact.LENGTH in stages:
        stages[-1:-1] = [fact for fact in before_length if fact not in stages]
    needs_type = next((at for at, fact in enumerate(stages) if fact in _RANK), None)
    if needs_type is not None and Fact.TYPE not in stages and server.key_type is None:
        stages.insert(needs_type, Fact.TYPE)
    known = {*stages, Fact.NAME, *([Fact.TYPE] if server.key_type is not None else [])}
    missing = [fact for fact in dict.fromkeys(columns) if fact not in known]
    if Fact.TYPE not in known and Fact.TYPE not in missing and any(fact in _RANK for fact in missing):
        missing.append(Fact.TYPE)
    missing.sort(key=lambda fact: (_RANK.get(fact, 0), fact is not Fact.TYPE))
    return Plan(query, server, tuple(stages), tuple(missing))


def server_filter(query: Query, separators: Separators) -> ServerFilter:
    """Return the most selective glob that every match of a query has, and its type if there is only one."""
    terms = [term for term in query.about(Fact.NAME) if term.sole_name is not None and term.name != "node"]
    globs = [glob for term in terms if (glob := name_test(term, separators).glob) is not None]
    best = max(globs, key=_literal_bytes, default=None)
    if best is not None and _literal_bytes(best) < _WORTH and best.count(b"*") + best.count(b"?") == len(best):
        best = None
    types = [key_type for term in query.about(Fact.TYPE) if (key_type := term.sole_name) is not None]
    return ServerFilter(best, types[0] if types else None)


def names_beside(query: Query, match: bytes | None) -> tuple[bytes, ...]:
    """Return the names that globs of a query are written like, where the server leaves them out by `match`."""
    if match is None:
        return ()
    filtered = GlobMatcher(match)
    globs = (term.sole_name for term in query.about(Fact.NAME) if term.name == "glob")
    return tuple(dict.fromkeys(glob for glob in globs if glob is not None and not filtered(glob)))


def _literal_bytes(glob: bytes) -> int:
    plain = re.sub(rb"\[(?:\\.|[^\]\\])*\]?", b"x", glob)
    return len(re.sub(rb"\\(.)", b"x", plain).translate(None, b"*?"))


def _with_java_names(match: bytes | None) -> bytes | None:
    if match is None or match.startswith((b"*", HEADER)):
        return match
    try:
        return check_pattern(b"*" + match)
    except PatternError:
        return None


def passing(terms: Sequence[Term]) -> float:
    """Return the share of keys that terms about one fact are assumed to let through, 0 … 1."""
    share = 1.0
    for term in terms:
        one = _PASSING[term.spec.fact] * (1.2 if term.spec.form is TermForm.NAMES and len(term.values) > 1 else 1)
        share *= 1 - one if term.is_negated else one
    return share


# places in a cluster


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """A shard of a cluster."""

    nodes: tuple[str, ...]
    """`host:port` of its primary and its replicas."""
    slots: tuple[tuple[int, int], ...]


class PlaceError(ValueError):
    """A place that is not in the cluster; the message is a safe sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(display_text(message, limit=600))


def on_slots(query: Query, shards: Sequence[ShardPlace]) -> Query:
    """`shards` are in order, empty for a single server; raises PlaceError."""
    return Query(tuple(_on_slots(term, shards) if term.name in ("node", "shard") else term for term in query.terms))


def wanted_slots(query: Query) -> frozenset[int] | None:
    terms = [term for term in query.terms if term.name == "slot"]
    if not terms:
        return None
    sets = [(frozenset(slots_in(term.values)), term.is_negated) for term in terms]
    return frozenset.intersection(*(_ALL - slots if is_negated else slots for slots, is_negated in sets))


def _on_slots(term: Term, shards: Sequence[ShardPlace]) -> Term:
    if not shards:
        raise PlaceError(f"{term} is for clusters; this is a single server with all keys.")
    found = _of_nodes(term, shards) if term.name == "node" else _of_shards(term, shards)
    ranges = joined_ranges(pair for shard in found for pair in shard.slots)
    if not ranges:  # no key is there
        return replace(term, name="slot", values=(Bounds(0, SLOTS - 1),), is_negated=not term.is_negated)
    return replace(term, name="slot", values=tuple(Bounds(first, last) for first, last in ranges))


def _of_nodes(term: Term, shards: Sequence[ShardPlace]) -> list[ShardPlace]:
    found: list[ShardPlace] = []
    for name in term.names:
        wanted = name.decode("utf-8", "surrogateescape")
        here = [one for one in shards if any(wanted in (node, node.rpartition(":")[0]) for node in one.nodes)]
        if not here:
            raise PlaceError(_no_node(name, [node for one in shards for node in one.nodes]))
        found += here
    return found


def _no_node(name: bytes, nodes: Sequence[str]) -> SafeText:
    shown = display(name, limit=80)
    near = nearest_word(shown, nodes)
    named = list(dict.fromkeys([*([near] if near else []), *nodes]))[:MOST_NAMED]
    more = len(nodes) - len(named)
    rest = f" and {counted(more, 'more node')}" if more else ""
    return SafeText(f"No node of the cluster is {shown}: nodes are {', '.join(named)}{rest}.")


def _of_shards(term: Term, shards: Sequence[ShardPlace]) -> list[ShardPlace]:
    numbers = [one for one in term.values if isinstance(one, Bounds)]
    found = [shard for number, shard in enumerate(shards, 1) if any(number in one for one in numbers)]
    if not found:
        count = len(shards)
        raise PlaceError(f"{term} does not exist: shards are numbered 1 to {count:,}, by first slot.")
    return found
