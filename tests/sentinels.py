"""Sentinels for the tests: three of them over a primary and its replica, on loopback."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.certificates import Certificates
from tests.servers import START_TIMEOUT_S, Binary, Server, ServerDiedError, _die_with_parent, free_port, running

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
        """What leads to it."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"sentinel://{hosts}/{SERVICE}"

    def wait_seen(self) -> None:
        """Wait until each Sentinel knows the replica and the other Sentinels."""
        until = time.monotonic() + START_TIMEOUT_S
        others = len(self.sentinels) - 1
        while not all(_sees(one, others) for one in self.sentinels):
            if time.monotonic() > until:
                raise ServerDiedError("the Sentinels do not find each other")
            time.sleep(0.05)


def _sees(sentinel: redis.Redis, others: int) -> bool:
    state: dict[str, int] = sentinel.sentinel_master(SERVICE)  # type: ignore[assignment]
    return state["num-slaves"] == 1 and state["num-other-sentinels"] == others


@contextmanager
def watched(binary: Binary, *, lines: Sequence[str] = ()) -> Iterator[Watched]:
    """A primary and a replica with three Sentinels; `lines` are further settings of the Sentinels."""
    with ExitStack() as stack:
        primary = stack.enter_context(running(binary, "--repl-diskless-sync-delay", "0"))
        replica = stack.enter_context(running(binary, "--replicaof", f"127.0.0.1 {primary.port}"))
        clients, ports = [], []
        for _ in range(3):
            settings = [
                f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 2",
                f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
                f"sentinel failover-timeout {SERVICE} 3000",
                *lines,
            ]
            port, _, client = stack.enter_context(_sentinel(binary, settings))
            clients.append(client)
            ports.append(port)
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
    with _sentinel(binary, settings, tls) as (port, pid, _):
        yield port, pid


@contextmanager
def _sentinel(
    binary: Binary, settings: Sequence[str], tls: Certificates | None = None
) -> Iterator[tuple[int, int, redis.Redis]]:
    """One Sentinel that answers: its port, its process id and a client."""
    with tempfile.TemporaryDirectory(prefix="rtui-sentinel-") as folder:
        file, port = Path(folder, "sentinel.conf"), free_port()
        lines = [f"port {0 if tls else port}", "bind 127.0.0.1", f"dir {folder}", *settings]
        if tls:
            lines += [f"tls-port {port}", f"tls-cert-file {tls.cert}", f"tls-key-file {tls.key}"]
            lines += [f"tls-ca-cert-file {tls.ca}", "tls-auth-clients no", "tls-replication yes"]
        file.write_text("\n".join(lines) + "\n")
        process = subprocess.Popen(
            [binary.path, file, "--sentinel"],
            stdout=subprocess.DEVNULL,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 -- one system call, no lock
        )
        try:
            with redis.Redis(port=port, ssl=tls is not None, ssl_ca_certs=str(tls.ca) if tls else None) as client:
                _wait_answers(client)
                yield port, process.pid, client
        finally:
            process.kill()
            process.wait()


def _wait_answers(client: redis.Redis) -> None:
    """Wait until a Sentinel answers."""
    until = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            client.ping()
            return
        except redis.ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
