"""A simulated cluster of any number of nodes, in a process of its own: `simulated(nodes=1000)`.

Each node listens on a loopback port of its own and answers as `cluster_node` says. What the cluster is made of can be
changed while clients use it, by what is asked of `SimulatedCluster`: slots move, with their keys at once, as Valkey's
atomic migration has it; nodes die, are replaced by a replica, come and go. Which nodes and slots, the seed says. No key
comes or goes: every one of `keys` is there throughout, unless its slot is not served.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import hiredis

from rtui.keyspace.slots import SLOTS
from rtui.server.wire.target import Target
from tests.fakes.cluster_node import Keyspace, Node
from tests.servers import CHECKOUT
from tests.wire import bulk

LOOPBACK: Final = "127.0.0.1"

FIRST_PORTS: Final = (12_000, 20_000)
"""Ports are taken from somewhere between these on: they are below those that outgoing connections get."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a simulated cluster is, and how it counts cursors."""

    nodes: int = 1000
    """Primaries, each with the same number of slots at first."""
    keys: int = 100_000
    replicas: int = 0
    """Of each primary."""
    is_slotted: bool = True
    """Whether there is a hash table for each slot, as in Valkey 9.1, or one for all, as in Redis 7.0."""
    seed: int = 1


class Cluster:
    """The nodes and what they know of each other, inside of the process that simulates them."""

    def __init__(self, shape: Shape) -> None:
        self.keyspace = Keyspace(shape.keys, shape.seed)
        self.is_slotted = shape.is_slotted
        self.epoch = shape.nodes
        """Grows with every change."""
        self.rng = Random(shape.seed)
        self.owners: list[Node | None] = [None] * SLOTS
        self.nodes: list[Node] = []
        self.connections = self.most_connections = 0
        self._clients: dict[str, set[asyncio.Transport]] = {}
        self._servers: dict[str, asyncio.Server] = {}
        self._ports = iter(range(self.rng.randrange(*FIRST_PORTS), 1 << 16))
        self._lines: tuple[int, dict[str, bytes]] = -1, {}
        self._slots: tuple[int, bytes] = -1, b""
        self._shape = shape

    async def start(self) -> None:
        shape = self._shape
        primaries = [await self._new_node() for _ in range(shape.nodes)]
        for at, node in enumerate(primaries):
            node.epoch = at + 1
            for slot in range(SLOTS * at // shape.nodes, SLOTS * (at + 1) // shape.nodes):
                self.owners[slot] = node
        for _ in range(shape.replicas):
            for primary in primaries:
                await self._new_node(primary)
        self._changed()

    async def _new_node(self, primary: Node | None = None) -> Node:
        for port in self._ports:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((LOOPBACK, port))
                listener.listen(128)
            except OSError:
                listener.close()
                continue
            break
        node = Node(self, f"{self.rng.getrandbits(160):040x}", port, primary)
        self.nodes.append(node)
        await self._listen(node, listener)
        return node

    async def _listen(self, node: Node, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._clients[node.id] = set()
        self._servers[node.id] = await loop.create_server(lambda: Client(self, node), sock=listener)

    def _stop(self, node: Node) -> None:
        self._servers.pop(node.id).close()
        for transport in self._clients.pop(node.id):
            transport.abort()

    def connected(self, node: Node, transport: asyncio.Transport) -> None:
        self._clients[node.id].add(transport)
        self.connections += 1
        self.most_connections = max(self.connections, self.most_connections)

    def disconnected(self, node: Node, transport: asyncio.Transport) -> None:
        self._clients.get(node.id, set()).discard(transport)
        self.connections -= 1

    def _changed(self) -> None:
        self.epoch += 1
        for node in self.nodes:
            node.slots = []
        for slot, owner in enumerate(self.owners):
            if owner is not None:
                owner.slots.append(slot)

    @property
    def _primaries(self) -> list[Node]:
        return [node for node in self.nodes if node.primary is None and not node.is_down]

    def move(self, slots: int) -> str:
        """Move so many slots, one after the other, from one primary to another."""
        source = self.rng.choice([node for node in self._primaries if len(node.slots) > 1])
        destination = self.rng.choice([node for node in self._primaries if node is not source])
        moved = source.slots[: min(slots, len(source.slots) - 1)]
        self._give(moved, destination)
        return f"slots {moved[0]} to {moved[-1]} move from {source.port} to {destination.port}"

    def _give(self, slots: list[int], node: Node) -> None:
        for slot in slots:
            self.owners[slot] = node
        node.epoch = self.epoch + 1
        self._changed()

    async def add(self) -> str:
        """Add a primary that takes a part of the slots of another one."""
        node = await self._new_node()
        source = max(self._primaries, key=lambda one: len(one.slots))
        self._give(source.slots[: len(source.slots) // 2], node)
        return f"{node.port} is new"

    def remove(self) -> str:
        """Have a primary leave: another one takes its slots over."""
        leaving, other = self.rng.sample(self._primaries, 2)
        self._give(leaving.slots, other)
        self.nodes = [node for node in self.nodes if node is not leaving]
        self._stop(leaving)
        return f"{leaving.port} has left"

    def kill(self) -> str:
        """Have a primary die; a replica takes its slots over, else nobody serves them any more."""
        dying = self.rng.choice([node for node in self._primaries if node.slots])
        dying.is_down = True
        heir = next((node for node in self.nodes if node.primary is dying and not node.is_down), None)
        for slot in dying.slots:
            self.owners[slot] = heir
        if heir is not None:
            heir.primary, heir.epoch = None, self.epoch + 1
            for node in self.nodes:
                if node.primary is dying:
                    node.primary = heir
        self._stop(dying)
        self._changed()
        return f"{dying.port} is down"

    def ids(self) -> list[str | None]:
        return [None if owner is None else owner.id for owner in self.owners]

    def figures(self) -> dict[str, Any]:
        calls = sum((node.calls for node in self.nodes), start=type(self.nodes[0].calls)())
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "connections": self.connections,
            "most_connections": self.most_connections,
            "commands": sum(calls.values()),
            "calls": {name.decode(): number for name, number in calls.items()},
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "uncovered": [slot for slot, owner in enumerate(self.owners) if owner is None],
        }

    def nodes_text(self, reader: Node) -> bytes:
        epoch, lines = self._lines
        if epoch != self.epoch:
            lines = {node.id: self._line(node) for node in self.nodes}
            self._lines = self.epoch, lines
        own = lines[reader.id].replace(b" master ", b" myself,master ").replace(b" slave ", b" myself,slave ")
        return b"".join((lines | {reader.id: own}).values())

    def _line(self, node: Node) -> bytes:
        role = "master" if node.primary is None else "slave"
        flags, link = (f"{role},fail", "disconnected") if node.is_down else (role, "connected")
        primary = "-" if node.primary is None else node.primary.id
        address = f"{LOOPBACK}:{node.port}@{node.port + 10_000}"
        times = "0 1763900000000" if not node.is_down else "1763900000000 1763900000000"
        served = "".join(f" {first}" if first == last else f" {first}-{last}" for first, last in _ranges(node.slots))
        return f"{node.id} {address} {flags} {primary} {times} {node.epoch} {link}{served}\n".encode()

    def slots_reply(self) -> bytes:
        if self._slots[0] != self.epoch:
            replicas: dict[str, list[Node]] = {}
            for node in self.nodes:
                if node.primary is not None and not node.is_down:
                    replicas.setdefault(node.primary.id, []).append(node)
            entries = [
                b"*%d\r\n:%d\r\n:%d\r\n%b" % (3 + len(others), first, last, b"".join(map(_endpoint, [node, *others])))
                for node in self.nodes
                for others in [replicas.get(node.id, [])]
                for first, last in _ranges(node.slots)
            ]
            self._slots = self.epoch, b"*%d\r\n%b" % (len(entries), b"".join(entries))
        return self._slots[1]

    def info_text(self, reader: Node) -> bytes:
        served = sum(owner is not None for owner in self.owners)
        fields = {
            "cluster_state": "ok" if served == SLOTS else "fail",
            "cluster_slots_assigned": served,
            "cluster_known_nodes": len(self.nodes),
            "cluster_size": sum(bool(node.slots) for node in self.nodes),
            "cluster_current_epoch": self.epoch,
            "cluster_my_epoch": reader.epoch,
        }
        return "".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode()


def _ranges(slots: list[int]) -> Iterator[tuple[int, int]]:
    first = last = -2
    for slot in slots:
        if slot != last + 1:
            if last >= 0:
                yield first, last
            first = slot
        last = slot
    if last >= 0:
        yield first, last


def _endpoint(node: Node) -> bytes:
    return b"*4\r\n%b:%d\r\n%b*0\r\n" % (bulk(LOOPBACK.encode()), node.port, bulk(node.id.encode()))


class Client(asyncio.Protocol):
    def __init__(self, cluster: Cluster, node: Node) -> None:
        self._cluster, self._node = cluster, node
        self._reader = hiredis.Reader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._cluster.connected(self._node, transport)

    def data_received(self, data: bytes) -> None:
        """Answer all commands that are complete in one write."""
        self._reader.feed(data)
        replies = []
        try:
            while (argv := self._reader.gets()) is not False:
                replies.append(self._node.answer(argv))
        except hiredis.ProtocolError:  # somebody else's
            self._transport.abort()
        self._transport.write(b"".join(replies))

    def connection_lost(self, exc: Exception | None) -> None:
        self._cluster.disconnected(self._node, self._transport)


class SimulatedCluster:
    """A simulated cluster from outside: where it is, and what is to happen to it."""

    def __init__(self, process: subprocess.Popen[str], shape: Shape) -> None:
        self.shape = shape
        self.pid = process.pid
        self._process = process
        self.port = int(self._answer())
        """Of its first node."""

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the simulated cluster has ended")
        return json.loads(line)

    def _ask(self, *words: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return self._answer()

    @property
    def target(self) -> Target:
        return Target(port=self.port)

    def keys(self) -> set[bytes]:
        return set(Keyspace(self.shape.keys, self.shape.seed).facts)

    def move(self, slots: int = 3) -> str:
        """Move slots from one primary to another; return which."""
        return str(self._ask("move", slots))

    def add(self) -> str:
        return str(self._ask("add"))

    def remove(self) -> str:
        return str(self._ask("remove"))

    def kill(self) -> str:
        return str(self._ask("kill"))

    def owners(self) -> dict[int, str]:
        """The ids of the primaries that serve the slots; without those that nobody does."""
        return {slot: owner for slot, owner in enumerate(self._ask("owners")) if owner is not None}

    def figures(self) -> dict[str, Any]:
        """The connections there are and were at most, the commands and their processor time in s, uncovered slots."""
        found: dict[str, Any] = self._ask("figures")
        return found


@contextmanager
def simulated(shape: Shape) -> Iterator[SimulatedCluster]:
    """A simulated cluster, ended with the block."""
    command = [sys.executable, "-m", "tests.fakes.cluster", *map(str, (shape.nodes, shape.keys, shape.replicas))]
    command += [str(int(shape.is_slotted)), str(shape.seed)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield SimulatedCluster(process, shape)
        finally:
            process.kill()


async def _serve(shape: Shape) -> None:
    """Simulate until standard input ends; a line of it is a change, answered by a line of JSON."""
    cluster = Cluster(shape)
    await cluster.start()
    changes: dict[str, Callable[..., Any]] = {
        "move": cluster.move,
        "add": cluster.add,
        "remove": cluster.remove,
        "kill": cluster.kill,
        "owners": cluster.ids,
        "figures": cluster.figures,
    }
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    _say(cluster.nodes[0].port)
    while line := await lines.readline():
        name, *numbers = line.decode().split()
        found = changes[name](*map(int, numbers))
        _say(await found if asyncio.iscoroutine(found) else found)


def _say(found: object) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    nodes, keys, replicas, is_slotted, seed = map(int, sys.argv[1:])
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_serve(Shape(nodes, keys, replicas, bool(is_slotted), seed)))
