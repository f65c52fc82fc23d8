"""The servers of a deployment for a scan: the initial ones, and nodes that join meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rtui.server.deployment.nodes import Deployment, ServerNode
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import QuerySource, ScanNode


class ScannedCluster:
    """A cluster that is scanned; implements `scan.node.Cluster`."""

    def __init__(
        self,
        deployment: Deployment,
        queries_of: Callable[[ServerNode], QuerySource] | None = None,
        *,
        only_primaries: bool = False,
    ) -> None:
        """`queries_of` returns the queries about the keys of a node; `only_primaries` applies to nodes that join."""
        self._deployment, self._queries_of, self._only_primaries = deployment, queries_of, only_primaries

    def scan_node(self, node: ServerNode, size: int | None = None) -> ScanNode:
        """Return a server to be scanned from its beginning; an unreachable one is assumed to be like home."""
        is_known = node.connection.server.version is not None
        server = node.connection.server if is_known else self._deployment.home.server
        queries = None if self._queries_of is None else self._queries_of(node)
        return ScanNode(
            *(node.connection, dialect_of(server), node.id),
            slots=node.slots,
            size=size,
            queries=queries,
            primary=node.primary,
        )

    def scan_nodes(self, nodes: Sequence[ServerNode], sizes: Mapping[str, int | None]) -> list[ScanNode]:
        """Return the initial servers of a scan; `sizes` are their numbers of keys by id."""
        return [self.scan_node(one, sizes.get(one.id)) for one in nodes]

    async def owners(self) -> Mapping[int, str]:
        """Return the ids of the nodes that serve each slot now; raises ConnectFailure."""
        await self._deployment.look()
        topology = self._deployment.topology
        return {} if topology is None else topology.owners

    @property
    def members(self) -> frozenset[str]:
        """The ids of all nodes in the last known topology."""
        topology = self._deployment.topology
        return frozenset() if topology is None else frozenset(node.id for node in topology.nodes)

    @property
    def given_up(self) -> frozenset[str]:
        """The ids of the primaries that are down with all of their replicas."""
        topology = self._deployment.topology
        return frozenset() if topology is None else topology.given_up

    async def node(self, node_id: str) -> ScanNode:
        """Return a node that has joined, to be scanned from its beginning; raises ConnectionLost if it is gone."""
        return self.scan_node(await self._deployment.scanned_node(node_id, only_primaries=self._only_primaries))
