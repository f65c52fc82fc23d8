"""Where the home connection of a cluster goes: to the target that the user named, or a node in its place.

An attempt that fails is followed by one at the next address: first those that the user gave, then the nodes that the
cluster has told of. Any node will do, since each knows the cluster. The address that has answered last is tried first
after a loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rtui.server.deployment.topology import Node
from rtui.server.wire.errors import ConnectFailure
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.target import Target


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
