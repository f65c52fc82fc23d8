"""A proxy that judges every command on its way to a server by the second opinion on what is harmless.

It sees what MONITOR does not tell: AUTH, HELLO and commands of administrators. It keeps counts and what is wrong, not
the commands, so that it may stand between for minutes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from types import TracebackType
from typing import Final, Self

from rtui.server.guard.command import find_spec
from tests.server.guard.harmless import is_harmless
from tests.wire import Requests

PIECE: Final = 1 << 16

PATIENCE_S: Final = 10.0


class WireJudge:
    """Listens on a free loopback port and passes everything on, a thread for each direction of each connection."""

    def __init__(self, upstream_port: int) -> None:
        self.sent: Counter[str] = Counter()
        """How often each command was sent, by its entry in the closed list."""
        self.wrong: list[list[bytes]] = []
        """Command lines that the closed list or the second opinion does not admit."""
        self._upstream_port = upstream_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._has_ended = False

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._has_ended = True
            for one in (self._listener, *self._sockets):
                _shut(one)
        for thread in list(self._threads):
            thread.join(PATIENCE_S)

    def _start(self, work: object, *given: object) -> None:
        thread = threading.Thread(target=work, args=given, name="wire judge", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._upstream_port))
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    if self._has_ended:
                        client.close()
                        server.close()
                        return
                    self._sockets += (client, server)
                self._start(self._pass_on, client, server, Requests())
                self._start(self._pass_on, server, client, None)

    def _pass_on(self, source: socket.socket, sink: socket.socket, requests: Requests | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                if requests is not None:
                    requests.feed(data)
                    for argv in requests.commands:
                        self._judge(argv)
                    requests.commands.clear()
                sink.sendall(data)
        _shut(source)
        _shut(sink)

    def _judge(self, argv: list[bytes]) -> None:
        spec = find_spec(argv)
        if spec is None or not is_harmless(argv):
            self.wrong.append(argv)
        else:
            self.sent[spec.name] += 1


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
