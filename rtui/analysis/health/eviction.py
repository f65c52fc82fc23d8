"""What a server removes when its memory is full: which keys its policy may take, and which of these go first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.health.sample import Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.document import Node, NodeKind, Report
from rtui.analysis.report.members import FREQUENCY_EDGES, IDLE_EDGES_S, Figure
from rtui.analysis.report.tables.cells import plain
from rtui.keyspace.text.display import SafeText, display

NO_EVICTION: Final = "noeviction"

_ORDERS: Final = {
    "lru": "those that nobody has used for longest first",
    "lrm": "those that nobody has changed for longest first",
    "lfu": "those that are used least first",
    "random": "any of them",
    "ttl": "those that expire soonest first",
}
"""What goes first, by the second word of a policy."""

MOST_NAMESPACES: Final = 3
"""Namespaces that are named as the first to lose keys."""

_NAME_LIMIT: Final = 60


@dataclass(frozen=True)
class Eviction:
    """What the policy of a server means for the keys that it has."""

    policy: str
    """Safe text; empty where it is not known."""
    limit_bytes: float | None
    """maxmemory: 0 for none, None where it is not known."""
    keys: int | None
    """Of all databases; None where INFO keyspace is not known."""
    expiring_keys: int | None
    """Of these, those with a TTL."""

    @property
    def takes_expiring_only(self) -> bool:
        """Whether keys without TTL stay."""
        return self.policy.startswith("volatile-")

    @property
    def candidates(self) -> int | None:
        """How many keys the policy may take; None where that is not known."""
        if not self.policy or self.keys is None:
            return None
        if self.policy == NO_EVICTION:
            return 0
        return self.expiring_keys if self.takes_expiring_only else self.keys

    @property
    def candidate_share(self) -> float | None:
        """The same as a share of all keys; None where there are none."""
        return None if self.candidates is None or not self.keys else self.candidates / self.keys

    @property
    def meaning(self) -> str:
        """What happens when memory is full, as a sentence without a full stop; empty where the policy is not known."""
        if not self.policy:
            return ""
        if self.limit_bytes == 0:
            return "there is no maxmemory, so no key is ever evicted"
        if self.policy == NO_EVICTION:
            return "when memory is full no key goes, and commands that need more memory fail with OOM"
        which, _, order = self.policy.partition("-")
        if which not in ("allkeys", "volatile") or order not in _ORDERS:
            return ""
        keys = "keys go" if which == "allkeys" else "keys with a TTL go"
        return f"when memory is full {keys}, {_ORDERS[order]}{self._stays}"

    @property
    def _stays(self) -> str:
        if not self.takes_expiring_only or self.keys is None or self.expiring_keys is None or not self.keys:
            return ""
        if not self.expiring_keys:
            return "; no key has one, so nothing can be evicted and writes fail with OOM"
        return f"; {humanize.share(1 - self.expiring_keys / self.keys)} of the keys have none and stay"


def eviction(view: HealthView) -> Eviction:
    """Return what the eviction policy of a server means."""
    databases = view.latest.databases.values()
    knows_expiring = all(one.expires is not None for one in databases)
    knows_keys = bool(databases) or (bool(view.latest.info) and Source.INFO_KEYSPACE not in view.latest.missing)
    return Eviction(
        view.text("maxmemory_policy"),
        view.number("maxmemory"),
        sum(one.keys for one in databases) if knows_keys else None,
        sum(one.expires or 0 for one in databases) if knows_keys and knows_expiring else None,
    )


def first_to_go(policy: str, report: Report) -> SafeText:
    """Return the namespaces that lose keys first, by a report: `shop:cache: (61% unused for 30d)`; may be empty."""
    which, _, order = policy.partition("-")
    nodes = [
        node
        for node in report.summary.root.children
        if node.kind is not NodeKind.OTHER and (which == "allkeys" or plain(node.stats.no_ttl_share or 0) < 1)
    ]
    found = sorted(_weights(nodes, order), key=lambda one: -one[0])[:MOST_NAMESPACES]
    return SafeText(
        ", ".join(f"{display(node.name + node.separator, limit=_NAME_LIMIT)} ({why})" for _, node, why in found)
    )


def _weights(nodes: list[Node], order: str) -> Iterator[tuple[float, Node, str]]:
    """Yield how much of what goes first lies in a namespace, and that in words."""
    if order in ("lru", "lrm"):
        longest = range(len(IDLE_EDGES_S), 0, -1)
        for keys, node, at in _first_bin([(node, node.stats.idle) for node in nodes], longest):
            yield keys, node, f"{humanize.keys(round(keys))} not used for {humanize.seconds(IDLE_EDGES_S[at - 1])}"
    elif order == "lfu":
        lowest = range(len(FREQUENCY_EDGES))
        for keys, node, at in _first_bin([(node, node.stats.frequency) for node in nodes], lowest):
            yield keys, node, f"{humanize.keys(round(keys))} with a counter below {FREQUENCY_EDGES[at]}"
    elif order == "ttl":
        for node in nodes:
            if node.stats.soonest_expiry_s is not None:
                yield -node.stats.soonest_expiry_s, node, f"from {humanize.moment(node.stats.soonest_expiry_s)} UTC on"


def _first_bin(
    histograms: list[tuple[Node, tuple[Figure, ...] | None]], order: range
) -> Iterator[tuple[float, Node, int]]:
    """Yield the keys that namespaces have in the first bin, in this order, in which any has one."""
    for at in order:
        found = [(keys, node, at) for node, bins in histograms if bins and (keys := plain(bins[at])) >= 1]
        if found:
            yield from found
            return
