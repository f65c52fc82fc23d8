"""The loader: a process that sends the sample keyspaces down the socket it was given.

It has no way to connect to anything: `start_loading` hands it a connection that an `EmbeddedServer` made to itself.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import hiredis

import rtui
from rtui.demo.embedded import EmbeddedServer
from rtui.demo.keyspaces import DEFAULT_SEED, units
from rtui.demo.writes import Write

CHUNK_WRITES: Final = 500
"""How many writes leave at once; the replies to one chunk are read while the next one is under way."""

RECEIVE_BYTES: Final = 65_536
"""How much of the replies is read at once."""


def start_loading(server: EmbeddedServer, keys: int, seed: int = DEFAULT_SEED) -> subprocess.Popen[bytes]:
    """Load about `keys` keys into the embedded server in a process of its own; it ends with code 0 when all are there.

    It ends too when the server does.
    """
    package_parent = str(Path(rtui.__file__).parent.parent)
    with server.connect() as connection:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "rtui.demo.load", str(keys), str(seed)],
            stdin=connection.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": package_parent},
            start_new_session=True,
        )


def pack(write: Write) -> bytes:
    """The command as the protocol wants it."""
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in write]
    return b"*%d\r\n%s" % (len(parts), b"".join([b"$%d\r\n%s\r\n" % (len(part), part) for part in parts]))


def send(connection: socket.socket, writes: Iterable[Write]) -> list[str]:
    """Send all writes, pipelined; returns the errors that the server answered with. Raises OSError when it is gone."""
    reader = hiredis.Reader()
    errors: list[str] = []
    before = 0
    for chunk in _chunks(writes):
        connection.sendall(b"".join(map(pack, chunk)))
        _read_replies(connection, reader, before, errors)
        before = len(chunk)
    _read_replies(connection, reader, before, errors)
    return errors


def _chunks(writes: Iterable[Write]) -> Iterator[list[Write]]:
    chunk: list[Write] = []
    for write in writes:
        chunk.append(write)
        if len(chunk) == CHUNK_WRITES:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _read_replies(connection: socket.socket, reader: hiredis.Reader, count: int, errors: list[str]) -> None:
    while count:
        reply = reader.gets()
        if reply is False:
            data = connection.recv(RECEIVE_BYTES)
            if not data:
                raise ConnectionResetError("the embedded server is gone")
            reader.feed(data)
            continue
        if isinstance(reply, hiredis.ReplyError):
            errors.append(str(reply))
        count -= 1


def main(keys: int, seed: int) -> int:
    """Send everything down standard input, which is the connection."""
    with socket.socket(fileno=0) as connection:
        try:
            errors = send(connection, (write for unit in units(keys, seed) for write in (*unit.own, *unit.shared)))
        except OSError:
            return 1
    return 2 if errors else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
