"""What a server is put under while the probe runs; each load is a process that goes on until it is stopped.

`python -m tests.bench.loads KIND PORT [ARGUMENTS]`: `rtui PACE` scans into a store again and again,
`analysis PACE` analyses again and again, `scan COUNT DUTY` sends one SCAN after the other and rests so that it takes
that share of the time, `facts COUNT` asks type, life time and size of each key too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hiredis

from rtui.demo.load import pack
from rtui.keyspace.store.store import NamespaceStore
from rtui.server.analysis_run import AnalysisRun
from rtui.server.options import AnalysisOptions
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from tests.servers import BROUGHT

READY = b"ready\n"
"""What a load says once it begins."""


async def rtui_scans(port: int, pace: str) -> None:
    """Scan the whole keyspace into a store at one of rtui's paces, again and again."""
    connection = Connection(Target(port=port))
    await connection.open()
    dialect = dialect_of(connection.server)
    while True:
        store = NamespaceStore()
        await Scan([ScanNode(connection, dialect)], store.add, RunControl(Pace(pace))).run()


async def rtui_analyses(port: int, pace: str) -> None:
    """Analyse the whole keyspace at one of rtui's paces, again and again."""
    connection = Connection(Target(port=port))
    await connection.open()
    while True:
        await AnalysisRun(connection, AnalysisOptions(pace=Pace(pace))).run()


class Asking:
    """A plain client that sends commands and waits for all replies."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._reader = hiredis.Reader()

    def run(self, commands: Sequence[tuple[bytes, ...]]) -> list[Any]:
        """One write, all replies."""
        return self.exchange(b"".join([pack(command) for command in commands]), len(commands))

    def exchange(self, packed: bytes, count: int) -> list[Any]:
        """Send bytes that are so many commands, and wait for their replies."""
        self._socket.sendall(packed)
        replies: list[Any] = []
        while len(replies) < count:
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self._socket.recv(1 << 20))
            else:
                replies.append(reply)
        return replies

    def page(self, cursor: bytes, count: int) -> tuple[bytes, list[bytes]]:
        """One SCAN."""
        (reply,) = self.run([(b"SCAN", cursor, b"COUNT", b"%d" % count)])
        assert isinstance(reply, list), reply
        return reply[0], reply[1]


def paced_scans(port: int, count: int, duty: float) -> None:
    """Scan with one COUNT, resting after each call so that calls take `duty` of the time."""
    client, cursor = Asking(port), b"0"
    while True:
        start = time.perf_counter()
        cursor, _ = client.page(cursor, count)
        took = time.perf_counter() - start
        if duty < 1:
            time.sleep(took * (1 / duty - 1))


def scans_with_facts(port: int, count: int) -> None:
    """Scan in large pages and ask three facts of each key in one write, as graphical browsers do."""
    client, cursor = Asking(port), b"0"
    while True:
        cursor, keys = client.page(cursor, count)
        facts = [(b"TYPE",), (b"PTTL",), (b"MEMORY", b"USAGE")]
        client.run([(*fact, key) for key in keys for fact in facts])


def main(kind: str, port: int, *arguments: str) -> None:
    """Run one load for ever."""
    os.write(1, READY)
    kinds: dict[str, Callable[[], None]] = {
        "rtui": lambda: asyncio.run(rtui_scans(port, arguments[0])),
        "analysis": lambda: asyncio.run(rtui_analyses(port, arguments[0])),
        "scan": lambda: paced_scans(port, int(arguments[0]), float(arguments[1])),
        "facts": lambda: scans_with_facts(port, int(arguments[0])),
    }
    kinds[kind]()


def own(kind: str, port: int, *arguments: object) -> list[str]:
    """The command line of one of these loads."""
    return [sys.executable, "-m", "tests.bench.loads", kind, str(port), *map(str, arguments)]


def again_and_again(command: Sequence[str]) -> list[str]:
    """A command line that says it is ready and then repeats a command; it must be one that ends by itself."""
    return ["bash", "-c", 'echo ready; while "$@" >/dev/null 2>&1; do :; done', "load", *command]


def redis_clis() -> list[list[str]]:
    """Every redis-cli of this machine, newest package first, as the beginning of a command line."""
    folder = BROUGHT.parent.resolve()
    libraries = folder / "glibc/usr/lib/x86_64-linux-gnu"
    loader = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
    brought = [[*loader, str(path)] for path in sorted(folder.glob("root/redis*8*/usr/bin/redis-cli"), reverse=True)]
    installed = Path("/usr/bin/redis-cli")
    return [*brought, *([[str(installed)]] if installed.exists() else [])]


def with_count() -> list[str] | None:
    """A redis-cli that knows --count for its key analysers, if there is one."""
    for command in redis_clis():
        said = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
        if "--memkeys" in said.stdout + said.stderr and "--count" in said.stdout + said.stderr:
            return command
    return None


@contextmanager
def under(command: Sequence[str] | None, cpus: set[int]) -> Iterator[None]:
    """Put the server under a load for the time of the block; None is no load."""
    if command is None:
        yield
        return

    def stay() -> None:
        os.sched_setaffinity(0, cpus)

    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=stay,  # noqa: PLW1509 -- one system call, no lock
    ) as load:
        assert load.stdout is not None
        assert load.stdout.readline() == READY
        try:
            yield
            assert load.poll() is None, f"the load ended by itself: {command}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(load.pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
