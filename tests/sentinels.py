"""Sentinels for the tests: three of them over a primary and its replica, on loopback."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.certificates import Certificates
from tests.servers import Binary, Server, answers, ending_with_parent, free_port, running, wait_until

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
