"""Sockets that get to a server through something else: OpenSSH, or a SOCKS proxy.

`--via HOST` starts one OpenSSH child a connection, `ssh -W server:port HOST`, whose standard input and output are one
end of a socket pair. The other end is the connection's socket, as if it were that of the server. So the user's own ssh
configuration, keys, agent and known hosts apply, and names of servers are resolved by the last host. ssh is told not to
ask anything (BatchMode), since the terminal is rtui's; what it says when it fails is what the user sees, and not more
than a pipe holds (LogLevel). Banners and warnings are no failures: they are forgotten once the server has answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from typing import Final

from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.wire.errors import ConnectFailure, FailureKind
from rtui.server.wire.secret import Secret
from rtui.server.wire.ways import Address, Way, socks_proxy

MOST_SAID_BYTES: Final = 64 * 1024
"""Of what ssh says so much is read: what a pipe holds."""

MOST_SHOWN: Final = 300
"""Of what ssh has said the last lines are shown, which tell why it ended, in so many characters."""

PATIENCE_S: Final = 15.0
"""How long it may take at least until a server answers through SSH hosts: several log in one after another."""

END_S: Final = 2.0
"""How long ssh may take to end."""

CHECK_PROXY: Final = "Check the address of --proxy, its user and password, and whether it may reach the server."


def patience_s(way: Way, timeout_s: float) -> float:
    """Return how long a connection may take that would directly have `timeout_s`."""
    return max(timeout_s, PATIENCE_S) if way.via else timeout_s


async def connect_by_proxy(proxy: Secret, to: Address, timeout_s: float) -> socket.socket:
    """Connect through a SOCKS proxy, which resolves the name; raises ConnectFailure."""
    try:
        from python_socks import ProxyType  # noqa: PLC0415 - an extra
        from python_socks.async_.asyncio import Proxy  # noqa: PLC0415
    except ImportError:
        happened = "A SOCKS proxy takes a library that is not installed."
        raise ConnectFailure(FailureKind.PROXY, happened, "pip install 'redis-rtui[proxy]'") from None
    given = socks_proxy(proxy)
    kind = ProxyType.SOCKS5 if given.version == 5 else ProxyType.SOCKS4
    password = None if given.password is None else given.password.reveal()
    try:
        sock: socket.socket = await Proxy(kind, given.host, given.port, given.user, password, rdns=True).connect(
            *to, timeout=timeout_s
        )
    except Exception as error:  # noqa: BLE001 - the library has errors of many families
        said = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            said = error.strerror.partition(" [")[0]
        if isinstance(error, TimeoutError):
            said = f"there was no answer within {timeout_s:g} s"
        said = display_text(said.removesuffix("."), limit=200)
        raise ConnectFailure(
            FailureKind.PROXY, f"The proxy did not connect to the server: {said}.", CHECK_PROXY
        ) from None
    return sock


class SshChild:
    """An OpenSSH process that carries one connection."""

    def __init__(self, process: subprocess.Popen[bytes], host: str) -> None:
        self._process = process
        self._host = host

    @classmethod
    def start(cls, via: tuple[str, ...], to: Address) -> tuple[socket.socket, SshChild]:
        """Start ssh; return our end of its connection. Raises ConnectFailure when there is no ssh."""
        *jumps, last = via
        host = f"[{to[0]}]" if ":" in to[0] else to[0]
        options = ["-o", "BatchMode=yes", "-o", "LogLevel=INFO", *(["-J", ",".join(jumps)] if jumps else [])]
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
        assert process.stderr is not None  # noqa: S101 - it was asked for
        os.set_blocking(process.stderr.fileno(), False)
        return ours, cls(process, last)

    def said(self) -> SafeText | None:
        """Return what ssh has said, safe to show; None where it has said nothing."""
        assert self._process.stderr is not None  # noqa: S101 - it was asked for
        with contextlib.suppress(OSError, ValueError):
            text = os.read(self._process.stderr.fileno(), MOST_SAID_BYTES).decode("utf-8", "surrogateescape")
            words = _last_lines(text)
            return display_text(f"ssh {self._host}: {words}", limit=400) if words else None
        return None

    def forget_said(self) -> None:
        """Forget what it has said so far, such as a banner: it has connected."""
        self.said()

    def end(self) -> None:
        """End the process, and take it from the list of processes once it has."""
        process = self._process
        with contextlib.suppress(OSError):
            process.terminate()
        if process.stderr is not None:
            process.stderr.close()
        reaping = asyncio.get_running_loop().run_in_executor(None, _reap, process)
        _REAPING.add(reaping)
        reaping.add_done_callback(_REAPING.discard)


def _last_lines(text: str) -> str:
    """Return the last lines of a text in one, with … before them if others are left out."""
    lines = [words for line in text.splitlines() if (words := " ".join(line.split()))]
    kept: list[str] = []
    while lines and sum(map(len, kept)) + len(lines[-1]) <= MOST_SHOWN:
        kept.insert(0, lines.pop())
    if not kept:
        return lines[-1] if lines else ""
    return "; ".join(["…", *kept] if lines else kept)


_REAPING: Final[set[asyncio.Future[None]]] = set()


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
