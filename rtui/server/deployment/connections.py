"""The connections of a deployment: to its target, to another node in its place, and to the nodes of a cluster.

After a failed attempt at the home connection of a cluster the next address is tried: first those of the user, then the
nodes that the cluster has announced. Any node will do, since each knows the cluster. After a loss the last successful
address is tried first.

Each node of a cluster has one connection, opened with the first question to it. The home connection leads to a node of
the cluster, too, and serves for questions to that one. Its node id was read on one connection: after a reconnect it may
be another node, and until its id is read again each node has a connection of its own. Connections that a scan uses stay
open. Of the others the MOST_IDLE last used ones stay.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from rtui.server.deployment.topology import Node
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import HEARTBEAT_S, Connection, State
from rtui.server.wire.errors import ConnectFailure, ConnectionLost
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.opening import Locator, Logins
from rtui.server.wire.supervised_tasks import BackgroundTasks
from rtui.server.wire.target import Target


def connection_to(
    target: Target,
    log: CommandLog | None = None,
    *,
    locator: Locator | None = None,
    logins: Logins | None = None,
    heartbeat_s: float = HEARTBEAT_S,
) -> Connection:
    """Return a connection that is not open yet; raises TargetError for an unusable credential provider.

    To a service, each attempt asks its Sentinels first, unless `locator` chooses addresses. `logins` are shared
    passwords of another connection.
    """
    log = CommandLog() if log is None else log
    if target.login is not None and logins is None:
        from rtui.server.deployment.credentials import credentials_of  # noqa: PLC0415 - few have passwords that expire

        logins = credentials_of(target.login)
    if target.sentinels is not None and locator is None:
        from rtui.server.deployment.sentinel import PrimaryFinder  # noqa: PLC0415 - redis-py, for those who have Sentinels

        locator = PrimaryFinder(target, target.sentinels, log)
    return Connection(target, heartbeat_s=heartbeat_s, log=log, locator=locator, logins=logins)


class SeedFinder:
    """Chooses the address of the home connection: the target, and after a failed attempt the next known node."""

    note = None

    def __init__(self, target: Target) -> None:
        self._targets = [target, *(replace(target, host=host, port=port, seeds=()) for host, port in target.seeds)]
        self._at = 0
        self._is_retry = False

    @property
    def count(self) -> int:
        return len(self._targets)

    def succeeded(self) -> None:
        self._is_retry = False

    def learn(self, nodes: Iterable[Node]) -> None:
        known = {(target.host, target.port) for target in self._targets}
        new = [(node.host, node.port) for node in nodes if (node.host, node.port) not in known]
        like = self._targets[0]
        self._targets += [replace(like, host=host, port=port, socket_path=None, seeds=()) for host, port in new]

    async def locate(self) -> Target:
        if self._is_retry:
            self._at = (self._at + 1) % len(self._targets)
        self._is_retry = True
        return self._targets[self._at]

    def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
        """Refuse no server: any node of the cluster will do."""

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


MOST_IDLE: Final = 64
"""The most connections to nodes that stay open for further questions about keys, besides those of a scan."""


class NodeConnections:
    """The connections to nodes, by node id; `close` them at the end. The home connection is not among them."""

    def __init__(
        self,
        home: Connection,
        connect: Callable[[Target], Connection],
        node: Callable[[str], Node | None],
        is_needed: Callable[[str], bool],
    ) -> None:
        """`node` returns a node of the cluster by its id, `connect` makes a connection that is not open yet.

        `is_needed` tells whether the connection to a node has to stay open for a reason of the caller.
        """
        self.home_id = ""
        """The id of the node behind the home connection when it was last read; empty before."""
        self._home = home
        self._home_generation = -1
        """The generation of the home connection in which it was read."""
        self._connect, self._node, self._is_needed = connect, node, is_needed
        self._open: OrderedDict[str, Connection] = OrderedDict()
        """The last used connection is at the end."""
        self._scanned: set[str] = set()
        self._closing = BackgroundTasks()

    def know_home(self, node_id: str, generation: int) -> None:
        self.home_id, self._home_generation = node_id, generation

    def _is_home(self, node_id: str) -> bool:
        return (node_id, self._home.generation) == (self.home_id, self._home_generation)

    def target_of(self, node: Node) -> Target:
        """Return a node's target: the user's for the node behind the home connection, else the cluster's address."""
        home = self._home.target
        if self._is_home(node.id):
            return home
        return replace(home, host=node.host, port=node.port, socket_path=None, seeds=())

    def link(self, node_id: str) -> State | None:
        """Return the state of the connection to a node; None if it has no connection of its own."""
        found = self._open.get(node_id)
        return None if found is None else found.link

    async def connection(self, node_id: str) -> Connection:
        """Return the connection to a node once it has been tried; raises ConnectionLost for a node that is gone."""
        if self._is_home(node_id) and self._home.is_online and node_id not in self._scanned:
            return self._home
        found = self._open.get(node_id)
        if found is None:
            node = self._node(node_id)
            if node is None:
                raise ConnectionLost("The node is no longer in the cluster.")
            found = self._open[node_id] = self._connect(self.target_of(node))
            found.start()
            self._close_idle()
        self._open.move_to_end(node_id)
        await found.tried()
        return found

    def keep_open(self, node_id: str) -> None:
        """Keep the connection to a node for a scan: it is not the home connection from now on, and stays open."""
        self._scanned.add(node_id)

    def _close_idle(self) -> None:
        idle = [node_id for node_id in self._open if node_id not in self._scanned and not self._is_needed(node_id)]
        for node_id in idle[: max(0, len(idle) - MOST_IDLE)]:
            self.forget(node_id)

    def forget(self, node_id: str) -> None:
        """Close the connection to a node in the background; another one is made on demand."""
        connection = self._open.pop(node_id, None)
        self._scanned.discard(node_id)
        if connection is not None:
            self._closing.start(connection.close(), name="rtui closing")

    async def close(self) -> None:
        connections = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(connection.close() for connection in connections), self._closing.finish())
