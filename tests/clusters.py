"""Clusters and Sentinels for the tests: real servers on loopback that know each other from their first moment."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.cluster import ClusterNode, RedisCluster

from rtui.keyspace.slots import SLOTS, key_slot
from tests.servers import (
    _RUNNING,
    START_ATTEMPTS,
    Binary,
    Certificates,
    Server,
    ServerDiedError,
    answers,
    certificates,
    ending_with_parent,
    free_port,
    running,
    stop,
    wait_until,
)

SERVES_WITHIN_S = 5.0
"""Nodes know again so soon that all are there."""

NODE_TIMEOUT_MS = 1_000
"""After so long without an answer the others take a node for failed."""


def _written(owner: redis.Redis, slots: Iterable[Sequence[bytes]]) -> bool:
    """Write keys and values, by slot; return whether the cluster took them all."""
    pipeline = owner.pipeline(transaction=False)
    for pairs in slots:
        pipeline.execute_command("MSET", *pairs)
    try:
        pipeline.execute()
    except redis.exceptions.ClusterDownError:
        return False
    return True


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

    def remember(self, members: Sequence[Member]) -> None:
        """Write the file from which it knows its cluster when it starts."""
        lines = [*(one.line(self) for one in members), "vars currentEpoch 200 lastVoteEpoch 0\n"]
        (self.server.folder / "nodes.conf").write_text("\n".join(lines))


@dataclass(slots=True)
class TestCluster:
    """A cluster whose members are in the order in which they were made: primaries, then replicas."""

    __test__ = False
    members: list[Member]

    @property
    def primaries(self) -> list[Server]:
        return [one.server for one in self.members if one.server.is_running and one.server.admin.role()[0] == b"master"]

    def server(self, node_id: str) -> Server:
        return next(one.server for one in self.members if one.id == node_id)

    def node_id(self, server: Server) -> str:
        return next(one.id for one in self.members if one.server is server)

    def client(self) -> RedisCluster:
        """An independent client of the whole cluster; close it."""
        nodes = [ClusterNode(one.server.host, one.server.port) for one in self.members]
        tls = self.members[0].server.tls
        options: dict[str, Any] = {"ssl": True, "ssl_ca_certs": str(tls.ca)} if tls else {}
        return RedisCluster(startup_nodes=nodes, **options)

    def wait_ok(self) -> None:
        """Wait until every node says that the cluster is whole, and replicas are in sync."""
        for member in self.members:
            wait_ok(member.server)

    def reset(self) -> bool:
        """Empty it, and return whether its nodes have the roles and slots that they had at first, and serve them."""
        for member in self.members:
            if not member.server.is_running or (member.slots is not None) != (
                member.server.admin.role()[0] == b"master"
            ):
                return False
            if member.slots is not None:
                member.server.admin.flushall()
        if not self.serves():
            return False
        first = [one.slots for one in self.members if one.slots]
        for admin in (one.admin for one in self.primaries):
            known = admin.execute_command("CLUSTER SLOTS")
            is_moving = any(one["migrations"] for one in admin.cluster("NODES").values())
            if is_moving or [(one[0], one[1]) for one in sorted(known)] != first:
                return False
        return True

    def serves(self) -> bool:
        """Whether all slots are served, in a while: on a busy machine each node may take another one for failed."""
        primaries = self.primaries
        if any(one.admin.cluster("INFO")["cluster_slots_assigned"] != str(SLOTS) for one in primaries):
            return False
        with contextlib.suppress(ServerDiedError):
            wait_until(lambda: all(map(_serves, primaries)), str, SERVES_WITHIN_S)
            return True
        return False

    def fill(self, keys: Iterable[bytes]) -> None:
        """Write string keys, each to the primary of its slot."""
        by_slot: defaultdict[int, list[bytes]] = defaultdict(list)
        for key in keys:
            by_slot[key_slot(key)] += key, b"x"
        for member in self.members:
            if member.slots is not None:
                first, last = member.slots
                pairs = [some for slot, some in by_slot.items() if first <= slot <= last]
                while not _written(member.server.admin, pairs):
                    assert self.serves()

    def move_slots(self, slots: Sequence[int], source: Server, target: Server, *, batch: int = 100) -> None:
        """Move slots key by key, as redis-cli does; so many keys at a time, all slots in the same state."""
        self.begin_moves(slots, source, target)
        for slot in slots:
            while self.move_keys(slot, source, target, batch):
                pass
        target_id = self.node_id(target)
        set_slots(target, slots, "NODE", target_id)
        try:
            set_slots(source, slots, "NODE", target_id)
        except redis.ResponseError as refused:  # without any slot it has become a replica already
            if "only with masters" not in str(refused):
                raise

    def move_keys(self, slot: int, source: Server, target: Server, most: int) -> int:
        """Move so many keys of a slot at most, and return how many there were."""
        keys = source.admin.execute_command("CLUSTER GETKEYSINSLOT", slot, most)
        if keys:
            to = (target.host, target.port, "", 0, 5000, "REPLACE", "KEYS")
            source.admin.execute_command("MIGRATE", *to, *keys)
        return len(keys)

    def begin_moves(self, slots: Iterable[int], source: Server, target: Server) -> None:
        """Mark slots as being moved, with their keys where they are."""
        set_slots(target, slots, "IMPORTING", self.node_id(source))
        set_slots(source, slots, "MIGRATING", self.node_id(target))

    def cancel_moves(self, slots: Iterable[int], *servers: Server) -> None:
        for server in servers:
            set_slots(server, slots, "STABLE")


def set_slots(server: Server, slots: Iterable[int], state: str, *node_id: str) -> None:
    """Send CLUSTER SETSLOT for each slot.

    Valkey waits for its replicas, and says NOREPLICAS where they are slower than two seconds by default.
    """
    most = ("TIMEOUT", 60_000) if server.binary.name.startswith("valkey") else ()
    pipeline = server.admin.pipeline(transaction=False)
    for slot in slots:
        pipeline.execute_command("CLUSTER SETSLOT", slot, state, *node_id, *most)
    pipeline.execute()


def _serves(server: Server) -> bool:
    return bool(server.admin.cluster("INFO")["cluster_state"] == "ok")


def wait_ok(server: Server) -> None:
    """Wait until a node says that its cluster is whole, and is in sync if it is a replica."""

    def is_ok() -> bool:
        replication = server.admin.info("replication") if _serves(server) else {"role": ""}
        return bool(replication["role"] == "master" or replication.get("master_link_status") == "up")

    wait_until(is_ok, lambda: f"the cluster does not come up\n{server.log()}")


def start_cluster(
    binary: Binary, *args: str, primaries: int = 3, replicas: int = 0, tls: Certificates | bool = False
) -> TestCluster:
    """Start a cluster of so many primaries, and so many replicas of each; stop it with `stop_cluster`.

    With `tls`, certificates or those of loopback, its nodes talk to each other, and to clients, in TLS only.
    """
    for attempt in range(START_ATTEMPTS):
        cluster = _new_cluster(binary, args, primaries, replicas, tls=tls)
        try:
            for member in cluster.members:
                member.server.wait_ready()
            cluster.wait_ok()
        except BaseException as failed:
            stop_cluster(cluster)
            is_port_taken = isinstance(failed, ServerDiedError) and "in use" in str(failed)
            if not is_port_taken or attempt + 1 == START_ATTEMPTS:
                raise
        else:
            return cluster
    raise AssertionError("unreachable")


def _new_cluster(
    binary: Binary, args: tuple[str, ...], primaries: int, replicas: int, *, tls: Certificates | bool
) -> TestCluster:
    """Launch a cluster, not waiting until it answers."""
    bounds = [SLOTS * at // primaries for at in range(primaries + 1)]
    members = [new_member(binary, *args, tls=tls, slots=(bounds[at], bounds[at + 1] - 1)) for at in range(primaries)]
    members += [
        new_member(binary, *args, tls=tls, primary_id=members[at % primaries].id) for at in range(primaries * replicas)
    ]
    for member in members:
        member.remember(members)
        member.server.launch()
    return TestCluster(members)


def stop_cluster(cluster: TestCluster) -> None:
    for member in cluster.members:
        stop(member.server)


@contextmanager
def cluster_of(
    binary: Binary, *args: str, primaries: int = 3, replicas: int = 0, tls: Certificates | bool = False
) -> Iterator[TestCluster]:
    """A cluster of one's own, see `start_cluster`, stopped at the end of the block."""
    cluster = start_cluster(binary, *args, primaries=primaries, replicas=replicas, tls=tls)
    try:
        yield cluster
    finally:
        stop_cluster(cluster)


def new_member(
    binary: Binary,
    *args: str,
    tls: Certificates | bool = False,
    slots: tuple[int, int] | None = None,
    primary_id: str | None = None,
) -> Member:
    """A node that does not run yet; it ends with `stop` of its server, and in any case with this process."""
    settings = (
        *("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"),
        *("--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--repl-diskless-sync-delay", "0"),
        *(("--tls-cluster", "yes", "--tls-replication", "yes") if tls else ()),
    )
    folder = Path(tempfile.mkdtemp(prefix="rtui-node-"))
    server = Server(binary, folder, free_port(), (*settings, *args), tls=certificates() if tls is True else tls or None)
    _RUNNING.append(server)
    return Member(server, secrets.token_hex(20), slots, primary_id)


SERVICE = "mymaster"

DOWN_AFTER_MS = 300
"""After so long without an answer a Sentinel takes a server for dead."""


@dataclass(slots=True)
class Watched:
    """A service: its servers, the primary first, and the ports of its Sentinels."""

    servers: list[Server]
    sentinels: list[redis.Redis]
    ports: list[int]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"sentinel://{hosts}/{SERVICE}"

    def wait_seen(self) -> None:
        """Wait until each Sentinel is connected to the replica, which is in sync, and to the other Sentinels."""
        wait_until(lambda: all(map(_sees, self.sentinels)), lambda: "the Sentinels do not find each other")


def _sees(sentinel: redis.Redis) -> bool:
    replicas: Any = sentinel.sentinel_slaves(SERVICE)
    others: Any = sentinel.sentinel_sentinels(SERVICE)
    flags = [one["flags"] for one in (*replicas, *others)]  # such as `slave`, or `slave,disconnected`
    return flags == ["slave", "sentinel", "sentinel"] and replicas[0]["master-link-status"] == "ok"


@contextmanager
def watched(binary: Binary, *, lines: Sequence[str] = ()) -> Iterator[Watched]:
    """A primary and a replica with three Sentinels; `lines` are further settings of the Sentinels."""
    with ExitStack() as stack:
        primary = stack.enter_context(running(binary, "--repl-diskless-sync-delay", "0"))
        replica = stack.enter_context(running(binary, "--replicaof", f"127.0.0.1 {primary.port}"))
        clients, ids = [], {free_port(): secrets.token_hex(20) for _ in range(3)}
        ports = [*ids]
        for port, own in ids.items():
            settings = [
                f"sentinel myid {own}",
                f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 2",
                f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
                f"sentinel failover-timeout {SERVICE} 3000",
                f"sentinel known-replica {SERVICE} 127.0.0.1 {replica.port}",
                *(f"sentinel known-sentinel {SERVICE} 127.0.0.1 {at} {one}" for at, one in ids.items() if at != port),
                *lines,
            ]
            clients.append(stack.enter_context(_sentinel(binary, port, settings))[1])
        service = Watched([primary, replica], clients, ports)
        service.wait_seen()
        yield service


@contextmanager
def sentinel_of(
    binary: Binary, primary_port: int, *, service: str = SERVICE, tls: Certificates | None = None
) -> Iterator[tuple[int, int]]:
    """One Sentinel of a service: its port and its process id.

    With `tls` it talks TLS only, to the primary as well.
    """
    settings = [f"sentinel monitor {service} 127.0.0.1 {primary_port} 1"]
    port = free_port()
    with _sentinel(binary, port, settings, tls) as (pid, _):
        yield port, pid


@contextmanager
def _sentinel(
    binary: Binary, port: int, settings: Sequence[str], tls: Certificates | None = None
) -> Iterator[tuple[int, redis.Redis]]:
    """One Sentinel that answers: its process id and a client."""
    with tempfile.TemporaryDirectory(prefix="rtui-sentinel-") as folder:
        file = Path(folder, "sentinel.conf")
        lines = [f"port {0 if tls else port}", "bind 127.0.0.1", f"dir {folder}", *settings]
        if tls:
            lines += [f"tls-port {port}", f"tls-cert-file {tls.cert}", f"tls-key-file {tls.key}"]
            lines += [f"tls-ca-cert-file {tls.ca}", "tls-auth-clients no", "tls-replication yes"]
        file.write_text("\n".join(lines) + "\n")
        process = subprocess.Popen([*ending_with_parent(), binary.path, file, "--sentinel"], stdout=subprocess.DEVNULL)
        try:
            with redis.Redis(port=port, ssl=tls is not None, ssl_ca_certs=str(tls.ca) if tls else None) as client:
                wait_until(lambda: answers(client), lambda: "the Sentinel does not answer")
                yield process.pid, client
        finally:
            process.kill()
            process.wait()
