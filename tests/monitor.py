"""A recorder at the server: what other clients ask, as MONITOR tells it."""

from __future__ import annotations

import re
import secrets
import socket
import threading
from collections import defaultdict
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.servers import ADMIN, Server

LINE = re.compile(rb"\+?(?P<time>\d+\.\d+) \[(?P<db>\d+) (?P<client>[^\]]+)\] (?P<argv>.*)", re.DOTALL)
"""`1700000000.123456 [0 127.0.0.1:5555] "SCAN" "0"`; an IPv6 client has its own brackets and is not used here."""

ARGUMENT = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
"""One quoted argument; quotes and backslashes in it are escaped."""

ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)", re.DOTALL)
"""What the server escapes: bytes that are not printable ASCII, quotes and backslashes."""

NAMED_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}
"""Escapes with a letter; any other character stands for itself."""

PATIENCE_S = 20.0
"""How long the marker that ends a recording may take."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One command: the address of its client (`127.0.0.1:5555`, `unix:…`), its database and its arguments."""

    client: str
    db: int
    argv: tuple[bytes, ...]

    @property
    def name(self) -> str:
        """The command in capitals, without a subcommand."""
        return self.argv[0].decode("latin-1").upper()


def _unescaped(text: bytes) -> bytes:
    def one(found: re.Match[bytes]) -> bytes:
        code = found.group(1)
        if len(code) == 3:
            return bytes([int(code[1:], 16)])
        return NAMED_ESCAPES.get(code, code)

    return ESCAPE.sub(one, text)


def escapes_quotes(server: Server) -> bool:
    """Whether MONITOR escapes quotes and backslashes. Valkey 8.1 does not: there an argument with `" "`, or with a
    backslash before a letter, cannot be read back exactly."""
    return (server.product, server.version[:2]) != ("valkey", (8, 1))


def parse(line: bytes, *, quotes_escaped: bool = True) -> Recorded:
    """Read one line of MONITOR back into bytes exactly; ValueError if it is none."""
    found = LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"not a line of MONITOR: {line[:200]!r}")
    quoted = ARGUMENT.findall(found["argv"]) if quotes_escaped else found["argv"][1:-1].split(b'" "')
    argv = tuple(_unescaped(argument) for argument in quoted)
    return Recorded(found["client"].decode(), int(found["db"]), argv)


class Recorder:
    """Records what other clients ask of a server while the block runs.

    The server does not tell AUTH, HELLO and administrative commands; `DelayProxy.commands` sees those too.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._marker = secrets.token_hex(8).encode()
        self._quotes_escaped = escapes_quotes(server)
        self._lines: list[Recorded] = []
        self._ended = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX)
        self._thread = threading.Thread(target=self._read, name="monitor", daemon=True)
        self._names: dict[str, str] = {}

    @property
    def commands(self) -> list[Recorded]:
        """Everything recorded, complete once the block has ended."""
        return list(self._lines)

    def by_client(self) -> dict[str, list[Recorded]]:
        """The same, grouped by the address of the client."""
        grouped: dict[str, list[Recorded]] = defaultdict(list)
        for recorded in self._lines:
            grouped[recorded.client].append(recorded)
        return dict(grouped)

    def named(self, name: str) -> list[Recorded]:
        """Everything that clients asked who call themselves so, their first commands included."""
        addresses = {client for client, called in self._names.items() if called == name}
        for recorded in self._lines:
            words = [word.upper() for word in recorded.argv[:2]]
            if words == [b"CLIENT", b"SETNAME"] and recorded.argv[2].decode("latin-1") == name:
                addresses.add(recorded.client)
        return [recorded for recorded in self._lines if recorded.client in addresses]

    def __enter__(self) -> Self:
        self._socket.connect(self._server.socket)
        self._socket.settimeout(PATIENCE_S)
        for command in (f"AUTH {ADMIN} {self._server.password}", "MONITOR"):
            self._socket.sendall(f"{command}\r\n".encode())
            assert self._socket.recv(64) == b"+OK\r\n"
        self._socket.settimeout(None)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        admin = self._server.admin
        try:
            admin.echo(self._marker.decode())
            self._names = {str(client["addr"]): str(client["name"]) for client in admin.client_list()}
            admin.echo(self._marker.decode())
            assert self._ended.wait(PATIENCE_S), "the recording did not end"
        finally:
            self._socket.close()
            self._thread.join(PATIENCE_S)
        first = next(index for index, recorded in enumerate(self._lines) if self._is_marker(recorded))
        del self._lines[first:]

    def _is_marker(self, recorded: Recorded) -> bool:
        return recorded.argv == (b"ECHO", self._marker)

    def _read(self) -> None:
        markers = 0
        with self._socket.makefile("rb") as lines:
            for line in lines:
                recorded = parse(line.removesuffix(b"\r\n"), quotes_escaped=self._quotes_escaped)
                self._lines.append(recorded)
                markers += self._is_marker(recorded)
                if markers == 2:
                    self._ended.set()
                    return
