"""The connections to the nodes of a cluster, one a node, each opened with the first question to it.

The home connection leads to a node of the cluster, too, and serves for questions to that one. Which node that is was
asked on one connection: after a reconnect it may be another one, and until that is asked again each node has a
connection of its own.

Connections that a scan uses stay open. Of the others the MOST_IDLE stay that were used last.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rtui.server.deployment.topology import Node
from rtui.server.wire.connection import Connection, State
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.supervised_tasks import BackgroundTasks
from rtui.server.wire.target import Target

MOST_IDLE: Final = 64
"""Connections to nodes that stay open for further questions about their keys; those of a scan are not counted."""


class NodeConnections:
    """The connections to nodes, by the nodes' ids; `close` them at the end, the home connection is not among them."""

    def __init__(
        self,
        home: Connection,
        connect: Callable[[Target], Connection],
        node: Callable[[str], Node | None],
        is_needed: Callable[[str], bool],
    ) -> None:
        """`node` returns a node of the cluster by its id, `connect` makes a connection that is not open yet.

        `is_needed` says of a node's id whether its connection has to stay open for a reason that is not known here.
        """
        self.home_id = ""
        """The id of the node that the home connection led to when that was asked; empty before."""
        self._home = home
        self._home_generation = -1
        """The generation of the home connection that this was asked on."""
        self._connect, self._node, self._is_needed = connect, node, is_needed
        self._open: OrderedDict[str, Connection] = OrderedDict()
        """The one that was used last at the end."""
        self._scanned: set[str] = set()
        self._closing = BackgroundTasks()

    def know_home(self, node_id: str, generation: int) -> None:
        """Learn which node the home connection leads to in this generation of it."""
        self.home_id, self._home_generation = node_id, generation

    def _is_home(self, node_id: str) -> bool:
        """Whether the home connection leads to this node, as far as that is known."""
        return (node_id, self._home.generation) == (self.home_id, self._home_generation)

    def target_of(self, node: Node) -> Target:
        """How to connect to a node: to that of the home connection as the user did, to others as the cluster says."""
        home = self._home.target
        if self._is_home(node.id):
            return home
        return replace(home, host=node.host, port=node.port, socket_path=None, seeds=())

    def link(self, node_id: str) -> State | None:
        """Return the state of the connection to a node; None where it has none of its own."""
        found = self._open.get(node_id)
        return None if found is None else found.link

    async def connection(self, node_id: str) -> Connection:
        """Return the connection to a node once it has been tried; raises ConnectionLost for one that is gone."""
        if self._is_home(node_id) and self._home.is_online and node_id not in self._scanned:
            return self._home
        found = self._open.get(node_id)
        if found is None:
            node = self._node(node_id)
            if node is None:
                raise ConnectionLost("The node is not in the cluster any more.")
            found = self._open[node_id] = self._connect(self.target_of(node))
            found.start()
            self._close_idle()
        self._open.move_to_end(node_id)
        await found.tried()
        return found

    def keep_open(self, node_id: str) -> None:
        """Have a scan use the connection to a node: it is not the home connection from now on, and stays open."""
        self._scanned.add(node_id)

    def _close_idle(self) -> None:
        idle = [one for one in self._open if one not in self._scanned and not self._is_needed(one)]
        for node_id in idle[: max(0, len(idle) - MOST_IDLE)]:
            self.forget(node_id)

    def forget(self, node_id: str) -> None:
        """Close the connection to a node in the background; another one is made when it is wanted."""
        connection = self._open.pop(node_id, None)
        self._scanned.discard(node_id)
        if connection is not None:
            self._closing.start(connection.close(), name="rtui closing")

    async def close(self) -> None:
        """Close all of them."""
        connections = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(one.close() for one in connections), self._closing.finish())
