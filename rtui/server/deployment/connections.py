"""The connections of a deployment: to its target, to another node in its place, and to the nodes of a cluster.

An attempt at the home connection of a cluster that fails is followed by one at the next address: first those that the
user gave, then the nodes that the cluster has told of. Any node will do, since each knows the cluster. The address that
has answered last is tried first after a loss.

Each node of a cluster has one connection, opened with the first question to it. The home connection leads to a node of
the cluster, too, and serves for questions to that one. Which node that is was asked on one connection: after a
reconnect it may be another one, and until that is asked again each node has a connection of its own. Connections that a
scan uses stay open. Of the others the MOST_IDLE stay that were used last.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from rtui.server.deployment.topology import Node
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.connection import Connection, State
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
) -> Connection:
    """Return a connection that is not open yet; raises TargetError for a credential provider that can't be used.

    To a service, each attempt asks its Sentinels first, unless `locator` says where attempts go. `logins` makes the
    passwords where another connection has what makes them.
    """
    log = CommandLog() if log is None else log
    if target.login is not None and logins is None:
        from rtui.server.deployment.credentials import credentials_of  # noqa: PLC0415 - few have passwords that expire

        logins = credentials_of(target.login)
    if target.sentinels is not None and locator is None:
        from rtui.server.deployment.sentinel import PrimaryFinder  # noqa: PLC0415 - redis-py, for those who have Sentinels

        locator = PrimaryFinder(target, target.sentinels, log)
    return Connection(target, log=log, locator=locator, logins=logins)


class SeedFinder:
    """Says where the home connection goes: to the target, after a failed attempt to the next node that is known."""

    note = None

    def __init__(self, target: Target) -> None:
        self._targets = [target, *(replace(target, host=host, port=port, seeds=()) for host, port in target.seeds)]
        self._at = 0
        self._is_retry = False

    @property
    def count(self) -> int:
        """How many addresses there are."""
        return len(self._targets)

    def succeeded(self) -> None:
        """Begin with the same address next time."""
        self._is_retry = False

    def learn(self, nodes: Iterable[Node]) -> None:
        """Go on to these nodes, too, where none of the others answers."""
        known = {(one.host, one.port) for one in self._targets}
        new = [(one.host, one.port) for one in nodes if (one.host, one.port) not in known]
        like = self._targets[0]
        self._targets += [replace(like, host=host, port=port, socket_path=None, seeds=()) for host, port in new]

    async def locate(self) -> Target:
        """Return where the next attempt goes."""
        if self._is_retry:
            self._at = (self._at + 1) % len(self._targets)
        self._is_retry = True
        return self._targets[self._at]

    def refuses(self, server: ServerIdentity) -> ConnectFailure | None:
        """Refuse no server: any node of the cluster will do."""

    async def close(self) -> None:
        """End nothing: it asks nobody."""


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
