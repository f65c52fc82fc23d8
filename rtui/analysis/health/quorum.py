"""Who decides that a primary is dead: the nodes of a cluster as one of them sees them, the Sentinels of a service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rtui.analysis.health.lines import About, Lines
from rtui.analysis.health.panel import Line
from rtui.analysis.health.sample import Peer, Sample, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Column, Table, Unit
from rtui.keyspace.slots import SLOTS

CLUSTER: Final = "cluster-failing"
NODES: Final = "cluster-node-down"
SENTINELS: Final = "sentinels-failing"

_NODE: Final = Column("node", "node", Unit.NAME)
_ROLE: Final = Column("role", "role", Unit.TEXT, 8)
_LINK: Final = Column("link", "link", Unit.TEXT, 12, "Whether there is a connection to it")
_SLOTS: Final = Column("slots", "slots", Unit.NUMBER, 6)

_SENTINEL: Final = Column("sentinel", "Sentinel", Unit.TEXT, 21)
_SAYS: Final = Column(
    "says", "says", Unit.TEXT, 0, "s_down: it does not reach the primary; o_down: nor do enough others"
)
_PRIMARY: Final = Column("primary", "primary", Unit.TEXT, 21)
_QUORUM: Final = Column("quorum", "quorum", Unit.NUMBER, 7, "How many must agree that the primary is dead")
_SENTINELS: Final = Column("sentinels", "Sentinels", Unit.NUMBER, 9, "How many it knows")
_REPLICAS: Final = Column("replicas", "replicas", Unit.NUMBER, 8, "How many it knows")

_STATE: Final = Column("state", "state", Unit.TEXT, 12)


def cluster_lines(view: HealthView) -> Iterator[Line]:
    """Yield how the cluster is as this node sees it: its slots, its nodes, and whether enough are in reach."""
    lines = Lines(view, Source.CLUSTER_INFO)
    yield lines.gauge("cluster_state", "cluster", Unit.TEXT, About("", "ok", CLUSTER))
    yield lines.gauge("cluster_slots_assigned", "slots that have a node", Unit.NUMBER, About(normal=f"{SLOTS}"))
    yield lines.gauge("cluster_slots_pfail", "slots whose node may be down", Unit.NUMBER, About(normal="0"))
    yield lines.gauge("cluster_slots_fail", "slots whose node is down", Unit.NUMBER, About(normal="0"))
    yield lines.gauge("cluster_known_nodes", "nodes", Unit.COUNT)
    yield lines.gauge("cluster_size", "primaries with slots", Unit.COUNT)
    told = view.told(Source.CLUSTER_NODES)
    if told is None:
        yield lines.given("nodes_out_of_reach", "nodes out of reach", Unit.COUNT, view.unknown(Source.CLUSTER_NODES))
        return
    quorum = quorum_of(told)
    about = About(
        f"{quorum.reached} of {quorum.primaries} primaries with slots are in reach; {quorum.words}", "0", NODES
    )
    yield lines.given("nodes_out_of_reach", "nodes out of reach", Unit.COUNT, len(out_of_reach(told)), about)


def out_of_reach(sample: Sample) -> tuple[Peer, ...]:
    """Return the nodes of the cluster that the one which was asked does not reach."""
    return tuple(one for one in sample.peers if not one.is_self and (one.state != "ok" or not one.is_linked))


@dataclass(frozen=True, slots=True)
class Quorum:
    """How many primaries there are that have a say when one has died."""

    reached: int
    primaries: int

    @property
    def words(self) -> str:
        """That, and how many it takes."""
        reached = f"{self.reached} of {self.primaries} primaries with slots are in reach"
        return f"{reached}; a failover takes {self.primaries // 2 + 1} of them"


def quorum_of(sample: Sample) -> Quorum:
    """Return the primaries with slots of a cluster, and how many of them are in reach."""
    lost = out_of_reach(sample)
    primaries = [one for one in sample.peers if not one.is_replica and one.slots]
    return Quorum(sum(one not in lost for one in primaries), len(primaries))


def sentinel_lines(view: HealthView) -> Iterator[Line]:
    """Yield how many Sentinels answer, where the target is a service of theirs."""
    told = view.told(Source.SENTINELS)
    if told is None or not told.sentinels:
        return
    answering = [one for one in told.sentinels if not one.failure]
    needed = needed_sentinels(told)
    said = f"of {len(told.sentinels)} that were asked" + (f"; a failover takes {needed}" if needed else "")
    about = About(said, "all", SENTINELS)
    lines = Lines(view, Source.SENTINELS)
    yield lines.given("sentinels_answering", "Sentinels that answer", Unit.COUNT, len(answering), about)


def needed_sentinels(sample: Sample) -> int | None:
    """Return how many Sentinels a failover takes: the quorum, and a majority of all; None where none answers."""
    needed = [max(one.quorum or 0, (one.sentinels or 0) // 2 + 1) for one in sample.sentinels if not one.failure]
    return max(needed, default=None)


def quorum_tables(view: HealthView) -> Iterator[Table]:
    """Yield the nodes of the cluster as this one sees them, and the Sentinels with what they say."""
    told = view.told(Source.CLUSTER_NODES)
    if told is not None and told.peers:
        peers = tuple(
            (
                one.address,
                "replica" if one.is_replica else "primary",
                one.state,
                "itself" if one.is_self else "connected" if one.is_linked else "disconnected",
                one.slots,
            )
            for one in told.peers
        )
        yield Table("peers", "Nodes as this one sees them", (_NODE, _ROLE, _STATE, _LINK, _SLOTS), peers)
    told = view.told(Source.SENTINELS)
    if told is not None and told.sentinels:
        sentinels = tuple(
            (one.address, one.failure or one.flags, one.primary, one.quorum, one.sentinels, one.replicas)
            for one in told.sentinels
        )
        columns = (_SENTINEL, _SAYS, _PRIMARY, _QUORUM, _SENTINELS, _REPLICAS)
        yield Table("sentinels", "Sentinels", columns, sentinels)
