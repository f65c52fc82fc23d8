"""A proxy before a server that passes connections on and notes when each came in, as the server would see it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CHUNK_BYTES = 1 << 18
"""How much is passed on at once."""


@dataclass(slots=True)
class ConnectionRecorder:
    """Where to connect to, and who did."""

    port: int
    opened_at: list[float] = field(default_factory=list)
    """When connections were accepted, on the clock of `time.perf_counter`, in their order."""


@contextmanager
def recorded_connections(socket_path: str) -> Iterator[ConnectionRecorder]:
    """Listen on a free loopback port and pass everything on to a server's unix socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = ConnectionRecorder(listener.getsockname()[1])
        threading.Thread(target=_accept, args=(listener, socket_path, found), daemon=True).start()
        yield found
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, socket_path: str, found: ConnectionRecorder) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        found.opened_at.append(time.perf_counter())
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = socket.socket(socket.AF_UNIX)
        server.connect(socket_path)
        for ends in ((client, server), (server, client)):
            threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Carry one direction until the source ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
