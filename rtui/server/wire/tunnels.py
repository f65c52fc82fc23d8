"""Sockets that get to a server through something else: OpenSSH, or a SOCKS proxy.

`--via HOST` starts one OpenSSH child a connection, `ssh -W server:port HOST`, whose standard input and output are one
end of a socket pair. The other end is the connection's socket, as if it were that of the server. So the user's own ssh
configuration, keys, agent and known hosts apply, and names of servers are resolved by the last host. ssh is told not to
ask anything (BatchMode), since the terminal is rtui's, and not to wait for a host that hangs when rtui is gone
(ConnectTimeout). What it says when it fails is what the user sees.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import subprocess
from typing import Final

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.secret import Secret
from rtui.server.wire.ways import SSH_S, Address

MOST_SAID_BYTES: Final = 4096
"""Of what ssh says so much is kept: its end."""

LAST_LINES: Final = 3
"""So many lines of it are shown: before them may be the banner of a host."""

_DEBUG: Final = re.compile(r"debug\d: ")
"""How a line begins that a LogLevel of the user's adds."""

END_S: Final = 2.0
"""How long ssh may take to end."""

CHECK_PROXY: Final = "Check the address of --proxy, its user and password, and whether it may reach the server."


async def connect_by_proxy(proxy: Secret, to: Address, timeout_s: float) -> socket.socket:
    """Connect through a SOCKS proxy, which resolves the name; raises ConnectFailure."""
    try:
        from python_socks.async_.asyncio import Proxy  # noqa: PLC0415 - an extra
    except ImportError:
        happened = "A SOCKS proxy takes a library that is not installed."
        raise ConnectFailure(FailureKind.PROXY, happened, "pip install 'redis-rtui[proxy]'") from None
    try:
        sock: socket.socket = await Proxy.from_url(proxy.reveal(), rdns=True).connect(*to, timeout=timeout_s)
    except Exception as error:  # noqa: BLE001 - the library has errors of many families
        said = display_text(str(error) or type(error).__name__, limit=200)
        raise ConnectFailure(
            FailureKind.PROXY, f"The proxy did not connect to the server: {said}.", CHECK_PROXY
        ) from None
    return sock


class SshChild:
    """An OpenSSH process that carries one connection."""

    def __init__(self, process: subprocess.Popen[bytes], host: str) -> None:
        assert process.stderr is not None  # noqa: S101 - it was asked for
        self._process = process
        self._host = host
        self._said = b""
        self._stderr = process.stderr.fileno()
        os.set_blocking(self._stderr, False)
        asyncio.get_running_loop().add_reader(self._stderr, self._read)  # ssh would wait where nobody reads it

    @classmethod
    def start(cls, via: tuple[str, ...], to: Address) -> tuple[socket.socket, SshChild]:
        """Start ssh; return our end of its connection. Raises ConnectFailure when there is no ssh."""
        *jumps, last = via
        host = f"[{to[0]}]" if ":" in to[0] else to[0]
        options = [
            "-o",
            "BatchMode=yes",
            "-o",
            f"ConnectTimeout={SSH_S:.0f}",
            *(["-J", ",".join(jumps)] if jumps else []),
        ]
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(
                ["ssh", *options, "-W", f"{host}:{to[1]}", "--", last],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            happened = f"OpenSSH's ssh can't be started: {error.strerror or error}."
            raise ConnectFailure(FailureKind.SSH, happened, "Install the OpenSSH client.") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        return ours, cls(process, last)

    def _read(self) -> bool:
        """Keep the end of what ssh has said; return whether there may be more of it."""
        with contextlib.suppress(BlockingIOError):
            text = os.read(self._stderr, MOST_SAID_BYTES)
            self._said = (self._said + text)[-MOST_SAID_BYTES:]
            if not text:  # it has ended
                asyncio.get_running_loop().remove_reader(self._stderr)
            return bool(text)
        return False

    def _read_all(self) -> None:
        while self._read():
            pass

    def said(self) -> SafeText | None:
        """Return what ssh has said last, safe to show; None where it has said nothing. Not after `end`."""
        self._read_all()
        lines = [" ".join(line.split()) for line in self._said.decode("utf-8", "surrogateescape").splitlines()]
        words = " ".join([line for line in lines if line and not _DEBUG.match(line)][-LAST_LINES:])
        return display_text(f"ssh {self._host}: {words}", limit=400) if words else None

    def forget_said(self) -> None:
        """Forget what it has said so far: the server has answered, so a banner is no reason for what comes later."""
        self._read_all()
        self._said = b""

    def end(self) -> None:
        """End the process, and take it from the list of processes once it has."""
        process = self._process
        with contextlib.suppress(OSError):
            process.terminate()
        if process.stderr is not None and not process.stderr.closed:
            asyncio.get_running_loop().remove_reader(self._stderr)
            process.stderr.close()
        reaping = asyncio.get_running_loop().run_in_executor(None, _reap, process)
        _REAPING.add(reaping)
        reaping.add_done_callback(_REAPING.discard)


_REAPING: Final[set[asyncio.Future[None]]] = set()


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
