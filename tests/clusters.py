"""Clusters for the tests: real servers on loopback that know each other from their first moment."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
from redis.cluster import ClusterNode, RedisCluster

from rtui.keyspace.slots import SLOTS, key_slot
from tests.servers import _RUNNING, START_TIMEOUT_S, Binary, Server, ServerDiedError, free_port, stop

NODE_TIMEOUT_MS = 1_000
"""After so long without an answer the others take a node for failed."""


@dataclass(slots=True)
class Member:
    """A node of a cluster: its server, its id, and at first its slots or the id of its primary."""

    server: Server
    id: str
    slots: tuple[int, int] | None = None
    primary_id: str | None = None

    @property
    def address(self) -> str:
        """`host:port@bus port`, as nodes write it."""
        return f"{self.server.host}:{self.server.port}@{self.server.port + 10_000}"

    def line(self, reader: Member) -> str:
        """Its line in the file in which another one remembers the cluster."""
        role = "master" if self.primary_id is None else "slave"
        flags = f"myself,{role}" if reader is self else role
        epoch = 0 if self.slots is None else 1 + self.slots[0] * 100 // SLOTS
        served = "" if self.slots is None else f" {self.slots[0]}-{self.slots[1]}"
        return f"{self.id} {self.address} {flags} {self.primary_id or '-'} 0 0 {epoch} connected{served}"


@dataclass(slots=True)
class TestCluster:
    """A cluster whose members are in the order in which they were made: primaries, then replicas."""

    __test__ = False
    members: list[Member]

    @property
    def primaries(self) -> list[Server]:
        """The servers that are primaries now."""
        return [one.server for one in self.members if one.server.is_running and one.server.admin.role()[0] == b"master"]

    def server(self, node_id: str) -> Server:
        """The server of a node."""
        return next(one.server for one in self.members if one.id == node_id)

    def node_id(self, server: Server) -> str:
        """The id of a server's node."""
        return next(one.id for one in self.members if one.server is server)

    def client(self) -> RedisCluster:
        """An independent client of the whole cluster; close it."""
        return RedisCluster(startup_nodes=[ClusterNode(one.server.host, one.server.port) for one in self.members])

    def wait_ok(self) -> None:
        """Wait until every node says that the cluster is whole, and replicas are in sync."""
        until = time.monotonic() + START_TIMEOUT_S
        for member in self.members:
            while not _is_ok(member.server.admin):
                if time.monotonic() > until:
                    raise ServerDiedError(f"the cluster does not come up\n{member.server.log()}")
                time.sleep(0.02)

    def reset(self) -> bool:
        """Empty it, and return whether its nodes have the roles and slots that they had at first."""
        for member in self.members:
            if not member.server.is_running or (member.slots is not None) != (
                member.server.admin.role()[0] == b"master"
            ):
                return False
            if member.slots is not None:
                member.server.admin.flushall()
        first = self.members[0].server.admin.execute_command("CLUSTER SLOTS")
        return [(one[0], one[1]) for one in sorted(first)] == [one.slots for one in self.members if one.slots]

    def fill(self, keys: Iterable[bytes]) -> None:
        """Write string keys, each to the primary of its slot."""
        owners: dict[int, redis.Redis] = {}
        for member in self.members:
            if member.slots is not None:
                owners |= dict.fromkeys(range(member.slots[0], member.slots[1] + 1), member.server.admin)
        by_owner: dict[int, list[bytes]] = {}
        for key in keys:
            by_owner.setdefault(id(owners[key_slot(key)]), []).append(key)
        for owner in {id(one): one for one in owners.values()}.values():
            pipeline = owner.pipeline(transaction=False)
            for key in by_owner.get(id(owner), ()):
                pipeline.set(key, b"x")
            pipeline.execute()

    def move_slot(self, slot: int, source: Server, target: Server, *, batch: int = 100) -> None:
        """Move a slot key by key, as redis-cli does."""
        source_id, target_id = self.node_id(source), self.node_id(target)
        self._set_slot(target, slot, "IMPORTING", source_id)
        self._set_slot(source, slot, "MIGRATING", target_id)
        while keys := source.admin.execute_command("CLUSTER GETKEYSINSLOT", slot, batch):
            source.admin.execute_command("MIGRATE", target.host, target.port, "", 0, 5000, "KEYS", *keys)
        self._set_slot(target, slot, "NODE", target_id)
        self._set_slot(source, slot, "NODE", target_id)

    def _set_slot(self, server: Server, slot: int, state: str, node_id: str) -> None:
        """Valkey waits for its replicas, and says NOREPLICAS where they are slower than two seconds by default."""
        most = ("TIMEOUT", 60_000) if server.binary.name.startswith("valkey") else ()
        server.admin.execute_command("CLUSTER SETSLOT", slot, state, node_id, *most)


def _is_ok(admin: redis.Redis) -> bool:
    if admin.cluster("INFO")["cluster_state"] != "ok":
        return False
    replication = admin.info("replication")
    return bool(replication["role"] != "slave" or replication["master_link_status"] == "up")


def start_cluster(binary: Binary, *args: str, primaries: int = 3, replicas: int = 0) -> TestCluster:
    """Start a cluster of so many primaries, and so many replicas of each; stop it with `stop_cluster`."""
    bounds = [SLOTS * at // primaries for at in range(primaries + 1)]
    members = [
        Member(_server(binary, args), secrets.token_hex(20), (bounds[at], bounds[at + 1] - 1))
        for at in range(primaries)
    ]
    members += [
        Member(_server(binary, args), secrets.token_hex(20), primary_id=members[at % primaries].id)
        for at in range(primaries * replicas)
    ]
    for member in members:
        lines = [one.line(member) for one in members]
        (member.server.folder / "nodes.conf").write_text("\n".join([*lines, "vars currentEpoch 200 lastVoteEpoch 0\n"]))
        member.server.launch()
    cluster = TestCluster(members)
    try:
        for member in members:
            member.server.wait_ready()
        cluster.wait_ok()
    except BaseException:
        stop_cluster(cluster)
        raise
    return cluster


def stop_cluster(cluster: TestCluster) -> None:
    """Stop all nodes and remove their folders."""
    for member in cluster.members:
        stop(member.server)


@contextmanager
def cluster_of(binary: Binary, *args: str, primaries: int = 3, replicas: int = 0) -> Iterator[TestCluster]:
    """A cluster of one's own, stopped at the end of the block."""
    cluster = start_cluster(binary, *args, primaries=primaries, replicas=replicas)
    try:
        yield cluster
    finally:
        stop_cluster(cluster)


def _server(binary: Binary, args: tuple[str, ...]) -> Server:
    settings = (
        *("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"),
        *("--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--repl-diskless-sync-delay", "0"),
    )
    server = Server(binary, Path(tempfile.mkdtemp(prefix="rtui-node-")), free_port(), (*settings, *args))
    _RUNNING.append(server)
    return server
