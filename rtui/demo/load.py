"""The demo: an embedded server, and the process that loads the sample keyspaces while they are browsed.

That process gets a connected socket as its standard input and has no code to connect to anything: `start_loading`
passes it a connection that an `EmbeddedServer` made to itself.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import hiredis

import rtui
from rtui.demo.keyspaces import write_groups
from rtui.demo.writes import Write
from rtui.embedded.server import EmbeddedServer
from rtui.keyspace.text.display import SafeText
from rtui.server.files import report_name, server_digest
from rtui.server.options import DEFAULT_DEMO_KEYS, DemoDay
from rtui.server.wire.target import Target

CHUNK_WRITES: Final = 500
"""The number of writes per chunk; replies to one chunk are read after the next one has been sent."""


EARLIER: Final = Path(__file__).with_name("earlier.json.gz")
"""The report of a good day of the demo with its usual number of keys; `make demo-report` writes it again."""

EARLIER_AGE_S: Final = 86_400.0
"""How long before now the earlier report is said to have been made."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A running demo: where to connect, and whether it is complete."""

    target: Target
    _loader: subprocess.Popen[bytes] = field(repr=False)

    @property
    def is_loading(self) -> bool:
        """Whether keys are still being added; a scan that began before the end misses some."""
        return self._loader.poll() is None

    @property
    def reports_folder(self) -> Path:
        """The folder in which reports of the demo are kept as long as it runs."""
        return Path(str(self.target.socket_path)).with_name("reports")

    def keep_earlier(self) -> None:
        """Add a report of a day ago to the reports of the demo."""
        label, made_at_s = self.target.label, time.time() - EARLIER_AGE_S
        folder = self.reports_folder / server_digest(label, self.target.db)
        folder.mkdir(parents=True)
        report = gzip.compress(earlier_report(label, made_at_s), compresslevel=1)
        (folder / report_name(made_at_s)).write_bytes(report)

    def wait_loaded(self) -> bool:
        """Wait until the last key is loaded; False if the loader failed."""
        return self._loader.wait() == 0


def earlier_report(label: str, made_at_s: float) -> bytes:
    """Return the earlier report as JSON, as made by a server of this label at this time, seconds since the epoch."""
    lines = gzip.decompress(EARLIER.read_bytes()).split(b"\n")
    for name, value in (("made_at_s", made_at_s), ("label", label)):
        at = next(at for at, line in enumerate(lines) if line.lstrip().startswith(f'"{name}": '.encode()))
        lines[at] = f"{json.dumps(name)}: {json.dumps(value)},".encode()
    return b"\n".join(lines)


@contextmanager
def demo_server(keys: int = DEFAULT_DEMO_KEYS, day: DemoDay = "bad") -> Iterator[Demo]:
    """Start the embedded server and begin to load about `keys` sample keys; stop it at the end of the block.

    Raises EmbeddedServerError without an embedded server.
    """
    with EmbeddedServer([("maxmemory-policy", "allkeys-lfu")]) as server:
        loader = start_loading(server, keys, day)
        try:
            yield Demo(Target(socket_path=server.socket_path, name="demo", shown_as=SafeText("demo")), loader)
        finally:
            loader.kill()
            loader.wait()


DEMO_FLEET: Final[Mapping[str, tuple[Mapping[str, str], Sequence[tuple[str, str]]]]] = {
    "carts-1": ({"team": "shop", "zone": "a"}, [("maxmemory", "64mb"), ("maxmemory-policy", "allkeys-lru")]),
    "carts-2": ({"team": "shop", "zone": "b"}, [("maxmemory", "2450kb"), ("maxmemory-policy", "noeviction")]),
    "sessions": ({"team": "login", "zone": "a"}, [("maxmemory", "64mb"), ("maxmemory-policy", "volatile-ttl")]),
    "mail-queue": ({"team": "mail", "zone": "a"}, [("maxmemory", "64mb")]),
}
"""Servers with their labels and settings."""

DEMO_FLEET_KEYS: Final = 2_000
"""Keys of each of them."""


@contextmanager
def demo_fleet() -> Iterator[list[Target]]:
    """Start a few small servers with some keys, and name one that is gone; stop them at the end of the block."""
    targets: list[Target] = []
    with ExitStack() as stack:
        for name, (labels, settings) in DEMO_FLEET.items():
            server = stack.enter_context(EmbeddedServer(settings))
            loader = start_loading(server, DEMO_FLEET_KEYS, "good")
            stack.callback(loader.wait)
            stack.callback(loader.kill)
            pairs = tuple((SafeText(key), SafeText(value)) for key, value in labels.items())
            targets.append(Target(socket_path=server.socket_path, name=name, labels=pairs, shown_as=SafeText(name)))
        gone = Target(
            socket_path=f"{targets[0].socket_path}.gone",
            name="search",
            labels=targets[0].labels,
        )
        yield [*targets, gone]


def start_loading(server: EmbeddedServer, keys: int, day: DemoDay = "bad") -> subprocess.Popen[bytes]:
    """Start a process that loads about `keys` keys into the embedded server.

    It exits with 0 when all are loaded, and also ends if the server does.
    """
    package_parent = str(Path(rtui.__file__).parent.parent)
    with server.connect() as connection:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "rtui.demo.load", str(keys), day],
            stdin=connection.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": package_parent},
            start_new_session=True,
        )


def pack(write: Write) -> bytes:
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in write]
    return b"*%d\r\n%s" % (len(parts), b"".join([b"$%d\r\n%s\r\n" % (len(part), part) for part in parts]))


def send(connection: socket.socket, writes: Iterable[Write]) -> list[str]:
    """Send all writes in a pipeline; return the server's error replies. Raises OSError if the server is gone."""
    reader = hiredis.Reader()
    errors: list[str] = []
    before = 0
    remaining = iter(writes)
    while chunk := list(islice(remaining, CHUNK_WRITES)):
        connection.sendall(b"".join(map(pack, chunk)))
        _read_replies(connection, reader, before, errors)
        before = len(chunk)
    _read_replies(connection, reader, before, errors)
    return errors


def _read_replies(connection: socket.socket, reader: hiredis.Reader, count: int, errors: list[str]) -> None:
    while count:
        reply = reader.gets()
        if reply is False:
            data = connection.recv(65_536)
            if not data:
                raise ConnectionResetError("the embedded server has exited")
            reader.feed(data)
            continue
        if isinstance(reply, hiredis.ReplyError):
            errors.append(str(reply))
        count -= 1


def main(keys: int, day: DemoDay) -> int:
    """Send all keyspaces through standard input, which is the connection; return the exit code."""
    with socket.socket(fileno=0) as connection:
        try:
            groups = write_groups(keys, day=day)
            errors = send(connection, (write for group in groups for write in (*group.own, *group.shared)))
        except OSError:
            return 1
    return 2 if errors else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), "good" if sys.argv[2] == "good" else "bad"))
