"""The servers of a deployment as a scan wants them: those that it begins with, and the nodes that come meanwhile."""

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
        """`queries_of` returns what is asked about the keys of a node, `only_primaries` is for nodes that come."""
        self._deployment, self._queries_of, self._only_primaries = deployment, queries_of, only_primaries

    def scan_node(self, node: ServerNode, size: int | None = None) -> ScanNode:
        """Return a server to be scanned from its beginning; one that can't be reached is taken for one like home."""
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
        """Return the servers that a scan begins with; `sizes` are their numbers of keys by id."""
        return [self.scan_node(one, sizes.get(one.id)) for one in nodes]

    async def owners(self) -> Mapping[int, str]:
        """Return by slot the id of the node that serves it now; raises ConnectFailure."""
        await self._deployment.look()
        topology = self._deployment.topology
        return {} if topology is None else topology.owners

    @property
    def members(self) -> frozenset[str]:
        """The ids of all nodes of the cluster, as it was looked at last."""
        topology = self._deployment.topology
        return frozenset() if topology is None else frozenset(node.id for node in topology.nodes)

    @property
    def given_up(self) -> frozenset[str]:
        """The ids of the primaries that the cluster has given up, with all of their replicas."""
        topology = self._deployment.topology
        return frozenset() if topology is None else topology.given_up

    async def node(self, node_id: str) -> ScanNode:
        """Return a node that has come, to be scanned from its beginning; raises ConnectionLost for one that is gone."""
        return self.scan_node(await self._deployment.scanned_node(node_id, only_primaries=self._only_primaries))
