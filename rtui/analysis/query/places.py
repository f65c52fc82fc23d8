"""Terms about places in a cluster: a node and a shard stand for the slots that they serve when a query is asked.

`node:10.0.0.5:6379` becomes `slot:0-5460`, from which on it is decided by names alone. So it means the same for a key
that lies on the node's replica, and does not change while slots move during a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis.humanize import counted
from rtui.analysis.query.query import Query, Term
from rtui.keyspace.slots import SLOTS, joined_ranges
from rtui.keyspace.text.display import SafeText, display, display_text
from rtui.keyspace.text.matching import nearest_word
from rtui.keyspace.text.quantities import Bounds

MOST_NAMED: Final = 5
"""So many nodes are named where one is not known."""

_ALL: Final = frozenset(range(SLOTS))


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """A shard of a cluster."""

    nodes: tuple[str, ...]
    """`host:port` of its primary and its replicas."""
    slots: tuple[tuple[int, int], ...]
    """First and last slot of each range."""


class PlaceError(ValueError):
    """A place that is not in the cluster; the message is a safe sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(display_text(message, limit=600))


def on_slots(query: Query, shards: Sequence[ShardPlace]) -> Query:
    """Return the query with slots in the place of nodes and shards, `shards` in their order; none for a server alone.

    Raises PlaceError.
    """
    return Query(tuple(_on_slots(term, shards) if term.name in ("node", "shard") else term for term in query.terms))


def wanted_slots(query: Query) -> frozenset[int] | None:
    """Return the slots that keys of a query may have; None where it has no term about slots."""
    terms = [term for term in query.terms if term.name == "slot"]
    if not terms:
        return None
    sets = [(frozenset(slots_in(term.values)), term.is_negated) for term in terms]
    return frozenset.intersection(*(_ALL - slots if is_negated else slots for slots, is_negated in sets))


def slots_in(values: Iterable[object]) -> Iterable[int]:
    """Yield the slots of ranges, of which one side may be open."""
    for one in values:
        if isinstance(one, Bounds):
            yield from range(one.low or 0, (SLOTS - 1 if one.high is None else one.high) + 1)


def _on_slots(term: Term, shards: Sequence[ShardPlace]) -> Term:
    if not shards:
        raise PlaceError(f"{term} asks for a part of a cluster, and there is one server, which has all keys.")
    found = _of_nodes(term, shards) if term.name == "node" else _of_shards(term, shards)
    ranges = joined_ranges(pair for shard in found for pair in shard.slots)
    if not ranges:  # no key is there
        return replace(term, name="slot", values=(Bounds(0, SLOTS - 1),), is_negated=not term.is_negated)
    return replace(term, name="slot", values=tuple(Bounds(first, last) for first, last in ranges))


def _of_nodes(term: Term, shards: Sequence[ShardPlace]) -> list[ShardPlace]:
    """Return the shards of nodes that are named by host and port, or by host."""
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
    return SafeText(f"No node of the cluster is {shown}: there are {', '.join(named)}{rest}.")


def _of_shards(term: Term, shards: Sequence[ShardPlace]) -> list[ShardPlace]:
    numbers = [one for one in term.values if isinstance(one, Bounds)]
    found = [shard for number, shard in enumerate(shards, 1) if any(number in one for one in numbers)]
    if not found:
        count = len(shards)
        raise PlaceError(f"{term} is none of the shards, which are numbered 1 to {count:,} by their first slots.")
    return found
