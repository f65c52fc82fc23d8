"""Opening a socket to a target: name resolution, TCP or unix socket, the way there, and the TLS context."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, cast

from rtui.server.files import reason_of
from rtui.server.wire.errors import ConnectFailure, FailureKind, TargetError
from rtui.server.wire.failures import limit_failure, name_failure, os_failure, timeout_failure
from rtui.server.wire.target import Target, Tls
from rtui.server.wire.tunnels import SshChild, connect_by_proxy

_OPTIONS: Final = (
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 15),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)
"""No delay of small requests; keep-alive probes after 15 s, every 5 s, which notice a vanished server at the third."""

LEAST_SHARE_S: Final = 0.1
"""Least time for each address of a name."""


_DIALLER: Final[ContextVar[Callable[[], socket.socket] | None]] = ContextVar("dialler", default=None)


@contextmanager
def dialled_by(dialler: Callable[[], socket.socket]) -> Iterator[None]:
    """Have all connections within the block, and in tasks that are started in it, made by a function.

    It returns a connected, non-blocking socket. No server is reached, whatever the target.
    """
    token = _DIALLER.set(dialler)
    try:
        yield
    finally:
        _DIALLER.reset(token)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address that a connection reached, so that a second one reaches the same server behind the same name."""

    family: int
    address: tuple[str, int] | tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Dialled:
    """A connection that was made: a non-blocking socket, and what there is besides."""

    sock: socket.socket
    address: ServerAddress | None = None
    """None where another connection can't be made to the same address: by a unix socket, SSH or a proxy."""
    ssh: SshChild | None = None
    """What carries it; whoever closes the socket ends it."""


async def dial(target: Target, timeout_s: float, first: ServerAddress | None) -> Dialled:
    """Connect to a target by its way.

    `first` is tried first; the name is resolved when there is none or it can't be reached. Then the addresses are tried
    one after another, and each gets its share of the time that is left. Raises `ConnectFailure`: the last one, without
    those that say only what this machine can't do.
    """
    if (dialler := _DIALLER.get()) is not None:
        return Dialled(dialler())
    if target.socket_path is not None:
        return Dialled(await _connect(socket.AF_UNIX, target.socket_path, target, timeout_s))
    host, port = target.way.addresses.reached_at((target.host, target.port))
    if target.way.via:
        sock, ssh = SshChild.start(target.way.via, (host, port))
        return Dialled(sock, ssh=ssh)
    if target.way.proxy is not None:
        return Dialled(await connect_by_proxy(target.way.proxy, (host, port), timeout_s))
    found = await _dial_directly(replace(target, host=host, port=port), timeout_s, first)
    return Dialled(*found)


async def _dial_directly(
    target: Target, timeout_s: float, first: ServerAddress | None
) -> tuple[socket.socket, ServerAddress]:
    if first is not None:
        try:
            return await _connect(first.family, first.address, target, timeout_s), first
        except ConnectFailure as failed:
            if failed.kind is FailureKind.LIMIT:
                raise
    loop = asyncio.get_running_loop()
    addresses = await _resolve(target, timeout_s)
    started_s = loop.time()
    failures: list[ConnectFailure] = []
    for index, candidate in enumerate(addresses):
        share_s = max(LEAST_SHARE_S, (timeout_s - (loop.time() - started_s)) / (len(addresses) - index))
        try:
            return await _connect(candidate.family, candidate.address, target, share_s), candidate
        except ConnectFailure as failed:
            if failed.kind is FailureKind.LIMIT:
                raise
            timed_out = failed.kind is FailureKind.TIMEOUT
            failures.append(timeout_failure(target, timeout_s) if timed_out else failed)
    # An address that this machine can't even try, such as ::1 without IPv6, says nothing of the server.
    telling = [failed for failed in failures if failed.kind is not FailureKind.UNREACHABLE]
    raise (telling or failures or [name_failure(target)])[-1]


async def _resolve(target: Target, timeout_s: float) -> list[ServerAddress]:
    try:
        async with asyncio.timeout(timeout_s):
            found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise timeout_failure(target, timeout_s) from None
    except (OSError, ValueError, OverflowError) as error:  # UnicodeError is a ValueError
        raise limit_failure(error) or name_failure(target) from None
    return [ServerAddress(family, cast("tuple[str, int]", address)) for family, _, _, _, address in found]


async def _connect(family: int, address: object, target: Target, timeout_s: float) -> socket.socket:
    """Connect to one address; raises `ConnectFailure`."""
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise os_failure(target, error) from None
    try:
        sock.setblocking(False)
        for level, name, value in _OPTIONS if family != socket.AF_UNIX else ():
            with contextlib.suppress(AttributeError, OSError):  # an option that the system lacks or refuses is no loss
                sock.setsockopt(level, getattr(socket, name), value)
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(sock, cast("tuple[str, int]", address))
    except BaseException as error:  # also when cancelled: nobody else would close the socket
        sock.close()
        if isinstance(error, TimeoutError):
            raise timeout_failure(target, timeout_s) from None
        if isinstance(error, OSError):
            raise os_failure(target, error) from None
        raise
    return sock


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Make a client context that checks certificate and host name unless `insecure`.

    With an authority of one's own only that is trusted, else those of the system. Raises `TargetError` for unusable
    files, `ConnectFailure` when no further file can be opened.
    """
    if tls.insecure:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        try:
            context = ssl.create_default_context(cafile=tls.cacert, capath=tls.cacertdir)
        except (OSError, ValueError) as error:
            raise limit_failure(error) or _unusable("CA certificate", "--cacert and --cacertdir", error) from None
    if tls.cert is None and tls.key is not None:
        raise TargetError(
            "TLS can't be set up", "There is a key without its certificate.", "Give both --cert and --key."
        )
    if tls.cert is not None:
        try:
            # Without a passphrase OpenSSL would ask for one on the terminal; an encrypted key fails instead.
            context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
        except (OSError, ValueError) as error:
            raise limit_failure(error) or _unusable(
                "client certificate or its key", "--cert and --key", error
            ) from None
    return context


def _unusable(what: str, options: str, error: Exception) -> TargetError:
    happened = f"The {what} can't be used: {reason_of(error)}."
    return TargetError("TLS can't be set up", happened, f"Check the PEM files of {options}.")
